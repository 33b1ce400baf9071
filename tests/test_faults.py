"""Failing machines and malicious names: every case ends with a one-line message or a correct result.

Killed compilers, damaged libraries and read-only caches are in test_cache, missing compilers in test_compilers, killed
calculations in test_checkpoint, killed runs of many molecules in test_batch, paths of job files in test_run.
"""

from __future__ import annotations

import errno
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import cuanto
from cuanto.backends import cache, programs
from cuanto.backends.base import get_backend
from cuanto.backends.cpu import compiler
from cuanto.backends.cpu.backend import CpuBackend
from cuanto.backends.cuda import compilers
from cuanto.backends.cuda.backend import CudaBackend
from cuanto.basis import library
from cuanto.batch import energies
from cuanto.batch.table import Table
from cuanto.cli.main import explain, run
from cuanto.errors import CompilerError, CuantoError, InputError
from cuanto.journal import JsonLines
from cuanto.kernels.build import source_of
from cuanto.kernels.spec import KernelSpec, Shells
from cuanto.kernels.text import Source
from cuanto.scf.checkpoint import Checkpoint, read_checkpoint
from paths import ROOT
from scripted import compiled_libraries, temporary_files

SMALL = source_of(KernelSpec("overlap", Shells((0,)), Shells((0,)), "os", "lane"))
H2 = "2\n\nH 0 0 0\nH 0 0 0.74\n"
CALL = ["-b", "sto-3g", "--fitting", "none", "--backend", "cpu"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of kernels."""
    path = tmp_path / "kernels"
    path.mkdir()
    monkeypatch.setenv("CUANTO_CACHE", str(path))
    return path


@pytest.fixture
def molecule() -> cuanto.Molecule:
    return cuanto.Molecule.from_string(H2)


def refusing(number: int) -> Callable[..., Any]:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    return refuse


def run_command(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as leaving:
        run(arguments)
    out, err = capsys.readouterr()
    assert isinstance(leaving.value.code, int | None)
    return leaving.value.code or 0, out, err


# --------------------------------------------------------------------------------------- full and read-only disks


@pytest.mark.parametrize("step", ["pathlib.Path.write_text", "tempfile.mkstemp"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EDQUOT])
def test_no_room_for_a_kernel(step: str, number: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.cache_folder()
    with monkeypatch.context() as patch:
        patch.setattr(step, refusing(number))
        with pytest.raises(CompilerError, match="CUANTO_CACHE") as caught:
            compiler.compile_library(SMALL)
    assert os.strerror(number) in str(caught.value) and "\n" not in str(caught.value)
    assert temporary_files(folder) == compiled_libraries(folder) == []


@pytest.mark.parametrize("step", ["pathlib.Path.write_bytes", "os.replace", "tempfile.mkstemp"])
def test_a_full_disk_does_not_stop_tables(step: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "WORTH_KEEPING", 0)
    arguments = ("coulomb", Shells((1, 0)), Shells((1,)), "os", True)
    make = programs.class_tables.__wrapped__
    with monkeypatch.context() as patch:
        patch.setattr(step, refusing(errno.ENOSPC))
        result = make(*arguments)
        cache.flush()
    assert not list(folder.iterdir())
    for damage in (None, b"", b"no archive", 0.3, 0.9):
        again = make(*arguments)  # made again if the stored one is damaged
        cache.flush()
        (path,) = folder.glob("*.npz")
        for one, other in zip(result.programs, again.programs, strict=True):
            np.testing.assert_array_equal(one.table, other.table)
        whole = path.read_bytes()
        if damage is not None:
            path.write_bytes(damage if isinstance(damage, bytes) else whole[: int(damage * len(whole))])


LIMITED = """
import resource, sys
from cuanto.cli.main import run
resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))
run(sys.argv[1:])
"""


def test_results_on_a_nearly_full_disk(tmp_path: Path) -> None:
    """The operating system lets no file grow beyond 500 bytes."""
    (tmp_path / "h2.xyz").write_text(H2)
    (tmp_path / "h2.json").write_text("what was there")
    command = [sys.executable, "-c", LIMITED, "energy", "h2.xyz", *CALL, "--json", "h2.json"]
    get_backend("cpu")  # compile the kernels before files are limited
    cuanto.energy(cuanto.Molecule.from_string(H2), "hf", "sto-3g", fitting="none", backend="cpu")
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr == "cuanto: cannot write h2.json: File too large\n"
    assert (tmp_path / "h2.json").read_text() == "what was there"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["h2.json", "h2.xyz"]


def test_a_journal_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, molecule: cuanto.Molecule) -> None:
    out, options = tmp_path / "a.csv", {"fitting": "none", "backend": "cpu", "workers": 0}
    others = [molecule, cuanto.Molecule(["H", "H"], [[0, 0, 0], [0, 0, 1.5]])]
    write, calls = os.write, []

    def nearly_full(descriptor: int, data: bytes) -> int:
        calls.append(data)
        if len(calls) > 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, data if len(calls) == 1 else data[: len(data) // 2])

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", nearly_full)
        with pytest.raises(InputError, match="No space left"):
            energies(others, "hf", "sto-3g", out=out, **options)
    journal = Table(out).journal
    assert not out.exists() and len(list(JsonLines(journal).read())) == 1
    assert not journal.read_bytes().endswith(b"\n")  # half a line, which is dropped
    assert [row.known for row in energies(others, "hf", "sto-3g", out=out, **options)] == [True, False]


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_a_table_on_a_full_disk(
    ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, molecule: cuanto.Molecule
) -> None:
    out, options = tmp_path / f"a.{ending}", {"fitting": "none", "backend": "cpu", "workers": 0}
    out.write_text("an earlier one")
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", refusing(errno.ENOSPC))
        with pytest.raises(InputError, match=r"cannot write .*No space left"):
            energies([molecule], "hf", "sto-3g", out=out, **options)
    assert out.read_text() == "an earlier one"
    assert sorted(path.name for path in tmp_path.iterdir()) == [out.name, f"{out.name}.journal"]
    assert energies([molecule], "hf", "sto-3g", out=out, **options)[0].known
    assert out.stat().st_size > 100


def test_unwritable_output_is_not_an_internal_error() -> None:
    line, status = explain(OSError(errno.ENOSPC, "No space left on device"))
    assert (line, status) == ("cannot write the output: No space left on device", 2)
    assert "internal error" in explain(OSError(errno.ENOENT, "No such file or directory", "x"))[0]


# ------------------------------------------------------------------------------------------------ damaged files


def test_damaged_checkpoints(tmp_path: Path, molecule: cuanto.Molecule, capsys: pytest.CaptureFixture[str]) -> None:
    """The HDF5 library crashes on some of these files."""
    path, basis = tmp_path / "a.h5", cuanto.Basis("sto-3g", molecule)
    keep = Checkpoint(path, molecule, basis, "rhf", get_backend("cpu"))
    cuanto.energy(molecule, "rhf", basis, fitting="none", backend="cpu", on_iteration=keep)
    good, rng = path.read_bytes(), random.Random(4)
    assert read_checkpoint(path).converged
    for number in range(60):
        damaged = bytearray(good)
        if number < 20:
            del damaged[rng.randrange(len(good)) :]
        elif number < 40:
            damaged[rng.randrange(len(good))] ^= 1 << rng.randrange(8)
        else:
            start = rng.randrange(len(good))
            damaged[start : start + 512] = bytes(len(damaged[start : start + 512]))
        if damaged == good:
            continue
        path.write_bytes(damaged)
        with pytest.raises(InputError) as caught:
            read_checkpoint(path)
        assert "\n" not in str(caught.value)
    (tmp_path / "h2.xyz").write_text(H2)
    status, _, err = run_command(["energy", str(tmp_path / "h2.xyz"), *CALL, "--restart", str(path)], capsys)
    assert status == 2 and err.count("\n") == 1 and "damaged" in err


class FakeDriver:
    """A stand-in for CuPy that loads kernels: binaries that begin with ELF are accepted."""

    class CUDADriverError(RuntimeError):
        """Error of the driver."""

    loaded: list[bytes] = []  # noqa: RUF012

    class Module:
        """Module of kernels."""

        def load(self, binary: bytes) -> None:
            if not binary.startswith(b"\x7fELF"):
                raise FakeDriver.CUDADriverError("CUDA_ERROR_INVALID_IMAGE")
            FakeDriver.loaded.append(binary)

        def get_function(self, name: str) -> str:
            return name


def test_a_damaged_kernel_of_the_gpu_is_compiled_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    backend, path = CudaBackend.__new__(CudaBackend), folder / "kernel.cubin"
    driver = SimpleNamespace(CUDADriverError=FakeDriver.CUDADriverError)
    backend.xp = SimpleNamespace(cuda=SimpleNamespace(function=FakeDriver, driver=driver))
    backend._functions, backend._compilers = {}, compilers.Compilers("sm_90")
    monkeypatch.setattr(compilers.Compilers, "path", lambda *_: path)
    monkeypatch.setattr(compilers, "compile_nvrtc", lambda *_: (b"\x7fELF good", ""))
    cache.write(path, b"garbage")  # complete, but of another architecture
    assert backend._function(Source("", "entry", "cuda", ())) == "entry"
    assert FakeDriver.loaded == [b"\x7fELF good"] and cache.read(path) == b"\x7fELF good"


# ---------------------------------------------------------------------------------------------- exhausted devices


class OutOfMemoryError(MemoryError):
    """Like CuPy's, a subclass of MemoryError."""


class Exhausted(CpuBackend):
    """A device that has no memory left after a while."""

    left = 0

    def _take(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise OutOfMemoryError("Out of memory allocating 1,024 bytes (allocated so far: 80 GB)")

    def zeros(self, shape: tuple[int, ...], dtype: Any) -> Any:
        self._take()
        return super().zeros(shape, dtype)

    def to_device(self, array: Any) -> Any:
        self._take()
        return super().to_device(array)


def test_an_exhausted_device_gives_a_one_line_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], molecule: cuanto.Molecule
) -> None:
    (tmp_path / "h2.xyz").write_text(H2)
    device = Exhausted()
    monkeypatch.setattr("cuanto.integrals.engine.get_backend", lambda name: device)
    monkeypatch.chdir(tmp_path)
    for left in (0, 1, 2, 4, 8):
        device.left = left
        status, _, err = run_command(["energy", "h2.xyz", "-b", "sto-3g", "--json", "a.json"], capsys)
        assert status == 2 and err.count("\n") == 1, err
        assert "not enough memory" in err and "80 GB" in err and "--backend cpu" in err
        assert [path.name for path in tmp_path.iterdir()] == ["h2.xyz"]
    device.left = 3
    rows = energies([molecule, molecule], "hf", "sto-3g", workers=0, backend=device)
    assert rows[0].error.startswith("not enough memory") and not rows[0].converged
    device.left = 10**9  # the same backend works once memory is available again
    status, out, _ = run_command(["energy", "h2.xyz", "-b", "sto-3g", "-q"], capsys)
    assert status == 0 and "Hartree" in out


# ------------------------------------------------------------------------------------------- malicious names

MALICIOUS = ["; touch harmed", "$(touch harmed)", "`touch harmed`", "a\nb", "| touch harmed", "' \" \\", "-rf", "%s{0}"]


@pytest.mark.parametrize("name", MALICIOUS)
def test_names_of_files_are_only_names(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(f"{name}.xyz").write_text(H2)
    status, _, err = run_command(["energy", *CALL, "-q", "--json", "{name}.json", "--", f"./{name}.xyz"], capsys)
    assert status == 0, err
    result = {path.name for path in tmp_path.iterdir()} - {f"{name}.xyz"}
    assert len(result) == 1 and all(one.isprintable() and one.endswith(".json") for one in result)
    status, _, err = run_command(["energy", *CALL, "--", f"./{name}/none.xyz"], capsys)
    assert status == 2 and err.count("\n") == 1


@pytest.mark.parametrize("name", ["../../x", "../secret", "/etc/passwd", "x/../../secret", "a\0b", *MALICIOUS])
def test_names_of_basis_sets_are_only_names(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, molecule: cuanto.Molecule
) -> None:
    """No file outside the folders of basis sets is read, unless its own name is given."""
    (tmp_path / "sets" / "inner").mkdir(parents=True)
    for path in (tmp_path / "secret.nw", tmp_path / "x.nw", tmp_path / "sets" / "x.nw"):
        path.write_text("H S\n 1.0 1.0\n")
    monkeypatch.setenv("CUANTO_BASIS_PATH", str(tmp_path / "sets" / "inner"))
    with pytest.raises(InputError) as caught:
        cuanto.Basis(name, molecule)
    assert "\n" not in str(caught.value)
    assert library._shipped(f"../{name}") == {}


def test_names_of_caches_are_only_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "a b; touch harmed $(touch harmed) '\" &"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CUANTO_CACHE", str(folder))
    library = compiler.compile_library(SMALL)
    assert library.parent == folder and [path.name for path in tmp_path.iterdir()] == [folder.name]
    # Kernels of earlier tests may still be compiled in the background.
    assert not [path for path in temporary_files(folder) if library.stem in path.name]


FORBIDDEN = (
    r"\bpickle\b|\bmarshal\b|\bshelve\b|allow_pickle|(?<![.\w])(eval|exec)\(|shell=True|os\.system|os\.popen|yaml"
)


def test_nothing_that_is_read_can_be_executed() -> None:
    """External data are never unpickled or passed to a shell."""
    for path in sorted((ROOT / "src").rglob("*.py")):
        found = [line.strip() for line in path.read_text().splitlines() if re.search(FORBIDDEN, line)]
        assert not found, f"{path}: {found}"


def test_arrays_with_objects_are_refused(tmp_path: Path) -> None:
    """NumPy stores arrays of objects as pickles."""
    from cuanto.atomic.guess import SavedSpinors

    np.savez(tmp_path / "a.npz", relativistic=np.array([print], dtype=object), exponents_0=np.array([1.0]))
    with pytest.raises(CuantoError, match="does not contain the spinors"):
        SavedSpinors.load(tmp_path / "a.npz")
