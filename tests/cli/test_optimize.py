"""``cuanto optimize``: printed steps, files, one-line errors, exit status, tables of many molecules."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import cuanto
from cuanto.cli.main import run
from scripted import wait_until

WATER = "3\n\nO 0 0 0\nH 0.9 0 0.1\nH -0.3 0.95 0\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COLUMNS", "150")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "water.xyz").write_text(WATER)
    return tmp_path


def status_of(*arguments: str) -> int:
    with pytest.raises(SystemExit) as stopped:
        run(arguments)
    code = stopped.value.code
    return 0 if code is None else int(code)


@pytest.mark.parametrize("name", ["optimize", "optimise", "opt"])
def test_steps_are_printed_and_files_written(name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of(name, "water.xyz", "-m", "pm6") == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "water: 3 atoms, charge 0, multiplicity 1, pm6"
    assert shown[-1] == "converged in 5 steps"
    assert [line.split()[0] for line in shown[3:8]] == ["1", "2", "3", "4", "5"]
    assert shown[3].count("*") == 0 and shown[7].count("*") == 4
    assert sorted(path.name for path in folder.iterdir()) == ["water.xyz", "water_opt.xyz", "water_optimized.xyz"]
    end = cuanto.Molecule.from_xyz("water_optimized.xyz")
    assert cuanto.gradient(end, "pm6").energy == pytest.approx(-11.7258827, abs=1e-7)
    assert (folder / "water_opt.xyz").read_text().count("Properties=") == 5


def test_no_convergence_has_status_1(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of("optimize", "water.xyz", "-m", "pm6", "--max-steps", "2") == 1
    shown = capsys.readouterr()
    assert shown.err.startswith("cuanto: NOT converged in 2 steps") and "converged in" not in shown.out
    assert "converged=F" in (folder / "water_optimized.xyz").read_text()


def test_a_minimum_is_no_transition_state(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """More steps are advised only if there were too few."""
    assert status_of("optimize", "water.xyz", "-m", "pm6", "--convergence", "tight", "-q") == 0
    search = ("optimize", "water_optimized.xyz", "-m", "pm6", "--ts")
    assert status_of(*search) == 1
    error = capsys.readouterr().err
    assert ": the search ended at a point that is not a transition state; try a better starting point" in error
    assert "--max-steps" not in error and error.count("\n") == 1
    assert status_of("optimize", "water.xyz", "-m", "pm6", "--ts", "--max-steps", "1") == 1
    assert "NOT converged in 1 step; try a larger --max-steps, or a better" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--freeze", "distance 1 4"], "there is no atom 4"),
        (["--pre", "hf"], "pre is 'hf'"),
        (["--ts", "--scan", "distance 1 2 1 2 3"], "a scan optimises minima"),
        (["--molden", "a.molden"], "--molden does not apply to pm6"),
        (["--structure", "water.xyz"], "would overwrite the input"),
        (["--workers", "2"], "name a table with --out"),
        (["--hessian", "exact"], "unknown hessian"),
        (["-b", "sto-3g"], "basis does not apply to pm6"),
    ],
)
def test_errors_are_one_line(
    arguments: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status_of("optimize", "water.xyz", "-m", "pm6", *arguments) == 2
    shown = capsys.readouterr()
    assert message in shown.err and shown.err.count("\n") == 1
    assert [path.name for path in folder.iterdir()] == ["water.xyz"]


def test_json_and_report(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of("opt", "water.xyz", "-m", "pm6", "--json", "-", "--report", "water.html") == 0
    schema = json.loads(capsys.readouterr().out)
    assert schema["schema_name"] == "qcschema_optimization_output" and schema["success"]
    assert "pm6" in (folder / "water.html").read_text()


@pytest.mark.parametrize("task", ["opt", "Optimise"])
def test_other_names_of_the_task(task: str, folder: Path) -> None:
    (folder / "opt.toml").write_text(f'molecule = "water.xyz"\ntask = "{task}"\nmethod = "pm6"\n')
    assert status_of("run", "opt.toml") == 0 and (folder / "water_opt.xyz").exists()


def test_a_scan_and_constraints_of_a_job(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "scan.toml").write_text(
        'molecule = "water.xyz"\ntask = "optimize"\nmethod = "pm6"\n'
        '[optimize]\nfreeze = ["distance 1 2"]\nscan = ["angle 2 1 3 100 110 2"]\n[output]\nstructure = "scan.xyz"\n'
    )
    assert status_of("run", "scan.toml") == 0
    shown = capsys.readouterr().out
    assert "point 2 of 2: angle 2 1 3 110 degrees" in shown
    text = (folder / "scan.xyz").read_text()
    assert text.count("Properties=") == 2 and "angle_2_1_3=110" in text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('task = "relax"', "unknown task 'relax': choose energy, gradient, optimize"),
        ("[optimize]\nts = true", "[optimize] has settings of another task"),
        ('task = "optimize"\nrestart = "a.h5"', "restart does not apply to task = 'optimize'"),
        ('task = "optimize"\n[optimize]\nconverge = "tight"', "did you mean 'convergence'"),
        ('task = "optimize"\n[output]\ncheckpoint = "a.h5"', "[output]: unknown key 'checkpoint'"),
    ],
)
def test_wrong_jobs(text: str, message: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "job.toml").write_text(f'molecule = "water.xyz"\nmethod = "pm6"\n{text}\n')
    assert status_of("run", "job.toml") == 2
    assert message in capsys.readouterr().err


def test_gradients_in_a_job(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "job.toml").write_text('molecule = "water.xyz"\ntask = "gradient"\nmethod = "pm6"\n')
    assert status_of("run", "job.toml") == 0
    assert "norm of the gradient" in capsys.readouterr().out


def test_several_molecules(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "hf.xyz").write_text("2\n\nH 0 0 0\nF 0 0 1.0\n")
    assert status_of("opt", "water.xyz", "hf.xyz", "-m", "pm6", "-q") == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["water", "hf"]
    assert (folder / "hf_optimized.xyz").exists()


def test_a_table_of_many(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A molecule that fails does not stop the rest; a second run computes nothing again."""
    (folder / "ghost.xyz").write_text("4\n\nO 0 0 0\nH 0.9 0 0.1\nH -0.3 0.95 0\nGh-O 0 0 3\n")
    given = ["opt", "water.xyz", "ghost.xyz", "-m", "pm6", "--out", "all.csv", "--workers", "0"]
    assert status_of(*given) == 2
    water, ghost = csv.DictReader((folder / "all.csv").read_text().splitlines())
    alone = cuanto.optimize(cuanto.Molecule.from_string(WATER), "pm6")
    assert float(water["energy_hartree"]) == pytest.approx(alone.energy, abs=1e-10)
    assert int(water["steps"]) == alone.iterations and water["converged"] == "True"
    assert json.loads(water["positions_bohr"]) == pytest.approx(alone.molecule.R_ax.reshape(-1).tolist(), abs=1e-8)
    assert "ghost" in ghost["error"] and not ghost["energy_hartree"]
    capsys.readouterr()
    assert status_of(*given) == 2
    assert "1 already known" in capsys.readouterr().out
    # Other criteria are another calculation, here in a worker process.
    assert status_of(*given[:-2], "--convergence", "tight", "--workers", "1") == 2
    assert "1 computed" in capsys.readouterr().out


def test_a_killed_command_continues(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["optimize", "water.xyz", "-m", "hf", "-b", "sto-3g", "--backend", "cpu"]
    process = subprocess.Popen([sys.executable, "-m", "cuanto", *command], stdout=subprocess.DEVNULL, env=os.environ)
    journal = folder / "water_opt.xyz.journal"
    try:
        wait_until(lambda: journal.exists() and journal.read_bytes().count(b"\n") >= 2)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert journal.exists() and not (folder / "water_optimized.xyz").exists()
    assert status_of(*command) == 0
    assert "from the journal" in capsys.readouterr().out.splitlines()[1]
    assert not journal.exists() and (folder / "water_optimized.xyz").exists()


def test_a_table_by_a_dask_cluster(folder: Path) -> None:
    import distributed

    (folder / "hf.xyz").write_text("2\n\nH 0 0 0\nF 0 0 1.0\n")
    settings = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
    with distributed.LocalCluster(**settings) as cluster:
        given = ["opt", "water.xyz", "hf.xyz", "-m", "pm6", "--out", "all.csv"]
        assert status_of(*given, "--scheduler", cluster.scheduler_address) == 0
    rows = list(csv.DictReader((folder / "all.csv").read_text().splitlines()))
    alone = cuanto.optimize(cuanto.Molecule.from_string(WATER), "pm6")
    assert float(rows[0]["energy_hartree"]) == pytest.approx(alone.energy, abs=1e-9)
    assert [row["converged"] for row in rows] == ["True", "True"]
