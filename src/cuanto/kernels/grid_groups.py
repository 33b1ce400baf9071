"""Kernels that make a grid on a device: points, extents of groups, lists of shells."""

from __future__ import annotations

from functools import cache

from cuanto.kernels.abi import Arguments
from cuanto.kernels.text import Source, assemble

SETUP_THREADS = 64

PLACE: Arguments = (
    ("INDEX", "points"),
    ("INDEX", "atoms"),
    ("const INDEX*", "atom_first"),
    ("const INDEX*", "pattern_first"),
    ("const double*", "pattern"),
    ("const double*", "pattern_weight"),
    ("const double*", "pattern_depth"),
    ("const double*", "atom"),
    ("const double*", "low"),
    ("const INDEX*", "cubes"),
    ("double", "edge"),
    ("double", "fraction"),
    ("double*", "position"),
    ("int*", "own"),
    ("double*", "weight"),
    ("INDEX*", "key"),
)
EXTENTS: Arguments = (
    ("INDEX", "points"),
    ("const double*", "position"),
    ("const INDEX*", "first"),
    ("double*", "box_low"),
    ("double*", "box_high"),
    ("double*", "centre"),
    ("double*", "radius"),
)
SIGNIFICANT: Arguments = (
    ("INDEX", "shells"),
    ("const double*", "box_low"),
    ("const double*", "box_high"),
    ("const double*", "centre"),
    ("const double*", "radius"),
    ("const double*", "shell_centre"),
    ("const double*", "reach"),
    ("const int*", "shell_size"),
)
COUNT: Arguments = (
    *SIGNIFICANT,
    ("const unsigned long long*", "shell_mark"),
    ("int*", "group_shells"),
    ("int*", "group_functions"),
    ("unsigned long long*", "group_mark"),
)
FILL: Arguments = (
    *SIGNIFICANT,
    ("const int*", "shell_ao"),
    ("const INDEX*", "chosen"),
    ("const INDEX*", "list_first"),
    ("const INDEX*", "ao_first"),
    ("int*", "list_shell"),
    ("int*", "list_row"),
    ("int*", "ao"),
)
KERNELS = {"place": PLACE, "extents": EXTENTS, "count": COUNT, "fill": FILL}


@cache
def setup_kernel(name: str) -> Source:
    """`place`, `extents`, `count` or `fill`."""
    defines = {"SETUP_THREADS": SETUP_THREADS, f"KERNEL_{name.upper()}": 1}
    arguments, body = KERNELS[name], ("grid_groups.cuh",)
    return assemble(f"grid_{name}", "cuda", "double", arguments, defines, body, threads=SETUP_THREADS)
