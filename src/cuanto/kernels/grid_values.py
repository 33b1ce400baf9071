"""Kernels of the quadrature: basis functions and their gradients at points, densities, Kohn-Sham matrices.

A function is R(r) S(x, y, z) with R = sum_k c_k exp(-a_k r^2) and a polynomial S about its centre. With
T = (1/r) dR/dr = sum_k -2 a_k c_k exp(-a_k r^2) its gradient is R dS/dx + T x S.

On a GPU kernels surround batched matrix products: a batch is T tasks of P points and F functions each (filled up with
zeros); arrays are [component][task][function][point].
"""

from __future__ import annotations

from functools import cache

from cuanto import tuning
from cuanto.basis.solid_harmonics import cartesian_powers, shell_matrix
from cuanto.kernels.abi import Arguments, declared
from cuanto.kernels.emit import function, straight_line
from cuanto.kernels.ir import Graph, Stage, linear
from cuanto.kernels.text import Source, assemble, template

ShellKind = tuple[int, bool]
"""Angular momentum; pure or Cartesian."""
ShellTexts = tuple[tuple[ShellKind, ...], int, str]
"""Parameters of the text of functions: kinds of shells, most contraction columns, family of functionals."""

SHELL_FIELDS = 4
"""Integers of a shell: kind, primitives, contraction columns, first number of its primitives."""
PANEL_PAD = 24
"""Points come in multiples of this on the CPU: three vectors of two, four or eight lanes."""
BLOCK_POINTS = tuning.size("cpu", "grid.block_points")
THREADS = tuning.size("cuda", "grid.threads")

COMPONENTS = {"lda": 1, "gga": 4, "mgga": 5}
"""Numbers at a point: density, its gradient, kinetic-energy density."""

POINTS = declared(
    "INDEX begin, INDEX end, const INDEX* block_task, const INDEX* task_point, const int* task_group, const "
    "INDEX* task_kept, const double* position, INDEX stride, const INDEX* list_first, const int* list_shell, "
    "const int* list_row, const INDEX* ao_first, const int* ao, const INDEX* run_first, const int* run_row, const "
    "int* run_ao, const INDEX* depth_first, const int* tile_depth, const INDEX* part_first, const int* part_row, "
    "const int* part_ao, const int* shell, const double* centre, const double* primitive, REAL* kept, int "
    "keeping, void* scratch"
)
"""Blocks of groups of points with their functions (templates/grid_blocks_cpu.h)."""
CPU_DENSITY = POINTS + declared("const REAL* given, INDEX nbf, int width, int spins, INDEX local, REAL* out")
CPU_MATRIX = POINTS + declared(
    "const REAL* potential, INDEX nbf, int spins, INDEX group_sums, double* sums, double* out"
)

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
ELEMENT_THREADS = tuning.size("cuda", "grid.element_threads")
ROW_THREADS = tuning.size("cuda", "grid.row_threads")
DENSITY_POINTS = tuning.size("cuda", "grid.density_points")
SQUARE = 32 * 32
"""Elements of a block of the kernel `weigh`."""


def polynomials(kind: ShellKind, gradient: bool) -> Stage:
    """Values [function], then with `gradient` [axis, function], of inputs x, y, z, R and T."""
    graph = Graph()
    axes = [graph.input(name, 0, False) for name in "xyz"]
    R, T = graph.input("R", 0, False), graph.input("T", 0, False)
    powers = cartesian_powers(kind[0])

    def monomial(exponents: tuple[int, ...]) -> int:
        node = graph.one
        for axis, n in zip(axes, exponents, strict=True):
            node = graph.mul(node, graph.power(axis, n))
        return node

    S = [linear(graph, row.tolist(), [monomial(abc) for abc in powers]) for row in shell_matrix(*kind)]
    outputs = [graph.mul(R, s) for s in S]
    if gradient:
        scaled = [graph.mul(T, s) for s in S]
        for x in range(3):
            for row, ts in zip(shell_matrix(*kind), scaled, strict=True):
                slopes = [abc[x] * c for c, abc in zip(row.tolist(), powers, strict=True)]
                lowered = [monomial(tuple(n - (i == x) for i, n in enumerate(abc))) if abc[x] else graph.zero
                           for abc in powers]  # fmt: skip
                slope = linear(graph, slopes, lowered)
                outputs.append(graph.sum(((1.0, R, slope), (1.0, axes[x], ts))))
    return Stage(graph, tuple(outputs))


def _function(number: int, kind: ShellKind, gradient: bool) -> str:
    stage = polynomials(kind, gradient)
    count = len(shell_matrix(*kind))

    def write(k: int, name: str) -> str:
        return f"store({k // count}, {k % count}, {name});"

    lines = straight_line(stage, lambda record, _: record, write)
    head = f"template <class S> FN void functions_{number}(VEC x, VEC y, VEC z, VEC R, VEC T, const S& store)"
    return function(head, lines)


def functions_text(kinds: tuple[ShellKind, ...], gradient: bool) -> str:
    """Functions of all kinds of shells and a switch between them, in double precision (`ao_wide.h`)."""
    parts = [_function(number, kind, gradient) for number, kind in enumerate(kinds)]
    cases = [f"        case {i}: functions_{i}(x, y, z, R, T, store); break;" for i in range(len(kinds))]
    head = "template <class S> FN void functions_of(int kind, VEC x, VEC y, VEC z, VEC R, VEC T, const S& store) {"
    counts = ", ".join(str(len(shell_matrix(*kind))) for kind in kinds)
    count = f"FN int functions_in(int kind) {{\n    const int counts[] = {{{counts}}};\n    return counts[kind];\n}}"
    text = "\n".join([*parts, head, "    switch (kind) {", *cases, "    }", "}", count, ""])
    return template("ao_wide.h") + text.replace("VEC", "WIDE").replace("REAL", "double")


def _defines(family: str, columns: int = 1) -> dict[str, object]:
    return {
        "GRADIENT": int(family != "lda"),
        "KINETIC": int(family == "mgga"),
        "COMPONENTS": COMPONENTS[family],
        "MAX_COLUMNS": columns,
        "SHELL_FIELDS": SHELL_FIELDS,
        "BLOCK_POINTS": BLOCK_POINTS,
        "THREADS": THREADS,
        "ELEMENT_THREADS": ELEMENT_THREADS,
        "ROW_THREADS": ROW_THREADS,
        "DENSITY_POINTS": DENSITY_POINTS,
    }


def _panels(name: str, real: str, arguments: Arguments, shells: ShellTexts, merge: str = "", **more: object) -> Source:
    """A kernel of the CPU that works on panels of points."""
    kinds, columns, family = shells
    functions = functions_text(kinds, family != "lda")
    body = (functions, "ao_shells.h", "grid_panel_cpu.h", "grid_blocks_cpu.h", f"{name}_cpu.h")
    defines = {**_defines(family, columns), **more}
    return assemble(f"{name}_{family}", "cpu", real, arguments, defines, body, merge=merge)


@cache
def cpu_values(shells: ShellTexts, real: str) -> Source:
    """Values in panels, to be stored."""
    return _panels("grid_values", real, POINTS, shells)


@cache
def cpu_density(shells: ShellTexts, real: str, orbitals: bool) -> Source:
    """Density, and its gradient and kinetic-energy density where needed, from orbitals or a density matrix."""
    return _panels("grid_density", real, CPU_DENSITY, shells, ORBITALS=int(orbitals))


@cache
def cpu_matrix(shells: ShellTexts, real: str) -> Source:
    """Half of the Kohn-Sham matrix; its transpose is added by the caller."""
    return _panels("grid_matrix", real, CPU_MATRIX, shells, merge="merge_blocks")


@cache
def device_values(shells: ShellTexts, real: str) -> Source:
    """Values of all functions of a task, one thread per point."""
    kinds, columns, family = shells
    body = (functions_text(kinds, family != "lda"), "ao_shells.h", "grid_values.cuh")
    entry = f"grid_values_{family}"
    return assemble(entry, "cuda", real, VALUES, _defines(family, columns), body, threads=THREADS, per_block=THREADS)


@cache
def device_kernel(name: str, family: str, real: str) -> Source:
    """`density` or `weigh` of a family, `gather_matrix`, `gather_orbitals`, `gather_transposed` or `scatter`."""
    arguments = {"density": DENSITY, "weigh": WEIGH, "scatter": SCATTER}.get(name, GATHER)
    defines = {**_defines(family), f"KERNEL_{name.upper()}": 1}
    threads = ELEMENT_THREADS if name in ("density", "weigh") else ROW_THREADS
    entry, body = f"grid_{name}_{family}", ("grid_batch.cuh",)
    return assemble(entry, "cuda", real, arguments, defines, body, threads=threads)
