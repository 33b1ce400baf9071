"""Molecules from what users have, and back: files, texts, SMILES, ASE's Atoms, XYZ."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ase
import numpy as np
import pytest
from ase.build import molecule as ase_molecule

import cuanto
from cuanto import Molecule
from cuanto.errors import InputError
from cuanto.units import BOHR_IN_ANGSTROM

XYZ = "3\ncharge=2 mult=2 name=ion\nO 0 0 0.117\nH 0 0.757 -0.469\nGh-H 0 -0.757 -0.469\n"
FAST: dict[str, Any] = {"backend": "cpu"}


def test_a_calculation_takes_what_users_have(tmp_path: Path) -> None:
    """A molecule, the name of a file, a path, a text, a SMILES, ASE's Atoms."""
    (tmp_path / "water.xyz").write_text(text := "3\n\nO 0 0 0.117\nH 0 0.757 -0.469\nH 0 -0.757 -0.469\n")
    path = tmp_path / "water.xyz"
    expected = cuanto.energy(Molecule.from_string(text), "pm6", **FAST).energy
    for given in (str(path), path, text, ase.io.read(path)):
        assert cuanto.energy(given, "pm6", **FAST).energy == pytest.approx(expected, abs=1e-9)
    assert cuanto.energies([path, text], "pm6", workers=0)[1].energy == pytest.approx(expected, abs=1e-9)
    assert cuanto.gradient(str(path), "pm6", **FAST).gradient.shape == (3, 3)
    assert cuanto.energy("smiles:O", "pm6", **FAST).converged
    assert cuanto.optimize(path, "pm6", **FAST).converged
    assert len(cuanto.frequencies(path, "pm6", workers=0, **FAST).wavenumbers) == 3
    for wrong in (5, None, [text]):
        with pytest.raises(
            InputError, match=r"is not a molecule: give a cuanto.Molecule, the name of a file, atoms such as"
        ):
            cuanto.energy(wrong, "pm6")
    with pytest.raises(InputError, match=r"'missing.xyz' does not exist"):
        cuanto.energy("missing.xyz", "pm6")


def test_charge_and_multiplicity_of_what_users_have(tmp_path: Path) -> None:
    """Keywords of every function; a Molecule has its own."""
    path = tmp_path / "water.xyz"
    path.write_text("3\n\nO 0 0 0.117\nH 0 0.757 -0.469\nH 0 -0.757 -0.469\n")
    calls = [
        cuanto.energy(path, "pm6", charge=1, **FAST),
        cuanto.energy("smiles:O", "pm6", charge=1, **FAST),
        cuanto.energy(ase_molecule("H2O"), "pm6", charge=1, multiplicity=2, **FAST),
        cuanto.gradient(path.read_text(), "pm6", charge=1, **FAST),
        cuanto.optimize(path, "pm6", charge=1, **FAST),
        cuanto.frequencies(path, "pm6", charge=1, workers=0, **FAST),
        cuanto.dynamics(path, "pm6", steps=1, charge=1, **FAST),
        cuanto.counterpoise(path, [1, 2], "hf", "sto-3g", charge=1, charges=[1, 0], **FAST).complex,
    ]
    assert [(one.molecule.charge, one.molecule.multiplicity) for one in calls] == [(1, 2)] * len(calls)
    (row,) = cuanto.energies([path], "pm6", workers=0, charge=1)
    assert row.energy == pytest.approx(calls[0].energy, abs=1e-9)
    triplet = cuanto.energy(path, "pm6", multiplicity=3, **FAST)
    assert triplet.molecule.multiplicity == 3
    assert cuanto.energy(triplet.molecule, "pm6", charge=0, multiplicity=3, **FAST).energy == triplet.energy
    with pytest.raises(InputError) as refused:
        cuanto.energy(triplet.molecule, "pm6", charge=1, multiplicity=2)
    advice = str(refused.value)
    assert "belong to the Molecule, which has charge 0 and multiplicity 3" in advice
    ion = eval(advice.rpartition("make one with ")[2], {"Molecule": Molecule, "old": triplet.molecule})
    assert (ion.charge, ion.multiplicity) == (1, 2)


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("spin", "multiplicity=3"),
        ("mult", "multiplicity=3"),
        ("threads", "CUANTO_THREADS"),
        ("solvent", "solvent models are not implemented"),
        ("functional", "method='pbe0'"),
        ("chargee", "choose one of"),  # and not point_charges
        ("n", "choose one of"),  # a flag of the command line in other programs
        ("T", "choose one of"),
        *((name, "energy_tolerance=1e-10 and gradient_tolerance=1e-7") for name in ("conv_tol", "scf", "tole")),
        *((name, "steps of a search as max_steps=200") for name in ("max_cycles", "maxiter")),
        *((name, "of an optimisation is max_steps=200") for name in ("maxsteps", "geom_maxiter")),
        ("fmax", r"cuanto.optimize\(..., convergence='tight'\)"),
        ("constraints", r"cuanto.optimize\(..., freeze='distance 1 2'\)"),
        ("MaxIterations", "did you mean 'max_iterations'"),
        ("level_shfit", "did you mean 'level_shift'?"),
    ],
)
def test_keywords_of_other_programs(name: str, advice: str) -> None:
    with pytest.raises(InputError, match=f"unknown option '{name}'; .*{advice}"):
        cuanto.energy(Molecule.from_string(XYZ), "hf", "sto-3g", **{name: 1})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("H2O", "file 'H2O' does not exist; give an XYZ, QCSchema (JSON) or Molden file, 'H 0 0 0; H 0 0 0.74' or"),
        ("CCO", "file 'CCO' does not exist; if it is a SMILES, write smiles:CCO"),
        (Path("none.xyz"), "file 'none.xyz' does not exist; give an XYZ"),
        ("x" * 5000, "cannot be read: File name too long; give an XYZ"),
        (SimpleNamespace(molecule=Molecule(["He"], [[0, 0, 0]])), "is not a molecule: give its attribute .molecule"),
        (SimpleNamespace(), "is not a molecule: give a cuanto.Molecule"),
    ],
)
def test_what_is_no_molecule(given: Any, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        cuanto.energy(given, "pm6")


def test_atoms_of_ase() -> None:
    atoms = ase_molecule("O2")
    found = Molecule.from_ase(atoms)
    assert (found.symbols, found.charge, found.multiplicity) == (("O", "O"), 0, 3)  # from the magnetic moments
    np.testing.assert_allclose(found.R_ax * BOHR_IN_ANGSTROM, atoms.positions, rtol=0, atol=1e-12)
    atoms.set_initial_charges([-1, 0])
    atoms.set_initial_magnetic_moments([1, 0])
    assert (Molecule.from_ase(atoms).charge, Molecule.from_ase(atoms).multiplicity) == (-1, 2)
    assert Molecule.from_ase(atoms, charge=0, multiplicity=1).multiplicity == 1
    atoms.pbc = True
    with pytest.raises(InputError, match=r"not periodic systems: set atoms.pbc = False"):
        Molecule.from_ase(atoms)


def test_the_text_of_a_molecule_is_read_back(tmp_path: Path) -> None:
    ion = Molecule.from_string(XYZ)
    text = ion.to_xyz(tmp_path / "ion.xyz")
    assert (tmp_path / "ion.xyz").read_text() == text
    back = Molecule.from_string(text)
    assert (back.symbols, back.charge, back.multiplicity, back.name) == (ion.symbols, 2, 2, "ion")
    np.testing.assert_allclose(back.R_ax, ion.R_ax, rtol=0, atol=1e-9)
    assert "name" not in Molecule(["H"], [[0, 0, 0]], name="two words").to_xyz()


@pytest.mark.parametrize(("smiles", "atoms"), [("O.O", 6), ("[Na+].[Cl-]", 2), ("CC.O.N", 15)])
def test_several_molecules_of_a_smiles_are_placed_apart(smiles: str, atoms: int) -> None:
    found = Molecule.from_smiles(smiles)
    assert found.natom == atoms and found.charge == 0
    lone = [Molecule.from_smiles(part) for part in smiles.split(".")]
    shortest = min(_distances(one).min() for one in lone)
    assert _distances(found).min() >= min(shortest - 1e-6, 3.0 / BOHR_IN_ANGSTROM)
    assert _distances(found).max() < 30.0


def _distances(molecule: Molecule) -> Any:
    R_ax = molecule.R_ax
    apart = np.linalg.norm(R_ax[:, None] - R_ax[None], axis=-1)[np.triu_indices(len(R_ax), 1)]
    return apart if apart.size else np.array([np.inf])
