"""Ghost atoms, functions of an element without its nucleus: against PySCF, through every format, and refusals."""

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
from cuanto.basis import auxiliary_basis
from cuanto.cli.main import app
from cuanto.errors import InputError
from cuanto.grid.points import molecular_points
from cuanto.grid.settings import GridSettings
from cuanto.interfaces.cube import write_density
from cuanto.interfaces.molden import molden_text
from cuanto.interfaces.qcschema import molecule_schema, to_qcschema
from cuanto.interfaces.sources import source_from_text
from cuanto.interfaces.wavefunction import wavefunction_of
from cuanto.methods import GaussianResult
from cuanto.report import write_report
from cuanto.scf.checkpoint import Checkpoint, read_checkpoint
from cuanto.scf.guess import superposed_atoms
from cuanto.system.nuclei import Nuclei, atom_symbol
from cuanto.terms import NuclearRepulsion, Surroundings
from cuanto.terms.dispersion import Dispersion
from tolerances import ENERGY, ENERGY_GRID

DIMER = (
    ("O", 0.0, 0.0, 0.117),
    ("H", 0.0, 0.757, -0.469),
    ("H", 0.0, -0.757, -0.469),
    ("F", 0.0, 0.0, 2.78),
    ("H", 0.0, 0.1, 1.86),
)
"""H2O...HF, Angstrom."""
PARTS = {"water": (3, 4), "hydrogen fluoride": (0, 1, 2)}
"""Fragments, and the atoms that are ghosts when a fragment is computed in the basis of the dimer."""


def xyz(ghosts: tuple[int, ...] = (), spelling: str = "Gh-{}", comment: str = "") -> str:
    rows = [
        " ".join([spelling.format(symbol) if a in ghosts else symbol, *map(str, R_x)])
        for a, (symbol, *R_x) in enumerate(DIMER)
    ]
    return "\n".join([str(len(rows)), comment, *rows]) + "\n"


def with_ghosts(part: str = "water") -> Molecule:
    return Molecule.from_string(xyz(PARTS[part]))


def pyscf_molecule(mol: Molecule, basis: str = "def2-svp") -> Any:
    """The same molecule, ghosts included, in PySCF."""
    from pyscf import gto

    names = [f"GHOST-{e}" if ghost else e for e, ghost in zip(mol.elements, mol.nuclei.ghosts, strict=True)]
    return gto.M(
        atom=list(zip(names, mol.R_ax.tolist(), strict=True)),
        unit="B",
        basis=basis,
        spin=mol.multiplicity - 1,
        verbose=0,
    )


@pytest.fixture(scope="module")
def ghost_result() -> GaussianResult:
    result = cuanto.energy(with_ghosts(), "hf", "def2-svp", fitting="none", backend="cpu")
    assert isinstance(result, GaussianResult) and result.converged
    return result


@pytest.mark.parametrize(
    "label",
    ["Gh-O", "gh-o", "Gh(O)", "Gh(O1)", "GhO", "Ghost-O", "GHOST-O1", "ghost.O", "Ghost(O)", "GhostO", "X-O", "x_O",
     "X(O)", "Bq-O", "BqO", "O-Bq", "@O", "@o2", "O:", "O1:"],
)  # fmt: skip
def test_spellings(label: str) -> None:
    assert atom_symbol(label) == "Gh-O"
    mol = Molecule(["He", label], [[0, 0, 0], [0, 0, 3]])
    assert mol.symbols == ("He", "Gh-O") and mol.elements == ("He", "O") and mol.numbers.tolist() == [2, 8]
    assert mol.nuclei.charges.tolist() == [2, 0] and mol.nelectron == 2 and mol.multiplicity == 1


@pytest.mark.parametrize(
    "label", ["X", "x1", "Xx", "Gh", "gh2", "Bq", "bq12", "Ghost", "ghost1", "Gh-", "X-1", "0", "Q", "Du"]
)
def test_dummies_are_refused_with_what_would_work(label: str) -> None:
    with pytest.raises(InputError, match="has no element: write a ghost atom as Gh-O, or leave it out") as refused:
        Molecule(["He", label], [[0, 0, 0], [0, 0, 3]])
    assert repr(label) in str(refused.value)


@pytest.mark.parametrize("label", ["X", "x1", "Xx", "Bq", "bq12", "X-1", "Q", "Du", "LP2"])
def test_dummies_in_files_are_left_out(label: str) -> None:
    """Dummy atoms have no functions, charge or grid points; the other atoms keep their order."""
    text = f"4\n\nO 0 0 0.117\n{label} 0 0 1.5\nH 0 0.757 -0.469\nH 0 -0.757 -0.469\n"
    mol = Molecule.from_string(text)
    assert mol.symbols == ("O", "H", "H") and mol.R_ax[1, 1] == pytest.approx(0.757 / 0.52917721092)
    source = source_from_text(text, "water.xyz", "water", None, None)
    assert source.notes[0].startswith("water.xyz: dummy atom 2, without functions, charge or grid points, left out")
    assert source_from_text(xyz(), "dimer.xyz", "dimer", None, None).notes == ()


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ("Gh-Xq", "unknown element 'Xq'; did you mean"),
        ("@D", "isotopes"),
        ("Gh-X", "'X' has no element"),
        ("@8", "'@8'"),
    ],
)
def test_ghosts_of_no_element(label: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Molecule(["He", label], [[0, 0, 0], [0, 0, 3]])


def test_xenon_is_an_element() -> None:
    assert atom_symbol("Xe") == "Xe" and atom_symbol("Xe:") == "Gh-Xe"


def test_nuclei() -> None:
    nuclei = Nuclei.of(["O", "Gh-H", "Au"])
    assert nuclei.protons.tolist() == nuclei.charges.tolist() == [8, 0, 79] and not nuclei.core_electrons.any()
    assert nuclei.ghosts.tolist() == [False, True, False] and nuclei.masses.tolist() == [15.999, 0.0, 196.967]
    assert Nuclei(nuclei.protons, np.array([0, 0, 60])).charges.tolist() == [8, 0, 19]


def test_electrons_and_multiplicity_equal_those_of_real_atoms() -> None:
    mol = Molecule(["H", "Gh-C", "Gh-H"], [[0, 0, 0], [0, 0, 2], [0, 2, 2]])
    assert (mol.nelectron, mol.multiplicity, mol.composition) == (1, 2, {"H": 1})
    with pytest.raises(InputError, match=r"no electron would be left with the proton; it can be -3 to 0"):
        Molecule(mol.symbols, mol.R_ax, 1)
    with pytest.raises(InputError, match=r"multiplicity 1 is impossible with 1 electron"):
        Molecule(mol.symbols, mol.R_ax, 0, 1)
    with pytest.raises(InputError, match=r"atoms 1 \(H\) and 2 \(Gh-C\) are at the same position"):
        Molecule(["H", "Gh-C"], np.zeros((2, 3)))


@pytest.mark.parametrize("part", PARTS)
def test_counterpoise_of_hartree_fock_equals_that_of_pyscf(part: str) -> None:
    from pyscf import scf

    mol = with_ghosts(part)
    mine = cuanto.energy(mol, "rhf", "def2-svp", fitting="none", backend="cpu")
    peer = scf.RHF(pyscf_molecule(mol)).run(conv_tol=1e-11)
    assert mine.converged and abs(mine.energy - peer.e_tot) < ENERGY
    assert abs(mine.energies["nuclear repulsion"] - peer.energy_nuc()) < ENERGY
    np.testing.assert_allclose(mine.dipole_debye, peer.dip_moment(verbose=0), atol=1e-5)
    np.testing.assert_allclose(mine.charges, peer.mulliken_pop(verbose=0)[1], atol=1e-5)
    real = ~mol.nuclei.ghosts
    alone = Molecule(np.array(mol.symbols)[real].tolist(), mol.R_ax[real])
    own = cuanto.energy(alone, "rhf", "def2-svp", fitting="none", backend="cpu")
    assert mine.energies["nuclear repulsion"] == own.energies["nuclear repulsion"]
    assert -5e-3 < mine.energy - own.energy < -1e-4  # functions of the ghosts lower the energy


@pytest.mark.parametrize(("method", "part"), [("pbe", "water"), ("b3lyp", "hydrogen fluoride")])
def test_counterpoise_of_functionals_equals_that_of_pyscf(method: str, part: str) -> None:
    """Ghosts have the points that their elements have, in both programs."""
    from pyscf import dft

    mol = with_ghosts(part)
    mine = cuanto.energy(mol, method, "def2-svp", fitting="none", backend="cpu", grid=(50, 110))
    peer = dft.RKS(pyscf_molecule(mol), xc=method)
    peer.grids.atom_grid, peer.grids.prune, peer.conv_tol = (50, 110), None, 1e-10
    assert mine.converged and abs(mine.energy - peer.kernel()) < ENERGY_GRID


def test_an_open_shell_beside_ghosts() -> None:
    from pyscf import scf

    mol = Molecule(["@F", "N", "H", "H"], [[0, 0, -4], [0, 0, 0], [0, 1.5, 1.2], [0, -1.5, 1.2]])
    common: dict[str, Any] = {"fitting": "none", "backend": "cpu"}
    mine = cuanto.energy(mol, "uhf", "def2-svp", **common)
    peer = scf.UHF(pyscf_molecule(mol)).run(conv_tol=1e-11)
    assert mine.converged and abs(mine.energy - peer.e_tot) < ENERGY
    other = cuanto.energy(mol, "uhf", "def2-svp", atomic_spins=[0, 1, 0, 0], atomic_charges=[0, -2, 1, 1], **common)
    assert abs(mine.energy - other.energy) < ENERGY
    with pytest.raises(InputError, match="cannot lose more electrons than it has"):
        cuanto.energy(mol, "uhf", "def2-svp", atomic_charges=[1, -1, 0, 0], **common)


def test_functions_fitting_functions_and_points_equal_those_of_the_elements() -> None:
    whole, mol = Molecule.from_string(xyz()), with_ghosts()
    of_whole, basis = (cuanto.Basis({"F": "sto-3g", "default": "def2-svp"}, one) for one in (whole, mol))
    assert basis.ao_labels() == of_whole.ao_labels()
    assert auxiliary_basis(basis, mol).nbf == auxiliary_basis(of_whole, whole).nbf
    settings = GridSettings(level="coarse")
    assert np.array_equal(molecular_points(mol, settings).r_gx, molecular_points(whole, settings).r_gx)


def test_a_ghost_brings_no_density_to_the_guess() -> None:
    mol = with_ghosts()
    basis = cuanto.Basis("def2-svp", mol)
    for spins in (1, 2):
        D_pq = superposed_atoms(mol, basis, spins, get_backend("cpu")).D_spq.sum(axis=0)
        first = next(p for p, label in enumerate(basis.ao_labels()) if label.startswith("3 F"))
        assert np.abs(D_pq[:first, :first]).max() > 0.1 and not D_pq[first:].any()


@pytest.mark.parametrize("kind", ["d3bj", "d4"])
def test_dispersion_ignores_ghosts(kind: str) -> None:
    pytest.importorskip({"d3bj": "dftd3", "d4": "dftd4"}[kind])
    mol = with_ghosts()
    water, found = Molecule(mol.symbols[:3], mol.R_ax[:3]), Dispersion(mol, "pbe", kind)
    assert found.energy == pytest.approx(Dispersion(water, "pbe", kind).energy, abs=1e-14)
    assert np.abs(found.gradient_ax[:3]).max() > 0 and not found.gradient_ax[3:].any()
    assert Dispersion(Molecule(["He", "Gh-Og"], [[0, 0, 0], [0, 0, 5]]), "pbe", kind).energy == 0.0


def test_a_point_charge_may_sit_on_a_ghost() -> None:
    mol = Molecule(["He", "Gh-He"], [[0, 0, 0], [0, 0, 4]])
    assert NuclearRepulsion(mol, Surroundings.of([0.5], [[0, 0, 4]])).energy == pytest.approx(0.25)
    with pytest.raises(InputError, match="is 0 Bohr from atom 1"):
        NuclearRepulsion(mol, Surroundings.of([0.5], [[0, 0, 0]]))


def test_ghosts_do_not_affect_the_centre_of_mass_of_an_ion() -> None:
    ion = cuanto.energy(Molecule(["O", "H"], [[0, 0, 0], [0, 0, 1.8]], -1), "hf", "sto-3g", backend="cpu")
    far = Molecule(["O", "H", "Gh-F"], [[0, 0, 0], [0, 0, 1.8], [0, 0, 40]], -1)
    assert np.abs(cuanto.energy(far, "hf", "sto-3g", backend="cpu").dipole - ion.dipole).max() < 1e-6


def test_qcschema_says_what_is_real(ghost_result: GaussianResult) -> None:
    from qcelemental.models import AtomicResult
    from qcelemental.models import Molecule as Theirs

    schema = molecule_schema(ghost_result.molecule)
    assert schema["symbols"] == ["O", "H", "H", "F", "H"] and schema["real"] == [True] * 3 + [False] * 2
    assert "real" not in molecule_schema(Molecule.from_string(xyz()))
    for text in (json.dumps(schema), Theirs(**schema).json()):
        again = Molecule.from_text(text)
        assert again.symbols == ghost_result.molecule.symbols and again.nelectron == 10
    written = to_qcschema(ghost_result)
    assert AtomicResult(**written).molecule.real.tolist() == schema["real"]
    kept = cuanto.read(json.loads(json.dumps(written)))
    assert kept.molecule.symbols == ghost_result.molecule.symbols and kept.energy == ghost_result.energy
    assert isinstance(kept, GaussianResult)
    np.testing.assert_allclose(kept.mulliken_charges, ghost_result.mulliken_charges, atol=1e-8)
    inputs = {"molecule": schema, "driver": "energy", "model": {"method": "hf", "basis": "def2-svp"}}
    inputs |= {"schema_name": "qcschema_input", "schema_version": 1, "keywords": {"fitting": "none", "backend": "cpu"}}
    assert cuanto.compute(inputs)["return_result"] == pytest.approx(ghost_result.energy, abs=1e-9)


@pytest.mark.parametrize("spelling", ["Gh-{}", "@{}", "{}:", "X-{}", "GHOST-{}"])
def test_xyz(spelling: str, ghost_result: GaussianResult) -> None:
    assert Molecule.from_string(xyz(PARTS["water"], spelling)).symbols == ghost_result.molecule.symbols


def test_molden_and_cube_have_no_nucleus_there(ghost_result: GaussianResult, tmp_path: Path) -> None:
    text = molden_text(ghost_result)
    again = Molecule.from_text(text)
    assert again.symbols == ghost_result.molecule.symbols and (again.charge, again.multiplicity) == (0, 1)
    assert Molecule.from_text(text.replace("Gh-F", "F").replace("Gh-H", "H")).symbols == again.symbols
    write_density(tmp_path / "a.cube", ghost_result.molecule, wavefunction_of(ghost_result))
    rows = [line.split()[:2] for line in (tmp_path / "a.cube").read_text().splitlines()[6:11]]
    assert [[int(number), float(charge)] for number, charge in rows] == [
        [8, 8.0],
        [1, 1.0],
        [1, 1.0],
        [0, 0.0],
        [0, 0.0],
    ]


def test_report_and_checkpoint(ghost_result: GaussianResult, tmp_path: Path) -> None:
    path = tmp_path / "a.html"
    write_report(path, ghost_result)
    page = path.read_text()
    assert "H<sub>2</sub>O" in page and "Gh-F4" in page and "3 atoms, 2 ghosts, 10 electrons" in page
    kept = tmp_path / "a.h5"
    Checkpoint(kept, ghost_result.molecule, ghost_result.basis, "rhf", get_backend("cpu"))(ghost_result.state)
    assert read_checkpoint(kept).molecule.symbols == ghost_result.molecule.symbols


def test_command_line(tmp_path: Path, ghost_result: GaussianResult) -> None:
    (tmp_path / "a.xyz").write_text(xyz(PARTS["water"], "@{}"))
    words = ["energy", str(tmp_path / "a.xyz"), "-m", "hf", "-b", "def2-svp", "--fitting", "none", "--backend", "cpu"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0 and "5 atoms (2 ghosts)" in done.output and "Gh-F" in done.output
    assert f"{ghost_result.energy:.12f}"[:12] in done.output
    refused = CliRunner().invoke(app, ["energy", str(tmp_path / "a.xyz"), "-m", "pm6"])
    assert isinstance(refused.exception, InputError) and "pm6 has no ghost atoms" in str(refused.exception)


def test_semiempirical_methods_refuse_ghosts() -> None:
    for method in ("mndo", "pm6", "upm6"):
        with pytest.raises(InputError, match=f"{method} has no ghost atoms: leave them out, or use a method with"):
            cuanto.energy(with_ghosts(), method, backend="cpu")


def test_a_table_of_many_molecules_has_number_zero() -> None:
    mol = Molecule(["He", "Gh-C"], [[0, 0, 0], [0, 0, 4]])
    (row,) = cuanto.energies([mol], "hf", "sto-3g", backend="cpu", workers=0)
    record = row.record()
    assert not row.error and record["formula"] == "He" and record["numbers"] == [2, 0]
