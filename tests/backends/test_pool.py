"""The native threads: every item runs once, sums are bitwise reproducible; forks, signals and errors do no harm."""

from __future__ import annotations

import ctypes
import logging
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuanto.backends.base import Launch
from cuanto.backends.cpu import pool
from cuanto.backends.cpu.backend import CpuBackend
from cuanto.backends.cpu.pool import CHUNKS, NativeLaunch
from cuanto.kernels.text import Source
from cuanto.log import Timings
from paths import SUPPORT
from pool_kernels import ADD, ADD_MERGED, COUNT, SLOW, kernel
from scripted import REAL, run_python, start_python

THREADS = (1, 2, 3, 8)
BUSY = 1.0
"""Seconds allowed in timings for other programs that keep this process from running."""
TOO_MUCH = 1 << 46
"""More bytes than any machine has."""

backends = {threads: CpuBackend(threads) for threads in THREADS}


def launch(source: Source, items: int, threads: int = 3, **settings: Any) -> None:
    """Launch a kernel on `threads` threads; `settings`: those of a `Launch`, and the kernel's arguments."""
    known = {name: settings.pop(name) for name in ("scratch", "grain", "sums", "sums_size") if name in settings}
    backend = backends[threads]
    backend.launch_all([Launch(backend.compile(source), items, settings, **known)])


def counted(items: int, threads: int, grain: int) -> Any:
    count = np.zeros(items, dtype=np.int64)
    launch(COUNT, items, threads, grain=grain, count=count)
    return count


# -------------------------------------------------------------------------------------------------------- items


@given(
    items=st.integers(0, 3000),
    grain=st.sampled_from([0, 1, 2, 3, 7, 64, 1000, 10**6]),
    threads=st.sampled_from(THREADS),
)
def test_every_item_is_done_once(items: int, grain: int, threads: int) -> None:
    assert (counted(items, threads, grain) == 1).all()


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(1, 50)), min_size=1, max_size=8), st.sampled_from(THREADS))
def test_every_item_of_every_launch_is_done_once(sizes: list[tuple[int, int]], threads: int) -> None:
    backend = backends[threads]
    counts = [np.zeros(items, dtype=np.int64) for items, _ in sizes]
    program = backend.compile(COUNT)
    backend.launch_all(
        [
            Launch(program, items, {"count": count}, grain=grain)
            for (items, grain), count in zip(sizes, counts, strict=True)
        ]
    )
    assert all((count == 1).all() for count in counts)


def test_launches_of_a_list_begin_in_their_order() -> None:
    text = "for (INDEX i = begin; i < end; ++i) order[(*next)++] = 100 * launch + i;"
    number = kernel(text, ("INDEX*", "order"), ("INDEX*", "next"), ("INDEX", "launch"))
    backend, order, following = backends[1], np.zeros(30, dtype=np.int64), np.zeros(1, dtype=np.int64)
    arguments = {"order": order, "next": following}
    program = backend.compile(number)
    backend.launch_all([Launch(program, 10, {**arguments, "launch": k}, grain=k + 1) for k in range(3)])
    assert order.tolist() == [100 * k + i for k in range(3) for i in range(10)]


def test_arguments_are_taken_by_their_names() -> None:
    text = "out[0] = n; out[1] = x; out[2] = y; out[3] = none == 0; out[4] = v[1];"
    names = [("double*", "out"), ("int", "n"), ("double", "x"), ("float", "y"), ("double*", "none")]
    out, v = np.zeros(5), np.array([1.0, 7.5])
    given = {"v": v, "unknown": 1, "none": None, "y": 0.25, "x": -1.5, "n": np.int64(-3), "out": out}
    launch(kernel(text, *names, ("const double*", "v")), 1, **given)
    assert out.tolist() == [-3.0, -1.5, 0.25, 1.0, 7.5]


def test_long_chunks_are_shared_as_well() -> None:
    """A chunk takes longer than the interval at which the calling thread returns to the interpreter."""
    out = np.zeros(6, dtype=np.int64)
    launch(SLOW, len(out), 3, grain=1, milliseconds=150, out=out)
    assert len(set(out.tolist())) >= 2  # at least two threads took part


def test_the_interpreter_runs_meanwhile() -> None:
    ticks: list[float] = []
    stop = threading.Event()
    clock = threading.Thread(target=lambda: [ticks.append(time.monotonic()) for _ in iter(lambda: stop.wait(0.01), 1)])
    clock.start()
    launch(SLOW, 40, 2, grain=1, milliseconds=10, out=np.zeros(40, dtype=np.int64))
    stop.set()
    clock.join()
    assert len(ticks) > 5


# --------------------------------------------------------------------------------------------------------- sums


def expected_sums(values: Any, chunks: list[slice]) -> Any:
    """Sum chunk by chunk, as one thread would."""
    total = np.full(values.shape[1], 0.1)
    for chunk in chunks:
        part = np.zeros(values.shape[1])
        for row in values[chunk]:
            part += row
        total += part
    return total


@pytest.mark.parametrize("source", [ADD, ADD_MERGED], ids=["added", "merged"])
@pytest.mark.parametrize("grain", [0, 1, 5])
def test_sums_have_the_same_bits_everywhere(source: Source, grain: int) -> None:
    """Delays make chunks end in any order, and there are more threads than cores."""
    rng = np.random.default_rng(5)
    values = rng.normal(size=(301, 7)) * 10.0 ** rng.integers(-8, 8, size=(301, 1))
    step = grain or -(-len(values) // CHUNKS)
    expected = expected_sums(values, [slice(k, k + step) for k in range(0, len(values), step)])
    for threads in THREADS:
        for delay in (0, 40):
            out = np.full(7, 0.1)
            arguments = {"values": values, "width": 7, "delay": delay, "out": out}
            launch(source, len(values), threads, grain=grain, sums="out", sums_size=7, **arguments)
            np.testing.assert_array_equal(out, expected)


def test_sums_of_a_list_are_added_in_its_order() -> None:
    rng = np.random.default_rng(6)
    parts = [rng.normal(size=(50 + k, 3)) * 10.0**k for k in range(5)]
    results = []
    for threads in THREADS:
        backend, out, counts = backends[threads], np.zeros(3), np.zeros(40, dtype=np.int64)
        launches = [
            Launch(
                backend.compile(ADD),
                len(values),
                {"values": values, "width": 3, "delay": 20 * (k % 2), "out": out},
                grain=4,
                sums="out",
            )
            for k, values in enumerate(parts)
        ]
        launches.insert(2, Launch(backend.compile(COUNT), 40, {"count": counts}, grain=3))  # a launch without sums
        backend.launch_all(launches)
        assert (counts == 1).all()
        results.append(out.tobytes())
    assert len(set(results)) == 1


# ------------------------------------------------------------------------------------------------------ scratch


def test_scratch_memory_belongs_to_a_thread() -> None:
    text = """
    for (INDEX i = begin; i < end; ++i) {
        INDEX* mine = (INDEX*)scratch;
        for (INDEX k = 0; k < numbers; ++k) mine[k] = 1000 * i + k;
        usleep(200);
        right[i] = (INDEX)scratch % 64 == 0;
        for (INDEX k = 0; k < numbers; ++k) right[i] = right[i] && mine[k] == 1000 * i + k;
    }"""
    source = kernel(text, ("INDEX", "numbers"), ("INDEX*", "right"), ("char*", "scratch"))
    for numbers in (10, 1000, 500):  # scratch memory grows, then is reused
        right = np.zeros(60, dtype=np.int64)
        launch(source, 60, 8, grain=1, scratch=8 * numbers, numbers=numbers, right=right)
        assert right.all()


SCRATCH = """
import resource, sys, threading
from pool_kernels import FILL
from cuanto.backends.cpu.backend import CpuBackend
backend, size = CpuBackend(threads=1), 32_000_000
program = backend.compile(FILL)
def most():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
def run():
    backend.launch(program, 1, {"size": size}, scratch=size)
def in_threads(count):
    for _ in range(count):
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
in_threads(2)
before = most()
in_threads(20)
print((most() - before) // size)
"""


def test_scratch_memory_ends_with_its_thread(tmp_path: Path) -> None:
    assert int(run_python(SCRATCH, tmp_path)) < 4


# ------------------------------------------------------------------------------------- several threads, processes


def in_threads(calls: list[Callable[[], None]]) -> None:
    """Run all calls at once, each in its own thread; none may hang or fail."""
    errors: list[BaseException] = []

    def guarded(call: Callable[[], None]) -> None:
        try:
            call()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(call,), daemon=True) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not errors and not any(thread.is_alive() for thread in threads)


def test_several_threads_launch_at_once() -> None:
    values = np.random.default_rng(7).normal(size=(200, 4))
    expected = expected_sums(values, [slice(k, k + 3) for k in range(0, 200, 3)])

    def work() -> None:
        for k in range(30):
            assert (counted(500, THREADS[k % 4], 2) == 1).all()
            out = np.full(4, 0.1)
            arguments = {"values": values, "width": 4, "delay": 0, "out": out}
            launch(ADD, 200, THREADS[k % 4], grain=3, sums="out", **arguments)
            np.testing.assert_array_equal(out, expected)

    in_threads([work] * 6)


def test_a_kernel_may_wait_for_another_launch() -> None:
    """A callback from a kernel launches kernels, and waits for a Python thread that launches some as well."""
    counts: list[Any] = []

    @ctypes.CFUNCTYPE(None)
    def callback() -> None:
        counts.append(counted(100, 3, 1))
        in_threads([lambda: counts.append(counted(100, 3, 1))])

    source = kernel("for (INDEX i = begin; i < end; ++i) ((void (*)())call)();", ("void*", "call"))
    launch(source, 20, 3, grain=1, call=ctypes.cast(callback, ctypes.c_void_p).value)
    assert len(counts) == 40 and all((count == 1).all() for count in counts)


FORK = """
import os, threading
import numpy as np
from pool_kernels import COUNT, SLOW
from cuanto.backends.base import Launch
from cuanto.backends.cpu.backend import CpuBackend
backend = CpuBackend(threads=4)
def right(n=2000):
    count = np.zeros(n, dtype=np.int64)
    backend.launch_all([Launch(backend.compile(COUNT), n, {"count": count}, grain=1)])
    return bool((count == 1).all())
def threads_of(n=40):
    out = np.zeros(n, dtype=np.int64)
    backend.launch_all([Launch(backend.compile(SLOW), n, {"out": out, "milliseconds": 5}, grain=1)])
    return len(set(out.tolist()))
assert right() and threads_of() > 1
busy = threading.Thread(target=lambda: [threads_of(100) for _ in range(10)])  # in the middle of launches
busy.start()
children = []
for _ in range(20):
    child = os.fork()
    if not child:
        grandchild = os.fork()
        good = right() and threads_of() > 1
        if grandchild:
            good = good and os.waitpid(grandchild, 0)[1] == 0
        os._exit(0 if good else 3)
    children.append(child)
    assert right()
print(sum(os.waitpid(child, 0)[1] == 0 for child in children))
busy.join()
assert threads_of() > 1
"""


def test_forked_children_have_threads_of_their_own(tmp_path: Path) -> None:
    """Children and grandchildren, while another thread of the parent is in the middle of a launch."""
    assert run_python(FORK, tmp_path).split() == ["20"]


MANY_BACKENDS = """
import numpy as np
from pool_kernels import SLOW
from cuanto.backends.base import Launch
from cuanto.backends.cpu.backend import CpuBackend
seen = set()
for _ in range(20):
    backend, out = CpuBackend(threads=3), np.zeros(20, dtype=np.int64)
    backend.launch_all([Launch(backend.compile(SLOW), 20, {"out": out, "milliseconds": 1}, grain=1)])
    seen.update(out.tolist())
print(len(seen))
"""


def test_backends_share_the_threads_of_the_process(tmp_path: Path) -> None:
    assert 2 <= int(run_python(MANY_BACKENDS, tmp_path)) <= 3


def test_a_backend_of_few_threads_keeps_to_them() -> None:
    for threads in (8, 2, 1):
        out = np.zeros(60, dtype=np.int64)
        launch(SLOW, len(out), threads, grain=1, milliseconds=2, out=out)
        assert min(2, threads) <= len(set(out.tolist())) <= threads


# ----------------------------------------------------------------------------------------- interrupts and errors

INTERRUPTED = """
import time
import numpy as np
from pool_kernels import COUNT, SLOW
from cuanto.backends.base import Launch
from cuanto.backends.cpu.backend import CpuBackend
backend = CpuBackend(threads=THREADS)
slow, count = backend.compile(SLOW), backend.compile(COUNT)
slow.wait(), count.wait()
out = np.zeros(100_000, dtype=np.int64)
print("begin", flush=True)
try:
    backend.launch_all([Launch(slow, len(out), {"out": out, "milliseconds": 10}, grain=1)])
except KeyboardInterrupt:
    done = np.count_nonzero(out)
    time.sleep(0.1)
    assert np.count_nonzero(out) == done  # no thread continues
    print(time.monotonic(), flush=True)
counts = np.zeros(1000, dtype=np.int64)
backend.launch_all([Launch(count, 1000, {"count": counts}, grain=1)])
print(bool((counts == 1).all()))
"""


@pytest.mark.parametrize("threads", [1, 3])
def test_an_interrupt_ends_a_launch(threads: int, tmp_path: Path) -> None:
    process = start_python(INTERRUPTED.replace("THREADS", str(threads)), tmp_path)
    assert process.stdout is not None and process.stdout.readline() == "begin\n"
    time.sleep(0.5)
    sent = time.monotonic()
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    caught, good = out.split()
    assert process.returncode == 0 and good == "True", err
    assert float(caught) - sent < 1.0 + 0.1 + BUSY  # 0.1 s is the pause in the script


def test_workers_leave_signals_to_the_interpreter() -> None:
    text = """
    for (INDEX i = begin; i < end; ++i) {
        sigset_t blocked;
        pthread_sigmask(SIG_BLOCK, 0, &blocked);
        open[i] = pthread_equal(pthread_self(), (pthread_t)caller) ? 0 : 1 + sigismember(&blocked, SIGINT);
        usleep(2000);
    }"""
    state = np.zeros(40, dtype=np.int64)
    source = kernel(text, ("INDEX*", "open"), ("INDEX", "caller"))
    launch(source, 40, 3, grain=1, open=state, caller=threading.get_ident())
    assert set(state.tolist()) == {0, 2}


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("what", ["scratch", "sums_size"])
def test_failed_allocations_are_errors(what: str, threads: int) -> None:
    values, out = np.ones((100, 3)), np.zeros(3)
    arguments = {"values": values, "width": 3, "delay": 0, "out": out, "grain": 1, "sums": "out"}
    with pytest.raises(MemoryError, match="CUANTO_THREADS"):
        launch(ADD, 100, threads, **arguments, **{what: TOO_MUCH // 8})
    out[:] = 0.0
    launch(ADD, 100, threads, **arguments, scratch=64)
    assert (counted(500, threads, 1) == 1).all() and out.tolist() == [100.0] * 3


def test_an_error_during_a_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error comes from the calling thread; the others stop before the arguments are freed."""
    backend, out = backends[3], np.zeros(100_000, dtype=np.int64)
    program = backend.compile(SLOW)

    def fail(fraction: float) -> None:
        raise ArithmeticError("no report")

    monkeypatch.setattr(pool, "PROGRESS_SECONDS", 0.15)
    monkeypatch.setattr(pool, "report_progress", fail)
    with pytest.raises(ArithmeticError, match="no report"):
        backend.pool.run([NativeLaunch((program.variant({"out": out, "milliseconds": 5}),), len(out))])
    done = np.count_nonzero(out)
    time.sleep(0.05)
    assert 0 < np.count_nonzero(out) == done < len(out)
    assert (counted(500, 3, 1) == 1).all()


# ------------------------------------------------------------------------------------------------------- progress


def test_long_launches_report_progress(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(pool, "PROGRESS_SECONDS", 0.15)
    timings = Timings()
    with caplog.at_level(logging.INFO, "cuanto"), timings.measure("three-centre integrals"):
        launch(SLOW, 100, 1, grain=1, milliseconds=8, out=np.zeros(100, dtype=np.int64))
    messages = [record.getMessage() for record in caplog.records][:-1]
    assert all(line.startswith("three-centre integrals: ") for line in messages)
    assert 2 <= len(messages) <= timings.total / pool.PROGRESS_SECONDS
    percent = [int(line.split()[2]) for line in messages]
    assert percent == sorted(percent) and 0 < percent[0] < percent[-1] < 100


# ------------------------------------------------------------------------------------------------------ sanitizers


@pytest.fixture(scope="module", params=["thread", "address"])
def sanitizer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Compiler flags that find data races or memory errors; empty if they do not work here."""
    folder, flags = tmp_path_factory.mktemp("sanitizer"), [f"-fsanitize={request.param}"]
    (folder / "empty.cpp").write_text("int main() {}")
    command = [REAL, *flags, "-o", str(folder / "empty"), str(folder / "empty.cpp")]
    works = not subprocess.run(command, capture_output=True).returncode
    return flags if works and not subprocess.run([folder / "empty"], capture_output=True).returncode else []


def test_sanitizers_find_nothing(sanitizer: list[str], tmp_path: Path) -> None:
    shutil.copy(Path(pool.__file__).with_name("pool.h"), tmp_path)
    flags = ["-std=c++17", "-g", "-O1", "-pthread", "-Wall", "-Wextra", "-Werror", *sanitizer, f"-I{tmp_path}"]
    command = [REAL, *flags, "-o", str(tmp_path / "driver"), str(SUPPORT / "pool_driver.cpp")]
    subprocess.run(command, check=True)
    options = dict.fromkeys(("TSAN_OPTIONS", "ASAN_OPTIONS"), "allocator_may_return_null=1")
    done = subprocess.run([tmp_path / "driver"], capture_output=True, text=True, env={**os.environ, **options})
    assert done.returncode == 0, done.stderr[:5000]
