"""Whole Kohn-Sham calculations: the energies of the references, on their grids."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cuanto
from cuanto.errors import InputError
from cuanto.methods import Result
from cuanto.methods.kohn_sham import Model
from scf_cases import basis, molecule, records, water

ENERGY = 1e-6
ROWS = [
    r
    for file in ("dft_def2", "lda_dzvp_water", "open_shell")
    for r in records(file)
    if "functional" in r and r["nbf"] <= 50 and r["grid"]["lebedev"] <= 590
]


def run(given: dict[str, Any], **options: Any) -> Result:
    mol = molecule(given["molecule"])
    orbital = basis(given["basis"], mol, spherical=not given["cartesian"])
    grid = (given["grid"]["radial"], given["grid"]["lebedev"])
    name = ("u" if given["method"] == "UKS" else "") + given["functional"].lower()
    kind = {"n": "none", "R": "jk"}[given["fitting"][0]]
    assert kind == "none"
    result = cuanto.energy(mol, name, orbital, fitting=kind, backend="cpu", grid=grid, **options)
    assert isinstance(result, Result)
    return result


def title(given: dict[str, Any]) -> str:
    return f"{given['molecule']}-{given['functional']}-{given['basis']}-{given['grid']['lebedev']}"


@pytest.mark.parametrize("given", [r for r in ROWS if r["fitting"].startswith("none")], ids=title)
def test_references(given: dict[str, Any]) -> None:
    found = run(given)
    assert found.converged
    assert abs(found.energy - given["energy"]) < ENERGY
    assert np.abs(found.dipole_debye - given["dipole_debye"]).max() < 1e-4


@pytest.mark.parametrize("name", ["pbe", "b3lyp", "tpss", "cam-b3lyp"])
def test_fitting_and_pseudodiagonalisation_change_little(name: str) -> None:
    mol, orbital = water()
    common: dict[str, Any] = {"backend": "cpu", "grid": "coarse"}
    exact = cuanto.energy(mol, name, orbital, fitting="none", **common)
    fitted = cuanto.energy(mol, name, orbital, auxbasis=basis("cc-pvdz-jkfit", mol), **common)
    turned = cuanto.energy(mol, name, orbital, fitting="none", diagonaliser="pseudo", **common)
    assert exact.converged and fitted.converged and turned.converged
    assert abs(exact.energy - fitted.energy) < 2e-4
    assert abs(exact.energy - turned.energy) < 1e-9
    assert fitted.fitting == ("j" if name in ("pbe", "tpss") else "jk")


def test_range_separation_against_pyscf() -> None:
    from pyscf import dft, gto

    mol, orbital = water()
    theirs = gto.M(
        atom=[(s, R) for s, R in zip(mol.symbols, mol.R_ax, strict=True)], unit="Bohr", basis="cc-pvdz", verbose=0
    )
    method = dft.RKS(theirs, xc="camb3lyp")
    method.grids.atom_grid, method.grids.prune = (75, 302), None
    method.conv_tol = 1e-10
    mine = cuanto.energy(mol, "cam-b3lyp", orbital, fitting="none", backend="cpu", grid=(75, 302))
    assert mine.energy == pytest.approx(method.kernel(), abs=ENERGY)


def test_names() -> None:
    singlet, doublet = molecule("water_01"), molecule("CH3")
    assert Model.of("PBE", singlet).spins == 1 and Model.of("pbe", doublet).spins == 2
    assert Model.of("upbe", singlet).spins == 2
    assert Model.of("revPBE", singlet).functional.name == "revpbe"
    assert Model.of("b3lyp-d3bj", singlet).dispersion == "d3bj"
    with pytest.raises(InputError, match="unknown functional 'rpbe'"):  # not PBE, restricted
        Model.of("rpbe", singlet)
    with pytest.raises(InputError, match="did you mean"):
        cuanto.energy(singlet, "b3lip")


def test_a_grid_that_is_too_coarse_is_told() -> None:
    mol, orbital = water()
    found = cuanto.energy(mol, "pbe", orbital, fitting="none", backend="cpu", grid=(10, 14))
    assert isinstance(found, Result)
    assert any(note.startswith("WARNING: the grid is too coarse") for note in found.notes)
