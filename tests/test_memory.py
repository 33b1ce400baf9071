"""The memory of a calculation: a smaller plan after an allocation failed, devices with little memory, warnings."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import cuanto
from cuanto import Molecule, memory
from cuanto.backends.base import Backend, get_backend
from cuanto.backends.cuda.backend import CudaBackend
from cuanto.backends.simt.arrays import MEMORY, limited_memory
from cuanto.errors import InputError
from cuanto.memory import MIB, MIN_SHARE, RETRY_FACTOR, Budget, retry_with_less_memory
from fitting_cases import DATA, Device, molecule

ENERGY = 1e-9
"""Tolerance of energies between memory plans, Hartree."""
HYDROGEN = Molecule(["H", "H"], [[0.0, 0.0, 0.0], [0.0, 0.0, 1.4]])


@pytest.fixture(autouse=True)
def basis_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUANTO_BASIS_PATH", str(DATA / "basis"))


def energy(backend: Backend, mol: Molecule = HYDROGEN) -> cuanto.Result:
    return cuanto.energy(mol, "rhf", "cc-pvdz", fitting="jk", auxbasis="cc-pvdz-jkfit", backend=backend)


@pytest.mark.parametrize(("name", "method", "basis"), [("water_01", "hf", "cc-pvdz"), ("benzene", "b3lyp", "def2-svp")])
def test_a_small_limit_holds_for_the_whole_process(name: str, method: str, basis: str, tmp_path: Path) -> None:
    """Peak of processes of their own, of which the first compiles kernels.

    Imports take 25 MiB, kernels 25 to 30 MiB, the grid of benzene 40 MiB.
    """
    script = (
        "import sys, cuanto\n"
        "found = cuanto.energy(sys.argv[1], *sys.argv[2:], fitting='none', backend='cpu', max_memory=120e6)\n"
        "peak = next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM'))\n"
        "print(found.converged, peak, *found.notes)\n"
    )
    command = [sys.executable, "-c", script, str(DATA / "geometries" / f"{name}.xyz"), method, basis]
    environment = os.environ | {"CUANTO_CACHE": str(tmp_path)}
    for _ in ("empty cache", "full cache"):
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        converged, peak, *notes = done.stdout.split()
        assert converged == "True" and 1024 * int(peak) < 120e6 and "WARNING:" not in notes


# ---------------------------------------------------------------------------------------------- retries


def test_shares_shrink_until_the_calculation_fits() -> None:
    shares: list[float] = []

    def calculate(share: float) -> str:
        shares.append(share)
        if len(shares) < 4:
            raise MemoryError("full")
        return "done"

    assert retry_with_less_memory(calculate, get_backend("cpu")) == "done"
    assert shares == pytest.approx([1.0, RETRY_FACTOR, RETRY_FACTOR**2, RETRY_FACTOR**3])


def test_the_last_error_is_raised() -> None:
    shares: list[float] = []

    def calculate(share: float) -> None:
        shares.append(share)
        raise MemoryError("full")

    with pytest.raises(MemoryError, match="full"):
        retry_with_less_memory(calculate, get_backend("cpu"))
    assert shares[-1] >= MIN_SHARE > RETRY_FACTOR * shares[-1]


def test_a_plan_that_is_too_small_says_what_failed_before() -> None:
    def calculate(share: float) -> None:
        if share == 1.0:
            raise MemoryError("no block of\n7 bytes")
        raise InputError("9 MiB are needed")

    with pytest.raises(InputError, match=r"^9 MiB are needed \(a plan with more memory failed: no block of 7 bytes\)$"):
        retry_with_less_memory(calculate, get_backend("cpu"))

    def refuse(share: float) -> None:
        raise InputError("9 MiB are needed")

    with pytest.raises(InputError, match=r"^9 MiB are needed$"):
        retry_with_less_memory(refuse, get_backend("cpu"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CUBLAS_STATUS_ALLOC_FAILED", MemoryError),
        ("cudaErrorMemoryAllocation: out of memory", MemoryError),
        ("CUDA_ERROR_INVALID_VALUE: invalid argument", RuntimeError),
    ],
)
def test_errors_of_libraries_that_mean_too_little_memory(text: str, expected: type[Exception]) -> None:
    with pytest.raises(expected, match=text), CudaBackend.__new__(CudaBackend).memory_errors():
        raise RuntimeError(text)


# ---------------------------------------------------------------------------------------------- small devices


def test_the_simulated_memory_counts_arrays_until_they_are_freed() -> None:
    device = Device()
    with limited_memory(1000):
        one = device.zeros((100,), np.float64)
        view = one[10:20]
        assert device.memory() == (200, 1000)
        with pytest.raises(MemoryError, match="400 bytes needed, 200 of 1000 free"):
            device.zeros((50,), np.float64)
        del one
        assert device.memory() == (200, 1000)
        del view
        assert device.memory() == (1000, 1000)
    assert MEMORY.free is None and device.memory()[0] > 1000


def test_twenty_devices_around_the_limit() -> None:
    """Each gives the same energy or, with less memory than the smallest plan needs, an error of one line."""
    device = Device()
    expected, finished = energy(device).energy, []
    for limit in np.geomspace(5e4, 2e6, 20).astype(int).tolist():
        with limited_memory(limit):
            try:
                result = energy(device)
            except InputError as error:
                assert "\n" not in str(error) and "MiB" in str(error)
                finished.append(False)
                continue
        finished.append(True)
        assert result.converged and result.energy == pytest.approx(expected, abs=ENERGY)
    # A device with more memory than one that finishes also finishes.
    assert finished == sorted(finished) and 3 <= sum(finished) < 20


class OverstatingDevice(Device):
    """A device that has less memory than it says, as if another process took some after the plan was made."""

    factor = 1.0

    def memory(self) -> tuple[int, int]:
        free, total = super().memory()
        return int(self.factor * free), int(self.factor * total)


def test_integrals_are_recomputed_on_a_small_device() -> None:
    """A small device, and one that reports more memory than it has, give the energy of a large one."""
    device, water = OverstatingDevice(), molecule("water_01")
    whole = energy(device, water)
    with limited_memory(1_200_000):
        small = energy(device, water)
    device.factor = 3.0
    with limited_memory(1_100_000):
        retried = energy(device, water)
    assert "in-core:" in whole.notes[0] and "direct:" in small.notes[0] and "direct:" in retried.notes[0]
    again = [any("because plans for more ran out of it" in note for note in one.notes) for one in (small, retried)]
    assert again == [False, True]
    for result in (small, retried):
        assert result.energy == pytest.approx(whole.energy, abs=ENERGY)


# ---------------------------------------------------------------------------------------------- limits


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="the C library keeps freed memory")
def test_memory_freed_by_earlier_calculations_does_not_count() -> None:
    budget = Budget(get_backend("cpu"), 10_000 * MIB)
    before = budget.available()
    arrays = [np.ones(2000) for _ in range(8 * MIB // 2000 * 16)]  # 128 MiB in pieces that are not mapped one by one
    assert budget.available() < before - 100 * MIB
    last = arrays.pop()
    arrays.clear()
    assert budget.available() > before - 20 * MIB
    assert last.size == 2000


def test_the_advice_about_a_limit_is_sufficient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_resident", lambda: 100 * MIB)
    backend = get_backend("cpu")
    with pytest.raises(InputError, match=r"50 MiB are needed, 36 MiB are left: raise max_memory to at least 214 MiB"):
        Budget(backend, 200 * MIB).reserve("arrays", 50 * MIB)
    Budget(backend, 214 * MIB).reserve("arrays", 50 * MIB)
    monkeypatch.setattr(type(backend), "memory", lambda self: (40 * MIB, 40 * MIB))
    with pytest.raises(InputError, match=r"50 MiB are needed, 36 MiB are left: use a smaller basis"):
        Budget(backend, 214 * MIB).reserve("arrays", 50 * MIB)


# ---------------------------------------------------------------------------------------------- warnings


def test_a_limit_that_is_exceeded_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    peak, resident = [300 * MIB], [100 * MIB]
    monkeypatch.setattr(memory, "_peak", lambda: peak[0])
    monkeypatch.setattr(memory, "_resident", lambda: resident[0])
    budget = Budget(get_backend("cpu"), 200 * MIB)
    assert not budget.warnings()  # the peak was before the calculation
    resident[0] = 210 * MIB
    assert "took 210 MiB, more than max_memory (200 MiB)" in budget.warnings()[0]
    peak[0] = 310 * MIB
    assert "took 310 MiB" in budget.warnings()[0]
    assert not Budget(get_backend("cpu")).warnings()
    assert not Budget(Device(), 200 * MIB).warnings()


def test_the_peak_of_a_calculation_is_compared_with_the_limit() -> None:
    result = cuanto.energy(HYDROGEN, "pbe", "cc-pvdz", fitting="none", backend="cpu", grid="coarse", max_memory=10e6)
    assert any(note.startswith("WARNING: the process took") for note in result.notes)
