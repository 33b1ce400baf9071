"""Every example runs, and its numbers are right."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyscf import df, gto, scf

import cuanto
from cuanto.basis import auxiliary_basis
from paths import ROOT

EXAMPLES = ROOT / "examples"
MOLECULES = Path(cuanto.__file__).parent / "data" / "molecules"


def pyscf_shells(basis: cuanto.Basis, atom: int) -> list[list[object]]:
    """The shells of one atom as PySCF lists them: coefficients of normalised primitives."""
    return [
        [shell.l, *np.column_stack([shell.exponents, shell.coefficients / norm[:, None]]).tolist()]
        for shell in basis.shells
        if shell.atom == atom
        for norm in [gto.gto_norm(shell.l, shell.exponents)]
    ]


def labels_of(molecule: cuanto.Molecule) -> list[str]:
    return [f"{symbol}{a}" for a, symbol in enumerate(molecule.symbols)]


def pyscf_molecule(molecule: cuanto.Molecule, basis: cuanto.Basis) -> gto.Mole:
    labels = labels_of(molecule)
    return gto.M(
        atom=list(zip(labels, molecule.R_ax.tolist(), strict=True)),
        unit="Bohr",
        basis={label: pyscf_shells(basis, a) for a, label in enumerate(labels)},
        charge=molecule.charge,
        cart=not basis.spherical,
        verbose=0,
    )


def pyscf_energy(molecule: cuanto.Molecule, basis: cuanto.Basis, aux: cuanto.Basis) -> float:
    """RI-RHF by PySCF with exactly our shells, orbital and auxiliary."""
    mol = pyscf_molecule(molecule, basis)
    method = scf.RHF(mol).density_fit()
    fitting = {label: pyscf_shells(aux, a) for a, label in enumerate(labels_of(molecule))}
    method.with_df = df.DF(mol, auxbasis=fitting)
    method.conv_tol = 1e-11
    return float(method.kernel())


@pytest.mark.parametrize(("molecule_name", "basis_name"), [("water", "cc-pvdz"), ("benzene", "sto-3g")])
def test_ri_hartree_fock_equals_pyscf(molecule_name: str, basis_name: str) -> None:
    example = runpy.run_path(str(EXAMPLES / "01_ri_hartree_fock.py"))
    molecule = cuanto.Molecule.from_xyz(MOLECULES / f"{molecule_name}.xyz")
    basis = cuanto.Basis(basis_name, molecule)
    aux = auxiliary_basis(basis, molecule, kind="jk")
    assert example["hartree_fock"](molecule, basis) == pytest.approx(pyscf_energy(molecule, basis, aux), abs=1e-8)


def test_direct_hartree_fock_equals_pyscf() -> None:
    example = runpy.run_path(str(EXAMPLES / "02_direct_hartree_fock.py"))
    molecule = cuanto.Molecule.from_xyz(MOLECULES / "water.xyz")
    expected = float(scf.RHF(pyscf_molecule(molecule, cuanto.Basis("cc-pvdz", molecule))).run(conv_tol=1e-11).e_tot)
    assert example["main"]() == pytest.approx((expected, expected), abs=1e-8)


ARGUMENTS: dict[str, tuple[object, ...]] = {"05_pm6_cluster": (2,), "07_many_molecules": (8,)}
"""Arguments that make slow examples smaller."""


def run(name: str, capsys: pytest.CaptureFixture[str]) -> Any:
    """Run `main` of an example, which must converge, and return its result."""
    result = runpy.run_path(str(EXAMPLES / f"{name}.py"))["main"](*ARGUMENTS.get(name, ()))
    printed = capsys.readouterr()
    assert "converged" in printed.out and "NOT converged" not in printed.out
    assert printed.err == ""
    return result


def test_examples_are_numbered_and_run_as_scripts() -> None:
    scripts = sorted(EXAMPLES.glob("*.py"))
    assert [path.stem[:2] for path in scripts] == [f"{k:02d}" for k in range(1, len(scripts) + 1)]
    assert len(scripts) >= 10
    done = subprocess.run([sys.executable, str(scripts[0])], capture_output=True, text=True, check=True)
    assert "converged" in done.stdout and done.stderr == ""


def test_atom_in_its_own_basis(capsys: pytest.CaptureFixture[str]) -> None:
    atom, molecule = run("03_atom", capsys)
    assert atom == pytest.approx(molecule, abs=1e-7)


def test_b3lyp(capsys: pytest.CaptureFixture[str]) -> None:
    result = run("04_b3lyp", capsys)
    assert result.energy == pytest.approx(-76.35788, abs=1e-5)
    assert result.energy == pytest.approx(sum(result.energies.values()), abs=1e-9)


def test_cluster_with_and_without_diagonalisation(capsys: pytest.CaptureFixture[str]) -> None:
    energies = run("05_pm6_cluster", capsys)
    assert energies["full"] == pytest.approx(energies["rotations"], abs=1e-9)


def test_report(capsys: pytest.CaptureFixture[str]) -> None:
    page, cube = run("06_report", capsys)
    assert page.stat().st_size > 100_000 and cube.read_text().count("\n") > 1000


def test_many_molecules(capsys: pytest.CaptureFixture[str]) -> None:
    energies = run("07_many_molecules", capsys)
    assert len(energies) == 8 and max(energies) < -29.5


def test_ase(capsys: pytest.CaptureFixture[str]) -> None:
    energy, waves = run("08_ase", capsys)
    assert energy == pytest.approx(-319.0775, abs=1e-3)
    assert len(waves) == 3  # water has three vibrations


def test_own_integral_equals_pyscf(capsys: pytest.CaptureFixture[str]) -> None:
    quadrupole_x, worst = run("09_own_integral", capsys)
    assert worst < 1e-12
    assert quadrupole_x == pytest.approx([4.13, 4.13, -8.27], abs=0.02)  # benzene; experiment: -8.7
    example = runpy.run_path(str(EXAMPLES / "09_own_integral.py"))
    molecule = cuanto.Molecule.from_xyz(MOLECULES / "water.xyz")
    basis = cuanto.Basis("cc-pvdz", molecule)
    rr_xypq = pyscf_molecule(molecule, basis).intor("int1e_rr").reshape(3, 3, basis.nbf, basis.nbf)
    expected = np.stack([rr_xypq[x, x] for x in range(3)])
    np.testing.assert_allclose(example["second_moments"](basis, "cpu"), expected, atol=1e-11)


def test_hard_cases(capsys: pytest.CaptureFixture[str]) -> None:
    symmetric, followed, polarised, _, from_file, atoms = run("10_hard_cases", capsys)
    assert followed == pytest.approx(polarised, abs=1e-8) == pytest.approx(from_file, abs=1e-8)
    assert symmetric > atoms + 0.1 > followed + 0.1


def test_functionals_and_grids(capsys: pytest.CaptureFixture[str]) -> None:
    energies, by_grid = run("11_functionals_and_grids", capsys)
    assert energies["hf"] < 0.7 * energies["lda"] and all(215 < energies[name] < 230 for name in ("pbe", "b3lyp"))
    assert by_grid["medium"] == pytest.approx(by_grid["fine"], abs=1e-5)


def test_helium_basis(capsys: pytest.CaptureFixture[str]) -> None:
    size, error, bound = run("12_helium_basis", capsys)
    assert size == 7 and error < 1e-4 and 30 < bound < 45


def test_forces(capsys: pytest.CaptureFixture[str]) -> None:
    error, norm = run("13_forces", capsys)
    assert abs(error) < 1e-6 and norm < 0.02


def test_optimization(capsys: pytest.CaptureFixture[str]) -> None:
    from_hcn, from_hnc = run("14_optimization", capsys)
    assert from_hcn == pytest.approx(359.8, abs=0.2) and from_hnc == pytest.approx(304.1, abs=0.2)


def test_frequencies(capsys: pytest.CaptureFixture[str]) -> None:
    ratio, barrier = run("15_frequencies", capsys)
    assert ratio == pytest.approx(0.735, abs=0.01) and 10 < barrier < 60


@pytest.mark.parametrize(
    ("arguments", "variables", "expected"),
    [
        (["nowhere.xyz"], {}, "nowhere.xyz"),
        ([], {"CUANTO_CXX": "no-such-compiler"}, "no working C++ compiler"),
    ],
)
def test_example_explains_its_failure_in_one_line(
    arguments: list[str], variables: dict[str, str], expected: str
) -> None:
    command = [sys.executable, str(EXAMPLES / "01_ri_hartree_fock.py"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **variables})
    assert done.returncode == 2
    assert expected in done.stderr and done.stderr.count("\n") == 1


def test_every_example_is_tested_here() -> None:
    here = Path(__file__).read_text()
    for script in EXAMPLES.glob("*.py"):
        assert script.stem in here, script.name


def test_energy_is_conserved_in_a_drop_of_water(capsys: pytest.CaptureFixture[str]) -> None:
    energies = runpy.run_path(str(EXAMPLES / "16_qmmm.py"))["main"](waters=6, steps=3, backend="cpu")
    assert np.ptp(energies) < 2e-5
