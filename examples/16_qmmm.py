"""A molecule in water by QM/MM: formaldehyde by cuanto, a drop of TIP3P water by OpenMM.

    python examples/16_qmmm.py [--waters 40] [--steps 20] [--method hf] [--basis sto-3g]

OpenMM moves all atoms. Its `PythonForce` asks cuanto for the energy of the molecule in the field of all water charges,
and for the forces on both (electrostatic embedding); Lennard-Jones forces between them are OpenMM's. The total energy
is printed: it has to stay constant. Needs `pip install openmm`.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import cuanto

SYMBOLS = ("C", "O", "H", "H")
POSITIONS = np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 1.21], [0.94, 0.0, -0.54], [-0.94, 0.0, -0.54]])
"""Initial positions of the molecule, Angstrom."""
LENNARD_JONES = {"C": (3.75, 0.105), "O": (2.96, 0.210), "H": (2.42, 0.015)}
"""Sigma (Angstrom) and epsilon (kcal/mol) of OPLS-AA aldehydes, W. L. Jorgensen et al., doi:10.1021/ja9621760."""
NM_IN_BOHR = 10.0 / cuanto.units.BOHR_IN_ANGSTROM
HARTREE_IN_KJ = 2625.4996
CLOSEST = 2.6
"""Smallest initial distance between a water and the molecule, Angstrom."""


class QuantumPart:
    """Energy and forces of the molecule in the field of the charges, in units of OpenMM (kJ/mol, nm)."""

    def __init__(self, charges: np.ndarray, **model: Any) -> None:
        self.charges, self.model = charges, model
        self.result: Any = None
        self.iterations: list[int] = []

    def __call__(self, state: Any) -> tuple[float, np.ndarray]:
        R_cx = state.getPositions(asNumpy=True)._value * NM_IN_BOHR
        molecule = cuanto.Molecule(SYMBOLS, R_cx[: len(SYMBOLS)])
        guess = "sad" if self.result is None else self.result
        surroundings = (self.charges, R_cx[len(SYMBOLS) :])
        self.result = cuanto.gradient(molecule, **self.model, point_charges=surroundings, guess=guess)
        self.iterations.append(self.result.iterations)
        gradient_cx = np.concatenate([self.result.gradient, self.result.charges_gradient])
        return self.result.energy * HARTREE_IN_KJ, -gradient_cx * HARTREE_IN_KJ * NM_IN_BOHR


def water_drop(count: int) -> tuple[Any, np.ndarray]:
    """Topology and positions (nm) of the `count` waters nearest to the molecule."""
    from openmm import Vec3, app, unit

    water = app.Modeller(app.Topology(), [])
    water.addSolvent(app.ForceField("tip3p.xml"), model="tip3p", boxSize=Vec3(2.4, 2.4, 2.4) * unit.nanometers)
    R_wax = np.array(water.positions.value_in_unit(unit.nanometers)).reshape(-1, 3, 3) - 1.2
    distance_w = np.linalg.norm(R_wax[:, None, 0] - 0.1 * POSITIONS, axis=2).min(axis=1)
    free = np.flatnonzero(distance_w > 0.1 * CLOSEST)
    chosen = set(free[np.argsort(distance_w[free])[:count]].tolist())
    water.delete([residue for residue in water.topology.residues() if residue.index not in chosen])
    return water.topology, R_wax[sorted(chosen)].reshape(-1, 3)


def build_system(topology: Any) -> tuple[Any, np.ndarray]:
    """The molecule first, then the waters, with all forces but those of the quantum part; and the charges of water."""
    from openmm import NonbondedForce, System, app, unit

    water = app.ForceField("tip3p.xml").createSystem(topology, nonbondedMethod=app.NoCutoff, rigidWater=True)
    inner = next(force for force in water.getForces() if isinstance(force, NonbondedForce))
    system, nonbonded, first = System(), NonbondedForce(), len(SYMBOLS)
    nonbonded.setNonbondedMethod(NonbondedForce.NoCutoff)
    for symbol in SYMBOLS:
        sigma, epsilon = LENNARD_JONES[symbol]
        system.addParticle(app.Element.getBySymbol(symbol).mass)
        nonbonded.addParticle(0.0, sigma * unit.angstrom, epsilon * unit.kilocalorie_per_mole)
    for i in range(water.getNumParticles()):
        system.addParticle(water.getParticleMass(i))
        nonbonded.addParticle(*inner.getParticleParameters(i))
    for k in range(water.getNumConstraints()):
        i, j, length = water.getConstraintParameters(k)
        system.addConstraint(first + i, first + j, length)
    for i in range(first):
        for j in range(i):
            nonbonded.addException(i, j, 0.0, 1.0, 0.0)
    for k in range(inner.getNumExceptions()):
        i, j, *parameters = inner.getExceptionParameters(k)
        nonbonded.addException(first + i, first + j, *parameters)
    system.addForce(nonbonded)
    charges = [
        inner.getParticleParameters(i)[0].value_in_unit(unit.elementary_charge) for i in range(inner.getNumParticles())
    ]
    return system, np.array(charges)


def main(waters: int = 40, steps: int = 20, **model: Any) -> list[float]:
    """Total energies of all steps in Hartree."""
    from openmm import Context, Platform, PythonForce, VerletIntegrator, unit

    topology, R_cx = water_drop(waters)
    system, charges = build_system(topology)
    quantum = QuantumPart(charges, **{"method": "hf", "basis": "sto-3g", **model})
    system.addForce(PythonForce(quantum))
    integrator = VerletIntegrator(0.5 * unit.femtoseconds)
    integrator.setConstraintTolerance(1e-8)
    context = Context(system, integrator, Platform.getPlatform("Reference"))
    context.setPositions(np.concatenate([0.1 * POSITIONS, R_cx]))
    context.applyConstraints(1e-8)
    context.setVelocitiesToTemperature(100.0 * unit.kelvin, 1)
    energies = []
    print("step  quantum/Hartree   total/Hartree  iterations")
    for step in range(steps + 1):
        state = context.getState(getEnergy=True)
        total = state.getPotentialEnergy() + state.getKineticEnergy()
        energies.append(total.value_in_unit(unit.kilojoule_per_mole) / HARTREE_IN_KJ)
        print(f"{step:4d} {quantum.result.energy:16.9f} {energies[-1]:15.9f} {quantum.iterations[-1]:11d}", flush=True)
        integrator.step(1)
    spread = max(energies) - min(energies)
    print(f"{len(charges)} charges; the total energy stays within {spread:.1e} Hartree")
    return energies


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Formaldehyde in water by QM/MM.")
    parser.add_argument("--waters", type=int, default=40)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--method", default="hf")
    parser.add_argument("--basis", default="sto-3g")
    try:
        main(**vars(parser.parse_args()))
    except ImportError as error:
        parser.exit(2, f"{error}: pip install openmm\n")
    except cuanto.errors.CuantoError as error:
        parser.exit(2, f"{error}\n")
