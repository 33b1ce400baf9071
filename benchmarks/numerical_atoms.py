"""Dirac-Hartree-Fock atoms at the basis-set limit, compared with energies of a numerical program.

    python benchmarks/numerical_atoms.py --json benchmarks/results/numerical_atoms_cpu.json
    python benchmarks/numerical_atoms.py --only Ba U88+

The references (tests/data/atoms_numerical.json) are outputs of DBSR_HF. Nuclei are the same Fermi distributions, as
sums of uniform spheres; the basis is an even-tempered set of ratio 1.65 (see benchmarks/atoms.py). Exit status 1 if an
atom does not converge, or differs by more than `LARGEST`.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from atoms import limit_basis
from common import ROOT, machine, save

sys.path.insert(0, str(Path(ROOT) / "tests" / "support"))

from atomic_cases import fermi_potential, numerical_entries, occupation
from cuanto.atomic import Atom, Nucleus, ScfSettings, solve
from cuanto.atomic.configuration import parse_configuration
from cuanto.backends.base import get_backend

LARGEST = {False: 2e-10, True: 2e-8}
"""Largest relative difference, by whether an open shell has the symmetry of a closed one; such references are not quite
stationary."""


def compare(entry: dict[str, Any], ratio: float, backend: Any) -> dict[str, Any]:
    """Compute one atom."""
    start = time.perf_counter()
    basis = limit_basis(max(l for _, l in parse_configuration(entry["configuration"])), ratio)
    with fermi_potential(entry["rms_radius_fm"]):
        atom = Atom(Nucleus(entry["Z"], "sphere"), basis, occupation(entry["configuration"], basis))
        result = solve(atom, ScfSettings(c=entry["c"]), backend)
    difference = result.energy - entry["energy"]
    return {
        "atom": entry["atom"],
        "energy": result.energy,
        "difference": difference,
        "relative": difference / abs(entry["energy"]),
        "shared_symmetry": entry["shared_symmetry"],
        "converged": result.converged,
        "seconds": round(time.perf_counter() - start, 2),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=tuple(numerical_entries()), help="these atoms")
    parser.add_argument("--ratio", type=float, default=1.65, help="ratio of exponents")
    parser.add_argument("--json", help="write the result here")
    options = parser.parse_args()
    backend = get_backend("cpu")
    rows = []
    for name, entry in numerical_entries().items():
        if options.only is None or name in options.only:
            rows.append(compare(entry, options.ratio, backend))
            row = rows[-1]
            print(f"{name:5} {row['energy']:17.9f} {row['difference']:+9.1e} {row['relative']:+9.1e}", flush=True)
    save(
        options.json,
        {"benchmark": "numerical_atoms", "machine": machine(backend), "ratio": options.ratio, "rows": rows},
    )
    right = (row["converged"] and abs(row["relative"]) < LARGEST[row["shared_symmetry"]] for row in rows)
    return int(not all(right))


if __name__ == "__main__":
    raise SystemExit(main())
