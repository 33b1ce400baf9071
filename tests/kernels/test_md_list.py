"""Tables and block sizes of the kernel that shares a quartet among threads; tests/coulomb/test_direct.py runs it."""

from __future__ import annotations

from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from cuanto.kernels import md_list
from cuanto.kernels.recurrences.components import kernel_matrix, powers
from cuanto.kernels.spec import Shells

SHARED = {"Ampere and Ada": 99 * 1024, "Hopper": 227 * 1024}
PAIRS = [Shells((a, b)) for b, a in combinations_with_replacement(range(6), 2)]


@pytest.mark.parametrize("orders", [(0, 0), (2, 3), (4, 4)])
def test_sums_of_tuples(orders: tuple[int, int]) -> None:
    tuples = [[t for k in range(order + 1) for t in powers(k)] for order in (*orders, sum(orders))]
    table = md_list.sum_table(*orders)
    for (i, P), (j, Q) in product(enumerate(tuples[0]), enumerate(tuples[1])):
        assert tuples[2][table[j, i]] == tuple(x + y for x, y in zip(P, Q, strict=True))


def test_rows_of_functions() -> None:
    """Functions of a (df) pair from one-dimensional factors, against the product of both transformations."""
    side, (la, lb) = Shells((2, 3), (True, False)), (2, 3)
    values = md_list.expand_arguments(side, np.dtype(float))
    x, y = np.random.default_rng(1).normal(size=(2, 3))
    rows = np.zeros((3, la + 1, lb + 1, la + lb + 1))
    for axis, i, j in product(range(3), range(la + 1), range(lb + 1)):
        rows[axis, i, j] = x[axis] ** i * y[axis] ** j
    terms = values["value"] * rows.reshape(-1)[values["row"]].prod(axis=1)
    got = np.add.reduceat(terms, values["start"][:-1])
    one, other = (
        np.array(kernel_matrix(l, pure)) @ [np.prod(r ** np.array(power)) for power in powers(l)]
        for l, pure, r in ((la, True, x), (lb, False, y))
    )
    np.testing.assert_allclose(got, np.outer(one, other).reshape(-1), rtol=1e-13)


@pytest.mark.parametrize("machine", SHARED)
def test_every_class_to_h_fits_into_shared_memory(machine: str) -> None:
    for bra, ket in product(PAIRS, PAIRS):
        for columns, primitives in ((1, 1), (1, 400), (16, 400)):
            block = md_list.block_of(bra, ket, columns, primitives, 8, SHARED[machine])
            assert 8 * block.numbers <= SHARED[machine]
            assert not block.sums or columns == 16
            assert block.pitch % md_list.TILE == 0 and 1 <= block.groups <= block.batch <= md_list.MAX_BATCH
            assert block.batch < 2 * primitives and block.threads in (32, 64, 128, 256)
            assert block.ahead % block.batch == block.batch % block.stage == block.stage % block.groups == 0
