"""Kernels that divide the molecule's points among its atoms."""

from __future__ import annotations

from functools import cache

from cuanto.kernels.abi import Arguments
from cuanto.kernels.build import Source
from cuanto.kernels.grid_text import kernel_text

BLOCK_POINTS = 128
"""Points of a block of threads, at most: a part of a group, which has a list of atoms."""

COMMON: Arguments = (
    ("const double*", "position"),
    ("INDEX", "stride"),
    ("const int*", "own"),
    ("const int*", "block_point"),
    ("const int*", "block_list"),
    ("const double*", "list_radius"),
    ("const INDEX*", "list_first"),
    ("const int*", "list_atom"),
    ("const double*", "list_distance"),
    ("const double*", "atom"),
    ("const double*", "pair"),
    ("INDEX", "atoms"),
    ("double*", "weight"),
)
CPU_ARGUMENTS: Arguments = (("INDEX", "begin"), ("INDEX", "end"), *COMMON, ("double*", "scratch"))
CUDA_ARGUMENTS: Arguments = COMMON


@cache
def weights_source(target: str, stratmann: bool) -> Source:
    """Becke's cell function, or Stratmann's, whose finite reach ends the loops early."""
    entry = "grid_weights_stratmann" if stratmann else "grid_weights_becke"
    arguments = CPU_ARGUMENTS if target == "cpu" else CUDA_ARGUMENTS
    skeleton = "grid_weights_cpu.h" if target == "cpu" else "grid_weights.cuh"
    defines = {"STRATMANN": int(stratmann), "BLOCK_POINTS": BLOCK_POINTS}
    return kernel_text(target, entry, "double", arguments, defines, ("grid_cells.h", skeleton))
