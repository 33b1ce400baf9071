"""Parts of the energy and the table of spinors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from cuanto.atomic.atom import Atom, Spinor
from cuanto.atomic.one_electron import Core, moments
from cuanto.atomic.species import SPECIES, Array


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
    """Occupied spinors and their coefficients: closed ones diagonalise their Fock matrix, an open one has <o|F_o|o>."""
    table: list[Spinor] = []
    coefficients = []
    means = dict(zip(atom.occupation.open_symmetries, atom.occupation.mean_occupations, strict=True))
    for i, (one, P, Q) in enumerate(zip(cores, P_i, Q_i, strict=True)):
        C, closed = one.X @ U_i[i], atom.occupation.closed[i]
        F = one.h + P
        eps_c, rotation = np.linalg.eigh(C[:, :closed].T @ F @ C[:, :closed])
        C[:, :closed] = C[:, :closed] @ rotation
        energies = list(eps_c)
        occupations = [float(SPECIES[i].capacity)] * closed
        if Q is not None:
            energies.append(C[:, closed] @ (F - Q) @ C[:, closed])
            occupations.append(means[i])
        coefficients.append(C)
        table += _spinors(atom, i, C, energies, occupations)
    return tuple(table), tuple(coefficients)


def _spinors(atom: Atom, i: int, C: Array, energies: list[float], occupations: list[float]) -> list[Spinor]:
    species, z_p = SPECIES[i], atom.basis.exponents[i]
    n = len(z_p)
    expected = {}
    for power in (1, -1, 2) if occupations else ():
        LL, SS = moments(species, z_p, power)
        expected[power] = np.einsum("pm,pq,qm->m", C[:n], LL, C[:n])
        if len(C) > n:
            expected[power] += np.einsum("pm,pq,qm->m", C[n:], SS, C[n:])
    return [
        Spinor(
            n=species.l + 1 + m,
            species=species,
            occupation=occupation,
            closed=m < atom.occupation.closed[i],
            energy=float(energy),
            r=float(expected[1][m]),
            r_inverse=float(expected[-1][m]),
            r_squared=float(expected[2][m]),
            P_p=C[:n, m],
            Q_p=C[n:, m],
        )
        for m, (energy, occupation) in enumerate(zip(energies, occupations, strict=True))
    ]
