"""NDDO methods on a GPU: agreement with the CPU and the reference."""

from __future__ import annotations

import numpy as np
import pytest

from cuanto import energies
from cuanto.backends.base import get_backend
from cuanto.methods.semiempirical import Semiempirical
from cuanto.options import ScfOptions
from cuanto.scf.orthogonal import Frame
from cuanto.scf.pseudodiagonalise import Pseudo
from cuanto.semiempirical.constants import BOHR, HARTREE_IN_KCAL, RESCALE
from nddo_cases import DIAGONALISERS, METHODS, TIGHT, molecule, run, timing_geometry, values, water_cluster

pytestmark = pytest.mark.gpu

BOTH = ("cpu", "cuda")
ELEMENTS = [("Rh(CO)2Cl2-", "PM6"), ("FeF3_sextet", "PM6"), ("XeF4", "PM6"), ("CuSeH", "PM6"), ("HfCl4", "PM6")]
ELEMENTS += [("Fe(CO)5", "PM6"), ("Fe(CN)6_4-", "PM6")]  # several equivalent states
ELEMENTS += [("HeNH3", "AM1"), ("BCl2CH3", "AM1"), ("MoO3H2_model", "AM1"), ("EuF3_rm1", "RM1"), ("SeH2", "MNDO")]
KERNELS = ("CH3", "glycine", "CH3Br", "ICl", "SF6", "H3PO4")
"""Molecules with all elements of the reference, one and two spins; other molecules would run the same kernels."""


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", KERNELS)
def test_heats_and_gradients(name: str, method: str) -> None:
    known = values(name, method)
    result = run(molecule(name), method, "cuda", energy_tolerance=1e-12, gradient_tolerance=1e-8)
    assert result.converged
    assert abs(result.heat_of_formation - known["heat_of_formation_kcal_mol"]) < 2e-6
    gradient = result.gradient * (HARTREE_IN_KCAL / BOHR * RESCALE)
    assert np.abs(gradient - np.reshape(known["gradient_kcal_mol_A"], (-1, 3))).max() < 2e-5


@pytest.mark.parametrize(("name", "method"), ELEMENTS)
def test_all_elements(name: str, method: str) -> None:
    """Heats of the reference, energies and gradients of the CPU; both programs find the same of several states."""
    mol, options = molecule(name, method), {"energy_tolerance": 1e-11, "gradient_tolerance": 1e-8}
    cpu, gpu = (run(mol, method, backend, **options) for backend in ("cpu", "cuda"))
    assert gpu.converged and abs(cpu.energy - gpu.energy) < 1e-9
    assert abs(gpu.heat_of_formation - values(name, method)["heat_of_formation_kcal_mol"]) < 1e-5
    assert np.abs(cpu.gradient - gpu.gradient).max() < 1e-7


def test_batches_of_all_elements() -> None:
    mixed = [molecule(name) for name in ("TiCl4", "SiH4", "TiCl4", "AgH", "CuSeH", "HeNH3", "KrF2")]
    rows = [energies(mixed, "pm6", backend=b, gradient=True, gradient_tolerance=1e-7, workers=0) for b in BOTH]
    for one, other in zip(*rows, strict=True):
        assert other.converged and abs(one.energy - other.energy) < 1e-9
        assert one.gradient is not None and other.gradient is not None
        assert np.abs(one.gradient - other.gradient).max() < 1e-6


@pytest.mark.parametrize("name", ["water_64", "polyethylene_C83", "water_128"])
@pytest.mark.parametrize("options", DIAGONALISERS.values(), ids=DIAGONALISERS)
def test_every_diagonaliser(name: str, options: dict[str, str]) -> None:
    mol = timing_geometry(name)
    cpu, gpu = run(mol, "pm6", "cpu"), run(mol, "pm6", "cuda", **options)
    assert gpu.converged and abs(cpu.energy - gpu.energy) < 1e-9


def test_large_energies_do_not_suffer_from_rounding() -> None:
    """256 waters: terms of 2e5 Hartree cancel before the sum is rounded."""
    mol = water_cluster(256)
    cpu, gpu = (run(mol, "pm6", backend, **TIGHT) for backend in BOTH)  # by default 2e-10 are left of the SCF
    assert gpu.converged and abs(cpu.energy - gpu.energy) < 1e-10


def test_single_precision_first() -> None:
    mol = timing_geometry("water_64")

    def single_first(frame: Frame) -> Pseudo:
        return Pseudo(frame, "economical", mixed=True)

    options = ScfOptions(diagonaliser="pseudo", variant="block")
    mixed = Semiempirical(mol, "pm6", get_backend("cuda"), options, diagonaliser=single_first).run()
    assert mixed.converged and abs(mixed.energy - run(mol, "pm6", "cuda").energy) < 1e-9


def test_recomputed_integrals() -> None:
    mol = molecule("H3PO4")
    kept, recomputed = run(mol, "pm6", "cuda", **TIGHT), run(mol, "pm6", "cuda", max_memory=3e4, **TIGHT)
    assert not recomputed.calculation.engine.stored
    assert abs(kept.energy - recomputed.energy) < 1e-10


def test_batches() -> None:
    mixed = [molecule(name) for name in ("glycine", "CH3", "glycine", "CH3SH", "ICl", "O2")]
    cpu = energies(mixed, "pm6", backend="cpu", gradient=True, gradient_tolerance=1e-6, workers=0)
    gpu = energies(mixed, "pm6", backend="cuda", gradient=True, gradient_tolerance=1e-6, workers=0)
    for one, other in zip(cpu, gpu, strict=True):
        assert other.converged and abs(one.energy - other.energy) < 1e-9
        assert one.gradient is not None and other.gradient is not None
        assert np.abs(one.gradient - other.gradient).max() < 1e-6
