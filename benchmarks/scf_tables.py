"""Tables of the documentation: whole SCFs, cost against size, profile of J and accuracy from the files of `scf.py`,
Hartree-Fock references from that of `tools/compare_diagonalisers.py`.

    python benchmarks/plot_scf.py              # the plot of cost against size
    python benchmarks/scf_tables.py            # rewrites the tables between the marks in docs/develop
    python benchmarks/scf_tables.py --print    # only prints them

A column whose file is missing in benchmarks/results is left out; a table without any file is not changed.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from common import ROOT
from scf_systems import load_warning
from scf_thesis import STEPS, shares, thesis_rows

DOCS = ROOT / "docs"
PICTURE = "images/scf_cost.svg"
PROFILED = ("alkane_01", "alkane_06", "alkane_12", "alkane_18", "benzene", "phenol", "chlorobenzene", "ribavirin")
"""Molecules shown in the table of the profile; the result files have all 22."""
Record = dict[str, Any]


def table(head: list[str], rows: list[list[str]]) -> str:
    """Format a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def machine_name(record: Record) -> str:
    """Machine on which a file was made."""
    machine = record["machine"]
    return machine["gpu"].removeprefix("NVIDIA ") if "gpu" in machine else f"{machine['threads']} cores"


def seconds(value: float) -> str:
    """Format seconds with at most three digits."""
    return f"{value:.3g} s" if value < 100 else f"{value:.0f} s"


def whole_scf(found: dict[str, Record]) -> str:
    """A table for every machine, because the peers differ."""
    parts = []
    for backend, record in found.items():
        peers = ["PySCF, same run", "ratio"] if backend == "cpu" else ["GPU4PySCF 1.9"]
        head = [machine_name(record), "functions", "iterations", "warm", "first run, empty cache", *peers]
        rows = []
        for row in record["systems"]:
            cells = [f"{row['system']}, {row['method']}", f"{row['functions']:,}", str(row["iterations"])]
            cells += [seconds(row["best"]), seconds(row["cold"]) if "cold" in row else ""]
            if backend == "cuda":
                cells.append(seconds(row["gpu4pyscf"]) if row["gpu4pyscf"] else "")
            elif "pyscf" in row:
                cells += [peer_seconds(row), f"{row['ratio_to_pyscf']:.2f}"]
            else:
                cells += ["", ""]
            rows.append(cells)
        parts.append(table(head, rows))
    return "\n\n".join(parts)


def peer_seconds(row: Record) -> str:
    """Time of PySCF, and in brackets with all integrals stored."""
    text = seconds(row["pyscf"]["best"])
    return f"{text} [{seconds(row['pyscf_stored']['best'])}]" if "pyscf_stored" in row else text


def profile(found: dict[str, Record]) -> str:
    """J of a whole SCF and its steps, next to Table 6.7; empty if only energies were computed."""
    found = {backend: record for backend, record in found.items() if "j" in record["molecules"][0]}
    head = ["", *(f"total J, {machine_name(r)}" for r in found.values()), "thesis, K20c"]
    head += [f"steps of one J, {machine_name(r)}" for r in found.values()]
    head += [f"shares, {machine_name(r)}" for r in found.values()] + ["thesis"]
    rows: list[list[str]] = []
    for thesis in thesis_rows() if found else []:
        name = thesis["molecule"]
        if name not in PROFILED:
            continue
        mine = [by_molecule(record)[name]["j"] for record in found.values()]
        cells = [name, *(seconds(j["total"]) for j in mine), f"{thesis['j_gpu']} s"]
        cells += [" / ".join(f"{1e3 * j[step]:.2g}" for step in STEPS) + " ms" for j in mine]
        cells += [" / ".join(f"{share:.0f}" for share in shares(j)) + " %" for j in mine]
        printed = [float(thesis[key]) for key in ("fit_vector", "solve", "j_from_fit")]
        rows.append([*cells, " / ".join(f"{share:.0f}" for share in printed) + " %"])
    return table(head, rows) if rows else ""


def accuracy(found: dict[str, Record]) -> str:
    """Energies on the CPU, against PySCF and the GPU, and the difference between the two versions of the thesis."""
    if "cpu" not in found:
        raise SystemExit("the table of accuracy needs scf_thesis_cpu.json: run scf.py --thesis first")
    cpu = by_molecule(found["cpu"])
    cuda = by_molecule(found["cuda"]) if "cuda" in found else None
    ours = ["GPU and CPU differ by"] if cuda else []
    rows = []
    for thesis in thesis_rows():
        mine = cpu[thesis["molecule"]]
        cells = [thesis["molecule"], f"{mine['functions']} / {mine['auxiliary']}", f"{mine['energy']:.9f}"]
        cells.append(f"{mine['differences']['PySCF']:.0e}")
        if cuda:
            cells.append(f"{abs(cuda[thesis['molecule']]['energy'] - mine['energy']):.0e}")
        cells.append(f"{abs(float(thesis['energy_gpu']) - float(thesis['energy_cpu'])):.2e}")
        rows.append(cells)
    return table(
        ["", "functions / for the fit", "CPU, Hartree", "CPU and PySCF differ by", *ours, "thesis: GPU and CPU"],
        rows,
    )


def references(found: dict[str, Record]) -> str:
    """Largest differences from the recorded values of PySCF and between the two diagonalisers, by kind of record."""
    parts = []
    for record in found.values():
        groups: dict[tuple[str, str], list[Record]] = {}
        for row in record["rows"]:
            name, method = row["case"].split(" ", 1)
            family = "alkanes" if name.startswith("alkane") else name
            groups.setdefault((family, method.replace("pure ", "").replace("none", "direct")), []).append(row)
        head = ["", "", "records", "functions", "energy", "dipole, Debye", "rotations", "iterations"]
        rows = [[*key, *extremes(mine)] for key, mine in sorted(groups.items())]
        parts.append(table(head, rows))
    return "\n\n".join(parts)


def extremes(rows: list[Record]) -> list[str]:
    """The worst of each column; iterations of rotations over those of full diagonalisation."""
    sizes = sorted({row["functions"] for row in rows})
    cells = [str(len(rows)), "-".join(str(n) for n in (sizes[0], sizes[-1])[: len(sizes)])]
    for key in ("to_reference", "dipole"):
        known = [row[key] for row in rows if key in row]
        cells.append(f"{max(known):.0e}" if known else "")
    cells.append(f"{max(abs(row['difference']) for row in rows):.0e}")
    ratios = [pseudo / full for full, pseudo in (row["iterations"] for row in rows)]
    return [*cells, f"{max(ratios):.2f}"]


def by_molecule(record: Record) -> dict[str, Record]:
    return {row["molecule"]: row for row in record["molecules"]}


def cost(found: dict[str, Record]) -> str:
    """Table of cost against size, with the plot if it exists."""
    rows = []
    for record in found.values():
        last, grows = record["points"][-1], record["exponent"]
        largest = f"{last['molecule']}, {last['functions']:,} functions"
        exponent = f"{grows:.1f}" if grows is not None else ""
        what = f"{record['scan']}, {record['method'].split('-')[0]}, {machine_name(record)}"
        rows.append([what, largest, seconds(last["seconds"]), exponent])
    text = table(["", "largest", "warm", "exponent"], rows)
    if not (DOCS / PICTURE).exists():
        return text
    return f"![Seconds of RHF/cc-pVDZ against the number of basis functions](../{PICTURE})\n\n{text}"


TABLES: dict[str, tuple[str, tuple[str, ...], Callable[[dict[str, Record]], str]]] = {
    "whole SCF": ("develop/performance_notes.md", ("scf",), whole_scf),
    "cost against size": ("develop/performance_notes.md", ("scf_alkanes", "scf_waters", "scf_waters_direct"), cost),
    "profile of J": ("develop/performance_notes.md", ("scf_thesis",), profile),
    "accuracy": ("develop/accuracy_records.md", ("scf_thesis",), accuracy),
    "references": ("develop/accuracy_records.md", ("scf_references",), references),
}
"""Name of a table in its marker -> page, stems of the result files, and the function that makes it."""


def results(folder: Path, stems: tuple[str, ...]) -> dict[str, Record]:
    """Existing result files by backend (and by stem if there are several)."""
    found = {}
    for backend in ("cpu", "cuda"):
        for stem in stems:
            file = folder / f"{stem}_{backend}.json"
            if file.exists():
                found[backend if len(stems) == 1 else f"{stem}_{backend}"] = json.loads(file.read_text())
    return found


def insert(file: Path, name: str, text: str) -> None:
    """Replace the text between <!-- table: name --> and <!-- end of table -->."""
    document = file.read_text()
    marks = re.compile(rf"(<!-- table: {re.escape(name)} -->\n).*?(<!-- end of table -->)", re.DOTALL)
    if len(marks.findall(document)) != 1:
        raise SystemExit(f"{file} has no place for the table {name!r}, or several")
    file.write_text(marks.sub(lambda found: f"{found[1]}\n{text}\n\n{found[2]}", document))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results")
    parser.add_argument("--print", action="store_true", help="leave the documents as they are")
    options = parser.parse_args()
    for name, (document, stems, make) in TABLES.items():
        found = results(options.results, stems)
        text = make(found) if found else ""
        for backend, record in found.items() if text and make not in (accuracy, references) else []:
            if warning := load_warning(record):
                print(f"{name}, {backend}: {warning}")
        if not text:
            print(f"{name}: no results")
        elif options.print:
            print(f"{name}\n\n{text}\n")
        else:
            insert(DOCS / document, name, text)
            print(f"{name}: written to {document} from {', '.join(found)}")


if __name__ == "__main__":
    main()
