"""The cache of compiled kernels: many processes, damaged files, killed compilers, folders that cannot be written."""

from __future__ import annotations

import os
import signal
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from cuanto import integrals
from cuanto.backends import cache, seal
from cuanto.backends.cpu import compiler
from cuanto.backends.cpu.backend import CpuBackend
from cuanto.backends.cpu.calls import native_text
from cuanto.errors import CompilerError, InputError
from cuanto.kernels.build import general_source, source_of
from cuanto.kernels.spec import KernelSpec, Shells
from oracles.integrals import overlap_matrix
from sample import sample
from scripted import (
    compiled_libraries,
    compiler_script,
    forget_compiler,
    run_python,
    some_basis,
    start_python,
    temporary_files,
)
from tolerances import INTEGRAL_REL

SMALL = source_of(KernelSpec("overlap", Shells((0,)), Shells((0,)), "os", "lane"))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    path = tmp_path / "kernels"
    path.mkdir()
    monkeypatch.setenv("CUANTO_CACHE", str(path))
    return path


@pytest.fixture
def choose_again() -> Iterator[None]:
    with forget_compiler():
        yield


# ------------------------------------------------------------------------------------------- many processes

TOGETHER = """
from scripted import some_basis
from cuanto import integrals
from oracles.integrals import overlap_matrix
from cuanto.backends.cpu.backend import CpuBackend
basis = some_basis(1)
print("ready", flush=True)
input()
S = integrals.overlap(basis, backend=CpuBackend(threads=1, schedule="table"))
print(abs(S - overlap_matrix(basis)).max())
"""


def test_processes_that_compile_the_same_kernel_at_once(folder: Path) -> None:
    processes = [start_python(TOGETHER, folder) for _ in range(3)]
    for process in processes:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    for process in processes:
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        assert float(out) < INTEGRAL_REL
    assert len(compiled_libraries(folder)) == 1 and not temporary_files(folder)


# -------------------------------------------------------------------------------------------- damaged files

DAMAGED = """
import sys
from scripted import some_basis
from cuanto import integrals
from cuanto.backends.cpu.backend import CpuBackend
from oracles.integrals import overlap_matrix
from cuanto.errors import CompilerError
basis, backend = some_basis(0), CpuBackend(threads=1, schedule="lane")
try:
    integrals.overlap(basis, backend=backend)
except CompilerError as error:
    print(error, file=sys.stderr)
    assert "removed" in str(error) and len(str(error).splitlines()) == 1
print(abs(integrals.overlap(basis, backend=backend) - overlap_matrix(basis)).max())
"""


@pytest.mark.parametrize(
    "kept", sample(["nothing", "garbage", "zeros", "a tenth", "half", "most", "all but a page"], 2)
)
def test_a_damaged_library_is_replaced(kept: str, folder: Path) -> None:
    """Immediately, or after a clear error; tested in a separate process, because the loader may crash."""
    library = compiler.compile_library(SMALL)
    good = library.read_bytes()
    part = {"a tenth": 0.1, "half": 0.5, "most": 0.75}.get(kept, 0.0)
    content = {"garbage": b"no library\n" * 1000, "zeros": bytes(len(good))}.get(kept, good[: int(part * len(good))])
    if kept == "all but a page":  # the length is right: only the digest reveals the damage
        content = good[:4096] + bytes(4096) + good[8192:]
    library.unlink()  # never change a file that this process may have mapped
    library.write_bytes(content)
    assert float(run_python(DAMAGED, folder)) < INTEGRAL_REL
    assert compiled_libraries(folder) == [library] and library.stat().st_size == len(good)


@pytest.mark.parametrize("kind", ["another library", "unsealed", "folder", "full folder", "pipe", "loop"])
def test_whatever_is_in_the_place_of_a_library_is_replaced(kind: str, folder: Path) -> None:
    """Nothing hangs, nothing foreign is loaded."""
    library = compiler.compile_library(SMALL)
    good = library.read_bytes()
    library.unlink()
    if kind == "another library":
        library.write_bytes(compiler.compile_library(general_source("table", "double")).read_bytes())
    elif kind == "unsealed":
        library.write_bytes(good[: -seal.LENGTH])
    elif kind == "pipe":
        os.mkfifo(library)
    elif kind == "loop":
        library.symlink_to(library)
    else:
        library.mkdir()
        if kind == "full folder":
            (library / "file").write_text("kept")
    assert not cache.complete(library) and cache.read(library) is None
    assert compiler.compile_library(SMALL) == library and cache.complete(library)
    assert library.is_file() and library.stat().st_size == len(good)


def test_a_kept_file_is_on_the_disk_before_it_has_its_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """File, name, folder: in this order."""
    steps: list[str] = []
    for name in ("fsync", "replace"):
        call = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *given, n=name, call=call: (steps.append(n), call(*given))[1])
    cache.write(folder / "tables.npz", b"content")
    assert steps == ["fsync", "replace", "fsync"] and cache.read(folder / "tables.npz") == b"content"


# ------------------------------------------------------------------------------------ interrupted compilers


@pytest.mark.usefixtures("choose_again")
@pytest.mark.parametrize("end", ["kill -9 $$", "kill -9 $PPID", "echo no space left >&2; exit 1"])
def test_a_killed_compiler_leaves_no_files(
    end: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = compiler_script(tmp_path / "dying", f'echo half > "$out"; {end}')
    monkeypatch.setenv("CUANTO_CXX", script)
    with pytest.raises(CompilerError, match=SMALL.entry):
        compiler.compile_library(SMALL)
    assert compiled_libraries(folder) == temporary_files(folder) == []


@pytest.mark.usefixtures("choose_again")
def test_a_compiler_that_makes_nothing_is_an_error(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUANTO_CXX", compiler_script(tmp_path / "idle", 'rm -f "$out"; exit 0'))
    with pytest.raises(CompilerError, match=SMALL.entry):
        compiler.compile_library(SMALL)
    assert compiled_libraries(folder) == temporary_files(folder) == []


@pytest.mark.usefixtures("choose_again")
@pytest.mark.parametrize("body", [":", 'echo "no library" > "$out"'])
def test_a_compiler_that_writes_no_library_is_an_error(
    body: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUANTO_CXX", compiler_script(tmp_path / "lazy", body))
    with pytest.raises(CompilerError, match=SMALL.entry):
        compiler.load_library(SMALL)
    assert temporary_files(folder) == []


def test_inside_another_program(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If `sys.executable` is not Python, this process adds the digest to the library itself."""
    monkeypatch.setattr("sys.executable", "/bin/false")
    assert cache.complete(compiler.compile_library(SMALL)) and temporary_files(folder) == []


@pytest.mark.usefixtures("choose_again")
def test_a_compiler_with_an_unclosed_quotation_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUANTO_CXX", '"unclosed')
    with pytest.raises(CompilerError, match=r"CUANTO_CXX is .*: No closing quotation; set it to a command such as g"):
        compiler.find_compiler()


def test_a_killed_group_of_compilers_leaves_no_final_file(folder: Path) -> None:
    source = general_source("table", "double")
    final = compiler.library_path(source)
    process, _, _ = compiler.start_compiler(native_text(source), compiler.FLAGS, final, low_priority=True)
    time.sleep(0.3)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert process.returncode != 0 and compiled_libraries(folder) == []
    S = integrals.overlap(basis := some_basis(1), backend=CpuBackend(threads=1, schedule="table"))
    np.testing.assert_allclose(S, overlap_matrix(basis), rtol=0, atol=INTEGRAL_REL)
    assert compiled_libraries(folder) == [final]


@pytest.mark.parametrize("step", ["pathlib.Path.write_bytes", "os.replace"])
def test_an_interrupted_write_keeps_the_old_file(step: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    final = folder / "kernel.cubin"
    cache.write(final, b"whole")
    with monkeypatch.context() as patch:
        patch.setattr(step, interrupted)
        with pytest.raises(KeyboardInterrupt):
            cache.write(final, b"another")
    assert cache.read(final) == b"whole" and not temporary_files(folder)
    cache.write(final, b"another")
    assert cache.read(final) == b"another" and compiled_libraries(folder) == [final] and not temporary_files(folder)


# ------------------------------------------------------------------------------------------- the folder


def test_the_folder_is_where_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUANTO_CACHE", str(tmp_path / "a" / "b"))
    assert cache.cache_folder() == tmp_path / "a" / "b" and (tmp_path / "a" / "b").is_dir()
    monkeypatch.delenv("CUANTO_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "c"))
    monkeypatch.setattr("sys.platform", "linux")
    assert cache.cache_folder() == tmp_path / "c" / "cuanto" / "kernels"


def impossible_folder(kind: str, tmp_path: Path) -> Path:
    """A folder in which nothing can be written."""
    if kind == "inside a file":
        (tmp_path / "file").write_text("")
        return tmp_path / "file" / "kernels"
    path = tmp_path / "fixed"
    path.mkdir()
    path.chmod(0o500)
    return Path("/proc/self") if os.access(path, os.W_OK) else path  # root can write everywhere else


ELSEWHERE = """
from scripted import some_basis
from cuanto import integrals
from cuanto.backends import cache, seal
from cuanto.backends.cpu.backend import CpuBackend
integrals.overlap(some_basis(0), backend=CpuBackend(threads=1, schedule="lane"))
print(cache.cache_folder())
"""


def replacement(kind: str, tmp_path: Path) -> Path:
    """The cache that a process takes instead of an impossible one."""
    (tmp_path / "temporary").mkdir(exist_ok=True)
    impossible = impossible_folder(kind, tmp_path)
    return Path(run_python(ELSEWHERE, impossible, TMPDIR=str(tmp_path / "temporary")).strip())


@pytest.mark.parametrize("kind", ["inside a file", "read-only"])
def test_a_folder_that_cannot_be_written_is_replaced(kind: str, tmp_path: Path) -> None:
    folder = replacement(kind, tmp_path)
    assert folder.parent == tmp_path / "temporary"
    assert len(compiled_libraries(folder)) == 1 and not temporary_files(folder)


def test_the_replacement_folder_is_private(tmp_path: Path) -> None:
    """Its content is executed, so an existing folder that others can write to is not used."""
    folder = replacement("inside a file", tmp_path)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    folder.chmod(0o777)
    another = replacement("inside a file", tmp_path)
    assert another != folder and stat.S_IMODE(another.stat().st_mode) == 0o700


@pytest.mark.parametrize("mode", [0o775, 0o757, 0o1777])
def test_a_folder_that_others_can_write_to_is_refused(mode: int, folder: Path) -> None:
    folder.chmod(mode)
    with pytest.raises(InputError, match=f"run `chmod go-w {folder}`, or set CUANTO_CACHE to a folder of your own"):
        compiler.compile_library(SMALL)
    folder.chmod(0o755)
    assert cache.cache_folder() == folder


def test_a_folder_of_another_user_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    monkeypatch.setattr(cache, "_trusted_owner", lambda status: False)
    with pytest.raises(InputError, match=r"belongs to user .*: set CUANTO_CACHE to a folder of your own"):
        cache.cache_folder()


@pytest.mark.parametrize(("owner", "trusted"), [(0, True), (1000, True), (1001, False)])
def test_root_and_the_user_are_trusted(owner: int, trusted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    assert cache._trusted_owner(os.stat_result((0o644, 1, 1, 1, owner, 0, 0, 0, 0, 0))) == trusted


def test_a_library_that_others_can_write_to_is_not_loaded(folder: Path) -> None:
    library = compiler.compile_library(SMALL)
    library.chmod(0o666)
    assert not cache.complete(library) and cache.read(library) is None
    assert compiler.compile_library(SMALL) == library
    assert cache.complete(library) and not library.stat().st_mode & 0o022


def test_a_generous_umask_makes_a_private_cache(tmp_path: Path) -> None:
    code = "import os; os.umask(0)\n" + ELSEWHERE
    folder = Path(run_python(code, tmp_path / "new").strip())
    assert folder == tmp_path / "new" and not folder.stat().st_mode & 0o022
    assert all(cache.complete(path) for path in compiled_libraries(folder))


def test_a_read_only_folder_is_used(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container image: existing kernels are loaded, new ones are written to another folder."""
    there = compiler.compile_library(SMALL)
    other = tmp_path / "temporary"
    other.mkdir(mode=0o700)
    monkeypatch.setattr(cache, "_writable", lambda folder: False)
    monkeypatch.setattr(cache, "_own_temporary_folder", lambda folder: other)
    assert compiler.library_path(SMALL) == there and compiler.compile_library(SMALL) == there
    there.chmod(0o666)
    assert compiler.compile_library(SMALL) == other / there.name
    folder.chmod(0o777)
    with pytest.raises(InputError, match="can be written by other users"):
        compiler.compile_library(SMALL)


def test_without_home_and_entry_in_the_password_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container with an arbitrary user id."""
    monkeypatch.setattr("pwd.getpwuid", lambda number: {}[number])
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for name in ("HOME", "CUANTO_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    cache._own_temporary_folder.cache_clear()
    try:
        assert cache.cache_folder().parent == tmp_path
        monkeypatch.setenv("CUANTO_CACHE", "~/kernels")
        assert cache.cache_folder().parent == tmp_path
    finally:
        cache._own_temporary_folder.cache_clear()


def test_clear_removes_everything(folder: Path) -> None:
    assert cache.clear() == (0, 0)
    compiler.compile_library(SMALL)
    cache.temporary(folder / "draft.so").write_bytes(b"x" * 100)
    size = sum(path.stat().st_size for path in folder.iterdir())
    assert len(cache.files()) == 2
    assert cache.clear() == (2, size)
    assert list(folder.iterdir()) == []
    assert compiler.compile_library(SMALL).exists()


def test_a_folder_that_vanishes_is_made_again(folder: Path) -> None:
    compiler.compile_library(SMALL).unlink()
    folder.rmdir()
    assert compiler.compile_library(SMALL).parent == folder


def test_clear_ignores_files_that_others_delete(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "one.so").write_bytes(b"xyz")
    monkeypatch.setattr(cache, "files", lambda: [folder / "gone.so", folder / "one.so"])
    assert cache.clear() == (1, 3)


# ----------------------------------------------------------------------------------------------- the key


def test_the_key_keeps_its_parts_apart() -> None:
    assert cache.key(["ab", "c"]) != cache.key(["a", "bc"]) != cache.key(["abc"])
    assert cache.key(["ab", "c"]) == cache.key(iter(["ab", "c"]))


def test_names_depend_on_all_that_determines_a_binary(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = {compiler.library_path(SMALL), compiler.library_path(general_source("table", "double"))}
    found = compiler.find_compiler()
    changes = {
        "FLAGS": (*compiler.FLAGS, "-O3"),
        "native_flag": lambda: "-march=other",
        "processor": lambda: "another one",
        "find_compiler": lambda: compiler.Compiler(found.command, "next version"),
    }
    for name, value in changes.items():
        with monkeypatch.context() as patch:
            patch.setattr(compiler, name, value)
            names.add(compiler.library_path(SMALL))
    assert len(names) == 2 + len(changes)
    assert compiler.library_path(SMALL) in names


def test_files_are_written_in_a_thread_and_before_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUANTO_CACHE", str(tmp_path))
    cache.write_later(tmp_path / "one", lambda: b"content")
    cache.flush()
    assert cache.read(tmp_path / "one") == b"content"
    code = """
import time
from cuanto.backends import cache
def slow():
    time.sleep(0.3)
    return b"late"
for k in range(3):
    cache.write_later(cache.file_path(f"late{k}"), slow)
"""
    run_python(code, tmp_path)
    assert [cache.read(tmp_path / f"late{k}") for k in range(3)] == [b"late"] * 3
