"""Simulated machines: other processors and systems, GPUs, NVRTC elsewhere or missing, missing packages."""

from __future__ import annotations

import builtins
import io
import platform
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from ctypes.util import find_library
from functools import partial
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from cuanto import workers
from cuanto.backends import blas, cache
from cuanto.backends.base import get_backend
from cuanto.backends.cpu import compiler
from cuanto.backends.cpu.backend import cores
from cuanto.backends.cuda import nvrtc
from cuanto.backends.cuda.backend import CudaBackend, why_no_gpu
from cuanto.backends.host import main_memory
from cuanto.cli import doctor, optimisation
from cuanto.errors import CompilerError, InputError, MissingDependencyError
from cuanto.processes import ProcessRunner

# ------------------------------------------------------------------------------------------- processors, systems


@pytest.mark.parametrize(("machine", "flag"), [("x86_64", "-march=native"), ("arm64", "-mcpu=native")])
def test_flag_of_the_machines_own_instructions(machine: str, flag: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: machine)
    assert compiler.native_flag.__wrapped__() == flag


def test_processors_differ_also_where_nothing_lists_their_features(monkeypatch: pytest.MonkeyPatch) -> None:
    """A library with one machine's instructions must not be taken from a shared cache by another one."""

    def nothing(path: Path) -> str:
        raise FileNotFoundError(path)

    monkeypatch.setattr(Path, "read_text", nothing)
    seen = set()
    for name in ("Apple M3", "Apple M4"):
        monkeypatch.setattr(platform, "processor", lambda name=name: name)
        seen.add(compiler.processor.__wrapped__())
    assert len(seen) == 2 and all(platform.machine() in text for text in seen)


def test_cache_of_a_mac(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUANTO_CACHE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "darwin")
    folder = cache.cache_folder()
    assert folder == tmp_path / "Library" / "Caches" / "cuanto" / "kernels" and folder.is_dir()


@pytest.mark.parametrize("content", [None, "MemTotal: 1 kB\n"])
def test_all_memory_counts_as_free_where_the_system_does_not_say(
    content: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(path: str) -> io.StringIO:
        if content is None:
            raise FileNotFoundError(path)
        return io.StringIO(content)

    monkeypatch.setattr(builtins, "open", read)
    free, total = main_memory()
    monkeypatch.undo()
    assert free == total >= main_memory()[0] > 0


@pytest.mark.parametrize("given", ["0", "-2", "two", "1.5"])
def test_a_wrong_number_of_threads_is_refused(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUANTO_THREADS", given)
    with pytest.raises(InputError, match=f"CUANTO_THREADS={given}"):
        cores()


def test_linear_algebra_that_is_not_openblas_is_left_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither a library without its functions nor one that does not load is an error."""
    (tmp_path / "no_library.so").write_text("text")
    for library in (find_library("c"), str(tmp_path / "no_library.so")):
        monkeypatch.setitem(sys.modules, "other_blas", SimpleNamespace(__file__=library))
        monkeypatch.setattr(blas, "BLAS_MODULES", ("other_blas",))
        blas._control.cache_clear()
        assert blas._controls() == []
        with blas.one_thread:
            pass
    blas._control.cache_clear()


def test_linear_algebra_loaded_during_a_calculation_gets_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """SciPy brings a BLAS of its own, whose threads would change the last digits of the first calculation."""
    counts = {"numpy": 4, "scipy": 8}
    control = {name: (partial(counts.get, name), partial(counts.__setitem__, name)) for name in counts}
    loaded = [control["numpy"]]
    monkeypatch.setattr(blas, "_controls", lambda: loaded)
    with blas.one_thread:
        loaded.append(control["scipy"])
        assert counts == {"numpy": 1, "scipy": 8}
        assert blas.scipy_linalg().__name__ == "scipy.linalg" and counts == {"numpy": 1, "scipy": 1}
        blas.scipy_linalg()
    assert counts == {"numpy": 4, "scipy": 8}


# ---------------------------------------------------------------------------------------------------------- NVRTC


@pytest.fixture
def fresh_nvrtc() -> Iterator[None]:
    """The library is looked for inside, and again afterwards."""
    nvrtc.nvrtc_version()  # load the real library first: it goes on looking for its other files beside itself
    nvrtc._nvrtc.cache_clear()
    yield
    nvrtc._nvrtc.cache_clear()


@pytest.mark.usefixtures("fresh_nvrtc")
def test_nvrtc_of_a_toolkit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest is tried first; files that do not load are skipped."""
    wheel = next(nvrtc._candidates(), None)
    if wheel is None:
        pytest.skip("NVRTC is not installed")
    folder = tmp_path / "lib64"
    folder.mkdir()
    (folder / "libnvrtc.so.12").symlink_to(wheel)
    (folder / "libnvrtc.so.13").write_text("damaged")
    (folder / "libnvrtc-builtins.so.13").write_text("another library")
    monkeypatch.setattr(nvrtc, "find_spec", lambda name: None)
    monkeypatch.setattr(nvrtc, "find_library", lambda name: None)
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.setenv("CUDA_PATH", str(tmp_path))
    found = [name for name in nvrtc._candidates() if name.startswith(str(tmp_path))]
    assert found == [str(folder / "libnvrtc.so.13"), str(folder / "libnvrtc.so.12")]
    assert nvrtc._nvrtc()._name == found[1] and nvrtc.nvrtc_version() >= (12, 0)


@pytest.mark.usefixtures("fresh_nvrtc")
def test_nvrtc_of_the_loader_is_the_last_resort(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvrtc, "_folders", lambda: iter([Path("/no/such/folder")]))
    monkeypatch.setattr(nvrtc, "find_library", lambda name: f"lib{name}.so.99")
    assert list(nvrtc._candidates()) == ["libnvrtc.so.99"]
    with pytest.raises(MissingDependencyError, match="pip install nvidia-cuda-nvrtc") as caught:
        nvrtc.nvrtc_version()
    assert "\n" not in str(caught.value)


def test_a_call_that_fails_is_named_with_its_reason() -> None:
    with pytest.raises(CompilerError, match="nvrtcVersion failed: NVRTC_ERROR_INVALID_INPUT"):
        nvrtc._check(3, "nvrtcVersion")


# ------------------------------------------------------------------------------------------------------------ GPUs


def cupy(devices: int, zeros: Callable[[int], Any] | None = None) -> SimpleNamespace:
    """A stand-in for CuPy with what a diagnosis needs."""
    properties = {"name": b"NVIDIA H200", "totalGlobalMem": 140 * 2**30, "major": 9, "minor": 0}
    runtime = SimpleNamespace(
        getDeviceCount=lambda: devices,
        getDeviceProperties=lambda device: properties,
        driverGetVersion=lambda: 13010,
        CUDARuntimeError=RuntimeError,
    )
    plain = SimpleNamespace(get=lambda: None)
    return SimpleNamespace(
        __version__="14.1", cuda=SimpleNamespace(runtime=runtime), zeros=zeros or (lambda count: plain)
    )


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Any], None]]:
    def put(module: Any) -> None:
        monkeypatch.setitem(sys.modules, "cupy", module)
        why_no_gpu.cache_clear()

    yield put
    why_no_gpu.cache_clear()


def test_doctor_describes_the_gpu(install: Callable[[Any], None]) -> None:
    install(cupy(1))
    text = "NVIDIA H200, 140 GiB, compute capability 9.0, CUDA driver 13.1, CuPy 14.1"
    assert doctor.gpu() == (text, True)
    install(cupy(4))
    assert doctor.gpu() == (text + "; 4 devices", True)


def test_a_gpu_that_refuses_to_work_is_not_found(install: Callable[[Any], None]) -> None:
    def taken(count: int) -> None:
        raise RuntimeError("cudaErrorDevicesUnavailable:\nbusy")

    install(cupy(1, taken))
    assert doctor.run_probe(doctor.gpu) == ("RuntimeError: cudaErrorDevicesUnavailable: busy", False)


def test_cupy_without_a_device_is_no_gpu(install: Callable[[Any], None]) -> None:
    install(cupy(0))
    assert why_no_gpu() == "no NVIDIA GPU on this machine"
    with pytest.raises(MissingDependencyError, match=r"no NVIDIA GPU on this machine; backend='cpu' works"):
        CudaBackend()


def test_a_folder_named_cupy_is_not_cupy(tmp_path: Path, install: Callable[[Any], None]) -> None:
    """Beside a script it is a package, without or with a file of its own."""
    folder, package = ModuleType("cupy"), ModuleType("cupy")
    folder.__path__, package.__file__ = [str(tmp_path)], str(tmp_path)
    for module in (folder, package):
        install(module)
        assert why_no_gpu() == f"another module named cupy, {tmp_path}, is found before CuPy: rename it"


def test_backends_by_name() -> None:
    assert get_backend("cpu") is get_backend("cpu")
    with pytest.raises(InputError, match="unknown backend 'gpu': choose auto, cpu or cuda"):
        get_backend("gpu")


# ----------------------------------------------------------------------------------------------- missing packages


def test_doctor_explains_missing_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(package: str) -> str:
        if package != "h5py":
            raise PackageNotFoundError(package)
        return "3.10"

    monkeypatch.setattr(doctor, "version", version)
    text = doctor.extras()[0]
    assert text.startswith("h5py 3.10; not installed: ") and "rdkit (SMILES)" in text


def test_a_basis_search_without_dask(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a scheduler needs Dask."""
    monkeypatch.setitem(sys.modules, "distributed", None)
    with ExitStack() as stack:
        assert isinstance(optimisation.make_runner(stack, None, 0), workers.SerialRunner)
        for count in (None, 4):
            assert isinstance(optimisation.make_runner(stack, None, count), ProcessRunner)
        with pytest.raises(MissingDependencyError, match="needs Dask"):
            optimisation.make_runner(stack, "tcp://node:8786", None)
        with pytest.raises(InputError, match="leave out --workers"):
            optimisation.make_runner(stack, "tcp://node:8786", 4)
