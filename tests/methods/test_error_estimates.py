"""Error estimates of results: sources, sizes, and where they are shown."""

from __future__ import annotations

import json
from math import isnan
from pathlib import Path
from statistics import median
from typing import Any

import pytest

import cuanto
from cuanto.backends.base import get_backend
from cuanto.coulomb.fit_error import without_redundancy
from cuanto.errors import ConvergenceWarning
from cuanto.methods import gaussian_result
from cuanto.methods.error_estimates import SOURCES, total_error
from cuanto.methods.semiempirical_batch import semiempirical_energies
from cuanto.report import report_html
from paths import DATA
from records import record

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


@pytest.mark.usefixtures("benchmarks")
def test_the_benchmark_computes_the_actual_error_of_fitting() -> None:
    """The energy of the converged density, which is not quite that of the exact calculation."""
    from error_estimates import actual_errors

    fitted, exact = (cuanto.energy(WATER, "hf", fitting=fitting, **CPU) for fitting in ("auto", "none"))
    assert actual_errors(fitted)["fitting"] == pytest.approx(fitted.energy - exact.energy, rel=0.02)


def test_nearly_dependent_functions_do_not_spoil_the_estimate() -> None:
    """Coefficients of a chain of hydrogen atoms reach 13, so that a block of its density has 200 electrons."""
    atoms = "".join(f"H 0 0 {0.75 * k}\n" for k in range(8))
    fitted = cuanto.energy(f"8\n\n{atoms}", "hf", "aug-cc-pvdz", backend="cpu")
    D_spq, S_pq = fitted.density, fitted.overlap
    assert abs(D_spq).max() > 100
    charges_a = fitted.molecule.nuclei.charges
    small_spq = without_redundancy(D_spq, S_pq, fitted.basis, charges_a)
    assert abs(small_spq).max() < 2 and abs((small_spq * S_pq).sum() - 8) < 0.3
    assert 1e-7 < abs(fitted.errors["fitting"]) < 1e-4  # actually 2e-6
    assert without_redundancy(small_spq, S_pq, fitted.basis, charges_a) is small_spq


def test_ordinary_densities_are_taken_as_they_are(water: Any) -> None:
    anion = cuanto.energy("1\n\nH 0 0 0\n", "hf", "aug-cc-pvdz", charge=-1, backend="cpu")
    for found in (water, anion):
        density, charges_a = found.density, found.molecule.nuclei.charges
        assert without_redundancy(density, found.overlap, found.basis, charges_a) is density


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
        semiempirical = cuanto.energy(WATER, "pm6", max_iterations=2)
    for result in (unfinished, semiempirical):
        assert result.errors == {} and isnan(result.error) and "estimated error" not in str(result)


@pytest.mark.parametrize("method", ["pm6", "am1", "upm3"])
def test_semiempirical_methods_round_and_stop_early(method: str) -> None:
    """The convergence is of second order; the rounding is at least the difference between rotated molecules."""
    loose = cuanto.energy(WATER, method, energy_tolerance=1e-3, gradient_tolerance=3e-3, dipole_tolerance=1.0)
    tight = cuanto.energy(WATER, method, energy_tolerance=1e-12, gradient_tolerance=1e-9)
    assert tuple(tight.errors) == ("precision", "convergence") and tight.error < 1e-12
    assert 0.2 < loose.errors["convergence"] / (loose.energy - tight.energy) < 5
    turned = cuanto.Molecule(WATER.symbols, WATER.R_ax[:, [1, 2, 0]] + 0.3)
    again = cuanto.energy(turned, method, energy_tolerance=1e-12, gradient_tolerance=1e-9)
    assert abs(again.energy - tight.energy) < tight.errors["precision"]


def test_convergence_of_semiempirical_methods_in_numbers() -> None:
    """What docs/reference/accuracy.md says about molecules of up to 24 atoms, stopped early and converged tightly."""
    stopped = {"energy_tolerance": 1e-4, "gradient_tolerance": 3e-3, "dipole_tolerance": 0.1}
    ratios = []
    for path in sorted((DATA / "geometries").glob("*.xyz")):
        molecule = cuanto.Molecule.from_xyz(path)
        for method in ("pm6", "am1", "mndo"):
            if molecule.natom > 24 or (method != "pm6" and {"Cu", "Fe"} & set(molecule.symbols)):
                continue
            exact = cuanto.energy(molecule, method, energy_tolerance=1e-12, gradient_tolerance=1e-8)
            early = cuanto.energy(molecule, method, **stopped)
            if abs(early.energy - exact.energy) > 1e-11:
                ratios.append(early.errors["convergence"] / (early.energy - exact.energy))
    assert len(ratios) == 76 and sum(0.2 < ratio < 5 for ratio in ratios) == 75
    assert median(ratios) == pytest.approx(0.7, abs=0.05) and min(ratios) == pytest.approx(0.05, abs=0.01)


def test_molecules_computed_together_have_the_same_estimates() -> None:
    near = cuanto.Molecule(WATER.symbols, 1.01 * WATER.R_ax)
    both = semiempirical_energies([WATER, near], "pm6", get_backend("cpu"))
    alone = cuanto.energy(WATER, "pm6")
    assert tuple(both[0].errors) == tuple(alone.errors) and both[0].error < 1e-9
    assert 0.2 < both[0].errors["precision"] / alone.errors["precision"] < 5
    assert both[0].errors["convergence"] > 0 < both[1].errors["convergence"] != both[0].errors["convergence"]


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


MOLECULES = ("[C-]#N", "O=C=S", "OBr", "ClF", "FSF", "FP(F)F", "PCl3_rm1")
"""The seven smallest closed-shell molecules of the record with a pure functional in def2-SVP."""


def test_the_fitting_set_of_pure_functionals_is_chosen_for_accuracy() -> None:
    """Median errors in docs/howto/fitting_memory_precision.md: of the record, and of both sets for small molecules."""
    rows = record("error_estimates")["molecules"]
    pure = [row for row in rows.values() if row["converged"] and row["method"] in ("pbe", "blyp", "r2scan")]
    assert {row["auxbasis"] for row in pure} == {"def2-universal-jkfit"} and len(pure) == 27
    sizes = [abs(row["actual"]["fitting"]) for row in pure]
    assert median(sizes) == pytest.approx(6.4e-5, rel=0.02) and max(sizes) == pytest.approx(1.5e-4, rel=0.02)
    errors: dict[str, list[float]] = {"def2-universal-jkfit": [], "def2-universal-jfit": []}
    for name in MOLECULES:
        text = f"{len(rows[name]['geometry'])}\n\n" + "\n".join(rows[name]["geometry"])
        molecule = cuanto.Molecule.from_string(text, charge=-1 if name == "[C-]#N" else 0)
        exact = cuanto.energy(molecule, "pbe", fitting="none", grid="coarse", **CPU).energy
        for auxbasis, found in errors.items():
            fitted = cuanto.energy(molecule, "pbe", auxbasis=auxbasis, grid="coarse", **CPU)
            found.append(abs(fitted.energy - exact))
    default = cuanto.energy(molecule, "pbe", grid="coarse", **CPU).auxbasis
    assert default is not None and default.name == "def2-universal-jkfit"
    assert median(errors["def2-universal-jkfit"]) == pytest.approx(4.3e-5, rel=0.05)
    assert median(errors["def2-universal-jfit"]) == pytest.approx(2.1e-4, rel=0.05)


def test_an_energy_is_not_lost_with_its_estimates(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fail(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(gaussian_result, "estimate_errors", fail)
    found = cuanto.energy(WATER, "hf", **CPU)
    assert found.errors == {} and isnan(found.error) and "estimated error" not in str(found)
    found.save(tmp_path / "water.json")
    read = cuanto.read(tmp_path / "water.json")
    assert read.energy == found.energy and read.errors == {}
    dimer = cuanto.counterpoise("2\n\nHe 0 0 0\nHe 0 0 3", [1, 1], "hf", **CPU)
    assert dimer.corrected_errors == {} and isnan(dimer.raw_error)
