"""Make tables of the documentation from the result files of `dft.py` and `thesis_water_clusters.py`.

    python benchmarks/dft_tables.py            # rewrites the tables between the markers in docs/develop
    python benchmarks/dft_tables.py --print    # only prints them

A table is left out if its files are missing in benchmarks/results or if the page has no markers for it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from common import ROOT
from scf_systems import load_warning
from scf_tables import insert, machine_name, results, seconds, table

PAGE = ROOT / "docs" / "develop" / "performance_notes.md"
MIB = 2**20
Record = dict[str, Any]


def whole(found: dict[str, Record]) -> str:
    """Whole Kohn-Sham calculations, a table for every machine."""
    parts = []
    for backend, record in found.items():
        peers = ["PySCF, same run", "ratio"] if backend == "cpu" else ["GPU4PySCF 1.9"]
        head = [machine_name(record), "functions", "iterations", "warm", "first run, empty cache", *peers]
        rows = []
        for row in record["systems"]:
            cells = [f"{row['system'].split('-')[0]}, {row['method']}", f"{row['functions']:,}", str(row["iterations"])]
            cells += [seconds(row["best"]), seconds(row["cold"]) if "cold" in row else ""]
            if backend == "cuda":
                cells.append(f"{row['gpu4pyscf']} s")
            elif "pyscf" in row:
                cells += [f"{seconds(row['pyscf']['best'])} ({row['pyscf']['cycles']})", f"{row['ratio_to_pyscf']:.2f}"]
            else:
                cells += ["", ""]
            rows.append(cells)
        parts.append(table(head, rows))
    return "\n\n".join(parts)


def passes(found: dict[str, Record]) -> str:
    """One pass over the grid: milliseconds of its steps, and their speed relative to a large matrix product."""
    head = ["", "points", "functions at a point", "grid", "density", "functional", "matrix", "share of FP64 product"]
    rows = []
    for record in found.values():
        rate = record["fp64_product_rate"]
        for row in record["systems"]:
            if "pass" not in row:
                continue
            one = row["pass"]
            cells = [f"{row['system'].split('-')[0]}, {row['method']}, {machine_name(record)}", f"{one['points']:,}"]
            cells += [f"{one['functions_at_a_point']:.0f}"]
            cells += [milliseconds(one["seconds"][name]) for name in ("grid", "density", "functional", "matrix")]
            cells.append(" / ".join(f"{one['rates'][name] / rate:.0%}" for name in ("density", "matrix")))
            rows.append(cells)
    return table(head, rows) if rows else ""


def milliseconds(value: float) -> str:
    """Format seconds as milliseconds: two digits, or a whole number from 100 ms on."""
    return f"{1e3 * value:.2g} ms" if value < 0.1 else f"{1e3 * value:.0f} ms"


def clusters(found: dict[str, Record]) -> str:
    """Figures 5.4 to 5.6 of the thesis: kernels of one pass, stored or recomputed, memory; whole iterations."""
    parts = []
    for record in found.values():
        if rows := record.get("sizes", []):
            parts += [cluster_passes(record, rows), cluster_iterations(record, rows)]
    return "\n\n".join(parts)


def cluster_passes(record: Record, rows: list[Record]) -> str:
    """Steps of a pass, with one row for 110 and one for 194 points per shell."""
    head = [
        f"waters, {machine_name(record)}",
        "functions",
        "points per shell",
        "density, stored",
        "recomputed",
        "functional",
    ]
    head += ["matrix, stored", "recomputed", "values"]
    lines = []
    for row in rows:
        for angular in ("110", "194"):
            kept, again = row[f"{angular} keep"], row[f"{angular} recompute"]
            cells = [str(row["waters"]), str(row["functions"]), angular]
            cells += [milliseconds(one["seconds"]["density"]) for one in (kept, again)]
            cells.append(milliseconds(kept["seconds"]["functional"]))
            cells += [milliseconds(one["seconds"]["matrix"]) for one in (kept, again)]
            lines.append([*cells, f"{kept['values_bytes'] / MIB:.0f} MiB"])
    return table(head, lines)


def cluster_iterations(record: Record, rows: list[Record]) -> str:
    """Mean times of an iteration in whole calculations with 110 points per shell, without one-time work."""
    head = [
        f"waters, {machine_name(record)}",
        "iterations",
        "J",
        "exchange-correlation",
        "diagonalisation",
        "whole iteration",
    ]
    lines = []
    for row in rows:
        steps = [row["per_iteration"][name] for name in ("coulomb", "exchange-correlation", "diagonalisation")]
        cells = [str(row["waters"]), str(row["iterations"]), *(milliseconds(value) for value in (*steps, sum(steps)))]
        lines.append([*cells, f"{row['device_bytes'] / MIB:.0f} MiB"] if row["device_bytes"] else cells)
    return table([*head, "on the device"] if "gpu" in record["machine"] else head, lines)


def sweeps(found: dict[str, Record]) -> str:
    """Figures 5.2 and 5.3 of the thesis: milliseconds of a pass against radius and cube edge."""
    parts = []
    for record in found.values():
        for key, across, along, unit in (("radii", "edge", "radius", "spheres"), ("edges", "waters", "edge", "cubes")):
            rows = record.get(key, [])
            if not rows:
                continue
            columns = list(dict.fromkeys(row[across] for row in rows))
            titles = [f"cubes of {c:g} Bohr" if across == "edge" else f"{c} waters" for c in columns]
            lines = []
            for value in dict.fromkeys(row[along] for row in rows):
                line = {row[across]: row["pass"] for row in rows if row[along] == value}
                name = f"{value:.0%} of the shells" if along == "radius" else f"{value:g} Bohr"
                lines.append([name, *(milliseconds(line[c]) if c in line else "" for c in columns)])
            parts.append(table([f"{unit}, {machine_name(record)}", *titles], lines))
    return "\n\n".join(parts)


def formation(found: dict[str, Record]) -> str:
    """Table 5.1 of the thesis: formation energies of water clusters."""
    rows = []
    for record in found.values():
        for row in record.get("formation", []):
            cells = [f"{row['waters']} waters, {row['precision']}, {machine_name(record)}", f"{row['kcal_mol']:.5f}"]
            rows.append([*cells, f"{row['difference']:.0e}" if row["precision"] != "double" else ""])
    return table(["", "formation energy, kcal/mol", "from double"], rows) if rows else ""


TABLES: dict[str, tuple[str, Callable[[dict[str, Record]], str]]] = {
    "whole Kohn-Sham": ("dft", whole),
    "passes over the grid": ("dft", passes),
    "water clusters": ("thesis_water_clusters", clusters),
    "partition of the points": ("thesis_water_clusters", sweeps),
    "formation energy": ("thesis_water_clusters", formation),
}
"""Name of a table in its marker -> stem of the result files, and the function that makes the table."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results")
    parser.add_argument("--print", action="store_true", help="leave the document as it is")
    options = parser.parse_args()
    for name, (stem, make) in TABLES.items():
        found = results(options.results, (stem,))
        for backend, record in found.items():
            if warning := load_warning(record):
                print(f"{name}, {backend}: {warning}")
        text = make(found) if found else ""
        if not text:
            print(f"{name}: no results")
        elif options.print:
            print(f"{name}\n\n{text}\n")
        elif f"<!-- table: {name} -->" not in PAGE.read_text():
            print(f"{name}: the page has no place for it")
        else:
            insert(PAGE, name, text)
            print(f"{name}: written from {', '.join(found)}")


if __name__ == "__main__":
    main()
