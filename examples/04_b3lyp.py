"""A density-functional energy and its analysis: energy terms, orbital levels, gap, dipole moment, charges.

    python examples/04_b3lyp.py [MOLECULE.xyz [BASIS]]

B3LYP with density fitting (the default). On the command line:
`cuanto energy molecule.xyz -m b3lyp -b def2-svp`.
"""

from __future__ import annotations

import argparse
from importlib.resources import as_file, files

import numpy as np

import cuanto
from cuanto.units import HARTREE_IN_EV


def main(xyz: str | None = None, basis: str = "def2-svp") -> cuanto.Result:
    """Print the analysis and return the result."""
    with as_file(files("cuanto") / "data" / "molecules" / "water.xyz") as shipped:
        molecule = cuanto.Molecule.from_xyz(xyz or shipped)

    # One call. J and K are fitted in an auxiliary basis that matches the orbital basis.
    result = cuanto.energy(molecule, "b3lyp", basis)
    verdict = "converged" if result.converged else "NOT converged"
    print(f"B3LYP/{basis}: {result.energy:.8f} Hartree, {verdict} in {result.iterations} iterations")

    print("\nenergy terms / Hartree")
    for term, value in result.energies.items():
        print(f"  {term:<22}{value:16.8f}")

    # Orbital energies of the first spin; closed shells have only one.
    levels, occupied = result.orbital_energies[0], result.occupations[0]
    homo = int(np.count_nonzero(occupied)) - 1
    print("\nlevels around the gap / eV")
    for m in range(max(homo - 2, 0), min(homo + 3, len(levels))):
        name = "HOMO" if m == homo else "LUMO" if m == homo + 1 else ""
        print(f"  {m + 1:>4}{levels[m] * HARTREE_IN_EV:12.3f}  {'2' if m <= homo else ' '}  {name}")

    x, y, z = result.dipole_debye
    print(f"\ndipole moment: {np.linalg.norm((x, y, z)):.3f} Debye")
    print("charges / e: " + ", ".join(f"{s} {q:+.3f}" for s, q in zip(molecule.symbols, result.charges, strict=True)))

    # Notes of the calculation: the memory plan of the fit, the quality of the grid.
    for note in result.notes:
        print(f"note: {note}")
    return result


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A B3LYP energy and its analysis.")
    parser.add_argument("xyz", nargs="?", metavar="MOLECULE.xyz", help="geometry in Angstrom (default: water)")
    parser.add_argument("basis", nargs="?", metavar="BASIS", default="def2-svp", help="default: def2-svp")
    options = parser.parse_args()
    try:
        main(options.xyz, options.basis)
    except cuanto.errors.CuantoError as error:
        parser.exit(2, f"{error}\n")
