"""Dipoles, charges, spin and orbital energies: against the reference and PySCF, and exact relations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cuanto
from cuanto import properties
from cuanto.methods import Result
from cuanto.system.masses import MASSES, dipole_origin
from scf_cases import record, run_record, water

TIGHT: dict[str, Any] = {"gradient_tolerance": 1e-7, "energy_tolerance": 1e-11}
DIPOLE = 1e-5
"""Tolerance of dipole moments against another program, Debye."""
CASES = [
    ("rhf_sto3g_631gss", {"molecule": "benzene", "basis": "sto-3g"}),
    ("rhf_ccpvdz", {"molecule": "alkane_03", "fitting": "RI-J and RI-K"}),
    ("open_shell", {"molecule": "CH3", "method": "UHF", "basis": "cc-pvdz"}),
    ("open_shell", {"molecule": "O2", "method": "UHF", "basis": "cc-pvdz"}),
]


@pytest.mark.parametrize(("file", "wanted"), CASES, ids=[w["molecule"] for _, w in CASES])
def test_properties_of_the_reference(file: str, wanted: dict[str, Any]) -> None:
    given = record(file, **wanted)
    result = run_record(given, **TIGHT)
    assert np.abs(result.dipole_debye - given["dipole_debye"]).max() < DIPOLE
    assert np.abs(result.mulliken_charges - given["mulliken_charges"]).max() < 1e-5
    assert np.abs(np.array(result.homo) - given["homo"]).max() < 1e-6
    assert np.abs(np.array(result.lumo) - given["lumo"]).max() < 1e-6
    if "S2" in given:
        assert abs(result.s_squared - given["S2"]) < 1e-5
    else:
        assert result.s_squared == 0.0


@pytest.fixture(scope="module", params=[True, False], ids=["pure", "cartesian"])
def water_result(request: pytest.FixtureRequest) -> Result:
    mol, orbital = water(request.param)
    return cuanto.energy(mol, "hf", orbital, fitting="none", backend="cpu", **TIGHT)


def test_charges_add_up(water_result: Result) -> None:
    for charges in (water_result.mulliken_charges, water_result.loewdin_charges):
        assert abs(charges.sum()) < 1e-9
        assert charges[0] < -0.1 and charges[1:].min() > 0.05


def test_loewdin_charges_against_an_independent_square_root(water_result: Result) -> None:
    """Loewdin populations from S^1/2 D S^1/2, with the root of S computed independently from singular vectors."""
    S = cuanto.integrals.overlap(water_result.basis, backend="cpu")
    norm = 1.0 / np.sqrt(np.diag(S))
    L = np.linalg.cholesky(S * np.outer(norm, norm))
    U, s, _ = np.linalg.svd(L)
    D = water_result.density[0] / np.outer(norm, norm)
    root = U @ np.diag(s) @ U.T
    electrons = np.diag(root @ D @ root)
    atoms = water_result.basis.function_atoms
    charges = water_result.molecule.numbers - np.bincount(atoms, weights=electrons)
    assert np.abs(charges - water_result.loewdin_charges).max() < 1e-9


def test_dipole_of_an_ion_is_about_its_centre_of_mass(water_result: Result) -> None:
    mol, shift = water_result.molecule, np.array([1.0, -2.0, 0.5])
    moved = cuanto.Molecule(mol.symbols, mol.R_ax + shift)
    basis = cuanto.Basis.from_shells(water_result.basis.shells, moved.R_ax)
    mu = properties.dipole(moved, basis, water_result.state.D_spq, water_result.backend)
    assert np.abs(mu - water_result.dipole).max() < 1e-9
    D_spq = 0.9 * water_result.state.D_spq  # a tenth of the electrons missing: charge +1
    here, there = (cuanto.Molecule(mol.symbols, R_ax, 1) for R_ax in (mol.R_ax, moved.R_ax))
    still = properties.dipole(here, water_result.basis, D_spq, water_result.backend)
    assert np.abs(properties.dipole(there, basis, D_spq, water_result.backend) - still).max() < 1e-9
    unshifted = properties.dipole(mol, water_result.basis, D_spq, water_result.backend)
    mass_a = np.array([15.999, 1.008, 1.008])
    assert np.abs(unshifted - still - mass_a @ mol.R_ax / mass_a.sum()).max() < 1e-9


def test_masses() -> None:
    assert len(MASSES) == 118 and MASSES["H"] == 1.008 and MASSES["Og"] == 294.214
    mass_a, R_ax = np.ones(1), np.ones((1, 3))
    assert not dipole_origin(mass_a, R_ax, 0).any() and dipole_origin(mass_a, R_ax, -1).all()


def test_spin_of_orthogonal_orbitals_is_exact() -> None:
    D = np.zeros((2, 6, 6))
    for s, occupied in ((0, [0, 1, 2, 3]), (1, [0, 1])):
        D[s, occupied, occupied] = 1.0
    assert properties.s_squared(D, np.eye(6)) == pytest.approx(2.0, abs=1e-14)
    D[1] = np.diag([0.0, 0.0, 0.0, 0.0, 1.0, 1.0])
    assert properties.s_squared(D, np.eye(6)) == pytest.approx(4.0, abs=1e-14)


def test_quadrupole_moment_against_pyscf() -> None:
    """Moments of an ion about its centre of mass; second moments have a trace, the quadrupole moment has none."""
    from pyscf import gto

    mol = cuanto.Molecule.from_string("3\n\nO 0.3 0 0.117\nH 0 0.757 -0.469\nH 0.1 -0.757 -0.469\n", charge=1)
    found = cuanto.energy(mol, "uhf", "sto-3g", fitting="none", backend="cpu", **TIGHT)
    atoms = list(zip(mol.symbols, mol.R_ax.tolist(), strict=True))
    other = gto.M(atom=atoms, unit="Bohr", basis="sto-3g", charge=1, spin=1, verbose=0)
    D_pq = other.UHF().run(conv_tol=1e-12).make_rdm1().sum(axis=0)
    mass_a = mol.nuclei.masses
    with other.with_common_orig(mass_a @ mol.R_ax / mass_a.sum()):
        r2_xypq = other.intor("int1e_rr").reshape(3, 3, other.nao, other.nao)
    d_ax = mol.R_ax - mass_a @ mol.R_ax / mass_a.sum()
    expected = np.einsum("a,ax,ay->xy", mol.nuclei.charges, d_ax, d_ax) - np.einsum("xypq,pq->xy", r2_xypq, D_pq)
    np.testing.assert_allclose(found.second_moments, expected, rtol=0, atol=1e-6)
    np.testing.assert_allclose(found.quadrupole, (3 * expected - np.trace(expected) * np.eye(3)) / 2, rtol=0, atol=2e-6)
    assert abs(np.trace(found.quadrupole)) < 1e-12


def test_second_moments_do_not_depend_on_the_origin(water_result: Result) -> None:
    mol, shift = water_result.molecule, np.array([1.0, -2.0, 0.5])
    moved = cuanto.Molecule(mol.symbols, mol.R_ax + shift)
    basis = cuanto.Basis.from_shells(water_result.basis.shells, moved.R_ax)
    there = properties.second_moments(moved, basis, water_result.state.D_spq, water_result.backend)
    np.testing.assert_allclose(there, water_result.second_moments, rtol=0, atol=1e-9)
