"""Kernels of the quadrature: basis functions and their derivatives at points, densities, Kohn-Sham matrices, gradients.

A function is R(r) S(x, y, z) with R = sum_k c_k exp(-a_k r^2) and a polynomial S about its centre. With
T = (1/r) dR/dr = sum_k -2 a_k c_k exp(-a_k r^2) its gradient is R dS/dx + T x S, and with U = (1/r) dT/dr its second
derivatives are R d2S/dxdy + T (x dS/dy + y dS/dx) + (U x y + T [x = y]) S.

On a GPU kernels surround batched matrix products: a batch is T tasks of P points and F functions each (filled up with
zeros); arrays are [component][task][function][point].
"""

from __future__ import annotations

from functools import cache
from itertools import combinations_with_replacement

from cuanto import tuning
from cuanto.basis.solid_harmonics import cartesian_powers, shell_matrix
from cuanto.kernels.abi import Arguments, parse_arguments
from cuanto.kernels.emit import function, straight_line
from cuanto.kernels.ir import Graph, Stage, linear
from cuanto.kernels.text import SUMS, Source, assemble, template

ShellKind = tuple[int, bool]
"""Angular momentum; pure or Cartesian."""
ShellTexts = tuple[tuple[ShellKind, ...], int, str]
"""Parameters of a kernel text: kinds of shells, largest number of contraction columns, family of functionals."""

SHELL_FIELDS = 4
"""Integers of a shell: kind, primitives, contraction columns, first number of its primitives."""
PANEL_PAD = 24
"""Points come in multiples of this on the CPU: three vectors of two, four or eight lanes."""
BLOCK_POINTS = tuning.size("cpu", "grid.block_points")
THREADS = tuning.size("cuda", "grid.threads")

COMPONENTS = {"lda": 1, "gga": 4, "mgga": 5}
"""Numbers at a point: density, its gradient, kinetic-energy density."""
ORDER = {"lda": 0, "gga": 1, "mgga": 1}
"""Highest derivatives of functions in the density."""
VALUE_COUNTS = (1, 4, 10)
"""Numbers of a function at a point by the order of derivatives: value, gradient, second derivatives."""

POINTS = parse_arguments(
    "INDEX begin, INDEX end, const INDEX* block_task, const INDEX* task_point, const int* task_group, const "
    "INDEX* task_kept, const double* position, INDEX stride, const INDEX* list_first, const int* list_shell, "
    "const int* list_row, const INDEX* ao_first, const int* ao, const INDEX* run_first, const int* run_row, const "
    "int* run_ao, const INDEX* depth_first, const int* tile_depth, const INDEX* part_first, const int* part_row, "
    "const int* part_ao, const int* shell, const double* centre, const double* primitive, REAL* kept, int "
    "keeping, void* scratch"
)
"""Blocks of groups of points with their functions (templates/grid_blocks_cpu.h)."""
CPU_DENSITY = POINTS + parse_arguments("const REAL* given, INDEX nbf, int width, int spins, INDEX local, REAL* out")
CPU_MATRIX = POINTS + parse_arguments(
    "const REAL* potential, INDEX nbf, int spins, INDEX group_sums, double* sums, double* out"
)
CPU_GRADIENT = POINTS + parse_arguments(
    "const REAL* given, INDEX nbf, int width, int spins, INDEX local, const REAL* potential, const int* shell_atom, "
    "const int* own, double* sums, double* out"
)
RADIAL = "VEC x, VEC y, VEC z, VEC R, VEC T, VEC U"
"""Arguments of functions: coordinates relative to the centre, and radial parts."""

SIZES = parse_arguments("INDEX tasks, INDEX rows, INDEX points")
VALUES = SIZES + parse_arguments(
    "const INDEX* task_point, const int* task_functions, const INDEX* task_list, const int* task_shells, const "
    "double* position, INDEX stride, const int* list_shell, const int* list_row, const int* shell, const double* "
    "centre, const double* primitive, REAL* values"
)
FUNCTIONS = parse_arguments("const INDEX* task_ao, const int* task_functions, const int* ao")
"""The functions of a task: ao[task_ao[task]] and following."""
GATHER = (
    parse_arguments("INDEX rows, INDEX columns")
    + FUNCTIONS
    + parse_arguments("const REAL* given, INDEX width, REAL* part")
)
DENSITY = SIZES + parse_arguments(
    "const INDEX* task_point, INDEX stride, const REAL* values, const REAL* product, REAL* out"
)
WEIGH = SIZES + parse_arguments(
    "const INDEX* task_point, INDEX stride, const REAL* values, const REAL* potential, REAL* weighed"
)
SCATTER = parse_arguments("INDEX rows") + FUNCTIONS + parse_arguments("const REAL* part, INDEX nbf") + SUMS
FORCE = WEIGH[:-1] + FUNCTIONS + parse_arguments("const REAL* product, const int* function_atom, REAL* force") + SUMS
ATOMS = (
    parse_arguments("INDEX begin, INDEX end")
    + SIZES
    + parse_arguments("const INDEX* task_point, const int* own, const REAL* force")
    + SUMS
)
ELEMENT_THREADS = tuning.size("cuda", "grid.element_threads")
ROW_THREADS = tuning.size("cuda", "grid.row_threads")
DENSITY_POINTS = tuning.size("cuda", "grid.density_points")
SQUARE = 32 * 32
"""Elements of a block of the kernel `weigh`."""


def polynomials(kind: ShellKind, order: int) -> Stage:
    """Values [function] and, by `order`, gradients [axis, function] and [xx, xy, xz, yy, yz, zz][function].

    Inputs: x, y, z, R, T and U.
    """
    graph = Graph()
    axes = [graph.input(name, 0, False) for name in "xyz"]
    R, T, U = (graph.input(name, 0, False) for name in "RTU")
    powers = cartesian_powers(kind[0])

    def monomial(exponents: tuple[int, ...]) -> int:
        node = graph.one
        for axis, n in zip(axes, exponents, strict=True):
            node = graph.mul(node, graph.power(axis, n))
        return node

    def derivatives(*along: int) -> list[int]:
        """Derivatives of the angular parts along some axes."""
        factors, nodes = [1.0] * len(powers), []
        for k, abc in enumerate(powers):
            left = list(abc)
            for x in along:
                factors[k] *= left[x]
                left[x] = max(0, left[x] - 1)
            nodes.append(monomial(tuple(left)) if factors[k] else graph.zero)
        return [linear(graph, (row * factors).tolist(), nodes) for row in shell_matrix(*kind)]

    S = derivatives()
    outputs = [graph.mul(R, s) for s in S]
    if order:
        slopes, scaled = [derivatives(x) for x in range(3)], [graph.mul(T, s) for s in S]
        for x in range(3):
            for slope, ts in zip(slopes[x], scaled, strict=True):
                outputs.append(graph.sum(((1.0, R, slope), (1.0, axes[x], ts))))
    if order == 2:
        for x, y in combinations_with_replacement(range(3), 2):
            tx, ty, uxy = (graph.mul(*two) for two in ((T, axes[x]), (T, axes[y]), (U, graph.mul(axes[x], axes[y]))))
            radial = graph.sum(((1.0, uxy, graph.one), (float(x == y), T, graph.one)))
            for s, s_x, s_y, s_xy in zip(S, slopes[x], slopes[y], derivatives(x, y), strict=True):
                outputs.append(graph.sum(((1.0, R, s_xy), (1.0, tx, s_y), (1.0, ty, s_x), (1.0, radial, s))))
    return Stage(graph, tuple(outputs))


def _function(number: int, kind: ShellKind, order: int) -> str:
    stage = polynomials(kind, order)
    count = len(shell_matrix(*kind))

    def write(k: int, name: str) -> str:
        return f"store({k // count}, {k % count}, {name});"

    lines = straight_line(stage, lambda record, _: record, write)
    head = f"template <class S> FN void functions_{number}({RADIAL}, const S& store)"
    return function(head, lines)


def functions_text(kinds: tuple[ShellKind, ...], order: int) -> str:
    """Functions of all kinds of shells and a switch between them, in double precision (`ao_wide.h`)."""
    parts = [_function(number, kind, order) for number, kind in enumerate(kinds)]
    cases = [f"        case {i}: functions_{i}(x, y, z, R, T, U, store); break;" for i in range(len(kinds))]
    head = f"template <class S> FN void functions_of(int kind, {RADIAL}, const S& store) {{"
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


def _panels(
    name: str, real: str, arguments: Arguments, shells: ShellTexts, merge: str = "", higher: int = 0, **more: object
) -> Source:
    """A kernel of the CPU that works on panels of points; `higher`: orders beyond those of the density."""
    kinds, columns, family = shells
    order = ORDER[family] + higher
    functions = functions_text(kinds, order)
    body = (functions, "ao_shells.h", "grid_panel_cpu.h", "grid_blocks_cpu.h", f"{name}_cpu.h")
    defines = {**_defines(family, columns), "ORDER": order, **more}
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
def cpu_gradient(shells: ShellTexts, orbitals: bool) -> Source:
    """Derivative of the energy with respect to atoms at a fixed density matrix, which may be given by orbitals."""
    return _panels("grid_gradient", "double", CPU_GRADIENT, shells, higher=1, ORBITALS=int(orbitals))


@cache
def device_values(shells: ShellTexts, real: str, higher: int = 0) -> Source:
    """Values of all functions of a task, one thread per point; `higher`: orders beyond those of the density."""
    kinds, columns, family = shells
    order = ORDER[family] + higher
    defines = {**_defines(family, columns), "ORDER": order}
    body = (functions_text(kinds, order), "ao_shells.h", "grid_values.cuh")
    entry = f"grid_values_{family}"
    return assemble(entry, "cuda", real, VALUES, defines, body, threads=THREADS, per_block=THREADS)


@cache
def device_kernel(name: str, family: str, real: str) -> Source:
    """A kernel by name: `density`, `weigh`, `right` or `force` of a family, `gather_matrix`, `gather_orbitals`,
    `gather_transposed`, `scatter` or `atoms`."""
    known = {"density": DENSITY, "weigh": WEIGH, "scatter": SCATTER, "right": WEIGH, "force": FORCE, "atoms": ATOMS}
    arguments = known.get(name, GATHER)
    defines = {**_defines(family), f"KERNEL_{name.upper()}": 1}
    threads = ELEMENT_THREADS if name in ("density", "weigh", "right", "atoms") else ROW_THREADS
    of_gradient = name in ("right", "force", "atoms")
    entry, body = f"grid_{name}_{family}", ("grid_gradient.cuh" if of_gradient else "grid_batch.cuh",)
    per_block = ELEMENT_THREADS if name == "atoms" else 1
    return assemble(entry, "cuda", real, arguments, defines, body, threads=threads, per_block=per_block)
