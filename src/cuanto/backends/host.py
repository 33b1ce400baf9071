"""How much main memory there is."""

from __future__ import annotations

import os

from cuanto.limits import limits


def main_memory() -> tuple[int, int]:
    """Bytes available (including what the system can reclaim) and in total, within the limits of this process."""
    page = os.sysconf("SC_PAGE_SIZE")
    total = page * os.sysconf("SC_PHYS_PAGES")
    try:
        with open("/proc/meminfo") as file:
            available = next(int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        available = total
    found = limits()
    return min([available, *(limit.free for limit in found)]), min([total, *(limit.size for limit in found)])
