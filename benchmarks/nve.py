"""Molecular dynamics at constant energy: how well gradients conserve the total energy.

    python benchmarks/nve.py --json benchmarks/results/nve_cpu.json
    python benchmarks/nve.py --molecule water_01 --method hf --basis sto-3g --steps 20
    python benchmarks/nve.py --backend cuda --molecule water_24 --steps 20 --json benchmarks/results/nve_cuda.json

Velocity Verlet from random velocities without total momentum; every SCF starts from orbitals extrapolated from the last
`--points` steps. Seconds per step are medians of the second half of the run: all kernels are compiled by then. The
drift is the slope of a straight line fitted to the total energy. Exit status 1: the drift is 1e-6 Hartree per atom and
picosecond or more. The record is written every hundred steps, so that an interrupted run leaves one.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from common import geometry, machine, save

import cuanto
from cuanto.backends.base import get_backend
from cuanto.motion.surface import Surface
from cuanto.system.masses import MASSES

MAX_DRIFT = 1e-6
"""Largest drift of the total energy, Hartree per atom and picosecond."""
FEMTOSECOND = 1 / 0.02418884326502
"""One fs in atomic units of time (CODATA 2010)."""
DALTON = 1822.88848
"""One atomic mass unit in electron masses (CODATA 2010)."""
KELVIN = 3.1668114e-6
"""Boltzmann's constant times 1 K in Hartree (CODATA 2010)."""


def velocities(mass_a: Any, temperature: float, seed: int) -> Any:
    """Random velocities of a temperature (K), without total momentum."""
    v_ax = np.random.default_rng(seed).normal(size=(len(mass_a), 3)) * np.sqrt(KELVIN * temperature / mass_a)[:, None]
    return v_ax - mass_a @ v_ax / mass_a.sum()


def trajectory(molecule: cuanto.Molecule, options: argparse.Namespace) -> Iterator[tuple[float, float, int]]:
    """Potential and kinetic energy (Hartree) of the start and of every step, and iterations of its SCF."""
    mass_a = DALTON * np.array([MASSES[symbol] for symbol in molecule.symbols])
    step = options.step * FEMTOSECOND
    v_ax = velocities(mass_a, options.temperature, options.seed)
    keywords: dict[str, Any] = {"backend": options.backend, "gradient_tolerance": options.tolerance}
    keywords |= {} if options.auxbasis is None else {"auxbasis": options.auxbasis}
    surface, R_ax = Surface(molecule, options.method, options.basis, points=options.points, **keywords), molecule.R_ax
    result = surface.at(R_ax)
    for _ in range(options.steps):
        yield result.energy, 0.5 * float(mass_a @ (v_ax**2).sum(axis=1)), result.iterations
        v_ax = v_ax - 0.5 * step * result.gradient / mass_a[:, None]
        R_ax = R_ax + step * v_ax
        result = surface.at(R_ax)
        v_ax = v_ax - 0.5 * step * result.gradient / mass_a[:, None]
    yield result.energy, 0.5 * float(mass_a @ (v_ax**2).sum(axis=1)), result.iterations


def summarise(energies: list[tuple[float, float]], atoms: int, step: float) -> dict[str, float]:
    """Drift (Hartree per atom and picosecond) with its standard error, fluctuation and temperatures."""
    total, kinetic = np.sum(energies, axis=1), np.array(energies)[:, 1]
    time_ps = 1e-3 * step * np.arange(len(total))
    (slope, start), covariance = np.polyfit(time_ps, total, 1, cov=True)
    rest = total - slope * time_ps - start
    return {
        "drift": slope / atoms,
        "drift_error": float(np.sqrt(covariance[0, 0])) / atoms,
        "fluctuation": float(np.sqrt(np.mean(rest**2))),
        "largest_deviation": float(np.abs(total - total[0]).max()),
        "mean_temperature": float(2 * kinetic.mean() / (3 * atoms * KELVIN)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--molecule", default="water_02", help="a geometry of tests/data")
    parser.add_argument("--method", default="pbe")
    parser.add_argument("--basis", default="def2-svp")
    parser.add_argument("--auxbasis", help="fitting basis, where the Basis Set Exchange is not installed")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--step", type=float, default=0.5, help="femtoseconds")
    parser.add_argument("--temperature", type=float, default=300.0, help="of the initial velocities, K")
    parser.add_argument("--tolerance", type=float, default=1e-7, help="gradient_tolerance of the SCF")
    parser.add_argument("--points", type=int, default=5, help="steps from which start orbitals are extrapolated")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", help="write the result here")
    options = parser.parse_args()
    molecule = cuanto.Molecule.from_xyz(geometry(options.molecule))
    settings = {name: value for name, value in vars(options).items() if name != "json"}
    record: dict[str, Any] = {"benchmark": "nve", "machine": machine(get_backend(options.backend)), **settings}
    energies: list[tuple[float, float]] = []
    seconds, iterations, start = [], [], time.perf_counter()
    for potential, kinetic, count in trajectory(molecule, options):
        energies.append((potential, kinetic))
        seconds.append(time.perf_counter() - start)
        start, iterations = time.perf_counter(), [*iterations, count]
        done = len(energies) - 1
        if done >= 4 and (done % 100 == 0 or done == options.steps):
            record |= {"done": done, "seconds_per_step": float(np.median(seconds[done // 2 :]))}
            record["iterations_per_step"] = float(np.mean(iterations[done // 2 :]))
            record |= summarise(energies, molecule.natom, options.step)
            record["energies"] = [[round(part, 9) for part in pair] for pair in energies[::10]]
            pace = f"{done:5d} steps, {record['seconds_per_step']:.2f} s each"
            drift = f"drift {record['drift']:.1e} +- {record['drift_error']:.0e} Hartree per atom and ps"
            print(f"{pace}: {drift}, fluctuation {record['fluctuation']:.1e} Hartree", flush=True)
            save(options.json, record)
    if not abs(record["drift"]) < MAX_DRIFT:
        sys.exit("the energy drifts")


if __name__ == "__main__":
    main()
