"""SCF solutions that are not minima: check the stability, follow an instability, restart from a file.

    python examples/10_hard_cases.py [DISTANCE]

Two distant hydrogen atoms (default: 2.5 Angstrom) have one electron each. A restricted wave function cannot describe
this: it puts both electrons into one orbital over both atoms. Unrestricted orbitals can, but from a symmetric guess the
SCF converges to a saddle point.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import cuanto
from cuanto.interfaces.qcschema import write_qcschema


def report(title: str, result: cuanto.Result) -> float:
    """Print one line and the notes about stability; return the energy."""
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

    # 1. This converges, but only the curvature shows that it is not a minimum.
    result = cuanto.energy(molecule, "uhf", **common, stability="check")
    energies.append(report("UHF from the default guess", result))

    # 2. Follow the direction of negative curvature and converge again.
    broken = cuanto.energy(molecule, "uhf", **common, stability="follow")
    energies.append(report("the same, following the instability", broken))

    # 3. Or start from atoms with opposite spins.
    energies.append(report("UHF from polarised atoms", cuanto.energy(molecule, "uhf", **common, atomic_spins=[1, -1])))

    # 4. A result can be the guess of another calculation, here with a slightly longer bond.
    further = cuanto.Molecule.from_string(f"2\n\nH 0 0 0\nH 0 0 {distance + 0.1}\n")
    energies.append(report("0.1 Angstrom further, restarted", cuanto.energy(further, "uhf", **common, guess=broken)))

    # 5. So can a file: a result in JSON, or a checkpoint after a crash (`cuanto energy --restart`).
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "h2.json"
        write_qcschema(path, broken)  # what `cuanto energy --json` writes
        energies.append(report("from a file", cuanto.energy(molecule, "uhf", **common, guess=cuanto.read(path))))

    atoms = 2 * cuanto.energy(cuanto.Molecule.from_string("1\n\nH 0 0 0\n"), "uhf", **common).energy
    print(f"{'two separate atoms':<34}{atoms:14.8f} Hartree")
    return [*energies, atoms]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Stability, broken symmetry and restarts of an SCF.")
    parser.add_argument("distance", nargs="?", type=float, default=2.5, help="in Angstrom (default: 2.5)")
    try:
        main(parser.parse_args().distance)
    except cuanto.errors.CuantoError as error:
        parser.exit(2, f"{error}\n")
