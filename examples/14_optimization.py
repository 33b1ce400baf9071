"""Optimise hydrogen peroxide, scan its torsion, and compute the barrier between HCN and HNC, all by PM6.

    python examples/14_optimization.py [METHOD]

Needs geomeTRIC (`pip install 'cuanto[motion]'`). On the command line: `cuanto optimize peroxide.xyz -m pm6`.
"""

from __future__ import annotations

import argparse

import cuanto

PEROXIDE = "4\nhydrogen peroxide\nO 0 0 0\nO 1.4 0 0\nH -0.3 0.9 0\nH 1.7 0.5 0.7\n"
SADDLE = "3\nnear the transition state of HCN\nC 0 0 0\nN 0 0 1.19\nH 1.1 0 0.6\n"
ISOMERS = {"HCN": "3\n\nC 0 0 0\nN 0 0 1.16\nH 0 0 -1.07\n", "HNC": "3\n\nC 0 0 0\nN 0 0 1.16\nH 0 0 2.15\n"}
KJ_PER_MOL = 2625.4996


def main(method: str = "pm6") -> tuple[float, ...]:
    """Barriers from HCN and from HNC, kJ/mol."""
    peroxide = cuanto.Molecule.from_string(PEROXIDE)
    found = cuanto.optimize(
        peroxide, method, on_step=lambda step: print(f"step {step.number}: {step.energy:.8f} Hartree")
    )
    verdict = "converged" if found.converged else "NOT converged"
    print(f"{verdict} in {found.iterations} steps; largest gradient {abs(found.gradient).max():.1e} Hartree/Bohr")

    scan = cuanto.optimize(found.molecule, method, scan=["dihedral 3 1 2 4 120 180 3"])
    for point in scan.points:
        (angle,) = point.constraints
        print(f"{angle}, {angle.shown}: {(point.energy - found.energy) * KJ_PER_MOL:.2f} kJ/mol")

    saddle = cuanto.optimize(cuanto.Molecule.from_string(SADDLE), method, ts=True)
    barriers = []
    for name, text in ISOMERS.items():
        minimum = cuanto.optimize(cuanto.Molecule.from_string(text), method)
        barriers.append((saddle.energy - minimum.energy) * KJ_PER_MOL)
        print(f"barrier from {name}: {barriers[-1]:.1f} kJ/mol")
    return tuple(barriers)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("method", nargs="?", default="pm6")
    main(**vars(parser.parse_args()))
