"""The choice of algorithm per class: by measured tables (`cpu.json`, `cuda.json`), else by the cost model.

A table is written by `tools/tune.py` on the machine it is for: class -> [[primitives, cheaper algorithm], ...].
"""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any

from cuanto.kernels.build import cost_of
from cuanto.kernels.spec import Shells


@cache
def table(device: str) -> dict[str, list[tuple[float, str]]]:
    """The measured winners of a device; empty when nobody measured."""
    file = resources.files("cuanto.kernels.tuning") / f"{device}.json"
    if not file.is_file():
        return {}
    content: dict[str, Any] = json.loads(file.read_text())
    return {name: [(float(k), str(winner)) for k, winner in rows] for name, rows in content["winners"].items()}


def class_name(bra: Shells, ket: Shells) -> str:
    """As in the tables: (dp|f)."""
    return f"({bra}|{ket})"


@cache
def choose_algorithm(device: str, operator: str, bra: Shells, ket: Shells, primitives: float) -> str:
    """`hgp` or `md`, the faster one for this number of primitive quartets per contracted one."""
    if operator != "coulomb":
        return "os"
    device = {"simt": "cuda"}.get(device, device)
    if measured := table(device).get(class_name(bra, ket)):
        return min(measured, key=lambda row: abs(row[0] - primitives))[1]
    costs = {name: cost_of(operator, bra, ket, name).total(primitives) for name in ("hgp", "md")}
    return min(costs, key=lambda name: costs[name])
