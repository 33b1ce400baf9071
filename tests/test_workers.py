"""Workers: results and errors are returned, interruptions say what is kept, a terminal shows progress."""

from __future__ import annotations

import io
import json
import threading
import time
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

import cuanto
from cuanto import processes
from cuanto.backends.background import Background, ready
from cuanto.batch.entry import Entry
from cuanto.batch.run import Batch
from cuanto.batch.table import Row, Table
from cuanto.cli import many, selftest
from cuanto.errors import CuantoError, InputError
from cuanto.interfaces.sources import Model
from cuanto.journal import JsonLines
from cuanto.processes import LostWorkerError, ProcessRunner, TaskError
from cuanto.workers import DaskRunner, SerialRunner


def triple(task: dict[str, Any]) -> dict[str, Any]:
    """A task that any worker can run."""
    if task["x"] < 0:
        raise ValueError("no\nnegative numbers")
    return {"x": 3 * task["x"]}


# ------------------------------------------------------------------------------------------------- this process


def test_serial_tasks_come_back_in_order_with_their_errors() -> None:
    runner = SerialRunner()
    for x in (1, -1, 2):
        runner.submit(f"task {x}", triple, {"x": x})
    first, failed, last = runner.next(), runner.next(), runner.next()
    assert first[0] == "task 1" and first[1] == {"x": 3}
    assert failed[0] == "task -1" and isinstance(failed[1], ValueError)
    assert last[1] == {"x": 6}


def test_shutdown_drops_waiting_tasks_and_finishes_running_ones() -> None:
    """At the end of the interpreter, tasks that run code of a library must be finished."""
    work, begun, go = Background(1, "test", finish_running=True), threading.Event(), threading.Event()
    running = work.submit(lambda: begun.set() or go.wait(10))
    waiting, unwanted = work.submit(lambda: "never"), work.submit(lambda: "cancelled")
    assert begun.wait(10) and unwanted.cancel() and not ready(running)
    ending = threading.Thread(target=work._end)
    ending.start()
    go.set()
    ending.join(10)
    assert running.result() is True and ready(running)
    assert waiting.cancelled() and not ready(waiting) and not ready(unwanted)


def test_a_result_that_has_not_begun_is_computed_by_the_caller() -> None:
    work, begun, go = Background(1, "test", finish_running=True), threading.Event(), threading.Event()
    running = work.submit(lambda: begun.set() or go.wait(10))
    queued, failing = work.submit(lambda: "in its turn"), work.submit(lambda: "in its turn")
    assert begun.wait(10) and work.result(queued, lambda: "here and now") == "here and now"
    with pytest.raises(ZeroDivisionError):
        work.result(failing, lambda: f"{1 // 0}")
    go.set()
    assert work.result(running, lambda: None) is True
    assert work.submit(lambda: "alive").result(timeout=10) == "alive" and queued.result() == "here and now"


# ---------------------------------------------------------------------------------------------- other processes


def test_answers_of_a_process() -> None:
    """One line of JSON for each task; errors in one line."""
    name = [triple.__module__, triple.__qualname__]
    assert processes._answer({"function": name, "task": {"x": 2}}) == {"result": {"x": 6}}
    assert processes._answer({"function": name, "task": {"x": -2}}) == {"error": "ValueError: no negative numbers"}
    assert "ModuleNotFoundError" in processes._answer({"function": ["no.such", "thing"], "task": {}})["error"]


def test_a_killed_process_reports_the_signal_and_its_last_output() -> None:
    """An operating system that runs out of memory kills processes by SIGKILL."""
    with ProcessRunner(1) as runner:
        runner.submit("sleeper", time.sleep, 60)  # type: ignore[arg-type]
        (worker,) = runner._workers
        worker.stderr.write(b"first words\nlast words\n")
        worker.process.kill()
        key, error = runner.next()
    assert key == "sleeper" and isinstance(error, LostWorkerError)
    assert str(error) == "the worker process was killed by SIGKILL (out of memory?): last words"


# --------------------------------------------------------------------------------------------------------- Dask


@pytest.mark.parametrize(("status", "error"), [("cancelled", "the Dask scheduler is gone"), ("lost", "lost: a reason")])
def test_futures_without_a_result(status: str, error: str) -> None:
    """The end of a scheduler ends everything; other failures concern one task."""
    runner = object.__new__(DaskRunner)
    runner._key_of = {"cuanto-a-1": "a"}
    future = SimpleNamespace(key="cuanto-a-1", status=status, exception=lambda: "lost: a reason")
    runner._finished = iter([future])
    if status == "cancelled":
        with pytest.raises(CuantoError, match=error):
            runner.next()
    else:
        key, found = runner.next()
        assert key == "a" and isinstance(found, CuantoError) and str(found) == error


# ------------------------------------------------------------------------------------------- printed output


@pytest.fixture
def terminal() -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=120, soft_wrap=True, highlight=False)


def text_of(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.fixture
def batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Batch:
    """A batch of three molecules that are not computed."""
    molecules = [cuanto.Molecule(["H", "H"], [[0, 0, 0], [0, 0, 1.4 + 0.1 * k]], name=f"h{k}") for k in range(3)]
    model = Model("hf", "sto-3g", {"backend": "cpu"})
    entries = [Entry(molecule.name, molecule, model) for molecule in molecules]
    found = {"energy": -1.0, "converged": True, "iterations": 3, "homo": -0.5, "lumo": 0.5, "dipole": [0.0] * 3,
             "charges": [0.0] * 2, "heat_of_formation": None, "gradient": None, "seconds": 0.1}  # fmt: skip
    monkeypatch.setattr("cuanto.batch.run.evaluate", lambda task: {"rows": [found] * len(task["molecules"])})
    return Batch(entries, Table(tmp_path / "h2.csv"), 0, None)


def test_a_terminal_has_a_bar_and_a_file_has_none(batch: Batch, terminal: Console) -> None:
    plain = Console(file=io.StringIO())
    with batch:
        rows = many._run_with_progress(terminal, batch, quiet=False)
    assert len(rows) == 3 and "molecules" in text_of(terminal) and "3/3" in text_of(terminal)
    with batch:
        many._run_with_progress(plain, batch, quiet=False)
        many._run_with_progress(quiet := Console(file=io.StringIO(), force_terminal=True), batch, quiet=True)
    assert text_of(plain) == text_of(quiet) == ""


@pytest.mark.parametrize("error", [KeyboardInterrupt(), CuantoError("no space left")])
def test_an_interrupted_batch_reports_its_progress(
    error: BaseException, batch: Batch, monkeypatch: pytest.MonkeyPatch
) -> None:
    console, seen = Console(file=io.StringIO(), width=300), []

    def second(row: Row) -> None:
        seen.append(row)
        if len(seen) == 2:
            raise error

    monkeypatch.setattr(many, "_bar", lambda console, batch, quiet: (io.StringIO(), second))
    with batch, pytest.raises(type(error)):
        many._run_with_progress(console, batch, quiet=False)
    assert batch.table is not None
    assert text_of(console) == f"2 of 3 are kept in {batch.table.journal}: run the same command to continue\n"


def named(name: str) -> Entry:
    return Entry(name, None, Model("hf"))


def test_many_failures_are_not_all_shown() -> None:
    console = Console(file=io.StringIO(), width=200)
    rows = [Row(named("good"), converged=True), Row(named("slow"), iterations=1)]
    rows += [Row(named(f"bad{k}"), error="[no] basis") for k in range(20)]
    many.print_failures(console, rows)
    lines = text_of(console).splitlines()
    assert lines[:2] == ["slow: NOT converged in 1 iteration", "bad0: [no] basis"]
    assert len(lines) == many.MAX_FAILURES + 1 and lines[-1] == "and 11 more; the table has them all"


def test_the_self_test_shows_progress(terminal: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    printed: list[str] = []
    status = SimpleNamespace(update=printed.append)

    class Status:
        def __enter__(self) -> Any:
            return status

        def __exit__(self, *_: object) -> None:
            pass

    result = [selftest.Outcome(title, "cpu", -1.0, "Hartree", 1e-8, 0.1, -1.0, "") for title in ("hf", "pbe")]
    monkeypatch.setattr(terminal, "status", lambda text: Status())
    assert list(selftest._run_with_progress(terminal, iter(result))) == result
    assert printed == ["1 done, last: hf on cpu", "2 done, last: pbe on cpu"]


# ------------------------------------------------------------------------------------------------------- journals


def test_an_unreadable_journal_is_an_error(tmp_path: Path) -> None:
    """Otherwise everything would be computed again."""
    assert list(JsonLines(tmp_path / "none.jsonl").read()) == []
    (tmp_path / "folder.jsonl").mkdir()
    with pytest.raises(InputError, match=r"cannot read .*folder\.jsonl: Is a directory"):
        list(JsonLines(tmp_path / "folder.jsonl").read())


def test_incomplete_answers_are_refused() -> None:
    """Half an answer counts as a lost worker."""
    worker = object.__new__(processes._Worker)
    worker.key = "a"
    line = json.dumps({"error": "ValueError: x"}).encode()
    worker.answers, worker.process = io.BytesIO(line + b"\n" + line), SimpleNamespace(wait=lambda: 1)  # type: ignore[assignment]
    worker.stderr = io.BytesIO(b"")  # type: ignore[assignment]
    key, error = worker.answer()
    assert key == "a" and isinstance(error, TaskError) and str(error) == "ValueError: x"
    worker.key = "b"
    key, error = worker.answer()
    assert key == "b" and isinstance(error, LostWorkerError) and str(error).endswith("ended with status 1")


def test_a_failed_future_is_not_ready() -> None:
    failed: Future[int] = Future()
    failed.set_exception(CuantoError("no compiler"))
    done: Future[int] = Future()
    done.set_result(1)
    assert ready(done) and not ready(failed) and not ready(Future())
