"""A sample of the gradients that PySCF has computed; `tools/compare_gradients.py` compares all of them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradient_cases import WITH_GRID, WITHOUT_GRID, Row, calculate, difference, key, references, tolerance
from paths import ROOT
from tolerances import FORCE_CPU_CUDA

SAMPLE = [pytest.param(row, id=key(row)) for row in references() if row["sample"]]
NO_FORCE = 1e-8
"""Largest sum of forces, Hartree/Bohr."""


@pytest.mark.parametrize("row", SAMPLE)
def test_sample(row: Row) -> None:
    found = calculate(row)
    assert found.energy == pytest.approx(row["energy"], abs=1e-8 if row["grid"] is None else 1e-6)
    assert difference(row, found) < tolerance(row)
    assert np.abs(found.gradient.sum(axis=0)).max() < NO_FORCE


@pytest.mark.gpu
@pytest.mark.parametrize("row", SAMPLE)
def test_sample_on_a_gpu(row: Row) -> None:
    cpu, gpu = (calculate(row, backend) for backend in ("cpu", "cuda"))
    assert np.abs(cpu.gradient - gpu.gradient).max() < FORCE_CPU_CUDA
    assert difference(row, gpu) < tolerance(row)


def test_the_stored_comparison_is_complete() -> None:
    """Every row was compared, and agrees."""
    record = json.loads((ROOT / "benchmarks" / "results" / "gradient_references_cpu.json").read_text())
    stored: dict[str, Any] = {row["row"]: row for row in record["rows"]}
    assert len(stored) >= 40 and set(stored) == {key(row) for row in references()}
    for row in references():
        assert stored[key(row)]["gradient_difference"] < (WITHOUT_GRID if row["grid"] is None else WITH_GRID)
        assert stored[key(row)]["sum_of_forces"] < NO_FORCE


def test_dynamics_conserves_energy(tmp_path: Path) -> None:
    """Halving the time step reduces the fluctuation to a quarter, unless forces are wrong."""
    found = []
    for step, steps in ((0.5, 8), (0.25, 16)):
        out = tmp_path / "nve.json"
        command = [sys.executable, str(ROOT / "benchmarks" / "nve.py"), "--molecule", "water_01", "--method", "hf"]
        command += ["--basis", "sto-3g", "--step", str(step), "--steps", str(steps), "--json", str(out)]
        subprocess.run(command, capture_output=True, check=False)
        found.append(json.loads(out.read_text())["largest_deviation"])
    assert found[1] < 1e-4 and found[0] / found[1] == pytest.approx(4.0, abs=0.5)
