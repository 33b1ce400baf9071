"""J and K on the CPU from quartets whose integrals are kept.

The integrals lie in memory in the order in which they are digested, one stream for each task, so a build reads them
once from beginning to end, a vector at once and without indices. Quartets are kept whose Schwarz bound is above the
threshold, whatever the density. How much that takes is counted first, by the same selection.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from cuanto.coulomb.digest_cpu import CpuDigest, Record, Window, densities_record, fields_of
from cuanto.integrals.segments import Array
from cuanto.kernels.listed import cpu_store, cpu_stored

ALIGNED = 64
"""Bytes of the longest vector."""
UNEVEN = 2
"""A task may have so many times its share of the quartets."""
LITTLE = 2**26
"""Bytes that a task may always count."""


class _Store(Record):
    _fields_ = fields_of("*head *value heads values limit")


@dataclass(frozen=True)
class Amount:
    """Numbers of heads and values of each task; `complete` where counting did not stop at a limit."""

    heads: tuple[int, ...]
    values: tuple[int, ...]
    itemsize: int
    complete: bool

    @property
    def bytes(self) -> int:
        """In all."""
        return 4 * sum(self.heads) + self.itemsize * sum(self.values) + ALIGNED * len(self.heads)


def count_quartets(digest: CpuDigest, window: Window, segments: int, limit: int) -> Amount:
    """What keeping these quartets takes; counting may stop when it is more than `limit` bytes."""
    tasks, itemsize = digest.most_tasks, digest.real.itemsize
    share = max(UNEVEN * limit // tasks, min(limit, LITTLE))
    for most in (share // itemsize, limit // itemsize):
        stores = [_Store(head=0, value=0, heads=0, values=0, limit=most) for _ in range(tasks)]
        _fill(digest, window, segments, stores)
        heads, values = zip(*((store.heads, store.values) for store in stores), strict=True)
        amount = Amount(heads, values, itemsize, max(values) <= most)
        if amount.complete or amount.bytes > limit:  # else a task had more than its share, which may yet fit
            break
    return amount


class StoredDigest:
    """Takes the place of the digest whose quartets it keeps."""

    def __init__(self, digest: CpuDigest, window: Window, segments: int, amount: Amount) -> None:
        self.digest, self.pairs = digest, digest.pairs
        begun = digest.backend.begin(cpu_stored(digest.name))
        self._heads = [np.empty(n, dtype=np.int32) for n in amount.heads]
        self._values = [_aligned(n, digest.real) for n in amount.values]
        stores = [
            _Store(head=head, value=value, heads=0, values=0, limit=len(value))
            for head, value in zip(self._heads, self._values, strict=True)
        ]
        self.quartets = _fill(digest, window, segments, stores)
        self._bras = [digest.bras(y) for y in range(len(digest.pairs))]
        self._stored = begun.result()

    def add(self, D: Array, largest: Array, window: Window, J: Array | None, K: Array | None) -> int:
        """As `CpuDigest.add`; which quartets there are was decided before."""
        record = densities_record(D, largest, window, J is not None, K is not None)
        tasks = len(self._values)

        def task(t: int, part_j: Array, part_k: Array) -> None:
            head, value = (ctypes.c_void_p(stream[t].ctypes.data) for stream in (self._heads, self._values))
            matrices = part_j.ctypes.data, part_k.ctypes.data
            for y, bras in enumerate(self._bras):
                given = (*self.digest.classes(record, y, bras), t, tasks, *matrices)
                self._stored(*given, ctypes.addressof(head), ctypes.addressof(value))

        self.digest.sum_over_tasks(task, tasks, D.shape, J, K)
        return self.quartets


def _fill(digest: CpuDigest, window: Window, segments: int, stores: Sequence[_Store]) -> int:
    """The quartets of each task into its store, or only their number; returns how many there are."""
    store = digest.backend.function(cpu_store(digest.name))
    record = densities_record(np.zeros((0, 1, 1)), np.ones((segments, segments)), window, False, False)
    quartets = np.zeros(len(stores), dtype=np.int64)

    def task(t: int) -> None:
        for y in range(len(digest.pairs)):
            bras = digest.bras(y)
            given = (*digest.classes(record, y, bras), t, len(stores))
            store(*given, ctypes.addressof(stores[t]), quartets[t:].ctypes.data)

    digest.backend.parallel(partial(task, t) for t in range(len(stores)))
    return int(quartets.sum())


def _aligned(count: int, real: np.dtype[Any]) -> Any:
    """Memory that is not touched yet and begins where vectors may."""
    whole = np.empty(count + ALIGNED // real.itemsize, dtype=real)
    skip = -whole.ctypes.data % ALIGNED // real.itemsize
    return whole[skip : skip + count]
