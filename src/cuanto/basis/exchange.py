"""Basis sets from the Basis Set Exchange.

B. P. Pritchard et al., J. Chem. Inf. Model. 59, 4814 (2019), doi:10.1021/acs.jcim.9b00725. The package is
imported when first needed, because it is slow to import and basis files work without it.
"""

import difflib
from collections.abc import Iterable
from dataclasses import replace
from functools import cache, lru_cache
from typing import Any

from cuanto.basis.formats import shell_to_exchange, tables_from_exchange
from cuanto.basis.table import ElementTable, ShellTable
from cuanto.errors import InputError, MissingDependencyError
from cuanto.system.elements import ATOMIC_NUMBERS, SYMBOLS
from cuanto.system.text import quote

_INSTEAD = {
    **{name: f"'def2-{name}'" for name in ("sv(p)", "svp", "tzvp", "tzvpp", "qzvp", "qzvpp")},
    "sdd": "'Stuttgart RSC 1997' or, for all elements up to radon, 'def2-svp' or 'def2-tzvp'",
    "def2/j": "'def2-universal-jfit'",
    "def2/jk": "'def2-universal-jkfit'",
    "dzp": "'def2-svp' or 'DZP (Dunning-Hay)'",
    "vdzp": "'Grimme vDZP'",
}
"""Advice about names that are often typed and belong to no set, or to several."""
FITTING_ROLES = ("jkfit", "jfit", "dftjfit", "rifit", "dftxfit", "admmfit", "optri")
"""Roles of auxiliary sets."""


def _package() -> Any:
    try:
        import basis_set_exchange
    except ImportError:
        raise MissingDependencyError(
            "basis sets by name need the package basis-set-exchange (pip install basis-set-exchange); "
            "basis files in NWChem, Gaussian94 or BSE JSON format work without it"
        ) from None
    return basis_set_exchange


@cache
def _catalogue() -> dict[str, dict[str, Any]]:
    """Metadata of every set by key; the key is the lower-case name with a few characters spelt out."""
    return dict(_package().get_metadata())


def _key(name: str) -> str:
    return str(_package().misc.transform_basis_name(name.strip()))


def knows(name: str) -> bool:
    """Whether the Basis Set Exchange has a set of this name."""
    return _key(name) in _catalogue()


def role_of(name: str) -> str | None:
    """Role of a set in the Basis Set Exchange, such as 'orbital' or 'jkfit'; None if it does not have the set or
    is not installed."""
    try:
        entry = _catalogue().get(_key(name))
    except MissingDependencyError:
        return None
    return None if entry is None else str(entry["role"])


def elements_of(name: str) -> frozenset[str]:
    """Symbols of the elements in a set of the Basis Set Exchange; empty when there is no such set."""
    entry = _catalogue().get(_key(name))
    if entry is None:
        return frozenset()
    numbers = entry["versions"][entry["latest_version"]]["elements"]
    return frozenset(SYMBOLS[int(z) - 1] for z in numbers if 0 < int(z) <= len(SYMBOLS))


def auxiliary_of(name: str, role: str) -> str | None:
    """The fitting set that the Basis Set Exchange recommends for an orbital basis, role 'jkfit' or 'jfit'."""
    entry = _catalogue().get(_key(name))
    names = entry["auxiliaries"].get(role) if entry else None
    return str(names if isinstance(names, str) else names[0]) if names else None


@lru_cache(maxsize=256)
def exchange_table(name: str, symbol: str) -> ElementTable:
    """Return the table of one element of a set, which must exist: see `knows` and `elements_of`."""
    data = _package().get_basis(name.strip(), elements=[ATOMIC_NUMBERS[symbol]])
    return tables_from_exchange(data, name)[symbol]


def unknown_basis(name: str, others: Iterable[str] = ()) -> InputError:
    """Make the error for an unknown name; it suggests similar ones."""
    if hint := _absent_set(name.strip().lower()):
        return InputError(f"unknown basis {quote(name)}; {hint}")
    names = {entry["display_name"].lower(): entry["display_name"] for entry in _catalogue().values()}
    names.update({other.lower(): other for other in others})
    close = difflib.get_close_matches(name.strip().lower(), names, n=3, cutoff=0.6)
    hint = "see basissetexchange.org for the names; a file needs a suffix such as .nw"
    if close:
        hint = f"did you mean {' or '.join(repr(names[c]) for c in close)}?"
    return InputError(f"unknown basis {quote(name)}; {hint}")


def _absent_set(name: str) -> str | None:
    """Advice about a well-known set that the Basis Set Exchange lacks; None about others."""
    if name.startswith("ma-def2-"):
        larger = f"{name.removeprefix('ma-')}d"
        return f"use {larger if knows(larger) else 'def2-svpd'}, which has diffuse functions as well, or a basis file"
    if name in _INSTEAD:
        return f"did you mean {_INSTEAD[name]}?"
    if name == "minix":
        return "the basis of HF-3c is not in the Basis Set Exchange: use MINI, or def2-svp for elements beyond argon"
    return None


def automatic_auxiliary(symbol: str, shells: Iterable[ShellTable], source: str) -> ElementTable:
    """A fitting set generated from the orbital shells of one element (AutoAux).

    G. L. Stoychev, A. A. Auer, F. Neese, J. Chem. Theory Comput. 13, 554 (2017),
    doi:10.1021/acs.jctc.6b01041.
    """
    shells = [_with_distinct_exponents(shell) for shell in shells]
    element = {"electron_shells": [shell_to_exchange(shell) for shell in shells], "references": []}
    orbital = {
        "elements": {str(ATOMIC_NUMBERS[symbol]): element},
        "name": source,
        "version": "",
        "revision_description": "",
    }
    return tables_from_exchange(_package().manip.autoaux_basis(orbital), source)[symbol]


def _with_distinct_exponents(shell: ShellTable) -> ShellTable:
    """The same shell with the coefficients of equal exponents added, since the matrices of AutoAux must be regular."""
    rows: dict[float, tuple[float, ...]] = {}
    for a, row in zip(shell.exponents, shell.coefficients, strict=True):
        rows[a] = tuple(map(sum, zip(rows[a], row, strict=True))) if a in rows else row
    return replace(shell, exponents=tuple(rows), coefficients=tuple(rows.values()))
