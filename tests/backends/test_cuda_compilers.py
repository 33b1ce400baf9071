"""Compiling for a GPU without one: threads, the helper process, priorities, and what is prepared at the start."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cuanto.backends import cache as disk
from cuanto.backends.background import LATER, NEEDED, Background
from cuanto.backends.cuda import compilers, helper, start
from cuanto.backends.cuda.compilers import Compilers
from cuanto.backends.cuda.operation_compiler import CompilingProcesses, Substitute
from cuanto.backends.cuda.operations import OPERATIONS, operands
from cuanto.backends.kinds import Kind
from cuanto.backends.programs import is_cached
from cuanto.errors import CompilerError, MissingDependencyError
from cuanto.kernels.spec import Shells
from cuanto.kernels.text import Source
from scripted import run_python, wait_until

ARCHITECTURE = "sm_90"


def kernel(number: int, text: str = "out[0] = {};") -> Source:
    body = text.format(number)
    return Source(f'extern "C" __global__ void k(double* out) {{ {body} }}', "k", "cuda", (("double*", "out"),))


@pytest.fixture
def queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Compilers:
    monkeypatch.setenv("CUANTO_CACHE", str(tmp_path))
    return Compilers(ARCHITECTURE)


def test_kernels_are_compiled_once(queue: Compilers, monkeypatch: pytest.MonkeyPatch) -> None:
    source = kernel(1)
    future = queue.request(source)
    assert future is not None and future is queue.request(source)
    binary = future.result(timeout=60)
    assert binary.startswith(b"\x7fELF") and disk.read(queue.path(source)) == binary
    monkeypatch.setattr(compilers, "compile_nvrtc", None)  # from now on kernels come from the cache
    assert Compilers(ARCHITECTURE).request(source) is None
    assert Compilers(ARCHITECTURE).binary(source) == binary


def test_errors_are_raised_where_they_are_waited_for(queue: Compilers) -> None:
    with pytest.raises(CompilerError, match="undefined"):
        queue.wait(kernel(1, "undefined_function({});"))


def test_the_helper_compiles_what_is_needed_later(queue: Compilers) -> None:
    sources = [kernel(number) for number in range(3)]
    futures = [queue.request(source, later=True) for source in sources]
    bad = queue.request(kernel(1, "undefined_function({});"), later=True)
    for source, future in zip(sources, futures, strict=True):
        assert future is not None and future.result(timeout=60) == disk.read(queue.path(source))
    assert bad is not None
    with pytest.raises(CompilerError, match="undefined"):
        bad.result(timeout=60)


def test_the_helper_makes_kernels_of_classes_for_later_processes(queue: Compilers) -> None:
    """It compiles those of (pp|ss), but none for (dd|dd), whose straight-line code would be too long."""
    p, s, d = (Shells((l, l)) for l in (1, 0, 2))
    for _ in range(2):  # the second request is the same
        queue.expect(("coulomb", p, s, "hgp"), 1, "double", "list")
        queue.expect(("coulomb", p, s, "hgp"), 1, "double", "store")
        queue.expect(("coulomb", d, d, "hgp"), 1, "double", "list")
    queue.finish()
    assert is_cached("coulomb", p, s, "hgp", levels=True) and is_cached("coulomb", d, d, "hgp", levels=True)
    for consumer in ("list", "store"):
        source = Kind("coulomb", p, s, "hgp", 1).source("double", consumer)
        assert queue.path(source).exists() and Compilers(ARCHITECTURE).request(source) is None
    assert len(list(disk.cache_folder().glob("*.cubin"))) == 2


def test_a_kernel_that_is_needed_now_does_not_wait_for_the_helper(
    queue: Compilers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(helper.Helper, "_write", lambda self, stream: None)  # a helper that does nothing
    source = kernel(1)
    queued = queue.request(source, later=True)
    assert queued is not None and not queued.done()
    queue.wait(source)
    assert queue.path(source).exists() and not queued.done()


def test_without_a_helper_threads_do_its_work(queue: Compilers, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_arguments: Any, **_pipes: Any) -> Any:
        raise OSError("no more processes")

    monkeypatch.setattr(helper, "_start", refuse)
    future = queue.request(kernel(1), later=True)
    assert future is not None and future.result(timeout=60).startswith(b"\x7fELF")
    module = FakeCupy()
    substitute = Substitute(module, CompilingProcesses(2), ARCHITECTURE)
    substitute.install()
    assert module.compile_using_nvrtc(kernel(1).text, ("--std=c++17",), "90") == (b"own", None)


LATE_ANSWERS = """
import base64, json, sys
jobs = [json.loads(sys.stdin.readline()) for _ in range(3)]
for job in (jobs[1], jobs[0]):
    binary = base64.b64encode(job["text"].encode()).decode()
    print(json.dumps({"number": job["number"], "error": "", "binary": binary}))
sys.stdout.write('{"number": 2, "err')
"""


def test_answers_reach_their_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Out of order, and from a process that is killed while it writes."""

    def begin(_arguments: Any, **pipes: Any) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-c", LATE_ANSWERS], **pipes)

    monkeypatch.setattr(helper, "_start", begin)
    process = helper.start_helper(1)
    futures = [process.submit({"path": None, "text": text}) for text in ("first", "second", "third")]
    first, second, third = (future for future in futures if future is not None)
    assert first.result(timeout=60) == b"first" and second.result(timeout=60) == b"second"
    with pytest.raises(CompilerError, match="has ended"):
        third.result(timeout=60)
    wait_until(lambda: process.submit({"path": None, "text": ""}) is None)


def test_the_helper_goes_on_when_the_process_has_ended(tmp_path: Path) -> None:
    code = """
import time
from cuanto.backends.cuda.compilers import Compilers
from cuanto.kernels.text import Source
work = Compilers("sm_90")
texts = [f'extern "C" __global__ void k(double* out) {{ out[0] = {n}; }}' for n in range(4)]
sources = [Source(text, "k", "cuda", (("double*", "out"),)) for text in texts]
futures = [work.request(source, later=True) for source in sources]
futures[0].result(timeout=60)
print(*(work.path(source).name for source in sources))
"""
    names = run_python(code, tmp_path).split()
    wait_until(lambda: all((tmp_path / name).exists() for name in names))


def test_background_takes_the_most_urgent_call_first() -> None:
    work, go, order = Background(1, "test", finish_running=False), threading.Event(), []
    work.submit(go.wait)
    futures = [
        work.submit(lambda name=name: order.append(name), priority)  # type: ignore[misc]
        for name, priority in (("later", LATER), ("needed", NEEDED), ("needed too", NEEDED))
    ]
    go.set()
    for future in futures:
        future.result(timeout=10)
    assert order == ["needed", "needed too", "later"]


@pytest.mark.parametrize("number", range(len(OPERATIONS)))
def test_operations_are_those_of_numpy(number: int) -> None:
    with np.errstate(all="ignore"):
        OPERATIONS[number](np, operands(np))


class FakeCupy:
    """A module with CuPy's function that calls NVRTC."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def compile_using_nvrtc(self, source: str, options: Any = (), arch: Any = None, *args: Any, **_: Any) -> Any:
        self.texts.append(source)
        return b"own", None


def test_operations_are_compiled_by_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUANTO_CACHE", str(tmp_path))
    module, processes = FakeCupy(), CompilingProcesses(2)
    substitute = Substitute(module, processes, ARCHITECTURE)
    own, text, options = module.compile_using_nvrtc, kernel(1).text, ("--std=c++17", "-ftz=true")
    substitute.install()
    assert not substitute.called.is_set()
    with ThreadPoolExecutor(2) as pool:  # two threads request the same kernel
        futures = [pool.submit(module.compile_using_nvrtc, text, options, "90", "k.cu") for _ in range(2)]
        (one, mapping), (other, _) = (future.result(timeout=60) for future in futures)
    assert one == other and one.startswith(b"\x7fELF") and mapping is None and not module.texts
    assert substitute.called.is_set()
    bad = kernel(1, "undefined_function({});").text
    assert module.compile_using_nvrtc(bad, options, "90", "k.cu") == (b"own", None)
    assert module.compile_using_nvrtc(text, options, "80", "k.cu")[0] == b"own"  # another device
    assert module.compile_using_nvrtc(text, options, "90", "k.cu", ("k<int>",))[0] == b"own"
    assert module.compile_using_nvrtc(text, options, "90", "k.cu", None, None, False, True)[0] == b"own"
    assert module.texts == [bad, text, text, text]
    substitute.remove()
    assert module.compile_using_nvrtc == own and list(tmp_path.iterdir()) == []
    processes.close()
    assert module.compile_using_nvrtc(text, options, "90", "k.cu")[0] == b"own"


def test_processes_end_with_their_requests() -> None:
    """Each has pipes of its own, which no other keeps open."""
    one, other = helper.fork_helpers(2)
    job = {"path": None, "text": kernel(1).text, "arch": ARCHITECTURE, "options": []}
    first, second = one.submit(job), other.submit(job)
    assert first is not None and second is not None
    assert first.result(timeout=60) == second.result(timeout=60)
    one.close()
    wait_until(lambda: one.submit(job) is None)
    again = other.submit(job)
    assert again is not None and again.result(timeout=60) == first.result()
    other.close()
    wait_until(lambda: other.submit(job) is None)
    assert helper.fork_helpers(0) == []


def test_compiling_processes_do_not_import_numpy(tmp_path: Path) -> None:
    code = "import sys, cuanto.backends.cuda.helper; print('numpy' in sys.modules)"
    assert run_python(code, tmp_path).split() == ["False"]


def test_an_unknown_cupy_is_left_alone() -> None:
    module = SimpleNamespace()
    substitute = Substitute(module, CompilingProcesses(0), ARCHITECTURE)
    substitute.install()
    substitute.remove()
    assert vars(module) == {}


class FakeDriver:
    """A driver with one GPU of compute capability 9.0, or with none."""

    def __init__(self, devices: int) -> None:
        self._devices, self.contexts = devices, 0

    def cuInit(self, _: int) -> int:
        return 0

    def cuDeviceGet(self, _device: Any, number: int) -> int:
        return 0 if number < self._devices else 101

    def cuDevicePrimaryCtxRetain(self, _context: Any, _device: Any) -> int:
        self.contexts += 1
        return 0

    def cuDeviceGetAttribute(self, value: Any, attribute: int, _device: Any) -> int:
        value._obj.value = {start.MAJOR: 9, start.MINOR: 0}[attribute]
        return 0


@pytest.mark.parametrize(("devices", "expected"), [(1, "sm_90"), (0, "")])
def test_the_driver_names_the_architecture(monkeypatch: pytest.MonkeyPatch, devices: int, expected: str) -> None:
    driver, reported = FakeDriver(devices), []
    monkeypatch.setattr(ctypes, "CDLL", lambda _: driver)
    assert start.driver_architecture(reported.append) == expected
    assert reported == [expected] * devices and driver.contexts == devices


class FakeProcesses:
    """Processes that only know whether they were closed."""

    def __init__(self, _: int) -> None:
        self.closed = threading.Event()

    def close(self) -> None:
        self.closed.set()


@pytest.fixture
def beginning(queue: Compilers, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine with a GPU whose caches are empty; nothing has begun."""
    monkeypatch.setattr(ctypes, "CDLL", lambda _: FakeDriver(1))
    monkeypatch.setattr(start, "compilers_for", lambda _: SimpleNamespace(request=lambda _: None))
    monkeypatch.setattr(start, "CompilingProcesses", FakeProcesses)
    monkeypatch.setattr(start, "STARTED", threading.Event())
    monkeypatch.setattr(start, "UNUSED_SECONDS", 0.05)
    for function in (start.begin, start._processes):
        function.cache_clear()
    yield
    for function in (start.begin, start._processes):
        function.cache_clear()


@pytest.mark.parametrize("used", [False, True])
@pytest.mark.usefixtures("beginning")
def test_processes_that_no_calculation_uses_are_closed(used: bool) -> None:
    """For example because the input was refused; a later calculation starts others."""
    if used:
        start.STARTED.set()
    start.begin().join()
    first: Any = start._processes()
    assert first.closed.wait(0.3 if used else 10.0) is not used
    assert (start._processes() is first) is used


@pytest.mark.usefixtures("beginning")
def test_what_cannot_be_compiled_ahead_is_left_to_the_calculation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a traceback of the thread, which pytest would make an error."""

    def missing(_: str) -> Any:
        raise MissingDependencyError("NVRTC cannot be loaded")

    monkeypatch.setattr(start, "compilers_for", missing)
    start.begin().join()


def test_compiling_begins_before_methods_are_imported(tmp_path: Path) -> None:
    code = """
import sys, cuanto.api, cuanto.errors
def begin(name):
    print(name, "cuanto.methods" in sys.modules)
cuanto.api.begin_compiling = begin
try:
    cuanto.energy("missing.xyz", backend="cpu")
except cuanto.errors.InputError:
    print("refused", "cuanto.methods" in sys.modules)
"""
    assert run_python(code, tmp_path).split() == ["cpu", "False", "refused", "True"]


def test_no_driver_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", missing)
    assert start.driver_architecture() == ""
