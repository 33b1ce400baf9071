"""Full diagonalisation against rotations: energies and iterations for every record of the Hartree-Fock reference.

python tools/compare_diagonalisers.py                 # records of up to 130 functions
python tools/compare_diagonalisers.py --functions 500 --only alkane
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from scf_cases import how, records, run_record  # noqa: E402

FILES = ("rhf_sto3g_631gss", "rhf_ccpvdz", "open_shell", "cuo_uhf")
SAME_ENERGY, MORE_ITERATIONS = 1e-9, 1.3
WAYS: dict[str, dict[str, Any]] = {
    "": {},
    "rohf": {"method": "rohf"},
    "shift": {"level_shift": 0.3},
    "jk": {"fitting": "jk", "auxbasis": "def2-universal-jkfit"},
}
"""As recorded, and what is compared besides for open shells."""


def cases(functions: int, only: str) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """A name, a record, and options."""
    for given in (r for file in FILES for r in records(file)):
        if given["method"] not in ("RHF", "UHF") or given["nbf"] > functions or only not in given["molecule"]:
            continue
        form = "cartesian" if given["cartesian"] else "pure"
        name = f"{given['molecule']} {given['basis']} {form} {given['fitting'].split('(')[0].strip()}"
        if given["auxbasis"]:
            name += f" {given['auxbasis']}"
        for way in ("", "rohf", "shift", "jk") if plain_open_shell(given) else ("",):
            yield f"{name} {way}".strip(), given, {**how(given), **WAYS[way]}


def plain_open_shell(given: dict[str, Any]) -> bool:
    """Small enough to be done in every way."""
    return given["method"] == "UHF" and given["molecule"] != "CuO" and "label" not in given


def compare(given: dict[str, Any], options: dict[str, Any]) -> tuple[str, bool]:
    """A row of the table, and whether both agree."""
    full, pseudo = (run_record(given, **{**options, "diagonaliser": way}) for way in ("full", "pseudo"))
    difference = pseudo.energy - full.energy
    good = (
        full.converged
        and pseudo.converged
        and abs(difference) < SAME_ENERGY
        and pseudo.iterations <= MORE_ITERATIONS * full.iterations
    )
    row = f"{full.energy:18.9f} {difference:9.1e} {full.iterations:5d} {pseudo.iterations:7d}"
    return f"{row} {'' if good else 'DIFFERS'}", good


def main() -> int:
    """Print the table; the exit status says whether all agree."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--functions", type=int, default=130, help="leave out larger bases")
    parser.add_argument("--only", default="", help="part of a molecule's name")
    given = parser.parse_args()
    print(f"{'':58} {'energy full':>18} {'pseudo':>9} {'full':>5} {'pseudo':>7}")
    everything = True
    for name, record, options in cases(given.functions, given.only):
        row, good = compare(record, options)
        everything = everything and good
        print(f"{name:58} {row}", flush=True)
    return 0 if everything else 1


if __name__ == "__main__":
    raise SystemExit(main())
