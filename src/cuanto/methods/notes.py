"""Notes of results on their basis sets: core electrons, and sets that were made for another purpose."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from cuanto.basis import Basis, exchange
from cuanto.basis.auxiliary import universal_suits
from cuanto.system import Molecule

AUXILIARY_NAME = re.compile(r"fit|admm|optri")
"""Pattern in the names of auxiliary sets; others are not looked up, because that takes half a second."""


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
        if AUXILIARY_NAME.search(name.lower()) and exchange.role_of(name) in exchange.FITTING_ROLES:
            yield f"WARNING: {name} is an auxiliary set, not an orbital basis"
    if auxbasis is None:
        return
    for name in dict.fromkeys(auxbasis.sources.values()):
        role = "jkfit" if "jkfit" in name.lower() else exchange.role_of(name)  # a lookup of half a second
        if role == "orbital":
            yield f"WARNING: {name} is an orbital basis, not a fitting set: leave out auxbasis"
        elif role in ("jfit", "dftjfit") and fitting == "jk":
            yield f"WARNING: {name} is a fitting set for J, not for exchange: leave out auxbasis, or use fitting='j'"
        elif role in exchange.FITTING_ROLES and role not in ("jkfit", "jfit", "dftjfit"):
            yield f"WARNING: {name} is a set for another purpose ({role}), not for J and exchange: leave out auxbasis"
    if without := [symbol for symbol in dict.fromkeys(basis.symbols) if _lacks_potential(basis, auxbasis, symbol)]:
        yield (
            f"WARNING: the universal fitting sets of def2 assume core potentials, but {', '.join(without)} "
            f"{'have' if len(without) > 1 else 'has'} all electrons: leave out auxbasis"
        )


def _lacks_potential(basis: Basis, auxbasis: Basis, symbol: str) -> bool:
    """Whether the fitting set of an element assumes a core potential that the orbital basis does not have."""
    source = auxbasis.sources.get(symbol, "")  # a name or a file
    universal = os.path.basename(source).lower().startswith("def2-universal")
    return universal and not universal_suits(basis, symbol)
