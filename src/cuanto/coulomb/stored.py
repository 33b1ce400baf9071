"""J and K from stored integrals.

The integrals are stored in the order of their digestion, one stream for each chunk, so that a build reads them once
from beginning to end, by vectors and without indices. All quartets whose Schwarz bound is above the threshold are
stored, independent of the density; the same selection counts them first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cuanto import tuning
from cuanto.arrays import Array
from cuanto.coulomb.digest_cpu import CpuDigest, Window
from cuanto.kernels.direct import cpu_store, cpu_stored
from cuanto.kernels.layout import STORE

ALIGNMENT = 64
"""Bytes of the longest vector."""
MAX_IMBALANCE = 2
"""Largest ratio of the quartets of a chunk to the average."""
CHUNK_BYTES = tuning.size("cpu", "direct.stored_chunk_bytes")


@dataclass(frozen=True)
class Amount:
    """Numbers of heads (integers that list the bras of each vector of kets) and of values in each chunk; `complete`:
    counting did not stop at a limit."""

    heads: Array
    values: Array
    itemsize: int
    complete: bool

    @property
    def bytes(self) -> int:
        """Total size."""
        return int(4 * self.heads.sum() + self.itemsize * self.values.sum()) + ALIGNMENT


def count_quartets(digest: CpuDigest, window: Window, segments: int, limit: int) -> Amount:
    """Size of the integrals of these quartets; counting may stop above `limit` bytes."""
    itemsize = digest.real.itemsize
    share = max(MAX_IMBALANCE * limit // digest.chunks, min(limit, CHUNK_BYTES))
    for most in (share // itemsize, limit // itemsize):
        stores = digest.records(STORE, [_stream(None, None, most)] * digest.chunks)
        _fill(digest, window, segments, {"stores": stores.array, "bras": digest.without_kernels})
        amount = Amount(stores["heads"], stores["values"], itemsize, bool(stores["values"].max() <= most))
        if amount.complete or amount.bytes > limit:  # else one chunk is too large, but all may fit
            break
    return amount


class StoredDigest:
    """Replaces a digest and stores its integrals."""

    def __init__(self, digest: CpuDigest, window: Window, segments: int, amount: Amount) -> None:
        self.digest, self.pairs = digest, digest.pairs
        self._program = digest.backend.compile(cpu_stored(digest.name))
        head, value = np.empty(amount.heads.sum(), dtype=np.int32), _allocate_aligned(amount.values.sum(), digest)
        heads, values = (np.cumsum(sizes) - sizes for sizes in (amount.heads, amount.values))
        rows = [_stream(head[i:], value[j:], n) for i, j, n in zip(heads, values, amount.values, strict=True)]
        self._stores = digest.records(STORE, rows)
        _fill(digest, window, segments, {"stores": self._stores.array})
        self.quartets = int(self._stores["quartets"].sum())

    def add(self, D: Array, largest: Array, window: Window, J: Array | None, K: Array | None) -> int:
        """As `CpuDigest.add`, for the stored quartets."""
        values = {"stores": self._stores.array, "bras": self.digest.without_kernels}
        self.digest.digest(self._program, D, largest, window, (J, K), values)
        return self.quartets


def _stream(head: Any, value: Any, limit: int) -> dict[str, Any]:
    """Record of the stored integrals of a chunk; None: they are counted only."""
    return {"head": head, "value": value, "heads": 0, "values": 0, "limit": limit, "quartets": 0}


def _fill(digest: CpuDigest, window: Window, segments: int, values: dict[str, Any]) -> None:
    """Store, or count, the quartets of each chunk."""
    densities = digest.densities(np.zeros((0, 1, 1)), np.ones((segments, segments)), window, 0, False)
    program = digest.backend.compile(cpu_store(digest.name))
    digest.run(program, densities, values, wait=False)  # they are computed once


def _allocate_aligned(count: int, digest: CpuDigest) -> Any:
    """Uninitialised memory, aligned for vectors."""
    real = digest.real
    whole = np.empty(count + ALIGNMENT // real.itemsize, dtype=real)
    skip = -digest.backend.address(whole) % ALIGNMENT // real.itemsize
    return whole[skip : skip + count]
