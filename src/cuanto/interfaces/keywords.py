"""Settings of `cuanto.energy` by name, from wherever they come: the command line, a TOML file, a QCSchema input."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

from cuanto.errors import InputError
from cuanto.options import ScfOptions
from cuanto.semiempirical.diagonalisers import settings
from cuanto.system.text import parse_real, quoted

ARGUMENTS = ("fitting", "auxbasis", "backend", "precision", "grid", "max_memory", "guess", "field", "point_charges")
"""Of `cuanto.energy`, beside molecule, method, basis and what watches it."""
OPTIONS = (*(option.name for option in fields(ScfOptions)), "mopac_compatible")
TEXTS = ("fitting", "auxbasis", "backend", "precision", "guess")


def require_known(given: Iterable[str], known: Iterable[str], where: str) -> None:
    """An unknown name is one line, with the nearest known one."""
    names = list(known)
    for name in given:
        if name not in names:
            close = difflib.get_close_matches(str(name), names, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(names)}"
            raise InputError(f"{where}: unknown key {quoted(name)}; {hint}")


def checked_keywords(given: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Keywords for `cuanto.energy`; names and types are looked at here, values where they are used."""
    require_known(given, (*ARGUMENTS, *OPTIONS), where)
    found = {name: value for name, value in given.items() if value is not None}
    for name in TEXTS:
        if name in found and not isinstance(found[name], str):
            raise InputError(f"{where}: {name} must be a text, not {quoted(found[name])}")
        if name in found and not found[name].strip():
            raise InputError(f"{where}: {name} is empty: give a name, or leave it out")
    if "grid" in found and isinstance(found["grid"], list):
        found["grid"] = tuple(found["grid"])
    if "point_charges" in found:
        _check_point_charges(found["point_charges"], where)
    if "max_memory" in found:
        found["max_memory"] = parse_size(found["max_memory"], f"{where}: max_memory")
    options = {name: value for name, value in found.items() if name in OPTIONS and name != "mopac_compatible"}
    with about(where):
        settings(options)
    return found


@contextmanager
def about(where: str) -> Iterator[None]:
    """What is wrong with an input says where: a file, or a key of it."""
    try:
        yield
    except InputError as error:
        text = str(error)
        raise (error if text.startswith(where) else InputError(f"{where}: {text}")) from None


def option_value(text: str) -> Any:
    """What `-o NAME=text` means: numbers, true, false and lists with commas are recognised, the rest are words."""
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
    """Numbers and their shapes are looked at where they are used."""
    if not isinstance(given, list | tuple) or len(given) != 2 or not all(isinstance(x, list | tuple) for x in given):
        wanted = "two lists, charges (e) and positions (Bohr), such as [[0.5], [[0.0, 0.0, 4.0]]]"
        raise InputError(f"{where}: point_charges must be {wanted}, not {quoted(given)}")


def parse_size(size: object, what: str) -> float:
    """Bytes of '4GB', '500 MiB', '1e9' or a number; units are powers of 1024."""
    text = str(size).strip().lower()
    digits = text.rstrip("b").rstrip("i").strip()
    unit = digits[-1:] if digits[-1:] in ("k", "m", "g", "t") else ""
    number = (parse_real(digits.removesuffix(unit).strip()) or 0.0) * 1024.0 ** " kmgt".index(unit or " ")
    if isinstance(size, bool) or not 0 < number < float("inf"):
        raise InputError(f"{what} {quoted(size)}: give a size such as 4GB, 500MB or 2000000000")
    return number
