"""Kernels that divide the molecule's points among its atoms."""

from __future__ import annotations

from functools import cache

from cuanto.kernels.abi import Arguments, declared
from cuanto.kernels.text import SUMS, Source, assemble

BLOCK_POINTS = 128
"""Points of a block of threads, at most: a part of a group, which has a list of atoms."""
NEAREST = 16
"""Atoms in order at the beginning of a list: they decide whether another atom has any share of a point."""
NEAR_THREADS = 64

LISTS = declared("const int* list_atom, const double* list_distance, const int* list_rows, const int* list_count")
COMMON = (
    declared(
        "const double* position, INDEX stride, const int* own, const int* block_point, const int* block_list, const "
        "double* radius"
    )
    + LISTS
    + declared("const double* atom, const double* pair, INDEX atoms, double* weight")
)
NEAR: Arguments = (
    ("const double*", "centre"),
    ("const double*", "radius"),
    ("const double*", "atom"),
    ("const double*", "pair"),
    ("INDEX", "atoms"),
    *((kind.removeprefix("const "), name) for kind, name in LISTS),
)
RANGE = declared("INDEX begin, INDEX end")
SCRATCH: dict[str, Arguments] = {"cpu": (("double*", "scratch"),), "cuda": ()}
WEIGHTS = {"cpu": "grid_weights_cpu.h", "cuda": "grid_weights.cuh"}
"""A CPU has distances from a block of points at hand for all rows of their list, a thread of a GPU makes them again."""


def _defines(stratmann: bool) -> dict[str, object]:
    return {
        "STRATMANN": int(stratmann),
        "BLOCK_POINTS": BLOCK_POINTS,
        "NEAREST": NEAREST,
        "NEAR_THREADS": NEAR_THREADS,
    }


@cache
def weights_source(target: str, stratmann: bool) -> Source:
    """Becke's cell function, or Stratmann's, whose finite reach leaves out far atoms."""
    entry = "grid_weights_stratmann" if stratmann else "grid_weights_becke"
    body = ("grid_cells.h", WEIGHTS[target])
    arguments = (*RANGE, *COMMON, *SCRATCH[target])
    return assemble(entry, target, "double", arguments, _defines(stratmann), body, threads=BLOCK_POINTS)


@cache
def gradient_source(target: str, stratmann: bool) -> Source:
    """The derivative of weights with respect to atoms, times `weight`."""
    entry = "grid_weights_gradient_stratmann" if stratmann else "grid_weights_gradient_becke"
    arguments = (*RANGE, *COMMON, ("double*", "out"), *SUMS[target])
    body = ("grid_cells.h", "grid_weights_gradient.h")
    return assemble(entry, target, "double", arguments, _defines(stratmann), body, threads=BLOCK_POINTS)


def weights_scratch(target: str, atoms: int) -> int:
    """Bytes that a worker needs: distances of a block of points, an entry of a list, marks of at most BLOCK_POINTS / 2
    vectors for every atom; a thread of a GPU makes distances again."""
    return 8 * {"cpu": BLOCK_POINTS + 3 + BLOCK_POINTS // 8, "cuda": 0}[target] * atoms


@cache
def near_source(target: str, stratmann: bool) -> Source:
    """Lists of atoms for groups of points."""
    entry = "grid_near_stratmann" if stratmann else "grid_near_becke"
    arguments, body = (*RANGE, *NEAR), ("grid_cells.h", "grid_near.h")
    defines, threads = _defines(stratmann), NEAR_THREADS
    return assemble(entry, target, "double", arguments, defines, body, threads=threads, per_block=threads)
