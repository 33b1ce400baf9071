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
TARGET_BYTES = 48 * 1024
"""Shared memory up to which more ket primitives, and more functions, are treated at once."""
ARGUMENTS = abi.parse_arguments(
    "int bra_fields, int ket_fields, int la, int lb, int lc, int ld, int bra_functions, int ket_functions, "
    "const int* tuples, const int* sums, const int* bra_start, const int* bra_row, const REAL* bra_value, "
    "const int* ket_start, const int* ket_row, const REAL* ket_value, int room, int row_room, int expansion_room, "
    "int batch, int groups, int pitch, int chunk, REAL* scratch, INDEX scratch_stride"
)


@dataclass(frozen=True)
class Block:
    """Sizes of a block of threads for a quartet, as in the text; `numbers` in shared memory.

    `sums`: numbers of a block in global memory; 0 if the sums over primitives are in shared memory.
    """

    batch: int
    groups: int
    pitch: int
    chunk: int
    row_room: int
    expansion_room: int
    numbers: int
    sums: int
    threads: int

    @property
    def arguments(self) -> dict[str, int]:
        """Sizes by the names of the kernel's arguments."""
        names = ("batch", "groups", "pitch", "chunk", "row_room", "expansion_room")
        return {**{name: getattr(self, name) for name in names}, "scratch_stride": self.sums}


def block_of(bra: Shells, ket: Shells, columns: int, primitives: int, real_bytes: int, limit: int) -> Block:
    """The block for a class whose kets have at most `primitives` primitives; `limit`: bytes of shared memory."""
    functions, target = md_blocks.functions_of(ket).count, min(TARGET_BYTES, limit)

    def fits(columns: int, batch: int, pitch: int, allowed: int) -> bool:
        return _block(bra, ket, columns, batch, pitch).numbers * real_bytes <= allowed

    pitches = [TILE * n for n in range(ceil(functions / TILE), 0, -1)]
    # With the sums in shared memory if possible, preferably of many functions of the ket in little memory.
    choices = [(kept, pitch, allowed) for kept in (columns, 0) for allowed in (target, limit) for pitch in pitches]
    kept, pitch, _ = next(choice for choice in choices if fits(choice[0], 1, *choice[1:]))
    pitch = TILE * ceil(functions / ceil(functions / pitch) / TILE)  # equal slices waste less than a short last one
    batch = 1
    while batch < min(MAX_BATCH, primitives) and fits(kept, 2 * batch, pitch, target):
        batch *= 2
    found = _block(bra, ket, kept, batch, pitch)
    return found if kept else replace(found, sums=columns * pitch * md_blocks.functions_of(bra).count)


def _block(bra: Shells, ket: Shells, columns: int, batch: int, pitch: int) -> Block:
    """The block that keeps the sums of `columns` contraction columns in shared memory."""
    bra_order, ket_order = sum(bra.l), sum(ket.l)
    order = bra_order + ket_order
    P, Q = hermite_count(bra_order), hermite_count(ket_order)
    bra_functions = md_blocks.functions_of(bra).count
    bra_rows, ket_rows = (3 * prod(l + 1 for l in side.l) * (sum(side.l) + 1) for side in (bra, ket))
    row_room = max(bra_rows, batch * ket_rows)
    chunk = min(bra_functions, max(8, batch * Q * pitch // P))
    expansion_room = max(batch * Q * pitch, P * chunk)
    tasks = P * pitch // TILE
    groups = 1
    while groups < batch and 2 * groups * tasks <= MAX_THREADS:
        groups *= 2
    threads = 32
    while threads < min(MAX_THREADS, max(groups * tasks, batch * Q * pitch // 4)):
        threads *= 2
    recursion = batch * (3 * md_blocks.largest_batch(order) + hermite_count(order) + order + 4)
    numbers = recursion + row_room + expansion_room + pitch * (groups * P + columns * bra_functions)
    return Block(batch, groups, pitch, chunk, row_room, expansion_room, numbers, 0, threads)


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


def table_arguments(bra: Shells, ket: Shells, real: np.dtype[Any]) -> dict[str, Any]:
    """Momenta and tables of a class, by the names of the kernel's arguments."""
    orders = sum(bra.l), sum(ket.l)
    values: dict[str, Any] = dict(zip(("la", "lb", "lc", "ld"), (*bra.l, *ket.l), strict=True))
    values |= {"tuples": md_blocks.tuple_table(sum(orders)), "sums": sum_table(*orders)}
    values["room"] = md_blocks.largest_batch(sum(orders))
    for name, side in (("bra", bra), ("ket", ket)):
        functions = md_blocks.functions_of(side)
        values |= {f"{name}_functions": functions.count, f"{name}_start": functions.start}
        values |= {f"{name}_row": row_table(side), f"{name}_value": functions.value.astype(real)}
    return values
