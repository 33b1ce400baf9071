"""The disk cache of compiled kernels.

A file is written under a temporary name and renamed when complete, so that concurrent processes and interrupted writes
never leave a damaged one under its final name. It is sealed with a digest, which is checked before the file is used: a
file that was damaged later is compiled again instead of crashing the process.

Files in the cache are executed. Folders and files that other users could have written are therefore refused.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, lru_cache
from pathlib import Path

from cuanto.backends import seal
from cuanto.errors import InputError
from cuanto.log import logger

WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def cache_folder() -> Path:
    """$CUANTO_CACHE, or `cuanto/kernels` in the user's cache folder; created when missing.

    If it cannot be written, as in containers and on clusters, a private folder among the temporary files is used.
    """
    return _written(_chosen())


def file_path(name: str) -> Path:
    """Path of a file: in the chosen folder if that is read-only and has it, else in the folder that is written to."""
    chosen = _chosen()
    folder = _written(chosen)
    if chosen is not None and chosen is not folder and chosen.is_dir():
        _require_private(chosen)
        if complete(chosen / name):
            return chosen / name
    return folder / name


def _chosen() -> Path | None:
    """The folder that environment and system suggest; None without a home folder."""
    try:
        if given := os.environ.get("CUANTO_CACHE"):
            return Path(given).expanduser()
        if sys.platform == "darwin":
            return Path.home() / "Library" / "Caches" / "cuanto" / "kernels"
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cuanto" / "kernels"
    except RuntimeError:  # HOME is not set, and the user has no entry in the password file
        return None


def _written(chosen: Path | None) -> Path:
    """The folder that is written to: the chosen one, or a private one instead."""
    if chosen is None or not _writable(chosen):
        return _own_temporary_folder(chosen)
    _require_private(chosen)
    return chosen


@cache
def _writable(folder: Path) -> bool:
    """Whether files can be created there; permission bits do not tell, for example for root."""
    try:
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _require_private(folder: Path) -> None:
    """Refuse a folder that another user could put libraries into; create it if it was deleted since."""
    try:
        status = folder.stat()
    except FileNotFoundError:
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        status = folder.stat()
    if not _trusted_owner(status):
        raise InputError(
            f"the folder of compiled kernels {folder} belongs to user {status.st_uid}, who could change what cuanto "
            "executes: set CUANTO_CACHE to a folder of your own"
        )
    if status.st_mode & WRITABLE_BY_OTHERS:
        raise InputError(
            f"the folder of compiled kernels {folder} can be written by other users, who could change what cuanto "
            f"executes: run `chmod go-w {folder}`, or set CUANTO_CACHE to a folder of your own"
        )


def _trusted_owner(status: os.stat_result) -> bool:
    return status.st_uid in (0, os.getuid())


@cache
def _own_temporary_folder(wanted: Path | None) -> Path:
    """A folder that no other user can write to, because its content will be executed."""
    reason = "there is no home folder" if wanted is None else f"{wanted} cannot be written"
    logger.warning("%s; compiled kernels go to the temporary folder", reason)
    folder = Path(tempfile.gettempdir()) / f"cuanto-kernels-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
        private = not status.st_mode & WRITABLE_BY_OTHERS
        if stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and private:
            return folder
    except OSError:
        pass
    return Path(tempfile.mkdtemp(prefix="cuanto-kernels-"))


def complete(path: Path) -> bool:
    """Whether a file exists and is what was written under this name: loading a damaged one could kill the process."""
    try:
        status = path.stat()
        return _safe(status) and _checked(path, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    except OSError:
        return False


def _safe(status: os.stat_result) -> bool:
    """Whether this is the status of a regular file that no other user can have written."""
    regular, foreign = stat.S_ISREG(status.st_mode), status.st_mode & WRITABLE_BY_OTHERS
    return regular and not foreign and _trusted_owner(status)


@lru_cache(maxsize=10_000)
def _checked(path: Path, *version: int) -> bool:
    """Whether the seal of this version of a file is right."""
    return seal.remove_seal(path.name, path.read_bytes()) is not None


def read(path: Path) -> bytes | None:
    """Content of a file in the cache, None if it does not exist or is damaged."""
    try:
        return seal.remove_seal(path.name, path.read_bytes()) if _safe(path.stat()) else None
    except OSError:
        return None


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
    os.fchmod(handle, 0o644 & ~_umask())
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
        seal.publish(str(draft), str(final))
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
