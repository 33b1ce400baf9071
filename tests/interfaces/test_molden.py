"""Molden files, read by PySCF: the same orbitals of the same functions."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cuanto
from cuanto import Basis, Molecule
from cuanto.basis import Shell
from cuanto.errors import InputError
from cuanto.interfaces.molden import molden_text, write_molden
from fitting_cases import DATA, molecule


@pytest.fixture(autouse=True)
def basis_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUANTO_BASIS_PATH", str(DATA / "basis"))


def loaded(path: Path) -> tuple[Any, Any, Any, Any, Any, Any]:
    from pyscf.tools import molden

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tuple(molden.load(str(path)))  # type: ignore[return-value]


def energy_of(mol: Any, C_spm: list[Any], n_sm: list[Any]) -> float:
    """Hartree-Fock energy of these orbitals by PySCF's exact integrals."""
    from pyscf import scf

    D_spq = np.array([(C_pm * n_m) @ C_pm.T for C_pm, n_m in zip(C_spm, n_sm, strict=True)])
    if len(D_spq) == 1:
        return float(scf.RHF(mol).energy_tot(dm=D_spq[0]))
    return float(scf.UHF(mol).energy_tot(dm=D_spq))


@pytest.mark.parametrize(
    ("name", "method", "basis", "spherical"),
    [
        ("water_01", "rhf", "cc-pvdz", True),
        ("water_01", "rhf", "cc-pvdz", False),
        ("water_01", "rhf", "cc-pvtz", True),
        ("water_01", "rhf", "cc-pvtz", False),
        ("CH3", "uhf", "cc-pvdz", True),
    ],
)
def test_pyscf_finds_the_same_energy(name: str, method: str, basis: str, spherical: bool, tmp_path: Path) -> None:
    original = molecule(name)
    result = cuanto.energy(original, method, Basis(basis, original, spherical=spherical), fitting="none", backend="cpu")
    write_molden(tmp_path / "a.molden", result)
    again = Molecule.from_file(tmp_path / "a.molden")
    assert (again.symbols, again.charge, again.multiplicity) == (
        original.symbols,
        original.charge,
        original.multiplicity,
    )
    mol, eps, C, n, _, spins = loaded(tmp_path / "a.molden")
    mol.spin = original.multiplicity - 1
    S = mol.intor("int1e_ovlp")
    if method == "rhf":
        assert set(spins) == {"ALPHA"}
        eps, C, n = [eps], [C], [n]
    for s in range(len(C)):
        np.testing.assert_allclose(eps[s], result.orbital_energies[s], atol=1e-10)
        np.testing.assert_allclose(n[s], result.occupations[s], atol=1e-8)
        np.testing.assert_allclose(C[s].T @ S @ C[s], np.eye(len(eps[s])), atol=1e-7)
    assert energy_of(mol, C, n) == pytest.approx(result.energy, abs=1e-7)


FIT = {"fitting": "jk", "auxbasis": "def2-universal-jkfit"}
"""Options of a fitted calculation, which needs no kernels for quartets of g functions."""


def test_g_functions_and_their_order(tmp_path: Path) -> None:
    """One atom with shells up to g: every orbital is normalised as PySCF reads it, and they are the eigenfunctions."""
    helium = Molecule(["He"], [[0.1, 0.2, 0.3]])
    for pure in (True, False):
        shells = [Shell.from_table(0, l, [1.5, 0.4], [[0.6], [0.5]], pure) for l in range(5)]
        basis = Basis.from_shells(shells, helium.R_ax, symbols=["He"])
        result = cuanto.energy(helium, "rhf", basis, **FIT, backend="cpu", field=(0.02, 0.03, -0.01))
        write_molden(tmp_path / "he.molden", result)
        mol, _, C, n, _, _ = loaded(tmp_path / "he.molden")
        assert mol.cart != pure
        np.testing.assert_allclose(C.T @ mol.intor("int1e_ovlp") @ C, np.eye(C.shape[1]), atol=1e-7)
        r_x = np.einsum("xpq,pi,qi->x", mol.intor("int1e_r"), C, C * n)
        np.testing.assert_allclose(2.0 * helium.R_ax[0] - r_x, result.dipole, atol=1e-7)


def test_restricted_open_shells_have_one_set(tmp_path: Path) -> None:
    methyl = molecule("CH3")
    result = cuanto.energy(methyl, "rohf", "cc-pvdz", fitting="none", backend="cpu")
    write_molden(tmp_path / "a.molden", result)
    assert Molecule.from_file(tmp_path / "a.molden").multiplicity == 2
    _, eps, _, n, _, spins = loaded(tmp_path / "a.molden")
    assert set(spins) == {"ALPHA"} and len(eps) == result.basis.nbf
    assert sorted(set(np.round(n, 6))) == [0.0, 1.0, 2.0] and n.sum() == pytest.approx(9.0)


def test_pyscf_finds_the_functions_of_ghosts(tmp_path: Path) -> None:
    pair = Molecule.from_text("O 0 0 0; H 0.3 0.4 0.8; H 1 1 -0.4; Gh-O 0 3 0; Gh-I 0 0 3", None, None)
    result = cuanto.energy(pair, "rhf", "def2-svp", backend="cpu")
    write_molden(tmp_path / "a.molden", result)
    assert Molecule.from_file(tmp_path / "a.molden").symbols == pair.symbols
    mol, _, C, n, _, _ = loaded(tmp_path / "a.molden")
    assert mol.atom_charges().tolist() == [8, 1, 1, 0, 0]
    np.testing.assert_allclose(C.T @ mol.intor("int1e_ovlp") @ C, np.eye(result.basis.nbf), atol=1e-7)
    r_x = np.einsum("xpq,pi,qi->x", mol.intor("int1e_r"), C, C * n)
    np.testing.assert_allclose(pair.nuclei.charges @ pair.R_ax - r_x, result.dipole, atol=1e-6)


def test_basis_sets_that_molden_does_not_support() -> None:
    helium = Molecule(["He"], [[0.0, 0.0, 0.0]])
    s = Shell.from_table(0, 0, [1.5, 0.4], [[0.6], [0.5]], True)
    h = Shell.from_table(0, 5, [1.0], [[1.0]], True)
    both = [Shell.from_table(0, 2, [1.0 + pure], [[1.0]], pure) for pure in (True, False)]
    for shells, message in (([s, h], "functions up to g"), ([s, *both], "Cartesian and pure functions of l = 2")):
        basis = Basis.from_shells(shells, helium.R_ax, symbols=["He"])
        result = cuanto.energy(helium, "rhf", basis, **FIT, backend="cpu", guess="core")
        with pytest.raises(InputError, match=message):
            molden_text(result)


def test_unwritable_path(tmp_path: Path) -> None:
    helium = Molecule(["He"], [[0.0, 0.0, 0.0]])
    basis = Basis.from_shells([Shell.from_table(0, 0, [1.5, 0.4], [[0.6], [0.5]], True)], helium.R_ax, symbols=["He"])
    result = cuanto.energy(helium, "rhf", basis, fitting="none", backend="cpu", guess="core")
    with pytest.raises(InputError, match="cannot write"):
        write_molden(tmp_path / "nowhere" / "a.molden", result)
    assert not list(tmp_path.iterdir())
