"""Compute every X2C energy and gradient of tests/data/x2c_references.json (PySCF 2.14) again and compare.

    python tools/compare_x2c.py                          # all rows on the CPU
    python tools/compare_x2c.py --backend cuda --only hydride "Rn rhf"
    OMP_NUM_THREADS=1 python tools/compare_x2c.py --workers 8    # in 8 processes: times in the record are longer

On the CPU, ions are computed by the SCF of spherical atoms, except for those in the sample of the tests; `--whole`
computes them like molecules, too.

Rows are written to benchmarks/results/x2c_BACKEND.json one by one: an interrupted run continues, and rows that are
there are not repeated unless --again is given, or --whole and they were computed as atoms. Exit status 1: an energy
differs by more than 1e-8 Hartree (1e-6 with a grid) or 1e-11 of it, whichever is larger, or a gradient by more than
1e-6 Hartree/Bohr.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "support"), str(ROOT / "benchmarks")]

from common import in_processes, machine  # noqa: E402

from cuanto.backends.base import get_backend  # noqa: E402
from x2c_cases import (  # noqa: E402
    GRADIENT,
    Row,
    calculate,
    closed_shell_energy,
    energy_tolerance,
    gradient_difference,
    key,
    references,
)

SPHERICAL = ("Ni",)
"""Atoms computed by the SCF of spherical atoms in any case: as a molecule, nickel reaches a closed-shell state with two
4s electrons, 0.094 Hartree below 3d10 of the reference."""


def compare(row: Row, backend: str, whole: bool) -> Row:
    """Differences of one row from its reference; `whole`: computed by `cuanto.energy` even if it is an ion."""
    start = time.perf_counter()
    if whole:
        result = calculate(row, backend)
        energy, converged, slope = result.energy, result.converged, gradient_difference(row, result)
    else:
        (energy, converged), slope = closed_shell_energy(row), None
    return {
        "row": key(row),
        "as": "molecule" if whole else "atom",
        "energy": row["energy"],
        "energy_difference": energy - row["energy"],
        "tolerance": energy_tolerance(row),
        "gradient_difference": slope,
        "converged": converged,
        "seconds": round(time.perf_counter() - start, 2),
    }


def is_whole(row: Row, ions: bool) -> bool:
    """Whether to compute a row by `cuanto.energy`; `ions`: also ions that are not in the sample of the tests."""
    ion = row["geometry"].endswith(" 0 0 0") and ";" not in row["geometry"]
    return not ion or ((ions or row["sample"]) and row["molecule"] not in SPHERICAL)


def agrees(row: Row) -> bool:
    """Whether a row agrees with its reference."""
    same = abs(row["energy_difference"]) < row["tolerance"] and (row["gradient_difference"] or 0.0) < GRADIENT
    return bool(row["converged"] and same)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--only", nargs="+", default=[""], help="parts of rows' names")
    parser.add_argument("--whole", action="store_true", help="compute ions like molecules")
    parser.add_argument("--again", action="store_true", help="compute rows of the file again")
    parser.add_argument("--workers", type=int, default=1, help="number of processes")
    parser.add_argument("--json", type=Path, help="instead of benchmarks/results/x2c_BACKEND.json")
    options = parser.parse_args()
    file = options.json or ROOT / "benchmarks" / "results" / f"x2c_{options.backend}.json"
    there = json.loads(file.read_text())["rows"] if file.exists() else []
    kept: dict[str, Row] = {row["row"]: row for row in there}
    record: Row = {"benchmark": "x2c", "machine": machine(get_backend(options.backend)), "workers": options.workers}
    rows = {key(row): row for row in references()}
    calls = []
    for name, row in rows.items():
        known = name in kept and not options.again and (kept[name]["as"] == "molecule" or not options.whole)
        if not known and any(part in name for part in options.only):
            calls.append((row, options.backend, is_whole(row, options.whole or options.backend != "cpu")))
    for made in in_processes(compare, calls, options.workers):
        kept[made["row"]], slope = made, made["gradient_difference"]
        words = f"energy {made['energy_difference']:+.1e}" + ("" if slope is None else f", gradient {slope:.1e}")
        print(f"{made['row']:56} {words}, {made['seconds']:.1f} s{'' if agrees(made) else ' WRONG'}", flush=True)
        file.parent.mkdir(parents=True, exist_ok=True)
        ordered = [kept[name] for name in rows if name in kept]
        file.write_text(json.dumps(record | {"rows": ordered}, indent=1) + "\n")
    wrong = [made["row"] for made in kept.values() if not agrees(made)]
    print(f"{len(kept)} of {len(rows)} rows, {len(wrong)} wrong")
    print("".join(f"  {name}\n" for name in wrong), end="")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
