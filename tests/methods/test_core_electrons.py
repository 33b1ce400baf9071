"""Molecules with core potentials: energies and gradients against PySCF, electrons, properties and all file formats."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import cuanto
from cuanto import Molecule
from cuanto.backends.base import get_backend
from cuanto.basis import Shell, auxiliary_basis
from cuanto.cli.main import app
from cuanto.errors import InputError
from cuanto.grid.points import molecular_points
from cuanto.grid.settings import GridSettings
from cuanto.interfaces.cube import cube_text
from cuanto.interfaces.molden import molden_text
from cuanto.interfaces.qcschema import to_qcschema
from cuanto.methods import Context, GaussianResult, Request
from cuanto.properties.volume import Box
from cuanto.report import write_report
from cuanto.scf.checkpoint import Checkpoint
from cuanto.scf.guess import superposed_atoms
from cuanto.terms.dispersion import Dispersion
from gradient_cases import Row, basis_name, calculate, difference, energy_tolerance, key, references, tolerance
from paths import ROOT
from records import record
from scf_cases import basis, oracle
from tolerances import FORCE_CPU_CUDA

SAMPLE = [pytest.param(row, id=key(row)) for row in references("core_potential") if row["sample"]]
HI = "2\nHI\nI 0 0 0\nH 0 0.3 1.58\n"
SMALL = {"I": "lanl2dz", "H": "sto-3g"}
"""A basis of s and p functions: kernels for d and f functions take long to compile and are tested elsewhere."""
WITH_GRADIENTS = {"HI", "AuCl", "AgH", "WF6", "XeF2", "PbH4", "HgCl2", "PdCO", "LuF3"} | {"Ru(C5H5)2", "Pt(NH3)6 4+"}
"""Molecules whose gradients must have been compared: with main-group elements, transition metals and a lanthanide, and
complexes of 21 and 25 atoms."""
INDIUM_HYDRIDE = [[0.0, 0.0, 0.0], [0.1, 0.4, 3.4]]
"""Positions, Bohr."""
DIPOLE = 1e-6
"""Tolerance of dipole moments against another program, e Bohr."""


@pytest.mark.parametrize("row", SAMPLE)
def test_sample(row: Row) -> None:
    found = calculate(row)
    assert found.energy == pytest.approx(row["energy"], abs=energy_tolerance(row))
    if row["gradient"] is not None:
        assert difference(row, found) < tolerance(row)
        assert np.abs(found.gradient.sum(axis=0)).max() < 1e-8


@pytest.mark.gpu
@pytest.mark.parametrize("row", SAMPLE)
def test_sample_on_a_gpu(row: Row) -> None:
    cpu, gpu = (calculate(row, backend) for backend in ("cpu", "cuda"))
    assert cpu.energy == pytest.approx(gpu.energy, abs=1e-9)
    if row["gradient"] is not None:
        assert np.abs(cpu.gradient - gpu.gradient).max() < FORCE_CPU_CUDA


def test_the_stored_comparison_is_complete() -> None:
    """Molecules of every part of the table, with several bases and methods, were compared, and agree."""
    stored: dict[str, Any] = {row["row"]: row for row in record("core_potential_references_cpu")["rows"]}
    rows = references("core_potential")
    assert set(stored) == {key(row) for row in rows}
    assert len({row["molecule"] for row in rows}) >= 30
    assert {"HI", "AuCl", "AgH", "WF6", "XeF2", "PbH4", "HgCl2", "PdCO", "CeF4"} <= {row["molecule"] for row in rows}
    large = {row["molecule"] for row in rows if 20 <= row["geometry"].count(";") + 1 <= 60}
    assert {name[:2] for name in large} == {"Pt", "Ru"}
    assert {"lanl2dz", "def2-svp", "def2-tzvp", "cc-pvtz-pp+cc-pvtz"} <= {basis_name(row) for row in rows}
    assert {"rhf", "uhf", "rohf"} <= {row["method"] for row in rows} and {"none", "jk"} <= {r["fitting"] for r in rows}
    for row in rows:
        assert abs(stored[key(row)]["energy_difference"]) < energy_tolerance(row)
        if row["gradient"] is not None:
            assert stored[key(row)]["gradient_difference"] < tolerance(row)


def test_gradients_were_compared_for_molecules_of_every_kind() -> None:
    """Complexes, a lanthanide, open shells and every family of basis sets among them."""
    rows = [row for row in references("core_potential") if row["gradient"] is not None]
    compared = {row["row"] for row in record("core_potential_references_cpu")["rows"] if "gradient_difference" in row}
    assert compared == {key(row) for row in rows}
    assert {row["molecule"] for row in rows} >= WITH_GRADIENTS
    assert {"lanl2dz", "def2-svp", "def2-tzvp", "cc-pvtz-pp+cc-pvtz"} <= {basis_name(row) for row in rows}
    assert {"PdCO", "HgCl2", "XeF2"} <= {row["molecule"] for row in rows if "cc-pvtz-pp" in basis_name(row)}
    for fitting in ("none", "jk"):
        functionals = {row["grid"] is not None for row in rows if row["fitting"] == fitting}
        assert functionals == {False, True}
    assert {"rhf", "uhf", "rohf"} <= {row["method"] for row in rows}


def test_gradient_with_f_functions_without_fitting() -> None:
    """The four valence electrons of InH, in s and f functions only: p and d would need ten times as many kernels."""
    from pyscf import scf

    mol = Molecule(["In", "H"], INDIUM_HYDRIDE)
    usual = basis({"In": "lanl2dz", "H": "sto-3g"}, mol)
    shells = [Shell.from_table(0, 3, [0.4], [[1.0]], True), *(shell for shell in usual.shells if shell.l == 0)]
    orbital = cuanto.Basis.from_shells(shells, mol.R_ax, symbols=mol.symbols, core_potentials=usual.core_potentials)
    found = cuanto.gradient(mol, "rhf", orbital, fitting="none", backend="cpu", gradient_tolerance=1e-8)
    theirs = scf.RHF(oracle(mol, orbital)).run(conv_tol=1e-12, conv_tol_grad=1e-8, init_guess="hcore")
    assert found.energy == pytest.approx(theirs.e_tot, abs=1e-8)
    assert np.abs(found.gradient - theirs.nuc_grad_method().run(verbose=0).de).max() < 1e-6


@pytest.fixture(scope="module")
def hydrogen_iodide() -> GaussianResult:
    mol = Molecule.from_string(HI)
    result = cuanto.energy(mol, "rhf", basis(SMALL, mol), fitting="none", backend="cpu", gradient_tolerance=1e-8)
    assert isinstance(result, GaussianResult)
    return result


def test_electrons_and_properties(hydrogen_iodide: GaussianResult) -> None:
    """8 of 54 electrons are outside of the core; energy, dipole and charges are those of PySCF."""
    from pyscf import scf

    result = hydrogen_iodide
    assert result.molecule.nelectron == 8 and result.molecule.nuclei.charges.tolist() == [7, 1]
    assert result.molecule.numbers.tolist() == [53, 1]
    theirs = scf.RHF(oracle(result.molecule, result.basis)).run(conv_tol=1e-12)
    assert result.energy == pytest.approx(theirs.e_tot, abs=1e-8)
    assert result.dipole == pytest.approx(theirs.dip_moment(unit="AU", verbose=0), abs=DIPOLE)
    assert result.charges == pytest.approx(theirs.mulliken_pop(verbose=0)[1], abs=1e-6)
    assert result.loewdin_charges.sum() == pytest.approx(0.0, abs=1e-8)
    assert result.notes[0] == "core potentials (lanl2dz): I 46 core electrons"
    assert result.iterations <= theirs.cycles + 1


def test_gradient_of_a_result_is_that_of_the_calculation(hydrogen_iodide: GaussianResult) -> None:
    result = hydrogen_iodide
    direct = cuanto.gradient(result.molecule, "rhf", result.basis, fitting="none", backend="cpu")
    assert result.gradient == pytest.approx(direct.gradient, abs=1e-6)
    assert direct.molecule.nelectron == 8


def test_files(hydrogen_iodide: GaussianResult, tmp_path: Path) -> None:
    """QCSchema files and checkpoints keep core potentials; Molden files, cube files and reports state core or valence
    electrons."""
    result, mol = hydrogen_iodide, hydrogen_iodide.molecule
    schema = to_qcschema(result)  # QCElemental accepts it: a warning would be an error
    assert schema["extras"]["cuanto"]["core_electrons"] == [46, 0]
    assert schema["properties"]["calcinfo_nalpha"] == 4
    Checkpoint(tmp_path / "hi.h5", mol, result.basis, "rhf", result.backend)(result.state)
    text = json.loads(json.dumps(schema))
    for restored in (cuanto.read(text), cuanto.read(tmp_path / "hi.h5")):
        assert isinstance(restored, GaussianResult)
        assert restored.basis.core_potentials == result.basis.core_potentials
        assert restored.molecule.nelectron == 8
        assert restored.dipole == pytest.approx(result.dipole, abs=1e-7)
        assert restored.charges == pytest.approx(result.charges, abs=1e-7)
        again = cuanto.energy(mol, "rhf", result.basis, fitting="none", backend="cpu", guess=restored)
        assert again.iterations <= 3 and again.energy == pytest.approx(result.energy, abs=1e-8)
    del text["wavefunction"]
    assert cuanto.read(text).molecule.nelectron == 8
    molden = molden_text(result)
    assert "[Core]\n1 : 46\n" in molden
    read = Molecule.from_text(molden)
    assert (read.symbols, read.charge, read.multiplicity) == (("I", "H"), 0, 1)
    box = Box.around(mol.R_ax, 2.0)
    assert "   53    7.000000" in cube_text(mol, box, np.zeros(box.shape), "density")
    write_report(tmp_path / "hi.html", result)
    report = (tmp_path / "hi.html").read_text()
    assert "I 46 core electrons" in report and "8 electrons" in report


def test_molden_file_of_pyscf(hydrogen_iodide: GaussianResult, tmp_path: Path) -> None:
    """A Molden file written by PySCF, which subtracts core electrons from atomic numbers, is read correctly; a bad
    line of [Core] is refused."""
    from pyscf.tools import molden

    result, path = hydrogen_iodide, tmp_path / "hi.molden"
    theirs = oracle(result.molecule, result.basis)
    orbitals = (result.coefficients[0],)
    molden.from_mo(theirs, str(path), *orbitals, occ=result.occupations[0])
    read = Molecule.from_file(path)
    assert (read.symbols, read.charge, read.multiplicity) == (("I", "H"), 0, 1)
    path.write_text(path.read_text().replace("1 : 46", "1 : many"))
    with pytest.raises(InputError, match=r"expected 'atom : electrons' in \[Core\]"):
        Molecule.from_file(path)


def test_command_line_names_the_potentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUANTO_BASIS_PATH", str(ROOT / "tests" / "data" / "basis"))
    path = tmp_path / "hi.xyz"
    path.write_text(HI)
    done = CliRunner().invoke(
        app, ["energy", str(path), "-m", "hf", "-b", "lanl2dz", "--backend", "cpu", "-o", "fitting=none"]
    )
    assert done.exit_code == 0, done.output
    assert "\n core potentials (lanl2dz): I 46 core electrons\n" in done.output


def test_spin_orbit_parts_are_left_out_with_a_note(hydrogen_iodide: GaussianResult, tmp_path: Path) -> None:
    path, files = tmp_path / "hi.xyz", ROOT / "tests" / "data" / "basis"
    path.write_text(HI)
    iodine, hydrogen = ((files / name).read_text() for name in ("lanl2dz.I.nw", "sto-3g.H.nw"))
    (tmp_path / "with.nw").write_text(hydrogen + iodine + "SO\nI P\n2 1.5 0.7\nEND\n")
    arguments = ["energy", str(path), "-m", "hf", "-b", str(tmp_path / "with.nw"), "--backend", "cpu"]
    done = CliRunner().invoke(app, [*arguments, "--fitting", "none"])
    assert done.exit_code == 0, done.output
    assert "\n spin-orbit parts of the core potentials of I are left out\n" in done.output
    assert f"{hydrogen_iodide.energy:.7f}" in done.output
    assert not any("spin-orbit" in note for note in hydrogen_iodide.notes)


@pytest.mark.parametrize("kind", ["d3bj", "d4"])
def test_grid_fitting_set_and_dispersion_are_those_of_the_element(kind: str) -> None:
    """They depend on the element, not on the number of electrons that are left."""
    pytest.importorskip({"d3bj": "dftd3", "d4": "dftd4"}[kind])
    mol = Molecule.from_string(HI)
    valence = mol.with_core_electrons([46, 0])
    assert valence.nuclei.charges.tolist() == [7, 1]
    assert Dispersion(valence, "pbe", kind).energy == Dispersion(mol, "pbe", kind).energy < 0
    settings = GridSettings(level="coarse")
    points, theirs = (molecular_points(one, settings) for one in (valence, mol))
    assert np.array_equal(points.r_gx, theirs.r_gx) and np.array_equal(points.w_g, theirs.w_g)
    orbital = basis(SMALL, mol)
    assert auxiliary_basis(orbital, valence).name == "def2-universal-jkfit"


def test_the_guess_has_the_electrons_outside_of_the_core(hydrogen_iodide: GaussianResult) -> None:
    orbital, mol = hydrogen_iodide.basis, hydrogen_iodide.molecule
    D_pq = superposed_atoms(mol, orbital, 1, get_backend("cpu")).D_spq[0]
    S_pq = oracle(mol, orbital).intor("int1e_ovlp")
    assert (D_pq * S_pq).sum() == pytest.approx(8.0, abs=1e-6)
    of_iodine = [p for p, label in enumerate(orbital.ao_labels()) if label.startswith("0 I")]
    assert (D_pq * S_pq)[np.ix_(of_iodine, of_iodine)].sum() == pytest.approx(7.0, abs=1e-6)


def test_orbitals_with_other_cores_are_no_guess(hydrogen_iodide: GaussianResult) -> None:
    mol = hydrogen_iodide.molecule
    message = r"the guess has 46 electrons in core potentials, but basis .* has 28: leave it out, or"
    with pytest.raises(InputError, match=message):
        cuanto.energy(mol, "hf", {"I": "def2-svp", "H": "sto-3g"}, guess=hydrogen_iodide, fitting="none")


def test_integrals_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """V_pq is the attraction to the nuclear charge minus the core electrons, U_pq the core potential."""
    monkeypatch.setenv("CUANTO_BASIS_PATH", str(ROOT / "tests" / "data" / "basis"))
    path, out = tmp_path / "hi.xyz", tmp_path / "hi.npz"
    path.write_text(HI)
    done = CliRunner().invoke(app, ["integrals", str(path), "-b", "def2-svp", "--backend", "cpu", "--out", str(out)])
    assert done.exit_code == 0, done.output
    mol = Molecule.from_string(HI)
    theirs = oracle(mol, basis("def2-svp", mol))
    with np.load(out) as found:
        assert np.abs(found["V_pq"] - theirs.intor("int1e_nuc")).max() < 1e-9
        assert np.abs(found["U_pq"] - theirs.intor("ECPscalar")).max() < 1e-9


def test_ghost_has_functions_and_no_potential() -> None:
    mol = Molecule(["Ag", "Gh-Ag"], [[0, 0, 0], [0, 0, 5.0]], charge=1)
    orbital = basis("def2-svp", mol)
    context = Context.of(Request.of(mol, "hf", orbital, fitting="none", backend="cpu"))
    assert context.request.molecule.nuclei.charges.tolist() == [19, 0]
    assert context.request.molecule.nelectron == 18
    alone = Molecule(["H", "Gh-Ag"], [[0, 0, 0], [0, 0, 3.0]])
    fitting = auxiliary_basis(basis("def2-svp", alone), alone)
    assert fitting.name == "def2-universal-jkfit"


def test_impossible_electrons() -> None:
    mol = Molecule(["Ag"], np.zeros((1, 3)), charge=19)
    with pytest.raises(InputError, match=r"charge \+19 leaves no electron outside of the core potentials"):
        cuanto.energy(mol, "hf", basis("def2-svp", mol), backend="cpu", fitting="none")
    mol = Molecule(["Ag"], np.zeros((1, 3)), multiplicity=30)
    with pytest.raises(InputError, match="multiplicity 30 is impossible with 19 electrons"):
        cuanto.energy(mol, "hf", basis("def2-svp", mol), backend="cpu", fitting="none")


def test_an_odd_core_contains_an_unpaired_electron() -> None:
    """A core potential of Tb that includes 4f9 has 55 electrons: the valence electrons of a doublet can be a closed
    shell."""
    mol = Molecule(["Tb", "F"], [[0, 0, 0], [0, 0, 3.8]])
    assert (mol.nelectron, mol.multiplicity, mol.valence_multiplicity) == (74, 1, 1)
    valence = mol.with_core_electrons([55, 0])
    assert (valence.nelectron, valence.valence_multiplicity, valence.n_alpha, valence.n_beta) == (19, 2, 10, 9)
    doublet = Molecule(["Tb", "F"], mol.R_ax, charge=1).with_core_electrons([55, 0])
    assert (doublet.multiplicity, doublet.valence_multiplicity, doublet.n_alpha, doublet.n_beta) == (2, 1, 9, 9)
    assert valence.with_core_electrons([55, 0]) is valence
    assert valence.with_core_electrons([0, 0]).nelectron == 74
    with pytest.raises(InputError, match="2 atoms need 2 numbers of core electrons"):
        mol.with_core_electrons([1])
