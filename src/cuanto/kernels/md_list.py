"""Integrals of lists of quartets by matrix products in shared memory (`templates/md_list.cuh`): storage and tables.

One text serves every class, and its tables are small, so that nothing has to be compiled or generated for a class.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from math import ceil, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto.kernels import abi, md_blocks
from cuanto.kernels.recurrences.components import powers
from cuanto.kernels.recurrences.hermite_coulomb import hermite_count
from cuanto.kernels.spec import Shells

TILE = 4
"""Functions of the ket that a thread treats together; the same as in the text."""
MAX_THREADS = 256
MAX_BATCH = 16
"""Ket primitives that a block treats at once, at most."""
AHEAD = 32
"""Ket primitives whose Boys functions are evaluated at once, a thread for each."""
STAGE_NUMBERS = 2048
"""Size of the Hermite expansions of kets in shared memory, more if one primitive per group of threads needs it."""
TARGET_BYTES = 48 * 1024
"""Shared memory up to which more ket primitives, and more functions, are treated at once."""
ARGUMENTS = abi.parse_arguments(
    "int bra_fields, int ket_fields, int bra_order, int ket_order, int bra_functions, int ket_functions, "
    "const int* tuples, const int* sums, const REAL* bra_expansion, const REAL* ket_expansion, int ket_width, "
    "int room, int batch, int ahead, int stage, int groups, int pitch, REAL* scratch, INDEX scratch_stride"
)
EXPAND_ARGUMENTS = abi.parse_arguments(
    "int la, int lb, int functions, const int* tuples, const int* start, const int* row, const REAL* value, int ket, "
    "INDEX primitives, const REAL* record, int fields, int lanes, int width, REAL* out"
)
EXPAND_THREADS = 64


@dataclass(frozen=True)
class Block:
    """Sizes of a block of threads for a quartet; `numbers` in shared memory.

    `batch`, `ahead`, `stage`, `groups` and `pitch` are explained in templates/md_list.cuh. `sums`: numbers of a block
    in global memory; 0 if the sums over primitives are in shared memory.
    """

    batch: int
    ahead: int
    stage: int
    groups: int
    pitch: int
    numbers: int
    sums: int
    threads: int


def padded_width(functions: int) -> int:
    """Functions in a row of the expansions of kets, with padding."""
    return TILE * ceil(functions / TILE)


@cache
def block_of(bra: Shells, ket: Shells, columns: int, primitives: int, real_bytes: int, limit: int) -> Block:
    """The block for a class whose kets have at most `primitives` primitives; `limit`: bytes of shared memory."""
    functions, target = md_blocks.functions_of(ket).count, min(TARGET_BYTES, limit)

    def fits(columns: int, batch: int, pitch: int, allowed: int) -> bool:
        return _block(bra, ket, columns, primitives, batch, pitch).numbers * real_bytes <= allowed

    pitches = range(padded_width(functions), 0, -TILE)
    # With the sums in shared memory if possible, preferably of many functions of the ket in little memory.
    choices = [(kept, pitch, allowed) for kept in (columns, 0) for allowed in (target, limit) for pitch in pitches]
    kept, pitch, _ = next(choice for choice in choices if fits(choice[0], 1, *choice[1:]))
    pitch = padded_width(ceil(functions / ceil(functions / pitch)))  # equal slices waste less than a short last one
    batch = 1
    while batch < min(MAX_BATCH, primitives) and fits(kept, 2 * batch, pitch, target):
        batch *= 2
    found = _block(bra, ket, kept, primitives, batch, pitch)
    return found if kept else replace(found, sums=columns * pitch * md_blocks.functions_of(bra).count)


def _block(bra: Shells, ket: Shells, columns: int, primitives: int, batch: int, pitch: int) -> Block:
    """The block that keeps the sums of `columns` contraction columns in shared memory."""
    order, P, Q = sum(bra.l) + sum(ket.l), hermite_count(sum(bra.l)), hermite_count(sum(ket.l))
    tasks = P * pitch // TILE
    groups = 1
    while groups < batch and 2 * groups * tasks <= MAX_THREADS:
        groups *= 2
    threads = 32
    while threads < min(MAX_THREADS, max(groups * tasks, batch * md_blocks.largest_batch(order))):
        threads *= 2
    stage = batch
    while stage > groups and stage * Q * pitch > STAGE_NUMBERS:
        stage //= 2
    ahead = batch
    while ahead < min(AHEAD, primitives):
        ahead *= 2
    recursion = batch * (3 * md_blocks.largest_batch(order) + hermite_count(order)) + ahead * (order + 4)
    numbers = recursion + pitch * (stage * Q + groups * P + columns * md_blocks.functions_of(bra).count)
    return Block(batch, ahead, stage, groups, pitch, numbers, 0, threads)


@cache
def sum_table(bra_order: int, ket_order: int) -> NDArray[np.int32]:
    """Number of the tuple P + Q, [Q, P]."""
    P, Q = (np.array([t for k in range(order + 1) for t in powers(k)]) for order in (bra_order, ket_order))
    t, u, v = np.moveaxis(Q[:, None, :] + P[None, :, :], 2, 0)
    k, m = t + u + v, u + v
    table: NDArray[np.int32] = (k * (k + 1) * (k + 2) // 6 + m * (m + 1) // 2 + v).astype(np.int32)
    table.setflags(write=False)
    return table


@cache
def row_table(side: Shells) -> NDArray[np.int32]:
    """Rows of E_t^ij along the three axes, for every term of the functions of a pair (`md_blocks.functions_of`)."""
    la, lb = side.l
    a, b = (np.array(powers(l)) for l in side.l)
    first, second = np.divmod(md_blocks.functions_of(side).monomial, len(b))
    rows = (np.arange(3) * (la + 1) + a[first]) * (lb + 1) + b[second]
    table: NDArray[np.int32] = (rows * (la + lb + 1)).astype(np.int32)
    table.setflags(write=False)
    return table


def list_arguments(bra: Shells, ket: Shells) -> dict[str, Any]:
    """Momenta and tables of a class, by the names of the arguments of the kernel for lists."""
    orders = sum(bra.l), sum(ket.l)
    counts = [md_blocks.functions_of(side).count for side in (bra, ket)]
    values: dict[str, Any] = {"bra_order": orders[0], "ket_order": orders[1]}
    values |= {"bra_functions": counts[0], "ket_functions": counts[1], "ket_width": padded_width(counts[1])}
    values |= {"tuples": md_blocks.tuple_table(sum(orders)), "sums": sum_table(*orders)}
    return values | {"room": md_blocks.largest_batch(sum(orders))}


def expand_arguments(side: Shells, real: np.dtype[Any]) -> dict[str, Any]:
    """Momenta and tables of a pair, by the names of the arguments of the kernel that makes expansions."""
    functions = md_blocks.functions_of(side)
    values: dict[str, Any] = {"la": side.l[0], "lb": side.l[1], "functions": functions.count}
    values |= {"tuples": md_blocks.tuple_table(sum(side.l)), "start": functions.start, "row": row_table(side)}
    return values | {"value": functions.value.astype(real)}


def expand_memory(side: Shells) -> int:
    """Numbers in shared memory of a block that makes expansions."""
    return 3 * prod(l + 1 for l in side.l) * (sum(side.l) + 1)
