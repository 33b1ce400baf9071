"""Results read from files, and the interfaces of QCEngine and ASE."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cuanto
from cuanto.basis.potential_formats import potential_entry, potential_from_exchange
from cuanto.cli.main import run
from cuanto.errors import InputError, MissingDependencyError
from cuanto.interfaces.qcschema import to_qcschema, write_qcschema
from cuanto.methods import GaussianResult, Result, SemiempiricalResult
from cuanto.report import report_html
from cuanto.scf.checkpoint import Checkpoint
from cuanto.units import BOHR_IN_ANGSTROM, HARTREE_IN_EV
from fitting_cases import DATA

HF = "2\nname=hf\nH 0 0 0\nF 0 0 0.92\n"
COMMON = ("energy", "converged", "iterations", "s_squared", "homo", "lumo", "notes", "keywords", "energies")
ARRAYS = ("dipole", "dipole_debye", "charges", "orbital_energies", "occupations")


@pytest.fixture(scope="module")
def molecule() -> cuanto.Molecule:
    return cuanto.Molecule.from_string(HF)


@pytest.fixture(scope="module", params=["rhf", "pbe", "pm6"])
def computed(request: pytest.FixtureRequest, molecule: cuanto.Molecule) -> Result:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUANTO_BASIS_PATH", str(DATA / "basis"))
        basis = None if request.param == "pm6" else "sto-3g"
        return cuanto.energy(molecule, request.param, basis, backend="cpu", max_iterations=60)


@pytest.fixture(autouse=True)
def basis_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUANTO_BASIS_PATH", str(DATA / "basis"))


# --------------------------------------------------------------------------------------------- one result for all


def test_every_method_returns_a_result(computed: Result) -> None:
    assert isinstance(computed, cuanto.Result)
    assert [step.iteration for step in computed.history] == list(range(1, computed.iterations + 1))
    assert computed.history[-1].energy == computed.energy
    assert sum(computed.energies.values()) == pytest.approx(computed.energy, abs=1e-9)
    assert computed.charges.sum() == pytest.approx(0.0, abs=1e-9) and computed.charges[0] > 0.1
    assert computed.keywords["max_iterations"] == 60
    assert f"{computed.energy:.9f} Hartree, converged in" in repr(computed) and "\n" not in repr(computed)


def test_written_results_are_read_back(computed: Result, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(computed.to_qcschema(), allow_nan=False))
    again = cuanto.read(path)
    assert type(again) is type(computed)
    for name in COMMON:
        assert getattr(again, name) == getattr(computed, name), name
    for name in ARRAYS:
        np.testing.assert_allclose(getattr(again, name), getattr(computed, name), atol=1e-12, err_msg=name)
    assert again.molecule.symbols == computed.molecule.symbols
    assert np.array_equal(again.molecule.R_ax, computed.molecule.R_ax)
    assert [step.energy for step in again.history] == [step.energy for step in computed.history]
    assert again.timings.seconds == computed.timings.seconds
    assert again.to_qcschema()["extras"] == computed.to_qcschema()["extras"]
    if isinstance(computed, GaussianResult):
        assert isinstance(again, GaussianResult)
        np.testing.assert_allclose(again.density, computed.density, atol=1e-9)
        del vars(again)["dipole"]
        np.testing.assert_allclose(again.dipole, computed.dipole, atol=1e-9)
        restarted = cuanto.energy(again.molecule, again.method, "sto-3g", backend="cpu", guess=again)
        assert restarted.iterations <= 3
    if isinstance(computed, SemiempiricalResult):
        assert isinstance(again, SemiempiricalResult)
        assert again.heat_of_formation == pytest.approx(computed.heat_of_formation, abs=1e-9)
        np.testing.assert_allclose(again.bond_orders, computed.bond_orders)
        with pytest.raises(InputError, match="no density matrix; repeat the calculation"):
            _ = again.density


@pytest.mark.parametrize(("method", "basis"), [("hf", "sto-3g"), ("pm6", None)])
def test_a_gradient_is_saved_and_read(
    method: str, basis: str | None, molecule: cuanto.Molecule, tmp_path: Path
) -> None:
    found = cuanto.gradient(molecule, method, basis, backend="cpu")
    found.save(tmp_path / "a.json")
    schema = json.loads((tmp_path / "a.json").read_text())
    assert schema["driver"] == "gradient" and schema["return_result"] == found.gradient.reshape(-1).tolist()
    again = cuanto.read(tmp_path / "a.json")
    np.testing.assert_array_equal(again.gradient, found.gradient)
    assert again.energy == found.energy and again.to_qcschema()["driver"] == "gradient"


def test_a_gradient_computed_later_is_saved(molecule: cuanto.Molecule) -> None:
    found = cuanto.energy(molecule, "hf", "sto-3g", backend="cpu")
    assert found.to_qcschema()["driver"] == "energy"
    gradient = found.gradient
    np.testing.assert_array_equal(cuanto.read(found.to_qcschema()).gradient, gradient)


@pytest.mark.parametrize(
    ("atoms", "method", "sets"), [("O H Gh-He", "rohf", 1), ("O H Gh-He", "uhf", 2), ("He", "rohf", 1)]
)
def test_restricted_open_shells_are_read_as_such(atoms: str, method: str, sets: int, tmp_path: Path) -> None:
    symbols = atoms.split()
    radical = cuanto.Molecule(symbols, np.array([[0, 0, 0], [0.6, 0.8, 1.5], [0, 0, 5.0]])[: len(symbols)])
    keywords: dict[str, Any] = {"field": [0.01, 0.005, -0.01], "backend": "cpu"}
    found = cuanto.energy(radical, method, "def2-svp", **keywords)
    again = cuanto.read(found.to_qcschema())
    assert again.coefficients.shape == found.coefficients.shape == (sets, *found.coefficients.shape[1:])
    assert again.orbital_energies.shape == found.orbital_energies.shape
    np.testing.assert_allclose(again.density, found.density, atol=1e-9)
    assert cuanto.energy(radical, method, "def2-svp", guess=again, **keywords).iterations <= 3


def test_the_terms_of_the_schema_add_up() -> None:
    """Core potentials are a part of the energy of single electrons."""
    iodide = cuanto.Molecule(["H", "I"], [[0, 0, 0], [0, 0, 3.0]])
    found = cuanto.energy(iodide, "hf", "def2-svp", backend="cpu")
    properties = found.to_qcschema()["properties"]
    names = ("scf_one_electron_energy", "scf_two_electron_energy", "nuclear_repulsion_energy")
    assert sum(properties[name] for name in names) == pytest.approx(found.energy, abs=1e-9)


def test_a_core_potential_without_a_local_part() -> None:
    """QCElemental requires a term in every part."""
    from qcelemental.models import AtomicInput, AtomicResult

    model, keywords = {"method": "hf", "basis": "cc-pvdz-pp"}, {"backend": "cpu"}
    iodine = {"symbols": ["I", "I"], "geometry": [0, 0, 0, 0, 0, 5.04]}
    given = {"molecule": iodine, "driver": "energy", "model": model, "keywords": keywords}
    done = cuanto.compute(AtomicInput(**given, protocols={"wavefunction": "all"}))
    assert isinstance(done, AtomicResult) and done.wavefunction is not None
    basis = cuanto.Basis("cc-pvdz-pp", cuanto.Molecule(["I", "I"], np.reshape(iodine["geometry"], (2, 3))))
    potential = basis.core_potentials[0]
    assert potential is not None and not potential.local
    assert potential_from_exchange("I", potential_entry(potential)) == potential


def test_a_checkpoint_is_a_result(molecule: cuanto.Molecule, tmp_path: Path) -> None:
    basis, backend = cuanto.Basis("sto-3g", molecule), cuanto.backends.get_backend("cpu")
    keep = Checkpoint(tmp_path / "a.h5", molecule, basis, "rhf", backend)
    result = cuanto.energy(molecule, "rhf", basis, backend="cpu", on_iteration=keep)
    again = cuanto.read(tmp_path / "a.h5")
    assert (again.energy, again.converged, again.iterations) == (result.energy, True, result.iterations)
    np.testing.assert_allclose(again.dipole, result.dipole, atol=1e-9)
    with pytest.raises(InputError, match="no orbital energies"):
        _ = again.homo


def test_results_of_other_programs(computed: Result) -> None:
    schema = computed.to_qcschema()
    del schema["extras"]
    schema.pop("wavefunction", None)
    schema |= {"keywords": {"scf_type": "df"}, "model": {"method": "b3lyp-d3bj", "basis": "def2-svp"}}
    theirs = cuanto.read(schema)
    assert theirs.energy == computed.energy and theirs.converged and theirs.method == "b3lyp-d3bj"
    np.testing.assert_allclose(theirs.dipole, computed.dipole)
    with pytest.raises(InputError, match="no atomic charges"):
        _ = theirs.charges


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "not valid JSON"),
        ("[]", "expected a JSON object"),
        ('{"schema_name": "qcschema_molecule"}', "not a result: give the JSON of"),
        ('{"success": false, "error": {}}', "a failed calculation"),
        ('{"model": {"method": "hf"}, "return_result": 1.0}', "symbols and geometry"),
        (
            '{"model": {}, "return_result": 1.0, "molecule": {"symbols": ["He"], "geometry": [0, 0, 0]}}',
            "not a complete QCSchema",
        ),
    ],
)
def test_files_without_a_result(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(content)
    with pytest.raises(InputError) as refused:
        cuanto.read(path)
    assert message in str(refused.value) and "\n" not in str(refused.value)
    with pytest.raises(InputError, match="does not exist"):
        cuanto.read(tmp_path / "nowhere.json")


# --------------------------------------------------------------------------------------------- QCEngine


def atomic_input(method: str = "rhf", driver: str = "energy", **keywords: Any) -> dict[str, Any]:
    geometry = [0.0, 0.0, 0.0, 0.0, 0.0, 0.92 / BOHR_IN_ANGSTROM]
    return {
        "schema_name": "qcschema_input",
        "schema_version": 1,
        "id": "17",
        "molecule": {"symbols": ["H", "F"], "geometry": geometry},
        "driver": driver,
        "model": {"method": method, "basis": None if method == "pm6" else "sto-3g"},
        "keywords": {"backend": "cpu", **keywords},
        "extras": {"tag": "mine"},
    }


def test_compute_as_qcengine_does() -> None:
    from qcelemental.models import AtomicInput, AtomicResult, FailedOperation

    done = cuanto.compute(atomic_input())
    assert isinstance(done, dict) and done["success"] and done["id"] == "17" and done["extras"]["tag"] == "mine"
    model = cuanto.compute(AtomicInput(**atomic_input(driver="properties")))
    assert isinstance(model, AtomicResult) and model.return_result["energy"] == pytest.approx(done["return_result"])
    failed = cuanto.compute(AtomicInput(**atomic_input("b3lip")))
    assert isinstance(failed, FailedOperation) and failed.error.error_type == "input_error"
    assert failed.input_data["id"] == "17"


def test_a_gradient_is_read_from_a_file(tmp_path: Path) -> None:
    """A file has the gradient and the forces on point charges, unless it was written for an energy."""
    options: dict[str, Any] = {"backend": "cpu", "point_charges": ([0.5], [[0.0, 1.0, 6.0]])}
    result, path = cuanto.gradient(cuanto.Molecule.from_string(HF), "hf", "sto-3g", **options), tmp_path / "hf.json"
    write_qcschema(path, result, "gradient")
    found: Any = cuanto.read(path)
    assert np.array_equal(found.gradient, result.gradient)
    assert np.array_equal(found.charges_gradient, result.charges_gradient)
    assert to_qcschema(found, driver="gradient")["return_result"] == result.gradient.reshape(-1).tolist()
    write_qcschema(path, result, "energy")
    with pytest.raises(InputError, match="repeat the calculation"):
        _ = cuanto.read(path).gradient


@pytest.mark.parametrize("method", ["pm6", "hf"])
def test_gradients_by_compute(method: str) -> None:
    done = cuanto.compute(atomic_input(method, "gradient"))
    slope_ax = np.array(done["return_result"]).reshape(2, 3)
    np.testing.assert_allclose(slope_ax.sum(axis=0), 0.0, atol=1e-10)
    assert done["properties"]["return_gradient"] == done["return_result"] and abs(slope_ax[0, 2]) > 1e-4


@pytest.mark.parametrize(
    ("given", "kind", "message"),
    [
        (atomic_input("hff"), "input_error", "unknown method"),
        (atomic_input(driver="optimization"), "input_error", "choose energy, gradient"),
        (atomic_input(max_iter=3), "input_error", "did you mean 'max_iterations'?"),
        (atomic_input(max_iterations=2), "convergence_error", "not converged in 2"),
        ({**atomic_input(), "model": {"method": "rhf"}}, "input_error", "rhf needs a basis"),
        (
            {**atomic_input("pm6"), "model": {"method": "pm6", "basis": "sto-3g"}},
            "input_error",
            "basis does not apply to pm6",
        ),
        ({**atomic_input(), "model": None}, "input_error", "has no model"),
        ({**atomic_input(), "molecule": {}}, "input_error", "symbols and geometry"),
    ],
)
def test_failures_of_compute(given: dict[str, Any], kind: str, message: str) -> None:
    failed = cuanto.compute(given)
    assert failed["success"] is False and failed["input_data"]["id"] == "17"
    assert failed["error"]["error_type"] == kind and message in failed["error"]["error_message"]
    with pytest.raises(cuanto.errors.CuantoError, match=message.replace("?", r"\?")):
        cuanto.compute(given, raise_error=True)


def second(driver: str = "energy", method: str = "rhf", **keywords: Any) -> dict[str, Any]:
    """The input of `atomic_input` as QCSchema 2."""
    given = atomic_input(method, driver, **keywords)
    specification = {name: given.pop(name) for name in ("driver", "model", "keywords", "extras")}
    specification["protocols"] = {"wavefunction": "all"}
    about = {"schema_name": "qcschema_atomic_input", "schema_version": 2, "specification": specification}
    return {**given, "molecule": {**given["molecule"], "schema_version": 3}, **about}


def test_version_2_of_the_schema(tmp_path: Path) -> None:
    """The answer has the version of the input; both versions agree, and both can be read again."""
    from qcelemental.models import v2

    first, done = cuanto.compute(atomic_input()), cuanto.compute(second())
    assert (done["schema_name"], done["schema_version"], done["id"]) == ("qcschema_atomic_result", 2, "17")
    assert done["return_result"] == first["return_result"] and done["properties"] == first["properties"]
    assert done["input_data"]["specification"]["extras"] == {"tag": "mine"}
    model = cuanto.compute(v2.AtomicInput(**second()))
    assert isinstance(model, v2.AtomicResult) and model.wavefunction is not None
    slopes = cuanto.compute(v2.AtomicInput(**second("gradient", "pm6")))
    assert isinstance(slopes, v2.AtomicResult) and slopes.return_result.shape == (2, 3)
    failed = cuanto.compute(v2.AtomicInput(**second(max_iterations=1)))
    assert isinstance(failed, v2.FailedOperation) and failed.error.error_type == "convergence_error"
    (tmp_path / "a.json").write_text(json.dumps(done))
    again = cuanto.read(tmp_path / "a.json")
    assert again.energy == first["return_result"] and again.converged and again.coefficients.shape == (1, 6, 6)
    assert "HOMO" in report_html(done)


def test_version_2_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The answer describes what was computed, also if options override the input."""
    from qcelemental.models import v2

    given, out = tmp_path / "in.json", tmp_path / "out.json"
    given.write_text(json.dumps(second()))
    call = ["energy", str(given), "--charge", "1", "-m", "uhf", "-q", "--json", str(out)]
    with pytest.raises(SystemExit):
        run(call)
    assert capsys.readouterr().out.startswith("in -")
    answer = v2.AtomicResult(**json.loads(out.read_text()))
    inputs = answer.input_data
    assert inputs.specification.model.method == "uhf" and inputs.molecule.molecular_charge == 1.0
    assert answer.molecule.molecular_multiplicity == 2 and answer.wavefunction is not None
    with pytest.raises(SystemExit) as leaving:
        run([*call, "-o", "max_iterations=2"])
    stopped = json.loads(out.read_text())
    assert leaving.value.code == 1 and v2.FailedOperation(**stopped).error.error_type == "convergence_error"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({**second(), "specification": None}, "without a specification"),
        ({**second(), "schema_name": "qcschema_optimization_input"}, "one calculation of one molecule"),
        (second(method="hff"), "unknown method 'hff'"),
    ],
)
def test_wrong_schemas_of_version_2(given: dict[str, Any], message: str) -> None:
    failed = cuanto.compute(given)
    assert failed["success"] is False and message in failed["error"]["error_message"]


# --------------------------------------------------------------------------------------------- ASE


def test_ase_calculator() -> None:
    from ase import Atoms
    from ase.calculators.calculator import SCFError

    from cuanto.interfaces.ase import Cuanto

    atoms = Atoms("HF", [[0, 0, 0], [0, 0, 0.92]], calculator=Cuanto("rhf", basis="sto-3g", backend="cpu"))
    expected = cuanto.energy(cuanto.Molecule.from_string(HF), "rhf", "sto-3g", backend="cpu")
    assert atoms.get_potential_energy() == pytest.approx(expected.energy * HARTREE_IN_EV, abs=1e-7)
    np.testing.assert_allclose(atoms.get_dipole_moment(), expected.dipole * BOHR_IN_ANGSTROM, atol=1e-5)
    np.testing.assert_allclose(atoms.get_charges(), expected.mulliken_charges, atol=1e-5)
    first = atoms.calc.result.iterations
    atoms.positions[1, 2] += 0.001
    atoms.get_potential_energy()
    assert atoms.calc.result.iterations < first, "it starts from the orbitals before"
    atoms.calc.set(max_iterations=1)
    with pytest.raises(SCFError, match="not converged"):
        atoms.get_potential_energy()


@pytest.mark.parametrize(
    "settings",
    [
        {"method": "pm6"},
        {"method": "hf", "basis": "sto-3g"},
        {"method": "rohf", "basis": "sto-3g", "fitting": "none"},
        {"method": "b3lyp", "basis": "sto-3g", "grid": "coarse"},
    ],
    ids=lambda settings: settings["method"],
)
def test_ase_forces(settings: dict[str, str]) -> None:
    from ase import Atoms

    from cuanto.interfaces.ase import Cuanto

    atoms = Atoms("HF", [[0, 0, 0], [0.1, 0, 0.97]], calculator=Cuanto(**settings, backend="cpu"))
    force, step, energies = atoms.get_forces()[1, 2], 1e-3, []
    for sign in (1, -1):
        moved = atoms.copy()
        moved.positions[1, 2] += sign * step
        moved.calc = Cuanto(**settings, backend="cpu")
        energies.append(moved.get_potential_energy())
    assert force == pytest.approx(-(energies[0] - energies[1]) / (2 * step), abs=1e-4)
    later = Atoms("HF", atoms.positions, calculator=Cuanto(**settings, backend="cpu"))
    later.get_potential_energy()  # the forces that follow need a tighter SCF than this energy
    assert later.get_forces()[1, 2] == pytest.approx(force, abs=1e-5)
    cation = Atoms("HF", atoms.positions, charges=[0, 1], calculator=Cuanto(**settings, backend="cpu"))
    cation.get_potential_energy()
    assert (cation.calc.result.molecule.charge, cation.calc.result.molecule.multiplicity) == (1, 2)


def test_optional_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    code = "import sys; sys.modules['ase.calculators.calculator'] = None\nimport cuanto.interfaces.ase"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr.rstrip().endswith("the calculator needs ASE: `pip install 'cuanto[ase]'`")
    monkeypatch.setitem(sys.modules, "qcelemental.models", None)
    with pytest.raises(MissingDependencyError, match="pip install qcelemental"):
        cuanto.compute(atomic_input(), return_dict=False)
