"""Write the tables of grid errors in docs/methods/dft.md from the record of `grid_errors.py`.

python benchmarks/grid_tables.py            # rewrites the tables between the marks
python benchmarks/grid_tables.py --print    # only prints them
"""

from __future__ import annotations

import argparse
import json
import re
from typing import Any

import numpy as np
from common import ROOT
from grid_errors import FUNCTIONALS, LEVELS, PEER, chosen_molecules
from scf_tables import insert, table

PAGE = ROOT / "docs" / "methods" / "dft.md"
RECORD = ROOT / "benchmarks" / "results" / "grid_errors.json"
LAST_ALL_ELECTRON = 36
"""Heavier elements have core potentials in def2-SVP."""
NOBLE_GASES = {2, 10, 18, 36, 54, 86}
ALKALI_METALS = {3, 11, 19, 37, 55}
METALS = {*range(21, 31), *range(39, 49), *range(57, 81)}
KINDS = ("main groups", "alkali metals", "noble gases", "transition metals, lanthanides")
"""Kinds of molecules; `main groups`: none of the others."""
Rows = dict[str, dict[str, Any]]


def kind(numbers: set[int]) -> str:
    """The kind of a molecule from the atomic numbers of its elements."""
    for name, members in zip(KINDS[1:], (ALKALI_METALS, NOBLE_GASES, METALS), strict=True):
        if numbers & members:
            return name
    return KINDS[0]


def formula(name: str) -> str:
    """A name of the record as a formula: `PtCl4_2-` with subscripts and charge, `NiF2_triplet` without its state."""
    bare, _, suffix = name.partition("_")
    found = re.search(r"[+-]$", bare)
    charge = found[0] if found else suffix if re.fullmatch(r"\d?[+-]", suffix) else ""
    text = re.sub(r"(?<=[A-Za-z)])(\d+)", r"<sub>\1</sub>", bare.rstrip("+-"))
    return text + (f"<sup>{charge}</sup>" if charge else "")


def errors(rows: Rows, functional: str, level: str) -> dict[str, float]:
    """Sizes of the errors by molecule."""
    return {name: abs(row[functional][level]) for name, row in rows.items() if row["converged"]}


def cells(rows: Rows, functional: str, level: str) -> list[str]:
    """Median, 90th percentile and largest error."""
    found = errors(rows, functional, level)
    worst = max(found, key=found.__getitem__)
    middle, most = np.quantile(list(found.values()), (0.5, 0.9))
    return [number(middle), number(most), f"{number(found[worst])} ({formula(worst)})"]


def number(value: float) -> str:
    """Two digits: 7.8e-5."""
    return f"{value:.1e}".replace("e-0", "e-")


def by_level(rows: Rows) -> str:
    """Errors of all levels, and of PySCF's default grid."""
    head = [f"{len(rows)} molecules", "PBE, median", "90 % below", "largest", "r²SCAN, median", "90 % below", "largest"]
    names = {level: f"`{level}`" for level in LEVELS} | {PEER: "PySCF 2.14, default"}
    return table(
        head, [[text, *(c for f in FUNCTIONALS for c in cells(rows, f, level))] for level, text in names.items()]
    )


def by_kind(rows: Rows, kinds: dict[str, str]) -> str:
    """Errors of the two finest levels by kind of molecule."""
    head = [
        "molecules with",
        "level",
        "PBE, median",
        "90 % below",
        "largest",
        "r²SCAN, median",
        "90 % below",
        "largest",
    ]
    lines = []
    for name in KINDS:
        chosen = {molecule: row for molecule, row in rows.items() if kinds[molecule] == name}
        for level in ("fine", "ultrafine"):
            found = [c for functional in FUNCTIONALS for c in cells(chosen, functional, level)]
            lines.append([f"{name} ({len(chosen)})", f"`{level}`", *found])
    return table(head, lines)


def tables() -> dict[str, str]:
    """All tables by the names in their marks."""
    rows: Rows = json.loads(RECORD.read_text())["molecules"]
    numbers = {name: set(molecule.numbers.tolist()) for name, molecule in chosen_molecules(0, list(rows)).items()}
    light = {name: row for name, row in rows.items() if max(numbers[name]) <= LAST_ALL_ELECTRON}
    heavy = {name: row for name, row in rows.items() if name not in light}
    return {
        "grid errors up to krypton": by_level(light),
        "grid errors with core potentials": by_level(heavy),
        "grid errors by kind": by_kind(rows, {name: kind(numbers[name]) for name in rows}),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--print", action="store_true", help="leave the page as it is")
    given = parser.parse_args()
    for name, text in tables().items():
        if given.print:
            print(f"{name}\n\n{text}\n")
        else:
            insert(PAGE, name, text)


if __name__ == "__main__":
    main()
