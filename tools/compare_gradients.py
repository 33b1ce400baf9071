"""Compare our gradients with all references (PySCF 2.14, tests/data/gradient_references.json).

    python tools/compare_gradients.py                                  # all rows on the CPU
    python tools/compare_gradients.py --backend cuda --json FILE
    python tools/compare_gradients.py --only "zinc hydride"

Rows go to benchmarks/results/gradient_references_BACKEND.json one by one: an interrupted run continues, and rows that
are there are not repeated unless --again. Exit status 1: a gradient differs by more than 1e-6 Hartree/Bohr with a grid
or 1e-8 without, forces do not add up to zero within 1e-8 Hartree/Bohr, or a row did not converge.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "support"), str(ROOT / "benchmarks")]

from common import machine  # noqa: E402

from cuanto.backends.base import get_backend  # noqa: E402
from cuanto.functionals import get_functional  # noqa: E402
from gradient_cases import Row, calculate, difference, key, references, tolerance  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results"
LARGEST_SUM = 1e-8
"""Largest sum of forces, Hartree/Bohr."""


def compare(row: Row, backend: str) -> Row:
    """The differences of one row."""
    start = time.perf_counter()
    result: Any = calculate(row, backend)
    return {
        "row": key(row),
        "kind": kind(row),
        "functions": result.basis.nbf,
        "energy_difference": result.energy - row["energy"],
        "gradient_difference": difference(row, result),
        "sum_of_forces": float(np.abs(result.gradient.sum(axis=0)).max()),
        "largest_element": float(np.abs(result.gradient).max()),
        "tolerance": tolerance(row),
        "converged": result.converged,
        "seconds": round(time.perf_counter() - start, 2),
    }


def kind(row: Row) -> str:
    """Method and fitting in words: `rhf direct`, `unrestricted meta-GGA RI`."""
    fitting = "direct" if row["fitting"] == "none" else "RI"
    method = row["method"]
    if row["grid"] is None:
        return f"{method} {fitting}"
    spin, name = ("unrestricted ", method[1:]) if method.startswith("u") else ("", method)
    functional = get_functional(name)
    family = {"lda": "LDA", "gga": "GGA", "mgga": "meta-GGA"}[functional.family]
    hybrid = "hybrid " if functional.exact_exchange or functional.range_separation else ""
    separated = "range-separated " if functional.range_separation else ""
    return f"{spin}{separated or hybrid}{family} {fitting}"


def right(made: Row) -> bool:
    """Whether a row agrees with its reference."""
    same = made["gradient_difference"] < made["tolerance"] and made["sum_of_forces"] < LARGEST_SUM
    return bool(made["converged"] and same)


def largest(rows: list[Row]) -> dict[str, dict[str, float]]:
    """By kind of calculation: number of rows, largest difference and largest sum of forces."""
    found: dict[str, dict[str, float]] = {}
    for row in rows:
        entry = found.setdefault(row["kind"], {"rows": 0, "gradient_difference": 0.0, "sum_of_forces": 0.0})
        entry["rows"] += 1
        for name in ("gradient_difference", "sum_of_forces"):
            entry[name] = max(entry[name], row[name])
    return dict(sorted(found.items()))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--only", default="", help="part of a row's name")
    parser.add_argument("--again", action="store_true", help="forget the rows that are there")
    parser.add_argument("--json", type=Path, help="instead of benchmarks/results/gradient_references_BACKEND.json")
    options = parser.parse_args()
    file = options.json or RESULTS / f"gradient_references_{options.backend}.json"
    there = [] if options.again or not file.exists() else json.loads(file.read_text())["rows"]
    kept: dict[str, Row] = {row["row"]: row for row in there}
    record: Row = {"benchmark": "gradient_references", "machine": machine(get_backend(options.backend))}
    for row in references():
        if key(row) in kept or options.only not in key(row):
            continue
        result = kept[key(row)] = compare(row, options.backend)
        words = f"gradient {result['gradient_difference']:.1e}, sum {result['sum_of_forces']:.1e} Hartree/Bohr"
        print(f"{result['row']:56} {words}, {result['seconds']:.1f} s{'' if right(result) else ' WRONG'}", flush=True)
        file.parent.mkdir(parents=True, exist_ok=True)
        rows = list(kept.values())
        file.write_text(json.dumps(record | {"largest": largest(rows), "rows": rows}, indent=1) + "\n")
    wrong = [result["row"] for result in kept.values() if not right(result)]
    print(f"{len(kept)} of {len(references())} rows, {len(wrong)} wrong")
    print("".join(f"  {name}\n" for name in wrong), end="")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
