"""Choice of the fitting (auxiliary) basis for density fitting.

Each element uses the first of these sets that contains it:
1. the set made for the orbital basis: cc-pVXZ-JKFIT for the correlation-consistent family (triple zeta for Ga to Kr in
   double-zeta sets), def2-universal for def2, otherwise what the Basis Set Exchange recommends (x2c-JFIT, H to Rn, for
   J in the x2c sets: of heavier elements it is more accurate than def2-universal-JKFIT, with errors of PBE with X2C in
   x2c-SVPall of -8.6e-5 instead of -3.8e-5 Hartree for water, but -1.3e-4 instead of -7.8e-4 for HBr and -9e-5 instead
   of -1.6e-3 for ZnS);
2. def2-universal-JKFIT (also for J alone), if no orbital function is higher than g and the element is one of H to Kr or
   has a core potential, which the set assumes for heavier elements;
3. a set generated from the orbital basis (AutoAux).

Fitting functions are Cartesian where the orbitals are, except in elements with fitting functions higher than g (from
scandium on in def2-universal-JKFIT): their Cartesian functions would be linearly dependent, with eigenvalues of the
metric below rounding errors. There is no gradient then, and energies have noise.

F. Weigend, Phys. Chem. Chem. Phys. 4, 4285 (2002), doi:10.1039/b204199p; 8, 1057 (2006),
doi:10.1039/b515623h; J. Comput. Chem. 29, 167 (2008), doi:10.1002/jcc.20702.
"""

import os
import re
from dataclasses import replace

from cuanto.basis import exchange, library
from cuanto.basis.basis_set import Basis, join_names
from cuanto.basis.library import BasisChoice, BasisSource
from cuanto.basis.shell import Shell, tabulated_coefficients
from cuanto.basis.table import ElementTable, ShellTable
from cuanto.errors import require
from cuanto.system.elements import ATOMIC_NUMBERS
from cuanto.system.molecule import Molecule
from cuanto.system.text import quote

AUTOMATIC = "autoaux"
"""Name of a generated fitting set."""

KINDS = ("jk", "j")
_UNIVERSAL = "def2-universal-jkfit"
"""Also used for J alone. def2-universal-JFIT is smaller, but its errors are five times as large, 2.1e-4 instead of 4e-5
Hartree (medians of seven molecules, PBE/def2-SVP; tests/methods/test_error_estimates.py)."""
_UNIVERSAL_LAST_ELEMENT = 36
"""Last element that the universal sets describe with all electrons; beyond it they are for core potentials."""
_UNIVERSAL_LARGEST_L = 4
_CARTESIAN_LARGEST_L = 4
"""Highest fitting functions of an element whose functions may be Cartesian. A Cartesian h or i shell contains 10 or 15
functions of lower momenta, which are linearly dependent on the others of their centre."""
_CORRELATION_CONSISTENT = re.compile(
    r"(?P<diffuse>d-aug-|aug-|heavy-aug-|jul-|jun-|may-|apr-)?"
    r"cc-p(?:w?c)?v\(?(?P<zeta>[dtq56])(?:\+d\))?z(?:-dk3?)?(?:\(seg-opt\))?"
)


def fitting_basis(orbital: str, kind: str = "jk") -> str:
    """Name of the fitting set for an orbital basis; kind 'jk' (with exchange) or 'j' (Coulomb only)."""
    _check_kind(kind)
    return _family_set(orbital, kind) or _UNIVERSAL


def auxiliary_basis(
    orbital_basis: Basis, molecule: Molecule, kind: str = "jk", name: BasisChoice | None = None
) -> Basis:
    """Make the fitting basis of an orbital basis, spherical if the orbital basis is or functions are higher than g.

    `name` overrides the choice; where it is 'autoaux', for all or for some elements, a set is generated.
    """
    _check_kind(kind)
    elements = list(dict.fromkeys(molecule.elements))
    given = {} if name is None else library.sources_by_element(name, elements)
    tables: dict[str, ElementTable] = {}
    names: dict[str, str] = {}
    for source in dict.fromkeys(source for source in given.values() if not is_generated(source)):
        own = [symbol for symbol in elements if given[symbol] == source]
        names |= dict.fromkeys(own, os.fspath(source))
        tables |= library.element_tables(source, own)
    for symbol in elements:
        if symbol not in tables:
            tables[symbol], names[symbol] = _for_element(orbital_basis, symbol, kind, generate=symbol in given)
    tables = {symbol: _with_kind(tables[symbol], names[symbol], orbital_basis.spherical) for symbol in elements}
    return Basis.from_tables(join_names({symbol: names[symbol] for symbol in elements}), tables, molecule)


def _with_kind(table: ElementTable, source: str, spherical: bool) -> ElementTable:
    """The table with shells that are all spherical or all Cartesian."""
    pure = spherical or max((shell.l for shell in table.shells), default=0) > _CARTESIAN_LARGEST_L
    return replace(table, source=source, shells=tuple(replace(shell, pure=pure) for shell in table.shells))


def is_generated(source: BasisSource) -> bool:
    """Whether this name stands for a fitting set that is generated from the orbital basis."""
    return isinstance(source, str) and source.strip().lower() == AUTOMATIC


def _for_element(orbital_basis: Basis, symbol: str, kind: str, generate: bool) -> tuple[ElementTable, str]:
    """Table and name of the fitting set of one element, generated if that is wanted or there is no other."""
    shells = _shells_of_element(orbital_basis, symbol)
    made_for = _with_tight_functions(_family_set(orbital_basis.sources.get(symbol, ""), kind), symbol)
    largest = max(shell.l for shell in shells)
    candidates = [made_for] if made_for else []
    if largest <= _UNIVERSAL_LARGEST_L and universal_suits(orbital_basis, symbol):
        candidates.append(_UNIVERSAL)
    for candidate in () if generate else candidates:
        found = library.find(candidate, symbol)
        if found is not None:
            return found, candidate
    table = exchange.automatic_auxiliary(symbol, [_as_table(shell) for shell in shells], AUTOMATIC)
    return table, AUTOMATIC


def _family_set(orbital: str, kind: str) -> str | None:
    """The fitting set of the family of the orbital basis, if it has one."""
    if not orbital or library.is_file(orbital):
        return None
    name = orbital.strip().lower()
    family = _CORRELATION_CONSISTENT.fullmatch(name)
    if family:
        zeta = "5" if family["zeta"] == "6" else family["zeta"]
        return f"{'aug-' if family['diffuse'] else ''}cc-pv{zeta}z-jkfit"
    if name.startswith(("def2-", "ma-def2-")):
        return _UNIVERSAL
    return exchange.auxiliary_of(orbital, f"{kind}fit")


def _with_tight_functions(name: str | None, symbol: str) -> str | None:
    """The set itself; for Ga to Kr the triple-zeta instead of the double-zeta set.

    (aug-)cc-pVDZ-JKFIT is the triple-zeta set without its highest momentum. From gallium on that includes the tight g
    functions that exchange among 3d orbitals needs: errors were 0.5 to 0.7 Hartree per atom, and are less than 1e-4.
    """
    if name is not None and name.endswith("cc-pvdz-jkfit") and 31 <= ATOMIC_NUMBERS[symbol] <= 36:
        return name.replace("cc-pvdz", "cc-pvtz")
    return name


def universal_suits(orbital_basis: Basis, symbol: str) -> bool:
    """Whether the universal sets describe an element: beyond krypton only electrons outside a core potential."""
    light = ATOMIC_NUMBERS.get(symbol, 0) <= _UNIVERSAL_LAST_ELEMENT
    return light or _has_core_potential(orbital_basis, symbol)


def _has_core_potential(basis: Basis, symbol: str) -> bool:
    """Whether the functions of an element were made for a core potential, which its ghosts do not have."""
    if any(s == symbol and potential for s, potential in zip(basis.symbols, basis.core_potentials, strict=True)):
        return True
    if (source := basis.sources.get(symbol)) is None:
        return False
    return library.element_tables(source, [symbol])[symbol].core_potential is not None


def _shells_of_element(basis: Basis, symbol: str) -> tuple[Shell, ...]:
    """The shells of the first atom of an element."""
    require(symbol in basis.symbols, f"the orbital basis has no {symbol}: it belongs to another molecule")
    return basis.shells_of_atoms[basis.symbols.index(symbol)]


def _as_table(shell: Shell) -> ShellTable:
    rows = tuple(tuple(row) for row in tabulated_coefficients(shell).tolist())
    return ShellTable(shell.l, tuple(shell.exponents.tolist()), rows)


def _check_kind(kind: str) -> None:
    require(kind in KINDS, f"unknown kind of fitting {quote(kind)}: choose 'jk' or 'j'")
