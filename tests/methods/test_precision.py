"""Less than double precision: the error reported for single precision, and the accuracy of mixed."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache
from typing import Any

import pytest

import cuanto
from scf_cases import basis, molecule

MIXED = 1e-7
"""Tolerance of mixed precision, Hartree."""
ROUNDED = 0.06
"""Relative rounding error of a number in a note, which has two digits."""
SECOND_ORDER = 1e-8
"""Largest energy, in Hartree, of a single-precision density (gradient 1e-4) above the minimum."""


@lru_cache
def run(name: str, method: str, orbital: str, fitting: str, precision: str) -> Any:
    mol = molecule(name)
    aux = None if fitting == "none" else basis("def2-universal-jkfit", mol)
    common: dict[str, Any] = {"fitting": fitting, "auxbasis": aux, "backend": "cpu"}
    if method not in ("hf", "rohf"):
        common["grid"] = "coarse"
    return cuanto.energy(mol, method, basis(orbital, mol), precision=precision, **common)


@pytest.mark.parametrize(
    ("name", "method", "orbital", "fitting"),
    [
        ("water_04", "lda", "6-31g", "none"),  # J engine and grid
        ("water_02", "b3lyp", "6-31g", "none"),  # exchange as well
        ("CH3", "cam-b3lyp", "sto-3g", "none"),  # at two ranges, two spins
        ("water_02", "pbe", "def2-svp", "auto"),  # the grid alone
        ("water_02", "pbe0", "def2-svp", "j"),  # J is fitted, in double precision
        ("water_02", "hf", "6-31g", "none"),  # no grid
        ("CH3", "rohf", "def2-svp", "none"),
    ],
)
def test_single_precision_reports_its_error(name: str, method: str, orbital: str, fitting: str) -> None:
    """The whole error, not only that of the grid."""
    double, single = (run(name, method, orbital, fitting, precision) for precision in ("double", "single"))
    assert double.converged and single.converged
    pattern = r"single precision: energy error (\S+) Hartree; converged to \S+"
    (reported,) = [float(m[1]) for note in single.notes if (m := re.fullmatch(pattern, note))]
    error = single.energy - double.energy
    assert 1e-8 < abs(error) < 1e-4
    assert abs(error - reported) < ROUNDED * abs(error) + SECOND_ORDER
    assert abs(single.errors["precision"] - reported) < ROUNDED * abs(reported)


@pytest.mark.parametrize(("multiplicity", "method"), [(1, "hf"), (3, "rohf"), (3, "uhf")])
def test_single_precision_converges_as_well(multiplicity: int, method: str) -> None:
    """J is made from changes of the density where exchange has stored integrals: rounding errors would not decay."""
    mol = replace(molecule("water_01"), multiplicity=multiplicity)
    common: dict[str, Any] = {"fitting": "none", "backend": "cpu"}
    double, single = (
        cuanto.energy(mol, method, basis("def2-svp", mol), precision=precision, **common)
        for precision in ("double", "single")
    )
    assert double.converged and single.converged and single.iterations < 2 * double.iterations


@pytest.mark.parametrize(
    ("name", "method", "orbital"),
    [("water_02", "b3lyp", "6-31g"), ("water_02", "r2scan", "6-31g"), ("CH3", "pbe", "sto-3g")],
)
def test_mixed_precision_is_as_good_as_double(name: str, method: str, orbital: str) -> None:
    double, mixed = (run(name, method, orbital, "none", precision) for precision in ("double", "mixed"))
    assert double.converged and mixed.converged
    assert 0.0 < abs(mixed.energy - double.energy) < MIXED
    assert not any("single precision" in note for note in mixed.notes)
