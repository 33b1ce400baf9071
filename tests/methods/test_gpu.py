"""Whole calculations on a GPU agree with the CPU to 1e-9 Hartree."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cuanto
from cuanto.backends.base import get_backend
from cuanto.methods import Result
from scf_cases import basis, molecule, record, run_record

pytestmark = pytest.mark.gpu

SAME = 1e-9
THESIS = [f"alkane_{n:02d}" for n in range(1, 19)] + ["benzene", "phenol", "chlorobenzene", "ribavirin"]
"""The molecules of Esqueda's thesis."""


def both(**calculation: Any) -> list[Result]:
    """The calculation on the CPU and on the GPU."""
    return [cuanto.energy(**calculation, backend=backend) for backend in ("cpu", "cuda")]


@pytest.mark.parametrize("name", THESIS)
def test_molecules_of_the_thesis(name: str) -> None:
    fitted = record("rhf_ccpvdz", molecule=name, auxbasis="cc-pvdz-jkfit", fitting="RI-J and RI-K")
    cpu, gpu = (run_record(fitted, backend=backend) for backend in ("cpu", "cuda"))
    assert cpu.converged and gpu.converged
    assert abs(cpu.energy - gpu.energy) < SAME
    assert abs(gpu.energy - fitted["energy"]) < 1e-8


@pytest.mark.parametrize("method", ["uhf", "rohf"])
@pytest.mark.parametrize("fitting", ["none", "j", "jk"])
@pytest.mark.parametrize("name", ["NO2", "O2"])
def test_open_shells(name: str, fitting: str, method: str) -> None:
    mol = molecule(name)
    aux = basis("def2-universal-jkfit", mol) if fitting != "none" else None
    cpu, gpu = both(
        molecule=mol, method=method, basis=basis("cc-pvdz", mol), fitting=fitting, auxbasis=aux, gradient_tolerance=1e-6
    )
    assert cpu.converged and gpu.converged
    assert abs(cpu.energy - gpu.energy) < SAME
    assert np.allclose(cpu.dipole, gpu.dipole, atol=1e-6)
    assert cpu.s_squared == pytest.approx(gpu.s_squared, abs=1e-6)


@pytest.mark.parametrize(
    "options",
    [
        {"diagonaliser": "pseudo"},
        {"smearing": 0.01},
        {"smearing": 0.01, "level_shift": 0.3},
        {"level_shift": 0.3},
        {"damping": 0.3},
    ],
)
@pytest.mark.parametrize("name", ["benzene", "alkane_08"])
def test_options(name: str, options: dict[str, Any]) -> None:
    """The linear algebra of small molecules is done in main memory, that of large ones on the GPU."""
    mol = molecule(name)
    aux = basis("cc-pvdz-jkfit", mol)
    cpu, gpu = both(molecule=mol, method="rhf", basis=basis("cc-pvdz", mol), auxbasis=aux, **options)
    assert cpu.converged and gpu.converged
    assert abs(cpu.energy - gpu.energy) < SAME


def test_direct_with_incremental_fock_matrices() -> None:
    exact = record("rhf_sto3g_631gss", molecule="naphthalene", basis="6-31g**", cartesian=True)
    cpu, gpu = (run_record(exact, backend=backend) for backend in ("cpu", "cuda"))
    assert abs(cpu.energy - gpu.energy) < SAME
    assert abs(gpu.energy - exact["energy"]) < 1e-8


def test_mixed_precision() -> None:
    mol = molecule("benzene")
    double, mixed = (
        cuanto.energy(mol, "rhf", basis("6-31gss", mol), fitting="none", precision=precision, backend="cuda")
        for precision in ("double", "mixed")
    )
    assert double.converged and mixed.converged
    assert abs(double.energy - mixed.energy) < 1e-7


def test_surroundings_and_properties() -> None:
    mol = molecule("phenol")
    charges = (np.array([0.4, -0.4]), np.array([[0.0, 0.0, 9.0], [3.0, 8.0, 0.0]]))
    cpu, gpu = both(
        molecule=mol,
        basis=basis("cc-pvdz", mol),
        auxbasis=basis("cc-pvdz-jkfit", mol),
        point_charges=charges,
        field=[0.0, 0.001, 0.002],
        gradient_tolerance=1e-6,
    )
    assert abs(cpu.energy - gpu.energy) < SAME
    assert np.allclose(cpu.mulliken_charges, gpu.mulliken_charges, atol=1e-6)
    assert np.allclose(cpu.loewdin_charges, gpu.loewdin_charges, atol=1e-6)
    assert np.allclose(cpu.dipole, gpu.dipole, atol=1e-6)


def test_stability_is_followed_on_a_gpu() -> None:
    """Stretched N2 leaves its restricted solution."""
    mol = cuanto.Molecule.from_string("2\n\nN 0 0 0\nN 0 0 2.0\n")
    cpu, gpu = both(
        molecule=mol,
        method="uhf",
        basis=basis("cc-pvdz", mol),
        fitting="none",
        stability="follow",
        gradient_tolerance=1e-6,
    )
    assert cpu.converged and gpu.converged
    assert abs(cpu.energy - gpu.energy) < SAME


def test_a_checkpoint_of_the_cpu_starts_the_gpu(tmp_path: Any) -> None:
    mol = molecule("benzene")
    settings: dict[str, Any] = {"basis": basis("cc-pvdz", mol), "auxbasis": basis("cc-pvdz-jkfit", mol)}
    cpu = cuanto.energy(mol, "rhf", **settings, backend="cpu")
    gpu = cuanto.energy(mol, "rhf", **settings, backend="cuda", guess=cpu)
    assert abs(cpu.energy - gpu.energy) < SAME
    assert gpu.iterations < cpu.iterations


def test_several_arrays_come_back_together() -> None:
    device = get_backend("cuda")
    whole = device.xp.arange(12.0).reshape(3, 4)
    found = device.download([whole, whole.T, whole.sum(), whole[:, 1]])
    for host, on_gpu in zip(found, (whole, whole.T, whole.sum(), whole[:, 1]), strict=True):
        assert host.shape == on_gpu.shape and np.array_equal(host, device.to_host(on_gpu))


@pytest.mark.parametrize("method", ["uhf", "pbe"])
def test_search_for_the_lowest_state(method: str) -> None:
    boron = cuanto.Molecule.from_string("2\n\nB 0 0 0\nB 0 0 1.59\n", multiplicity=3)
    cpu, gpu = both(molecule=boron, method=method, basis=basis("def2-svp", boron), fitting="none")
    assert cpu.converged and gpu.converged and abs(cpu.energy - gpu.energy) < SAME
    points = 2 if method == "uhf" else 3
    assert [note for note in gpu.notes if note.startswith(f"search: {points} starting points")]
