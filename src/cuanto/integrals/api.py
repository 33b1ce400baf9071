"""Integrals over a whole basis: the functions users call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cuanto.backends.base import Backend
from cuanto.basis import Basis
from cuanto.errors import InputError
from cuanto.integrals.batches import BraBatch, KetBatch, charge_batch, ket_batches, shell_batch
from cuanto.integrals.engine import Engine, resolve
from cuanto.integrals.pairs import RowMap, pair_batches
from cuanto.integrals.segments import segments
from cuanto.system import Molecule

Array = NDArray[np.float64]

PAIR_THRESHOLD = 1e-18
"""Primitive pairs below this contribute nothing that double precision could show."""
CHARGES_AT_ONCE = 32


def _one_electron(operator: str, basis: Basis, components: int, backend: str | Backend) -> Any:
    device = resolve(backend)
    n = basis.nbf
    out = device.zeros((components, n, n), np.float64)
    classes = segments(basis)
    engine = Engine(device, out, row_stride=n, component_stride=n * n)
    bras = [shell_batch(group, coulomb=False) for group in classes]
    engine.run(operator, bras, basis_kets(basis, coulomb=False))
    return out


def overlap(basis: Basis, *, backend: str | Backend = "auto") -> Any:
    """S_pq = <p|q>"""
    return _one_electron("overlap", basis, 1, backend)[0]


def kinetic(basis: Basis, *, backend: str | Backend = "auto") -> Any:
    """T_pq = <p|-1/2 nabla^2|q>"""
    return _one_electron("kinetic", basis, 1, backend)[0]


def dipole(basis: Basis, *, origin: ArrayLike = (0.0, 0.0, 0.0), backend: str | Backend = "auto") -> Any:
    """<p|r - origin|q>, axis first."""
    moments = _one_electron("dipole", basis, 3, backend)
    shift = np.asarray(origin, dtype=float)
    if shift.any():
        S = overlap(basis, backend=backend)
        for axis in range(3):
            moments[axis] -= float(shift[axis]) * S
    return moments


def nuclear(
    basis: Basis,
    molecule: Molecule | None = None,
    *,
    charges: ArrayLike | None = None,
    positions: ArrayLike | None = None,
    backend: str | Backend = "auto",
) -> Any:
    """V_pq = -sum_a Z_a <p|1/|r - R_a||q> of a molecule's nuclei, or of any point charges at `positions` (Bohr)."""
    if (molecule is None) == (charges is None) or (charges is None) != (positions is None):
        raise InputError("nuclear attraction: give a molecule, or charges and positions")
    Z = np.asarray(molecule.numbers if molecule is not None else charges, dtype=float).reshape(-1)
    R = np.asarray(molecule.R_ax if molecule is not None else positions, dtype=float).reshape(-1, 3)
    if len(Z) != len(R):
        raise InputError(f"nuclear attraction: {len(Z)} charges but {len(R)} positions")
    device = resolve(backend)
    rows = basis.nbf * (basis.nbf + 1) // 2
    V = device.xp.zeros(rows)
    bras = list(basis_pairs(basis, RowMap(basis.nbf, packed=True), PAIR_THRESHOLD))
    for start in range(0, len(Z), CHARGES_AT_ONCE):
        chunk = slice(start, start + CHARGES_AT_ONCE)
        potentials = device.zeros((rows, len(Z[chunk])), np.float64)
        Engine(device, potentials, row_stride=potentials.shape[1]).run(
            "coulomb", bras, [charge_batch(Z[chunk], R[chunk])]
        )
        V -= potentials.sum(axis=1)
    return unpack(V, basis.nbf, device)


def unpack(packed: Any, n: int, device: Backend) -> Any:
    """Lower triangle (first axis) -> symmetric square (first two axes)."""
    xp = device.xp
    full = xp.zeros((n, n, *packed.shape[1:]))
    i, j = (xp.asarray(x) for x in np.tril_indices(n))
    full[i, j] = packed
    full[j, i] = packed
    return full


def basis_pairs(basis: Basis, row_of: RowMap, threshold: float) -> Iterator[BraBatch]:
    """All pairs of shells of a basis; high momenta first, so that the last ranges of work are short ones."""
    classes = segments(basis)
    for x in reversed(range(len(classes))):
        for y in reversed(range(x + 1)):
            yield from pair_batches(classes[x], classes[y], x == y, row_of, threshold)


def basis_kets(basis: Basis, coulomb: bool) -> list[KetBatch]:
    """All shells of a basis as kets."""
    return [batch for group in segments(basis) for batch in ket_batches(group, coulomb)]


def eri_2c(aux: Basis, *, algorithm: str = "auto", backend: str | Backend = "auto") -> Any:
    """(P|Q)"""
    device = resolve(backend)
    n = aux.nbf
    out = device.zeros((n, n), np.float64)
    classes = segments(aux)
    engine = Engine(device, out, row_stride=n)
    bras = [shell_batch(group, coulomb=True) for group in classes]
    engine.run("coulomb", bras, basis_kets(aux, coulomb=True), algorithm)
    return (out + out.T) * 0.5


def eri_3c(
    basis: Basis,
    aux: Basis,
    *,
    packed: bool = False,
    algorithm: str = "auto",
    backend: str | Backend = "auto",
    threshold: float = PAIR_THRESHOLD,
) -> Any:
    """(pq|P): [p, q, P], or with `packed` the lower triangle [p (p + 1) / 2 + q, P]."""
    device = resolve(backend)
    n, naux = basis.nbf, aux.nbf
    shape = (n * (n + 1) // 2, naux) if packed else (n, n, naux)
    out = device.zeros(shape, np.float64)
    engine = Engine(device, out, row_stride=naux)
    bras = basis_pairs(basis, RowMap(n, packed), threshold)
    engine.run("coulomb", bras, basis_kets(aux, coulomb=True), algorithm)
    if not packed:
        for p in range(1, n):
            out[:p, p] = out[p, :p]
    return out


__all__ = ["dipole", "eri_2c", "eri_3c", "kinetic", "nuclear", "overlap"]
