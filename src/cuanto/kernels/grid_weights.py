"""Kernels that divide the molecule's points among its atoms."""

from __future__ import annotations

from functools import cache

from cuanto.kernels.abi import Arguments
from cuanto.kernels.text import Source, assemble

BLOCK_POINTS = 128
"""Points of a block of threads, at most: a part of a group, which has a list of atoms."""
NEAREST = 16
"""Atoms in order at the beginning of a list: they decide whether another atom has any share of a point."""
NEAR_THREADS = 64

LISTS: Arguments = (
    ("const int*", "list_atom"),
    ("const double*", "list_distance"),
    ("const int*", "list_rows"),
    ("const int*", "list_count"),
)
COMMON: Arguments = (
    ("const double*", "position"),
    ("INDEX", "stride"),
    ("const int*", "own"),
    ("const int*", "block_point"),
    ("const int*", "block_list"),
    ("const double*", "radius"),
    *LISTS,
    ("const double*", "atom"),
    ("const double*", "pair"),
    ("INDEX", "atoms"),
    ("double*", "weight"),
)
NEAR: Arguments = (
    ("const double*", "centre"),
    ("const double*", "radius"),
    ("const double*", "atom"),
    ("const double*", "pair"),
    ("INDEX", "atoms"),
    *((kind.removeprefix("const "), name) for kind, name in LISTS),
)
RANGE: Arguments = (("INDEX", "begin"), ("INDEX", "end"))
WEIGHTS_SKELETONS: dict[str, tuple[str, Arguments]] = {
    "cpu": ("grid_weights_cpu.h", (*RANGE, *COMMON, ("double*", "scratch"))),
    "cuda": ("grid_weights.cuh", COMMON),
}
NEAR_SKELETONS: dict[str, tuple[str, Arguments]] = {
    "cpu": ("grid_near_cpu.h", (*RANGE, *NEAR)),
    "cuda": ("grid_near.cuh", (("INDEX", "groups"), *NEAR)),
}


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
    skeleton, arguments = WEIGHTS_SKELETONS[target]
    return assemble(entry, target, "double", arguments, _defines(stratmann), ("grid_cells.h", skeleton))


@cache
def near_source(target: str, stratmann: bool) -> Source:
    """Lists of atoms for groups of points."""
    entry = "grid_near_stratmann" if stratmann else "grid_near_becke"
    skeleton, arguments = NEAR_SKELETONS[target]
    body = ("grid_cells.h", "grid_near.h", skeleton)
    return assemble(entry, target, "double", arguments, _defines(stratmann), body)
