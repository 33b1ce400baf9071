"""Readers of basis set files: NWChem, Gaussian94 and the JSON of the Basis Set Exchange.

The format is recognised by the content. Every mistake is an `InputError` that names file and line. Spin-orbit parts of
core potentials are left out.
"""

import os
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from cuanto.basis.potential_formats import GaussianPotential, PotentialParts, potential_from_exchange
from cuanto.basis.shell import ANGULAR_LETTERS
from cuanto.basis.table import ElementTable, ShellTable, momenta, split_shell
from cuanto.errors import InputError, require
from cuanto.system.elements import symbol_of
from cuanto.system.formats import parse_json
from cuanto.system.text import (
    format_path,
    parse_json_numbers,
    parse_numbers,
    parse_real,
    parse_whole,
    quote,
    read_text,
    split_lines,
)

_GAUSSIAN_ELEMENT = re.compile(r"(?:-?[A-Za-z]{1,2}\s+)+0", re.ASCII)
_GAUSSIAN_ECP = re.compile(r"-?([A-Za-z]{1,2})-ECP\s+(\d{1,3})\s+(\d{1,3})", re.ASCII | re.IGNORECASE)
_UNDERSTOOD = "basis files are in NWChem's, Gaussian's or the Basis Set Exchange's JSON format"
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")


def read_basis_file(path: str | os.PathLike[str]) -> dict[str, ElementTable]:
    """Every element of a basis set file, by symbol."""
    return parse_basis(read_text(path, "basis file"), os.fspath(path))


def parse_basis(text: str, source: str = "basis") -> dict[str, ElementTable]:
    """Every element of the text of a basis set file, by symbol; `source` begins every message."""
    return dict(_parse(text, format_path(source)))


@lru_cache(maxsize=32)
def _parse(text: str, source: str) -> Mapping[str, ElementTable]:
    """Parse a text once: programs that compute many molecules read the same files again and again."""
    lines = [line.strip() for line in split_lines(text)]
    if text.lstrip().startswith("{"):
        tables = tables_from_exchange(parse_json(text, source), source)
    elif any(line == "****" or _GAUSSIAN_ELEMENT.fullmatch(line) for line in lines):
        tables = _Gaussian94(source).parse(lines)
    else:
        tables = _NWChem(source).parse(lines)
    require(tables, f"{source}: no basis set found ; {_UNDERSTOOD}")
    return tables


class _Reader:
    """Base of the readers of text formats: the shells and potentials read so far and the shell being read."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.shells: dict[str, list[ShellTable]] = {}
        self.potentials: dict[str, PotentialParts] = {}
        self.pure: bool | None = None
        self.owners: list[str] = []
        self.ls: tuple[int, ...] = ()
        self.rows: list[list[float]] = []

    def parse(self, lines: list[str]) -> dict[str, ElementTable]:
        where = ""
        try:
            for number, line in enumerate(lines, start=1):
                where = f"line {number}"
                self.line(line)
            where = "at the end"
            self.finish()
            potentials = {symbol: parts.potential(symbol) for symbol, parts in self.potentials.items()}
        except InputError as error:
            raise InputError(f"{self.source}, {where}: {error}") from None
        return {
            symbol: ElementTable(symbol, tuple(self.shells.get(symbol, ())), self.source, potentials.get(symbol))
            for symbol in dict.fromkeys([*self.shells, *potentials])
        }

    def line(self, line: str) -> None:
        raise NotImplementedError

    def finish(self) -> None:
        self.close_shell()

    def close_shell(self) -> None:
        """Store the shell being read, if any."""
        if not self.ls:
            return
        tables = split_shell(self.ls, self.rows, self.pure)
        for symbol in self.owners:
            self.shells.setdefault(symbol, []).extend(tables)
        self.ls, self.rows = (), []


class _NWChem(_Reader):
    """'element shelltype', then rows 'exponent coefficients'; the BASIS and END lines of shells may both be missing."""

    def __init__(self, source: str) -> None:
        super().__init__(source)
        self.block = "basis"
        self.opened = ""
        self.blocks = 0
        self.potential: PotentialParts | None = None

    def line(self, line: str) -> None:
        tokens = line.split("#", 1)[0].split()
        if not tokens:
            return
        keyword = tokens[0].lower()
        if keyword in ("basis", "ecp", "so", "end"):
            self.close_shell()
            self.require_closed(keyword)
            self.block = "basis" if keyword == "end" else keyword
            self.opened = "" if keyword == "end" else keyword
            self.potential = None
            if keyword == "basis":
                self.begin(line)
        elif self.block == "ecp":
            self.potential_line(tokens)
        elif self.block == "so":
            if parse_real(tokens[0]) is None:
                self.potentials.setdefault(symbol_of(tokens[0]), PotentialParts()).spin_orbit = True
        elif parse_real(tokens[0]) is not None:
            require(self.ls, "a row of numbers before any line 'element shelltype'")
            self.rows.append(parse_numbers(tokens))
        else:
            self.header(tokens)

    def require_closed(self, keyword: str = "") -> None:
        """Refuse the next block, or the end of the file, inside a block: shells or a potential may be missing."""
        if self.opened and keyword != "end":
            found = f"{keyword.upper()} comes" if keyword else "the file ends"
            raise InputError(f"{found} inside a block {self.opened.upper()}: END is missing; was the file cut off?")

    def finish(self) -> None:
        self.close_shell()
        self.require_closed()

    def begin(self, line: str) -> None:
        self.blocks += 1
        require(self.blocks <= 1, "a second BASIS block; give a file with one basis set")
        options = _QUOTED.sub(" ", line).lower().split()
        self.pure = True if "spherical" in options else False if "cartesian" in options else None

    def potential_line(self, tokens: list[str]) -> None:
        """A line of an ECP block: 'element nelec 28', 'element ul', 'element s' or a row of numbers."""
        if parse_real(tokens[0]) is not None:
            require(self.potential, "a row of numbers before any line 'element ul' or 'element s'")
            assert self.potential is not None
            return self.potential.row(tokens)
        self.refuse_library(tokens)
        self.potential = self.potentials.setdefault(symbol_of(tokens[0]), PotentialParts())
        kinds = [token.lower() for token in tokens[1:]]
        if len(kinds) == 2 and kinds[0] == "nelec":
            self.potential.core_electrons = parse_whole(kinds[1])
            require(self.potential.core_electrons is not None, f"{quote(kinds[1])} is not a number of electrons")
            return None
        known = len(kinds) == 1 and kinds[0] in ("ul", *ANGULAR_LETTERS)
        require(known, f"expected 'element nelec N', 'element ul' or 'element s', found {quote(' '.join(tokens))}")
        return self.potential.begin(("ul", *ANGULAR_LETTERS).index(kinds[0]) - 1)

    @staticmethod
    def refuse_library(tokens: list[str]) -> None:
        if "library" in (token.lower() for token in tokens):
            raise InputError("'library' lines are not supported: give the basis set by its name instead")

    def header(self, tokens: list[str]) -> None:
        self.refuse_library(tokens)
        found = quote(" ".join(tokens))
        require(len(tokens) == 2, f"expected 'element shelltype' or numbers, found {found}; {_UNDERSTOOD}")
        self.close_shell()
        self.owners = [symbol_of(tokens[0])]
        self.ls = momenta(tokens[1])


class _Gaussian94(_Reader):
    """Blocks between lines of ****: 'element 0', then 'shelltype count scale' and `count` rows."""

    def __init__(self, source: str) -> None:
        super().__init__(source)
        self.remaining = 0
        self.scale = 1.0
        self.potential: GaussianPotential | None = None
        self.complete: set[str] = set()
        self.opened = False

    def line(self, line: str) -> None:
        text = line.split("!", 1)[0].strip()
        potential = _GAUSSIAN_ECP.fullmatch(text)
        if not text:
            return
        if self.remaining:
            self.row(text.split())
        elif self.potential is not None:
            self.potential.line(text)
            if self.potential.complete:
                self.potential = None
        elif text == "****":
            self.opened = False
            self.leave()
        elif _GAUSSIAN_ELEMENT.fullmatch(text):
            self.require_closed(f"{quote(text)} comes")
            self.leave()
            self.opened = True
            self.owners = [symbol_of(token.lstrip("-")) for token in text.split()[:-1]]
        elif potential:
            self.begin_potential(potential[1], int(potential[2]), int(potential[3]))
        else:
            self.header(text.split())

    def leave(self) -> None:
        """End of a block: its elements may not be defined again."""
        self.complete |= {symbol for symbol in self.owners if symbol in self.shells}
        self.owners = []

    def begin_potential(self, label: str, highest: int, core_electrons: int) -> None:
        """'label-ECP highest core_electrons': `highest` + 1 parts follow, the local one first."""
        require(highest < len(ANGULAR_LETTERS), f"angular momentum {highest} of a core potential is too high")
        self.opened = False  # blocks of core potentials end without ****
        self.potential = GaussianPotential(highest + 1)
        self.potential.core_electrons = core_electrons
        for symbol in self.owners or [symbol_of(label)]:
            require(symbol not in self.potentials, f"the core potential of {symbol} is defined a second time")
            self.potentials[symbol] = self.potential

    def header(self, tokens: list[str]) -> None:
        require(self.owners, f"expected 'element 0' or ****, found {quote(' '.join(tokens))}")
        twice = self.complete & set(self.owners)
        if twice:
            raise InputError(f"{min(twice)} is defined a second time")
        count = parse_whole(tokens[1]) if len(tokens) > 1 else None
        if count is None or not 0 < count < 1000:
            raise InputError(f"expected 'shelltype count scale', found {quote(' '.join(tokens))}")
        scales = parse_numbers(tokens[2:]) or [1.0]
        if len(set(scales)) > 1 or scales[0] <= 0:
            raise InputError(f"scale factors {quote(' '.join(tokens[2:]))} are not one positive number")
        self.opened = True
        self.ls, self.rows = momenta(tokens[0]), []
        self.remaining, self.scale = count, scales[0]

    def row(self, tokens: list[str]) -> None:
        values = parse_numbers(tokens)
        if len(values) != 1 + len(self.ls):
            raise InputError(f"expected an exponent and {len(self.ls)} coefficient(s), found {len(values)} numbers")
        values[0] *= self.scale * self.scale  # infinite rather than an OverflowError
        self.rows.append(values)
        self.remaining -= 1
        if not self.remaining:
            self.close_shell()

    def require_closed(self, found: str) -> None:
        """Refuse `found`, the next block or the end of the file, inside a block: shells may be missing."""
        require(not self.opened, f"{found} inside a block: **** is missing; was the file cut off?")

    def finish(self) -> None:
        if self.remaining:
            raise InputError(f"the last shell lacks {self.remaining} row(s)")
        require(self.potential is None, "the last core potential is not complete")
        self.require_closed("the file ends")


def tables_from_exchange(data: Any, source: str) -> dict[str, ElementTable]:
    """Every element of a basis set in the data structure of the Basis Set Exchange."""
    elements = data.get("elements") if isinstance(data, Mapping) else None
    if not isinstance(elements, Mapping):
        raise InputError(f"{source}: JSON without 'elements' is not a basis set of the Basis Set Exchange")
    tables = {}
    for key, entry in elements.items():
        try:
            symbol = symbol_of(str(key))
            require(isinstance(entry, Mapping), "is not an object")
            shells = entry.get("electron_shells", [])
            require(isinstance(shells, list), "'electron_shells' is not a list")
            found = tuple(table for shell in shells for table in _exchange_shell(shell))
            potential = potential_from_exchange(symbol, entry)
        except InputError as error:
            raise InputError(f"{source}, element {quote(key)}: {error}") from None
        tables[symbol] = ElementTable(symbol, found, source, potential)
    return tables


def shell_to_exchange(shell: ShellTable, kind: str = "gto", number: Callable[[float], str] = repr) -> dict[str, Any]:
    """A shell in the data structure of the Basis Set Exchange."""
    return {
        "function_type": kind,
        "region": "",
        "angular_momentum": [shell.l],
        "exponents": [number(a) for a in shell.exponents],
        "coefficients": [[number(c) for c in column] for column in zip(*shell.coefficients, strict=True)],
    }


def _exchange_shell(shell: Any) -> list[ShellTable]:
    require(isinstance(shell, Mapping), "a shell is not an object")
    kind = shell.get("function_type", "gto")
    require(kind in ("gto", "gto_spherical", "gto_cartesian"), f"function type {quote(kind)} is not a Gaussian")
    ls = shell.get("angular_momentum")
    good = isinstance(ls, list) and ls and all(type(l) is int and 0 <= l < len(ANGULAR_LETTERS) for l in ls)
    require(good, f"angular momentum {quote(ls)} is not a list of whole numbers")
    columns = shell.get("coefficients")
    require(isinstance(columns, list) and columns, "'coefficients' is not a list of columns")
    exponents = parse_json_numbers(shell.get("exponents"))
    values = [parse_json_numbers(column) for column in columns]
    equal = all(len(column) == len(exponents) for column in values)
    require(equal, "a column of coefficients is not as long as the exponents")
    rows = [[a, *(column[k] for column in values)] for k, a in enumerate(exponents)]
    pure = None if kind == "gto" else kind == "gto_spherical"
    return split_shell(tuple(ls), rows, pure)
