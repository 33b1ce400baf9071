"""The energy of core potentials in whole calculations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cuanto
from cuanto.backends.base import get_backend
from cuanto.methods import Calculation, Request
from cuanto.terms import CorePotentials
from paths import DATA
from scf_cases import exact_core_hamiltonian, oracle
from tolerances import CPU_CUDA, ENERGY, FINITE_DIFFERENCE, FORCE_CPU_CUDA

TIGHT = {"gradient_tolerance": 1e-9, "energy_tolerance": 1e-12, "fitting": "none"}
HYDROGEN = str(DATA / "basis" / "6-31g.H.nw")
IODINE = str(DATA / "basis" / "lanl2dz.I.nw")


def hydrogen_iodide(charge: int = 0) -> tuple[cuanto.Molecule, cuanto.Basis]:
    """The potential has terms of the powers 0, 1 and 2."""
    plain = cuanto.Molecule.from_string("2\n\nH 0 0.1 0\nI 0.2 0 1.61\n")
    molecule = cuanto.Molecule(plain.symbols, plain.R_ax, charge, 1 + abs(charge))
    return molecule, cuanto.Basis({"H": HYDROGEN, "I": IODINE}, molecule)


def run(charge: int, backend: str = "cpu") -> Any:
    molecule, basis = hydrogen_iodide(charge)
    return cuanto.gradient(molecule, "uhf" if charge else "rhf", basis, backend=backend, **TIGHT)


@pytest.mark.parametrize("charge", [0, 1])
def test_energy_and_gradient_against_pyscf(charge: int) -> None:
    from pyscf import scf

    molecule, basis = hydrogen_iodide(charge)
    mole = oracle(molecule, basis)
    h_pq = exact_core_hamiltonian(mole, basis)
    method = (scf.UHF if charge else scf.RHF)(mole)
    method.get_hcore = lambda *_: h_pq
    method.conv_tol, method.conv_tol_grad = 1e-12, 1e-8
    found = run(charge)
    assert found.energy == pytest.approx(method.kernel(), abs=ENERGY)
    np.testing.assert_allclose(found.gradient, method.nuc_grad_method().kernel(), rtol=0, atol=FINITE_DIFFERENCE)
    assert "core potentials" in found.energies


@pytest.mark.gpu
@pytest.mark.parametrize("charge", [0, 1])
def test_cpu_and_cuda_agree(charge: int) -> None:
    cpu, gpu = run(charge), run(charge, "cuda")
    assert gpu.energy == pytest.approx(cpu.energy, abs=CPU_CUDA)
    np.testing.assert_allclose(gpu.gradient, cpu.gradient, rtol=0, atol=FORCE_CPU_CUDA)


def test_the_term_belongs_to_bases_with_potentials() -> None:
    molecule, basis = hydrogen_iodide()
    calculation = Calculation.of(Request.of(molecule, "hf", basis, backend="cpu", fitting="none"))
    (term,) = (term for term in calculation.terms if isinstance(term, CorePotentials))
    D_spq = np.random.default_rng(3).normal(size=(2, basis.nbf, basis.nbf))
    energy, F_spq = term.fock(D_spq, None)
    assert F_spq is not None and float(energy) == pytest.approx(float((F_spq * D_spq).sum()))
    light = cuanto.Molecule.from_string("2\n\nH 0 0 0\nH 0 0 0.74\n")
    request = Request.of(light, "hf", cuanto.Basis(HYDROGEN, light), backend="cpu", fitting="none")
    assert not any(isinstance(term, CorePotentials) for term in Calculation.of(request).terms)


def test_core_guess_knows_the_potentials() -> None:
    """Without them the lowest orbitals would be deep in the wells of the reduced charges."""
    molecule, basis = hydrogen_iodide()
    calculation = Calculation.of(Request.of(molecule, "hf", basis, backend="cpu", fitting="none"))
    states = list(calculation.states("core"))
    assert states[-1].converged
    assert states[-1].energy == pytest.approx(run(0).energy, abs=1e-7)
    assert calculation.context.backend is get_backend("cpu")
