"""The eight-step search: its logic with made-up energies, He, Be and Ne as in the thesis, crashes and lost workers."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cuanto.atomic import search as module
from cuanto.atomic.input import TrustRegion
from cuanto.atomic.search import LIMIT, Progress, SearchSettings, search, start_parameters
from cuanto.atomic.steps import Chain, Outcome, SearchResult, Trial, evenly_spaced, stretch
from cuanto.atomic.wtbs import WellTempered, table_set
from cuanto.cli.main import run
from cuanto.errors import CuantoError, InputError, MissingDependencyError
from cuanto.processes import ProcessRunner
from cuanto.workers import DaskRunner, SerialRunner, dask_distributed
from sample import EVERY_CASE

START = (0.1, 2.0, 5.0, 1.4)
LIMIT_OF_HELIUM = -2.8618133226594


def made_up_error(ranges: dict[str, tuple[int, int]]) -> float:
    """An error that falls with every function; the first two p functions and the first d function hardly matter."""
    needed = {"s": 9, "p": 7, "d": 5}
    error = sum(10.0 ** (-8 - (b - needed[letter])) for letter, (_, b) in ranges.items())
    dropped = {"s": 0, "p": 2, "d": 1}
    return error + sum(1e-10 * 10.0 ** (4 * max(0, a - 1 - dropped[letter])) for letter, (a, _) in ranges.items())


def answer(trial: Trial) -> Outcome:
    return Outcome(-1 + made_up_error(trial.ranges), START, 10)


def walk(chain: Chain, fails: set[str] | None = None) -> tuple[SearchResult, list[str]]:
    """Feed made-up energies to a chain; return its result and the sets that it tried."""
    batches, tried = chain.run(), []
    trials = next(batches)
    while True:
        tried += [trial.text for trial in trials]
        outcomes = [Outcome(None, error="no convergence") if t.text in (fails or ()) else answer(t) for t in trials]
        try:
            trials = batches.send(outcomes)
        except StopIteration as stop:
            return stop.value, tried


@pytest.mark.parametrize("scan", ["full", "bisect"])
def test_eight_steps(scan: str) -> None:
    found, tried = walk(Chain("X", (3, 2, 1), -1.0, 5e-8, 20, START, scan))
    assert found.ranges == {"s": (1, 9), "p": (3, 7), "d": (2, 5)}
    assert found.accurate and not found.warnings and found.basis.range_text() == "s(1:9)p(3:7)d(2:5)"
    assert [step.name for step in found.steps] == [
        "start", "fewest d", "fewest p", "fewest s", "diffuse d", "diffuse p",
    ]  # fmt: skip
    assert len(tried) == len(set(tried)), "nothing is optimised twice"
    assert tried[0] == "s(1:20)p(1:20)d(1:20)"
    if scan == "full":
        assert tried[1:20] == [f"s(1:20)p(1:20)d(1:{m})" for m in range(1, 20)]
        assert tried[20:35] == [f"s(1:20)p(1:{m})d(1:5)" for m in range(5, 20)]  # never fewer p than d functions
    else:
        assert len(tried) < 35


def test_nothing_is_shorter_than_the_occupied_shells() -> None:
    found, tried = walk(Chain("X", (4, 3), -1.0, 1.0, 10, START, "full"))
    assert found.ranges == {"s": (1, 4), "p": (1, 3)}
    assert not any("p(1:2)" in text or "s(1:3)" in text for text in tried)


def test_failures_are_skipped_and_reported() -> None:
    bad = {"s(1:20)p(1:20)d(1:5)"}
    found, _ = walk(Chain("X", (3, 2, 1), -1.0, 5e-8, 20, START, "full"), fails=bad)
    assert found.ranges["d"][1] == 6 and found.warnings == ("s(1:20)p(1:20)d(1:5) failed: no convergence",)
    with pytest.raises(InputError, match="the first set"):
        walk(Chain("X", (3, 2, 1), -1.0, 5e-8, 20, START), fails={"s(1:20)p(1:20)d(1:20)"})


@pytest.mark.parametrize("scan", ["full", "bisect"])
def test_an_accuracy_out_of_reach_keeps_the_largest_set_and_warns(scan: str) -> None:
    found, _ = walk(Chain("X", (3, 2), -1.0, 1e-15, 12, START, scan))
    assert found.ranges == {"s": (1, 12), "p": (1, 12)} and not found.accurate
    assert "no set of up to 12 functions reaches an error of 1.0e-15" in found.warnings[0]


def test_starts() -> None:
    assert evenly_spaced(0, 20, 3) == [5, 10, 15] and evenly_spaced(4, 5, 3) == [4] and evenly_spaced(0, 2, 3) == [0, 1]
    longer = WellTempered.shared(START, {"s": (1, 24)}).exponents()[0]
    shorter = WellTempered.shared(stretch(START, 24, 16), {"s": (1, 16)}).exponents()[0]
    assert shorter[-1] == pytest.approx(longer[-1], rel=1e-10) and len(shorter) == 16
    assert start_parameters("Ne", 23) == table_set("Ne").parameters
    assert start_parameters("H", 18) == table_set("He").parameters
    for wrong in ({"scan": "some"}, {"size": 1}, {"threshold": -1.0}, {"threshold": "good"}):
        with pytest.raises(InputError):
            SearchSettings(**wrong)  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------ real atoms


@pytest.mark.parametrize(("symbol", "size"), [("He", 20), ("Be", 24), ("Ne", 24)][: 3 if EVERY_CASE else 2])
def test_sets_are_no_larger_than_those_of_the_thesis(symbol: str, size: int, tmp_path: Path) -> None:
    """The required accuracy is that of the basis set in the thesis, relative to the same limit."""
    trust = TrustRegion(rhoend=1e-3, maxfun=100)
    settings = SearchSettings(threshold="table", size=size, scan="bisect", rounds=1, trust=trust, backend="cpu")
    found = search([symbol], settings, SerialRunner(), tmp_path)[symbol]
    assert isinstance(found, SearchResult) and found.accurate and not found.warnings
    mine, theirs = found.basis.basis().sizes, table_set(symbol).basis().sizes
    assert sum(mine) <= sum(theirs)
    limits = {
        "He": -2.8618133228,
        "Be": -14.575891696023131,
        "Ne": -128.69193051,
    }  # limits from even-tempered sets, accurate to 1e-9
    assert found.reference == pytest.approx(limits[symbol], rel=2e-10)


# ------------------------------------------------------------------------------- state, failures, Dask workers

QUICK = SearchSettings(
    threshold=1e-4,
    size=9,
    scan="full",
    rounds=1,
    trust=TrustRegion(rhobeg=0.05, rhoend=1e-2, maxfun=40),
    references={"He": LIMIT_OF_HELIUM},
    backend="cpu",
)


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> SearchResult:
    found = search(["He"], QUICK, SerialRunner(), tmp_path_factory.mktemp("state"))["He"]
    assert isinstance(found, SearchResult) and found.accurate and found.ranges["s"][1] < QUICK.size
    return found


def assert_same(found: SearchResult | CuantoError, expected: SearchResult) -> None:
    """Assert that two searches agree to the last digit: no energy depends on what was computed before, or where."""
    assert found == expected and expected.warnings == ()


class Crashing(SerialRunner):
    """Stops in the middle of the search, as in a crash."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self.left = after

    def next(self) -> tuple[str, dict[str, Any] | BaseException]:
        if self.left == 0:
            raise KeyboardInterrupt
        self.left -= 1
        return super().next()


def test_after_a_crash_nothing_is_computed_again(tmp_path: Path, expected: SearchResult) -> None:
    with pytest.raises(KeyboardInterrupt):
        search(["He"], QUICK, Crashing(5), tmp_path)
    with (tmp_path / "He.jsonl").open("a") as file:
        file.write('{"key": "half a li')
    events: list[Progress] = []
    assert_same(search(["He"], QUICK, SerialRunner(), tmp_path, events.append)["He"], expected)
    assert sum(event.known for event in events) == 5
    events.clear()
    assert_same(search(["He"], QUICK, Crashing(0), tmp_path, events.append)["He"], expected)  # no worker is used
    assert all(event.known for event in events)
    assert list((tmp_path / "logs").iterdir()) == []


DAMAGED = (
    {"outcome": {"energy": -2.8}},
    {"key": "KEY", "outcome": 7},
    {"key": "KEY", "outcome": {"energy": "much", "parameters": [], "evaluations": 1, "seconds": 0.0}},
    {"key": "KEY", "outcome": {"energy": -2.8, "parameters": [0.1], "evaluations": 1, "seconds": 0.0}},
    {"key": "KEY", "outcome": {"energy": -2.8, "parameters": 3, "evaluations": 1, "seconds": 0.0}},
    {"key": "KEY", "outcome": {"energy": -2.8, "parameters": [], "evaluations": "x", "seconds": 0.0}},
)


@pytest.mark.parametrize("damaged", DAMAGED)
def test_damaged_results_are_computed_again(tmp_path: Path, damaged: dict[str, Any], expected: SearchResult) -> None:
    search(["He"], QUICK, SerialRunner(), tmp_path)
    path = tmp_path / "He.jsonl"
    first, *others = path.read_text().splitlines()
    text = json.dumps(damaged).replace("KEY", json.loads(first)["key"])
    path.write_text("\n".join([text, *others]) + "\n")
    events: list[Progress] = []
    assert_same(search(["He"], QUICK, SerialRunner(), tmp_path, events.append)["He"], expected)
    assert [event.known for event in events].count(False) == 1


def test_an_interrupted_optimisation_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, expected: SearchResult
) -> None:
    calls: list[int] = []
    plain = module.AtomEnergy.__call__

    def counting(self: Any, basis: Any) -> float:
        calls.append(1)
        if len(calls) == stop_at:
            raise KeyboardInterrupt
        return plain(self, basis)

    monkeypatch.setattr(module.AtomEnergy, "__call__", counting)
    stop_at = -1
    search(["He"], QUICK, SerialRunner(), tmp_path / "whole")
    whole = len(calls)
    calls.clear()
    stop_at = 25
    with pytest.raises(KeyboardInterrupt):
        search(["He"], QUICK, SerialRunner(), tmp_path / "halves")
    stop_at = -1
    assert_same(search(["He"], QUICK, SerialRunner(), tmp_path / "halves")["He"], expected)
    assert len(calls) == whole + 1  # only the interrupted one is repeated


class Losing(SerialRunner):
    """Returns errors for the first tasks, as if their workers had died."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.left = times

    def next(self) -> tuple[str, dict[str, Any] | BaseException]:
        key, result = super().next()
        if self.left > 0:
            self.left -= 1
            return key, RuntimeError("the worker is gone")
        return key, result


def test_lost_tasks_are_retried_and_reported(tmp_path: Path, expected: SearchResult) -> None:
    events: list[Progress] = []
    assert_same(search(["He"], QUICK, Losing(2), tmp_path / "a", events.append)["He"], expected)
    assert [event.outcome.error for event in events[:2]] == [
        "RuntimeError: the worker is gone",
        "RuntimeError: the worker is gone (tried 2 times)",
    ]
    assert [event.retry for event in events[:3]] == [True, True, False]
    given_up = search(["He"], QUICK, Losing(3), tmp_path / "b")["He"]
    assert isinstance(given_up, InputError) and "tried 3 times" in str(given_up)


def test_one_bad_element_does_not_stop_the_others(tmp_path: Path, expected: SearchResult) -> None:
    settings = SearchSettings(**{**vars(QUICK), "references": {"He": LIMIT_OF_HELIUM, "Li": -7.43}})
    plain = module.run_task

    class Refusing(SerialRunner):
        def next(self) -> tuple[str, dict[str, Any] | BaseException]:
            key, _, task = self._waiting.popleft()
            bad = task["element"] == "Li"
            return key, vars(Outcome(None, error="lithium failed")) if bad else plain(task)

    found = search(["Li", "He"], settings, Refusing(), tmp_path)
    assert_same(found["He"], expected)
    assert isinstance(found["Li"], InputError) and "lithium failed" in str(found["Li"])


def test_problems_are_reported_immediately(tmp_path: Path) -> None:
    for settings, symbol, says in [
        ({"threshold": "table"}, "Ce", "the table has no Ce"),
        ({"size": 4}, "Kr", "size 4 is too small for Kr"),
        ({"configurations": {"He": "1s9"}}, "He", "holds 2 electrons"),
    ]:
        with pytest.raises(InputError, match=says):
            search([symbol], SearchSettings(**settings), SerialRunner(), tmp_path)  # type: ignore[arg-type]
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot make the folder"):
        search(["He"], QUICK, SerialRunner(), tmp_path / "file")
    assert LIMIT.text == "limit"


def test_two_killed_workers_change_nothing(tmp_path: Path, expected: SearchResult) -> None:
    killed: list[int] = []
    with ProcessRunner(2) as runner:

        def watch(progress: Progress) -> None:
            if not killed and progress.what != "s(1:9)":  # in the middle of a step, while other trials are running
                killed.extend(worker.process.pid for worker in runner._workers)
                for pid in killed:
                    os.kill(pid, signal.SIGKILL)

        found = search(["He"], QUICK, runner, tmp_path, watch)["He"]
    assert len(killed) == 2
    assert_same(found, expected)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    import distributed

    about = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
    with distributed.LocalCluster(**about) as found:
        yield found


def test_a_scheduler_on_the_command_line(
    tmp_path: Path, cluster: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The cluster does the work, and finds the same as this process."""
    monkeypatch.chdir(tmp_path)
    arguments = ["basis-search", "-e", "He", "--size", "9", "--threshold", "1e-3", "--scan", "bisect"]
    arguments += ["--max-evaluations", "20", "--reference", f"He={LIMIT_OF_HELIUM}"]
    before, found = cluster.scheduler.transition_counter, []
    for where in (["--workers", "0"], ["--scheduler", cluster.scheduler_address]):
        with pytest.raises(SystemExit) as leaving:
            run([*arguments, *where, "--state", where[0], "--json", "found.json"])
        assert leaving.value.code in (None, 0) and capsys.readouterr().err == ""
        found.append(json.loads(Path("found.json").read_text()))
        worked = cluster.scheduler.transition_counter > before
        assert worked == (where[0] == "--scheduler")
    assert found[0] == found[1] and found[0]["elements"]["He"]["accurate"] is True


def test_errors_of_workers_come_back(cluster: Any) -> None:
    with DaskRunner(cluster.scheduler_address) as runner:
        runner.submit("a key", module.run_task, {"nonsense": 1})
        key, result = runner.next()
    assert key == "a key" and isinstance(result, KeyError)


def test_without_dask_or_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cuanto.workers.CONNECT_SECONDS", 1)
    for address in ("tcp://127.0.0.1:9", "nonsense:address:x"):
        with pytest.raises(InputError, match="no Dask scheduler answers"):
            DaskRunner(address)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingDependencyError, match="pip install"):
        dask_distributed()
