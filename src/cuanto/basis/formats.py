"""Readers of basis set files: NWChem, Gaussian94 and the JSON of the Basis Set Exchange.

The format is recognised by the content. Every mistake is an `InputError` that names file and line.
"""

import os
import re
from collections.abc import Callable, Mapping
from typing import Any

from cuanto.basis.shell import ANGULAR_LETTERS
from cuanto.basis.table import ElementTable, ShellTable, momenta, split_shell
from cuanto.errors import InputError, require
from cuanto.system.elements import symbol_of
from cuanto.system.formats import parse_json
from cuanto.system.text import parse_finite, parse_real, parse_whole, quote, read_text, shown, split_lines

_GAUSSIAN_ELEMENT = re.compile(r"(?:-?[A-Za-z]{1,2}\s+)+0", re.ASCII)
_GAUSSIAN_ECP = re.compile(r"-?([A-Za-z]{1,2})-ECP\s+\d+\s+\d+", re.ASCII | re.IGNORECASE)
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")


def read_basis_file(path: str | os.PathLike[str]) -> dict[str, ElementTable]:
    """Every element of a basis set file, by symbol."""
    return parse_basis(read_text(path, "basis file"), os.fspath(path))


def parse_basis(text: str, source: str = "basis") -> dict[str, ElementTable]:
    """Every element of the text of a basis set file, by symbol; `source` begins every message."""
    source = shown(source)
    lines = [line.strip() for line in split_lines(text)]
    if text.lstrip().startswith("{"):
        tables = tables_from_exchange(parse_json(text, source), source)
    elif any(line == "****" or _GAUSSIAN_ELEMENT.fullmatch(line) for line in lines):
        tables = _Gaussian94(source).parse(lines)
    else:
        tables = _NWChem(source).parse(lines)
    require(tables, f"{source}: no basis set found (NWChem, Gaussian94 and BSE JSON are understood)")
    return tables


class _Reader:
    """Base of the readers of text formats: the shells read so far and the shell being read."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.shells: dict[str, list[ShellTable]] = {}
        self.ecp: set[str] = set()
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
        except InputError as error:
            raise InputError(f"{self.source}, {where}: {error}") from None
        symbols = list(self.shells) + sorted(self.ecp - set(self.shells))
        return {
            symbol: ElementTable(symbol, tuple(self.shells.get(symbol, ())), self.source, symbol in self.ecp)
            for symbol in symbols
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

    @staticmethod
    def numbers(tokens: list[str]) -> list[float]:
        values = [parse_finite(token) for token in tokens]
        if None in values:
            raise InputError(f"expected a number, found {quote(tokens[values.index(None)])}")
        return [value for value in values if value is not None]


class _NWChem(_Reader):
    """'element shelltype', then rows 'exponent coefficients'; BASIS and END lines may be missing."""

    def __init__(self, source: str) -> None:
        super().__init__(source)
        self.in_ecp = False
        self.blocks = 0

    def line(self, line: str) -> None:
        tokens = line.split("#", 1)[0].split()
        if not tokens:
            return
        keyword = tokens[0].lower()
        if keyword in ("basis", "ecp", "so", "end"):
            self.close_shell()
            self.in_ecp = keyword in ("ecp", "so")
            if keyword == "basis":
                self.begin(line)
        elif self.in_ecp:
            if parse_real(tokens[0]) is None:  # 'element nelec 28', 'element ul', 'element s'
                self.ecp.add(symbol_of(tokens[0]))
        elif parse_real(tokens[0]) is not None:
            require(self.ls, "a row of numbers before any line 'element shelltype'")
            self.rows.append(self.numbers(tokens))
        else:
            self.header(tokens)

    def begin(self, line: str) -> None:
        self.blocks += 1
        require(self.blocks <= 1, "a second BASIS block; give a file with one basis set")
        options = _QUOTED.sub(" ", line).lower().split()
        self.pure = True if "spherical" in options else False if "cartesian" in options else None

    def header(self, tokens: list[str]) -> None:
        if "library" in (token.lower() for token in tokens):
            raise InputError("'library' lines are not supported: give the basis set by its name instead")
        require(len(tokens) == 2, f"expected 'element shelltype' or numbers, found {quote(' '.join(tokens))}")
        self.close_shell()
        self.owners = [symbol_of(tokens[0])]
        self.ls = momenta(tokens[1])


class _Gaussian94(_Reader):
    """Blocks between lines of ****: 'element 0', then 'shelltype count scale' and `count` rows."""

    def __init__(self, source: str) -> None:
        super().__init__(source)
        self.remaining = 0
        self.scale = 1.0
        self.in_ecp = False
        self.complete: set[str] = set()

    def line(self, line: str) -> None:
        text = line.split("!", 1)[0].strip()
        ecp = _GAUSSIAN_ECP.fullmatch(text)
        if not text:
            return
        if self.remaining:
            self.row(text.split())
        elif text == "****":
            self.leave()
        elif _GAUSSIAN_ELEMENT.fullmatch(text):
            self.leave()
            self.owners = [symbol_of(token.lstrip("-")) for token in text.split()[:-1]]
        elif ecp:
            self.ecp.add(symbol_of(ecp[1]))
            self.in_ecp = True
        elif not self.in_ecp:
            self.header(text.split())

    def leave(self) -> None:
        """End of a block: its elements may not be defined again."""
        self.complete |= {symbol for symbol in self.owners if symbol in self.shells}
        self.owners, self.in_ecp = [], False

    def header(self, tokens: list[str]) -> None:
        require(self.owners, f"expected 'element 0' or ****, found {quote(' '.join(tokens))}")
        twice = self.complete & set(self.owners)
        if twice:
            raise InputError(f"{min(twice)} is defined a second time")
        count = parse_whole(tokens[1]) if len(tokens) > 1 else None
        if count is None or not 0 < count < 1000:
            raise InputError(f"expected 'shelltype count scale', found {quote(' '.join(tokens))}")
        scales = self.numbers(tokens[2:]) or [1.0]
        if len(set(scales)) > 1 or scales[0] <= 0:
            raise InputError(f"scale factors {quote(' '.join(tokens[2:]))} are not one positive number")
        self.ls, self.rows = momenta(tokens[0]), []
        self.remaining, self.scale = count, scales[0]

    def row(self, tokens: list[str]) -> None:
        values = self.numbers(tokens)
        if len(values) != 1 + len(self.ls):
            raise InputError(f"expected an exponent and {len(self.ls)} coefficient(s), found {len(values)} numbers")
        values[0] *= self.scale**2
        self.rows.append(values)
        self.remaining -= 1
        if not self.remaining:
            self.close_shell()

    def finish(self) -> None:
        if self.remaining:
            raise InputError(f"the last shell lacks {self.remaining} row(s)")


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
        except InputError as error:
            raise InputError(f"{source}, element {quote(key)}: {error}") from None
        tables[symbol] = ElementTable(symbol, found, source, bool(entry.get("ecp_potentials")))
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
    exponents = _exchange_numbers(shell.get("exponents"))
    values = [_exchange_numbers(column) for column in columns]
    equal = all(len(column) == len(exponents) for column in values)
    require(equal, "a column of coefficients is not as long as the exponents")
    rows = [[a, *(column[k] for column in values)] for k, a in enumerate(exponents)]
    pure = None if kind == "gto" else kind == "gto_spherical"
    return split_shell(tuple(ls), rows, pure)


def _exchange_numbers(values: Any) -> list[float]:
    require(isinstance(values, list), f"expected a list of numbers, found {quote(values)}")
    return _Reader.numbers([str(value).strip() for value in values])
