"""Whole calculations on a device with memory of its own, against the CPU: every Python code path of a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cuanto
from cuanto import Molecule
from cuanto.backends.base import get_backend
from cuanto.scf import orthogonal
from cuanto.scf.checkpoint import Checkpoint
from cuanto.scf.pseudodiagonalise import Pseudo
from cuanto.semiempirical.purify import Purification
from fitting_cases import DATA, Device
from tolerances import CPU_CUDA

WATER = "3\n\nO 0.0 0.1 0.117\nH 0.2 0.757 -0.469\nH 0.0 -0.757 -0.469\n"
HYDROXYL = "2\n\nO 0.0 0.1 0.117\nH 0.2 0.757 -0.469\n"
SULPHIDE = "3\n\nS 0.0 0.1 0.117\nH 0.2 0.957 -0.669\nH 0.0 -0.957 -0.669\n"
H2 = "2\n\nH 0.0 0.0 0.0\nH 0.0 0.1 0.74\n"
SINGLE, ROUNDED = 5e-8, 3e-7
"""Tolerances of single-precision energies, Hartree, without their computed errors and with them: devices, and BLAS on
different processors, sum in different orders."""
CASES: dict[str, dict[str, Any]] = {
    "rhf": {},
    "uhf": {},
    "rohf": {"stability": "check"},
    "uhf, descent and stability": {"accelerator": "descent", "stability": "follow"},
    "rhf, ADIIS": {"accelerator": "adiis"},
    "rhf, rotations": {"diagonaliser": "pseudo"},
    "rhf, rotations pair by pair": {"diagonaliser": "pseudo", "variant": "jacobi"},
    "rhf, smearing": {"smearing": 0.02},
    "rhf, shift and damping": {"level_shift": 0.2, "damping": 0.2},
    "rhf, orbitals of the core": {"guess": "core", "guess_mixing": 0.3},
    "rhf, profile": {"profile": True},
    "rhf, surroundings": {"field": [0.0, 0.01, 0.02], "point_charges": [[0.5, -0.5], [[5, 0, 0], [0, 6, 0]]]},
    "uhf, charges and spins of the guess": {"atomic_charges": [-0.4, 0.4], "atomic_spins": [0.9, 0.1]},
    "lda": {},
    "b3lyp-d3bj": {},
    "cam-b3lyp": {},
    "tpss, open shell": {"multiplicity": 2},
    "pbe, mixed precision": {"precision": "mixed"},
    "pbe, single precision": {"precision": "single"},
}


@pytest.fixture(autouse=True)
def basis_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUANTO_BASIS_PATH", str(DATA / "basis"))


@pytest.fixture(params=["algebra on the device", "algebra on the host"])
def algebra_device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Small matrices on the host, or all on the device."""
    if request.param == "algebra on the device":
        monkeypatch.setattr(orthogonal, "HOST_FUNCTIONS", 0)
    yield request.param


def calculate(case: str, backend: Any, **more: Any) -> Any:
    method, options = case.split(",")[0], dict(CASES[case])
    open_shell = options.pop("multiplicity", 1) == 2 or method in ("uhf", "rohf")
    molecule = Molecule.from_string(HYDROXYL if open_shell else WATER, multiplicity=2 if open_shell else 1)
    if method not in ("rhf", "uhf", "rohf"):
        options["grid"] = (15, 50)
    given = {"fitting": "jk", "auxbasis": "cc-pvdz-jkfit", "energy_tolerance": 1e-10, "gradient_tolerance": 1e-7}
    return cuanto.energy(molecule, method, "6-31g", backend=backend, **given, **options, **more)


@cache
def on_the_cpu(case: str) -> Any:
    return calculate(case, "cpu")


@pytest.mark.parametrize("case", CASES)
def test_energies_of_a_device(case: str, algebra_device: str) -> None:
    expected, found = on_the_cpu(case), calculate(case, Device())
    assert found.converged and expected.converged
    single = "single" in case
    assert abs(found.energy - expected.energy) < (ROUNDED if single else CPU_CUDA)
    if single:
        exact, other = (result.energy - result.known_errors["precision"] for result in (found, expected))
        assert abs(exact - other) < SINGLE
    assert abs(found.iterations - expected.iterations) <= 1
    assert isinstance(found.density, np.ndarray) and isinstance(found.coefficients, np.ndarray)
    np.testing.assert_allclose(found.dipole, expected.dipole, rtol=0, atol=1e-4 if single else 1e-6)


def test_checkpoint_of_a_device(algebra_device: str, tmp_path: Path) -> None:
    device, known = Device(), on_the_cpu("rhf")
    keep = Checkpoint(tmp_path / "water.h5", known.molecule, known.basis, "rhf", device)
    calculate("rhf", device, on_iteration=keep)
    again = calculate("rhf", "cpu", guess=tmp_path / "water.h5")
    assert again.iterations <= 3 and abs(again.energy - on_the_cpu("rhf").energy) < CPU_CUDA


def test_orbitals_of_a_device_start_another_calculation(algebra_device: str) -> None:
    again = calculate("rhf", Device(), guess=calculate("rhf", Device()))
    assert again.iterations <= 3 and abs(again.energy - on_the_cpu("rhf").energy) < CPU_CUDA


@pytest.mark.parametrize("make", [partial(Pseudo, variant="economical"), Purification])
def test_orbitals_of_large_systems(make: Any) -> None:
    """Every step gives the same orbitals as on the CPU; they are orthonormalised by Cholesky factors."""
    rng, n, o = np.random.default_rng(0), 40, 13
    levels = np.concatenate([np.linspace(-2.0, -0.5, o), np.linspace(0.3, 2.0, n - o)])
    n_sm, changes = np.where(np.arange(n) < o, 2.0, 0.0)[None], 0.01 * rng.normal(size=(4, n, n))
    found = []
    for backend in (get_backend("cpu"), Device()):
        diagonaliser, C_sjm, steps = make(backend), backend.to_device(np.eye(n)[None]), []
        for change in changes:
            F_sjk = backend.to_device((np.diag(levels) + change + change.T)[None])
            C_sjm, eps_sm, step = diagonaliser(F_sjk, C_sjm, n_sm, 0.0)
            steps.append(step)
        C = backend.to_host(C_sjm)[0]
        assert np.abs(C.T @ C - np.eye(n)).max() < 1e-12
        found.append((steps, C, backend.to_host(eps_sm)))
    (steps, C, eps), others = found
    assert steps == others[0] and set(steps) <= {"block", "sp2"}
    np.testing.assert_allclose(C, others[1], rtol=0, atol=1e-12)
    np.testing.assert_allclose(eps, others[2], rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "options",
    [{"fitting": "none"}, {"fitting": "j", "auxbasis": "cc-pvdz-jkfit"}, {"fitting": "none", "precision": "mixed"}],
    ids=["direct", "fitted J", "direct, mixed precision"],
)
def test_repulsion_without_fitting(options: dict[str, Any]) -> None:
    """A small molecule with functions up to p, or s in mixed precision, because simulated kernels are slow."""
    mol = Molecule.from_string(H2)
    basis = "6-31g" if "precision" in options else "6-31g**"
    found = [cuanto.energy(mol, "rhf", basis, backend=backend, **options) for backend in ("cpu", "simt")]
    assert abs(found[0].energy - found[1].energy) < (1e-7 if "precision" in options else CPU_CUDA)


@pytest.mark.parametrize("molecule", [WATER, HYDROXYL, SULPHIDE], ids=["water", "hydroxyl", "with d functions"])
@pytest.mark.parametrize("diagonaliser", ["auto", "full", "pseudo", "sp2"])
def test_semiempirical_energies_of_a_device(molecule: str, diagonaliser: str, algebra_device: str) -> None:
    mol = Molecule.from_string(molecule, multiplicity=2 if molecule == HYDROXYL else 1)
    cpu, simt = (cuanto.energy(mol, "pm6", backend=name, diagonaliser=diagonaliser) for name in ("cpu", "simt"))
    assert simt.converged and abs(cpu.energy - simt.energy) < CPU_CUDA and cpu.iterations == simt.iterations
    np.testing.assert_allclose(simt.gradient, cpu.gradient, rtol=0, atol=1e-7)
