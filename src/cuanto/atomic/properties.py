"""Parts of the energy and the table of spinors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from cuanto.arrays import Array
from cuanto.atomic.atom import Atom, Spinor
from cuanto.atomic.one_electron import Core, moments
from cuanto.atomic.species import SPECIES, Species


def energy_parts(
    cores: Sequence[Core],
    D_i: Sequence[Array],
    D_open: Sequence[Array],
    P_i: Sequence[Array],
    Q_i: Sequence[Array | None],
) -> dict[str, float]:
    """Parts of the energy, Hartree: kinetic is <c alpha.p> (<p^2/2> without relativity), rest_mass <(beta - 1) c^2>."""

    def trace(A_i: Iterable[Array | None], D_i: Sequence[Array]) -> float:
        return sum(float(np.vdot(A, D)) for A, D in zip(A_i, D_i, strict=True) if A is not None)

    kinetic, rest = trace((one.T for one in cores), D_i), trace((one.M for one in cores), D_i)
    nuclear = trace((one.V for one in cores), D_i)
    repulsion = 0.5 * trace(P_i, D_i) - 0.5 * trace(Q_i, D_open)
    return {
        "kinetic": kinetic,
        "rest_mass": rest,
        "nuclear_attraction": nuclear,
        "electron_repulsion": repulsion,
        "one_electron": kinetic + rest + nuclear,
        "two_electron": repulsion,
    }


def spinor_table(
    atom: Atom, cores: Sequence[Core], U_i: Sequence[Array], P_i: Sequence[Array], Q_i: Sequence[Array | None]
) -> tuple[tuple[Spinor, ...], tuple[Array, ...]]:
    """Occupied spinors and their coefficients.

    Closed spinors diagonalise their Fock matrix; the energy of an open one is <o|F_o|o>.
    """
    table: list[Spinor] = []
    coefficients = []
    means = dict(zip(atom.occupation.open_symmetries, atom.occupation.mean_occupations, strict=True))
    for i, (one, P, Q) in enumerate(zip(cores, P_i, Q_i, strict=True)):
        species, C, closed = SPECIES[i], one.X @ U_i[i], atom.occupation.closed[i]
        F = one.h + P
        eps_c, rotation = np.linalg.eigh(C[:, :closed].T @ F @ C[:, :closed])
        C[:, :closed] = C[:, :closed] @ rotation
        shells = [(float(energy), float(species.capacity)) for energy in eps_c]
        if Q is not None:
            shells.append((float(C[:, closed] @ (F - Q) @ C[:, closed]), means[i]))
        coefficients.append(C)
        z_p, n = atom.basis.exponents[i], len(atom.basis.exponents[i])
        radii_m = zip(*(_moments(species, z_p, C, power) for power in (1, -1, 2)), strict=True) if shells else ()
        for m, ((energy, occupation), (r, inverse, squared)) in enumerate(zip(shells, radii_m, strict=True)):
            about = (species.l + 1 + m, species, occupation, m < closed, energy)
            table.append(Spinor(*about, r, inverse, squared, C[:n, m], C[n:, m]))
    return tuple(table), tuple(coefficients)


def _moments(species: Species, z_p: Array, C: Array, power: int) -> list[float]:
    """<r^power> of every spinor."""
    LL, SS = moments(species, z_p, power)
    n = len(z_p)
    found = np.einsum("pm,pq,qm->m", C[:n], LL, C[:n])
    if len(C) > n:
        found += np.einsum("pm,pq,qm->m", C[n:], SS, C[n:])
    return [float(value) for value in found]
