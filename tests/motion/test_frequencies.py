"""Vibrations of molecules: against PySCF, isotopes, symmetry, journals, workers and warnings.

`benchmarks/frequencies.py` compares ten molecules with four methods.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyscf import dft, gto, scf
from pyscf.hessian import thermo

import cuanto
from cuanto import Molecule
from cuanto.errors import CuantoError, InputError
from cuanto.grid import GridSettings
from cuanto.interfaces.vibrations import read_hessian
from cuanto.motion.hessian import HessianCalculation
from cuanto.motion.state_symmetry import state_operations
from cuanto.motion.tasks import evaluate_task, plain_arguments, plain_guess, plain_molecule
from paths import DATA, ROOT
from scripted import PATHS, wait_until
from vibration_cases import HF, PLANAR, PM6, WATER, water

TOLERANCE = 0.5
"""Largest difference of wavenumbers, cm^-1."""
OPEN_SHELL = Molecule.from_string("3\n\nN 0 0 0.14\nH 0 0.80 -0.50\nH 0 -0.80 -0.50\n", multiplicity=2)


def peer_wavenumbers(molecule: Molecule) -> np.ndarray:
    atoms = list(zip(molecule.symbols, molecule.R_ax.tolist(), strict=True))
    mol = gto.M(atom=atoms, unit="Bohr", basis="sto-3g", spin=molecule.multiplicity - 1, verbose=0)
    peer = scf.RHF(mol) if molecule.multiplicity == 1 else scf.UHF(mol)
    peer.conv_tol, peer.chkfile = 1e-13, None
    peer.kernel()
    return np.sort(thermo.harmonic_analysis(mol, peer.Hessian().kernel())["freq_wavenumber"])


@pytest.mark.parametrize("molecule", [WATER, OPEN_SHELL], ids=["closed", "open"])
def test_wavenumbers_against_pyscf(molecule: Molecule) -> None:
    found = cuanto.frequencies(molecule, **HF)
    assert np.abs(found.wavenumbers - peer_wavenumbers(molecule)).max() < TOLERANCE
    assert found.second_derivatives.displacements <= 7


def test_a_functional_against_pyscf() -> None:
    molecule = Molecule.from_string("2\n\nO 0 0 0\nH 0 0 0.97\n", charge=-1)
    found = cuanto.frequencies(molecule, "pbe", "sto-3g", fitting="none", grid=(60, 302), backend="cpu")
    atoms = list(zip(molecule.symbols, molecule.R_ax.tolist(), strict=True))
    mol = gto.M(atom=atoms, unit="Bohr", basis="sto-3g", charge=-1, verbose=0)
    peer = dft.RKS(mol, xc="pbe")
    peer.grids.atom_grid, peer.grids.prune, peer.conv_tol, peer.chkfile = (60, 302), None, 1e-12, None
    peer.kernel()
    theirs = np.sort(thermo.harmonic_analysis(mol, peer.Hessian().kernel())["freq_wavenumber"])
    assert np.abs(found.wavenumbers - theirs).max() < 1.0


@pytest.mark.parametrize("method", [HF, PM6], ids=["hf", "pm6"])
def test_symmetry_changes_nothing(method: dict[str, Any]) -> None:
    few, many = (cuanto.frequencies(WATER, symmetry=symmetry, **method) for symmetry in (True, False))
    assert few.second_derivatives.displacements <= 7 and many.second_derivatives.displacements == 18
    assert np.abs(few.wavenumbers - many.wavenumbers).max() < 0.1
    assert np.allclose(few.intensities, many.intensities, atol=0.05)


def test_intensities_are_derivatives_of_gradients_in_a_field() -> None:
    """d mu/dR = - dg/dF."""
    found, strength = water(), 1e-3
    slopes = []
    for axis in np.eye(3):
        plus, minus = (
            cuanto.gradient(WATER, **HF, field=sign * strength * axis, gradient_tolerance=1e-9).gradient
            for sign in (1, -1)
        )
        slopes.append(-(plus - minus).reshape(-1) / (2 * strength))
    assert np.allclose(np.array(slopes).T, found.second_derivatives.dipole_derivatives, atol=2e-4)


def test_an_ion_has_dipole_derivatives_about_a_fixed_origin() -> None:
    ion = Molecule.from_string("4\n\nO 0 0 0.1\nH 0 0.95 -0.2\nH 0.8 -0.5 -0.2\nH -0.8 -0.5 -0.2\n", charge=1)
    found = cuanto.frequencies(ion, **PM6)
    total = found.second_derivatives.dipole_derivatives.reshape(-1, 3, 3).sum(axis=0)
    assert np.allclose(total, np.eye(3), atol=1e-4)  # moving the whole ion moves a charge of one


@pytest.mark.parametrize("ending", ["json", "molden", "html", "xyz"])
def test_vibrations_are_saved_by_the_name_of_the_file(ending: str, tmp_path: Path) -> None:
    found = cuanto.frequencies(str(DATA / "geometries" / "water_01.xyz"), "pm6", backend="cpu")
    found.save(tmp_path / f"w.{ending}")
    text = (tmp_path / f"w.{ending}").read_text()
    begins = {"json": "{", "molden": "[Molden Format]", "html": "<!", "xyz": "3\n"}
    assert text.startswith(begins[ending])
    if ending == "json":
        assert read_hessian(tmp_path / "w.json").wavenumbers == pytest.approx(found.wavenumbers, abs=1e-6)
    with pytest.raises(InputError, match=r"use a name ending in \.json, \.molden, \.html, \.xyz"):
        found.save(tmp_path / "w.txt")


def test_isotopes_and_modes() -> None:
    found = water()
    heavy, mixed = found.with_isotopes({"H": "D"}), found.with_isotopes({2: "D"})
    assert heavy.masses.tolist() == pytest.approx([15.999, 2.01410177812, 2.01410177812])
    assert found.symmetry == heavy.symmetry == ("C2v", 2) and mixed.symmetry == ("Cs", 1)
    assert np.allclose(heavy.wavenumbers / found.wavenumbers, 0.72, atol=0.02)
    for one in (found, heavy, mixed):
        weighted = one.modes * np.sqrt(one.masses)[None, :, None]
        flat = weighted.reshape(3, -1) / np.linalg.norm(weighted.reshape(3, -1), axis=1)[:, None]
        assert np.allclose(flat @ flat.T, np.eye(3), atol=1e-10)
        assert np.allclose((one.masses[None, :, None] * one.modes).sum(axis=1), 0.0, atol=1e-9)
        torque = np.cross(one.molecule.R_ax, one.masses[:, None] * one.modes[0]).sum(axis=0)
        assert np.abs(torque).max() < 1e-8
    assert repr(found).startswith("<Vibrations water rhf/sto-3g: 3 modes")
    gradient = np.full_like(found.second_derivatives.gradient, 1e-3)
    away = replace(found, second_derivatives=replace(found.second_derivatives, gradient=gradient))
    assert repr(away) == repr(found).replace(">", ", NOT at a stationary point>")
    assert (found.force_constants > 0).all()
    for wrong in ({4: "D"}, {"C": "13C"}, {1: "13C"}, {1: "99O"}, {1: "heavy"}, {1: 1e4}):
        with pytest.raises(InputError):
            found.with_isotopes(wrong)  # type: ignore[arg-type]


def test_linear_molecules_and_atoms() -> None:
    carbon_dioxide = Molecule.from_string("3\n\nC 0 0 0\nO 0.676 0.676 0.676\nO -0.676 -0.676 -0.676\n")
    found = cuanto.frequencies(carbon_dioxide, **PM6)
    assert found.linear and len(found.wavenumbers) == 4 and found.symmetry == ("Dooh", 2)
    assert found.wavenumbers[0] == pytest.approx(found.wavenumbers[1], abs=0.05)
    assert found.second_derivatives.displacements == 3
    atom = cuanto.frequencies(Molecule.from_string("1\n\nO 0 0 0\n", multiplicity=3), **PM6)
    assert len(atom.wavenumbers) == 0 and atom.thermochemistry.energies["rotation"] == 0.0


def test_an_atom_among_point_charges_has_a_hessian() -> None:
    charges = [[0.3], [[0.0, 0.0, 6.0]]]
    fluoride = Molecule(["F"], [[0.0, 0, 0]], -1)
    found = cuanto.frequencies(fluoride, "hf", "sto-3g", point_charges=charges)
    shift = np.array([[0.0, 0.0, 0.01]])
    above, below = (
        cuanto.gradient(fluoride.moved_to(fluoride.R_ax + sign * shift), "hf", "sto-3g", point_charges=charges).gradient
        for sign in (1, -1)
    )
    assert found.hessian[2, 2] == pytest.approx((above - below)[0, 2] / 0.02, abs=1e-6)
    assert abs(found.hessian[2, 2]) > 1e-3
    assert any("translations and rotations are projected out" in note for note in found.notes)
    assert not cuanto.frequencies(fluoride, "hf", "sto-3g").hessian.any()


def test_an_asymmetric_hessian_is_a_warning() -> None:
    """The degenerate state of the tetrahedral methane cation, of which an SCF finds any component."""
    c = 1.09 / 3**0.5
    methane = f"C 0 0 0; H {c} {c} {c}; H -{c} -{c} {c}; H -{c} {c} -{c}; H {c} -{c} -{c}"
    found = cuanto.frequencies(Molecule.of(methane, 1, 2), "uhf", "sto-3g", symmetry=False, workers=0)
    assert found.second_derivatives.asymmetry > 1e-3
    assert any(note.startswith("WARNING: elements of the Hessian that should be equal") for note in found.notes)
    assert not any("should be equal" in note for note in cuanto.frequencies(methane, **PM6).notes)


def test_a_broken_symmetry_of_the_density_is_not_used() -> None:
    """The unpaired electron of NO is in one of two equivalent orbitals."""
    radical = Molecule.from_string("2\n\nN 0 0 0\nO 0 0 1.15\n", multiplicity=2)
    result = cuanto.energy(radical, **HF, gradient_tolerance=1e-7)
    closed = cuanto.energy(Molecule(radical.symbols, radical.R_ax, charge=1), **HF)
    assert len(state_operations(result)) < len(state_operations(closed)) == 8


def test_imaginary_modes_are_negative_and_a_warning() -> None:
    found = cuanto.frequencies(PLANAR, **PM6)
    assert len(found.imaginary) == 1 and found.imaginary[0] < -500
    assert any("1 imaginary mode" in note for note in found.notes)
    assert not any("stationary" in note for note in found.notes)
    stretched = Molecule(WATER.symbols, 1.1 * WATER.R_ax)
    assert any("not a stationary point" in note for note in cuanto.frequencies(stretched, **PM6).notes)


def test_following_an_imaginary_mode_leads_to_the_minimum(tmp_path: Path) -> None:
    journal = tmp_path / "ammonia.journal"
    found = cuanto.frequencies(PLANAR, **PM6, follow_imaginary=True, journal=journal)
    assert len(found.imaginary) == 0 and found.symmetry == ("C3v", 3)
    assert found.notes[0].startswith("followed -")
    counts: list[tuple[int, int]] = []
    again = cuanto.frequencies(
        PLANAR, **PM6, follow_imaginary=True, journal=journal, on_task=lambda *count: counts.append(count)
    )
    assert all(done == total for done, total in counts)  # neither gradients nor the optimisation are repeated
    assert np.allclose(again.wavenumbers, found.wavenumbers, atol=1e-6)


@pytest.mark.parametrize("method", [HF, PM6], ids=["hf", "pm6"])
def test_a_task_is_plain_data_and_starts_from_the_reference(method: dict[str, Any]) -> None:
    tight = {"gradient_tolerance": 1e-8, "energy_tolerance": 1e-11, "backend": "cpu"}
    options = {name: value for name, value in method.items() if name not in ("method", "basis")} | tight
    reference = cuanto.gradient(WATER, method["method"], method.get("basis"), **options)
    moved = Molecule(WATER.symbols, WATER.R_ax + 0.005 * np.outer([0, 1, 0], [0, 1, 0]))
    task = {"method": method["method"], "basis": method.get("basis"), "keywords": options}
    task |= {"molecule": plain_molecule(moved), "guess": plain_guess(reference)}
    found = evaluate_task(json.loads(json.dumps(task)))
    alone = evaluate_task({**task, "guess": None})
    assert found["energy"] == pytest.approx(alone["energy"], abs=1e-9)
    assert np.allclose(found["gradient"], alone["gradient"], atol=1e-7)
    assert found["iterations"] < alone["iterations"]


def test_worker_processes_give_the_same(tmp_path: Path) -> None:
    there = cuanto.frequencies(WATER, **HF, workers=1)
    assert np.abs(there.wavenumbers - water().wavenumbers).max() < 1e-3


def test_an_error_names_the_atom(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(task: dict[str, Any]) -> dict[str, Any]:
        raise CuantoError("no convergence")

    monkeypatch.setattr("cuanto.motion.hessian.evaluate_task", broken)
    with pytest.raises(CuantoError, match=r"with atom O1 displaced: no convergence"):
        cuanto.frequencies(WATER, **PM6)


@pytest.mark.parametrize(
    "wrong",
    [
        {"step": 1.0},
        {"isotopes": {9: "D"}},
        {"temperature": -1.0},
        {"gird": "fine"},
        {"symmetry": True, "field": (0, 0, 0.1)},
    ],
)
def test_refusals(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        cuanto.frequencies(WATER, **HF, **wrong)


def test_ghosts_have_no_vibrations() -> None:
    with pytest.raises(InputError, match="ghost"):
        cuanto.frequencies(Molecule(["H", "H", "Gh-He"], [[0, 0, 0], [0, 0, 1.4], [0, 0, 5]]), **HF)


ETHANE = """8
name=ethane
C 0 0 0.762
C 0 0 -0.762
H 0 1.019 1.158
H -0.883 -0.51 1.158
H 0.883 -0.51 1.158
H 0 -1.019 -1.158
H -0.883 0.51 -1.158
H 0.883 0.51 -1.158
"""
SCRIPT = """
import sys, time, cuanto
molecule = cuanto.Molecule.from_string(sys.argv[1])
cuanto.frequencies(molecule, "pm6", backend="cpu", symmetry=False, journal=sys.argv[2],
                   on_task=lambda done, total: time.sleep(0.05))
"""


def run_and_kill(journal: Path, lines: int) -> None:
    """Start a calculation, and kill it once its journal has this number of lines."""
    environment = {**os.environ, "PYTHONPATH": PATHS}
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, ETHANE, str(journal)], env=environment, cwd=ROOT)
    try:
        wait_until(lambda: journal.exists() and journal.read_bytes().count(b"\n") >= lines)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def test_a_killed_calculation_loses_only_the_current_task(tmp_path: Path) -> None:
    """kill -9 at ten random moments: what is in the journal stays there, and the wavenumbers are the same."""
    journal = tmp_path / "ethane.journal"
    kept = 0
    for lines in sorted(random.Random(5).sample(range(1, 46), 10)):
        run_and_kill(journal, lines)
        finished = journal.read_bytes().count(b"\n")
        assert finished >= max(lines, kept)
        kept = finished
    counts: list[tuple[int, int]] = []
    molecule = Molecule.from_string(ETHANE)
    found = cuanto.frequencies(
        molecule, **PM6, symmetry=False, journal=journal, on_task=lambda *count: counts.append(count)
    )
    assert counts[0] == (kept, 48) and counts[-1] == (48, 48)
    alone = cuanto.frequencies(molecule, **PM6, symmetry=False)
    assert np.abs(found.wavenumbers - alone.wavenumbers).max() < 0.01


def test_a_placed_basis_moves_with_the_atoms() -> None:
    options = {name: value for name, value in HF.items() if name not in ("method", "basis")}
    found = cuanto.frequencies(WATER, "hf", cuanto.Basis("sto-3g", WATER), **options)
    assert np.abs(found.wavenumbers - water().wavenumbers).max() < 1e-4
    with pytest.raises(InputError, match="workers=0"):
        cuanto.frequencies(WATER, "hf", cuanto.Basis("sto-3g", WATER), workers=2, **options)


def test_arguments_become_plain_data() -> None:
    given = {"grid": GridSettings.of((50, 194), pruning="none"), "field": np.zeros(3), "basis": Path("a.nw")}
    grid = {"level": [50, 194], "pruning": "none"}
    assert plain_arguments(given) == {"grid": grid, "field": [0.0, 0.0, 0.0], "basis": "a.nw"}
    with pytest.raises(TypeError):
        plain_arguments({"basis": object()})


def test_coarse_grids_keep_their_own_operations_only() -> None:
    rotated = Molecule(WATER.symbols, WATER.R_ax @ np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0])
    for molecule, number in ((WATER, 4), (rotated, 1)):
        work = HessianCalculation(molecule, "lda", "sto-3g", {"grid": (20, 50), "backend": "cpu"})
        result = cuanto.gradient(molecule, "lda", "sto-3g", grid=(20, 50), backend="cpu")
        assert len(work._operations(result)) == number


def test_isotopes_of_an_ion_change_neither_symmetry_nor_intensities_of_its_hessian(tmp_path: Path) -> None:
    """Equivalent atoms have the same derivatives of the dipole moment, whatever their masses; the journal remains."""
    ion = Molecule.from_string("3\ncharge=1 mult=2\nO 0 0 0.1273\nH 0 0.7581 -0.5087\nH 0 -0.7581 -0.5087\n")
    heavy, computed = ion.with_masses([None, 2.014, None]), []
    light = cuanto.frequencies(ion, **PM6, workers=0, journal=tmp_path / "journal")
    found = cuanto.frequencies(
        heavy,
        **PM6,
        workers=0,
        journal=tmp_path / "journal",
        on_task=lambda done, total: computed.append(done == total),
    )
    assert computed == [True] and found.masses.tolist() == [15.999, 2.014, 1.008]
    expected = light.second_derivatives.dipole_derivatives
    assert np.allclose(found.second_derivatives.dipole_derivatives, expected, atol=1e-9)
    assert np.allclose(found.wavenumbers, light.with_isotopes({2: 2.014}).wavenumbers, atol=1e-9)
    alone = cuanto.frequencies(heavy, **PM6, workers=0, symmetry=False)
    assert np.allclose(alone.intensities, found.intensities, atol=1e-2)
