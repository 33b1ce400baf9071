"""Kernels of the quadrature on a GPU around its batched matrix products: values, gathering, sums, scattering.

A batch is T tasks of P points and F functions each (filled up with zeros); arrays are
[component][task][function][point].
"""

from __future__ import annotations

from functools import cache

from cuanto.kernels.abi import declared
from cuanto.kernels.grid_values import COMPONENTS, ORDER, SHELL_FIELDS, THREADS, ShellTexts, functions_text
from cuanto.kernels.text import Source, assemble

SIZES = declared("INDEX tasks, INDEX rows, INDEX points")
VALUES = SIZES + declared(
    "const INDEX* task_point, const int* task_functions, const INDEX* task_list, const int* task_shells, const "
    "double* position, INDEX stride, const int* list_shell, const int* list_row, const int* shell, const double* "
    "centre, const double* primitive, REAL* values"
)
FUNCTIONS = declared("const INDEX* task_ao, const int* task_functions, const int* ao")
"""The functions of a task: ao[task_ao[task]] and following."""
GATHER = declared("INDEX rows, INDEX columns") + FUNCTIONS + declared("const REAL* given, INDEX width, REAL* part")
DENSITY = SIZES + declared("const INDEX* task_point, INDEX stride, const REAL* values, const REAL* product, REAL* out")
WEIGH = SIZES + declared(
    "const INDEX* task_point, INDEX stride, const REAL* values, const REAL* potential, REAL* weighed"
)
SCATTER = declared("INDEX rows") + FUNCTIONS + declared("const REAL* part, INDEX nbf, double* out")
FORCE = WEIGH[:-1] + FUNCTIONS + declared("const REAL* product, const int* function_atom, REAL* force, double* out")
ELEMENT_THREADS = 256
ROW_THREADS = 128
"""Threads for a row of a matrix."""
DENSITY_POINTS = 32
"""Points of a block of the kernel `density`; its threads share the functions."""
SQUARE = 32 * 32
"""Elements of a block of the kernel `weigh`."""


def _defines(family: str) -> dict[str, object]:
    return {
        "GRADIENT": int(family != "lda"),
        "KINETIC": int(family == "mgga"),
        "COMPONENTS": COMPONENTS[family],
        "SHELL_FIELDS": SHELL_FIELDS,
        "THREADS": THREADS,
        "ELEMENT_THREADS": ELEMENT_THREADS,
        "ROW_THREADS": ROW_THREADS,
        "DENSITY_POINTS": DENSITY_POINTS,
    }


@cache
def device_values(shells: ShellTexts, real: str, higher: int = 0) -> Source:
    """A thread for a point: all functions of its task; `higher`: derivatives beyond those that the density needs."""
    kinds, columns, family = shells
    order = ORDER[family] + higher
    defines = {**_defines(family), "ORDER": order, "MAX_COLUMNS": columns}
    body = (functions_text(kinds, order, "cuda"), "ao_shells.h", "grid_values.cuh")
    entry = f"grid_values_{family}"
    return assemble(entry, "cuda", real, VALUES, defines, body, threads=THREADS, per_block=THREADS)


@cache
def device_kernel(name: str, family: str, real: str) -> Source:
    """`density`, `weigh`, `right` or `force` of a family, `gather_matrix`, `gather_orbitals`, `gather_turned` or
    `scatter`."""
    known = {"density": DENSITY, "weigh": WEIGH, "scatter": SCATTER, "right": WEIGH, "force": FORCE}
    arguments = known.get(name, GATHER)
    defines = {**_defines(family), f"KERNEL_{name.upper()}": 1}
    threads = ELEMENT_THREADS if name in ("density", "weigh", "right") else ROW_THREADS
    entry, body = f"grid_{name}_{family}", ("grid_gradient.cuh" if name in ("right", "force") else "grid_batch.cuh",)
    return assemble(entry, "cuda", real, arguments, defines, body, threads=threads)
