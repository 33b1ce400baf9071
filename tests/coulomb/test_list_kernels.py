"""Which kernel computes the integrals of a list of quartets."""

from __future__ import annotations

import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cuanto import Basis
from cuanto.backends import cache
from cuanto.backends.base import Class
from cuanto.backends.programs import class_cost
from cuanto.backends.simt.backend import SimtBackend, SimtProgram
from cuanto.basis import Shell
from cuanto.coulomb.digest_cuda import CudaDigest
from cuanto.coulomb.list_kernels import ListKernels
from cuanto.coulomb.pair_classes import DevicePairs, PairClass, pair_classes
from cuanto.memory import Budget

EXPECTED: list[tuple[Class, int, str, str]] = []


class Device(SimtBackend):
    """Records the kernels that are expected for later processes."""

    def expect_kernel(self, given: Class, columns: int, real: str, consumer: str) -> None:
        EXPECTED.append((given, columns, real, consumer))


def pairs_of(*shells: tuple[int, int]) -> list[PairClass]:
    """Pairs of shells at one centre, given by angular momentum and number of primitives."""
    given = [Shell.from_table(0, l, 0.1 * 1.7 ** np.arange(count), np.ones((count, 1)), True) for l, count in shells]
    return pair_classes(Basis.from_shells(given, np.zeros((1, 3))), 0.0)


@pytest.fixture(autouse=True)
def empty(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CUANTO_CACHE", str(tmp_path))
    EXPECTED.clear()


def entry(pairs: PairClass, device: SimtBackend | None = None, **options: Any) -> str:
    device, real = device or Device(**options), np.dtype(float)
    on_device = DevicePairs(pairs, device, real)
    return ListKernels(device, "hgp", real)(on_device, on_device, 1).program.source.entry


def test_small_classes_have_straight_line_kernels() -> None:
    (pairs,) = pairs_of((1, 1))
    assert entry(pairs) == "coulomb_pp_pp_hgp_thread_double_1_list"
    assert entry(pairs, schedule="group") == "group_list"
    assert entry(pairs, schedule="quartet_block") == "quartet_block_list"


def test_general_kernels_are_used_until_others_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SimtProgram, "ready", property(lambda self: False))
    (pairs,), device = pairs_of((1, 1)), Device()
    device.traits = replace(device.traits, waiting_factor=1.0)
    assert entry(pairs, device) == "quartet_block_list"


def test_many_primitives_are_shared_by_a_block() -> None:
    """A single thread would sum 25^4 primitive quartets."""
    (pairs,) = pairs_of((0, 25))
    assert entry(pairs) == "quartet_block_list"
    assert not EXPECTED


def test_texts_of_larger_classes_are_left_to_the_helper() -> None:
    pairs = next(p for p in pairs_of((0, 1), (3, 1)) if p.bra.shells.l == (3, 0))
    class_ = ("coulomb", pairs.bra.shells, pairs.bra.shells, "hgp")
    assert entry(pairs) == "quartet_block_list"
    assert list(EXPECTED) == [(class_, 1, "double", "list")]
    class_cost.cache_clear()  # it may be cached by other tests
    class_cost(*class_)  # the helper process computes the cost
    cache.flush()
    assert entry(pairs) == "coulomb_fs_fs_hgp_thread_double_1_list"
    assert len(EXPECTED) == 1


def test_index_tables_where_expansions_do_not_fit() -> None:
    (pairs,), device = pairs_of((0, 25)), Device()
    on_device = DevicePairs(pairs, device, np.dtype(float))
    kernels = ListKernels(device, "hgp", np.dtype(float), room=8 * 400)
    assert kernels(on_device, on_device, 1).program.source.entry == "group_list"
    assert not kernels.expanded and not on_device.expansions


def test_little_work_uses_general_kernels() -> None:
    device = Device()
    device.traits = replace(device.traits, worth_compiling=1e12)
    (pairs,) = pairs_of((0, 1))
    assert entry(pairs, device) == "quartet_block_list"


def test_pairs_without_bounds_are_freed() -> None:
    pairs = pairs_of((0, 1), (1, 1))
    given = [weakref.ref(one) for one in pairs]
    digest = CudaDigest(Budget(SimtBackend("quartet_block")), pairs, "hgp", np.float64, 0.0)
    del pairs
    assert [one() for one in given] == [None] * len(given)
    assert all(one.ket_bound.any() for one in digest.pairs)


def test_chunks_share_the_buffer() -> None:
    """As many chunks as fit into the buffer run together, in parts of it that do not overlap."""
    device = SimtBackend("quartet_block")
    digest = CudaDigest(Budget(device), pairs_of((0, 2), (1, 1), (2, 1)), "hgp", np.float64, 0.0)
    ones = device.to_device(np.ones((3, 3)))
    seen = []
    digest._run = lambda chunks, counts, top, common: seen.append(list(chunks))  # type: ignore[method-assign,assignment,return-value]
    D = device.to_device(np.ones((1, 9, 9)))
    digest.add(D, ones, (0.0, np.inf), None, None)
    (chunks,) = seen
    assert len(chunks) == 21  # pairs of six classes: 6 * 7 / 2
    for limit in (8 * chunks[0].numbers, 100_000):
        groups = list(digest._groups(chunks, limit))
        assert [chunk for group in groups for chunk in group] == chunks and len(groups) > 1
        assert all(len(group) == 1 or 8 * sum(chunk.numbers for chunk in group) <= limit for group in groups)
    parts = digest._parts("integrals", [chunk.numbers for chunk in chunks], np.float64)
    places = [device.address(part) for part in parts]
    for chunk, place, after in zip(chunks, places, [*places[1:], places[-1] + parts[-1].nbytes], strict=True):
        assert place + 8 * chunk.numbers <= after and (place - places[0]) % 256 == 0
