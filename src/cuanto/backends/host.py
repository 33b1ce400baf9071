"""Arrays in main memory, and how much of it there is."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def main_memory() -> tuple[int, int]:
    """Bytes available (what the system can free for us included) and in total."""
    page = os.sysconf("SC_PAGE_SIZE")
    total = page * os.sysconf("SC_PHYS_PAGES")
    try:
        with open("/proc/meminfo") as file:
            available = next(int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        available = total
    return available, total


class HostMemory:
    """NumPy arrays; nothing to copy."""

    xp: Any = np

    def to_device(self, array: NDArray[Any]) -> NDArray[Any]:
        """The array itself, contiguous."""
        return np.ascontiguousarray(array)

    def upload(self, arrays: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
        """The arrays themselves, contiguous."""
        return {name: np.ascontiguousarray(array) for name, array in arrays.items()}

    def to_host(self, array: NDArray[Any]) -> NDArray[Any]:
        """The array itself."""
        return array

    def download(self, arrays: Sequence[Any]) -> list[NDArray[Any]]:
        """The arrays themselves."""
        return list(arrays)

    def zeros(self, shape: tuple[int, ...], dtype: type[np.generic]) -> NDArray[Any]:
        """Pages are cleared by the operating system when first touched."""
        return np.zeros(shape, dtype=dtype)

    def memory(self) -> tuple[int, int]:
        """Of the machine."""
        return main_memory()
