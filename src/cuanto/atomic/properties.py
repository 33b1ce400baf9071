"""Energies by part, virial ratio and the table of spinors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from cuanto.atomic.atom import Atom, Spinor
from cuanto.atomic.one_electron import Core, moments
from cuanto.atomic.species import SPECIES

Array = NDArray[np.float64]


def _trace(A: Array, D: Array) -> float:
    return float(np.vdot(A, D))


def parts_of(
    cores: Sequence[Core],
    D_i: Sequence[Array],
    D_open: Sequence[Array],
    P_i: Sequence[Array],
    Q_i: Sequence[Array | None],
) -> dict[str, float]:
    """Hartree: kinetic is <c alpha.p> (<p^2/2> without relativity), rest_mass <(beta - 1) c^2>."""
    kinetic = sum(_trace(one.T, D) for one, D in zip(cores, D_i, strict=True))
    rest = sum(_trace(one.M, D) for one, D in zip(cores, D_i, strict=True))
    nuclear = sum(_trace(one.V, D) for one, D in zip(cores, D_i, strict=True))
    repulsion = sum(0.5 * _trace(P, D) for P, D in zip(P_i, D_i, strict=True))
    repulsion -= sum(0.5 * _trace(Q, D) for Q, D in zip(Q_i, D_open, strict=True) if Q is not None)
    return {
        "one_electron": kinetic + rest + nuclear,
        "two_electron": repulsion,
        "kinetic": kinetic,
        "rest_mass": rest,
        "nuclear_attraction": nuclear,
        "electron_repulsion": repulsion,
    }


def virial_of(parts: Mapping[str, float]) -> float:
    """-V/T."""
    return -(parts["nuclear_attraction"] + parts["electron_repulsion"]) / parts["kinetic"]


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
