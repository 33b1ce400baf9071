"""``cuanto frequencies``: what it prints, the files it writes, tables of many molecules, refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from cuanto.cli import main

XYZ = "3\n\nO 0 0 0.1273\nH 0 0.7581 -0.5087\nH 0 -0.7581 -0.5087\n"
PLANAR = "4\n\nN 0 0 0\nH 0 0.9807452 0\nH 0.84935026 -0.4903726 0\nH -0.84935026 -0.4903726 0\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "water.xyz").write_text(XYZ)
    (tmp_path / "ammonia.xyz").write_text(PLANAR)
    return tmp_path


def run_command(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stopped:
        main.run([*words, "--backend", "cpu"])
    shown = capsys.readouterr()
    return int(stopped.value.code or 0), shown.out, shown.err


def test_it_prints_modes_and_writes_files(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = ["--json", "w.json", "--molden", "w.molden", "--report", "w.html"]
    status, out, err = run_command(
        capsys, "frequencies", "water.xyz", "-m", "hf", "-b", "sto-3g", "--fitting", "none", *files
    )
    assert status == 0 and "WARNING" not in err
    assert "wavenumber / cm^-1" in out and "Gibbs energy G" in out and "C2v, symmetry number 2" in out
    schema = json.loads((folder / "w.json").read_text())
    assert schema["driver"] == "hessian" and "wavefunction" in schema
    assert "wavefunction" not in json.loads((folder / "water_hessian.json").read_text())
    assert "[FR-NORM-COORD]" in (folder / "w.molden").read_text()
    assert "Infrared spectrum" in (folder / "w.html").read_text()
    assert not (folder / "water_freq.journal").exists()
    status, out, _ = run_command(
        capsys, "freq", "water_hessian.json", "-q", "--isotopes", "H=D", "--temperature", "500"
    )
    assert status == 0 and out.startswith("water_hessian -74.9")
    with pytest.raises(SystemExit):
        main.run(["report", "water_hessian.json"])
    assert "Thermochemistry" in (folder / "water_hessian.html").read_text()


@pytest.mark.parametrize(
    "words",
    [("--charge", "1"), ("--mult", "3"), ("-o", "smearing=0.01"), ("--step", "0.01"), ("--follow-imaginary",)],
    ids=" ".join,
)
def test_a_hessian_file_refuses_options_of_calculations(
    words: tuple[str, ...], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(capsys, "freq", "water.xyz", "-m", "pm6", "-q")[0] == 0
    status, out, err = run_command(capsys, "freq", "water_hessian.json", *words)
    name = words[-1].partition("=")[0] if words[0] == "-o" else words[0].strip("-").replace("-", "_")
    assert (status, out) == (2, "") and f"on which {name} would have no effect: leave" in err
    assert run_command(capsys, "freq", "water_hessian.json", "-m", "pm6", "-q", *words)[0] != 2


def test_scaled_wavenumbers(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["freq", "water.xyz", "-m", "pm6", "--scale", "0.95", "--report", "w.html"]
    status, out, _ = run_command(capsys, *words)
    modes, thermal = out.split(" thermochemistry at")
    first = next(line.split() for line in modes.splitlines() if line.split()[:1] == ["1"])
    assert status == 0 and "times 0.95" in modes and float(first[4]) == pytest.approx(0.95 * float(first[1]), abs=0.01)
    assert first[4] in (folder / "w.html").read_text().replace("&nbsp;", "")
    assert "heat capacity C_p" in thermal and "kJ/mol: without the electronic energy" in thermal
    assert all(len(line) <= 80 for line in modes.splitlines())


def test_files_from_a_hessian_file_have_the_given_conditions(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The isotopes and conditions of the command, not those in the file."""
    assert run_command(capsys, "freq", "water.xyz", "-m", "pm6", "--json", "w.json", "-q")[0] == 0
    words = ["--scale", "0.9", "--temperature", "500", "--isotopes", "H=D", "--report", "w.html", "--json", "new.json"]
    for file in ("w.json", "water_hessian.json"):
        status, out, _ = run_command(capsys, "freq", file, *words)
        first = next(line.split() for line in out.splitlines() if line.split()[:1] == ["1"])
        page = (folder / "w.html").read_text().replace("&nbsp;", "")
        assert status == 0 and first[4] in page and "500 K" in page and "Infrared spectrum" in page
        again = json.loads((folder / "new.json").read_text())["extras"]["cuanto"]["vibrations"]
        assert again["conditions"]["temperature"] == 500
        assert float(first[1]) == pytest.approx(again["wavenumbers_per_cm"][0], abs=0.01)
        (folder / "w.html").unlink()
        (folder / "new.json").unlink()


def test_imaginary_modes_are_warnings_and_can_be_followed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run_command(capsys, "freq", "ammonia.xyz", "-m", "pm6")
    assert status == 0 and "WARNING: 1 imaginary mode" in err and "-1" in out.split("wavenumber")[1]
    assert "leaves it out; --follow-imaginary displaces" in err
    status, out, err = run_command(capsys, "freq", "ammonia.xyz", "-m", "pm6", "--follow-imaginary")
    assert status == 0 and "imaginary" not in err and "0 imaginary modes left" in out
    assert (folder / "ammonia_minimum.xyz").exists()


def test_a_geometry_that_is_not_stationary_is_no_minimum(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "start.xyz").write_text("3\n\nO 0 0 0\nH 0.96 0 0\nH -0.24 0.93 0\n")
    status, _, err = run_command(capsys, "freq", "start.xyz", "-m", "pm6", "--follow-imaginary", "-q")
    assert status == 1 and "cuanto: start: WARNING: the geometry is not a stationary point" in err
    assert not (folder / "start_minimum.xyz").exists()


def test_a_file_that_is_no_journal_stays(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "notes.txt").write_text("important")
    status, out, err = run_command(capsys, "freq", "water.xyz", "-m", "pm6", "--journal", "notes.txt")
    assert status == 2 and "notes.txt exists and is not a journal" in err and "are kept in" not in out
    assert (folder / "notes.txt").read_text() == "important"


def test_a_table_of_many_molecules(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "bad.xyz").write_text("2\n\nH 0 0 0\nH 0 0 0\n")
    words = ["freq", "water.xyz", "ammonia.xyz", "bad.xyz", "-m", "pm6", "--out", "all.parquet", "--workers", "0"]
    status, out, _ = run_command(capsys, *words, "--temperature", "350")
    assert status == 2 and "1 failed" in out
    rows: list[dict[str, Any]] = pyarrow.parquet.read_table(folder / "all.parquet").to_pylist()
    assert len(rows[0]["wavenumbers_per_cm"]) == 3 and len(rows[1]["intensities_km_mol"]) == 6
    assert rows[1]["wavenumbers_per_cm"][0] < 0 and rows[2]["error"]
    assert rows[0]["gibbs_energy_hartree"] < rows[0]["enthalpy_hartree"]
    status, out, _ = run_command(capsys, *words, "--temperature", "350")
    assert "2 already known" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--isotopes", "2"], "write ATOM=ISOTOPE"),
        (["--isotopes", "7=D"], "there is no atom 7"),
        (["--temperature", "-3"], "temperature is -3"),
        (["--entropy", "best"], "unknown entropy"),
        (["--step", "2"], "step is 2 Bohr"),
        (["--hessian", "water.xyz"], "would overwrite"),
        (["--out", "t.csv", "--journal", "j"], "--journal is for single molecules"),
    ],
)
def test_refusals(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = run_command(capsys, "frequencies", "water.xyz", "-m", "pm6", *words)
    assert status == 2 and message in err


def test_energy_refuses_an_input_that_asks_for_a_hessian(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    molecule = {"symbols": ["H", "H"], "geometry": [0, 0, 0, 0, 0, 1.4]}
    schema = {"schema_name": "qcschema_input", "schema_version": 1, "molecule": molecule, "driver": "hessian"}
    (folder / "h.json").write_text(json.dumps({**schema, "model": {"method": "pm6", "basis": None}, "keywords": {}}))
    status, _, err = run_command(capsys, "energy", "h.json")
    assert status == 2 and "use `cuanto frequencies`" in err
    assert run_command(capsys, "freq", "h.json")[0] == 0
