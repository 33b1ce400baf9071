"""Choice of the C++ compiler, the error if there is none, and zig as a fallback."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cuanto.backends import cache
from cuanto.backends.cpu import compiler
from cuanto.backends.cpu.backend import CpuBackend
from cuanto.backends.simt.kernel import compile_simt
from cuanto.cli.main import run
from cuanto.errors import CompilerError
from cuanto.kernels.text import Source
from scripted import (
    REAL,
    compiled_libraries,
    compiler_script,
    forget_compiler,
    run_python,
    temporary_files,
    wait_until,
)
from tolerances import INTEGRAL_REL

BROKEN = Source('extern "C" void broken() {\n    a_line_that_is_wrong;\n}\n', "broken", "cpu", ())
SOUND = Source('extern "C" void sound() {}\n', "sound", "cpu", ())
WATER = "\n".join(["3", "", "O 0.0 0.0 0.1173", "H 0.0 0.7572 -0.4692", "H 0.0 -0.7572 -0.4692", ""])


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty cache; every test looks for compilers again."""
    path = tmp_path / "kernels"
    path.mkdir()
    monkeypatch.setenv("CUANTO_CACHE", str(path))
    monkeypatch.delenv("CUANTO_CXX", raising=False)
    with forget_compiler():
        yield path


@pytest.fixture
def bare_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with the commands every system has, and no compiler."""
    path = tmp_path / "bin"
    path.mkdir()
    for name in ("mv", "rm", "nice", "grep"):
        found = shutil.which(name)
        assert found is not None
        (path / name).symlink_to(found)
    monkeypatch.setenv("PATH", str(path))
    return path


@pytest.fixture
def no_zig(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "find_spec", lambda name: None)


# ------------------------------------------------------------------------------------------------ priorities


def test_a_compilation_that_can_wait_is_in_the_session_of_the_calculation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a session of its own its priority would have no effect on Linux; signals of the terminal go to groups."""
    go = tmp_path / "go"
    slow = f'for i in $(seq 300); do [ -e {go} ] && break; sleep 0.1; done; compile "$@"'
    monkeypatch.setenv("CUANTO_CXX", compiler_script(tmp_path / "c++", slow))
    final = compiler.library_path(SOUND)
    process, _, _ = compiler.start_compiler(SOUND.text, compiler.FLAGS, final, low_priority=True)
    try:
        wait_until(lambda: os.getpriority(os.PRIO_PROCESS, process.pid) == 19)
        assert os.getsid(process.pid) == os.getsid(0) and os.getpgid(process.pid) == process.pid != os.getpgrp()
    finally:
        go.touch()
        process.communicate()
    assert cache.complete(final)


@pytest.mark.parametrize("patient", [True, False])
def test_a_starved_compilation_is_started_again_at_the_usual_priority(
    patient: bool, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    priorities = tmp_path / "priorities"
    starved = f'nice >> {priorities}; [ $(wc -l < {priorities}) -lt {1 + patient} ] && sleep 100; compile "$@"'
    monkeypatch.setenv("CUANTO_CXX", compiler_script(tmp_path / "c++", starved))
    library = compiler.compile_library(SOUND, compiler.Patience.begin(seconds=2.0 * patient))
    usual = str(os.getpriority(os.PRIO_PROCESS, 0))
    assert priorities.read_text().split() == [*(["19"] if patient else []), usual]
    assert compiled_libraries(folder) == [library] and temporary_files(folder) == []


def test_a_compilation_is_started_again_once_somebody_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    priorities = tmp_path / "priorities"
    starved = f'nice >> {priorities}; grep -q sound "$text" && [ $(wc -l < {priorities}) -lt 2 ] && sleep 100'
    monkeypatch.setenv("CUANTO_CXX", compiler_script(tmp_path / "c++", f'{starved}; compile "$@"'))
    backend = CpuBackend(threads=2)
    monkeypatch.setattr("cuanto.backends.cpu.backend.load_pool", lambda: None)
    program = backend.compile(SOUND, later=True)
    wait_until(priorities.exists)
    backend.finish_compiling()
    assert program.ready and priorities.read_text().split() == ["19", str(os.getpriority(os.PRIO_PROCESS, 0))]


@pytest.mark.parametrize("later", [False, True])
def test_a_failed_compilation_is_tried_again_when_it_is_needed(
    later: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The disk may have been full; only a kernel that another one replaces is reported in the log."""
    full = tmp_path / "full"
    full.touch()
    body = f'grep -q sound "$text" && [ -e {full} ] && echo "no space" >&2 && exit 1; compile "$@"'
    monkeypatch.setenv("CUANTO_CXX", compiler_script(tmp_path / "c++", body))
    backend = CpuBackend(threads=2)
    failing = backend.compile(SOUND, later=later)
    wait_until(lambda: failing.failed)
    assert backend.compile(SOUND, later=True) is failing
    full.unlink()
    program = backend.compile(SOUND)
    program.wait()
    assert program.ready and ("the general one is used" in caplog.text) == later


# -------------------------------------------------------------------------------------------------- the log


def test_compile_errors_show_the_log(folder: Path) -> None:
    with pytest.raises(CompilerError) as caught:
        compiler.compile_library(BROKEN)
    first, *log = str(caught.value).splitlines()
    assert "broken" in first and compiler.find_compiler().path in first
    assert any("error" in line for line in log) and any("a_line_that_is_wrong" in line for line in log)
    assert compiled_libraries(folder) == temporary_files(folder) == []
    assert compiler.compile_library(SOUND).exists()


def test_compile_errors_of_simt_show_the_log(folder: Path) -> None:
    with pytest.raises(CompilerError, match="broken") as caught:
        compile_simt('extern "C" __global__ void broken(int* x) { a_line_that_is_wrong; }', "broken")
    assert "a_line_that_is_wrong" in str(caught.value) and "error" in str(caught.value)
    assert compiled_libraries(folder) == temporary_files(folder) == []


def test_a_log_that_is_no_text_is_shown_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUANTO_CXX", compiler_script(tmp_path / "c++", r"printf 'bad \377 byte\n' >&2; exit 3"))
    with pytest.raises(CompilerError, match=r"bad . byte"):
        compiler.compile_library(SOUND)


# ------------------------------------------------------------------------------------------------ the choice


@pytest.mark.usefixtures("bare_path", "no_zig")
def test_no_compiler_names_the_zig_extra() -> None:
    with pytest.raises(CompilerError) as caught:
        compiler.find_compiler()
    message = str(caught.value)
    assert "no working C++ compiler" in message and "cuanto[zig]" in message and "CUANTO_CXX" in message
    assert "\n" not in message


@pytest.mark.usefixtures("bare_path", "no_zig")
def test_no_compiler_is_one_line_at_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from cuanto.backends.base import get_backend

    get_backend.cache_clear()  # a backend of another test may have compiled its kernels already
    (tmp_path / "water.xyz").write_text(WATER)
    with pytest.raises(SystemExit) as leaving:
        run(["integrals", str(tmp_path / "water.xyz"), "-b", "sto-3g", "--backend", "cpu"])
    err = capsys.readouterr().err
    assert leaving.value.code == 2 and "cuanto[zig]" in err
    assert len(err.strip().splitlines()) == 1, err


@pytest.mark.usefixtures("no_zig")
def test_a_compiler_that_does_not_start_is_passed_over(bare_path: Path) -> None:
    (bare_path / "c++").write_text("#!/bin/sh\nexit 1\n")
    (bare_path / "c++").chmod(0o755)
    with pytest.raises(CompilerError, match=r"tried .*c\+\+"):
        compiler.find_compiler()
    compiler_script(bare_path / "clang++", 'compile "$@"', version="clang from a script")
    assert compiler.find_compiler() == compiler.Compiler((str(bare_path / "clang++"),), "clang from a script")
    assert compiler.compile_library(SOUND).exists()


def test_order_of_preference(bare_path: Path) -> None:
    zig = (sys.executable, "-m", "ziglang", "c++")
    assert compiler.find_compiler().command[: len(zig)] == zig
    for name in ("clang++", "g++", "c++"):
        compiler_script(bare_path / name, "exit 1", version=name)
        compiler.find_compiler.cache_clear()
        assert compiler.find_compiler().command == (str(bare_path / name),)


def test_the_environment_decides(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    mine = compiler_script(tmp_path / "my compiler", 'compile "$@"', version="mine 3.1")
    monkeypatch.setenv("CUANTO_CXX", f"{shlex.quote(mine)} -DMINE=1")
    found = compiler.find_compiler()
    assert found.command == (mine, "-DMINE=1") and found.version == "mine 3.1"
    source = Source('#ifndef MINE\n#error\n#endif\nextern "C" void mine() {}\n', "mine", "cpu", ())
    assert compiler.compile_library(source).exists()


def test_a_wrong_choice_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUANTO_CXX", "no-such-compiler --fast")
    with pytest.raises(CompilerError, match="no-such-compiler --fast"):
        compiler.find_compiler()


def test_another_compiler_means_another_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, folder: Path) -> None:
    for version in ("1", "2"):
        monkeypatch.setenv("CUANTO_CXX", compiler_script(tmp_path / "c++", 'compile "$@"', version=version))
        compiler.find_compiler.cache_clear()
        compiler.compile_library(SOUND)
    assert len(compiled_libraries(folder)) == 2


# ------------------------------------------------------------------------------------------------------ zig

WATER_OVERLAP = f"""
import cuanto
from cuanto import integrals
from cuanto.backends.cpu.backend import CpuBackend
from cuanto.backends.cpu.compiler import find_compiler
from oracles.integrals import overlap_matrix
molecule = cuanto.Molecule.from_string({WATER!r})
basis = cuanto.Basis("sto-3g", molecule)
worst = 0.0
for schedule in ("table", "lane"):
    S = integrals.overlap(basis, backend=CpuBackend(threads=2, schedule=schedule))
    worst = max(worst, abs(S - overlap_matrix(basis)).max())
print(find_compiler().path)
print(worst)
"""


@pytest.mark.slow
@pytest.mark.usefixtures("bare_path")
@pytest.mark.parametrize("how", ["found", "named"])
def test_zig_alone_is_enough(how: str, folder: Path) -> None:
    zig = shlex.join([sys.executable, "-m", "ziglang", "c++"])
    # Without the flag zig builds a C++ library for itself first, which takes minutes and no kernel needs.
    named = {"CUANTO_CXX": f"{zig} -nostdlib++"} if how == "named" else {}
    path, worst = run_python(WATER_OVERLAP, folder, **named).splitlines()
    assert path.startswith(zig)
    assert float(worst) < INTEGRAL_REL
    assert len(compiled_libraries(folder)) == 4 and not temporary_files(
        folder
    )  # the general kernel, and (s|s) ... (p|p)


def test_the_scripts_of_these_tests_have_a_compiler() -> None:
    assert os.access(REAL, os.X_OK)
