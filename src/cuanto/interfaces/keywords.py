"""Keywords of `cuanto.energy` from the command line, a TOML file or a QCSchema input."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from cuanto.errors import InputError
from cuanto.options import OPTIONS, ScfOptions, check_values, options_of, require_known
from cuanto.semiempirical.diagonalisers import settings
from cuanto.system.text import parse_size, quote


def checked_keywords(given: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Check keywords that are plain data; what depends on method and molecule is checked later."""
    require_known(given, OPTIONS, f"{where}: unknown key")
    found = {name: read_value(name, value, where) for name, value in given.items() if value is not None}
    of_scf = options_of(ScfOptions)
    with errors_about(where):
        settings({name: value for name, value in found.items() if name in of_scf})
        check_values({name: value for name, value in found.items() if name not in of_scf})
    return found


def read_value(name: str, value: Any, where: str) -> Any:
    """The value of an option from plain data: text, numbers and lists of JSON, TOML or the command line."""
    kind = OPTIONS[name].kind
    if kind == "size":
        return parse_size(value, f"{where}: {name}")
    if kind == "grid" and isinstance(value, list):
        return tuple(value)
    if kind == "charges":
        _check_point_charges(value, where)
    if kind in ("choice", "text", "basis"):
        if not isinstance(value, str):
            raise InputError(f"{where}: {name} must be text, not {quote(value)}")
        if not value.strip():
            raise InputError(f"{where}: {name} is empty: give a name, or leave it out")
    return value


@contextmanager
def errors_about(where: str) -> Iterator[None]:
    """Errors raised inside begin with `where` (a file) and the option, unless the message names them already."""
    try:
        yield
    except InputError as error:
        text = str(error)
        if error.option is not None and not text.startswith((error.option, where)):
            text = f"{error.option}: {text}"
        raise (error if text.startswith(where) else InputError(f"{where}: {text}")) from None


def option_value(text: str) -> Any:
    """The value of `-o NAME=text`: a number, true or false, a list (JSON, or separated by commas), or else a word."""
    if text.startswith("["):
        with suppress(ValueError, RecursionError):
            return json.loads(text)
    if "," in text:
        return [option_value(part.strip()) for part in text.split(",")]
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _check_point_charges(given: object, where: str) -> None:
    """Check for a pair of lists; their numbers and shapes are checked where they are used."""
    if not isinstance(given, list | tuple) or len(given) != 2 or not all(isinstance(x, list | tuple) for x in given):
        wanted = "two lists, charges (e) and positions (Bohr), such as [[0.5], [[0.0, 0.0, 4.0]]]"
        raise InputError(f"{where}: point_charges must be {wanted}, not {quote(given)}")
