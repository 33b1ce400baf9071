"""Notes of results on their basis sets: core electrons, and sets that were made for another purpose."""

from __future__ import annotations

from collections.abc import Iterator

from cuanto.basis import Basis, exchange
from cuanto.basis.auxiliary import fitting_basis
from cuanto.system import Molecule

FITTING_ROLES = ("jkfit", "jfit")
"""Roles of fitting sets in the Basis Set Exchange."""


def core_notes(molecule: Molecule, basis: Basis) -> Iterator[str]:
    """Notes on the core electrons that potentials replace, and on parts of the potentials that are left out."""
    if (summary := basis.core_summary) is not None:
        yield summary
    found = zip(basis.symbols, basis.core_potentials, strict=True)
    if left_out := dict.fromkeys(symbol for symbol, potential in found if potential and potential.spin_orbit):
        yield f"spin-orbit parts of the core potentials of {', '.join(left_out)} are left out"
    if (valence := molecule.valence_multiplicity) != molecule.multiplicity:
        yield f"an unpaired electron belongs to the cores: multiplicity {valence} of the other electrons"


def purpose_notes(basis: Basis, auxbasis: Basis | None, fitting: str) -> Iterator[str]:
    """Warnings about an orbital basis made for fitting, and about a given fitting set (None: the usual one) that
    was not made for what is fitted: energies can be wrong by several Hartree."""
    for name in dict.fromkeys(basis.sources.values()):
        if "fit" in name.lower() and exchange.role_of(name) in FITTING_ROLES:
            yield f"WARNING: {name} is a fitting set, not an orbital basis"
    for name in dict.fromkeys(auxbasis.sources.values() if auxbasis is not None else ()):
        if "jkfit" in name.lower():
            continue  # without importing the Exchange, which takes half a second
        role = exchange.role_of(name)
        proper = fitting_basis(next(iter(basis.sources.values()), ""), fitting)
        if role == "orbital":
            yield f"WARNING: {name} is an orbital basis, not a fitting set: use auxbasis='{proper}', or leave it out"
        elif role == "jfit" and fitting == "jk":
            yield f"WARNING: {name} is a fitting set for J, not for exchange: use auxbasis='{proper}' or fitting='j'"
        elif role == "rifit":
            yield f"WARNING: {name} is a fitting set for correlation: use auxbasis='{proper}', or leave it out"
