"""The table for the Boys function of the kernels (templates/boys.h), computed with exact integer arithmetic.

F_m(T) = exp(-T) sum_k (2T)^k / ((2m+1)(2m+3)...(2m+2k+1)), then (2m+1) F_m = 2T F_(m+1) + exp(-T) downwards
(S. F. Boys, doi:10.1098/rspa.1950.0036). On the grid T = i/16 every factor is a rational number with a small
denominator, so fixed-point integers give each entry correctly rounded without a multiple-precision library.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

T_MAX = 36
ROWS_PER_UNIT = 16
STEP = 1.0 / ROWS_PER_UNIT
COLUMNS = 40
MAX_ORDER = 32
"""The highest order: its sums read the columns up to MAX_ORDER + 6."""

_BITS = 192
"""Fractional bits. The smallest entry is about 2^-54, which leaves some 130 bits of it."""


def _exponential_of_step() -> int:
    """exp(-STEP) as a fixed-point number."""
    total, term, k = 0, 1 << _BITS, 0
    while term:
        total += -term if k % 2 else term
        k += 1
        term //= k * ROWS_PER_UNIT
    return total


def _row(i: int, decay: int) -> list[int]:
    """F_0..F_(COLUMNS-1) at T = i STEP in fixed point; decay = exp(-T)."""
    twice, unit = 2 * i, ROWS_PER_UNIT  # 2T = twice / unit
    order = COLUMNS - 1
    denominator = 2 * order + 1
    term = decay // denominator
    total = 0
    while term:
        total += term
        denominator += 2
        term = term * twice // (unit * denominator)
    row = [total]
    for m in range(order - 1, -1, -1):
        row.append((row[-1] * twice // unit + decay) // (2 * m + 1))
    return row[::-1]


@lru_cache(maxsize=1)
def boys_table() -> NDArray[np.float64]:
    """F_m(i STEP): rows i = 0..T_MAX/STEP, columns m = 0..COLUMNS-1, each correctly rounded; read-only."""
    one = 1 << _BITS
    decay, factor = one, _exponential_of_step()
    rows = []
    for i in range(T_MAX * ROWS_PER_UNIT + 1):
        rows.append([entry / one for entry in _row(i, decay)])
        decay = decay * factor >> _BITS
    table = np.array(rows)
    table.setflags(write=False)
    return table


@lru_cache(maxsize=1)
def table_float() -> NDArray[np.float32]:
    """The same table in single precision, for kernels with REAL = float; read-only."""
    table = boys_table().astype(np.float32)
    table.setflags(write=False)
    return table
