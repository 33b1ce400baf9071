"""Orbitals and densities on grids, cube files as PySCF reads them, orbitals in QCSchema and back."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import cuanto
from cuanto import Basis, Molecule
from cuanto.basis import Shell
from cuanto.cli.main import run
from cuanto.errors import InputError
from cuanto.interfaces.cube import (
    MAX_POTENTIAL,
    cube_text,
    orbital_number,
    write_cube,
    write_density,
    write_orbital,
    write_potential,
    write_spin_density,
)
from cuanto.interfaces.wavefunction import (
    Wavefunction,
    basis_schema,
    read_wavefunction,
    wavefunction_of,
    wavefunction_schema,
)
from cuanto.methods import GaussianResult
from cuanto.properties.volume import Box, density_on_grid, orbital_on_grid
from fitting_cases import DATA, molecule
from oracles.grid import functions_at


@pytest.fixture(scope="module", autouse=True)
def basis_files() -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUANTO_BASIS_PATH", str(DATA / "basis"))
        yield


@pytest.fixture(scope="module")
def water() -> GaussianResult:
    result = cuanto.energy(molecule("water_01"), "rhf", "cc-pvdz", backend="cpu")
    assert isinstance(result, GaussianResult)
    return result


def mixed_basis(pure: bool) -> tuple[Molecule, Basis]:
    """All angular momenta to g, one general contraction, shells of two atoms that are not in order."""
    pair = Molecule(["O", "H"], [[0.3, -0.2, 0.5], [-0.4, 0.9, 1.6]], charge=-1)
    shells = [Shell.from_table(a, l, [1.5 + a, 0.4], [[0.6], [0.5]], pure) for l in range(5) for a in (1, 0)]
    shells.append(Shell.from_table(0, 1, [2.5, 0.7], [[0.6, 0.1], [0.5, 0.9]], pure))
    return pair, Basis.from_shells(shells, pair.R_ax, symbols=pair.symbols)


def points(box: Box) -> np.ndarray:
    return np.stack(np.meshgrid(*box.axes, indexing="ij"), axis=-1).reshape(-1, 3)


@pytest.mark.parametrize("pure", [True, False])
def test_orbitals_are_the_functions_of_the_basis(pure: bool) -> None:
    mol, basis = mixed_basis(pure)
    box = Box.around(mol.R_ax, 0.7, 2.0)
    C_pm = np.random.default_rng(1).normal(size=(basis.nbf, 3))
    expected = functions_at(basis, points(box))[0] @ C_pm
    for m in range(3):
        np.testing.assert_allclose(orbital_on_grid(basis, C_pm[:, m], box).reshape(-1), expected[:, m], atol=1e-12)
    found = density_on_grid(basis, C_pm[None], np.array([[2.0, 0.5, 0.0]]), box)
    np.testing.assert_allclose(found.reshape(-1), expected**2 @ [2.0, 0.5, 0.0], atol=1e-11)


def test_boxes() -> None:
    box = Box.around([[0.0, 0.0, 0.0], [1.0, 0.0, 3.0]], 0.5, 2.0)
    assert box.shape == (11, 9, 15)
    for axis, low, high in zip(box.axes, (-2, -2, -2), (3, 2, 5), strict=True):
        np.testing.assert_allclose([axis[0], axis[-1]], [low, high])
    part = box.part((1, 2, 3), (4, 9, 6))
    assert part.shape == (3, 7, 3) and part.axes[1][0] == pytest.approx(box.axes[1][2])
    for spacing, margin in ((0.0, 1.0), (float("nan"), 1.0), (0.2, -1.0), (1e-3, 5.0)):
        with pytest.raises(InputError, match="grid"):
            Box.around([[0.0, 0.0, 0.0]], spacing, margin)


def test_pyscf_reads_the_orbital(water: GaussianResult, tmp_path: Path) -> None:
    """Values, box and atoms through PySCF's reader, against PySCF's own functions."""
    from pyscf import gto
    from pyscf.tools.cubegen import Cube

    box = Box.around(water.molecule.R_ax, 0.6, 3.0)
    write_orbital(tmp_path / "homo.cube", water.molecule, wavefunction_of(water), "homo", box=box)
    shells: dict[str, list[object]] = {}
    for shell in water.basis.shells:
        norm_k = gto.gto_norm(shell.l, shell.exponents)
        rows = np.column_stack([shell.exponents, shell.coefficients / norm_k[:, None]]).tolist()
        shells.setdefault(f"{water.molecule.symbols[shell.atom]}{shell.atom}", []).append([shell.l, *rows])
    mol = gto.M(atom=list(zip(shells, water.molecule.R_ax.tolist(), strict=True)), unit="Bohr", basis=shells, verbose=0)
    cube = Cube(mol)
    found = cube.read(str(tmp_path / "homo.cube"))
    assert found.shape == box.shape and (tmp_path / "homo.cube").read_text().splitlines()[0].startswith("water")
    np.testing.assert_allclose(cube.boxorig, box.origin, atol=1e-6)
    np.testing.assert_allclose(cube.box, np.diag(np.multiply(box.shape, box.spacing)), atol=1e-5)
    psi = mol.eval_gto("GTOval", points(box)) @ water.coefficients[0][:, 4]
    np.testing.assert_allclose(found.reshape(-1), psi, rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(cube.mol.atom_coords(), water.molecule.R_ax, atol=1e-6)


def test_the_density_has_all_electrons(water: GaussianResult, tmp_path: Path) -> None:
    box = Box.around(water.molecule.R_ax, 0.25, 5.0)
    write_density(tmp_path / "rho.cube", water.molecule, wavefunction_of(water), box)
    found = np.array((tmp_path / "rho.cube").read_text().split("\n", 9)[9].split(), dtype=float)
    assert found.size == np.prod(box.shape)
    assert found.sum() * box.spacing**3 == pytest.approx(10.0, abs=0.2)  # the grid is coarse for the oxygen core


def test_spin_density_of_a_cation(water: GaussianResult, tmp_path: Path) -> None:
    """Alpha minus beta density: one unpaired electron; a closed shell has none."""
    cation = cuanto.energy(Molecule(water.molecule.symbols, water.molecule.R_ax, 1), "uhf", "cc-pvdz", backend="cpu")
    wave, box = wavefunction_of(cation), Box.around(water.molecule.R_ax, 0.25, 5.0)
    write_spin_density(tmp_path / "spin.cube", cation.molecule, wave, box)
    text = (tmp_path / "spin.cube").read_text()
    found = np.array(text.split("\n", 9)[9].split(), dtype=float)
    assert "spin density, alpha minus beta" in text.splitlines()[0]
    assert found.sum() * box.spacing**3 == pytest.approx(1.0, abs=0.02)
    parts = [density_on_grid(wave.basis, wave.C_spm[s : s + 1], wave.n_sm[s : s + 1], box) for s in range(2)]
    np.testing.assert_allclose(found, (parts[0] - parts[1]).reshape(-1), rtol=1e-5, atol=1e-9)
    with pytest.raises(InputError, match="a closed shell has no spin density"):
        write_spin_density(tmp_path / "none.cube", water.molecule, wavefunction_of(water), box)


def test_potential_of_water(water: GaussianResult, tmp_path: Path) -> None:
    """Values of the file against integrals of a unit charge; a point at a nucleus is finite."""
    O_x = water.molecule.R_ax[0]
    box = Box((float(O_x[0]), float(O_x[1]), float(O_x[2])), 1.5, (2, 2, 2))
    write_potential(tmp_path / "esp.cube", water.molecule, wavefunction_of(water), box, backend="cpu")
    found = np.array((tmp_path / "esp.cube").read_text().split("\n", 9)[9].split(), dtype=float).reshape(box.shape)
    assert found[0, 0, 0] == MAX_POTENTIAL
    r_x = np.array([axis[1] for axis in box.axes])
    V_pq = cuanto.integrals.nuclear(water.basis, charges=[1.0], positions=[r_x], backend="cpu")
    nuclei = (water.molecule.nuclei.charges / np.linalg.norm(water.molecule.R_ax - r_x, axis=1)).sum()
    assert found[1, 1, 1] == pytest.approx(nuclei + (V_pq * water.density[0]).sum(), rel=1e-5)


@pytest.mark.parametrize(("quantity", "more"), [("spin", ()), ("esp", ("--spacing", "1.0")), ("density", ())])
def test_the_command(quantity: str, more: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cation = cuanto.energy(Molecule(["He"], [[0, 0, 0]], 1), "uhf", "cc-pvdz", backend="cpu")
    cation.save(tmp_path / "he.json")
    with pytest.raises(SystemExit) as leaving:
        run(["cube", str(tmp_path / "he.json"), "--quantity", quantity, *more])
    assert not leaving.value.code and f"he_{quantity}.cube (" in capsys.readouterr().out
    with pytest.raises(SystemExit) as leaving:
        run(["cube", str(tmp_path / "he.json"), "--quantity", "nothing"])
    assert leaving.value.code == 2 and "density, spin (alpha minus beta density) or esp" in capsys.readouterr().err


def test_layout_of_the_file(tmp_path: Path) -> None:
    """Seven numbers along z: six on one line, one on the next; a name with line breaks stays one line."""
    helium = Molecule(["He"], [[0.0, 0.0, 0.0]], name="he\nlium")
    box = Box((0.0, 0.0, 0.0), 0.5, (1, 2, 7))
    values = np.arange(14.0).reshape(1, 2, 7) * -1e-120
    values[0, 1, 6] = -1.25
    lines = cube_text(helium, box, values, "test").splitlines()
    assert lines[0] == "he lium: test" and [len(line.split()) for line in lines[7:]] == [6, 1, 6, 1]
    assert lines[10].split() == ["-1.25000E+00"] and set(" ".join(lines[7:10]).split()) == {"0.00000E+00"}
    with pytest.raises(InputError, match="shape"):
        cube_text(helium, box, values[:, :1], "test")
    with pytest.raises(InputError, match="cannot write"):
        write_cube(tmp_path / "no" / "a.cube", helium, box, values, "test")


def test_orbitals_by_name() -> None:
    basis = mixed_basis(True)[1]
    eps = np.array([[-0.5, 0.2, -20.0, 0.1], [-0.4, 0.3, -20.0, -0.3]])
    wave = Wavefunction(basis, np.zeros((2, basis.nbf, 4)), eps, np.array([[1.0, 0, 1, 0], [1.0, 0, 1, 1]]))
    names = ["homo", "LUMO", "homo-1", "lumo+1", "1", 4]
    assert [orbital_number(wave, name) for name in names] == [0, 3, 2, 1, 2, 1]
    assert [orbital_number(wave, name, 1) for name in ("homo", "lumo")] == [3, 1]
    smeared = Wavefunction(basis, np.zeros((1, basis.nbf, 4)), eps[:1], np.array([[1.999, 1e-3, 2.0, 0.002]]))
    assert [orbital_number(smeared, name) for name in names[:3]] == [0, 3, 2]
    for name, spin in (("homo+9", 0), ("0", 0), ("5", 0), ("somo", 0), ("homo", 2), ("\u0663", 0)):
        with pytest.raises(InputError):
            orbital_number(wave, name, spin)


@pytest.mark.parametrize("pure", [True, False])
def test_a_basis_comes_back_from_qcschema(pure: bool) -> None:
    """The orbitals are the same, although the schema has another order and other norms."""
    from qcelemental.models import BasisSet

    mol, basis = mixed_basis(pure)
    schema = basis_schema(basis)
    assert BasisSet(**schema).nbf == basis.nbf
    C_spm = np.random.default_rng(2).normal(size=(1, basis.nbf, 2))
    wave = Wavefunction(basis, C_spm, np.array([[-1.0, 0.5]]), np.array([[2.0, 0.0]]))
    read = read_wavefunction(json.loads(json.dumps(wavefunction_schema(wave))), mol)
    box = Box.around(mol.R_ax, 0.8, 2.0)
    np.testing.assert_allclose(read.n_sm, [[2.0, 0.0]])
    for m in range(2):
        expected = orbital_on_grid(basis, C_spm[0, :, m], box)
        np.testing.assert_allclose(orbital_on_grid(read.basis, read.C_spm[0][:, m], box), expected, atol=1e-10)


def test_orbitals_of_the_schema_are_normalised_as_it_says(water: GaussianResult) -> None:
    """The Cartesian d functions of the Common Component Architecture: xx of unit norm."""
    mol = water.molecule
    basis = Basis("cc-pvdz", mol, spherical=False)
    result = cuanto.energy(mol, "rhf", basis, backend="cpu", max_iterations=1)
    assert isinstance(result, GaussianResult)
    schema = wavefunction_schema(wavefunction_of(result))
    C_pm = np.reshape(schema["scf_orbitals_a"], (basis.nbf, -1))
    S_pq = np.asarray(cuanto.integrals.overlap(basis, backend="cpu"))
    first = [int(o) for shell, o in zip(basis.shells, basis.offsets, strict=True) if shell.l == 2]
    unit = np.ones(basis.nbf)
    for o in first:
        unit[o : o + 6] = 1 / np.sqrt(S_pq[o, o])
    np.testing.assert_allclose(C_pm.T @ (S_pq * np.outer(unit, unit)) @ C_pm, np.eye(C_pm.shape[1]), atol=1e-9)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"basis": None}, "cannot be read"),
        ({"scf_orbitals_a": [1.0, 2.0]}, "cannot be read"),
        ({"scf_eigenvalues_a": [1.0]}, "1 eigenvalues"),
        ({"scf_occupations_a": ["two"]}, "cannot be read"),
        ({"restricted": False}, "scf_orbitals_b"),
        ({"basis": {"name": "x", "atom_map": [], "center_data": {}}}, "0 atoms"),
    ],
)
def test_invalid_wavefunctions(water: GaussianResult, change: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_wavefunction({**wavefunction_schema(wavefunction_of(water)), **change}, water.molecule)
