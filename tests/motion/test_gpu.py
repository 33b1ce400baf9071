"""Frequencies on a GPU agree with those of the CPU."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

import cuanto
from paths import DATA

WATER = cuanto.Molecule.from_string("3\n\nO 0 0 0.1173\nH 0 0.7572 -0.4692\nH 0 -0.7572 -0.4692\n")


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("method", "options"),
    [("hf", {"basis": "def2-svp", "fitting": "none"}), ("b3lyp", {"basis": "def2-svp"}), ("pm6", {})],
    ids=["hf", "b3lyp", "pm6"],
)
def test_frequencies(method: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "CUANTO_BASIS_PATH", str(DATA / "basis"))
    gpu, cpu = (cuanto.frequencies(WATER, method, backend=name, workers=0, **options) for name in ("cuda", "cpu"))
    assert np.abs(gpu.wavenumbers - cpu.wavenumbers).max() < 0.01  # cm^-1
    assert np.abs(gpu.intensities - cpu.intensities).max() < 0.01  # km/mol
    assert gpu.second_derivatives.displacements == cpu.second_derivatives.displacements <= 7
