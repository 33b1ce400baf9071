"""Many molecules: rows equal single calculations, failures are isolated, runs can be continued, tables are complete."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ase
import numpy as np
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

import cuanto
from cuanto.backends.base import get_backend
from cuanto.batch import Row, energies
from cuanto.batch import run as module
from cuanto.batch.entry import Entry, entries_of, structures
from cuanto.batch.evaluate import _row, evaluate
from cuanto.batch.run import Batch, chunks
from cuanto.batch.table import COLUMNS, Table
from cuanto.cli.main import app
from cuanto.errors import CuantoError, InputError, MissingDependencyError
from cuanto.interfaces.sources import Model
from cuanto.motion.record import content_of
from cuanto.motion.tasks import plain_molecule
from cuanto.processes import LostWorkerError, ProcessRunner, TaskError
from cuanto.units import BOHR_IN_ANGSTROM
from cuanto.workers import DaskRunner, SerialRunner
from paths import SUPPORT
from scripted import wait_until


def hydrogen(distance: float, **about: Any) -> cuanto.Molecule:
    return cuanto.Molecule(["H", "H"], [[0, 0, 0], [0, 0, distance]], **about)


def xyz(distance: float) -> str:
    return f"2\n\nH 0 0 0\nH 0 0 {distance}\n"


H2 = [hydrogen(1.3 + 0.1 * k, name=f"h{k}") for k in range(4)]
HF = {"method": "hf", "basis": "sto-3g", "fitting": "none", "backend": "cpu", "workers": 0}
TASK: dict[str, Any] = {"method": "hf", "basis": "sto-3g", "keywords": {"backend": "cpu"}, "gradient": False}
CALL = ["-m", "hf", "-b", "sto-3g", "--fitting", "none", "--backend", "cpu"]


@pytest.fixture(scope="module")
def runner() -> Iterator[ProcessRunner]:
    with ProcessRunner(1) as found:
        yield found


# ------------------------------------------------------------------------------------------------- the numbers


def test_rows_are_single_calculations() -> None:
    seen: list[Row] = []
    rows = energies(H2[:2], on_row=seen.append, **HF)
    for row, molecule in zip(rows, H2[:2], strict=True):
        alone = cuanto.energy(molecule, "hf", "sto-3g", fitting="none", backend="cpu")
        assert row.converged and not row.error and row.name == molecule.name
        assert row.energy == pytest.approx(alone.energy, abs=1e-12)
        assert row.dipole is not None and np.allclose(row.dipole, alone.dipole, atol=1e-12)
        assert row.charges is not None and np.allclose(row.charges, alone.charges, atol=1e-12)
        assert row.homo == pytest.approx(alone.homo[0]) and row.lumo == pytest.approx(alone.lumo[0])
        assert row.heat_of_formation is None and row.gradient is None
    assert seen == rows


def test_semiempirical_ones_are_computed_together() -> None:
    rows = energies(H2, "pm6", backend="cpu", gradient=True, workers=0)
    alone = cuanto.energy(H2[2], "pm6", backend="cpu")
    assert rows[2].energy == pytest.approx(alone.energy, abs=1e-8)
    assert rows[2].heat_of_formation == pytest.approx(alone.heat_of_formation, abs=1e-5)  # type: ignore[attr-defined]
    assert rows[2].gradient is not None and np.allclose(rows[2].gradient, alone.gradient, atol=1e-5)


def test_a_gpu_computes_all_molecules_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(workers: int) -> ProcessRunner:
        raise AssertionError("processes would compete for the GPU")

    monkeypatch.setattr(module, "ProcessRunner", refuse)
    monkeypatch.setattr(module, "TASKS_PER_PROCESS", 1)
    monkeypatch.setattr(module, "usable_cores", lambda: 2)
    found = energies(H2, "pm6", backend="simt")
    alone = energies(H2, "pm6", backend="cpu", workers=0)
    assert [row.energy for row in found] == pytest.approx([row.energy for row in alone], abs=1e-9)
    with pytest.raises(AssertionError, match="compete"):
        energies(H2, "pm6", backend="cpu")


def test_tasks_hold_molecules_of_one_composition() -> None:
    model, cpu = Model("pm6"), get_backend("cpu").traits
    others = [cuanto.Molecule(["H", "F"], [[0, 0, 0], [0, 0, 1.7 + 0.1 * k]]) for k in range(2)]
    entries = [Entry(str(k), molecule, model) for k, molecule in enumerate([*H2, *others])]
    assert [len(chunk) for chunk in chunks(entries, get_backend("simt").traits)] == [4, 2]
    assert [len(chunk) for chunk in chunks(entries, cpu, workers=2)] == [3, 1, 2]
    alone = [Entry("a", molecule, Model("pm6", keywords={"smearing": 0.01})) for molecule in H2]
    assert len(chunks(alone, cpu)) == len(H2)


def test_a_failing_molecule_does_not_stop_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    xenon = cuanto.Molecule(["Xe"], [[0, 0, 0]])
    rows = energies([H2[0], xenon, H2[1]], **{**HF, "basis": "6-31g"})
    assert [bool(row.error) for row in rows] == [False, True, False]
    assert "Xe" in rows[1].error and "\n" not in rows[1].error and np.isnan(rows[1].energy)
    neodymium = cuanto.Molecule(["Nd"], [[0, 0, 0]])
    together = evaluate({**TASK, "molecules": [H2[0], neodymium], "method": "pm6", "basis": None})["rows"]
    assert together[0]["converged"] and "Nd" in together[1]["error"]

    def exhausted(*_: object, **__: object) -> None:
        raise MemoryError("17 GB wanted")

    monkeypatch.setattr("cuanto.batch.evaluate.energy", exhausted)
    assert energies(H2[:1], **HF)[0].error == "not enough memory: 17 GB wanted"


def test_gradients_of_every_method() -> None:
    row = energies(H2[:1], gradient=True, **HF)[0]
    alone = cuanto.gradient(H2[0], "hf", "sto-3g", fitting="none", backend="cpu").gradient
    assert row.gradient is not None and np.abs(np.reshape(row.gradient, (-1, 3)) - alone).max() < 1e-9


def test_invalid_arguments_are_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="unknown basis 'sto-4h'"):
        energies(H2, **{**HF, "basis": "sto-4h"})
    with pytest.raises(InputError, match="unknown method 'hg'"):
        energies(H2, **{**HF, "method": "hg"})
    with pytest.raises(InputError, match=r"use a name ending in \.parquet, \.jsonl, \.csv"):
        energies(H2, out=tmp_path / "a.xlsx", **HF)
    with pytest.raises(InputError, match="its own workers"):
        energies(H2, scheduler="tcp://127.0.0.1:9", **HF)
    with pytest.raises(InputError, match="-1 workers"):
        energies(H2, **{**HF, "workers": -1})
    with pytest.raises(InputError, match="not plain data"):
        energies(H2, **{**HF, "workers": 2, "guess": Path("kept.h5")})
    assert list(tmp_path.iterdir()) == []


# ----------------------------------------------------------------------------------------------- other processes


def test_a_process_computes_the_same(runner: ProcessRunner) -> None:
    task = {**TASK, "molecules": [plain_molecule(H2[0])]}
    runner.submit("one", evaluate, task)
    key, result = runner.next()
    assert key == "one" and isinstance(result, dict)
    here = evaluate(task)["rows"][0]
    assert result["rows"][0]["energy"] == pytest.approx(here["energy"], abs=1e-12)


def test_a_process_that_dies_takes_one_task_with_it(runner: ProcessRunner) -> None:
    for key, function, task in (("a", os.abort, None), ("b", os._exit, 3), ("c", os.path.basename, "x/y")):
        runner.submit(key, function, task)  # type: ignore[arg-type]
    found = dict([runner.next(), runner.next(), runner.next()])
    assert isinstance(found["a"], TaskError)  # raises a TypeError instead of ending the process
    assert isinstance(found["b"], LostWorkerError) and "ended with status 3" in str(found["b"])
    assert found["c"] == "y"


class LossyRunner(SerialRunner):
    """A runner that loses every task with several molecules, and the first attempts at some others."""

    lost: list[int] = []  # noqa: RUF012

    def __init__(self, *_: object) -> None:
        super().__init__()

    def __enter__(self) -> LossyRunner:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def next(self) -> Any:
        key, function, task = self._waiting.popleft()
        count = len(task["molecules"])
        if count > 1 or task["molecules"][0].R_ax[1, 2] < 1.35:
            self.lost.append(count)
            return key, LostWorkerError("the worker process was killed by SIGKILL (out of memory?)")
        return key, function(task)


def test_lost_workers_are_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ProcessRunner", LossyRunner)
    LossyRunner.lost.clear()
    rows = energies(H2, "pm6", backend="cpu", workers=2)
    assert LossyRunner.lost == [2, 2, 1] and [bool(row.error) for row in rows] == [True, False, False, False]
    assert rows[0].error.endswith("(out of memory?) (tried 2 times)")


def test_a_dask_scheduler(tmp_path: Path) -> None:
    import distributed

    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
    ) as cluster:
        options = {name: value for name, value in HF.items() if name != "workers"}
        rows = energies(H2[:2], scheduler=cluster.scheduler_address, **options)
    assert [row.energy for row in rows] == pytest.approx([row.energy for row in energies(H2[:2], **HF)], abs=1e-12)
    assert DaskRunner.__module__ == "cuanto.workers"


# ------------------------------------------------------------------------------------------------ the journal


def test_an_interrupted_run_continues(tmp_path: Path) -> None:
    out = tmp_path / "h2.jsonl"
    done: list[Row] = []

    def interrupt(row: Row) -> None:
        done.append(row)
        if len(done) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        energies(H2, out=out, on_row=interrupt, **HF)
    assert [path.name for path in tmp_path.iterdir()] == ["h2.jsonl.journal"]
    with (tmp_path / "h2.jsonl.journal").open("a") as file:
        file.write('{"key": "of a crash in the middle of a li')
    rows = energies(H2, out=out, **HF)
    assert [row.known for row in rows] == [True, True, False, False]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["h2.jsonl", "h2.jsonl.journal"]
    more = energies([*H2, hydrogen(1.9)], out=out, **HF)
    assert [row.known for row in more] == [True] * 4 + [False] and len(out.read_text().splitlines()) == 5
    assert [row.energy for row in rows] == [row.energy for row in energies(H2, **HF)]


def test_keys_depend_on_everything_that_affects_a_result(tmp_path: Path) -> None:
    basis = tmp_path / "own.nw"
    basis.write_text("H S\n 1.0 1.0\n")
    keys = {
        Entry("a", molecule, model).key
        for molecule in (H2[0], H2[1], hydrogen(1.3, multiplicity=3))
        for model in (Model("hf", "sto-3g"), Model("hf", str(basis)), Model("hf", "sto-3g", {"guess": "core"}))
    }
    assert len(keys) == 9
    assert Entry("b", H2[0], Model("hf", "sto-3g", {"backend": "cpu", "max_memory": 1e9})).key in keys
    before = Entry("a", H2[0], Model("hf", str(basis))).key
    basis.write_text("H S\n 1.1 1.0\n")
    assert Entry("a", H2[0], Model("hf", str(basis))).key != before


def test_failures_are_tried_again_and_damaged_journals_are_ignored(tmp_path: Path) -> None:
    table = Table(tmp_path / "h2.csv")
    molecules, key = [H2[0], cuanto.Molecule(["Xe"], [[0, 0, 0]])], Entry("a", H2[0], Model("hf", "6-31g", {})).key
    lines = ["[]", "null", json.dumps({"key": key, "row": {"energy": "x"}}), json.dumps({"key": 3, "row": {}})]
    table.journal.write_text("\n".join([*lines, json.dumps({"key": key, "row": {"os": "system"}}), ""]))
    model = Model("hf", "6-31g", {"fitting": "none", "backend": "cpu"})
    for known in (False, True):
        with Batch([Entry(one.symbols[0], one, model) for one in molecules], table, 0) as batch:
            rows = batch.run(lambda row: None)
        assert [row.known for row in rows] == [known, False] and rows[1].error
        assert table.journal.exists() and table.path.exists()


KILLED = """
import sys, time
from cuanto.batch import energies
sys.path[:0] = {paths!r}
from test_batch import H2, HF
energies(H2, out={out!r}, on_row=lambda row: time.sleep(60 if row.name == "h1" else 0), **HF)
"""


def test_a_killed_run_continues(tmp_path: Path) -> None:
    out = tmp_path / "h2.csv"
    code = KILLED.format(paths=[str(Path(__file__).parent), str(SUPPORT)], out=str(out))
    process = subprocess.Popen([sys.executable, "-c", code])
    journal = Table(out).journal
    try:
        wait_until(lambda: journal.exists() and journal.read_bytes().count(b"\n") == 2)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert not out.exists()
    assert [row.known for row in energies(H2, out=out, **HF)] == [True, True, False, False]


# -------------------------------------------------------------------------------------------------- tables


def cells_of(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file."""
    return list(csv.DictReader(io.StringIO(path.read_text())))


def test_semiempirical_rows_have_an_estimated_error() -> None:
    rows = energies(H2, "pm6", workers=0)
    assert all(row.energy_error is not None and 0 < row.energy_error < 1e-6 for row in rows)
    water = cuanto.Molecule(["O", "H", "H"], [[0, 0, 0.2], [0, 1.4, -0.9], [0, -1.4, -0.9]])
    task = {**TASK, "molecules": [water], "method": "pm6", "basis": None, "keywords": {"max_iterations": 1}}
    (failed,) = evaluate(task)["rows"]
    assert failed["energy_error"] is None and not failed["converged"]


def test_tables_of_all_kinds_have_the_same_content(tmp_path: Path) -> None:
    molecules = [*H2[:1], cuanto.Molecule(["Xe"], [[0, 0, 0]], name="xenon")]
    rows = energies(molecules, **{**HF, "basis": "6-31g"})
    for ending in ("parquet", "jsonl", "csv"):
        Table(tmp_path / f"a.{ending}").write(rows)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "a.jsonl", "a.parquet"]
    lines = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    assert pyarrow.parquet.read_table(tmp_path / "a.parquet").to_pylist() == lines
    assert all(list(line) == list(COLUMNS) for line in lines)
    assert lines[0]["energy_hartree"] == rows[0].energy and lines[0]["formula"] == "H2" and lines[0]["error"] is None
    model = {name: value for name, value in HF.items() if name != "workers"}
    error = cuanto.energy(H2[0], **{**model, "basis": "6-31g"}).error
    assert lines[0]["energy_error_hartree"] == rows[0].energy_error == pytest.approx(error, rel=0.5)
    assert lines[1]["energy_error_hartree"] is None and cells_of(tmp_path / "a.csv")[1]["energy_error_hartree"] == ""
    assert lines[1]["energy_hartree"] is None and not lines[1]["converged"] and "Xe" in lines[1]["error"]
    cells = cells_of(tmp_path / "a.csv")
    assert float(cells[0]["energy_hartree"]) == rows[0].energy
    assert json.loads(cells[0]["positions_bohr"]) == H2[0].R_ax.reshape(-1).tolist()
    for symbols, expected in (("H O C H Br", "CH2BrO"), ("O H H", "H2O"), ("O H Gh-C H", "H2O")):
        spread = [[0.0, 0.0, 4.0 * a] for a in range(len(symbols.split()))]
        assert cuanto.Molecule(symbols.split(), spread).formula == expected


def test_without_pyarrow_it_says_so_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'cuanto\[parquet\]'.*\.jsonl and \.csv"):
        energies(H2, out=tmp_path / "a.parquet", **HF)


def test_files_with_several_structures(tmp_path: Path) -> None:
    (path := tmp_path / "many.xyz").write_text(xyz(0.7) + xyz(0.8) + "2\n\nH 0 0 0\nQq 0 0 1\n")
    (tmp_path / "one.xyz").write_text(xyz(0.9))
    rows = energies(path, **HF)
    assert [row.name for row in rows] == ["many-1", "many-2", "many"] and [not row.error for row in rows] == [1, 1, 0]
    assert rows[1].energy == pytest.approx(energies([hydrogen(0.8 / BOHR_IN_ANGSTROM)], **HF)[0].energy, abs=1e-9)
    assert "many.xyz, structure 3, line 4" in rows[2].error
    several = energies([tmp_path / "one.xyz", str(path), xyz(0.7), xyz(0.7) + xyz(0.8), "H 0 0 0; H 0 0 1"], **HF)
    names = ["one", "many-1", "many-2", "many", "molecule 5", "molecule 6", "molecule 7", "molecule 8"]
    assert [row.name for row in several] == names and several[5].energy == rows[0].energy
    for single in (tmp_path / "one.xyz", H2[0], ase.Atoms("H2", [[0, 0, 0], [0, 0, 0.7]])):
        assert len(energies(single, **HF)) == 1


def test_a_file_that_cannot_be_read_has_a_row(tmp_path: Path) -> None:
    missing = tmp_path / "missing.xyz"
    good, bad, wrong = energies([H2[0], missing, "smiles:xx"], **HF)
    assert not good.error and bad.error == f"file {str(missing)!r} does not exist" and bad.name == "missing"
    assert "'xx' is not a valid SMILES" in wrong.error and wrong.name == "molecule 3"
    with pytest.raises(InputError, match=r"none of the molecules can be read; the first one: file .*missing.xyz' does"):
        energies(missing, **HF)
    with pytest.raises(InputError, match="int is not a molecule"):
        energies([H2[0], 5], **HF)  # type: ignore[list-item]


def test_a_basis_for_each_element(tmp_path: Path) -> None:
    fluoride = cuanto.Molecule(["H", "F"], [[0, 0, 0], [0, 0, 1.7]])
    sets = {"F": "def2-svp", "default": "sto-3g"}
    keywords = {name: value for name, value in HF.items() if name not in ("basis", "workers")}
    (row,) = energies([fluoride], basis=sets, out=tmp_path / "a.csv", **{**keywords, "workers": 0})
    assert row.energy == pytest.approx(cuanto.energy(fluoride, basis=sets, **keywords).energy, abs=1e-9)
    with pytest.raises(InputError, match=r"is a name, a file, or names by element such as .*, not Basis"):
        energies([fluoride], basis=cuanto.Basis("sto-3g", fluoride), **keywords)  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------- the command line


def test_structures_of_a_trajectory() -> None:
    one = xyz(0.7)
    assert structures(one) == [one] and structures("") == [""] and structures("{}") == ["{}"]
    assert len(structures(one + "\n\n" + one + one)) == 3
    assert structures(one + "garbage\n") == [one + "garbage\n"]


def test_entries_of_files_folders_and_trajectories(tmp_path: Path) -> None:
    (tmp_path / "one.xyz").write_text(xyz(0.7))
    (tmp_path / "many.xyz").write_text(xyz(0.7) + xyz(0.8) + "2\n\nH 0 0 0\nQq 0 0 1\n")
    (tmp_path / "note.txt").write_text("no molecule")
    (tmp_path / "empty").mkdir()
    found = entries_of(str(tmp_path), Model("hf"), None, None)
    assert [entry.name for entry in found] == ["many-1", "many-2", "many", "one"]
    assert "structure 3, line 4" in found[2].problem and found[2].molecule is None
    for name, problem in (("empty", "no XYZ files"), ("nothing.xyz", "does not exist"), ("note.txt", "expected")):
        (bad,) = entries_of(str(tmp_path / name), Model("hf"), None, None)
        assert bad.molecule is None and problem in bad.problem


def invoke(*arguments: str, text: str | None = None) -> Any:
    return CliRunner().invoke(app, ["energy", *arguments], input=text)


def test_the_command(tmp_path: Path) -> None:
    (tmp_path / "two.xyz").write_text(xyz(0.7) + xyz(0.8))
    out = tmp_path / "h2.csv"
    done = invoke(str(tmp_path / "two.xyz"), "--out", str(out), "--workers", "0", *CALL)
    assert done.exit_code == 0, done.output
    assert "2 molecules, 2 computed in" in done.output and "per second" in done.output
    assert len(out.read_text().splitlines()) == 3
    (tmp_path / "bad.xyz").write_text("nonsense")
    done = invoke(str(tmp_path / "bad.xyz"), str(tmp_path / "two.xyz"), "--out", str(out), "--workers", "0", *CALL)
    assert (
        done.exit_code == 2
        and "bad: " in done.output
        and "1 failed" in done.output
        and "try these again" in done.output
    )
    assert len(out.read_text().splitlines()) == 4
    done = invoke(str(tmp_path / "two.xyz"), "--out", str(out), "-q", "-o", "max_iterations=1", *CALL)
    assert done.exit_code == 1 and "2 NOT converged" in done.output


def test_warnings_of_results(tmp_path: Path) -> None:
    """A PM6 pair without parameters, in molecules of one composition and of another, and from the journal; helium has
    no such pair."""
    for name, text in {"a": "P 0 0 2.4", "b": "P 0 0 2.5", "c": "P 0 0 2.4\nH 0 1.5 2.4"}.items():
        (tmp_path / f"{name}.xyz").write_text(f"{2 + text.count('H')}\n\nSn 0 0 0\n{text}\n")
    (tmp_path / "d.xyz").write_text("1\n\nHe 0 0 0\n")
    table = tmp_path / "t.jsonl"
    for _ in range(2):
        arguments = ["energy", str(tmp_path), "-m", "pm6", "--backend", "cpu", "--out", str(table), "--workers", "0"]
        done = CliRunner().invoke(app, arguments)
        assert done.exit_code == 0, done.output
        expected = "PM6 has no parameters for Sn-P: core repulsion as in MOPAC without them"
        assert done.output.splitlines()[0] == f"a, b, c: WARNING: {expected}"
        rows = [json.loads(line) for line in table.read_text().splitlines()]
        assert [row["warnings"] for row in rows] == [expected] * 3 + [None]
    assert "already known" in done.output


def test_hints_in_tables() -> None:
    """Molecules that are computed together have them, of one composition or of two, and so have single ones."""
    close, usual = (cuanto.Molecule.from_string(f"3\n\nO 0 0 0\nH 0 0 {x}\nH 0 0.93 -0.23\n") for x in (0.5, 0.96))
    oxygen = cuanto.Molecule.from_string("2\n\nO 0 0 0\nO 0 0 1.2\n")
    for method, basis in (("pm6", None), ("hf", "sto-3g")):
        found = energies([close, usual, oxygen, usual], method, basis, workers=0, backend="cpu")
        assert [row.warnings[: len("hint: ")] for row in found] == ["hint: ", "", "hint: ", ""]
        assert "0.50 Angstrom apart" in found[0].warnings and "multiplicity 3" in found[2].warnings


def test_warnings_of_vibrations_are_in_the_table(tmp_path: Path) -> None:
    for number in range(22):
        (tmp_path / f"{number:02}.xyz").write_text(f"2\n\nH 0 0 0\nF 0 0 {0.7 + number / 100}\n")
    out = tmp_path / "t.jsonl"
    arguments = [str(tmp_path), "-m", "pm6", "--backend", "cpu", "--out", str(out), "--workers", "0"]
    done = CliRunner().invoke(app, ["frequencies", *arguments])
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert all("not a stationary point" in row["warnings"] for row in rows) and len(rows) == 22
    different = len({row["warnings"] for row in rows})
    assert different > 20 and f"and {different - 20} other warnings" in done.output
    assert done.output.count("WARNING: the geometry") == 20


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--out", "OUT/a.xlsx"], "use a name ending in"),
        (["--out", "OUT/none/a.csv"], "does not exist"),
        (["--out", "OUT/a.csv", "--json", "OUT/a.json"], "--json is for single molecules"),
        (["--out", "OUT/a.csv", "-m", "hg"], "unknown method"),
        (["--out", "OUT/a.csv", "-m", "pm6", "-b", "sto-3g"], "basis does not apply to pm6"),
        (["--workers", "2"], "name a table with --out"),
    ],
)
def test_bad_input_is_an_error_before_the_work(arguments: list[str], problem: str, tmp_path: Path) -> None:
    (tmp_path / "a.xyz").write_text(xyz(0.7))
    given = [argument.replace("OUT", str(tmp_path)) for argument in arguments]
    done = invoke(str(tmp_path / "a.xyz"), *given)
    assert isinstance(done.exception, InputError) and problem in str(done.exception)
    assert [path.name for path in tmp_path.iterdir()] == ["a.xyz"]
    none = invoke(str(tmp_path / "b.xyz"), "--out", str(tmp_path / "b.csv"))
    assert "none of the molecules can be read" in str(none.exception)


# ------------------------------------------------------------------------------------------------- before it begins


def test_a_trajectory_that_was_cut_off(tmp_path: Path) -> None:
    (path := tmp_path / "t.xyz").write_text(xyz(0.7) + xyz(0.8) + "2\n\nH 0 0 0\n")
    found = entries_of(str(path), Model("pm6"), None, None)
    assert [entry.molecule is not None for entry in found] == [True, True, False]
    assert "structure 3: line 1 says 2 atoms, but only 1" in found[2].problem
    assert len(structures(xyz(0.7) + "2\n")) == 2 and len(structures(xyz(0.7) + xyz(0.8) + "garbage")) == 3


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        ({"max_iter": 3}, "unknown key 'max_iter'; did you mean 'max_iterations'?"),
        ({"grid": "foo", "method": "pbe"}, "foo"),
        ({"guess": "foo"}, "unknown guess 'foo'"),
        ({"auxbasis": "nonsense", "fitting": "jk"}, "nonsense"),
        ({"max_iterations": -1}, "max_iterations"),
    ],
)
def test_keywords_that_are_wrong_for_all(mistake: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        energies(H2[:2], out=tmp_path / "a.csv", **{**HF, **mistake})
    assert message in str(refused.value) and not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "mistake",
    [
        ("--grid", "foo", "-m", "pbe"),
        ("--guess", "foo"),
        ("--auxbasis", "foo", "--fitting", "jk"),
        ("--scheduler", "foo"),
    ],
)
def test_mistakes_in_a_command_write_nothing(mistake: tuple[str, ...], tmp_path: Path) -> None:
    (path := tmp_path / "h.xyz").write_text(xyz(0.7))
    done = CliRunner().invoke(app, ["energy", str(path), *CALL, *mistake, "--out", str(tmp_path / "a.csv")])
    assert isinstance(done.exception, InputError) and "foo" in str(done.exception)
    assert [one.name for one in tmp_path.iterdir()] == ["h.xyz"]


def test_the_table_is_no_input(tmp_path: Path) -> None:
    (path := tmp_path / "h.csv").write_text(xyz(0.7))
    done = CliRunner().invoke(app, ["energy", str(path), *CALL, "--out", str(path)])
    assert "would overwrite the input" in str(done.exception) and path.read_text() == xyz(0.7)


def test_failures_are_not_computed() -> None:
    with Batch([Entry("Nd", cuanto.Molecule(["Nd"], [[0, 0, 0]]), Model("pm6"))], workers=0) as batch:
        batch.run(lambda row: None)
    assert (batch.counts.computed, batch.counts.failed) == (0, 1)


def test_an_energy_that_is_not_a_number_is_an_error() -> None:
    with pytest.raises(CuantoError, match="the energy is not a number"):
        _row(SimpleNamespace(energy=float("nan")), False)  # type: ignore[arg-type]


def test_a_basis_file_that_is_gone_keeps_its_name_in_the_key(tmp_path: Path) -> None:
    gone = str(tmp_path / "gone.nw")
    assert content_of(gone) == gone
