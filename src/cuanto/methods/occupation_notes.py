"""Notes about unusual occupations: fractional ones, empty orbitals below occupied ones, open shells of atoms."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cuanto.arrays import Array
from cuanto.basis import Basis
from cuanto.scf.occupations import occupied
from cuanto.scf.state import State

FRACTIONAL = 1e-3
"""Occupations that differ more than this from full and empty are fractional."""
UNEVEN = 0.01
"""Electrons by which orbitals of a subshell may differ in a spherical atom."""
INVERTED = 1e-4
"""Hartree by which an empty orbital must lie below an occupied one to be mentioned."""
SPINS = (" alpha", " beta")
MOMENTA = "spdfghik"
MOST_SHOWN = 8
"""Occupations in one note."""


def fractional_note(n_sm: Array) -> str | None:
    """A note about fractional occupations; None if there are none."""
    capacity, parts = 2.0 if len(n_sm) == 1 else 1.0, []
    for spin, n_m in zip(_spins(n_sm), n_sm, strict=True):
        partial = n_m[(n_m > FRACTIONAL) & (n_m < capacity - FRACTIONAL)]
        if len(partial):
            rest = " ..." if len(partial) > MOST_SHOWN else ""
            parts.append(" ".join(f"{n:.2f}" for n in partial[:MOST_SHOWN]) + rest + spin)
    return f"fractional occupations: {'; '.join(parts)}" if parts else None


def inversion_note(eps_sm: Array, n_sm: Array) -> str | None:
    """A note about empty orbitals below occupied ones, if occupations are integers; None if there are none."""
    if len(eps_sm) != len(n_sm) or fractional_note(n_sm):
        return None
    for spin, eps_m, full in zip(_spins(n_sm), eps_sm, occupied(n_sm), strict=True):
        if not full.any() or full.all():
            continue
        depth = float(eps_m[full].max() - eps_m[~full].min())
        if depth > INVERTED:
            return (
                f"an empty{spin} orbital lies {depth:.4f} Hartree below an occupied one: no other integer occupations "
                "give a lower energy, but fractional ones (smearing) would"
            )
    return None


def atom_note(basis: Basis, D_spq: Array, S_pq: Array) -> str | None:
    """A note about subshells of a single atom that are not filled evenly; None if the atom is spherical.

    The note lists occupations of the 2l + 1 components of a subshell. They are eigenvalues, so that they do not depend
    on the orientation of the atom.
    """
    parts = []
    for spin, D_pq in zip(_spins(D_spq), D_spq, strict=True):
        for l in sorted({shell.l for shell in basis.shells if shell.l and shell.ncomp == 2 * shell.l + 1}):
            n_m = _components(basis, D_pq @ S_pq, l)
            if np.ptp(n_m) > UNEVEN:
                parts.append(f"{MOMENTA[l]}{spin} " + " ".join(f"{abs(n):.2f}" for n in n_m[::-1]))
    return f"symmetry-broken occupations of the atom: {'; '.join(parts)}" if parts else None


def occupation_notes(basis: Basis, state: State, D_spq: Array, S_pq: Array, eps_sm: Array) -> Iterator[str]:
    """All notes about the occupations of a state; matrices on the host."""
    notes = [fractional_note(state.n_sm), inversion_note(eps_sm, state.n_sm)]
    if len(basis.R_ax) == 1:
        notes.append(atom_note(basis, D_spq, S_pq))
    yield from (note for note in notes if note is not None)


def _spins(rows: Array) -> tuple[str, ...]:
    return SPINS if len(rows) == 2 else ("",)


def _components(basis: Basis, DS_pq: Array, l: int) -> Array:
    """Occupations of the 2l + 1 components of angular momentum l: eigenvalues of their density matrix, ascending."""
    found = zip(basis.shells, basis.offsets, strict=True)
    rows = [
        np.arange(2 * l + 1) + begin + k
        for shell, begin in found
        if shell.l == l and shell.ncomp == 2 * l + 1
        for k in range(0, shell.nbf, 2 * l + 1)
    ]
    M_mm = sum((DS_pq[np.ix_(own, own)] for own in rows), np.zeros((2 * l + 1, 2 * l + 1)))
    return np.asarray(np.linalg.eigvalsh(0.5 * (M_mm + M_mm.T)), dtype=np.float64)
