"""Every example runs, and its numbers are right."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from pyscf import df, gto, scf

import cuanto
from cuanto.basis import auxiliary_basis

EXAMPLES = Path(__file__).parents[1] / "examples"


def pyscf_shells(basis: cuanto.Basis, atom: int) -> list[list[object]]:
    """The shells of one atom as PySCF lists them: coefficients of normalised primitives."""
    return [
        [shell.l, *np.column_stack([shell.exponents, shell.coefficients / norm[:, None]]).tolist()]
        for shell in basis.shells
        if shell.atom == atom
        for norm in [gto.gto_norm(shell.l, shell.exponents)]
    ]


def pyscf_energy(molecule: cuanto.Molecule, basis: cuanto.Basis, aux: cuanto.Basis) -> float:
    """RI-RHF by PySCF with exactly our shells, orbital and auxiliary."""
    labels = [f"{symbol}{a}" for a, symbol in enumerate(molecule.symbols)]
    shells = [{label: pyscf_shells(b, a) for a, label in enumerate(labels)} for b in (basis, aux)]
    mol = gto.M(
        atom=list(zip(labels, molecule.R_ax.tolist(), strict=True)),
        unit="Bohr",
        basis=shells[0],
        charge=molecule.charge,
        cart=not basis.spherical,
        verbose=0,
    )
    method = scf.RHF(mol).density_fit()
    method.with_df = df.DF(mol, auxbasis=shells[1])
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


@pytest.mark.parametrize("script", sorted(EXAMPLES.glob("[0-9]*.py")), ids=lambda path: path.stem)
def test_example_runs_as_a_script(script: Path) -> None:
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert "converged" in done.stdout
    assert done.stderr == ""
