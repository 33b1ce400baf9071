"""Tiers: the general kernel is used at first; specialised ones are compiled in the background, for later calculations
or for those that wait for them."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bundle import Planner
from cuanto import integrals
from cuanto.backends import kinds
from cuanto.backends.background import Background
from cuanto.backends.cpu import backend as cpu
from cuanto.backends.cpu import compiler, pool
from cuanto.backends.cpu.backend import CpuBackend, CpuProgram
from cuanto.backends.cpu.compiler import compile_library
from cuanto.backends.cpu.pool import Pool, Variant
from cuanto.backends.cuda import launch
from cuanto.backends.cuda.launch import WORTH_COMPILING
from cuanto.backends.simt.backend import SimtProgram
from cuanto.backends.tiers import fixed_kernels
from cuanto.basis import Basis
from cuanto.coulomb import j_steps
from cuanto.coulomb.j_engine import JEngine
from cuanto.errors import CompilerError
from oracles.integrals import overlap_matrix
from scripted import (
    POOL,
    compiled_libraries,
    compiler_script,
    forget_compiler,
    some_basis,
    start_python,
    temporary_files,
    wait_until,
)
from tolerances import INTEGRAL_REL

TABLE = "table_kernel"
BASIS = some_basis(1)
ENTRY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_longlong, ctypes.c_longlong, ctypes.c_void_p, ctypes.c_void_p)
CLASSES = {f"overlap_{pair}_os_lane_double_1" for pair in ("s_s", "p_s", "p_p")}


class Watch:
    """Records which kernels were compiled (how, and by which thread) and called; `gate` holds back specialised ones."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.compiled: dict[str, tuple[str, bool]] = {}
        self.called: Counter[str] = Counter()
        self._alive: list[Any] = []
        self.gate = threading.Event()
        self.before_call: Callable[[str], None] = lambda entry: None

        def compile_watched(source: Any, patience: compiler.Patience | None = None) -> Path:
            if source.entry != POOL:
                self.compiled.setdefault(source.entry, (threading.current_thread().name, patience is not None))
            if source.entry not in (TABLE, POOL):
                assert self.gate.wait(60)
            return compile_library(source, patience)

        def watched_variant(program: CpuProgram, arguments: Any) -> Variant:
            items = ENTRY(program.items)

            def call(*given: Any) -> None:
                self.before_call(program.source.entry)
                self.called[program.source.entry] += 1
                items(*given)

            self._alive.append(ENTRY(call))
            watched = ctypes.cast(self._alive[-1], ctypes.c_void_p).value
            return Variant(watched or 0, program._pack(arguments), arguments)

        monkeypatch.setattr(compiler, "compile_library", compile_watched)
        monkeypatch.setattr(CpuProgram, "variant", watched_variant)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    path = tmp_path / "kernels"
    path.mkdir()
    monkeypatch.setenv("CUANTO_CACHE", str(path))
    return path


@pytest.fixture
def watch(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watch]:
    watching = Watch(monkeypatch)
    yield watching
    watching.gate.set()


@pytest.fixture
def much_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every job is worth a kernel of its own."""
    monkeypatch.setattr(cpu, "WORTH_COMPILING", 0.0)


def assert_right(S: Any) -> None:
    np.testing.assert_allclose(S, overlap_matrix(BASIS), rtol=0, atol=INTEGRAL_REL)


def test_small_jobs_use_the_general_kernel_only(watch: Watch, folder: Path) -> None:
    backend = CpuBackend(threads=2)
    assert_right(integrals.overlap(BASIS, backend=backend))
    backend.finish_compiling()
    assert set(watch.compiled) == {TABLE}
    assert set(watch.called) == {TABLE} and len(compiled_libraries(folder)) == 1


@pytest.mark.usefixtures("much_work")
def test_specialised_kernels_are_used_by_later_calls(watch: Watch, folder: Path) -> None:
    backend = CpuBackend(threads=2)
    first = integrals.overlap(BASIS, backend=backend)
    assert_right(first)
    assert set(watch.called) == {TABLE} and len(compiled_libraries(folder)) == 1

    watch.gate.set()
    backend.finish_compiling()
    assert set(watch.compiled) == {TABLE, *CLASSES}
    for entry in CLASSES:
        thread, low_priority = watch.compiled[entry]
        assert low_priority and thread.startswith("cuanto-compile")
    assert len(compiled_libraries(folder)) == 1 + len(CLASSES) and not temporary_files(folder)

    watch.called.clear()
    second = integrals.overlap(BASIS, backend=backend)
    assert set(watch.called) == CLASSES
    np.testing.assert_allclose(second, first, rtol=0, atol=INTEGRAL_REL)


@pytest.mark.usefixtures("much_work")
def test_a_calculation_keeps_its_kernels(watch: Watch) -> None:
    """Kernels that become ready during a calculation are left to the next one, which may be in another thread."""
    backend = CpuBackend(threads=2)
    with fixed_kernels():
        first = integrals.overlap(BASIS, backend=backend)
        watch.gate.set()
        backend.finish_compiling()
        with fixed_kernels():
            second = integrals.overlap(BASIS, backend=backend)
        assert set(watch.called) == {TABLE} and np.array_equal(first, second)
        watch.called.clear()
        with ThreadPoolExecutor(1) as pool:
            assert_right(pool.submit(integrals.overlap, BASIS, backend=backend).result())
        assert set(watch.called) == CLASSES
        assert np.array_equal(integrals.overlap(BASIS, backend=backend), first)
    watch.called.clear()
    assert_right(integrals.overlap(BASIS, backend=backend))
    assert set(watch.called) == CLASSES


@pytest.mark.usefixtures("much_work")
def test_a_kernel_is_not_replaced_in_the_middle_of_a_job(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "CACHE_BYTES", 1)  # one bra at a time
    monkeypatch.setattr(pool, "SLICE", 0.0)  # return to the interpreter after each bra
    basis, backend = some_basis(0, count=12), CpuBackend(threads=2)
    monkeypatch.setattr(backend, "pool", Pool(1))

    def compile_after_the_first_call(entry: str) -> None:
        if watch.called[TABLE] == 1:
            watch.gate.set()
            backend.finish_compiling()

    watch.before_call = compile_after_the_first_call
    S = integrals.overlap(basis, backend=backend)
    assert watch.called == {TABLE: len(basis.shells)}
    np.testing.assert_allclose(S, overlap_matrix(basis), rtol=0, atol=INTEGRAL_REL)


AWAITED = "overlap_p_p_os_lane_double_1"


@pytest.fixture
def one_worth_waiting(much_work: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A calculation waits for the kernel with the longest text."""
    monkeypatch.setattr(cpu, "is_worth_waiting", lambda backend, name, work, text: text > 30)


@pytest.mark.usefixtures("one_worth_waiting")
def test_a_class_with_much_work_waits_while_others_run(watch: Watch) -> None:
    """The compiler goes on only when the general kernel has run, which a calculation that waits first would not do."""
    backend = CpuBackend(threads=2)
    watch.before_call = lambda entry: watch.gate.set()
    with fixed_kernels():
        assert_right(integrals.overlap(BASIS, backend=backend))
        assert set(watch.called) == {TABLE, AWAITED}
        assert watch.compiled[AWAITED][1] is False  # not at low priority
        backend.finish_compiling()
        watch.called.clear()
        assert_right(integrals.overlap(BASIS, backend=backend))
        assert set(watch.called) == {TABLE, AWAITED}


@pytest.mark.usefixtures("one_worth_waiting")
def test_nobody_waits_for_a_kernel_that_fails(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(source: Any, patience: Any = None) -> Path:
        if source.entry == AWAITED:
            raise CompilerError("no space")
        return compile_library(source, patience)

    monkeypatch.setattr(compiler, "compile_library", fail)
    backend = CpuBackend(threads=2)
    with fixed_kernels():
        for _ in range(2):
            assert_right(integrals.overlap(BASIS, backend=backend))
    assert AWAITED not in watch.called and watch.called[TABLE]


@pytest.mark.parametrize("broken", [False, True], ids=["compiled", "failed"])
def test_launches_wait_for_their_kernels_while_others_run(
    broken: bool, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The J engine waits for straight-line kernels, and falls back on the general one."""
    gate, started = threading.Event(), list[str]()

    def is_special(entry: str) -> bool:
        return re.match(r"j_\d", entry) is not None

    def compile_held(source: Any, patience: Any = None) -> Path:
        if is_special(source.entry):
            assert gate.wait(60)
            if broken:
                raise CompilerError("no space")
        return compile_library(source, patience)

    monkeypatch.setattr(compiler, "compile_library", compile_held)
    monkeypatch.setattr(j_steps, "WORTH_COMPILING", {"cpu": 0})
    monkeypatch.setattr(j_steps, "is_worth_waiting", lambda *given: True)
    monkeypatch.setattr(j_steps, "unrolled", lambda target, bra, ket, densities: ket == 1)
    backend, D = CpuBackend(threads=2), np.eye(BASIS.nbf)
    run_all = backend._run_all

    def watch_launches(launches: Any) -> None:
        entries = [launch.program.source.entry for launch in launches]
        if "j_general" in entries:
            gate.set()
        started.extend(entry for entry in entries if entry == "j_general" or is_special(entry))
        run_all(launches)

    monkeypatch.setattr(backend, "_run_all", watch_launches)
    with fixed_kernels():
        J = JEngine(BASIS, backend=backend)(D)
    general = JEngine(BASIS, backend=CpuBackend(2, "table"))
    monkeypatch.setattr(j_steps, "unrolled", lambda target, bra, ket, densities: False)
    np.testing.assert_allclose(J, general(D), rtol=0, atol=1e-12)
    special = [k for k, entry in enumerate(started) if is_special(entry)]
    assert not special if broken else min(special) > started.index("j_general")


@pytest.mark.usefixtures("much_work")
def test_specialised_kernels_of_an_earlier_process_are_used_immediately(watch: Watch, folder: Path) -> None:
    watch.gate.set()
    earlier = CpuBackend(threads=2)
    integrals.overlap(BASIS, backend=earlier)
    earlier.finish_compiling()
    files = {path: path.stat().st_mtime_ns for path in compiled_libraries(folder)}
    watch.called.clear()
    assert_right(integrals.overlap(BASIS, backend=CpuBackend(threads=2)))
    assert set(watch.called) == CLASSES
    assert {path: path.stat().st_mtime_ns for path in compiled_libraries(folder)} == files


def test_each_kernel_is_compiled_once(watch: Watch, much_work: None) -> None:
    backend = CpuBackend(threads=2)
    for _ in range(3):
        integrals.overlap(BASIS, backend=backend)
    assert len(backend._programs) == 1 + len(CLASSES)
    watch.gate.set()
    backend.finish_compiling()
    assert set(watch.compiled) == {TABLE, *CLASSES}


@pytest.mark.parametrize("schedule", ["table", "lane"])
def test_a_schedule_that_was_asked_for_is_the_only_one(schedule: str, watch: Watch, much_work: None) -> None:
    watch.gate.set()
    assert_right(integrals.overlap(BASIS, backend=CpuBackend(threads=2, schedule=schedule)))
    assert set(watch.called) == ({TABLE} if schedule == "table" else CLASSES)


def test_loops_are_compiled_for_classes_without_index_tables_only(watch: Watch) -> None:
    """Loops, and index tables of the other algorithm, give the same integrals (dd|dd)."""
    watch.gate.set()
    basis = Basis.from_shells(some_basis(2, count=1).shells[2:], np.array([[0.1, -0.2, 0.3]] * 3))
    eri = {x: integrals.eri_4c(basis, algorithm=x, backend=CpuBackend(2, "table")) for x in ("hgp", "md")}
    assert set(watch.compiled) == {TABLE, "loops_kernel"} == set(watch.called)
    np.testing.assert_allclose(eri["md"], eri["hgp"], rtol=0, atol=INTEGRAL_REL * np.abs(eri["hgp"]).max())


@pytest.mark.usefixtures("much_work")
def test_a_failed_specialised_kernel_is_replaced_by_the_general_one(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(
        "CUANTO_CXX",
        compiler_script(tmp_path / "c++", f'grep -q {TABLE} "$text" && compile "$@" && exit; echo "no space"; exit 1'),
    )
    with forget_compiler():
        backend = CpuBackend(threads=2)
        assert_right(integrals.overlap(BASIS, backend=backend))
        with pytest.raises(CompilerError, match="no space"):
            backend.finish_compiling()
        wait_until(lambda: all(program._library.done() for program in backend._programs.values()))
        assert_right(integrals.overlap(BASIS, backend=backend))
    assert len(compiled_libraries(folder)) == 1 and not temporary_files(folder)


def test_a_gpu_compiles_kernels_for_large_jobs_only() -> None:
    usual, eager = Planner(worth_compiling=WORTH_COMPILING), Planner(worth_compiling=0.0)
    integrals.overlap(BASIS, backend=usual)
    entries = [{device.plan(job).program.source.entry for job in usual.jobs} for device in (usual, eager)]
    assert entries == [{"group_kernel"}, {entry.replace("lane", "thread") for entry in CLASSES}]


@pytest.mark.parametrize("wait", [False, True])
def test_a_calculation_on_a_gpu_keeps_its_kernels(wait: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A class whose kernel is not compiled uses the general one to the end, or comes last, with the general one in
    reserve. Another process generates the texts that nobody waits for."""
    monkeypatch.setenv("CUANTO_CACHE", str(tmp_path))
    kinds._kind.cache_clear()
    monkeypatch.setattr(launch, "is_worth_waiting", lambda *given: wait)
    monkeypatch.setattr(SimtProgram, "ready", False)
    device, expected = Planner(worth_compiling=0.0), set[Any]()
    monkeypatch.setattr(device, "expect_kernel", lambda *given: expected.add(given))
    integrals.overlap(BASIS, backend=device)
    with fixed_kernels():
        first = [device.plan(job) for job in device.jobs]
        monkeypatch.setattr(SimtProgram, "ready", True)
        for job in device.jobs:
            kinds.kind_of(job).source("double")  # as the other process does
        second = [device.plan(job) for job in device.jobs]
        for planned in (first, second):
            assert ("group_kernel" in {one.program.source.entry for one in planned}) is not wait
        assert all((one.otherwise is not None) is wait for one in first)
        assert not any(one.otherwise for one in second)
    classes = {(kinds.kind_of(job).class_, job.columns, "double", "store") for job in device.jobs}
    assert expected == (set() if wait else classes)
    assert "group_kernel" not in {device.plan(job).program.source.entry for job in device.jobs}
    if wait:
        monkeypatch.setattr(SimtProgram, "ready", False)
        general = first[0].otherwise
        assert general is not None
        now, later = launch.compiled_first([[first[0], general()]])
        assert now[0].program.source.entry == "group_kernel" and later == [first[0]]


def test_batches_of_a_class_have_the_same_kernel_on_a_gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A small batch that does not wait for the kernel decides for a larger one of the same class."""
    monkeypatch.setenv("CUANTO_CACHE", str(tmp_path))
    kinds._kind.cache_clear()
    large = iter([False, True] * 4)
    monkeypatch.setattr(launch, "is_worth_waiting", lambda *given: next(large))
    monkeypatch.setattr(SimtProgram, "ready", False)
    device = Planner(worth_compiling=0.0)
    integrals.overlap(BASIS, backend=device)
    with fixed_kernels():
        assert {device.plan(device.jobs[0]).program.source.entry for _ in range(4)} == {"group_kernel"}


# ---------------------------------------------------------------------------------------- the end of a process

QUEUE = """
import sys
from scripted import some_basis
from cuanto import integrals
from cuanto.backends.cpu import backend
backend.WORTH_COMPILING = 0.0
S = integrals.overlap(some_basis(2), backend=backend.CpuBackend(threads=2))
print("computed", flush=True)
if input() == "stay":
    print("staying", flush=True)
    import time
    time.sleep(100)
"""
THREADS = 2


@pytest.fixture
def held(folder: Path, tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A process whose first result is there while its specialised kernels wait for a slow compiler; the file `go`
    lets the compiler finish, half of a library is there already."""
    go = tmp_path / "go"
    slow = f"""if grep -q -e {TABLE} -e {POOL} "$text"; then compile "$@"; exit; fi
echo half > "$out"
for i in $(seq 300); do [ -e {go} ] && break; sleep 0.1; done
compile "$@" """
    process = start_python(QUEUE, folder, CUANTO_CXX=compiler_script(tmp_path / "c++", slow))
    assert process.stdout is not None and process.stdout.readline() == "computed\n"
    wait_until(lambda: len([path for path in temporary_files(folder) if path.read_bytes() == b"half\n"]) == THREADS)
    yield process, go
    go.touch()
    if process.poll() is None:
        process.kill()
    process.communicate()
    wait_until(lambda: not temporary_files(folder))


def assert_complete(folder: Path, go: Path) -> None:
    """Check the cache: compilations that had started are complete, queued ones never appear."""
    assert len(compiled_libraries(folder)) == 1
    go.touch()
    wait_until(lambda: not temporary_files(folder))
    libraries = compiled_libraries(folder)
    assert len(libraries) == 1 + THREADS
    for library in libraries:
        ctypes.CDLL(str(library))


def test_a_process_does_not_wait_for_its_queue(held: tuple[subprocess.Popen[str], Path], folder: Path) -> None:
    process, go = held
    start = time.monotonic()
    _, err = process.communicate("leave\n", timeout=20)
    assert process.returncode == 0 and err == ""
    assert time.monotonic() - start < 5.0
    assert_complete(folder, go)


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_process_leaves_whole_files_only(
    end: signal.Signals, held: tuple[subprocess.Popen[str], Path], folder: Path
) -> None:
    """The signal goes to the whole process group, as with Ctrl-C or a closed terminal."""
    process, go = held
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write("stay\n")
    process.stdin.flush()
    assert process.stdout.readline() == "staying\n"
    os.killpg(process.pid, end)
    process.communicate(timeout=20)
    assert process.returncode != 0
    assert_complete(folder, go)


WAITING = """
from scripted import some_basis
from cuanto import integrals
from cuanto.backends.cpu.backend import CpuBackend
integrals.overlap(some_basis(0), backend=CpuBackend(threads=1))
"""
FOREGROUND = """
from cuanto.backends.cpu.compiler import load_library
from pool_kernels import COUNT
load_library(COUNT)
"""


def interrupt(process: subprocess.Popen[str]) -> tuple[str, float]:
    """Errors printed by an interrupted process, and the seconds until it ended. While it imports extension modules, as
    it may when its first compiler starts, these can swallow an interrupt: it is repeated."""
    for _ in range(3):
        start = time.monotonic()
        os.killpg(process.pid, signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            return process.communicate(timeout=6)[1], time.monotonic() - start
    pytest.fail("the process ignores interrupts")


@pytest.mark.parametrize("code", [WAITING, FOREGROUND], ids=["a kernel", "here and now"])
def test_an_interrupt_while_waiting_leaves_no_partial_files(code: str, folder: Path, tmp_path: Path) -> None:
    """The process ends at once; a compiler of the background finishes its work."""
    go = tmp_path / "go"
    slow = f'echo half > "$out"; for i in $(seq 300); do [ -e {go} ] && break; sleep 0.1; done; compile "$@"'
    process = start_python(code, folder, CUANTO_CXX=compiler_script(tmp_path / "c++", slow))
    wait_until(lambda: any(path.read_bytes() == b"half\n" for path in temporary_files(folder)))
    err, seconds = interrupt(process)
    assert process.returncode != 0 and "KeyboardInterrupt" in err and seconds < 5.0
    assert compiled_libraries(folder) == [] and (code == WAITING or not temporary_files(folder))
    go.touch()
    wait_until(lambda: not temporary_files(folder))
    for library in compiled_libraries(folder):
        ctypes.CDLL(str(library))


# ----------------------------------------------------------------------------------------------- Background


def test_background_delivers_results_and_errors() -> None:
    work = Background(2, "test", finish_running=False)
    futures = [work.submit(partial(pow, k, 2)) for k in range(5)]
    assert [future.result(timeout=10) for future in futures] == [0, 1, 4, 9, 16]
    with pytest.raises(ZeroDivisionError):
        work.submit(lambda: 1 // 0).result(timeout=10)
    assert work.submit(lambda: "alive").result(timeout=10) == "alive"


@pytest.mark.parametrize("finish", [True, False])
def test_running_calls_are_finished_at_exit_if_requested(finish: bool, tmp_path: Path) -> None:
    code = f"""
import time
from cuanto.backends.background import Background
work = Background(1, "test", finish_running={finish})
def slow(k):
    print("begin", k, flush=True)
    time.sleep(1.0)
    print("end", k, flush=True)
for k in range(3):
    work.submit(lambda k=k: slow(k))
time.sleep(0.2)
"""
    process = start_python(code, tmp_path)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 0 and err == ""
    assert out.splitlines() == (["begin 0", "end 0"] if finish else ["begin 0"])
