"""Shared set-up: one linear-algebra thread per worker, scheduling, hypothesis without deadlines, tests skipped without
a GPU."""

from __future__ import annotations

import gc
import os
import signal
import threading
from typing import Any

if "PYTEST_XDIST_WORKER" in os.environ:  # before NumPy is imported: workers must not compete for the cores
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(variable, "1")

# PySCF closes its HDF5 files and opens them again. A process that another thread starts in between keeps the lock.
os.environ.setdefault("HDF5_USE_FILE_LOCKING", "FALSE")

import pytest
from hypothesis import settings

from paths import ROOT

settings.register_profile("cuanto", deadline=None, print_blob=True)
settings.load_profile("cuanto")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN and threading.current_thread() is threading.main_thread():
    # Shells ignore SIGINT in background jobs; processes that tests interrupt would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Each worker has a stretch of the tests, and takes from the end of another's when it is done.

    Data shared by the tests of a file (references, compiled kernels, tables) are then made once, and no worker is idle
    at the end. A `--dist` given on the command line is respected.
    """
    if config.getoption("dist") != "load":
        return None
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log)


def why_no_gpu() -> str | None:
    try:
        import cupy
    except ImportError as error:
        return f"CuPy cannot be imported: {error}"
    try:
        cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return f"no CUDA device: {error}"
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    on_gpu = [item for item in items if item.get_closest_marker("gpu")]
    reason = why_no_gpu() if on_gpu else None
    if reason:
        for item in on_gpu:
            item.add_marker(pytest.mark.skip(reason=reason))


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """After each file, exempt what it leaves in caches (formulas of kernels, references) from garbage collection."""
    if nextitem is None or nextitem.path != item.path:
        gc.collect()
        gc.freeze()


@pytest.fixture
def benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules of benchmarks/ can be imported; the path of basis sets that they set is theirs alone."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    folders = (ROOT / "tests" / "data" / "basis", ROOT / "benchmarks" / "data" / "basis")
    monkeypatch.setenv("CUANTO_BASIS_PATH", os.pathsep.join(map(str, folders)))
