"""Numbers chosen by measurement for a kind of device, one file per language of kernels (`cpu.json`, `cuda.json`).

Tile and block sizes, thresholds between schedules, grain sizes, seconds per unit of work: none of them changes
results. Every number has a description, the machine and date of its measurement, and the case of `tools/tune.py` that
measures it; that command writes the files. `md_over_hgp` maps a class to [[primitive quartets, time of MD / time of
HGP], ...]. $CUANTO_TUNING names a folder whose files are read instead.
"""

from __future__ import annotations

import json
import os
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

LANGUAGES = ("cpu", "cuda")


@cache
def content(language: str) -> dict[str, Any]:
    """A whole file: `machine`, `numbers` and `md_over_hgp`."""
    given = os.environ.get("CUANTO_TUNING")
    folder = Path(given) if given else resources.files(__name__)
    parsed: dict[str, Any] = json.loads((folder / f"{language}.json").read_text())
    return parsed


def number(language: str, name: str) -> float:
    """A number by its name, such as `grid.product_seconds`."""
    return float(content(language)["numbers"][name]["value"])


def size(language: str, name: str) -> int:
    """A whole number by its name, such as `grid.block_points`."""
    return int(content(language)["numbers"][name]["value"])


def sizes(name: str) -> dict[str, int]:
    """A whole number of every language."""
    return {language: size(language, name) for language in LANGUAGES}


def md_over_hgp(language: str, class_name: str) -> list[tuple[float, float]]:
    """Primitive quartets and measured ratio of times of a class; empty where it was not measured."""
    return [(float(count), float(ratio)) for count, ratio in content(language)["md_over_hgp"].get(class_name, ())]
