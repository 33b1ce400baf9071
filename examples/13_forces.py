"""Forces on the atoms of a water molecule, checked by differences of energies, and a few steps downhill.

    python examples/13_forces.py [METHOD] [BASIS]

On the command line: `cuanto gradient water.xyz -m b3lyp -b def2-svp`.
"""

from __future__ import annotations

import argparse

import numpy as np

import cuanto

WATER = "3\nwater, stretched\nO 0.00 0.00 0.12\nH 0.00 0.80 -0.48\nH 0.00 -0.80 -0.48\n"
STEP = 1e-3
"""Displacement for differences of energies, Bohr."""
STRENGTH = 0.9
"""Length of a step downhill in Bohr, for a gradient of 1 Hartree/Bohr."""


def main(method: str = "hf", basis: str = "def2-svp", steps: int = 8) -> tuple[float, float]:
    """Difference of a component from a numerical derivative, and the last norm of the gradient."""
    molecule = cuanto.Molecule.from_string(WATER)
    found = cuanto.gradient(molecule, method, basis)
    energies = []
    for sign in (1, -1):
        R_ax = molecule.R_ax.copy()
        R_ax[1, 1] += sign * STEP
        moved = cuanto.Molecule(molecule.symbols, R_ax)
        energies.append(cuanto.energy(moved, method, basis, gradient_tolerance=1e-7).energy)
    error = float(found.gradient[1, 1]) - (energies[0] - energies[1]) / (2 * STEP)
    print(f"dE/dy of the first hydrogen: {found.gradient[1, 1]:.8f} Hartree/Bohr, {error:+.1e} from differences")

    for step in range(steps):
        norm = float(np.linalg.norm(found.gradient))
        print(
            f"step {step}: {found.energy:.8f} Hartree, gradient {norm:.6f}, converged in {found.iterations} iterations"
        )
        molecule = cuanto.Molecule(molecule.symbols, molecule.R_ax - STRENGTH * found.gradient)
        found = cuanto.gradient(molecule, method, basis, guess=found)  # from the last orbitals
    return error, float(np.linalg.norm(found.gradient))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("method", nargs="?", default="hf")
    parser.add_argument("basis", nargs="?", default="def2-svp")
    main(**vars(parser.parse_args()))
