"""Kernels that make a grid: points, extents of groups, lists of shells."""

from __future__ import annotations

from functools import cache

from cuanto import tuning
from cuanto.kernels.abi import declared
from cuanto.kernels.text import Source, assemble

SETUP_THREADS = tuning.size("cuda", "grid.setup_threads")
RANGE = declared("INDEX begin, INDEX end")

PLACE = RANGE + declared(
    "INDEX points, INDEX atoms, const INDEX* atom_first, const INDEX* pattern_first, const double* pattern, const "
    "double* pattern_weight, const double* pattern_depth, const double* atom, const double* low, const INDEX* "
    "cubes, double edge, double fraction, double* position, int* own, double* weight, INDEX* key"
)
EXTENTS = RANGE + declared(
    "INDEX points, const double* position, const INDEX* first, double* box_low, double* box_high, double* centre, "
    "double* radius"
)
BOXES = RANGE + declared(
    "const double* box_low, const double* box_high, const double* centre, const double* radius, const double* "
    "shell_centre"
)
SIGNIFICANT = BOXES + declared("INDEX shells, const double* reach, const int* shell_size")
BOUND = BOXES + declared(
    "const INDEX* list_first, const int* list_shell, const int* shell_kind, const double* envelope, INDEX "
    "envelope_steps, double reach_step, double* bound"
)
COUNT = SIGNIFICANT + declared(
    "const unsigned long long* shell_mark, int* group_shells, int* group_functions, unsigned long long* group_mark"
)
FILL = SIGNIFICANT + declared(
    "const int* shell_ao, const INDEX* chosen, const INDEX* list_first, const INDEX* ao_first, int* list_shell, "
    "int* list_row, int* ao"
)
KERNELS = {"place": PLACE, "extents": EXTENTS, "count": COUNT, "fill": FILL, "bound": BOUND}
SQRT = {"cpu": "__builtin_sqrt", "cuda": "sqrt"}


@cache
def setup_kernel(name: str, target: str) -> Source:
    """`place`, `extents`, `count`, `fill` or `bound`; points are items of threads, groups of teams."""
    defines = {"SETUP_THREADS": SETUP_THREADS, f"KERNEL_{name.upper()}": 1, "SQRT": SQRT[target]}
    per_block = SETUP_THREADS if name == "place" else 1
    return assemble(
        f"grid_{name}",
        target,
        "double",
        KERNELS[name],
        defines,
        ("grid_groups.h",),
        threads=SETUP_THREADS,
        per_block=per_block,
    )
