"""Compare our energies and numbers of electrons with all Kohn-Sham references (PySCF 2.14, tests/data/*.json).

    python tools/compare_references.py --backend cpu --functions 130     # rows of up to 130 functions
    python tools/compare_references.py --backend cuda --seconds 500      # as many as there is time for
    python tools/compare_references.py --table                           # the table of docs/develop from both files

Rows go to benchmarks/results/kohn_sham_references_BACKEND.json one by one: an interrupted run continues, and
rows that are there (or in the file given with --json) are not repeated unless --again. The electrons are the integral
of the converged density on the row's own grid; its deviation from the exact number is a property of the grid; with
--peer it is therefore compared with PySCF's integral of the same density on the same grid. Exit status 1: an energy
differs by more than 1e-6 Hartree, the electrons from PySCF's by more than 1e-6 of their number where that is known (in
the row or in tests/data/grid_electrons.json), or a row did not converge.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "support")]
os.environ.setdefault("CUANTO_BASIS_PATH", str(ROOT / "tests" / "data" / "basis"))

import cuanto  # noqa: E402
from scf_cases import basis, molecule, oracle, records  # noqa: E402

FILES = ("lda_dzvp_water", "dft_def2", "open_shell")
RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "develop" / "accuracy_records.md"
SAME_ENERGY = 1e-6
"""Tolerance of energies, Hartree."""
SAME_ELECTRONS = 1e-6
"""Relative tolerance of the number of electrons."""
Row = dict[str, Any]
COUNTED: Row = json.loads((ROOT / "tests" / "data" / "grid_electrons.json").read_text())
ELECTRONS = re.compile(r"integrates to ([0-9.]+) electrons")


def key(row: Row) -> str:
    """Name of a row in the files."""
    form = " cartesian" if row["cartesian"] else ""
    grid = f"({row['grid']['radial']}, {row['grid']['lebedev']})"
    return f"{row['molecule']} {row['method']}-{row['functional']}/{row['basis']}{form} {grid}"


def rows(functions: int, only: str, least: int = 0) -> Iterator[Row]:
    """Rows of functionals, small ones first."""
    found = [row for file in FILES for row in records(file) if row.get("functional")]
    for row in sorted(found, key=lambda row: (row["nbf"], row["grid"]["lebedev"])):
        if least <= row["nbf"] <= functions and only.lower() in key(row).lower():
            yield row


def calculate(row: Row, backend: str, peer: bool) -> Row:
    """Energy and electrons of a row, with its basis and grid and without fitting."""
    mol = molecule(row["molecule"])
    orbital = basis(row["basis"], mol, spherical=not row["cartesian"])
    name = ("u" if row["method"] == "UKS" else "") + row["functional"].lower()
    grid = (row["grid"]["radial"], row["grid"]["lebedev"])
    start = time.perf_counter()
    result = cuanto.energy(mol, name, orbital, fitting="none", backend=backend, grid=grid)
    seconds = time.perf_counter() - start
    electrons = next(float(found[1]) for note in result.notes if (found := ELECTRONS.search(note)))
    made: Row = {
        "row": key(row),
        "functions": row["nbf"],
        "energy": result.energy,
        "reference": row["energy"],
        "difference": result.energy - row["energy"],
        "iterations": result.iterations,
        "converged": result.converged,
        "electrons": electrons,
        "electrons_relative": electrons / mol.nelectron - 1.0,
        "seconds": seconds,
    }
    if peer:
        made["electrons_pyscf"] = pyscf_electrons(mol, orbital, result.density, grid)
    return made


def pyscf_electrons(mol: cuanto.Molecule, orbital: cuanto.Basis, D_spq: Any, grid: tuple[int, int]) -> float:
    """The integral of a density on PySCF's grid of these numbers."""
    from pyscf import dft

    theirs = oracle(mol, orbital)
    theirs.cart = not orbital.spherical
    grids = dft.gen_grid.Grids(theirs)
    grids.atom_grid, grids.prune = grid, None
    grids.build()
    return float(dft.numint.NumInt().nr_rks(theirs, grids, "lda,", D_spq.sum(axis=0))[0])


def compare(options: argparse.Namespace) -> int:
    """Compute the requested rows that are missing; returns 0 if all rows agree."""
    usual = RESULTS / f"kohn_sham_references_{options.backend}.json"
    file = options.json or usual
    kept: dict[str, Row] = {}
    for there in {usual, file}:
        if there.exists() and not options.again:
            kept |= {row["row"]: row for row in json.loads(there.read_text())}
    start = time.perf_counter()
    for row in rows(options.functions, options.only, options.least):
        if key(row) in kept:
            continue
        if time.perf_counter() - start > options.seconds:
            print("no time is left: run again to go on")
            break
        result = kept[key(row)] = calculate(row, options.backend, options.peer)
        words = f"{result['difference']:9.1e} Hartree, electrons {result['electrons_relative']:8.1e}"
        peer = f", PySCF's {result['electrons_pyscf'] - result['electrons']:8.1e} more" if options.peer else ""
        print(
            f"{result['row']:58} {words}{peer}, {result['iterations']} iterations, {result['seconds']:.1f} s",
            flush=True,
        )
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(list(kept.values()), indent=1) + "\n")
    total = len(list(rows(10**9, "")))
    counted = {key(row): electrons for row in rows(10**9, "") if (electrons := stored_electrons(row)) is not None}
    wrong = [row["row"] for row in kept.values() if not agrees(row, counted.get(row["row"]))]
    known = sum("electrons_pyscf" in row or row["row"] in counted for row in kept.values())
    print(f"{len(kept)} of {total} rows, {known} of them with PySCF's electrons, {len(wrong)} wrong")
    print("".join(f"  {name}\n" for name in wrong), end="")
    return 1 if wrong else 0


def stored_electrons(row: Row) -> float | None:
    """PySCF's number of electrons on the row's grid; None where it was not stored."""
    same = all(row[name] == COUNTED[name] for name in ("functional", "basis", "cartesian"))
    grid = [row["grid"]["radial"], row["grid"]["lebedev"]] == COUNTED["grid"]
    return COUNTED["electrons"].get(row["molecule"]) if same and grid else None


def agrees(made: Row, stored: float | None) -> bool:
    """Whether energy and electrons agree with PySCF; `stored`: PySCF's electrons, if the row has none."""
    theirs = made.get("electrons_pyscf", stored)
    same = theirs is None or abs(made["electrons"] / theirs - 1.0) < SAME_ELECTRONS
    return bool(made["converged"] and abs(made["difference"]) < SAME_ENERGY and same)


def table(found: dict[str, dict[str, Row]]) -> str:
    """Markdown: one line for each molecule, basis and grid, with the largest difference of all its functionals."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows(10**9, ""):
        grid = f"{row['grid']['radial']}, {row['grid']['lebedev']}"
        groups.setdefault((row["molecule"], row["basis"], grid), []).append(row)
    names = {"cpu": "CPU", "cuda": "H200"}
    head = ["", "functions", "grid", "functionals", *(f"largest difference, {names[b]}" for b in found)]
    head += ["electrons", "PySCF's electrons", "relative error"]
    lines = [head, ["---"] * len(head)]
    for (name, basis_name, grid), members in groups.items():
        cells = [f"{name}, {basis_name}", str(members[0]["nbf"]), grid, ", ".join(row["functional"] for row in members)]
        there = {b: [kept[key(row)] for row in members if key(row) in kept] for b, kept in found.items()}
        for result in there.values():
            partly = "" if len(result) == len(members) else f" ({len(result)} of {len(members)})"
            cells.append(f"{max(abs(row['difference']) for row in result):.0e}{partly}" if result else "")
        lines.append([*cells, *counts(members, [row for result in there.values() for row in result])])
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def counts(members: list[Row], made: list[Row]) -> list[str]:
    """Our and PySCF's electrons in the row whose number of electrons has the largest relative error, and that error."""
    if not made:
        return ["", "", ""]
    stored = {key(row): stored_electrons(row) for row in members}
    worst = max(made, key=lambda row: abs(row["electrons_relative"]))
    theirs = worst.get("electrons_pyscf", stored[worst["row"]])
    count = "" if theirs is None else f"{theirs:.6f}"
    return [f"{worst['electrons']:.6f}", count, format_relative(abs(worst["electrons_relative"]))]


def format_relative(value: float) -> str:
    """Format a relative difference; notes print electrons with six decimals, so smaller values are unknown."""
    return f"{value:.0e}" if value > 1e-7 else "< 1e-7"


def write_table() -> int:
    """Replace the text between the markers."""
    found = {}
    for backend in ("cpu", "cuda"):
        file = RESULTS / f"kohn_sham_references_{backend}.json"
        if file.exists():
            found[backend] = {row["row"]: row for row in json.loads(file.read_text())}
    marks = re.compile(r"(<!-- table: Kohn-Sham references -->\n).*?(<!-- end of table -->)", re.DOTALL)
    page = PAGE.read_text()
    if not found or len(marks.findall(page)) != 1:
        print("there are no results, or the page has no place for them")
        return 1
    PAGE.write_text(marks.sub(lambda mark: f"{mark[1]}\n{table(found)}\n\n{mark[2]}", page))
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--functions", type=int, default=10**9, help="leave out larger bases")
    parser.add_argument("--least", type=int, default=0, help="leave out smaller bases")
    parser.add_argument("--only", default="", help="part of a row's name")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no row after this time")
    parser.add_argument("--again", action="store_true", help="compute rows of the file again")
    parser.add_argument("--peer", action="store_true", help="electrons of PySCF on the same grid")
    parser.add_argument("--json", type=Path, help="instead of benchmarks/results/kohn_sham_references_BACKEND.json")
    parser.add_argument("--table", action="store_true", help="write the table of the documentation, calculate nothing")
    options = parser.parse_args()
    return write_table() if options.table else compare(options)


if __name__ == "__main__":
    raise SystemExit(main())
