"""Every molecule of the semiempirical reference with every method: largest differences, as a table.

    python tools/compare_semiempirical.py            # the table of docs/develop/accuracy_records.md

The reference (tests/data/nddo_reference.json) has values of an independent program and of MOPAC 23.2.5. SCFs that are
compared with it are converged to 1e-12 Hartree and a gradient of 1e-8; diagonalisers are compared with each other at
default settings. Exit status 1: a difference is larger than the reference recommends, or than 1e-9 Hartree and 1.3
times the iterations between diagonalisers.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "support")]
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np  # noqa: E402

from cuanto import Molecule  # noqa: E402
from cuanto.semiempirical.constants import BOHR, HARTREE, HARTREE_IN_KCAL, RESCALE  # noqa: E402
from nddo_cases import METHODS, NAMES, TIGHT, molecule, reference, run, timing_geometry, values  # noqa: E402

TOLERANCES = reference()["meta"]["recommended_tolerances"]
OURS, MOPAC = TOLERANCES["vs_independent"], TOLERANCES["vs_mopac"]
TIMED = ("water_64", "polyethylene_C83", "water_128")
HEAT, HEAT_MOPAC, HEAT_SERIES = (
    "heat of formation, independent program",
    "heat of formation, MOPAC",
    "heat of formation, MOPAC, `mopac_compatible`",
)
DIPOLE, DIPOLE_MOPAC = "dipole moment, independent program", "dipole moment, MOPAC"
LEVELS = "orbital energies, independent program"
GRADIENT, GRADIENT_MOPAC = "gradient, independent program", "gradient, MOPAC (all but ribavirin with PM6)"
ENERGY, CYCLES = "energy, rotations and full diagonalisation", "iterations, rotations and full diagonalisation"
LARGE = ", timing geometries"
LIMITS = {
    HEAT: (OURS["heat_kcal_mol"], "kcal/mol"),
    HEAT_MOPAC: (MOPAC["heat_kcal_mol"], "kcal/mol"),
    HEAT_SERIES: (1.2e-6, "kcal/mol"),
    HEAT_SERIES + LARGE: (2e-5, "kcal/mol"),
    DIPOLE: (OURS["dipole_debye"], "Debye"),
    DIPOLE_MOPAC: (MOPAC["dipole_debye"], "Debye"),
    LEVELS: (OURS["orbital_energy_eV"], "eV"),
    GRADIENT: (OURS["gradient_kcal_mol_A"], "kcal/mol/Angstrom"),
    GRADIENT_MOPAC: (MOPAC["gradient_kcal_mol_A"], "kcal/mol/Angstrom"),
    ENERGY: (1e-9, "Hartree"),
    ENERGY + LARGE: (1e-9, "Hartree"),
    CYCLES: (1.3, "times"),
    CYCLES + LARGE: (1.3, "times"),
}
"""What is allowed, and its unit. MOPAC printed five decimals of the heats of large molecules."""
Differences = dict[str, float]


def of_reference(name: str, method: str) -> Differences:
    """Everything that the reference knows of a molecule."""
    known, mopac = values(name, method), values(name, method, "mopac")
    result, compatible = (run(molecule(name), method, mopac_compatible=on, **TIGHT) for on in (False, True))
    gradient = result.gradient * (HARTREE_IN_KCAL / BOHR * RESCALE)
    heat, heat_mopac = (source["heat_of_formation_kcal_mol"] for source in (known, mopac))
    found = {
        HEAT: abs(result.heat_of_formation - heat),
        HEAT_MOPAC: abs(result.heat_of_formation - heat_mopac),
        HEAT_SERIES: abs(compatible.heat_of_formation - heat_mopac),
        DIPOLE: largest(result.dipole_debye, known["dipole_vector_debye"]),
        DIPOLE_MOPAC: largest(result.dipole_debye, mopac["dipole_vector_debye"]),
        LEVELS: largest(result.orbital_energies[0] * HARTREE, known["alpha_orbital_energies_eV"]),
        GRADIENT: largest(gradient, known["gradient_kcal_mol_A"]),
    }
    if (name, method) != ("ribavirin", "PM6"):
        found[GRADIENT_MOPAC] = largest(gradient, mopac["gradient_kcal_mol_A"])
    found[ENERGY], found[CYCLES] = against_full(molecule(name), method, ("refined", "block"))
    return found


def of_timing_geometry(name: str) -> Differences:
    """Of one that MOPAC was timed with."""
    mol, timings = timing_geometry(name), reference()["timings_mopac"]["results"]
    heat = next(record["hof"] for record in timings if (record["system"], record["mode"]) == (name, "full"))
    energy, ratio = against_full(mol, "PM6", ("block",))
    compatible = run(mol, "PM6", mopac_compatible=True)
    return {
        HEAT_SERIES + LARGE: abs(compatible.heat_of_formation - heat),
        ENERGY + LARGE: energy,
        CYCLES + LARGE: ratio,
    }


def against_full(mol: Molecule, method: str, variants: tuple[str, ...]) -> tuple[float, float]:
    """Largest difference of energies (infinite where one did not converge), and ratio of iterations."""
    full = run(mol, method, diagonaliser="full")
    made = [run(mol, method, diagonaliser="pseudo", variant=variant) for variant in variants]
    sound = full.converged and all(one.converged for one in made)
    energy = max(abs(one.energy - full.energy) for one in made)
    return energy if sound else np.inf, max(one.iterations for one in made) / full.iterations


def largest(found: Any, known: Any) -> float:
    """Of differences between two lists of numbers."""
    return float(np.abs(np.ravel(found) - np.ravel(known)).max())


def main() -> int:
    """The table."""
    cases = {f"{name}, {method}": of_reference(name, method) for name in NAMES for method in METHODS}
    cases |= {f"{name}, PM6": of_timing_geometry(name) for name in TIMED}
    print("| quantity | largest difference | where | allowed |\n| --- | --- | --- | --- |")
    failed = False
    for quantity, (limit, unit) in LIMITS.items():
        worst, where = max((found[quantity], case) for case, found in cases.items() if quantity in found)
        shown = f"{worst:.2f}" if unit == "times" else f"{worst:.1e}"
        print(f"| {quantity} | {shown} {unit} | {where} | {limit:g} |")
        failed = failed or not worst <= limit
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
