"""Cases of benchmarks/differential.py: random molecules, bases, methods and options compared with PySCF."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture
def differential(benchmarks: None) -> Any:
    import differential

    return differential


@pytest.mark.parametrize("number", [5, 11, 19, 22])
def test_random_cases_agree_with_pyscf(number: int, differential: Any) -> None:
    row = differential.run_case(1, number)
    assert {"dipole"} < row["found"].keys() and not row["wrong"]


def test_a_wrong_energy_is_found(differential: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With another functional in PySCF."""
    monkeypatch.setitem(differential.FUNCTIONALS, "r2scan", "mgga_x_scan,mgga_c_scan")
    assert "energy_grid" in differential.run_case(1, 19)["wrong"]
