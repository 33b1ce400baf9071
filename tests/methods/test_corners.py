"""Corner cases that ordinary molecules and calls do not reach."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ase import Atoms
from ase.calculators.calculator import CalculatorSetupError

import cuanto
from cuanto.backends.base import get_backend
from cuanto.batch import energies
from cuanto.cli.arguments import complete_basis
from cuanto.cli.cache import contents
from cuanto.errors import InputError
from cuanto.files import destination
from cuanto.grid.partition import sort_keys
from cuanto.interfaces.ase import Cuanto
from cuanto.methods import Result
from cuanto.report.figures import tick_step
from cuanto.report.markup import seconds
from cuanto.semiempirical.engine import PairEngine
from nddo_cases import layout_of, molecule
from oracles.nddo_core import core_repulsion
from paths import DATA

FIT_NONE: dict[str, Any] = {"fitting": "none", "backend": "cpu"}
WATER = cuanto.Molecule(["O", "H", "H"], [[0, 0, 0], [0, 0, 1.8], [0, 1.8, 0]])


@pytest.fixture(autouse=True)
def basis_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUANTO_BASIS_PATH", str(DATA / "basis"))


# --------------------------------------------------------------------------------------------------------- results


@pytest.fixture(scope="module")
def hydroxyl() -> Result:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUANTO_BASIS_PATH", str(DATA / "basis"))
        radical = cuanto.Molecule(["O", "H"], [[0, 0, 0], [0, 0, 1.83]], multiplicity=2)
        return cuanto.energy(radical, "rohf", "sto-3g", **FIT_NONE)


def test_restricted_open_shells_come_back_from_a_file(hydroxyl: Result, tmp_path: Path) -> None:
    """The schema has orbitals of either spin, the calculation and what is read one set of them."""
    path = tmp_path / "oh.json"
    path.write_text(json.dumps(hydroxyl.to_qcschema(), allow_nan=False))
    again = cuanto.read(path)
    assert again.energy == hydroxyl.energy and again.s_squared == pytest.approx(0.75, abs=1e-9)
    assert [len(result.coefficients) for result in (hydroxyl, again)] == [1, 1]  # type: ignore[attr-defined]
    np.testing.assert_allclose(again.occupations, hydroxyl.occupations, atol=1e-12)
    np.testing.assert_allclose(again.dipole, hydroxyl.dipole, atol=1e-10)


def test_a_file_has_no_gradient(hydroxyl: Result, tmp_path: Path) -> None:
    """A file does not contain the Fock matrix that a gradient needs."""
    path = tmp_path / "oh.json"
    path.write_text(json.dumps(hydroxyl.to_qcschema(), allow_nan=False))
    assert np.abs(hydroxyl.gradient.sum(axis=0)).max() < 1e-8
    with pytest.raises(InputError, match="the file has no"):
        _ = cuanto.read(path).gradient


def test_results_of_another_kind_are_no_guess(hydroxyl: Result) -> None:
    hydrogen = cuanto.energy(cuanto.Molecule(["H", "H"], [[0, 0, 0], [0, 0, 1.4]]), "am1", backend="cpu")
    with pytest.raises(InputError, match=r"shape \(1, 2, 2\), not \(1, 6, 6\)"):
        cuanto.energy(WATER, "am1", backend="cpu", guess=hydrogen)
    with pytest.raises(InputError, match="starts from neutral atoms or a semiempirical result"):
        cuanto.energy(WATER, "am1", backend="cpu", guess=hydroxyl)
    with pytest.raises(InputError, match="a result of am1 has no orbitals in a Gaussian basis"):
        cuanto.energy(WATER, "hf", "sto-3g", guess=hydrogen, **FIT_NONE)


def test_fixed_occupations_of_a_semiempirical_method() -> None:
    """An excited configuration lies above the ground state, which aufbau occupations reproduce."""
    ground, excited = (
        cuanto.energy(WATER, "am1", backend="cpu", occupations=[n]) for n in ([2, 2, 2, 2, 0, 0], [2, 2, 2, 1, 1, 0])
    )
    assert ground.energy == pytest.approx(cuanto.energy(WATER, "am1", backend="cpu").energy, abs=1e-8)
    assert excited.energy > ground.energy + 0.1


def test_molecules_that_fail_in_a_batch_are_computed_one_by_one() -> None:
    """A single calculation tries everything; if that fails too, the row has the error."""
    molecules = [WATER, cuanto.Molecule(WATER.symbols, WATER.R_ax * 1.05)]
    rows = energies(molecules, "am1", backend="cpu", workers=0, max_iterations=3)
    for row, it in zip(rows, molecules, strict=True):
        alone = cuanto.energy(it, "am1", backend="cpu", max_iterations=3)
        assert not row.converged and not row.error and row.iterations == alone.iterations == 3
        assert row.energy == pytest.approx(alone.energy, abs=1e-9)


def test_pm6_has_an_extra_term_for_pairs_of_carbon() -> None:
    """J. J. P. Stewart, J. Mol. Model. 13, 1173 (2007), doi:10.1007/s00894-007-0233-4."""
    layout, R_bax = layout_of(molecule("glycine"), "PM6")
    _, _, energy = PairEngine(layout, R_bax, get_backend("cpu")).core()
    assert energy[0].sum() == pytest.approx(core_repulsion(layout, R_bax[0]), rel=1e-13)


# ------------------------------------------------------------------------------------------------------------ ASE


def test_ase_without_periodicity_and_with_magnetic_moments() -> None:
    solid = Atoms("OH", [[0, 0, 0], [0, 0, 0.97]], pbc=True)
    solid.calc = Cuanto("am1", backend="cpu")
    with pytest.raises(CalculatorSetupError, match=r"set atoms\.pbc = False"):
        solid.get_potential_energy()
    oxygen = Atoms("O2", [[0, 0, 0], [0, 0, 1.2]], magmoms=[1.0, 1.0])
    oxygen.calc = Cuanto("am1", backend="cpu")
    oxygen.get_potential_energy()
    assert oxygen.calc.result is not None and oxygen.calc.result.molecule.multiplicity == 3


# --------------------------------------------------------------------------------------------------- small pieces


def test_points_in_many_cubes_are_sorted() -> None:
    """Sorting by key is stable."""
    key = np.random.default_rng(3).integers(0, 2**40, 2000)
    key[::7] = key[0]
    np.testing.assert_array_equal(sort_keys(key, 2**40, np)[1], np.argsort(key, kind="stable"))
    assert len(sort_keys(key[:0], 2**40, np)[1]) == 0


@pytest.mark.parametrize("bad", [-1.0, float("nan")])
def test_a_metric_without_a_factor_is_noticed(bad: float) -> None:
    """A GPU returns NaN."""
    simt = get_backend("simt")
    assert simt.linalg.inverse_factor(simt.to_device(np.diag([4.0, 1.0, bad]))) == (None, -1.0)
    found, smallest = simt.linalg.inverse_factor(simt.to_device(np.diag([4.0, 1.0])))
    np.testing.assert_allclose(simt.to_host(found), np.diag([0.5, 1.0]))
    assert smallest == 1.0


@pytest.mark.parametrize("power", [0, 1, 3, 6])
def test_steps_of_an_axis_are_round(power: int) -> None:
    for span in np.array([1.0, 3.0, 7.0, 9.9]) * 10**power:
        step = tick_step(span, 6)
        assert span / step <= 6 and step in {k * 10**p for k in (1, 2, 5) for p in range(power + 1)}


def test_times_have_three_figures() -> None:
    assert [seconds(x) for x in (0.00123, 0.5, 119.0, 240.0)] == ["1.2 ms", "0.50 s", "119.00 s", "4.0 min"]


def test_names_of_basis_sets_for_the_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "cc-pvdz" in complete_basis("cc-pvd")
    monkeypatch.setitem(sys.modules, "basis_set_exchange", None)
    assert complete_basis("cc-pvd") == []


def test_a_file_of_the_cache_that_vanishes_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(bytes(1000))
    assert contents([tmp_path / "a", tmp_path / "gone"]).startswith("1 files, ")


def test_impossible_output_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert destination(tmp_path / "new.json") == tmp_path / "new.json"
    (tmp_path / "there").write_text("x")
    wrong = {
        str(tmp_path): "it is a folder",
        "/dev/null": "it is a device or a pipe",
        str(tmp_path / "none" / "a.json"): "does not exist",
        str(tmp_path / "a\0b"): "null",
    }
    for name, reason in wrong.items():
        with pytest.raises(InputError, match=reason) as caught:
            destination(name)
        assert str(caught.value).startswith("cannot write ") and "\n" not in str(caught.value)
    monkeypatch.setattr("os.access", lambda path, mode: Path(path) != tmp_path / "there")
    with pytest.raises(InputError, match="the file is read-only"):
        destination(tmp_path / "there")
    monkeypatch.setattr("os.access", lambda path, mode: Path(path) != tmp_path)
    with pytest.raises(InputError, match="no permission to write in"):
        destination(tmp_path / "new.json")
