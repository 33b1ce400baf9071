"""Memory limits of this process: control groups (containers, batch systems) and `ulimit -v`.

Only the standard library is imported here, because the command line checks the limits before anything large is loaded.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from cuanto.errors import InputError

MIB = 2**20
ADDRESS_SPACE = 512 * MIB
"""Address space of Python, NumPy, SciPy and the smallest calculation with one BLAS thread."""
RESIDENT = 160 * MIB
"""Memory that they use (resident set)."""
ADDRESSES_OF_A_THREAD = 128 * MIB
"""Address space that each BLAS thread reserves."""
Files = tuple[str, str, str, str]
FILES_1 = "memory.limit_in_bytes", "memory.usage_in_bytes", "memory.stat", "total_inactive_file"
FILES_2 = "memory.max", "memory.current", "memory.stat", "inactive_file"
"""Files of a group with its limit, the memory in use and statistics, and the name of reclaimable memory there; control
groups of versions 1 and 2."""
UNLIMITED = 2**60
"""Sizes from this one on mean that a control group of version 1 has no limit."""
ADDRESSES = "`ulimit -v`"
GROUP = "the control group (a container or batch system)"


@dataclass(frozen=True)
class Limit:
    """A limit in bytes, how much of it is used, and how it was set (`origin`)."""

    size: int
    used: int
    origin: str

    @property
    def free(self) -> int:
        """Bytes that are left."""
        return max(0, self.size - self.used)


def limits(root: Path = Path("/")) -> list[Limit]:
    """All limits of this process; `root`: folder in which /proc and /sys are read."""
    return [*_control_groups(root), *_address_space(root)]


def require_memory() -> None:
    """Refuse limits below what Python and its libraries need: they would hang or crash without an explanation.

    If the address space is too small for all threads of OpenBLAS, it gets one thread.
    """
    for limit in limits():
        needed = ADDRESS_SPACE if limit.origin == ADDRESSES else RESIDENT
        if limit.size < needed:
            raise InputError(
                f"{limit.size / MIB:.0f} MiB of memory are allowed by {limit.origin}, but cuanto itself needs "
                f"{needed / MIB:.0f} MiB: raise the limit"
            )
        threads = os.cpu_count() or 1
        if limit.origin == ADDRESSES and limit.size < ADDRESS_SPACE + threads * ADDRESSES_OF_A_THREAD:
            # OpenBLAS hangs if it cannot start all of its threads.
            os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def _address_space(root: Path) -> Iterator[Limit]:
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft == resource.RLIM_INFINITY:
        return
    try:
        used = int((root / "proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        used = 0
    yield Limit(soft, used, ADDRESSES)


def _control_groups(root: Path) -> Iterator[Limit]:
    """Limits of the groups of this process and of those above them, in versions 1 and 2."""
    try:
        with open(root / "proc/self/cgroup") as file:
            text = file.read()
    except OSError:
        return
    for folder, names in _groups(root, text):
        size = _number(f"{folder}/{names[0]}")
        if size is not None and size < UNLIMITED:
            used = _number(f"{folder}/{names[1]}") or 0
            yield Limit(size, max(0, used - _reclaimable(f"{folder}/{names[2]}", names[3])), GROUP)


@lru_cache(maxsize=8)
def _groups(root: Path, text: str) -> list[tuple[str, Files]]:
    """Folders of the groups that the `text` of /proc/self/cgroup names and of those above them, with the names of their
    files; missing folders are skipped: containers may see their group as root."""
    found, mounts = list[tuple[str, Files]](), root / "sys/fs/cgroup"
    for line in text.splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        places, names = list[Path](), FILES_2
        if "memory" in controllers.split(","):
            places, names = [mounts / "memory"], FILES_1
        elif number == "0":
            places = [mounts, mounts / "unified"]
        parts = [part for part in path.split("/") if part not in ("", "..")]
        folders = (place.joinpath(*parts[:count]) for place in places for count in range(len(parts), -1, -1))
        found += [(str(folder), names) for folder in folders if os.path.exists(folder / names[0])]
    return found


def _number(path: str) -> int | None:
    try:
        with open(path) as file:
            text = file.read().strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None  # "max": no limit


def _reclaimable(path: str, name: str) -> int:
    """Bytes of cached files, which the system gives back when memory is needed."""
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return 0
    found = [line.split()[1] for line in lines if line.startswith(f"{name} ")]
    return int(found[0]) if found and found[0].isdigit() else 0
