"""Fortran-like namelist groups with error messages that name the line.

`$name key = value, value ... $end`; `&name ... /` as well. Values are separated by commas, blanks or line ends;
`3*1` repeats, `1.0d-5` is a number, an exclamation mark begins a comment. Between groups there may be lines of plain
numbers.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from cuanto.errors import InputError
from cuanto.system.text import parse_finite, parse_whole, quote, split_lines

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
_LOGICAL = {form.format(word): word[0] == "t" for word in ("t", "true", "f", "false") for form in ("{}", ".{}.")}
MAX_VALUES = 10_000
Value = TypeVar("Value")
Entry = tuple[int, list[str]]
"""Line and values of a key."""


@dataclass(frozen=True)
class Token:
    """A piece of a line; `kind` is the name of the alternative of `_TOKEN` that matched."""

    kind: str
    text: str
    line: int


@dataclass(frozen=True)
class Kind(Generic[Value]):
    """A type of value: `parse` returns None for invalid text, and `rule` describes what is valid."""

    parse: Callable[[str], Value | None]
    rule: str


def real(low: float = -math.inf, high: float = math.inf) -> Kind[float]:
    """Numbers within limits."""
    limits = "" if low == -math.inf else f" between {low:g} and {high:g}"
    return Kind(lambda text: _within(parse_finite(text), low, high), f"must be a number{limits}")


def integer(low: int, high: int) -> Kind[int]:
    """Integers within limits."""
    return Kind(lambda text: _within(parse_whole(text), low, high), f"must be a whole number from {low} to {high}")


def one_of(*words: str) -> Kind[str]:
    """One of these words, with or without quotes."""
    known = dict(zip(words, words, strict=True))
    rule = f"may be {' or '.join(map(repr, words))}"
    return Kind(lambda text: known.get(text.strip("'\"").strip().lower()), rule)


def _within(value: Any, low: float, high: float) -> Any:
    return value if value is not None and low <= value <= high else None


NUMBER = real()
POSITIVE = Kind(lambda text: _within(parse_finite(text), math.ulp(0.0), math.inf), "must be a positive number")
LOGICAL = Kind(lambda text: _LOGICAL.get(text.lower()), "may be .true. or .false.")


class NamelistReader:
    """The tokens of a file, read in order, and its first line, the title."""

    def __init__(self, text: str, source: str) -> None:
        lines = split_lines(text)
        self.source, self.title = source, lines[0].strip()
        self.line = 1  # of the last token read
        self._end = len(lines)
        self._tokens = [token for number, line in enumerate(lines[1:], 2) for token in self._split(line, number)]
        self._next = 0

    def error(self, message: str, line: int | None = None) -> InputError:
        """Make an error for a line, by default the last one read."""
        return InputError(f"{self.source}, line {line or self.line}: {message}")

    def peek(self) -> Token | None:
        """The next token; None at the end of the file."""
        return self._tokens[self._next] if self._next < len(self._tokens) else None

    def take(self) -> Token | None:
        """Read the next token."""
        token = self.peek()
        self._next, self.line = self._next + 1, self._end if token is None else token.line
        return token

    def _split(self, text: str, line: int) -> Iterator[Token]:
        position = 0
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None:
                problem = "a quote that is not closed" if text[position] in "'\"" else "cannot be understood"
                raise self.error(f"{quote(text[position:])}: {problem}", line)
            if match.lastgroup not in (None, "comment"):
                yield Token(str(match.lastgroup), match[0], line)
            position = match.end()

    def numbers(self, description: str) -> list[float]:
        """The next line of plain numbers; `description` names them in messages."""
        token = self.take()
        if token is None:
            raise self.error(f"the file ends where {description} should follow")
        words: list[str] = [] if token.text == "," else self._repeat(token)
        while (following := self.peek()) is not None and following.line == token.line:
            self.take()
            words += [] if following.text == "," else self._repeat(following)
        values = []
        for word in words:
            value = parse_finite(word)
            if value is None:
                raise self.error(f"expected {description}, found {quote(word)}")
            values.append(value)
        return values

    def group(self, *names: str) -> Group:
        """The next group, which must have one of these names."""
        wanted, first = "$" + names[0], self.take()
        if first is None:
            raise self.error(f"the file ends without the group {wanted}")
        if first.kind != "group" or first.text[1:].lower() not in names:
            raise self.error(f"expected the group {wanted}, found {quote(first.text)}")
        entries: dict[str, Entry] = {}
        key = ""
        while (token := self.take()) is not None and token.kind != "end":
            following = self.peek()
            if token.kind == "word" and following is not None and following.text == "=":
                key = self._new_key(token, entries, wanted)
                entries[key] = (token.line, [])
                self.take()
            elif token.kind == "group" or token.text == "=" or not key:
                hint = "the group has no $end" if token.kind == "group" else "write key = value"
                raise self.error(f"{quote(token.text)} inside {wanted}: {hint}")
            elif token.text != ",":
                entries[key][1].extend(self._repeat(token))
                if len(entries[key][1]) > MAX_VALUES:
                    raise self.error(f"{key} has more than {MAX_VALUES} values")
        if token is None:
            raise self.error(f"the group {wanted} that begins in line {first.line} has no $end")
        following = self.peek()
        if following is not None and following.line == token.line and following.kind != "group":
            raise self.error(f"{quote(following.text)} after the end of {wanted}")
        return Group(wanted, first.line, entries, self)

    def _new_key(self, token: Token, entries: dict[str, Entry], wanted: str) -> str:
        key = token.text.lower()
        if not _NAME.fullmatch(key):
            raise self.error(f"{quote(token.text)} cannot be a key of {wanted}")
        if key in entries:
            raise self.error(f"{key} is given twice (first in line {entries[key][0]})")
        return key

    def _repeat(self, token: Token) -> list[str]:
        found = _REPEAT.fullmatch(token.text) if token.kind == "word" else None
        if found is None:
            return [token.text]
        if not found[2] or int(found[1]) == 0:
            raise self.error(f"{quote(token.text)}: write a repeated value as 3*1")
        return [found[2]] * int(found[1])


@dataclass(frozen=True)
class Group:
    """One group: line and values of every key."""

    name: str
    line: int
    entries: dict[str, Entry]
    reader: NamelistReader

    def allow(self, *keys: str) -> None:
        """Refuse every key but these."""
        for key, (line, _) in self.entries.items():
            if key not in keys:
                close = difflib.get_close_matches(key, keys, n=1)
                hint = f"did you mean {close[0]}?" if close else f"it knows {', '.join(keys)}"
                raise self.reader.error(f"unknown key {quote(key)} in {self.name}; {hint}", line)

    def error(self, key: str, message: str) -> InputError:
        """Make an error about the value of a key; also for keys that were not given."""
        line, _ = self.entries.get(key, (self.line, []))
        return self.reader.error(f"{key} {message}" if key else message, line)

    def get(self, key: str, kind: Kind[Value], default: Value | None = None) -> Value:
        """The value of a key; without a default the key is required."""
        if default is not None and key not in self.entries:
            return default
        values = self._values(key)
        if len(values) != 1:
            raise self.error(key, f"has {len(values)} values; it takes one")
        return self._parse(key, values[0], kind)

    def array(
        self, key: str, kind: Kind[Value], count: int, why: str, default: Value | None = None
    ) -> tuple[Value, ...]:
        """Read `count` values (`why` explains the number); surplus ones must be the default or 0, as in Fortran
        arrays."""
        if default is not None and key not in self.entries:
            return (default,) * count
        values = self._values(key)
        found = tuple(self._parse(key, text, kind) for text in values[:count])
        if len(found) < count or any(text != str(default or 0) for text in values[count:]):
            raise self.error(key, f"has {len(values)} values; {why} needs {count}")
        return found

    def _parse(self, key: str, text: str, kind: Kind[Value]) -> Value:
        value = kind.parse(text)
        if value is None:
            raise self.error(key, f"is {quote(text)}; it {kind.rule}")
        return value

    def _values(self, key: str) -> list[str]:
        if key not in self.entries:
            raise self.reader.error(f"{self.name} lacks {key}", self.line)
        if not self.entries[key][1]:
            raise self.error(key, "has no value")
        return self.entries[key][1]
