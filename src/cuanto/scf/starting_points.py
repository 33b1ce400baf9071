"""Starting points of an SCF whose lowest state is not obvious: charges and spins of the atoms that are superposed.

Different d^n s^m configurations, charges of ligands and couplings of spins lead an SCF to different states. Molecules
with open d or f shells have many of them, and so have clusters of atoms with few p electrons, such as B2 and C2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np

from cuanto.scf.configurations import capacity, configuration, unpaired_electrons
from cuanto.system import Molecule

HIGHEST_CHARGE = 2
"""Charge up to which ions of an element are examined for open d and f shells: copper's is open in Cu2+."""
FEW_P_ELECTRONS = 2
"""Largest number of p electrons of atoms whose clusters have many low states: p shells are at most a third full."""


@dataclass(frozen=True)
class StartingPoint:
    """A superposition of atoms: their charges and unpaired electrons (None: neutral, and spread evenly)."""

    label: str
    charges: tuple[float, ...] | None = None
    spins: tuple[float, ...] | None = None


def centres_of_starting_points(molecule: Molecule) -> list[int]:
    """Atoms whose charges and spins differ between starting points; none if a molecule needs no search.

    These are all atoms with an open d or f shell or, if there are none, the first atom of a cluster in which every
    atom has few p electrons.
    """
    real = [a for a in range(molecule.natom) if not molecule.nuclei.ghosts[a]]
    numbers = [int(number) for number in molecule.numbers]
    if len(real) < 2:
        return []  # orientations of one shell: `stability` finds the lowest
    found = [a for a in real if _has_open_inner_shell(numbers[a])]
    if found:
        return found
    return real[:1] if all(_has_few_p_electrons(numbers[a]) for a in real) else []


@cache
def _has_open_inner_shell(number: int) -> bool:
    ions = (configuration(number, charge) for charge in range(min(HIGHEST_CHARGE, number - 1) + 1))
    return any(l >= 2 and 0 < n < capacity(l) for ion in ions for (_, l), n in ion.items())


@cache
def _has_few_p_electrons(number: int) -> bool:
    subshells = configuration(number)
    outermost = max(n for n, _ in subshells)
    return 0 < subshells.get((outermost, 1), 0.0) <= FEW_P_ELECTRONS


def starting_points(molecule: Molecule) -> Iterator[StartingPoint]:
    """The usual guess, and others: M+ L-, and local spins that are antiparallel.

    Each centre exchanges electrons with the nearest other atom; without other atoms only spins differ.
    """
    yield StartingPoint("superposed atoms")
    centres = centres_of_starting_points(molecule)
    pairs = [(a, b) for a in centres if (b := _partner(molecule, a, centres)) is not None]
    if pairs:
        yield _ions(molecule, centres, pairs)
    yield _local_spins(molecule, centres, pairs)


def _local_spins(molecule: Molecule, centres: list[int], pairs: list[tuple[int, int]]) -> StartingPoint:
    """Neutral atoms; the spins of several centres alternate, and those of their partners are antiparallel to them."""
    own = [unpaired_electrons(configuration(int(number))) for number in molecule.numbers]
    spins = np.zeros(molecule.natom)
    for k, a in enumerate(centres):
        spins[a] = molecule.multiplicity - 1 if len(centres) == 1 else (-1) ** k * own[a]
    for a, b in pairs:
        spins[b] = -own[b] if spins[a] >= 0 else own[b]
        spins[a] -= spins[b]
    return StartingPoint("local spins", None, tuple(spins))


def _ions(molecule: Molecule, centres: list[int], pairs: list[tuple[int, int]]) -> StartingPoint:
    """Each centre gives an electron to its partner; the centres share the unpaired electrons evenly."""
    charges, spins = np.zeros(molecule.natom), np.zeros(molecule.natom)
    spins[centres] = (molecule.multiplicity - 1) / len(centres)
    for a, b in pairs:
        charges[[a, b]] += (1.0, -1.0)
    return StartingPoint("ions M+ L-", tuple(charges), tuple(spins))


def _partner(molecule: Molecule, centre: int, centres: list[int]) -> int | None:
    """The nearest atom that is not a centre."""
    others = [a for a in range(molecule.natom) if a not in centres and not molecule.nuclei.ghosts[a]]
    distance_a = np.linalg.norm(molecule.R_ax - molecule.R_ax[centre], axis=1)
    return min(others, key=lambda a: float(distance_a[a]), default=None)
