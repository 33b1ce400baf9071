"""NDDO methods on a GPU: the energies of the CPU and of the reference."""

from __future__ import annotations

import numpy as np
import pytest

from cuanto.api import energies
from cuanto.backends.base import get_backend
from cuanto.methods.semiempirical import Semiempirical
from cuanto.options import ScfOptions
from cuanto.semiempirical.constants import BOHR, HARTREE_IN_KCAL, RESCALE
from nddo_cases import METHODS, NAMES, TIGHT, molecule, polyethylene, run, values, water_cluster

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", NAMES)
def test_heats_and_gradients(name: str, method: str) -> None:
    known = values(name, method)
    result = run(molecule(name), method, "cuda", energy_tolerance=1e-12, gradient_tolerance=1e-8)
    assert result.converged
    assert abs(result.heat_of_formation - known["heat_of_formation_kcal_mol"]) < 2e-6
    gradient = result.gradient * (HARTREE_IN_KCAL / BOHR * RESCALE)
    assert np.abs(gradient - np.reshape(known["gradient_kcal_mol_A"], (-1, 3))).max() < 2e-5


@pytest.mark.parametrize("mol", [water_cluster(64), polyethylene(83)], ids=["water_64", "polyethylene_C83"])
def test_every_diagonaliser(mol: object) -> None:
    here = run(mol, "pm6", "cpu")  # type: ignore[arg-type]
    for options in (
        {"diagonaliser": "full"},
        {"diagonaliser": "pseudo", "variant": "refined"},
        {"diagonaliser": "pseudo", "variant": "block"},
    ):
        there = run(mol, "pm6", "cuda", **options)  # type: ignore[arg-type]
        assert there.converged and abs(here.energy - there.energy) < 1e-9
    for settings in ({"purify": True}, {"mixed": True}):
        found = Semiempirical(mol, "pm6", get_backend("cuda"), ScfOptions(), **settings).run()  # type: ignore[arg-type]
        assert found.converged and abs(here.energy - found.energy) < 1e-9


def test_recomputed_integrals() -> None:
    mol = molecule("H3PO4")
    kept, anew = run(mol, "pm6", "cuda", **TIGHT), run(mol, "pm6", "cuda", max_memory=1e5, **TIGHT)
    assert not anew.calculation.engine.stored
    assert abs(kept.energy - anew.energy) < 1e-10


def test_batches() -> None:
    mixed = [molecule(name) for name in ("glycine", "CH3", "glycine", "CH3SH", "ICl", "O2")]
    here = energies(mixed, "pm6", backend="cpu", gradient=True, gradient_tolerance=1e-6)
    there = energies(mixed, "pm6", backend="cuda", gradient=True, gradient_tolerance=1e-6)
    for one, other in zip(here, there, strict=True):
        assert other.converged and abs(one.energy - other.energy) < 1e-9
        assert one.gradient is not None and other.gradient is not None
        assert np.abs(one.gradient - other.gradient).max() < 1e-6
