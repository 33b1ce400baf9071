"""C++ compilers that misbehave on purpose, and Python processes to watch, for tests of cache, compilers and tiers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import cuanto
from cuanto.backends.cpu import compiler
from cuanto.basis import Basis, Shell

PATHS = os.pathsep.join((str(Path(__file__).parent), str(Path(cuanto.__file__).parents[1])))
"""PYTHONPATH with the support modules of the tests and the package that is being tested."""
FULL_PATH = os.environ["PATH"]
POOL = "pool_run"
"""A function of the library of native threads."""
SIDE_FILES = (".cost", ".npy", ".npz", ".source")
"""Suffixes of files in the cache that are not libraries."""
REAL = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++") or "c++"

_SCRIPT = """#!/bin/sh
case "$*" in *--version*) echo "{version}"; exit 0;; esac
previous=; out=; for word; do [ "$previous" = -o ] && out=$word; previous=$word; done
text=$previous
compile() {{ PATH="{path}" {real} "$@"; }}
{body}
"""


def compiler_script(path: Path, body: str, version: str = "scripted 1.0") -> str:
    """A compiler whose work is `body`: shell with $text (the source), $out (the library) and `compile "$@"`."""
    path.write_text(_SCRIPT.format(version=version, path=FULL_PATH, real=REAL, body=body))
    path.chmod(0o755)
    return str(path)


@contextmanager
def forget_compiler() -> Iterator[None]:
    """Forget the chosen compiler on entry and on exit."""
    compiler.find_compiler.cache_clear()
    try:
        yield
    finally:
        compiler.find_compiler.cache_clear()


def some_basis(l_max: int = 2, count: int = 2) -> Basis:
    """`count` shells of every angular momentum to `l_max`."""
    rng = np.random.default_rng(3)
    momenta = [l for l in range(l_max + 1) for _ in range(count)]
    shells = [
        Shell.from_table(atom, l, np.array([0.4 + 0.2 * atom, 2.0]), np.array([[0.7], [0.4]]), True)
        for atom, l in enumerate(momenta)
    ]
    return Basis.from_shells(shells, rng.normal(size=(len(momenta), 3)))


def start_python(code: str, cache: Path, **environment: str) -> subprocess.Popen[str]:
    """A new Python process in its own process group, with this kernel cache."""
    return subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "CUANTO_CACHE": str(cache), "PYTHONPATH": PATHS, **environment},
    )


def run_python(code: str, cache: Path, **environment: str) -> str:
    """Run code in a new process and return its output; it must succeed."""
    process = start_python(code, cache, **environment)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, f"status {process.returncode}\n{out}\n{err}"
    return out


def compiled_libraries(folder: Path) -> list[Path]:
    """Complete libraries of a cache, sorted by name, without that of the native threads, which every process needs."""
    complete = sorted(
        path for path in folder.iterdir() if not path.name.startswith(".") and path.suffix not in SIDE_FILES
    )
    return [path for path in complete if POOL.encode() not in path.read_bytes()]


def temporary_files(folder: Path) -> list[Path]:
    """Temporary files of running or interrupted compilations, without those of side files."""
    return sorted(path for path in folder.iterdir() if path.name.startswith(".") and path.suffix not in SIDE_FILES)


def wait_until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait until a condition holds, for a limited time."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"the condition is still false after {seconds} s"
        time.sleep(0.02)
