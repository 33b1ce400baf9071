"""Full diagonalisation against rotations, and both against PySCF, for every record of the Hartree-Fock reference.

    python tools/compare_diagonalisers.py                 # records of up to 130 functions
    python tools/compare_diagonalisers.py --functions 500 --json benchmarks/results/scf_references_cpu.json
    python tools/compare_diagonalisers.py --functions 500 --backend cuda --only alkane

Both must end at the same energy (1e-9 Hartree), rotations in at most 1.3 times the iterations of full diagonalisation;
energy and dipole moment must be those of the record (1e-8 Hartree, 1e-5 Debye). The file is rewritten after every
record, so that an interruption loses nothing.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "support"), str(ROOT / "benchmarks")]

from common import machine  # noqa: E402

from cuanto.backends.base import get_backend  # noqa: E402
from scf_cases import options_for_counting, records, run_record  # noqa: E402

FILES = ("rhf_sto3g_631gss", "rhf_ccpvdz", "open_shell", "cuo_uhf")
SAME_ENERGY, MORE_ITERATIONS = 1e-9, 1.3
REFERENCE_ENERGY, REFERENCE_DIPOLE = 1e-8, 1e-5
"""Tolerances of energies (Hartree) and dipole moments (Debye) against the record."""
WAYS: dict[str, dict[str, Any]] = {
    "": {},
    "rohf": {"method": "rohf"},
    "shift": {"level_shift": 0.3},
    "jk": {"fitting": "jk", "auxbasis": "def2-universal-jkfit"},
}
"""Options with which a record is computed: none, and for open shells the others as well."""
Case = tuple[str, dict[str, Any], dict[str, Any], bool]


def cases(functions: int, only: str) -> Iterator[Case]:
    """Names, records, options, and whether these options must reproduce the energy of the record."""
    found = sorted((r for file in FILES for r in records(file)), key=lambda r: r["nbf"])
    for given in found:
        if given["method"] not in ("RHF", "UHF") or given["nbf"] > functions or only not in given["molecule"]:
            continue
        form = "cartesian" if given["cartesian"] else "pure"
        name = f"{given['molecule']} {given['basis']} {form} {given['fitting'].split('(')[0].strip()}"
        if given["auxbasis"]:
            name += f" {given['auxbasis']}"
        if given.get("label"):
            name += f" ({given['label'].split(',')[0].split(' after')[0]})"
        options = options_for_counting(given)
        for way in WAYS if plain_open_shell(given) else ("",):
            yield f"{name} {way}".strip(), given, {**options, **WAYS[way]}, way in ("", "shift")


def plain_open_shell(given: dict[str, Any]) -> bool:
    """Whether a record is an ordinary open shell, which is computed in all WAYS: not CuO, and no labelled state."""
    return given["method"] == "UHF" and given["molecule"] != "CuO" and "label" not in given


def compare(case: Case, backend: str) -> dict[str, Any]:
    """Compute a record: energies, iterations, differences, and problems."""
    name, given, options, reached = case
    start = time.perf_counter()
    full, pseudo = (
        run_record(given, **{**options, "diagonaliser": way, "backend": backend}) for way in ("full", "pseudo")
    )
    row: dict[str, Any] = {"case": name, "functions": given["nbf"], "energy": full.energy}
    row |= {"difference": pseudo.energy - full.energy, "seconds": time.perf_counter() - start}
    row |= {"iterations": [full.iterations, pseudo.iterations], "troubles": []}
    row |= {"converged": [full.converged, pseudo.converged]}
    if not (full.converged and pseudo.converged):
        row["troubles"].append("did not converge")
    if not abs(row["difference"]) < SAME_ENERGY:
        row["troubles"].append("energies differ")
    if pseudo.iterations > MORE_ITERATIONS * full.iterations:
        row["troubles"].append("more iterations")
    if reached:
        row["to_reference"] = max(abs(found.energy - given["energy"]) for found in (full, pseudo))
        if "level_shift" not in options:  # with a shift, dipole moments converge more slowly than the energy
            row["dipole"] = dipole_difference(full.dipole_debye, given)
        if not (row["to_reference"] < REFERENCE_ENERGY and row.get("dipole", 0.0) < REFERENCE_DIPOLE):
            row["troubles"].append("not the reference")
    return row


def dipole_difference(ours: Any, given: dict[str, Any]) -> float:
    """Difference of dipole moments, Debye; the orientation of a broken symmetry about the molecular axis z is
    arbitrary."""
    theirs = np.array(given["dipole_debye"])
    if given["molecule"] in ("CuO", "NO2"):
        return float(max(abs(ours[2] - theirs[2]), abs(np.hypot(*ours[:2]) - np.hypot(*theirs[:2]))))
    return float(np.abs(ours - theirs).max())


def show(row: dict[str, Any]) -> None:
    """Print a line of the table."""
    iterations = " ".join(f"{n:5d}" for n in row["iterations"])
    numbers = f"{row['energy']:18.9f} {row['difference']:9.1e} {iterations}"
    reference = " ".join(f"{row[key]:9.1e}" if key in row else " " * 9 for key in ("to_reference", "dipole"))
    print(f"{row['case']:72} {numbers} {reference} {', '.join(row['troubles'])}", flush=True)


def main() -> int:
    """Print the table; the exit status says whether all agree."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--functions", type=int, default=130, help="leave out larger bases")
    parser.add_argument("--only", default="", help="part of a molecule's name")
    parser.add_argument("--backend", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--json", help="write the result here")
    given = parser.parse_args()
    record: dict[str, Any] = {"benchmark": "references", "machine": machine(get_backend(given.backend)), "rows": []}
    print(f"{'':72} {'full':>18} {'pseudo':>9} {'full':>5} {'ps.':>5} {'to PySCF':>9} {'Debye':>9}")
    for case in cases(given.functions, given.only):
        record["rows"].append(compare(case, given.backend))
        show(record["rows"][-1])
        if given.json:
            Path(given.json).write_text(json.dumps(record, indent=1) + "\n")
    return 1 if any(row["troubles"] for row in record["rows"]) else 0


if __name__ == "__main__":
    raise SystemExit(main())
