"""Integrals over a whole basis, block by block: for molecules of a few atoms."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cuanto.basis.shell import Shell
from oracles.integrals import one_electron
from oracles.integrals.hermite import Array, expand_pair, expand_single
from oracles.integrals.two_electron import coulomb


class BasisLike(Protocol):
    """The required attributes of a basis: shells in AO order, nuclei, first AO of each shell, number of AOs."""

    @property
    def shells(self) -> Sequence[Shell]: ...
    @property
    def R_ax(self) -> Array: ...
    @property
    def offsets(self) -> Sequence[int] | NDArray[Any]: ...
    @property
    def nbf(self) -> int: ...


@dataclass(frozen=True)
class _Placed:
    """One shell of a basis with its position and its slice of the AO axis."""

    number: int
    shell: Shell
    R_x: Array
    aos: slice


def _placed(basis: BasisLike) -> list[_Placed]:
    return [
        _Placed(number, shell, basis.R_ax[shell.atom], slice(int(first), int(first) + shell.nbf))
        for number, (shell, first) in enumerate(zip(basis.shells, basis.offsets, strict=True))
    ]


def _pairs(basis: BasisLike) -> Iterator[tuple[_Placed, _Placed]]:
    """Shell pairs of the lower triangle."""
    placed = _placed(basis)
    return ((a, b) for a in placed for b in placed[: a.number + 1])


def overlap_matrix(basis: BasisLike) -> Array:
    """<p|q>, (nbf, nbf)."""
    return _symmetric(basis, one_electron.overlap)


def kinetic_matrix(basis: BasisLike) -> Array:
    """<p|-nabla^2/2|q>, (nbf, nbf)."""
    return _symmetric(basis, one_electron.kinetic)


def nuclear_matrix(basis: BasisLike, charges: ArrayLike, positions: ArrayLike) -> Array:
    """Attraction to point charges (negative for nuclei), (nbf, nbf)."""
    return _symmetric(basis, lambda a, A, b, B: one_electron.nuclear(a, A, b, B, charges, positions))


def dipole_matrices(basis: BasisLike, origin: ArrayLike = (0.0, 0.0, 0.0)) -> Array:
    """<p|r - origin|q>, (3, nbf, nbf); no sign of the electron's charge."""
    return _symmetric(basis, lambda a, A, b, B: one_electron.dipole(a, A, b, B, origin), leading=(3,))


def quadrupole_matrices(basis: BasisLike) -> Array:
    """<p|r_x r_y|q>, (6, nbf, nbf): xx, xy, xz, yy, yz, zz."""
    return _symmetric(basis, one_electron.quadrupole, leading=(6,))


def _symmetric(
    basis: BasisLike, block: Callable[[Shell, Array, Shell, Array], Array], leading: tuple[int, ...] = ()
) -> Array:
    M_pq = np.empty((*leading, basis.nbf, basis.nbf))
    for a, b in _pairs(basis):
        values = block(a.shell, a.R_x, b.shell, b.R_x)
        M_pq[..., b.aos, a.aos] = np.swapaxes(values, -1, -2)
        M_pq[..., a.aos, b.aos] = values
    return M_pq


def eri_2c_matrix(aux: BasisLike, omega: float | None = None) -> Array:
    """(P|Q), (naux, naux)."""
    expansions = [expand_single(P.shell, P.R_x) for P in _placed(aux)]
    V_PQ = np.empty((aux.nbf, aux.nbf))
    for P, Q in _pairs(aux):
        values = coulomb(expansions[P.number], expansions[Q.number], omega)
        V_PQ[Q.aos, P.aos] = values.T
        V_PQ[P.aos, Q.aos] = values
    return V_PQ


def eri_3c_tensor(basis: BasisLike, aux: BasisLike, omega: float | None = None) -> Array:
    """(pq|P), (nbf, nbf, naux)."""
    fitting = [(P.aos, expand_single(P.shell, P.R_x)) for P in _placed(aux)]
    B_pqP = np.empty((basis.nbf, basis.nbf, aux.nbf))
    for a, b in _pairs(basis):
        pair = expand_pair(a.shell, a.R_x, b.shell, b.R_x)
        for aux_functions, expansion in fitting:
            values = coulomb(pair, expansion, omega).reshape(a.shell.nbf, b.shell.nbf, -1)
            B_pqP[b.aos, a.aos, aux_functions] = values.transpose(1, 0, 2)
            B_pqP[a.aos, b.aos, aux_functions] = values
    return B_pqP


def eri_4c_tensor(basis: BasisLike, omega: float | None = None) -> Array:
    """(pq|rt), (nbf, nbf, nbf, nbf); every block is computed once for its eight permutations."""
    pairs = [(a, b, expand_pair(a.shell, a.R_x, b.shell, b.R_x)) for a, b in _pairs(basis)]
    G_pqrt = np.empty((basis.nbf,) * 4)
    for last, (a, b, bra) in enumerate(pairs):
        for c, d, ket in pairs[: last + 1]:
            values = coulomb(bra, ket, omega).reshape(a.shell.nbf, b.shell.nbf, c.shell.nbf, d.shell.nbf)
            for i, j, swapped in ((a, b, values), (b, a, values.transpose(1, 0, 2, 3))):
                for k, l, block in ((c, d, swapped), (d, c, swapped.transpose(0, 1, 3, 2))):
                    G_pqrt[i.aos, j.aos, k.aos, l.aos] = block
                    G_pqrt[k.aos, l.aos, i.aos, j.aos] = block.transpose(2, 3, 0, 1)
    return G_pqrt
