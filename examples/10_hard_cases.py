"""When the SCF ends at the wrong place: is the solution stable, how to leave a bad one, how to go on from a file.

    python examples/10_hard_cases.py [DISTANCE]

Two hydrogen atoms far apart (default: 2.5 Angstrom) are two electrons on two atoms. A restricted wave function cannot
say so: it puts both electrons into one orbital, which is half of the time on one atom. Unrestricted orbitals can, but
started from a symmetric guess they stay where they are: on a saddle point.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import cuanto
from cuanto.interfaces.qcschema import write_qcschema


def told(title: str, result: cuanto.Result) -> float:
    """One line, and the notes that matter here."""
    verdict = "converged" if result.converged else "NOT converged"
    spin = f", <S^2> = {result.s_squared:.3f}" if result.method == "uhf" else ""
    print(f"{title:<34}{result.energy:14.8f} Hartree, {verdict} in {result.iterations} iterations{spin}")
    for note in result.notes:
        if "stability" in note:
            print(f"{'':<34}{note}")
    return result.energy


def main(distance: float = 2.5) -> list[float]:
    """Energies in Hartree in the order in which they are printed."""
    molecule = cuanto.Molecule.from_string(f"2\n\nH 0 0 0\nH 0 0 {distance}\n")
    common = {"basis": "cc-pvdz", "fitting": "none"}
    energies = []

    # 1. Looks converged, and it is; that it is no minimum only its curvature tells.
    result = cuanto.energy(molecule, "uhf", **common, stability="check")
    energies.append(told("UHF from the usual guess", result))

    # 2. Follow the direction in which the energy falls, and converge again.
    broken = cuanto.energy(molecule, "uhf", **common, stability="follow")
    energies.append(told("the same, following the instability", broken))

    # 3. Or begin with what a chemist knows: one electron here with spin up, one there with spin down.
    energies.append(told("UHF from polarised atoms", cuanto.energy(molecule, "uhf", **common, atomic_spins=[1, -1])))

    # 4. A result is a guess for the next calculation: here for a slightly longer bond.
    further = cuanto.Molecule.from_string(f"2\n\nH 0 0 0\nH 0 0 {distance + 0.1}\n")
    energies.append(told("0.1 Angstrom further, restarted", cuanto.energy(further, "uhf", **common, guess=broken)))

    # 5. So is a file: any result that was written as JSON, or a checkpoint after a crash (`cuanto energy --restart`).
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "h2.json"
        write_qcschema(path, broken)  # what `cuanto energy --json` writes
        energies.append(told("from a file", cuanto.energy(molecule, "uhf", **common, guess=cuanto.read(path))))

    atoms = 2 * cuanto.energy(cuanto.Molecule.from_string("1\n\nH 0 0 0\n"), "uhf", **common).energy
    print(f"{'two atoms on their own':<34}{atoms:14.8f} Hartree")
    return [*energies, atoms]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Stability, broken symmetry and restarts of an SCF.")
    parser.add_argument("distance", nargs="?", type=float, default=2.5, help="in Angstrom (default: 2.5)")
    try:
        main(parser.parse_args().distance)
    except cuanto.errors.CuantoError as error:
        parser.exit(2, f"{error}\n")
