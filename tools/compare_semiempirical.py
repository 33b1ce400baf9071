"""Every molecule of the semiempirical reference with every method: largest differences, as a table.

    python tools/compare_semiempirical.py            # the first table of docs/develop/accuracy_records.md
    python tools/compare_semiempirical.py --elements --workers 2 \\
        --json benchmarks/results/semiempirical_elements_cpu.json

The reference (tests/data/nddo_reference.json) has values of an independent program and of MOPAC 23.2.5. SCFs that are
compared with it are converged to 1e-12 Hartree and a gradient of 1e-8; diagonalisers are compared with each other at
default settings. Exit status 1: a difference is larger than the reference recommends, or than 1e-9 Hartree and 1.3
times the iterations between diagonalisers. `--elements`: molecules with all other elements instead
(tests/data/nddo_elements.json; at default settings but for the tolerances), with every component of the gradients by
finite differences at four points in steps of 2e-3 Bohr, or at eight in steps of 5e-4 with metals and noble gases, whose
densities may be soft (3e-4 for the softest).
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / part) for part in ("src", "tests/support", "benchmarks")]
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np  # noqa: E402
from common import machine, save  # noqa: E402

from cuanto import Molecule  # noqa: E402
from cuanto.backends.base import get_backend  # noqa: E402
from cuanto.semiempirical.constants import BOHR, HARTREE, HARTREE_IN_KCAL, RESCALE  # noqa: E402
from nddo_cases import (  # noqa: E402
    METHODS,
    NAMES,
    ROWS,
    TIGHT,
    elements,
    molecule,
    numerical_gradient,
    reference,
    run,
    timing_geometry,
    values,
)

TOLERANCES = reference()["meta"]["recommended_tolerances"]
OURS, MOPAC = TOLERANCES["vs_independent"], TOLERANCES["vs_mopac"]
IN_KCAL = HARTREE_IN_KCAL / BOHR * RESCALE
"""Factor that converts a gradient from Hartree/Bohr to kcal/mol/Angstrom."""
TIMED = ("water_64", "polyethylene_C83", "water_128")
HEAT, HEAT_MOPAC, HEAT_SERIES = (
    "heat of formation, independent program",
    "heat of formation, MOPAC",
    "heat of formation, MOPAC, `mopac_compatible`",
)
DIPOLE, DIPOLE_MOPAC = "dipole moment, independent program", "dipole moment, MOPAC"
LEVELS = "orbital energies, independent program"
GRADIENT, GRADIENT_MOPAC = "gradient, independent program", "gradient, MOPAC (see below)"
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
"""Tolerances and their units. MOPAC prints five decimals of the heats of large molecules."""
ELEMENTS = elements()["meta"]["recommended_tolerances"]
SLOPES, SLOPES_CPU = "gradient, finite differences", "gradient, CPU"
SOFT = 5e-4
"""Lowest curvature (Hartree) of a density that needs smaller steps."""
OTHER_ORIENTATION = ("Fe(CN)6_4-", "PM6")
"""Symmetric molecules for which MOPAC found another of several equivalent states, so that gradients differ in
orientation."""
ELEMENT_LIMITS = {
    HEAT: (ELEMENTS["vs_independent"]["heat_kcal_mol"], "kcal/mol"),
    HEAT_MOPAC: (ELEMENTS["vs_mopac"]["heat_kcal_mol"], "kcal/mol"),
    HEAT_SERIES: (ELEMENTS["vs_mopac"]["heat_kcal_mol_with_truncated_B"], "kcal/mol"),
    DIPOLE_MOPAC: (ELEMENTS["vs_mopac"]["dipole_debye"], "Debye"),
    GRADIENT_MOPAC: (ELEMENTS["vs_mopac"]["gradient_kcal_mol_A"], "kcal/mol/Angstrom"),
    SLOPES: (1e-6, "kcal/mol/Angstrom"),
    SLOPES_CPU: (1e-6, "kcal/mol/Angstrom"),
}
Differences = dict[str, float]


def reference_differences(name: str, method: str) -> Differences:
    """Compare a molecule with all its reference values."""
    known, mopac = values(name, method), values(name, method, "mopac")
    result, compatible = (run(molecule(name), method, mopac_compatible=on, **TIGHT) for on in (False, True))
    gradient = result.gradient * IN_KCAL
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
    found[ENERGY], found[CYCLES] = compare_with_full(molecule(name), method, ("refined", "block"))
    return found


def timing_geometry_differences(name: str) -> Differences:
    """Compare a molecule for which MOPAC was timed."""
    mol, timings = timing_geometry(name), reference()["timings_mopac"]["results"]
    heat = next(record["hof"] for record in timings if (record["system"], record["mode"]) == (name, "full"))
    energy, ratio = compare_with_full(mol, "PM6", ("block",))
    compatible = run(mol, "PM6", mopac_compatible=True)
    return {
        HEAT_SERIES + LARGE: abs(compatible.heat_of_formation - heat),
        ENERGY + LARGE: energy,
        CYCLES + LARGE: ratio,
    }


def compare_with_full(mol: Molecule, method: str, variants: tuple[str, ...]) -> tuple[float, float]:
    """Largest difference of energies (infinite where one did not converge), and ratio of iterations."""
    full = run(mol, method, diagonaliser="full")
    result = [run(mol, method, diagonaliser="pseudo", variant=variant) for variant in variants]
    sound = full.converged and all(one.converged for one in result)
    energy = max(abs(one.energy - full.energy) for one in result)
    return energy if sound else np.inf, max(one.iterations for one in result) / full.iterations


def largest(found: Any, known: Any) -> float:
    """Largest difference between two lists of numbers."""
    return float(np.abs(np.ravel(found) - np.ravel(known)).max())


def element_differences(name: str, method: str, backend: str, numerical: bool) -> Differences:
    """Compare a molecule of the reference of all elements; MOPAC's dipole moments of ions refer to its own masses."""
    mol, known, mopac = molecule(name, method), values(name, method), values(name, method, "mopac")
    options = {"energy_tolerance": 1e-13, "gradient_tolerance": 1e-10, "dipole_tolerance": 1e-9, "max_iterations": 400}
    result, compatible = (run(mol, method, backend, mopac_compatible=on, **options) for on in (False, True))
    step, points = (5e-4, 8) if result.calculation.layout.ambiguous else (2e-3, 4)
    if result.state.curvature is not None and result.state.curvature < SOFT:
        step = 3e-4
    heat, heat_mopac = (source["heat_of_formation_kcal_mol"] for source in (known, mopac))
    found = {
        HEAT: abs(result.heat_of_formation - heat),
        HEAT_MOPAC: abs(result.heat_of_formation - heat_mopac),
        HEAT_SERIES: abs(compatible.heat_of_formation - heat_mopac),
    }
    if numerical:
        found[SLOPES] = IN_KCAL * largest(result.gradient, numerical_gradient(result, step, points, **options))
    else:
        found[SLOPES_CPU] = IN_KCAL * largest(result.gradient, run(mol, method, "cpu", **options).gradient)
    if mol.charge == 0:
        found[DIPOLE_MOPAC] = largest(compatible.dipole_debye, mopac["dipole_vector_debye"])
    if (name, method) != OTHER_ORIENTATION:
        found[GRADIENT_MOPAC] = largest(compatible.gradient * IN_KCAL, mopac["gradient_kcal_mol_A"])
    return found if result.converged and compatible.converged else dict.fromkeys(found, np.inf)


def table(cases: dict[str, Differences], limits: dict[str, tuple[float, str]]) -> bool:
    """Print the largest differences; returns whether all are within the tolerances."""
    print("| quantity | largest difference | where | allowed |\n| --- | --- | --- | --- |")
    sound = True
    for quantity, (limit, unit) in limits.items():
        known = [(found[quantity], case) for case, found in cases.items() if quantity in found]
        if not known:
            continue
        worst, where = max(known)
        shown = f"{worst:.2f}" if unit == "times" else f"{worst:.1e}"
        print(f"| {quantity} | {shown} {unit} | {where} | {limit:g} |")
        sound = sound and worst <= limit
    return sound


def compare_elements(backend_name: str, workers: int, path: str | None, numerical: bool) -> bool:
    """Print the table of all elements, and write its rows to a file."""
    backend, start = get_backend(backend_name), time.perf_counter()
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        found = pool.map(element_differences, *zip(*ROWS, strict=True), repeat(backend_name), repeat(numerical))
        cases = {f"{name}, {method}": one for (name, method), one in zip(ROWS, found, strict=True)}
    sound = table(cases, ELEMENT_LIMITS)
    rows = {case: {quantity: float(f"{x:.2g}") for quantity, x in found.items()} for case, found in cases.items()}
    compared = {quantity for found in rows.values() for quantity in found}
    allowed = {quantity: limit for quantity, limit in ELEMENT_LIMITS.items() if quantity in compared}
    about = {"machine": machine(backend), "seconds": round(time.perf_counter() - start, 1), "allowed": allowed}
    save(path, {**about, "calculations": len(rows), "sound": sound, "rows": rows})
    return sound


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--elements", action="store_true", help="molecules with all elements")
    parser.add_argument("--backend", default="cpu", help="of --elements")
    parser.add_argument("--workers", type=int, default=1, help="processes of --elements")
    parser.add_argument("--no-differences", action="store_true", help="compare gradients with those of a CPU instead")
    parser.add_argument("--json", help="record of --elements")
    given = parser.parse_args()
    if given.elements:
        return int(not compare_elements(given.backend, given.workers, given.json, not given.no_differences))
    cases = {f"{name}, {method}": reference_differences(name, method) for name in NAMES for method in METHODS}
    cases |= {f"{name}, PM6": timing_geometry_differences(name) for name in TIMED}
    return int(not table(cases, LIMITS))


if __name__ == "__main__":
    sys.exit(main())
