"""Fortran-like namelist groups, read as a person would want: every complaint says the line.

`$name key = value, value ... $end`; `&name ... /` as well. Values are separated by commas, blanks or line ends;
`3*1` repeats, `1.0d-5` is a number, an exclamation mark begins a comment. Between groups there may be lines of plain
numbers.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Collection
from dataclasses import dataclass, field

from cuanto.errors import InputError
from cuanto.system.text import parse_real, parse_whole, quoted

_TOKEN = re.compile(
    r"""\s+ | (?P<comment>!.*)
    | (?P<string>'(?:[^']|'')*' | "(?:[^"]|"")*")
    | (?P<end>[$&]end\b | /)
    | (?P<group>[$&]\w+)
    | (?P<mark>[=,])
    | (?P<word>[^\s,=/!'"$&]+)""",
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)
_REPEAT = re.compile(r"(\d{1,4})\*(.*)", re.ASCII)
_NAME = re.compile(r"[a-z]\w*", re.ASCII | re.IGNORECASE)
_TRUE, _FALSE = ("t", "true", ".t.", ".true."), ("f", "false", ".f.", ".false.")
MAX_VALUES = 10_000


@dataclass(frozen=True)
class Token:
    """A piece of a line; `kind` is the name of the alternative that matched."""

    kind: str
    text: str
    line: int


@dataclass
class Entry:
    """The values of one key as they were written."""

    key: str
    line: int
    values: list[str] = field(default_factory=list)


class Lines:
    """The lines of a file, read from the top; all errors go through `error`."""

    def __init__(self, lines: list[str], source: str) -> None:
        self.source = source
        self._lines = lines
        self._next = 0  # index of the first line not yet read
        self._rest: list[Token] = []  # what follows the end of a group on its line

    def error(self, message: str, line: int | None = None) -> InputError:
        return InputError(f"{self.source}, line {max(1, self._next if line is None else line)}: {message}")

    def raw(self) -> str | None:
        """The next line as it is."""
        if self._next >= len(self._lines):
            return None
        self._next += 1
        return self._lines[self._next - 1]

    def tokens(self) -> list[Token]:
        """Those of the next line that has any; an empty list at the end of the file."""
        if self._rest:
            rest, self._rest = self._rest, []
            return rest
        while (text := self.raw()) is not None:
            if found := self._split(text):
                return found
        return []

    def push_back(self, tokens: list[Token]) -> None:
        self._rest = tokens

    def _split(self, text: str) -> list[Token]:
        found, position = [], 0
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None:
                what = "a quote that is not closed" if text[position] in "'\"" else "cannot be understood"
                raise self.error(f"{quoted(text[position:])}: {what}")
            if match.lastgroup not in (None, "comment"):
                found.append(Token(str(match.lastgroup), match[0], self._next))
            position = match.end()
        return found

    def numbers(self, what: str) -> list[float]:
        """The next line of plain numbers; `what` says what they mean."""
        tokens = self.tokens()
        if not tokens:
            raise self.error(f"the file ends where {what} should follow")
        if tokens[0].kind in ("group", "end"):
            raise self.error(f"expected {what}, found {quoted(tokens[0].text)}")
        words = [text for token in tokens if token.text != "," for text in self._repeated(token)]
        values = [parse_real(text) for text in words]
        for text, value in zip(words, values, strict=True):
            if value is None or not math.isfinite(value):
                raise self.error(f"expected {what}, found {quoted(text)}")
        return [value for value in values if value is not None]

    def group(self, names: Collection[str], optional: bool = False) -> Group | None:
        """The next group, which must have one of these names."""
        wanted = "$" + next(iter(names))
        tokens = self.tokens()
        if not tokens:
            if optional:
                return None
            raise self.error(f"the file ends without the group {wanted}")
        first = tokens[0]
        if first.kind != "group" or first.text[1:].lower() not in names:
            self.push_back(tokens)
            if optional:
                return None
            raise self.error(f"expected the group {wanted}, found {quoted(first.text)}", first.line)
        return self._entries(first, tokens[1:], wanted)

    def _entries(self, first: Token, tokens: list[Token], wanted: str) -> Group:
        entries: dict[str, Entry] = {}
        queue = tokens
        current: Entry | None = None
        while True:
            while len(queue) < 2 and not any(token.kind == "end" for token in queue):
                more = self.tokens()  # a key and its '=' may be on different lines
                if not more:
                    raise self.error(f"the group {wanted} that begins in line {first.line} has no $end")
                queue = [*queue, *more]
            token, queue = queue[0], queue[1:]
            if token.kind == "end":
                if queue and queue[0].kind != "group":
                    raise self.error(f"{quoted(queue[0].text)} after the end of {wanted}", queue[0].line)
                self.push_back(queue)
                return Group(wanted, first.line, entries, self)
            if token.kind == "word" and queue and queue[0].text == "=":
                current, queue = self._begin(token, entries, wanted), queue[1:]
            elif token.kind == "group" or token.text == "=" or current is None:
                hint = "the group has no $end" if token.kind == "group" else "write key = value"
                raise self.error(f"{quoted(token.text)} inside {wanted}: {hint}", token.line)
            elif token.text != ",":
                current.values += self._repeated(token)
                if len(current.values) > MAX_VALUES:
                    raise self.error(f"{current.key} has more than {MAX_VALUES} values", token.line)

    def _begin(self, token: Token, entries: dict[str, Entry], wanted: str) -> Entry:
        key = token.text.lower()
        if not _NAME.fullmatch(key):
            raise self.error(f"{quoted(token.text)} cannot be a key of {wanted}", token.line)
        if key in entries:
            raise self.error(f"{key} is given twice (first in line {entries[key].line})", token.line)
        entries[key] = Entry(key, token.line)
        return entries[key]

    def _repeated(self, token: Token) -> list[str]:
        found = _REPEAT.fullmatch(token.text) if token.kind == "word" else None
        if found is None:
            return [token.text]
        if not found[2] or int(found[1]) == 0:
            raise self.error(f"{quoted(token.text)}: write a repeated value as 3*1", token.line)
        return [found[2]] * int(found[1])


@dataclass(frozen=True)
class Group:
    """One group; the methods give the values of a key in the type that it should have."""

    name: str
    line: int
    entries: dict[str, Entry]
    lines: Lines

    def allow(self, *keys: str) -> None:
        """Complain about every key but these."""
        for key, entry in self.entries.items():
            if key not in keys:
                close = difflib.get_close_matches(key, keys, n=1)
                hint = f"did you mean {close[0]}?" if close else f"it knows {', '.join(keys)}"
                raise self.lines.error(f"unknown key {quoted(key)} in {self.name}; {hint}", entry.line)

    def error(self, key: str, message: str) -> InputError:
        """A complaint about the value of a key, which need not have been given."""
        line = self.entries[key].line if key in self.entries else self.line
        return self.lines.error(f"{key} {message}" if key else message, line)

    def text(self, key: str, choices: Collection[str], default: str | None = None) -> str:
        """One of these words, with or without quotes."""
        values = self._values(key, default is None)
        if values is None:
            return str(default)
        word = self._one(key, values).strip("'\"").strip().lower()
        if word not in choices:
            raise self.error(key, f"is {quoted(values[0])}; it may be {' or '.join(map(repr, choices))}")
        return word

    def logical(self, key: str, default: bool) -> bool:
        values = self._values(key, required=False)
        if values is None:
            return default
        word = self._one(key, values).lower()
        if word not in _TRUE + _FALSE:
            raise self.error(key, f"is {quoted(values[0])}; it may be .true. or .false.")
        return word in _TRUE

    def real(self, key: str, default: float | None = None, positive: bool = True) -> float:
        values = self._values(key, default is None)
        if values is None:
            return float(default) if default is not None else math.nan
        value = self._real(key, self._one(key, values))
        if positive and value <= 0:
            raise self.error(key, f"is {value:g}; it must be positive")
        return value

    def whole(self, key: str, low: int, high: int, default: int | None = None) -> int:
        values = self._values(key, default is None)
        if values is None:
            return int(default) if default is not None else low
        return self._whole(key, self._one(key, values), low, high)

    def reals(self, key: str, count: int, why: str) -> tuple[float, ...]:
        values = self._values(key, required=True) or []
        if len(values) != count:
            raise self.error(key, f"has {len(values)} values; {why} needs {count}")
        return tuple(self._real(key, text) for text in values)

    def wholes(self, key: str, count: int, low: int, high: int, default: int | None = None) -> tuple[int, ...]:
        """One number per symmetry; more are allowed as long as they say nothing, as in arrays of fixed size."""
        values = self._values(key, default is None)
        if values is None:
            return (int(default or 0),) * count
        found = tuple(self._whole(key, text, low, high) for text in values[:count])
        idle = str(default or 0)
        if len(found) < count or any(text != idle for text in values[count:]):
            raise self.error(key, f"has {len(values)} values; nsym={count} needs {count}")
        return found

    def _values(self, key: str, required: bool) -> list[str] | None:
        entry = self.entries.get(key)
        if entry is None:
            if required:
                raise self.lines.error(f"{self.name} lacks {key}", self.line)
            return None
        if not entry.values:
            raise self.error(key, "has no value")
        return entry.values

    def _one(self, key: str, values: list[str]) -> str:
        if len(values) != 1:
            raise self.error(key, f"has {len(values)} values; it takes one")
        return values[0]

    def _real(self, key: str, text: str) -> float:
        value = parse_real(text)
        if value is None or not math.isfinite(value):
            raise self.error(key, f"is {quoted(text)}; it must be a number")
        return value

    def _whole(self, key: str, text: str, low: int, high: int) -> int:
        value = parse_whole(text)
        if value is None or not low <= value <= high:
            raise self.error(key, f"is {quoted(text)}; it must be a whole number from {low} to {high}")
        return value
