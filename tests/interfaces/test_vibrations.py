"""Files of vibrations: QCSchema with a Hessian, Hessian files that are read again, Molden files with normal modes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import qcelemental

import cuanto
from cuanto.cli.main import run
from cuanto.errors import InputError
from cuanto.interfaces.vibrations import modes_molden, read_hessian, write_hessian
from vibration_cases import HF, PM6, WATER, water


def test_qcschema_has_the_hessian() -> None:
    schema = water().to_qcschema()
    assert schema["driver"] == "hessian" and schema["success"]
    model = qcelemental.models.AtomicResult(**schema)
    assert np.allclose(np.array(model.return_result).reshape(9, 9), water().hessian)
    extras = schema["extras"]["cuanto"]["vibrations"]
    assert extras["wavenumbers_per_cm"] == pytest.approx(water().wavenumbers.tolist())
    assert extras["thermochemistry"]["gibbs_energy"] == water().thermochemistry.gibbs_energy
    json.dumps(schema, allow_nan=False)


def test_a_hessian_file_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "water.json"
    original = cuanto.frequencies(WATER, **PM6, isotopes={2: "D"}, temperature=400.0)
    write_hessian(path, original)
    found = read_hessian(path)
    assert np.allclose(found.wavenumbers, original.wavenumbers, atol=1e-9)
    assert np.allclose(found.intensities, original.intensities, atol=1e-9)
    assert found.thermochemistry.gibbs_energy == pytest.approx(original.thermochemistry.gibbs_energy, abs=1e-12)
    assert found.level_of_theory == "pm6" and found.notes == original.notes
    assert np.allclose(read_hessian(original.to_qcschema()).wavenumbers, found.wavenumbers)
    with pytest.raises(InputError, match="lack the result"):
        found.to_qcschema()


@pytest.mark.parametrize(
    "wrong",
    [
        {"driver": "energy", "return_result": 1.0},
        {"driver": "hessian"},
        {"driver": "hessian", "return_result": [1.0], "model": {"method": "hf"}},
    ],
)
def test_other_files_are_refused(wrong: dict[str, object]) -> None:
    molecule = {"symbols": ["H", "H"], "geometry": [0, 0, 0, 0, 0, 1.4]}
    with pytest.raises(InputError):
        read_hessian({"schema_name": "qcschema_output", "schema_version": 1, "molecule": molecule, **wrong})


@pytest.mark.parametrize("method", [HF, PM6], ids=["hf", "pm6"])
def test_molden_files_have_normal_modes(method: dict[str, object], tmp_path: Path) -> None:
    found = water() if method is HF else cuanto.frequencies(WATER, **PM6)
    text = modes_molden(found)
    sections = {part.split("]")[0]: part.split("]", 1)[1].split("\n")[1:-1] for part in text.split("[")[1:]}
    assert [float(line) for line in sections["FREQ"]] == pytest.approx(found.wavenumbers.tolist(), abs=1e-4)
    assert [float(line) for line in sections["INT"]] == pytest.approx(found.intensities.tolist(), abs=1e-4)
    numbers = [line.split() for line in sections["FR-NORM-COORD"] if not line.startswith("vibration")]
    assert np.allclose(np.array(numbers, dtype=float).reshape(3, 3, 3), found.modes, atol=1e-7)
    coordinates = np.array([line.split()[1:] for line in sections["FR-COORD"]], dtype=float)
    assert np.allclose(coordinates, WATER.R_ax, atol=1e-9)
    assert ("MO" in sections) == (method is HF)
    path = tmp_path / "water.molden"
    path.write_text(text)
    assert cuanto.Molecule.from_file(path).symbols == WATER.symbols


def test_qcengine_may_ask_for_a_hessian() -> None:
    schema = water().to_qcschema()
    inputs = {"molecule": schema["molecule"], "driver": "hessian", "model": {"method": "pm6", "basis": None}}
    answer = cuanto.compute(
        {"schema_name": "qcschema_input", "schema_version": 1, **inputs, "keywords": {"backend": "cpu"}}
    )
    assert answer["success"] and len(answer["return_result"]) == 81


def hydroxide(masses: object) -> dict[str, Any]:
    molecule = {"symbols": ["O", "H"], "geometry": [0, 0, 0, 0, 0, 1.8], "molecular_charge": -1, "masses": masses}
    inputs = {"driver": "hessian", "model": {"method": "pm6", "basis": None}, "keywords": {"backend": "cpu"}}
    return {"schema_name": "qcschema_input", "schema_version": 1, "molecule": molecule, **inputs}


def test_masses_of_the_input_are_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = cuanto.compute(hydroxide([16, 2.014]), raise_error=True)
    found = answer["extras"]["cuanto"]["vibrations"]
    assert found["masses_u"] == [16.0, 2.014]
    light = cuanto.compute(hydroxide(None), raise_error=True)["extras"]["cuanto"]["vibrations"]
    ratio = np.sqrt((1 / 15.999 + 1 / 1.008) / (1 / 16.0 + 1 / 2.014))
    assert light["wavenumbers_per_cm"][0] / found["wavenumbers_per_cm"][0] == pytest.approx(ratio, abs=1e-4)
    monkeypatch.chdir(tmp_path)
    Path("ion.json").write_text(json.dumps(hydroxide([16, 2.014])))
    with pytest.raises(SystemExit):
        run(("frequencies", "ion.json", "--json", "found.json", "--isotopes", "1=18O"))
    masses = json.loads(Path("found.json").read_text())["extras"]["cuanto"]["vibrations"]["masses_u"]
    assert masses == pytest.approx([17.9992, 2.014], abs=1e-4)
    with pytest.raises(SystemExit):
        run(("frequencies", "ion.json", "--out", "table.jsonl", "--workers", "0"))
    assert json.loads(Path("table.jsonl").read_text())["wavenumbers_per_cm"] == pytest.approx(
        found["wavenumbers_per_cm"]
    )


def test_isotopes_of_the_input_are_never_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In Python, for mass numbers, after an optimisation and in its XYZ file; `isotopes` still override them."""
    monkeypatch.chdir(tmp_path)
    light = WATER.R_ax.reshape(-1).tolist()
    water = {"symbols": ["O", "H", "H"], "geometry": light, "mass_numbers": [16, 2, 2]}
    Path("heavy.json").write_text(json.dumps(water))
    expected = [15.99491461957, 2.01410177812, 2.01410177812]
    found = cuanto.frequencies("heavy.json", **PM6, workers=0)
    standard = cuanto.frequencies(WATER, **PM6, workers=0)
    assert found.masses.tolist() == pytest.approx(expected, abs=1e-10)
    reference = standard.with_isotopes({"O": "16O", "H": "D"})
    assert found.wavenumbers == pytest.approx(reference.wavenumbers, abs=1e-3)
    mixed = cuanto.frequencies("heavy.json", **PM6, workers=0, isotopes={2: 1.008})
    assert mixed.masses.tolist() == pytest.approx([expected[0], 1.008, expected[2]], abs=1e-10)
    inputs = {"driver": "hessian", "model": {"method": "pm6", "basis": None}, "keywords": {"backend": "cpu"}}
    answer = cuanto.compute({"molecule": water, **inputs}, raise_error=True)
    assert answer["extras"]["cuanto"]["vibrations"]["masses_u"] == pytest.approx(expected, abs=1e-10)
    assert answer["molecule"]["masses"] == pytest.approx(expected, abs=1e-10)
    with pytest.raises(SystemExit):
        run(("optimize", "heavy.json", "-m", "pm6", "--json", "optimized.json", "--backend", "cpu"))
    for name in ("optimized.json", "heavy_optimized.xyz"):
        with pytest.raises(SystemExit):
            run(("frequencies", name, "-m", "pm6", "--hessian", "found.json", "--backend", "cpu"))
        masses = json.loads(Path("found.json").read_text())["extras"]["cuanto"]["vibrations"]["masses_u"]
        assert masses == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("masses", [[16.0], [16.0, "D"], 2, [16.0, -1.0], [16.0, 10**400]])
def test_wrong_masses_are_refused(masses: object) -> None:
    with pytest.raises(InputError, match="masses must be 2 numbers"):
        cuanto.compute(hydroxide(masses), raise_error=True)
