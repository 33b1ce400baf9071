"""``cuanto selftest``: known energies are reproduced, wrong ones and crashes are reported."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from typer.testing import CliRunner

from cuanto.cli import selftest as module
from cuanto.cli.main import app

DATA = module.references()
CHEAP = [case for case in DATA["cases"] if case["title"] in ("UHF, cation", "PM6")]


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Two of the cases, which a test may change."""
    cases = [dict(case) for case in CHEAP]
    monkeypatch.setattr(module, "references", lambda: {**DATA, "cases": cases})
    return cases


def test_all_cases_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """All cases on the CPU, without the database of basis sets."""
    monkeypatch.setitem(sys.modules, "basis_set_exchange", None)
    done = CliRunner().invoke(app, ["selftest", "--backend", "cpu"])
    assert done.exit_code == 0, done.output
    assert f"all {len(DATA['cases'])} tests passed" in done.output and "FAILED" not in done.output
    assert len(DATA["cases"]) >= 12
    for line in done.output.splitlines():
        assert len(line) <= 80


def test_a_wrong_energy_is_noticed(few: list[dict[str, Any]]) -> None:
    few[0]["energy"] += 1e-6
    done = CliRunner().invoke(app, ["selftest", "--backend", "cpu"])
    assert done.exit_code == 1 and "FAILED" in done.output and "1 of 2 tests failed" in done.output
    assert "differs by more than 1e-08 Hartree" in done.output


def test_a_crash_is_reported(few: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    few[1]["method"] = "pm7"
    done = CliRunner().invoke(app, ["selftest", "--backend", "cpu"])
    assert done.exit_code == 1 and "not implemented: pm7" in done.output and "cuanto doctor" in done.output


def test_a_calculation_that_does_not_converge_fails(few: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    from cuanto import api

    whole = api.energy
    monkeypatch.setattr(api, "energy", lambda *given, **keywords: whole(*given, **keywords, max_iterations=1))
    done = CliRunner().invoke(app, ["selftest", "--backend", "cpu"])
    assert done.exit_code == 1 and "NOT converged" in done.output


def test_the_gpu_is_tested_where_there_is_one(few: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cuanto.backends.cuda.backend.why_no_gpu", lambda: "")
    assert module._backends("auto") == ["cpu", "cuda"]
    monkeypatch.setattr("cuanto.backends.cuda.backend.why_no_gpu", lambda: "there is none")
    assert module._backends("auto") == ["cpu"] == module._backends("cpu")
    found = list(module.outcomes(["cpu", "no-such"]))
    assert [one.good for one in found] == [True, True, False, False]
    assert "unknown backend" in found[2].problem


@pytest.mark.gpu
def test_everything_on_the_gpu() -> None:
    assert all(one.good for one in module.outcomes(["cuda"]))
