"""Results as objects: they are pickled, copied, printed, saved; a result that did not converge warns."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cuanto
from cuanto import Molecule, properties
from cuanto.errors import ConvergenceWarning, InputError
from cuanto.methods import Result, summary
from cuanto.methods.summary import charge_columns, charge_lines, fitting_line, property_lines

XYZ = "3\nname=water\nO 0 0 0.117\nH 0 0.757 -0.469\nH 0 -0.757 -0.469\n"
CASES = {"pm6": ("pm6",), "hf": ("hf", "sto-3g"), "uhf": ("uhf", "sto-3g"), "pbe": ("pbe", "sto-3g")}


def compute(*method: str, **options: Any) -> Result:
    return cuanto.energy(Molecule.from_string(XYZ), *method, backend="cpu", **options)


@pytest.fixture(params=list(CASES))
def result(request: pytest.FixtureRequest) -> Result:
    return compute(*CASES[request.param])


def test_copies_are_the_same_result(result: Result) -> None:
    """A copy has the same values, and the same gradient, which is computed from the copy."""
    for other in (pickle.loads(pickle.dumps(result)), copy.copy(result), copy.deepcopy(result)):
        assert type(other) is type(result) and str(other) == str(result) and other.notes == result.notes
        assert other.backend_name == "cpu" and other.keywords == result.keywords
        np.testing.assert_array_equal(other.density, result.density)
    np.testing.assert_allclose(pickle.loads(pickle.dumps(result)).gradient, result.gradient, rtol=0, atol=1e-10)


def test_a_result_prints_as_a_table() -> None:
    found = compute("uhf", "sto-3g")
    lines = str(found).splitlines()
    assert lines[0] == f"water, uhf/sto-3g, converged in {found.iterations} iterations"
    names = [line[1:32].strip() for line in lines[1:]]
    assert "energy" in names and "gap" in names and "dipole moment" in names and "<S^2>" in names
    assert len({line.index("  Hartree") for line in lines if "  Hartree" in line}) == 1  # aligned
    assert repr(found).startswith("<GaussianResult water uhf/sto-3g: -74.96") and "\n" not in repr(found)


def test_a_table_in_notebooks() -> None:
    html = compute("pm6")._repr_html_()
    assert html.startswith("<table><caption>water, pm6, converged in") and html.count("<tr>") == 10
    assert (
        "<script"
        not in cuanto.energy(Molecule(["H"], [[0, 0, 0]], name="<script>"), "pm6", backend="cpu")._repr_html_()
    )


def test_hints_and_warnings_follow_the_table() -> None:
    oxygen = Molecule(["O", "O"], [[0, 0, 0], [0, 0, 2.3]])
    found = cuanto.energy(oxygen, "pm6", backend="cpu")
    hint = next(note for note in found.notes if note.startswith("hint"))
    assert str(found).splitlines()[-1] == f" {hint}" and found._repr_html_().endswith(f"</table><p>{hint}</p>")
    assert "hint" not in str(compute("pm6"))


def test_the_gap() -> None:
    found = compute("hf", "sto-3g")
    assert found.gap == found.lumo[0] - found.homo[0] > 0
    cation = cuanto.energy(Molecule.from_string(XYZ, charge=1), "hf", "sto-3g", backend="cpu")
    assert cation.gap == min(cation.lumo) - max(cation.homo)
    shared = cuanto.energy(Molecule.from_string(XYZ, charge=1), "rohf", "sto-3g", backend="cpu")
    assert shared.gap == min(empty - full for empty, full in zip(shared.lumo, shared.homo, strict=True)) > 0.1
    assert cation.ideal_s_squared == 0.75 and abs(cation.s_squared - 0.75) < 0.01


@pytest.mark.parametrize(("method", "multiplicity"), [(("pbe", "sto-3g"), 1), (("hf", "sto-3g"), 3), (("pm6",), 1)])
def test_smeared_levels_are_named_as_without(method: tuple[str, ...], multiplicity: int) -> None:
    """Every orbital holds some electrons of a high temperature; those more than half full are occupied."""
    molecule = Molecule.from_string(XYZ, multiplicity=multiplicity)
    plain, smeared = (cuanto.energy(molecule, *method, smearing=smearing, backend="cpu") for smearing in (0.0, 0.02))
    assert all(
        np.count_nonzero(n_m) > np.count_nonzero(full)
        for n_m, full in zip(smeared.occupations, plain.occupations, strict=True)
    )
    for s, full in enumerate(plain.occupations):
        count = np.count_nonzero(full)
        eps_m = np.sort(smeared.levels()[s][0])
        assert (smeared.homo[s], smeared.lumo[s]) == (eps_m[count - 1], eps_m[count])


@pytest.mark.parametrize("method", [("hf", "sto-3g"), ("pm6",)])
def test_spin_populations(method: tuple[str, ...]) -> None:
    cation = cuanto.energy(Molecule.from_string(XYZ, charge=1), *method, backend="cpu")
    assert cation.spin_populations.sum() == pytest.approx(1.0) and cation.spin_populations[0] > 0.9
    title, heads, oxygen, *hydrogen = charge_lines(cation)
    assert title == f"charges / e and {cation.charge_kind} spin populations:" and heads.split()[-1] == "spin"
    assert oxygen.split()[:2] == ["1", "O"] and float(oxygen.split()[-1]) > 0.9 and len(hydrogen) == 2
    assert not compute(*method).spin_populations.any()
    read = cuanto.read(cation.to_qcschema())
    np.testing.assert_allclose(read.spin_populations, cation.spin_populations, rtol=0, atol=1e-12)


def test_charges_of_many_atoms(monkeypatch: pytest.MonkeyPatch) -> None:
    molecule = Molecule(["H"] * 14, [[0, 0, 1.4 * k + (k % 2) * 0.2] for k in range(14)])
    found = cuanto.energy(molecule, "pm6", backend="cpu")
    title, heads, *lines = charge_lines(found)
    assert title == "charges / e:" and heads.split() == ["Coulson"] and len(lines) == 14
    monkeypatch.setattr(summary, "MAX_ATOMS", 13)
    (line,) = charge_lines(found)
    assert line.endswith("the JSON file has those of all 14 atoms")


def test_four_kinds_of_charges_beside_each_other() -> None:
    found = compute("hf", "def2-svp")
    _, heads, *lines = charge_lines(found)
    assert heads.split() == ["Mulliken", "Loewdin", "Hirshfeld", "CM5"]
    kinds = (found.mulliken_charges, found.loewdin_charges, found.hirshfeld_charges, found.cm5_charges)
    for line, values in zip(lines, zip(*kinds, strict=True), strict=True):
        assert [float(x) for x in line.split()[2:]] == pytest.approx(values, abs=5.1e-4)


def test_all_kinds_of_charges_of_many_atoms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summary, "MAX_ATOMS", 2)
    lines = list(charge_lines(compute("hf", "def2-svp")))
    assert [line.split()[0] for line in lines] == ["Mulliken", "Loewdin", "Hirshfeld", "CM5"]


def test_charges_that_a_file_lacks_are_left_out() -> None:
    schema = compute("hf", "def2-svp").to_qcschema()
    del schema["wavefunction"]
    for name in ("hirshfeld_charges", "cm5_charges"):
        del schema["extras"]["cuanto"][name]
    read = cuanto.read(schema)
    assert list(charge_columns(read)) == ["Mulliken", "Loewdin"]


def test_moments_and_charges_are_read_from_a_file() -> None:
    found = compute("hf", "def2-svp")
    read = cuanto.read(json.loads(json.dumps(found.to_qcschema())))
    for name in ("second_moments", "quadrupole", "hirshfeld_charges", "cm5_charges", "loewdin_charges", "bond_orders"):
        np.testing.assert_allclose(getattr(read, name), getattr(found, name), rtol=0, atol=1e-12)


def test_the_quadrupole_moment_and_bond_orders_are_printed() -> None:
    lines = list(property_lines(compute("hf", "def2-svp")))
    assert lines[0].startswith("quadrupole moment / (Debye Angstrom): xx -") and "yy 2." in lines[0]
    assert lines[-2] == "Mayer bond orders of at least 0.3:" and lines[-1].split()[::2] == ["O1-H2", "O1-H3"]
    lines = list(property_lines(compute("pm6")))
    assert not lines[0].startswith("quadrupole") and "Wiberg bond orders of at least 0.3:" in lines


@pytest.mark.parametrize("error", [MemoryError, np.linalg.LinAlgError])
def test_properties_that_cannot_be_computed_are_left_out(error: type, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*given: Any) -> None:
        raise error

    found = compute("hf", "def2-svp")
    monkeypatch.setattr(properties, "hirshfeld", fail)
    assert list(charge_columns(found)) == ["Mulliken", "Loewdin"]


def test_the_fitting_set_is_named() -> None:
    assert fitting_line(compute("hf", "sto-3g")) == "J and K fitted in def2-universal-jkfit"
    assert fitting_line(compute("pbe", "sto-3g")) == "J fitted in def2-universal-jkfit"
    assert fitting_line(compute("hf", "sto-3g", fitting="none")) == fitting_line(compute("pm6")) == ""


def test_saving(tmp_path: Path) -> None:
    found = compute("hf", "sto-3g")
    for ending in ("json", "molden", "html", "xyz"):
        found.save(tmp_path / f"water.{ending}")
    assert cuanto.read(tmp_path / "water.json").energy == pytest.approx(found.energy, abs=1e-10)
    assert Molecule.from_file(tmp_path / "water.xyz").symbols == ("O", "H", "H")
    with pytest.raises(InputError, match=r"use a name ending in .json, .molden, .html, .xyz"):
        found.save(tmp_path / "water.txt")
    with pytest.raises(InputError, match=r"use a name ending in .json, .html, .xyz"):
        compute("pm6").save(tmp_path / "water.molden")


def test_a_result_that_did_not_converge_warns() -> None:
    with pytest.warns(ConvergenceWarning, match="the SCF of water did not converge in 1 iteration: its energy has no"):
        found = compute("hf", "sto-3g", max_iterations=1)
    assert not found.converged and "NOT converged" in str(found)
    with pytest.warns(ConvergenceWarning, match="did not converge") as caught:
        cuanto.gradient(Molecule.from_string(XYZ), "pm6", backend="cpu", max_iterations=1, unconverged_gradient=True)
    assert caught[0].filename == __file__


@pytest.mark.filterwarnings("error")
def test_tables_and_qcschema_report_it_without_a_warning() -> None:
    (row,) = cuanto.energies([XYZ], "hf", "sto-3g", workers=0, backend="cpu", max_iterations=1)
    assert not row.converged and not row.error
    schema = compute("hf", "sto-3g").to_qcschema()
    inputs = {**schema, "keywords": {"max_iterations": 1, "backend": "cpu"}}
    assert cuanto.compute(inputs)["error"]["error_type"] == "convergence_error"
