"""All 118 neutral atoms by Dirac-Hartree-Fock in default and generated basis sets, compared with the basis limit.

    python benchmarks/neutral_atoms.py --json benchmarks/results/neutral_atoms_cpu.json
    python benchmarks/neutral_atoms.py --elements Rn Og          # a few of them

Average of the ground configuration (src/cuanto/data/atoms/configurations.json), Gaussian nucleus, from the core guess.
`default`: the table of the thesis (docs/origins/atoms.md), or the generated set for elements that are not in it;
`even`: the generated set; `limit`: an even-tempered set of ratio 1.65, within about 1e-10 of the basis limit (see
benchmarks/atoms.py). Errors are relative to that limit. Exit status 1 if an atom does not converge or an error is above
`LARGEST_ERROR`.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

from atoms import limit_basis, one_thread
from common import machine, save

from cuanto.atomic import Atom, AtomResult, ScfSettings, mass_number, solve
from cuanto.atomic.configuration import configuration_text, ground_configuration, occupation_of
from cuanto.atomic.job import element_job, run_energy
from cuanto.atomic.wtbs import WellTempered
from cuanto.backends.base import get_backend
from cuanto.system.elements import ATOMIC_NUMBERS, SYMBOLS

LARGEST_ERROR = {"default": 3e-7, "even": 3e-8}
"""Largest relative errors; those of the default sets are largest for Bi to Rn."""


def compute(symbol: str, basis: str, backend: Any) -> tuple[AtomResult, dict[str, Any]]:
    """One atom in a named set: the result, and a row about it."""
    begin = time.perf_counter()
    job = element_job(symbol, basis)
    result = run_energy(job, backend)
    assert isinstance(job.basis, WellTempered)
    return result, {
        "basis": job.basis.range_text(),
        "energy": result.energy,
        "converged": result.converged,
        "iterations": result.iterations,
        "seconds": round(time.perf_counter() - begin, 2),
    }


def row_of(symbol: str, backend: Any, ratio: float) -> dict[str, Any]:
    """An element in all sets."""
    held = ground_configuration(symbol)
    row: dict[str, Any] = {"element": symbol, "Z": ATOMIC_NUMBERS[symbol], "configuration": configuration_text(held)}
    row["mass_number"] = mass_number(row["Z"])
    result, row["default"] = compute(symbol, "auto", backend)
    even, row["even"] = compute(symbol, "even", backend)
    row["rms_radius_fm"] = round(even.atom.nucleus.femtometres, 4)
    large = limit_basis(max(l for _, l in held), ratio)
    occupation = occupation_of(held, (large.nsym - 1) // 2)
    limit = solve(Atom(even.atom.nucleus, large, occupation), ScfSettings(), backend, start=even)
    row |= {"limit": limit.energy, "limit_converged": limit.converged}
    for name, found in (("default", result), ("even", even)):
        row[name]["relative_error"] = (found.energy - limit.energy) / abs(limit.energy)
    return row


def main() -> None:
    """Command line."""
    one_thread()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--elements", nargs="*", default=list(SYMBOLS))
    parser.add_argument("--ratio", type=float, default=1.65, help="of the even-tempered set for the limit")
    parser.add_argument("--json")
    given = parser.parse_args()
    backend = get_backend(given.backend)
    rows = []
    for symbol in given.elements:
        row = row_of(symbol, backend, given.ratio)
        rows.append(row)
        texts = [f"{row[n]['relative_error']:9.1e} {row[n]['iterations']:3d}" for n in LARGEST_ERROR]
        print(
            f"{row['Z']:3d} {symbol:2} {row['limit']:20.9f} {' '.join(texts)} {row['even']['seconds']:6.2f} s",
            flush=True,
        )
    save(given.json, {"machine": machine(backend), "ratio": given.ratio, "elements": rows})
    bad = [row["element"] for row in rows for name, most in LARGEST_ERROR.items() if not good(row, name, most)]
    if bad:
        sys.exit(f"not converged, or error too large: {' '.join(dict.fromkeys(bad))}")


def good(row: dict[str, Any], name: str, largest: float) -> bool:
    """Whether an atom converged with a small error in this set and at the limit."""
    own = row[name]
    return bool(own["converged"] and row["limit_converged"] and -1e-9 < own["relative_error"] < largest)


if __name__ == "__main__":
    main()
