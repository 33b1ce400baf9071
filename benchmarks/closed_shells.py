"""Restricted energies of closed-shell molecules with transition metals: is the state a minimum, and as low as PySCF's?

    python benchmarks/closed_shells.py --json benchmarks/results/closed_shells_cpu.json
    python benchmarks/closed_shells.py --only TiO "IrH3(CO)"

def2-SVP without fitting, idealised geometries. `plain`: without a test of the converged state (`stability="none"`);
`tested`: default settings; `pyscf`: PySCF's default calculation. Seconds are processor time of the second of two runs.
The record is written after every row, and rows that it has are not computed again. Exit status 1 if a tested energy is
above the plain one or above PySCF's.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from common import ROOT, machine, save

sys.path[:0] = [str(Path(ROOT) / "tools"), str(Path(ROOT) / "tests" / "support")]

from make_core_potential_references import MOLECULES, Atoms, bent, diatomic, linear, octahedral, trigonal  # noqa: E402

import cuanto  # noqa: E402
from cuanto.backends.base import get_backend  # noqa: E402

BASIS, METHODS = "def2-svp", ("rhf", "b3lyp")
TOLERANCE = {"rhf": 1e-6, "b3lyp": 2e-5}
"""Hartree: energies of the same state differ by less, with the grids of both programs."""
CARBONYL: Atoms = [("C", (0.0, -1.85, 0.0)), ("O", (0.0, -3.0, 0.0))]
CLOSED: dict[str, Atoms] = {
    "IrH3(CO)": [*octahedral("Ir", "H", 1.60)[:4], *CARBONYL],
    "RuH2(CO)": [*octahedral("Ru", "H", 1.60)[:3], ("C", (0.0, 0.0, 1.85)), ("O", (0.0, 0.0, 3.0))],
    "TiO": diatomic("Ti", "O", 1.62),
    "ScN": diatomic("Sc", "N", 1.687),
    "CuF": diatomic("Cu", "F", 1.745),
    "NiH2": bent("Ni", "H", 1.45, 90.0),
    "PtH2": bent("Pt", "H", 1.52, 85.0),
    "RhH3": trigonal("Rh", "H", 1.50, 90.0),
    "CoH3": trigonal("Co", "H", 1.50, 95.0),
    "NiCO": linear("Ni", 0.0, "C", 1.667, "O", 2.827),
    "PdCO": MOLECULES["PdCO"][0],
    "CrO3": trigonal("Cr", "O", 1.58, 115.0),
    "RuO4": MOLECULES["RuO4"][0],
    "AuCl": MOLECULES["AuCl"][0],
}
"""Atoms in Angstrom; all are neutral singlets."""


def our_energies(name: str, method: str) -> dict[str, Any]:
    """Energies without and with the test."""
    text = "".join(f"{symbol} {x} {y} {z}\n" for symbol, (x, y, z) in CLOSED[name])
    molecule = cuanto.Molecule.from_string(f"{len(CLOSED[name])}\n\n{text}")
    found: dict[str, Any] = {}
    for key, stability in (("plain", "none"), ("tested", "auto")):
        for _ in range(2):
            start = time.process_time()
            result = cuanto.energy(molecule, method, BASIS, fitting="none", backend="cpu", stability=stability)
            seconds = time.process_time() - start
        found[key] = result.energy if result.converged else None
        found |= {f"{key}_iterations": result.iterations, f"{key}_seconds": round(seconds, 2)}
    return found


def pyscf_energy(name: str, method: str) -> float | None:
    """PySCF's energy with its default settings; None if it does not converge."""
    from pyscf import dft, gto, scf

    mole = gto.M(atom=CLOSED[name], basis=BASIS, ecp=BASIS, verbose=0)
    mean_field = scf.RHF(mole) if method == "rhf" else dft.RKS(mole, xc=method)
    energy = float(mean_field.kernel())
    return energy if mean_field.converged else None


def is_low(row: dict[str, Any]) -> bool:
    """Whether the default calculation ends no higher than the one with `stability=none` and than PySCF."""
    others = [energy for energy in (row["plain"], row["pyscf"]) if energy is not None]
    return row["tested"] is not None and all(row["tested"] < e + TOLERANCE[row["method"]] for e in others)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=tuple(CLOSED), default=tuple(CLOSED), help="these molecules")
    parser.add_argument("--json", help="record")
    options = parser.parse_args()
    there = Path(options.json) if options.json else None
    rows = json.loads(there.read_text())["rows"] if there and there.exists() else []
    record: dict[str, Any] = {"benchmark": "closed_shells", "machine": machine(get_backend("cpu")), "rows": rows}
    for name in options.only:
        for method in METHODS:
            if any((row["molecule"], row["method"]) == (name, method) for row in rows):
                continue
            row = {"molecule": name, "method": method, **our_energies(name, method)}
            row["pyscf"] = pyscf_energy(name, method)
            row["as_low"] = is_low(row)
            rows.append(row)
            print(name, method, row["plain"], row["tested"], row["pyscf"], row["as_low"], flush=True)
            save(options.json, record)
    return int(not all(row["as_low"] for row in rows))


if __name__ == "__main__":
    raise SystemExit(main())
