"""How much main memory there is."""

from __future__ import annotations

import os


def main_memory() -> tuple[int, int]:
    """Bytes available (including what the system can reclaim) and in total."""
    page = os.sysconf("SC_PAGE_SIZE")
    total = page * os.sysconf("SC_PHYS_PAGES")
    try:
        with open("/proc/meminfo") as file:
            available = next(int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        available = total
    return available, total
