"""Compare our energies and gradients with all references (PySCF 2.14, tests/data/*_references.json).

    python tools/compare_gradients.py                                  # all rows on the CPU
    python tools/compare_gradients.py --backend cuda --json FILE
    python tools/compare_gradients.py --only "zinc hydride"
    python tools/compare_gradients.py --set core_potential             # molecules with core potentials
    OMP_NUM_THREADS=1 python tools/compare_gradients.py --workers 8    # in 8 processes: times in the record are longer

Rows go to benchmarks/results/SET_references_BACKEND.json one by one: an interrupted run continues, and rows that are
there are not repeated unless --again. Exit status 1: an energy differs by more than 1e-6 Hartree with a grid or 1e-8
without, a gradient by more than 1e-6 Hartree/Bohr with a grid or core potentials or 1e-8 without, forces do not add up
to zero within 1e-8 Hartree/Bohr, or a row did not converge.
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

from common import in_processes, machine  # noqa: E402

from cuanto.backends.base import get_backend  # noqa: E402
from cuanto.functionals import get_functional  # noqa: E402
from gradient_cases import (  # noqa: E402
    FILES,
    Row,
    calculate,
    difference,
    energy_tolerance,
    key,
    references,
    tolerance,
)

RESULTS = ROOT / "benchmarks" / "results"
MAX_SUM = 1e-8
"""Largest sum of forces, Hartree/Bohr."""
LARGEST = ("energy_difference", "gradient_difference", "sum_of_forces")
"""Quantities whose largest values are recorded for each kind of method."""


def compare(row: Row, backend: str) -> Row:
    """The differences of one row."""
    start = time.perf_counter()
    result: Any = calculate(row, backend)
    made = {
        "row": key(row),
        "kind": kind(row),
        "functions": result.basis.nbf,
        "iterations": result.iterations,
        "energy_difference": result.energy - row["energy"],
        "energy_tolerance": energy_tolerance(row),
        "converged": result.converged,
    }
    if row["gradient"] is not None:
        made |= {
            "gradient_difference": difference(row, result),
            "sum_of_forces": float(np.abs(result.gradient.sum(axis=0)).max()),
            "largest_element": float(np.abs(result.gradient).max()),
            "tolerance": tolerance(row),
        }
    return made | {"seconds": round(time.perf_counter() - start, 2)}


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


def agrees(made: Row) -> bool:
    """Whether a row agrees with its reference."""
    same = abs(made["energy_difference"]) < made.get("energy_tolerance", np.inf)
    if "gradient_difference" in made:
        same &= made["gradient_difference"] < made["tolerance"] and made["sum_of_forces"] < MAX_SUM
    return bool(made["converged"] and same)


def largest(rows: list[Row]) -> dict[str, dict[str, float]]:
    """Number of rows, largest difference and largest sum of forces for each kind of calculation."""
    found: dict[str, dict[str, float]] = {}
    for row in rows:
        entry = found.setdefault(row["kind"], {"rows": 0, **dict.fromkeys(LARGEST, 0.0)})
        entry["rows"] += 1
        for name in LARGEST:
            entry[name] = max(entry[name], abs(row.get(name, 0.0)))
    return dict(sorted(found.items()))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", choices=tuple(FILES), default="gradient", help="which references")
    parser.add_argument("--backend", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--only", nargs="+", default=[""], help="parts of rows' names")
    parser.add_argument("--again", action="store_true", help="compute rows of the file again")
    parser.add_argument("--workers", type=int, default=1, help="number of processes")
    parser.add_argument("--json", type=Path, help="instead of benchmarks/results/SET_references_BACKEND.json")
    options = parser.parse_args()
    file = options.json or RESULTS / f"{options.set}_references_{options.backend}.json"
    there = [] if options.again or not file.exists() else json.loads(file.read_text())["rows"]
    rows = {key(row): row for row in references(options.set)}
    kept: dict[str, Row] = {row["row"]: row for row in there if row["row"] in rows}
    record: Row = {"benchmark": f"{options.set}_references", "machine": machine(get_backend(options.backend))}
    record["workers"] = options.workers
    wanted = [name for name in rows if name not in kept and any(part in name for part in options.only)]
    for made in in_processes(compare, [(rows[name], options.backend) for name in wanted], options.workers):
        kept[made["row"]] = made
        words = f"energy {made['energy_difference']:+.1e} Hartree, "
        if "gradient_difference" in made:
            words += f"gradient {made['gradient_difference']:.1e}, sum {made['sum_of_forces']:.1e} Hartree/Bohr, "
        print(f"{made['row']:56} {words}{made['seconds']:.1f} s{'' if agrees(made) else ' WRONG'}", flush=True)
        file.parent.mkdir(parents=True, exist_ok=True)
        ordered = [kept[name] for name in rows if name in kept]
        file.write_text(json.dumps(record | {"largest": largest(ordered), "rows": ordered}, indent=1) + "\n")
    wrong = [made["row"] for made in kept.values() if not agrees(made)]
    print(f"{len(kept)} of {len(rows)} rows, {len(wrong)} wrong")
    print("".join(f"  {name}\n" for name in wrong), end="")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
