"""Finding and calling a C++ compiler."""

from __future__ import annotations

import ctypes
import os
import platform
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from cuanto.backends import cache, seal
from cuanto.backends.cpu.calls import native_text
from cuanto.errors import CompilerError
from cuanto.kernels.text import Source

FLAGS = ("-std=c++17", "-O2", "-ffp-contract=fast", "-fno-math-errno", "-fPIC", "-shared", "-pthread", "-w")
PATIENCE = 20.0
"""Seconds after a request in which a kernel that can be replaced by the general one is compiled at the lowest priority.

By then a calculation has spent about as much time with the general kernel as the compilation takes of it.
"""
GRACE = 0.5
"""Seconds that a compilation at the lowest priority still has once somebody waits for it."""
POLL = 0.1


@dataclass
class Patience:
    """Time of `time.monotonic` until which a kernel is compiled at the lowest priority."""

    until: float

    @classmethod
    def begin(cls, seconds: float = PATIENCE) -> Patience:
        """Patience for some seconds from now on."""
        return cls(time.monotonic() + seconds)

    @property
    def left(self) -> float:
        """Seconds left, negative if it is over."""
        return self.until - time.monotonic()

    def end(self) -> None:
        """Somebody waits for the kernel now."""
        self.until = min(self.until, time.monotonic() + GRACE)


@dataclass(frozen=True)
class Compiler:
    """A command that understands the flags of GCC and Clang."""

    command: tuple[str, ...]
    version: str

    @property
    def path(self) -> str:
        """The command as text."""
        return " ".join(self.command)


def _version(command: tuple[str, ...]) -> str | None:
    try:
        done = subprocess.run([*command, "--version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.splitlines()[0] if done.returncode == 0 and done.stdout else None


@lru_cache(maxsize=1)
def find_compiler() -> Compiler:
    """The compiler of $CUANTO_CXX, or else the first of c++, g++, clang++ and zig's (from PyPI) that works."""
    candidates: list[tuple[str, ...]] = []
    if given := os.environ.get("CUANTO_CXX"):
        candidates.append(_words(given))
    else:
        candidates += [(path,) for name in ("c++", "g++", "clang++") if (path := shutil.which(name))]
        if find_spec("ziglang") is not None:
            # Kernels need no C++ runtime; zig would build one first, for a minute.
            candidates.append((sys.executable, "-m", "ziglang", "c++", "-nostdlib++"))
    for command in candidates:
        if version := _version(command):
            return Compiler(command, version)
    tried = f" (tried {', '.join(' '.join(c) for c in candidates)})" if candidates else ""
    raise CompilerError(
        f"no working C++ compiler found{tried}: install g++ or clang++, or `pip install 'cuanto[zig]'`, "
        "or set CUANTO_CXX"
    )


def _words(command: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(command))
    except ValueError as error:  # such as an unclosed quotation mark
        raise CompilerError(f"CUANTO_CXX is {command!r:.200}: {error}; set it to a command such as g++") from None


@lru_cache(maxsize=1)
def processor() -> str:
    """Description of the processor, which -march=native depends on."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine() + platform.processor()
    marks = ("flags", "Features", "model name", "CPU part")
    return platform.machine() + "".join(sorted({line for line in lines if line.startswith(marks)}))


@lru_cache(maxsize=1)
def native_flag() -> str:
    """The flag for this machine's own instructions."""
    if platform.machine() in ("arm64", "aarch64"):
        return "-mcpu=native"
    return "-march=native"


def text_path(text: str, flags: Sequence[str], folder: Path | None = None) -> Path:
    """Path of the compiled text, whether it exists yet or not; in the cache unless a folder is given."""
    compiler = find_compiler()
    parts = (text, *flags, native_flag(), *compiler.command, compiler.version, processor())
    name = f"{cache.key(parts)}.so"
    return folder / name if folder else cache.file_path(name)


def library_path(source: Source) -> Path:
    """Path of the compiled source, whether it exists yet or not."""
    return text_path(native_text(source), FLAGS)


def start_compiler(
    content: str, flags: Sequence[str], final: Path, low_priority: bool
) -> tuple[subprocess.Popen[bytes], Path, Path]:
    """Start compiling in a process group that outlives this process; `low_priority`: at the lowest priority.

    It has no session of its own: Linux divides processor time among sessions first (autogroup, `man 7 sched`), so that
    a compiler in a new session would take as much of it as the whole calculation, even at the lowest priority.

    Returns the process, and the temporary files of the library and of the text.
    """
    text, draft = _drafts(content, final)
    command = [*find_compiler().command, *flags, native_flag(), "-o", str(draft), str(text)]
    # The child seals and renames the result, so that it is complete or absent whatever happens to this process, which
    # publishes it itself where Python cannot be called (inside another program).
    publish = '"$PYTHON" -I -S "$SEAL" "$OUT" "$FINAL" 2>/dev/null || true'
    script = f'if "$@" && [ -s "$OUT" ]; then rm -f "$TEXT"; {publish}; else rm -f "$OUT" "$TEXT"; exit 1; fi'
    paths = {"OUT": draft, "FINAL": final, "TEXT": text, "PYTHON": sys.executable, "SEAL": seal.__file__}
    prefix = ["nice", "-n", "19"] if low_priority and shutil.which("nice") else []
    process = subprocess.Popen(
        [*prefix, "/bin/sh", "-c", script, "sh", *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, **{name: str(path) for name, path in paths.items()}},
        process_group=0,
    )
    return process, draft, text


def _drafts(content: str, final: Path) -> tuple[Path, Path]:
    """The text in a temporary file, and a temporary file for the library."""
    text = None
    try:
        text = cache.temporary(final.with_suffix(".cpp"))
        text.write_text(content)
        return text, cache.temporary(final)
    except OSError as error:
        if text is not None:
            text.unlink(missing_ok=True)
        raise _no_room(final, error) from error


def _no_room(final: Path, error: OSError) -> CompilerError:
    reason = error.strerror or str(error)
    return CompilerError(
        f"kernels cannot be compiled in {final.parent}: {reason}; make room, or set CUANTO_CACHE to another folder"
    )


def compile_library(source: Source, patience: Patience | None = None) -> Path:
    """Return the compiled source, from the cache if possible; `patience` as in `compile_text`."""
    return compile_text(native_text(source), FLAGS, source.entry, library_path(source), patience)


def compile_text(content: str, flags: Sequence[str], entry: str, final: Path, patience: Patience | None = None) -> Path:
    """Compile the text of a kernel `entry` to the file `final` unless it exists; errors contain the log.

    At the lowest priority while there is `patience`. A compilation that has not finished by then is started again at
    the usual priority, because a priority can only be lowered.
    """
    if cache.complete(final):
        return final
    done = _attempt(content, flags, final, patience) if patience is not None and patience.left > GRACE else None
    status, log = done or _attempt(content, flags, final) or (1, b"")
    if status != 0 or not cache.complete(final):
        reason = log.decode(errors="replace") or "it wrote no library; set CUANTO_CXX to another compiler"
        raise CompilerError(f"compiling {entry} with {find_compiler().path} failed:\n{reason}")
    return final


def _attempt(
    content: str, flags: Sequence[str], final: Path, patience: Patience | None = None
) -> tuple[int, bytes] | None:
    """Status and log of a compilation, at the lowest priority with `patience`; None: that ended first."""
    process, draft, text = start_compiler(content, flags, final, low_priority=patience is not None)
    try:
        log = _wait(process, patience)
        if log is None:
            _kill(process)
            return None
        if process.returncode == 0 and draft.exists():
            seal.publish(str(draft), str(final))
        return process.returncode, log
    except OSError as error:
        raise _no_room(final, error) from error
    except BaseException:
        _kill(process)
        raise
    finally:
        draft.unlink(missing_ok=True)
        text.unlink(missing_ok=True)


def _wait(process: subprocess.Popen[bytes], patience: Patience | None) -> bytes | None:
    """The log of a compiler once it has ended, None if `patience` ended first."""
    while patience is not None:
        try:
            return process.communicate(timeout=max(0.0, min(POLL, patience.left)))[0]
        except subprocess.TimeoutExpired:
            if patience.left <= 0.0:
                return None
    return process.communicate()[0]


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a compilation, also the compiler that the shell has started."""
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def load_library(source: Source, patience: Patience | None = None) -> ctypes.CDLL:
    """Load the compiled source; a library that does not load, perhaps from another machine, is compiled again."""
    library = compile_library(source, patience)
    try:
        return ctypes.CDLL(str(library))
    except OSError:
        final = cache.cache_folder() / library.name  # the other one may be in a read-only folder
        final.unlink(missing_ok=True)
    try:
        return ctypes.CDLL(str(compile_text(native_text(source), FLAGS, source.entry, final)))
    except OSError as error:
        raise CompilerError(f"{source.entry} as compiled by {find_compiler().path} cannot be loaded: {error}") from None
