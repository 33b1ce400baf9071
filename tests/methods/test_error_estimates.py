"""Error estimates of results: sources, sizes, and where they are shown."""

from __future__ import annotations

import json
from math import isnan
from pathlib import Path
from typing import Any

import pytest

import cuanto
from cuanto.errors import ConvergenceWarning
from cuanto.methods.error_estimates import SOURCES, total_error
from cuanto.report import report_html
from paths import DATA

WATER = cuanto.Molecule.from_string("3\nwater\nO 0 0 0.117\nH 0 0.757 -0.469\nH 0 -0.757 -0.469\n")
CPU: dict[str, Any] = {"basis": "def2-svp", "backend": "cpu"}


@pytest.fixture(autouse=True)
def basis_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUANTO_BASIS_PATH", str(DATA / "basis"))


@pytest.fixture(scope="module")
def water() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUANTO_BASIS_PATH", str(DATA / "basis"))
        return cuanto.energy(WATER, "b3lyp", **CPU)


def test_sources_of_methods(water: Any) -> None:
    assert tuple(water.errors) == SOURCES and water.error == total_error(water.errors)
    exact = cuanto.energy(WATER, "hf", fitting="none", **CPU)
    assert tuple(exact.errors) == ("screening", "precision", "convergence") and 0 < exact.error < 1e-9
    separated = cuanto.energy(WATER, "wb97x", grid="coarse", **CPU)
    assert tuple(separated.errors) == SOURCES and 1e-6 < separated.error < 1e-3


def test_the_total_is_the_difference_from_an_exact_calculation(water: Any) -> None:
    """The exact calculation has no fitting and a much finer grid; the estimate is within a factor of five."""
    better = cuanto.energy(WATER, "b3lyp", fitting="none", grid=(99, 590), gradient_tolerance=1e-7, **CPU)
    assert 0.2 < water.error / abs(water.energy - better.energy) < 5
    assert better.error < 0.02 * water.error


def test_convergence_is_of_second_order() -> None:
    options = {"fitting": "none", **CPU}
    loose = cuanto.energy(WATER, "hf", energy_tolerance=1e-3, gradient_tolerance=3e-2, dipole_tolerance=1.0, **options)
    tight = cuanto.energy(WATER, "hf", gradient_tolerance=1e-8, **options)
    assert 0.2 < loose.errors["convergence"] / (loose.energy - tight.energy) < 5


def test_precision() -> None:
    """Mixed precision: an upper bound; single precision: the error that is computed with the energy."""
    results = {name: cuanto.energy(WATER, "pbe", precision=name, **CPU) for name in ("double", "mixed", "single")}
    sizes = [abs(results[name].errors["precision"]) for name in results]
    assert sizes[0] < 1e-12 < sizes[1] < 1e-8 and sizes[1] < sizes[2] < 1e-4
    assert abs(results["mixed"].energy - results["double"].energy) < 10 * sizes[1]
    assert 0.2 < results["single"].errors["precision"] / (results["single"].energy - results["double"].energy) < 5


def test_nothing_is_estimated_where_there_is_no_energy() -> None:
    with pytest.warns(ConvergenceWarning):
        unfinished = cuanto.energy(WATER, "hf", max_iterations=2, **CPU)
    semiempirical = cuanto.energy(WATER, "pm6")
    for result in (unfinished, semiempirical):
        assert result.errors == {} and isnan(result.error) and "estimated error" not in str(result)


def test_estimates_are_shown_and_read_back(water: Any, tmp_path: Path) -> None:
    schema = water.to_qcschema()["extras"]["cuanto"]
    assert schema["errors"] == dict(water.errors) and schema["error"] == water.error
    path = tmp_path / "water.json"
    path.write_text(json.dumps(water.to_qcschema()))
    again = cuanto.read(path)
    assert again.errors == water.errors and again.error == water.error
    page = report_html(water)
    assert "Estimated errors" in page and f"{water.error:.1e}" in page
    line = next(line for line in str(water).splitlines() if "estimated error" in line)
    assert f"{water.error:.1e}" in line and all(name in line for name in SOURCES)
