"""Stored results of benchmarks."""

from __future__ import annotations

import json
from typing import Any

from paths import ROOT


def record(name: str) -> Any:
    """The content of benchmarks/results/NAME.json."""
    return json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text())
