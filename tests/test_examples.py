"""Every example runs, and its numbers are right; what the documentation says exists."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from pyscf import df, gto, scf

import cuanto
from cuanto.basis import auxiliary_basis

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


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
    shipped = Path(cuanto.__file__).parent / "data" / "molecules" / f"{molecule_name}.xyz"
    molecule = cuanto.Molecule.from_xyz(shipped)
    basis = cuanto.Basis(basis_name, molecule)
    aux = auxiliary_basis(basis, molecule, kind="jk")
    assert example["hartree_fock"](molecule, basis) == pytest.approx(pyscf_energy(molecule, basis, aux), abs=1e-8)


def test_direct_hartree_fock_equals_pyscf() -> None:
    example = runpy.run_path(str(EXAMPLES / "02_direct_hartree_fock.py"))
    molecule = cuanto.Molecule.from_xyz(Path(cuanto.__file__).parent / "data" / "molecules" / "water.xyz")
    expected = float(scf.RHF(pyscf_molecule(molecule, cuanto.Basis("cc-pvdz", molecule))).run(conv_tol=1e-11).e_tot)
    assert example["main"]() == pytest.approx((expected, expected), abs=1e-8)


@pytest.mark.parametrize("script", sorted(EXAMPLES.glob("[0-9]*.py")), ids=lambda path: path.stem)
def test_example_runs_as_a_script(script: Path) -> None:
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert "converged" in done.stdout
    assert done.stderr == ""


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


def test_python_of_the_readme_runs_in_a_checkout() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_links_and_geometries_of_the_documentation_exist(page: Path) -> None:
    text = page.read_text()
    for link in re.findall(r"\]\((?!https?:)([^)#]+)", text):
        assert (page.parent / link).exists(), link
    for path in re.findall(r"\bsrc/[\w/.-]+\.xyz", text):
        assert (ROOT / path).exists(), path


def test_every_page_is_in_the_navigation() -> None:
    listed = re.findall(r"^  - .*: (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert sorted(listed) == [path.name for path in PAGES[1:]]


def test_every_environment_variable_is_documented() -> None:
    sources = "".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    documented = re.findall(r"^`(CUANTO_\w+)`$", (ROOT / "docs" / "settings.md").read_text(), re.MULTILINE)
    assert sorted(documented) == sorted(set(re.findall(r"\bCUANTO_[A-Z_]+", sources)))
