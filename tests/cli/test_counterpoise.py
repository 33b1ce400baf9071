"""``cuanto energy --counterpoise`` and ``task = "counterpoise"``: tables, files, errors of one line, status."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import cuanto
from cuanto.cli.main import run

DIMER = "5\nname=pair\nF 0 0 0\nH 0 0 0.92\nX 0 0 1.8\nF 0.1 0 2.75\nH 0.9 0 3.15\n"
"""Two HF molecules, with a dummy atom between them."""
JOB = """
molecule = "pair.xyz"
task = "counterpoise"
basis = "def2-svp"
backend = "cpu"

[counterpoise]
fragments = [2, 2]
charges = [0, 0]

[output]
json = "{name}.json"
report = "{name}.html"
molden = "{name}.molden"
"""


@pytest.fixture(autouse=True)
def work_in_tmp_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "150")
    Path("pair.xyz").write_text(DIMER)


def status_of(*arguments: str) -> int:
    with pytest.raises(SystemExit) as leaving:
        run(arguments)
    code = leaving.value.code
    return 0 if code is None else int(code)


def energy(*arguments: str) -> int:
    return status_of("energy", "pair.xyz", "-b", "def2-svp", "--backend", "cpu", *arguments)


@pytest.fixture(scope="module")
def expected() -> cuanto.CounterpoiseResult:
    pair = cuanto.Molecule.from_string(DIMER)
    assert pair.symbols == ("F", "H", "F", "H")
    return cuanto.counterpoise(pair, "2,2", "hf", "def2-svp", backend="cpu")


def test_table(capsys: pytest.CaptureFixture[str], expected: cuanto.CounterpoiseResult) -> None:
    assert energy("--counterpoise", "2,2", "--json", "-") == 0
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    mine = found["extras"]["cuanto"]["counterpoise"]
    assert found["success"] and found["provenance"]["routine"] == "cuanto.counterpoise"
    assert mine["corrected_interaction_energy"] == pytest.approx(expected.corrected, abs=1e-9)
    assert found["return_result"] == mine["complex_energy"] == pytest.approx(expected.complex.energy, abs=1e-9)
    assert "dummy atom 3, without functions, charge or grid points" in captured.err
    assert "pair: 4 atoms, charge 0, multiplicity 1, rhf/def2-svp, 38 functions, spherical, 2 fragments" in captured.err
    lines = captured.err.splitlines()
    names = ["complex", "fragment 1 in the complex", "fragment 1", "fragment 2 in the complex", "fragment 2"]
    assert [line[:26].strip() for line in lines if re.match("complex|fragment ", line)] == names
    (corrected,) = (line for line in lines if "energy, corrected" in line)
    (error,) = (line for line in lines if "error, corrected" in line)
    assert f"{expected.corrected_error:.1e}  Hartree" in error and "fitting" in lines[lines.index(error) + 1]
    assert all(len(line) <= 80 for line in lines if "Hartree " in line)
    assert mine["corrected_interaction_energy_error"] == pytest.approx(expected.corrected_error, rel=1e-3)
    assert f"{expected.corrected:.6f}" in corrected and f"{expected.corrected_kcal_mol:.4f}" in corrected
    assert "converged in" in lines[-1] and "of 5 calculations" in lines[-1]


def test_a_job_writes_files_of_the_complex(
    capsys: pytest.CaptureFixture[str], expected: cuanto.CounterpoiseResult
) -> None:
    Path("job.toml").write_text(JOB)
    assert status_of("run", "job.toml", "-q") == 0
    line = capsys.readouterr().out
    assert re.fullmatch(r"pair -0\.00\d{7} Hartree, -4\.\d{6} kcal/mol\n", line)
    assert float(line.split()[1]) == pytest.approx(expected.corrected, abs=2e-9)
    again = cuanto.read("pair.json")
    assert again.energy == pytest.approx(expected.complex.energy, abs=1e-9)
    page = Path("pair.html").read_text()
    assert "interaction energy, corrected" in page and "estimated error, corrected" in page
    assert Path("pair.molden").read_text().startswith("[Molden Format]")


def test_not_converged(capsys: pytest.CaptureFixture[str]) -> None:
    assert energy("--counterpoise", "1,2;3,4", "-o", "max_iterations=2", "--json", "pair.json") == 1
    captured = capsys.readouterr()
    assert "estimated error" not in captured.out
    assert captured.out.count("NOT converged") == 5 and "NOT converged: check geometry" in captured.err
    assert not json.loads(Path("pair.json").read_text())["success"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--counterpoise", "2,3"), "fragments of 2, 3 atoms are 5 atoms, the molecule has 4"),
        (("--counterpoise", "2,2", "--out", "a.csv"), "--counterpoise and --out exclude each other"),
        (("--counterpoise", "2,2", "--checkpoint", "a.h5"), "--checkpoint does not apply to a counterpoise"),
        (("--counterpoise", "2,2", "--restart", "a.h5"), "--restart does not apply to a counterpoise"),
        (("--fragment-charges", "0,0"), "--fragment-charges needs --counterpoise"),
        (("--fragment-mult", "1,1"), "--fragment-mult needs --counterpoise"),
        (("--counterpoise", "2,2", "--fragment-charges", "1,-2"), "do not add up to that of the complex, 0"),
    ],
)
def test_errors_are_one_line(arguments: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert energy(*arguments) == 2
    assert says in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("fragments = [2, 2]", "fragment = [2, 2]", "did you mean 'fragments'?"),
        ("[2, 2]", "[2, 3]", "fragments of 2, 3 atoms are 5 atoms"),
        ('task = "counterpoise"', "", "[counterpoise] has settings of another task"),
        ('basis = "def2', 'restart = "a.h5"\nbasis = "def2', "restart does not apply to task = 'counterpoise'"),
        ("json =", "checkpoint =", "[output]: unknown key"),
        ("backend =", 'method = "pm6"\nbackend =', "counterpoise correction"),
    ],
)
def test_errors_of_jobs(old: str, new: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("job.toml").write_text(JOB.replace(old, new))
    assert status_of("run", "job.toml") == 2
    assert says in (line := capsys.readouterr().err.splitlines()[-1]) and "job.toml" in line
