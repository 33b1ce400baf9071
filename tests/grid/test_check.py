"""The small grid that estimates the error of a molecular grid."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cuanto import Molecule, energy
from cuanto.backends.base import get_backend
from cuanto.functionals import XCPotential, get_functional
from cuanto.grid import GridSettings
from cuanto.grid.check import check_patterns
from cuanto.memory import Budget
from cuanto.terms import ExchangeCorrelation
from cuanto.terms.exchange_correlation import grid_error
from paths import DATA

LITHIUM_FLUORIDE = "2\n\nLi 0 0 0\nF 0 0 1.57\n"


@pytest.fixture(scope="module")
def lithium_fluoride() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUANTO_BASIS_PATH", str(DATA / "basis"))
        molecule = Molecule.from_string(LITHIUM_FLUORIDE)
        return energy(molecule, "hf", "def2-svp", fitting="none", backend="cpu")


@pytest.mark.parametrize("device", ["cpu", "simt", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_errors_agree_with_differences_from_much_finer_grids(lithium_fluoride: Any, device: str) -> None:
    """Angular errors of PBE, and radial ones of a meta-GGA, within a factor of two; the grid may have any partition."""
    backend, molecule, basis = get_backend(device), lithium_fluoride.molecule, lithium_fluoride.basis
    D_spq = backend.to_device(lithium_fluoride.density)
    potential = XCPotential(get_functional("pbe"), backend, 1)
    settings = GridSettings(level="coarse", cube_edge=4.0, sphere_fraction=0.3)
    found = grid_error(potential, molecule, basis, settings, (D_spq, None), Budget(backend))
    if device != "cpu":
        cpu = XCPotential(get_functional("pbe"), get_backend("cpu"), 1)
        given = (lithium_fluoride.density, None)
        assert found == pytest.approx(grid_error(cpu, molecule, basis, settings, given, Budget(cpu.backend)), abs=1e-10)
        return
    for functional, some in (("pbe", settings), ("r2scan", replace(settings, level=(30, 434)))):
        potential = XCPotential(get_functional(functional), backend, 1)
        energies = [
            ExchangeCorrelation(potential, molecule, basis, one).energy(D_spq)
            for one in (some, replace(some, level=(110, 974)))
        ]
        found = grid_error(potential, molecule, basis, some, (D_spq, None), Budget(backend))
        assert abs(energies[0] - energies[1]) > 1e-5 and 0.5 < found / (energies[0] - energies[1]) < 2


def test_both_rules_integrate_smooth_functions() -> None:
    """The sum over all points vanishes for functions that both rules integrate."""
    settings = GridSettings(level="fine")
    for text in (LITHIUM_FLUORIDE, "2\n\nH 0 0 0\nH 0 0 0.74\n", "2\n\nC 0 0 0\nH 0 0 1.1\n", "1\n\nNe 0 0 0\n"):
        patterns = check_patterns(Molecule.from_string(text, multiplicity=1 + text.count("C ")), settings)
        for r_gx, w_g, depth_g in patterns:
            smooth = w_g @ (np.exp(-((r_gx**2).sum(axis=1))) * (1 + r_gx[:, 0] ** 2 + r_gx[:, 1] * r_gx[:, 2]))
            assert len(w_g) == len(depth_g) and abs(smooth) < 1e-9 * abs(w_g).max()


def test_steeper_or_smaller_neighbours_count() -> None:
    """Methanol: carbon near oxygen, not oxygen near carbon, nor any atom near hydrogen."""
    text = "3\n\nC 0 0 0\nO 0 0 1.42\nH 0 1.03 -0.36\n"
    settings = GridSettings(level="fine")
    carbon, oxygen, hydrogen = (
        np.unique(np.round(np.sqrt((r_gx**2).sum(axis=1)), 6), return_counts=True)[1]
        for r_gx, _, _ in check_patterns(Molecule.from_string(text, multiplicity=2), settings)
    )
    assert carbon.max() > 500 and oxygen.max() == hydrogen.max() == 6
