"""Records of long benchmarks say what the documentation says of them."""

from __future__ import annotations

import json
from typing import Any

from paths import ROOT

ATOMS = ("Sc", "Ti", "V", "Cr", "Mn", "Fe", "Co", "Ni", "Cu")
METHODS = ("hf", "pbe", "b3lyp", "pbe0", "r2scan")
SAME = 1e-9
"""Tolerance of energies that must not rise, Hartree."""


MORE_ITERATIONS = {
    "NO2 UKS-PBE/def2-tzvp (99, 590)": "one more than on the H200 of the older record: on a CPU the predicted error of "
    "the dipole moment after 11 iterations is 7 % above what is allowed",
}
"""Reference rows that take more iterations than in an older record, and why."""


def record(name: str) -> Any:
    return json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text())


def test_hard_atoms_converge_to_the_same_energy_twice() -> None:
    rows = record("hard_atoms_cpu")["rows"]
    assert {(row["atom"], row["method"]) for row in rows} == {(atom, method) for atom in ATOMS for method in METHODS}
    for row in rows:
        assert row["converged"] and row["again"] == row["energy"], row
        nearest = 1e-4 if row["method"] != "r2scan" else 4e-4  # the grids of both programs differ
        assert row["energy"] < row["pyscf"] + nearest, row


def test_stability_agrees_with_pyscf_or_energies_along_the_mode_do() -> None:
    """Where the programs disagree, the energy falls along our mode; elsewhere our curvature is that of the energies."""
    rows = record("stability_cpu")["rows"]
    oxides = {row["case"] for row in rows if row["case"].endswith("O uhf")}
    assert oxides >= {f"{metal}O uhf" for metal in ("Ti", "V", "Cr", "Mn", "Fe", "Co", "Ni", "Cu")}
    assert len(rows) == 45 and sum(row["verdict"] == "same" for row in rows) == 36
    for row in rows:
        assert row["converged"] and row["followed"] and row["finite"] and row["gain"] > -SAME, row
        assert row["verdict"] in ("same", "ours", "both unstable"), row
        if row["verdict"] != "same":
            assert row["curvature"] < row["pyscf"] and max(row["energy_along_mode"]) < -1e-4 and row["gain"] > 1e-3, row
        capacity = 1.0 if row["case"].split()[-1].startswith("u") else 2.0
        curvature = sum(row["energy_along_mode"]) / (2 * 0.05**2 * capacity)
        assert abs(curvature - row["curvature"]) < 5e-4 + 0.01 * abs(curvature), row


def test_no_reference_row_takes_more_iterations_than_before() -> None:
    found = record("iterations_cpu")
    assert set(found) == {"scf_references_cpu", "kohn_sham_references_cpu", "kohn_sham_references_cuda"}
    more = set()
    for comparison in found.values():
        assert len(comparison["rows"]) >= 0.95 * comparison["rows_before"]
        for name, row in comparison["rows"].items():
            if any(after > before for before, after in zip(row["before"], row["after"], strict=True)):
                more.add(name)
    assert more == set(MORE_ITERATIONS)


def test_error_estimates_are_within_a_factor_of_five() -> None:
    rows = [row for row in record("error_estimates")["molecules"].values() if row["converged"]]
    ratios = [row["estimated_total"] / row["actual_total"] for row in rows]
    assert len(rows) >= 60 and sum(0.2 <= ratio <= 5 for ratio in ratios) >= 0.9 * len(rows)


def test_the_default_grid_keeps_its_error() -> None:
    """PBE: at most 1e-4 Hartree, and 2e-5 in nine of ten molecules; there are metals and halogens among them."""
    rows = record("grid_errors")["molecules"]
    errors = sorted(abs(row["pbe"]["fine"]) for row in rows.values() if row["converged"])
    assert len(errors) >= 60 and errors[-1] < 1e-4 and errors[len(errors) * 9 // 10] < 2e-5
    assert abs(rows["MnO4-"]["pbe"]["fine"]) < 2e-5


def test_no_fuzzed_input_was_an_internal_error() -> None:
    found = record("fuzz_cpu")
    assert found["inputs"] >= 50_000 and found["internal_errors"] == 0
    assert sum(found["targets"].values()) == found["inputs"]


def test_no_calculation_died_for_lack_of_device_memory() -> None:
    found = record("gpu_memory_h200")
    assert all(row["finished"] or row["error"].startswith("InputError") for row in found["rows"])
    assert all(abs(row["difference"]) < SAME for row in found["rows"] if row["finished"])
    assert {row["molecule"] for row in found["large"] if row["finished"]} >= {"valinomycin", "water_128"}


def test_optimisations_of_bakers_set_end_at_minima() -> None:
    found = record("optimization_baker_h200")
    rows = found["cases"]
    assert len(rows) == 30 and all(row["converged"] and row["tight_converged"] for row in rows)
    assert max(max(row["excess"], row["pyscf_excess"]) for row in rows) < 2e-6
    assert found["steps"] == sum(row["steps"] for row in rows) <= 208
    for row in rows:  # geomeTRIC takes as many steps with our gradients as with PySCF's
        assert "peer" not in row or row["peer"]["steps"] == row["geometric"]["steps"], row["molecule"]


def test_transition_states_have_one_imaginary_mode() -> None:
    rows = record("transition_states_cpu")["cases"]
    assert len(rows) >= 10 and all(row["converged"] and len(row["imaginary"]) == 1 for row in rows)


def test_wavenumbers_agree_with_pyscf() -> None:
    """With its analytic Hessians or, where these lack the response of the grid, with differences of its gradients."""
    rows = record("frequencies_cpu")["cases"]
    assert len(rows) == 40
    for row in rows:
        assert row["within"] or row["largest_of_differences"] < 1.0, (row["molecule"], row["method"])
        assert row["within"] or row["method"] != "hf", row["molecule"]


def test_no_dimer_of_s22_keeps_an_imaginary_mode() -> None:
    rows = record("s22_frequencies_h200")["dimers"]
    assert len(rows) == 22 and all(row["optimised"] and row["imaginary"] == 0 for row in rows)


def test_gradients_agree_with_pyscf_on_both_devices() -> None:
    for device in ("cpu", "cuda"):
        for kind, found in record(f"gradient_references_{device}")["largest"].items():
            limit = 1e-8 if kind.startswith(("rhf", "uhf", "rohf")) else 1e-6
            assert found["gradient_difference"] < limit and found["sum_of_forces"] < 1e-8, (device, kind)
