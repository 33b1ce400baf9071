"""Sources of basis sets: files, the folders of CUANTO_BASIS_PATH, the package's data, the Basis Set Exchange.

A set `6-31G**` is looked for as `6-31gss.O.nw` (one element) and `6-31gss.nw` (many) in every folder: lower
case, `s` for `*`, `p` for `+`; likewise with the suffixes .gbs and .json. The first source that has the element wins.
"""

import os
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

from cuanto.basis import advice, exchange
from cuanto.basis.formats import read_basis_file
from cuanto.basis.names import canonical_name, split_names
from cuanto.basis.table import ElementTable
from cuanto.errors import InputError, require
from cuanto.system.elements import symbol_of
from cuanto.system.text import quote

SEARCH_PATH = "CUANTO_BASIS_PATH"
FILE_SUFFIXES = (".nw", ".nwchem", ".gbs", ".g94", ".json", ".bas", ".basis", ".txt")

FOLDER_SUFFIXES = (".nw", ".gbs", ".json")
"""Suffixes of files in the folders of CUANTO_BASIS_PATH, in the order of the search."""

BasisSource = str | os.PathLike[str]
BasisChoice = BasisSource | Mapping[str, BasisSource]

_DATA = Path(__file__).parent / "data"


def is_file(source: BasisSource) -> bool:
    """Whether the source is a file: by its suffix, or because it exists. Names of basis sets may contain a slash."""
    if not isinstance(source, str):
        return True
    has_folder = os.sep in source and os.path.isfile(source)
    return has_folder or (source.lower().endswith(FILE_SUFFIXES) and split_names(source) is None)


def names_file(text: str, folder: str = "") -> bool:
    """Whether a text from untrusted input could reach a file, by any path or as a name in `folder`."""
    if (parts := split_names(text)) is not None:
        return any(names_file(part, folder) for part in parts.values())
    looks_like_path = text.startswith((".", "~", os.sep)) or ".." in Path(text).parts
    return is_file(text) or looks_like_path or (os.sep in text and os.path.isfile(os.path.join(folder, text)))


def sources_by_element(choice: BasisChoice, symbols: Iterable[str]) -> dict[str, BasisSource]:
    """The source for each element: one choice for all, or a mapping {"C": "cc-pvtz", "default": "cc-pvdz"}.

    A mapping may be written as text, C=cc-pvtz,default=cc-pvdz; `*` also means `default`.
    """
    if isinstance(choice, str):
        if not choice.strip():
            raise InputError("the name of the basis is empty")
        choice = choice if os.path.isfile(choice) else split_names(choice) or choice
    if isinstance(choice, str | os.PathLike):
        return dict.fromkeys(symbols, _with_canonical_name(choice))
    if not isinstance(choice, Mapping):
        raise InputError(f"a basis is a name, a file or a mapping of elements to these, not {quote(choice)}")
    sources: dict[str, BasisSource] = {}
    for key, source in choice.items():
        if not isinstance(source, str | os.PathLike):
            raise InputError(f"basis of {quote(key)} must be a name or a file, not {quote(source)}")
        symbol = "default" if str(key).lower() in ("default", "*") else symbol_of(str(key))
        rule = "a basis belongs to an element, not to an atom; give one"
        require(symbol not in sources, f"two bases are given for {symbol}: {rule}")
        sources[symbol] = source
    result = {}
    for symbol in symbols:
        if symbol not in sources and "default" not in sources:
            raise InputError(
                f"no basis given for {symbol}: add one, such as {symbol}=def2-svp, or default=def2-svp for all others"
            )
        result[symbol] = _with_canonical_name(sources[symbol if symbol in sources else "default"])
    return result


def _with_canonical_name(source: BasisSource) -> BasisSource:
    """The source with the usual spelling of its name."""
    return source if is_file(source) or not isinstance(source, str) else canonical_name(source)


def element_tables(source: BasisSource, symbols: Iterable[str], relativistic: bool = False) -> dict[str, ElementTable]:
    """Tables of all these elements from one name or file; if some are missing, the error suggests other sets, those
    for X2C if `relativistic`."""
    symbols, name = list(symbols), os.fspath(source)
    if is_file(source):
        name = os.path.expanduser(name)
        tables = read_basis_file(name)
    else:
        tables = {symbol: table for symbol in symbols if (table := find(name, symbol)) is not None}
    lacking = [symbol for symbol in symbols if symbol not in tables]
    if lacking and is_file(source):
        raise InputError(f"basis file {quote(name, 200)} has no {', '.join(lacking)}; it has {', '.join(tables)}")
    if lacking:
        raise _lacking_error(name, lacking, symbols, relativistic)
    return {symbol: tables[symbol] for symbol in symbols}


def find(name: str, symbol: str) -> ElementTable | None:
    """One element of a set by name, from the first source that has it."""
    for path in _folder_files(name, symbol):
        table = read_basis_file(path).get(symbol)
        if table is not None:
            return table
    if symbol in _shipped(name):
        return _shipped(name)[symbol]
    if symbol in exchange.elements_of(name):
        return exchange.exchange_table(name, symbol)
    return None


def shipped_names() -> list[str]:
    """Names of the sets that come with the package."""
    return sorted(path.stem for path in _DATA.glob("*.nw"))


def file_name(name: str) -> str:
    """Convert the name to a file name that cannot point outside its folder."""
    plain = name.strip().lower().replace("*", "s").replace("+", "p")
    return plain.replace("/", "_").replace(os.sep, "_")


def _folder_files(name: str, symbol: str) -> Iterable[Path]:
    for folder in os.environ.get(SEARCH_PATH, "").split(os.pathsep):
        for ending in (part + suffix for part in (f".{symbol}", "") for suffix in FOLDER_SUFFIXES):
            path = os.path.join(folder, file_name(canonical_name(name)) + ending)
            if folder and os.path.isfile(path):
                yield Path(path)


def files_of_set(name: str, symbols: Iterable[str]) -> list[Path]:
    """Files of a set in the folders of CUANTO_BASIS_PATH, for these elements."""
    return list(dict.fromkeys(path for symbol in sorted(set(symbols)) for path in _folder_files(name, symbol)))


@lru_cache(maxsize=16)
def _shipped(name: str) -> dict[str, ElementTable]:
    path = _DATA / (file_name(name) + ".nw")
    return read_basis_file(path) if os.path.isfile(path) else {}


def _lacking_error(name: str, lacking: list[str], symbols: list[str], relativistic: bool) -> InputError:
    if not (_shipped(name) or exchange.knows(name)):
        return exchange.unknown_basis(name, shipped_names())
    if "jkfit" in name.lower() or exchange.role_of(name) in exchange.FITTING_ROLES:
        return InputError(
            f"auxiliary set {quote(name)} has no functions for {', '.join(lacking)}: leave out auxbasis to have a set "
            "chosen for every element; as orbital basis, give one such as def2-svp"
        )
    message = f"basis {quote(name)} has no functions for {', '.join(lacking)}"
    others = advice.alternatives(name, symbols, lacking, relativistic)
    return InputError(f"{message}; {', '.join(others)} would work" if others else message)
