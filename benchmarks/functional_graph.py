"""Derivatives of a functional: our graph with its backward sweep, compared with SymPy's diff and cse.

    python benchmarks/functional_graph.py [--json FILE] [NAME ...]

Processor seconds for two spins on one core. Ours: from the definition to energy and all derivatives as one graph, the
minimum of five runs. SymPy's, run once without counting its import: the energy as a SymPy expression, built node by
node, `diff` with respect to every variable, and `cse` of all results.
Operations are additions, multiplications, selections and calls (a power is one). Only this benchmark uses SymPy.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

from common import ROOT, machine, save

NAMES = ("svwn5", "pbe", "b3lyp", "m06-2x", "r2scan")
"""Default functionals; TPSS can be given by name, but SymPy takes more than three minutes for it."""
REPEATS = 5


def ours(functional: Any) -> dict[str, float]:
    """Seconds and operations of the graph."""
    from cuanto.functionals import functional as definitions
    from cuanto.kernels.cost import stage_cost

    seconds = []
    for _ in range(REPEATS):
        definitions._expressions.cache_clear()
        start = time.process_time()
        found = functional.expressions(2)
        seconds.append(time.process_time() - start)
    cost = stage_cost(found)
    return {"seconds": min(seconds), "operations": cost.operations + cost.calls}


def by_sympy(functional: Any) -> dict[str, float]:
    """Seconds of the three steps, and operations of the result."""
    import sympy

    sys.path.insert(0, str(ROOT / "tests" / "support"))  # for the oracle of functionals

    from cuanto.kernels.ir import Stage
    from oracles.functionals import evaluate

    names = ("sqrt", "cbrt", "exp", "log", "atan", "erf")
    functions = {name: getattr(sympy, name) for name in names} | {
        "number": sympy.Float,
        "rcp": lambda x: 1 / x,
        "expm1": lambda x: sympy.exp(x) - 1,
        "log1p": lambda x: sympy.log(1 + x),
        "select": lambda x, y, yes, no: sympy.Piecewise((yes, x < y), (no, True)),
    }
    whole = functional.expressions(2)
    energy = Stage(whole.graph, whole.outputs[:1])
    variables = sympy.symbols(f"x:{len(whole.outputs) - 1}", positive=True)
    marks = [time.process_time()]
    value = evaluate(energy, variables, functions)[0]
    marks.append(time.process_time())
    outputs = [value, *(sympy.diff(value, variable) for variable in variables)]
    marks.append(time.process_time())
    replaced, reduced = sympy.cse(outputs)
    marks.append(time.process_time())
    steps = {name: b - a for name, a, b in zip(("build", "diff", "cse"), marks[:-1], marks[1:], strict=True)}
    count = sympy.count_ops([expression for _, expression in replaced] + list(reduced))
    return {"seconds": marks[-1] - marks[0], **steps, "operations": int(count)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=NAMES, metavar="NAME")
    parser.add_argument("--json", help="write the result here")
    options = parser.parse_args()
    import sympy

    from cuanto.backends.base import get_backend
    from cuanto.functionals import get_functional

    record: dict[str, Any] = {
        "benchmark": "functional_graph",
        "machine": machine(get_backend("cpu")),
        "functionals": {},
    }
    record["machine"]["sympy"] = sympy.__version__
    for name in options.names:
        functional = get_functional(name)
        row = {"ours": ours(functional), "sympy": by_sympy(functional)}
        record["functionals"][name] = row
        times, counts = ([row[side][key] for side in ("ours", "sympy")] for key in ("seconds", "operations"))
        print(f"{name:8s} {1e3 * times[0]:6.1f} ms {times[1]:6.1f} s {counts[0]:6d} {counts[1]:6d}", flush=True)
    save(options.json, record)


if __name__ == "__main__":
    main()
