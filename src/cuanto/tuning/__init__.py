"""Numbers chosen by measurement for a kind of device, one file per language of kernels (`cpu.json`, `cuda.json`).

Tile and block sizes, thresholds between schedules, grain sizes, seconds per unit of work: none of them changes
results. Every number has a description, the machine and date of its measurement, and the case of `tools/tune.py` that
measures it; that command writes the files. `md_over_hgp` maps a class to [[primitive quartets, time of MD / time of
HGP], ...]. $CUANTO_TUNING names a folder whose files are read instead; if it has
only one of them, the other is the shipped one.
"""

from __future__ import annotations

import json
import os
from functools import cache
from importlib import resources
from math import isfinite
from pathlib import Path
from typing import Any

from cuanto.errors import InputError, require

LANGUAGES = ("cpu", "cuda")


@cache
def content(language: str) -> dict[str, Any]:
    """A whole file: `machine`, `numbers` and `md_over_hgp`."""
    name, given = f"{language}.json", os.environ.get("CUANTO_TUNING")
    if given:
        folder = Path(given)
        require(folder.is_dir(), f"CUANTO_TUNING: {given!r} is not a folder: name one with tuning files, or unset it")
        if (folder / name).exists():
            return _read(folder / name)
    shipped: dict[str, Any] = json.loads((resources.files(__name__) / name).read_text())
    return shipped


def _read(path: Path) -> dict[str, Any]:
    """A file of the user, which has the parts of a tuning file."""
    try:
        parsed = json.loads(path.read_text())
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"CUANTO_TUNING: cannot read {str(path)!r}: {error}") from None
    for part in ("numbers", "md_over_hgp"):
        if not isinstance(parsed, dict) or not isinstance(parsed.get(part), dict):
            raise InputError(f"CUANTO_TUNING: {str(path)!r} has no table {part!r}: write the file with tools/tune.py")
    return dict(parsed)


def number(language: str, name: str) -> float:
    """A number by its name, such as `grid.product_seconds`."""
    try:
        value = float(content(language)["numbers"][name]["value"])
    except (KeyError, TypeError, ValueError):
        raise _invalid(language, name) from None
    if not isfinite(value):
        raise _invalid(language, name)
    return value


def size(language: str, name: str) -> int:
    """A whole number by its name, such as `grid.block_points`."""
    return int(number(language, name))


def sizes(name: str) -> dict[str, int]:
    """A whole number of every language."""
    return {language: size(language, name) for language in LANGUAGES}


def md_over_hgp(language: str, class_name: str) -> list[tuple[float, float]]:
    """Primitive quartets and measured ratio of times of a class; empty where it was not measured."""
    try:
        measured = content(language)["md_over_hgp"].get(class_name, ())
        return [(float(count), float(ratio)) for count, ratio in measured]
    except (KeyError, TypeError, ValueError):
        raise _invalid(language, class_name) from None


def _invalid(language: str, name: str) -> InputError:
    """The error about an entry in the user's file that is missing or not a number."""
    wrong = f"{language}.json has no valid entry {name!r}: write the file with tools/tune.py"
    return InputError(f"CUANTO_TUNING: {wrong}, or unset CUANTO_TUNING")
