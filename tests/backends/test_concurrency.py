"""Integrals computed from several threads and forked processes, and after an interrupt."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import cuanto
from cuanto.backends import texts
from cuanto.backends.base import Job
from cuanto.backends.cpu.backend import CpuBackend
from cuanto.integrals.engine import Engine


@pytest.fixture(scope="module")
def water() -> tuple[cuanto.Molecule, cuanto.Basis]:
    molecule = cuanto.Molecule.from_string("3\n\nO 0 0 0\nH 0 0.76 0.59\nH 0 -0.76 0.59\n")
    return molecule, cuanto.Basis("sto-3g", molecule)


def test_threads_do_not_take_each_others_work(water: tuple[cuanto.Molecule, cuanto.Basis]) -> None:
    molecule, basis = water
    backend = CpuBackend(threads=2)
    aux = cuanto.Basis("def2-universal-jkfit", molecule)
    expected = cuanto.integrals.eri_3c(basis, aux, backend=backend)
    stop = threading.Event()

    def noise() -> None:
        while not stop.is_set():
            cuanto.integrals.overlap(basis, backend=backend)

    others = [threading.Thread(target=noise) for _ in range(3)]
    for thread in others:
        thread.start()
    try:
        for _ in range(20):
            # Unfinished results would be zeros.
            np.testing.assert_array_equal(cuanto.integrals.eri_3c(basis, aux, backend=backend), expected)
    finally:
        stop.set()
        for thread in others:
            thread.join()


def test_first_runs_of_several_processes_share_an_empty_cache(tmp_path: Path) -> None:
    """All compile at once without waiting; results are equal, and the cached libraries can be loaded."""
    (tmp_path / "h2.xyz").write_text("2\n\nH 0 0 0\nH 0 0 0.74\n")
    cache = tmp_path / "cache"
    call = [sys.executable, "-m", "cuanto", "energy", "h2.xyz", "-m", "pm6", "--backend", "cpu", "-q"]
    env = {**os.environ, "CUANTO_CACHE": str(cache), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    several = [
        subprocess.Popen(call, cwd=tmp_path, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(4)
    ]
    answers = {(*one.communicate(timeout=120), one.returncode) for one in several}
    assert answers == {("h2 -1.033138240 Hartree\n", "", 0)}
    files = [path for path in cache.rglob("*") if path.is_file()]
    assert files and all(re.fullmatch(r"[0-9a-f]{40}\.so", path.name) for path in files), files
    for path in files:
        ctypes.CDLL(str(path))


def _trace(basis: cuanto.Basis) -> float:
    return float(np.trace(cuanto.integrals.overlap(basis, backend="cpu")))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own(water: tuple[cuanto.Molecule, cuanto.Basis]) -> None:
    _, basis = water
    here = _trace(basis)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply_async(_trace, (basis,)).get(timeout=60) == here


def test_an_error_stops_all_threads(
    water: tuple[cuanto.Molecule, cuanto.Basis], monkeypatch: pytest.MonkeyPatch
) -> None:
    molecule, basis = water
    backend = CpuBackend(threads=2)
    good = cuanto.integrals.nuclear(basis, molecule, backend=backend)

    def broken(*_: object) -> Job:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Engine, "job", broken)
        with pytest.raises(KeyboardInterrupt):
            cuanto.integrals.nuclear(basis, molecule, backend=backend)
    np.testing.assert_array_equal(cuanto.integrals.nuclear(basis, molecule, backend=backend), good)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_texts_are_generated_in_a_forked_process() -> None:
    """The thread that generates them does not exist there: it is started again."""
    texts._background.submit(int).result(timeout=20)  # starts the thread
    child = os.fork()
    if not child:
        done = texts._background.submit(lambda: 7)
        os._exit(0 if done.result(timeout=20) == 7 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
