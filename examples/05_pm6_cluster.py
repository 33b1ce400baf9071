"""PM6 on a water cluster, with and without full diagonalisation.

    python examples/05_pm6_cluster.py [MOLECULES_ALONG_AN_EDGE]

Semiempirical methods spend most of their time diagonalising Fock matrices. Rotations between occupied and virtual
orbitals achieve the same with a few matrix products. `auto`, the default, uses them from 200 orbitals on; the larger
the cluster, the more they save.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import cuanto

WATER = np.array([[0.0, 0.0, 0.117], [0.0, 0.757, -0.469], [0.0, -0.757, -0.469]])  # O, H, H in Angstrom
DIAGONALISERS = {"full": {"diagonaliser": "full"}, "rotations": {"diagonaliser": "pseudo"}}
SPACING = 3.1  # Angstrom between molecules, about that of the liquid


def cluster(edge: int) -> cuanto.Molecule:
    """A cube of edge x edge x edge waters on a lattice, with random but reproducible orientations."""
    rng = np.random.default_rng(1)
    lines = [str(3 * edge**3), f"{edge**3} waters"]
    for place in np.ndindex(edge, edge, edge):
        rotation, _ = np.linalg.qr(rng.normal(size=(3, 3)))
        for symbol, atom in zip("OHH", WATER @ rotation + SPACING * np.array(place), strict=True):
            lines.append(f"{symbol} {atom[0]:.6f} {atom[1]:.6f} {atom[2]:.6f}")
    return cuanto.Molecule.from_string("\n".join(lines) + "\n")


def main(edge: int = 3) -> dict[str, float]:
    """Energies by diagonaliser, in Hartree."""
    molecule = cluster(edge)
    print(f"PM6: {molecule.natom} atoms, {6 * edge**3} orbitals")
    cuanto.energy(cluster(1), "pm6")  # compile kernels first, so that the times below are those of the SCF
    energies = {}
    for name, options in DIAGONALISERS.items():
        begin = time.perf_counter()
        result = cuanto.energy(molecule, "pm6", **options)
        seconds = time.perf_counter() - begin
        energies[name] = result.energy
        verdict = "converged" if result.converged else "NOT converged"
        done = f"{verdict} in {result.iterations} iterations, {seconds:.2f} s"
        print(f"  {name:<10}{result.energy:18.9f} Hartree, {done}")
    per_molecule = result.heat_of_formation / edge**3
    print(f"heat of formation: {result.heat_of_formation:.3f} kcal/mol, {per_molecule:.3f} per molecule")
    print(f"the two energies differ by {abs(energies['full'] - energies['rotations']):.0e} Hartree")
    return energies


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="PM6 on a cluster of water.")
    parser.add_argument("edge", nargs="?", type=int, default=3, help="molecules along an edge (default: 3)")
    try:
        main(parser.parse_args().edge)
    except cuanto.errors.CuantoError as error:
        parser.exit(2, f"{error}\n")
