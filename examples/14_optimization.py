"""Optimise hydrogen peroxide by PM6, scan its torsion, and find the transition state of HCN and its path.

Needs geomeTRIC: pip install 'cuanto[motion]'
"""

import cuanto

peroxide = cuanto.Molecule.from_string("4\n\nO 0 0 0\nO 1.4 0 0\nH -0.3 0.9 0\nH 1.7 0.5 0.7\n")
opt = cuanto.optimize(peroxide, "pm6", on_step=lambda step: print(f"{step.number:3d} {step.energy:.8f} Hartree"))
print(
    f"converged: {opt.converged}, {opt.iterations} steps, largest gradient {abs(opt.gradient).max():.1e} Hartree/Bohr"
)

scan = cuanto.optimize(opt.molecule, "pm6", scan=["dihedral 3 1 2 4 120 180 3"])
for point in scan.points:
    (angle,) = point.constraints
    print(f"{angle} {angle.shown}: {(point.energy - opt.energy) * 2625.5:.2f} kJ/mol")

guess = cuanto.Molecule.from_string("3\n\nC 0 0 0\nN 0 0 1.19\nH 1.1 0 0.6\n")
saddle = cuanto.optimize(guess, "pm6", ts=True)
isomers = [cuanto.Molecule.from_string(f"3\n\nC 0 0 0\nN 0 0 1.16\nH 0 0 {z}\n") for z in (-1.07, 2.15)]
for name, molecule in zip(("HCN", "HNC"), isomers, strict=True):
    barrier = saddle.energy - cuanto.optimize(molecule, "pm6").energy
    print(f"barrier from {name}: {barrier * 2625.5:.1f} kJ/mol")
