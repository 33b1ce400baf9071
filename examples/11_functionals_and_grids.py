"""Comparison of functionals for one reaction, and of grids.

    python examples/11_functionals_and_grids.py

The reaction is the atomisation of water: H2O -> O + 2 H. Hartree-Fock misses a third of the energy, the
local density approximation overbinds, hybrids come close (a few kcal/mol are missing in this small basis), and the grid
hardly matters.
"""

from __future__ import annotations

import argparse
from importlib.resources import as_file, files

import cuanto

KCAL = 627.509474  # one Hartree in kcal/mol
EXPERIMENT = 232.6  # kcal/mol: 219.4 at 0 K and 13.3 of zero-point vibration
METHODS = ("hf", "lda", "pbe", "b3lyp")
GRIDS = ("coarse", "medium", "fine")


def atomisation(method: str, water: cuanto.Molecule) -> tuple[float, bool]:
    """Atomisation energy in kcal/mol, and whether all three calculations converged."""
    atoms = {
        "O": cuanto.Molecule.from_string("1\n\nO 0 0 0\n", multiplicity=3),
        "H": cuanto.Molecule.from_string("1\n\nH 0 0 0\n", multiplicity=2),
    }
    whole = cuanto.energy(water, method, "def2-svp")
    parts = {symbol: cuanto.energy(atom, method, "def2-svp") for symbol, atom in atoms.items()}
    energy = (parts["O"].energy + 2 * parts["H"].energy - whole.energy) * KCAL
    return energy, all(result.converged for result in (whole, *parts.values()))


def main() -> tuple[dict[str, float], dict[str, float]]:
    """Atomisation energies by method (kcal/mol), and PBE energies of water by grid (Hartree)."""
    with as_file(files("cuanto") / "data" / "molecules" / "water.xyz") as shipped:
        water = cuanto.Molecule.from_xyz(shipped)

    print(f"H2O -> O + 2 H in def2-SVP; experiment (vibrations removed): {EXPERIMENT} kcal/mol")
    energies = {}
    for method in METHODS:
        energies[method], converged = atomisation(method, water)
        verdict = "all converged" if converged else "NOT converged"
        print(f"  {method:<8}{energies[method]:8.1f} kcal/mol  {verdict}")

    print("PBE energy of water by grid")
    by_grid = {}
    for grid in GRIDS:
        result = cuanto.energy(water, "pbe", "def2-svp", grid=grid)
        by_grid[grid] = result.energy
        print(f"  {grid:<8}{result.energy:16.8f} Hartree  {result.notes[-1]}")
    return energies, by_grid


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Functionals and grids compared.")
    parser.parse_args()
    try:
        main()
    except cuanto.errors.CuantoError as error:
        parser.exit(2, f"{error}\n")
