"""The disk cache of compiled kernels.

A file is written under a temporary name and renamed when complete, so that concurrent processes and interrupted writes
never leave a damaged one under its final name.
"""

from __future__ import annotations

import hashlib
import os
import stat
import struct
import sys
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

from cuanto.log import logger


def cache_folder() -> Path:
    """$CUANTO_CACHE, or `cuanto/kernels` in the user's cache folder; created when missing."""
    if given := os.environ.get("CUANTO_CACHE"):
        folder = Path(given).expanduser()
    elif sys.platform == "darwin":
        folder = Path.home() / "Library" / "Caches" / "cuanto" / "kernels"
    else:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cuanto" / "kernels"
    # A read-only home (containers, clusters) must not stop a calculation.
    if _writable(folder):
        folder.mkdir(parents=True, exist_ok=True)  # it may have been deleted since
        return folder
    return _own_temporary_folder(folder)


@cache
def _writable(folder: Path) -> bool:
    """Whether files can be created there; permission bits do not tell, for example for root."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


@cache
def _own_temporary_folder(wanted: Path) -> Path:
    """A folder that no other user can write to, because its content will be executed."""
    logger.warning("%s cannot be written; compiled kernels go to the temporary folder", wanted)
    folder = Path(tempfile.gettempdir()) / f"cuanto-kernels-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
        if stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o022:
            return folder
    except OSError:
        pass
    return Path(tempfile.mkdtemp(prefix="cuanto-kernels-"))


def complete(library: Path) -> bool:
    """Whether a shared library exists and is complete: loading a truncated one would kill the process.

    An ELF file ends with its section headers; other formats are left to the loader.
    """
    try:
        with library.open("rb") as file:
            head = file.read(64)
        size = library.stat().st_size
    except OSError:
        return False
    if head[:5] != b"\x7fELF\x02":
        return sys.platform != "linux"
    (start,) = struct.unpack_from("<Q", head, 40)
    entry, count = struct.unpack_from("<HH", head, 58)
    return bool(size >= start + entry * count)


def key(parts: Iterable[str]) -> str:
    """Hash of everything that determines a binary: text, flags, compiler, architecture."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode())
        digest.update(b"\0")
    return digest.hexdigest()[:40]


def temporary(final: Path) -> Path:
    """A new file beside `final` that no other process or thread uses."""
    final.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{final.stem}-", suffix=final.suffix, dir=final.parent)
    # Readable like other files of the user: a cache may be shared.
    os.fchmod(handle, 0o666 & ~_umask())
    os.close(handle)
    return Path(name)


@cache
def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def write(final: Path, content: bytes) -> None:
    """Write a file completely or not at all; a full disk is a warning, because the caller has the content."""
    draft = None
    try:
        draft = temporary(final)
        draft.write_bytes(content)
        os.replace(draft, final)
    except OSError as error:
        logger.warning("%s cannot be written: %s", final, error.strerror or error)
    finally:
        if draft is not None:
            draft.unlink(missing_ok=True)


def write_later(final: Path, content: Callable[[], bytes]) -> None:
    """Write a file in a thread, because many small files take as long as a small calculation.

    The interpreter does not exit before it is written.
    """
    try:
        _writer().submit(lambda: write(final, content()))
    except RuntimeError:  # it is exiting
        write(final, content())


def flush() -> None:
    """Wait until everything is written."""
    _writer().submit(int).result()


@cache
def _writer() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, "cuanto-cache")


if hasattr(os, "register_at_fork"):
    # Threads do not survive a fork.
    os.register_at_fork(after_in_child=_writer.cache_clear)


def files() -> list[Path]:
    """All files in the cache, including drafts of interrupted runs."""
    return [path for path in cache_folder().iterdir() if path.is_file()]


def clear() -> tuple[int, int]:
    """Delete all files; returns their number and bytes."""
    count = size = 0
    for path in files():
        try:
            bytes_ = path.stat().st_size
            path.unlink()
        except FileNotFoundError:  # another process has deleted it
            continue
        count, size = count + 1, size + bytes_
    return count, size
