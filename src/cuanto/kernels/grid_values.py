"""Basis functions and their gradients at points: generated from the solid harmonics of each kind of shell.

A function is R(r) S(x, y, z) with R = sum_k c_k exp(-a_k r^2) and a polynomial S about its centre. With
T = (1/r) dR/dr = sum_k -2 a_k c_k exp(-a_k r^2) its gradient is R dS/dx + T x S.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from cuanto.basis.solid_harmonics import cartesian_powers, shell_matrix
from cuanto.kernels.abi import Arguments
from cuanto.kernels.emit.syntax import Syntax, straight_line
from cuanto.kernels.ir import Graph, Stage
from cuanto.kernels.text import SYNTAX, Source, assemble, template

ShellKind = tuple[int, bool]
"""Angular momentum; pure or Cartesian."""

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

PLACES: Arguments = (
    ("const double*", "position"),
    ("INDEX", "stride"),
    ("const int*", "list_shell"),
    ("const int*", "list_row"),
    ("int", "list_count"),
    ("const int*", "ao"),
    ("int", "functions"),
    ("const int*", "run_row"),
    ("const int*", "run_ao"),
    ("int", "runs"),
    ("const int*", "tile_depth"),
    ("const int*", "shell"),
    ("const double*", "centre"),
    ("const double*", "primitive"),
)
CPU_RANGE: Arguments = (("INDEX", "begin"), ("INDEX", "end"), *PLACES, ("REAL*", "kept"))
CPU_VALUES: Arguments = CPU_RANGE
CPU_DENSITY: Arguments = (
    *CPU_RANGE,
    ("int", "keeping"),
    ("const REAL*", "given"),
    ("INDEX", "nbf"),
    ("int", "width"),
    ("int", "spins"),
    ("REAL*", "scratch"),
    ("REAL*", "out"),
)
CPU_MATRIX: Arguments = (
    *CPU_RANGE,
    ("int", "keeping"),
    ("const REAL*", "potential"),
    ("INDEX", "nbf"),
    ("int", "spins"),
    ("REAL*", "scratch"),
    ("double*", "sums"),
    ("double*", "out"),
    ("int*", "locks"),
)
CPU_LOCAL: Arguments = (
    ("const int*", "run_row"),
    ("const int*", "run_ao"),
    ("int", "runs"),
    ("INDEX", "functions"),
    ("INDEX", "spins"),
    ("INDEX", "nbf"),
    ("INDEX", "width"),
    ("LARGE*", "large"),
    ("LOCAL*", "local"),
    ("int*", "locks"),
)


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

    S = [_combination(graph, row, [monomial(abc) for abc in powers]) for row in shell_matrix(*kind)]
    outputs = [graph.mul(R, s) for s in S]
    if gradient:
        scaled = [graph.mul(T, s) for s in S]
        for x in range(3):
            for row, ts in zip(shell_matrix(*kind), scaled, strict=True):
                slopes = [abc[x] * c for c, abc in zip(row, powers, strict=True)]
                lowered = [monomial(tuple(n - (i == x) for i, n in enumerate(abc))) if abc[x] else graph.zero
                           for abc in powers]  # fmt: skip
                slope = _combination(graph, np.array(slopes), lowered)
                outputs.append(graph.sum(((1.0, R, slope), (1.0, axes[x], ts))))
    return Stage(graph, tuple(outputs))


def _combination(graph: Graph, row: np.ndarray[tuple[int], np.dtype[np.float64]], nodes: list[int]) -> int:
    return graph.sum((float(c), node, graph.one) for c, node in zip(row, nodes, strict=True) if c)


def _function(number: int, kind: ShellKind, gradient: bool, syntax: Syntax) -> str:
    stage = polynomials(kind, gradient)
    count = len(shell_matrix(*kind))

    def write(k: int, name: str) -> str:
        return f"store({k // count}, {k % count}, {name});"

    lines = straight_line(stage, syntax, lambda record, _: record, write)
    head = f"template <class S> FN void functions_{number}(VEC x, VEC y, VEC z, VEC R, VEC T, const S& store)"
    return "\n".join([head + " {", *("    " + line for line in lines), "}"])


def functions_text(kinds: tuple[ShellKind, ...], gradient: bool, target: str) -> str:
    """All kinds, and the choice among them by number, in double precision (`ao_wide.h`)."""
    parts = [_function(number, kind, gradient, SYNTAX[target]) for number, kind in enumerate(kinds)]
    cases = [f"        case {i}: functions_{i}(x, y, z, R, T, store); break;" for i in range(len(kinds))]
    head = "template <class S> FN void functions_of(int kind, VEC x, VEC y, VEC z, VEC R, VEC T, const S& store) {"
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


def _panel_source(
    name: str,
    kinds: tuple[ShellKind, ...],
    family: str,
    real: str,
    arguments: Arguments,
    defines: dict[str, object],
) -> Source:
    """A kernel that has the functions' values in panels."""
    functions = functions_text(kinds, family != "lda", "cpu")
    body = (functions, "ao_shells.h", "grid_panel_cpu.h", f"grid_{name}_cpu.h")
    return assemble(f"grid_{name}_{family}", "cpu", real, arguments, defines, body)


@cache
def cpu_values(kinds: tuple[ShellKind, ...], columns: int, family: str, real: str) -> Source:
    """Values in panels, to be kept."""
    return _panel_source("values", kinds, family, real, CPU_VALUES, _defines(family, columns))


@cache
def cpu_density(kinds: tuple[ShellKind, ...], columns: int, family: str, real: str, orbitals: bool) -> Source:
    """Density and what else the family needs, from orbitals or from a density matrix."""
    defines = {**_defines(family, columns), "ORBITALS": int(orbitals)}
    return _panel_source("density", kinds, family, real, CPU_DENSITY, defines)


@cache
def cpu_matrix(kinds: tuple[ShellKind, ...], columns: int, family: str, real: str) -> Source:
    """Half of the Kohn-Sham matrix, to be completed by its transpose."""
    return _panel_source("matrix", kinds, family, real, CPU_MATRIX, _defines(family, columns))


@cache
def cpu_local(real: str, scatter: bool) -> Source:
    """Copy a part of density matrices to a small one, or add small sums to Kohn-Sham matrices."""
    kinds = {"LARGE": "double", "LOCAL": "double"} if scatter else {"LARGE": f"const {real}", "LOCAL": real}
    entry = "grid_add_local" if scatter else "grid_take_local"
    return assemble(entry, "cpu", real, CPU_LOCAL, {**kinds, "SCATTER": int(scatter)}, ("grid_local_cpu.h",))
