"""cuanto as an ASE calculator: geometry optimisation and vibrations.

    python examples/08_ase.py [NAME]

ASE moves the atoms, cuanto computes energies and forces (PM6). NAME is one of ASE's small molecules (`H2O`, `CH3OH`,
`C6H6`, ...). Needs `pip install 'cuanto[ase]'`.
"""

from __future__ import annotations

import argparse
import tempfile

import cuanto


def main(name: str = "H2O") -> tuple[float, list[float]]:
    """Energy at the minimum in eV, and wavenumbers of the vibrations in 1/cm."""
    from ase.build import molecule
    from ase.optimize import BFGS
    from ase.vibrations import Vibrations

    from cuanto.interfaces.ase import Cuanto

    atoms = molecule(name)
    atoms.calc = Cuanto("pm6")  # and any other argument of `cuanto.energy`
    print(f"{name}: {atoms.get_potential_energy():.6f} eV as given")

    # Every step starts from the orbitals of the previous one.
    relaxed = BFGS(atoms, logfile=None).run(fmax=1e-3, steps=200)
    energy = float(atoms.get_potential_energy())
    print(f"{name}: {energy:.6f} eV at the minimum, geometry {'converged' if relaxed else 'NOT converged'}")

    # The full result has what ASE does not provide.
    result = atoms.calc.result
    for i in range(len(atoms)):
        for j in range(i):
            if (order := result.bond_orders[i, j]) > 0.5:
                bond = f"{atoms[j].symbol}{j + 1}-{atoms[i].symbol}{i + 1}"
                print(f"  {bond} {atoms.get_distance(i, j):.4f} Angstrom, bond order {order:.2f}")
    print("charges / e: " + ", ".join(f"{s} {q:+.3f}" for s, q in zip(atoms.symbols, result.charges, strict=True)))

    with tempfile.TemporaryDirectory() as folder:
        vibrations = Vibrations(atoms, name=folder, delta=0.005)
        vibrations.run()
        wavenumbers = [float(f.real) for f in vibrations.get_frequencies() if f.real > 200.0]
    print("vibrations: " + ", ".join(f"{wavenumber:.0f}" for wavenumber in wavenumbers) + " 1/cm")
    return energy, wavenumbers


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Geometry and vibrations with ASE and PM6.")
    parser.add_argument("name", nargs="?", default="H2O", help="one of ASE's small molecules (default: H2O)")
    try:
        main(parser.parse_args().name)
    except ImportError as error:
        parser.exit(2, f"{error}: pip install 'cuanto[ase]'\n")
    except cuanto.errors.CuantoError as error:
        parser.exit(2, f"{error}\n")
