"""Basis functions and their derivatives at points: generated from the solid harmonics of each kind of shell.

A function is R(r) S(x, y, z) with R = sum_k c_k exp(-a_k r^2) and a polynomial S about its centre. With
T = (1/r) dR/dr = sum_k -2 a_k c_k exp(-a_k r^2) its gradient is R dS/dx + T x S, and with U = (1/r) dT/dr its second
derivatives are R d2S/dxdy + T (x dS/dy + y dS/dx) + (U x y + T [x = y]) S.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations_with_replacement

import numpy as np

from cuanto.basis.solid_harmonics import cartesian_powers, shell_matrix
from cuanto.kernels.abi import Arguments, declared
from cuanto.kernels.emit.syntax import Syntax, straight_line
from cuanto.kernels.ir import Graph, Stage
from cuanto.kernels.text import SYNTAX, Source, assemble, template

ShellKind = tuple[int, bool]
"""Angular momentum; pure or Cartesian."""
ShellTexts = tuple[tuple[ShellKind, ...], int, str]
"""What the text of functions depends on: kinds of shells, most contraction columns, family of functionals."""

SHELL_FIELDS = 4
"""Integers of a shell: kind, primitives, contraction columns, first number of its primitives."""
PANEL_PAD = 24
"""Points come in multiples of this on the CPU: three vectors of two, four or eight lanes."""
BLOCK_POINTS = 192
"""Points whose values the matrix kernel of the CPU has at hand together."""
THREADS = 64
"""Points of a block of threads."""

COMPONENTS = {"lda": 1, "gga": 4, "mgga": 5}
"""Numbers at a point: density, its gradient, kinetic-energy density."""

ORDER = {"lda": 0, "gga": 1, "mgga": 1}
"""Derivatives of functions that a density has."""
VALUES = (1, 4, 10)
"""Numbers of a function at a point, by the order of derivatives."""

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
CPU_GRADIENT = POINTS + declared(
    "const REAL* given, INDEX nbf, int width, int spins, INDEX local, const REAL* potential, const int* shell_atom, "
    "const int* own, double* sums, double* out"
)

RADIAL = "VEC x, VEC y, VEC z, VEC R, VEC T, VEC U"
"""What functions are made of: coordinates about the centre, radial parts."""


def polynomials(kind: ShellKind, order: int) -> Stage:
    """Values [function], then up to `order` 2 slopes [axis, function] and [xx, xy, xz, yy, yz, zz][function].

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
        """Of the angular parts, along so many axes."""
        factors, nodes = np.ones(len(powers)), []
        for k, abc in enumerate(powers):
            left = list(abc)
            for x in along:
                factors[k] *= left[x]
                left[x] = max(0, left[x] - 1)
            nodes.append(monomial(tuple(left)) if factors[k] else graph.zero)
        return [_combination(graph, row * factors, nodes) for row in shell_matrix(*kind)]

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


def _combination(graph: Graph, row: np.ndarray[tuple[int], np.dtype[np.float64]], nodes: list[int]) -> int:
    return graph.sum((float(c), node, graph.one) for c, node in zip(row, nodes, strict=True) if c)


def _function(number: int, kind: ShellKind, order: int, syntax: Syntax) -> str:
    stage = polynomials(kind, order)
    count = len(shell_matrix(*kind))

    def write(k: int, name: str) -> str:
        return f"store({k // count}, {k % count}, {name});"

    lines = straight_line(stage, syntax, lambda record, _: record, write)
    head = f"template <class S> FN void functions_{number}({RADIAL}, const S& store)"
    return "\n".join([head + " {", *("    " + line for line in lines), "}"])


def functions_text(kinds: tuple[ShellKind, ...], order: int, target: str) -> str:
    """All kinds, and the choice among them by number, in double precision (`ao_wide.h`)."""
    parts = [_function(number, kind, order, SYNTAX[target]) for number, kind in enumerate(kinds)]
    cases = [f"        case {i}: functions_{i}(x, y, z, R, T, U, store); break;" for i in range(len(kinds))]
    head = f"template <class S> FN void functions_of(int kind, {RADIAL}, const S& store) {{"
    counts = ", ".join(str(len(shell_matrix(*kind))) for kind in kinds)
    count = f"FN int functions_in(int kind) {{\n    const int counts[] = {{{counts}}};\n    return counts[kind];\n}}"
    text = "\n".join([*parts, head, "    switch (kind) {", *cases, "    }", "}", count, ""])
    return template("ao_wide.h") + text.replace("VEC", "WIDE").replace("REAL", "double")


def _defines(family: str, columns: int) -> dict[str, object]:
    return {
        "GRADIENT": int(family != "lda"),
        "KINETIC": int(family == "mgga"),
        "COMPONENTS": COMPONENTS[family],
        "MAX_COLUMNS": columns,
        "SHELL_FIELDS": SHELL_FIELDS,
        "BLOCK_POINTS": BLOCK_POINTS,
        "THREADS": THREADS,
    }


def _panels(
    name: str, real: str, arguments: Arguments, shells: ShellTexts, merge: str = "", higher: int = 0, **more: object
) -> Source:
    """A kernel of the CPU that works on panels of points; `higher`: derivatives beyond those that the density needs."""
    kinds, columns, family = shells
    order = ORDER[family] + higher
    functions = functions_text(kinds, order, "cpu")
    body = (functions, "ao_shells.h", "grid_panel_cpu.h", "grid_blocks_cpu.h", f"{name}_cpu.h")
    defines = {**_defines(family, columns), "ORDER": order, **more}
    return assemble(f"{name}_{family}", "cpu", real, arguments, defines, body, merge=merge)


@cache
def cpu_values(shells: ShellTexts, real: str) -> Source:
    """Values in panels, to be kept."""
    return _panels("grid_values", real, POINTS, shells)


@cache
def cpu_density(shells: ShellTexts, real: str, orbitals: bool) -> Source:
    """Density and what else the family needs, from orbitals or from a density matrix."""
    return _panels("grid_density", real, CPU_DENSITY, shells, ORBITALS=int(orbitals))


@cache
def cpu_matrix(shells: ShellTexts, real: str) -> Source:
    """Half of the Kohn-Sham matrix, to be completed by its transpose."""
    return _panels("grid_matrix", real, CPU_MATRIX, shells, merge="merge_blocks")


@cache
def cpu_gradient(shells: ShellTexts, orbitals: bool) -> Source:
    """The derivative with respect to atoms, at a fixed density matrix, which may be given by orbitals."""
    return _panels("grid_gradient", "double", CPU_GRADIENT, shells, higher=1, ORBITALS=int(orbitals))
