"""Kernels of density functionals: energy density and first derivatives at grid points, from a formula.

rho[spin][point], sigma[pair][point] and tau[spin][point] have rows of `stride` numbers; with one spin rho, sigma and
tau are those of both electrons together, with two the pairs are aa, ab, bb. Results: e[point] (energy per volume) and
the derivatives v_rho, v_sigma, v_tau in the layout of what they belong to.
"""

from __future__ import annotations

from collections.abc import Sequence

from cuanto.kernels.abi import Arguments
from cuanto.kernels.functional_graph import Formula, Value
from cuanto.kernels.text import Source, assemble

THREADS = 128
"""Points of a block of threads."""
FAMILIES = ("lda", "gga", "mgga")
VARIABLES = {1: {"lda": 1, "gga": 2, "mgga": 3}, 2: {"lda": 2, "gga": 5, "mgga": 7}}
"""How many variables a family has, by number of spins."""
FLOORS = {
    "double": {"RHO_FLOOR": 1e-14, "SPIN_FLOOR": 1e-24, "SIGMA_FLOOR": 1e-70, "TAU_FLOOR": 1e-40},
    "float": {"RHO_FLOOR": 1e-8, "SPIN_FLOOR": 1e-10, "SIGMA_FLOOR": 1e-30, "TAU_FLOOR": 1e-17},
}
"""Total density below which a point counts nothing; least values of a spin's density, |gradient|^2 and kinetic energy
density. Those of single precision keep every power in the formulas within its range."""

ARGUMENTS: Arguments = (
    ("INDEX", "begin"),
    ("INDEX", "end"),
    ("INDEX", "stride"),
    ("const REAL*", "rho"),
    ("const REAL*", "sigma"),
    ("const REAL*", "tau"),
    ("REAL*", "e"),
    ("REAL*", "v_rho"),
    ("REAL*", "v_sigma"),
    ("REAL*", "v_tau"),
)
MATHEMATICS = {"cpu": "xc_math_cpu.h", "cuda": "xc_math.cuh"}
SKELETONS = {"cpu": "xc_cpu.h", "cuda": "xc.cuh"}


def reachable(formula: Formula, outputs: Sequence[Value]) -> list[int]:
    """The nodes that the outputs need, arguments first."""
    needed: set[int] = set()
    stack = [output.node for output in outputs]
    while stack:
        node = stack.pop()
        if node not in needed:
            needed.add(node)
            stack.extend(formula.arguments[node])
    return sorted(needed)


def operations(formula: Formula, outputs: Sequence[Value]) -> tuple[int, int]:
    """Additions, multiplications and selections; calls of functions (reciprocals among them)."""
    kinds = [formula.operation[node] for node in reachable(formula, outputs)]
    simple = sum(kind in ("add", "mul", "select") for kind in kinds)
    return simple, sum(kind not in ("add", "mul", "select", "const", "input") for kind in kinds)


def statements(formula: Formula, outputs: Sequence[Value]) -> list[str]:
    """One line per node, then the results; x[i] are the variables, y[k] the results."""
    lines = []
    for node in reachable(formula, outputs):
        if formula.operation[node] not in ("const", "input"):
            lines.append(f"const VEC t{node} = {_expression(formula, node)};")
    for k, output in enumerate(outputs):
        lines.append(f"y[{k}] = {_name(formula, output.node, vector=True)};")
    return lines


def _name(formula: Formula, node: int, vector: bool = False) -> str:
    operation = formula.operation[node]
    if operation == "const":
        number = f"REAL({formula.value[node]!r})"
        return f"vset({number})" if vector else number
    return f"x[{int(formula.value[node])}]" if operation == "input" else f"t{node}"


def _expression(formula: Formula, node: int) -> str:
    operation, arguments = formula.operation[node], formula.arguments[node]
    names = [_name(formula, argument) for argument in arguments]
    if operation == "add":
        return f"{names[0]} + {names[1]}"
    if operation == "mul":
        return f"-{names[1]}" if formula.constant_of(arguments[0]) == -1.0 else f"{names[0]} * {names[1]}"
    if operation == "select":
        yes, no = (_name(formula, argument, vector=True) for argument in arguments[2:])
        return f"vselect({names[0]} < {names[1]}, {yes}, {no})"
    known = {"rcp": "vrcp", "sqrt": "vsqrt"}
    return f"{known.get(operation, 'xc_' + operation)}({names[0]})"


def functional_source(
    formula: Formula, outputs: Sequence[Value], name: str, family: str, spins: int, target: str, real: str = "double"
) -> Source:
    """The kernel; `outputs` are the energy density and its derivatives in the order of the variables."""
    defines = {
        "SPINS": spins,
        "GRADIENT": int(family != "lda"),
        "KINETIC": int(family == "mgga"),
        "THREADS": THREADS,
        **{floor: f"REAL({value!r})" for floor, value in FLOORS[real].items()},
    }
    lines = ["FN void energy_density(const VEC* x, VEC* y) {", *("    " + s for s in statements(formula, outputs)), "}"]
    body = (MATHEMATICS[target], "\n".join(lines), "xc_point.h", SKELETONS[target])
    return assemble(f"xc_{name}_{spins}", target, real, ARGUMENTS, defines, body)
