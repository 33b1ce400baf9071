"""The choice of algorithm per class, by measured tables (`cpu.json`, `cuda.json`).

A table is written by `tools/tune.py` on the machine it is for: class -> [[primitive quartets, time of MD / HGP], ...].
"""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any

from cuanto.kernels.spec import COULOMB, Shells

WORTH_IT = 0.75
"""MD is taken when it needs less than this part of HGP's time: identical kernels were seen to differ by 0.8."""


@cache
def table(language: str) -> dict[str, list[tuple[float, float]]]:
    """The measured ratios of kernels in a language; empty when nobody measured."""
    file = resources.files("cuanto.kernels.tuning") / f"{language}.json"
    if not file.is_file():
        return {}
    content: dict[str, Any] = json.loads(file.read_text())
    return {name: [(float(k), float(ratio)) for k, ratio in rows] for name, rows in content["md_over_hgp"].items()}


def class_name(bra: Shells, ket: Shells) -> str:
    """As in the tables: (dp|f)."""
    return f"({bra}|{ket})"


def choose_algorithm(language: str, operator: str, bra: Shells, ket: Shells, primitives: float) -> str:
    """`hgp` or `md`, the faster one for this number of primitive quartets per contracted one.

    HGP has the fewer operations in every class, so it is the choice where nobody measured.
    """
    if operator not in COULOMB:
        return "os"
    measured = table(language).get(class_name(bra, ket))
    if not measured:
        return "hgp"
    _, ratio = min(measured, key=lambda row: abs(row[0] - primitives))
    return "md" if ratio < WORTH_IT else "hgp"
