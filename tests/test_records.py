"""Records of long benchmarks say what the documentation says of them."""

from __future__ import annotations

import json
from typing import Any

from paths import ROOT

ATOMS = ("Sc", "Ti", "V", "Cr", "Mn", "Fe", "Co", "Ni", "Cu")
METHODS = ("hf", "pbe", "b3lyp", "pbe0", "r2scan")
SAME = 1e-9
"""Tolerance of energies that must not rise, Hartree."""


def record(name: str) -> Any:
    return json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text())


def test_hard_atoms_converge_to_the_same_energy_twice() -> None:
    rows = record("hard_atoms_cpu")["rows"]
    assert {(row["atom"], row["method"]) for row in rows} == {(atom, method) for atom in ATOMS for method in METHODS}
    for row in rows:
        assert row["converged"] and row["again"] == row["energy"], row
        nearest = 1e-4 if row["method"] != "r2scan" else 4e-4  # the grids of both programs differ
        assert row["energy"] < row["pyscf"] + nearest, row


def test_stability_agrees_with_pyscf_or_following_gains() -> None:
    rows = record("stability_cpu")["rows"]
    assert sum(row["verdict"] == "same" for row in rows) >= 30
    for row in rows:
        assert row["finite"] and row["gain"] > -SAME, row
        assert row["verdict"] != "ours" or row["gain"] > 1e-3, row


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
