"""Claims on files that a process writes for a long time, so that a second run of the same command does not mix in."""

from __future__ import annotations

import os
import weakref
from errno import EACCES, EAGAIN
from pathlib import Path

from cuanto.errors import InputError
from cuanto.files import destination


class Claim:
    """A lock on a hidden file, which the system releases if the process is killed; removed with this object."""

    def __init__(self, lock: Path) -> None:
        weakref.finalize(self, _release, _locked(lock), lock)


_claims: weakref.WeakValueDictionary[Path, Claim] = weakref.WeakValueDictionary()
"""Claims of this process, which may have several objects that write a file one after the other."""


def claim(path: str | os.PathLike[str]) -> Claim | None:
    """The right of this process to write a file as long as the claim lives; None where there are no locks."""
    target = destination(path)
    lock = target.with_name(f".{target.name}.lock")
    if (known := _claims.get(lock)) is not None:
        return known
    try:
        return _claims.setdefault(lock, Claim(lock))
    except OSError as error:
        if error.errno not in (EACCES, EAGAIN):
            return None
    raise InputError(f"{path} is being written by another process: wait until it has ended, or give another name")


def _locked(lock: Path) -> int:
    """Open and lock a file; an OSError if another process has it, or if there are no locks here."""
    try:
        from fcntl import LOCK_EX, LOCK_NB, lockf
    except ImportError as error:
        raise OSError("no locks on this system") from error
    while True:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            lockf(descriptor, LOCK_EX | LOCK_NB)
            if os.fstat(descriptor).st_nlink:  # else the process that had it has just removed it
                return descriptor
        except OSError:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _release(descriptor: int, lock: Path) -> None:
    lock.unlink(missing_ok=True)
    os.close(descriptor)
