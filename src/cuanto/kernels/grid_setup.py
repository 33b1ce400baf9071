"""Kernels that set up a grid: points, extents of groups, lists of shells, atomic weights and their derivatives."""

from __future__ import annotations

from functools import cache

from cuanto import tuning
from cuanto.kernels.abi import SCRATCH, parse_arguments
from cuanto.kernels.text import SUMS, Source, assemble

SETUP_THREADS = tuning.size("cuda", "grid.setup_threads")
RANGE = parse_arguments("INDEX begin, INDEX end")

PLACE = RANGE + parse_arguments(
    "INDEX points, INDEX atoms, const INDEX* atom_first, const INDEX* pattern_first, const double* pattern, const "
    "double* pattern_weight, const double* pattern_depth, const double* atom, const double* low, const INDEX* "
    "cubes, double edge, double fraction, double* position, int* own, double* weight, INDEX* key"
)
EXTENTS = RANGE + parse_arguments(
    "INDEX points, const double* position, const INDEX* first, double* box_low, double* box_high, double* centre, "
    "double* radius"
)
BOXES = RANGE + parse_arguments(
    "const double* box_low, const double* box_high, const double* centre, const double* radius, const double* "
    "shell_centre"
)
SIGNIFICANT = BOXES + parse_arguments("INDEX shells, const double* reach, const int* shell_size")
BOUND = BOXES + parse_arguments(
    "const INDEX* list_first, const int* list_shell, const int* shell_kind, const double* envelope, INDEX "
    "envelope_steps, double reach_step, double* bound"
)
COUNT = SIGNIFICANT + parse_arguments(
    "const unsigned long long* shell_mark, int* group_shells, int* group_functions, unsigned long long* group_mark"
)
FILL = SIGNIFICANT + parse_arguments(
    "const int* shell_ao, const INDEX* chosen, const INDEX* list_first, const INDEX* ao_first, int* list_shell, "
    "int* list_row, int* ao"
)
KERNELS = {"place": PLACE, "extents": EXTENTS, "count": COUNT, "fill": FILL, "bound": BOUND}
BLOCK_POINTS = tuning.size("cpu", "grid.weight_points")
NEAREST = tuning.size("cpu", "grid.nearest_atoms")
NEAR_THREADS = tuning.size("cuda", "grid.near_threads")

WEIGHT_ARGUMENTS = parse_arguments(
    "INDEX begin, INDEX end, const double* position, INDEX stride, const int* own, const int* block_point, const int* "
    "block_list, const double* radius, const int* list_atom, const double* list_distance, const int* list_rows, const "
    "int* list_count, const double* atom, const double* pair, INDEX atoms, double* weight"
)
NEAR = RANGE + parse_arguments(
    "const double* centre, const double* radius, const double* atom, const double* pair, INDEX atoms, int* list_atom, "
    "double* list_distance, int* list_rows, int* list_count"
)
WEIGHTS = {"cpu": "grid_weights_cpu.h", "cuda": "grid_weights.cuh"}
"""Templates of the weights: a CPU stores the distances from a block of points; a GPU thread recomputes them."""


def _defines(stratmann: bool) -> dict[str, object]:
    return {
        "STRATMANN": int(stratmann),
        "BLOCK_POINTS": BLOCK_POINTS,
        "NEAREST": NEAREST,
        "NEAR_THREADS": NEAR_THREADS,
    }


@cache
def weights_source(target: str, stratmann: bool) -> Source:
    """Weights by Becke's cell function, or by Stratmann's, whose finite range excludes distant atoms."""
    entry = "grid_weights_stratmann" if stratmann else "grid_weights_becke"
    body = ("grid_cells.h", WEIGHTS[target])
    arguments = WEIGHT_ARGUMENTS + SCRATCH[target]
    return assemble(entry, target, "double", arguments, _defines(stratmann), body, threads=BLOCK_POINTS)


@cache
def weights_gradient_source(target: str, stratmann: bool) -> Source:
    """Derivative of the cell functions with respect to atoms, summed over points with the factors `weight`."""
    entry = "grid_weights_gradient_stratmann" if stratmann else "grid_weights_gradient_becke"
    arguments = WEIGHT_ARGUMENTS + parse_arguments("double* out") + SUMS
    body = ("grid_cells.h", "grid_weights_gradient.h")
    return assemble(entry, target, "double", arguments, _defines(stratmann), body, threads=BLOCK_POINTS)


def weights_scratch(target: str, atoms: int) -> int:
    """Bytes of a worker: for every atom distances from a block of points, a list entry, and flags of at most
    BLOCK_POINTS / 2 vectors; a thread of a GPU recomputes distances."""
    return 8 * {"cpu": BLOCK_POINTS + 3 + BLOCK_POINTS // 8, "cuda": 0}[target] * atoms


@cache
def near_source(target: str, stratmann: bool) -> Source:
    """Lists of atoms for groups of points."""
    entry = "grid_near_stratmann" if stratmann else "grid_near_becke"
    arguments, body = NEAR, ("grid_cells.h", "grid_near.h")
    defines, threads = _defines(stratmann), NEAR_THREADS
    return assemble(entry, target, "double", arguments, defines, body, threads=threads, per_block=threads)


@cache
def setup_kernel(name: str, target: str) -> Source:
    """`place`, `extents`, `count`, `fill` or `bound`; an item is a point (for a thread) or a group (for a team)."""
    threads = SETUP_THREADS
    defines = {"SETUP_THREADS": threads, f"KERNEL_{name.upper()}": 1}
    per_block = threads if name == "place" else 1
    arguments, body = KERNELS[name], ("grid_groups.h",)
    return assemble(f"grid_{name}", target, "double", arguments, defines, body, threads=threads, per_block=per_block)
