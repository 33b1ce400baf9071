"""Growth of the two steps of a pass over the grid with the size of a water cluster: 16, 32, 64 and 128 molecules.

    python benchmarks/dft_growth.py --json benchmarks/results/dft_growth_cpu.json
    python benchmarks/dft_growth.py --backend cuda --grid fine --json benchmarks/results/dft_growth_cuda.json

PBE/def2-SVP, cells of Stratmann, Scuseria and Frisch, the density of superposed atoms. On a CPU processor seconds of
one thread, on a GPU seconds; the minimum over rounds, each of which runs all sizes. Also: seconds of the weights alone,
with Stratmann's cells and with Becke's, which involve all atoms (minimum of two rounds). Counted: points times
functions, and points times pairs of functions whose product is not neglected. The range of Stratmann's cells is 4.6
times the distance of an atom, which covers most of a cluster of this size, so their weights are measured for chains as
well: polyethylene of 50 to 400 carbon atoms, in cubes of one size. Exponents are given from the smallest to the largest
molecule, and fitted to all sizes. Exit status 1: the exponent of the density or of the matrix, from the smallest to the
largest cluster, is above 1.2.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from common import DATA, geometry, machine, save
from semiempirical import polyethylene

import cuanto
from cuanto.backends.base import get_backend
from cuanto.backends.cpu.backend import CpuBackend
from cuanto.functionals import XCPotential, get_functional
from cuanto.grid import GridSettings, make_grid, make_quadrature
from cuanto.grid.integration import Integration
from cuanto.log import Timings
from cuanto.memory import Budget
from cuanto.scf.guess import superposed_atoms

MAX_EXPONENT = 1.2
"""Largest exponent with which the time of a step may grow with the number of waters."""
STEPS = ("density", "matrix")
CELLS = ("stratmann", "becke")
GRID_ROUNDS = 2
"""Rounds in which grids are made: the first one compiles."""
CHAIN_EDGE = 3.0
"""Edge of the cubes of chains, Bohr."""


@dataclass(frozen=True)
class Clocked(Timings):
    """Stores the seconds of the last measurement, by a given clock."""

    clock: Callable[[], float] = time.perf_counter

    @contextmanager
    def measure(self, name: str) -> Iterator[None]:
        """Measure the code inside."""
        start = self.clock()
        yield
        self.seconds[name] = self.clock() - start


class Cluster:
    """A cluster on a grid, with a density and its potential."""

    def __init__(self, waters: int, level: str, backend: Any) -> None:
        molecule = cuanto.Molecule.from_xyz(geometry(f"water_{waters}"))
        basis, functional = cuanto.Basis("def2-svp", molecule), get_functional("pbe")
        self.settings = {c: GridSettings(level=level, partition=c, density="matrix") for c in CELLS}
        settings = self.settings["stratmann"]
        self.molecule, self.basis, self.backend = molecule, basis, backend
        self.grid = make_grid(molecule, basis, settings, backend)
        self.waters, self.functions, self.setup = waters, basis.nbf, np.inf
        self.quadrature, _ = make_quadrature(self.grid, basis, backend, functional.family, settings, Budget(backend))
        self.D_spq = superposed_atoms(molecule, basis, 1, backend).D_spq
        evaluate, w_g = XCPotential(functional, backend, 1), backend.xp.asarray(self.grid.w_g)
        integration = Integration(evaluate, self.quadrature, w_g, functional.family)
        _, _, self.v_scg = integration.integrate(self.quadrature.density(self.D_spq, None))
        self.seconds, self.weights = dict.fromkeys(STEPS, np.inf), dict.fromkeys(CELLS, np.inf)

    def measure_weights(self, clock: Callable[[], float]) -> None:
        """Time the weights and the whole setup of the grid once with each kind of cells."""
        for cells, settings in self.settings.items():
            timings = Clocked(clock=clock)
            with timings.measure("all"):
                make_grid(self.molecule, self.basis, settings, self.backend, timings)
            self.weights[cells] = min(self.weights[cells], timings.seconds["grid: weights"])
            if cells == "stratmann":
                self.setup = min(self.setup, timings.seconds["all"])

    def measure(self, clock: Callable[[], float]) -> None:
        """Run both steps once."""
        for name, call in zip(
            STEPS,
            (lambda: self.quadrature.density(self.D_spq, None), lambda: self.quadrature.matrix(self.v_scg)),
            strict=True,
        ):
            start = clock()
            call()
            self.seconds[name] = min(self.seconds[name], clock() - start)

    def row(self) -> dict[str, Any]:
        """The measured values."""
        points = self.grid.points.astype(float)
        found: dict[str, Any] = {
            "waters": self.waters,
            "functions": self.functions,
            "points": len(self.grid.w_g),
            "groups": len(self.grid),
            "functions_at_a_point": float(self.grid.mean_functions),
            "cube_edge": self.grid.cube_edge,
            "setup_seconds": self.setup,
            "weights_seconds": dict(self.weights),
            "points_times_functions": float((points * self.grid.functions).sum()),
            "seconds": dict(self.seconds),
        }
        return found | {"points_times_pairs": float((points * self.quadrature.pairs).sum())}


def measure_chain(carbons: int, level: str, backend: Any, clock: Callable[[], float]) -> dict[str, Any]:
    """Seconds of the weights of a chain by Stratmann's cells."""
    molecule = polyethylene(carbons)
    basis = cuanto.Basis("def2-svp", molecule)
    settings = GridSettings(level=level, partition="stratmann", density="matrix", cube_edge=CHAIN_EDGE)
    seconds = np.inf
    for _ in range(GRID_ROUNDS):
        timings = Clocked(clock=clock)
        grid = make_grid(molecule, basis, settings, backend, timings)
        seconds = min(seconds, timings.seconds["grid: weights"])
    return {"carbons": carbons, "points": len(grid.w_g), "groups": len(grid), "weights_seconds": seconds}


def exponent(sizes: list[int], values: list[float]) -> float:
    """Exponent from the first to the last size."""
    return float(np.log(values[-1] / values[0]) / np.log(sizes[-1] / sizes[0]))


def fitted_exponent(sizes: list[int], values: list[float]) -> float:
    """Exponent fitted to all sizes, by least squares of the logarithms."""
    return float(np.polyfit(np.log(np.array(sizes, dtype=float)), np.log(values), 1)[0])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--grid", default="coarse", help="level")
    parser.add_argument("--waters", type=int, nargs="+", default=[16, 32, 64, 128])
    parser.add_argument("--carbons", type=int, nargs="+", default=[50, 100, 200, 400])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", help="write the result here")
    options = parser.parse_args()
    os.environ.setdefault("CUANTO_BASIS_PATH", str(DATA / "basis"))
    backend: Any = CpuBackend(threads=1) if options.backend == "cpu" else get_backend("cuda")

    def clock() -> float:
        if options.backend == "cpu":
            return time.process_time()
        backend.synchronize()
        return time.perf_counter()

    clusters = [Cluster(n, options.grid, backend) for n in options.waters]
    for number in range(max(options.rounds, GRID_ROUNDS)):
        for cluster in clusters:
            cluster.measure(clock)
            if number < GRID_ROUNDS:
                cluster.measure_weights(clock)
    rows = [cluster.row() for cluster in clusters]
    chains = [measure_chain(n, options.grid, backend, clock) for n in options.carbons]
    values = {name: [row["seconds"][name] for row in rows] for name in STEPS}
    values["pass"] = [sum(row["seconds"].values()) for row in rows]
    values |= {f"weights, {c}": [row["weights_seconds"][c] for row in rows] for c in CELLS}
    for name in ("points", "points_times_functions", "points_times_pairs"):
        values[name] = [row[name] for row in rows]
    grown, over_all = (
        {name: make(options.waters, value) for name, value in values.items()} for make in (exponent, fitted_exponent)
    )
    chain_seconds = [row["weights_seconds"] for row in chains]
    for exponents, make in ((grown, exponent), (over_all, fitted_exponent)):
        exponents["weights of chains, stratmann"] = make(options.carbons, chain_seconds)
    for row in rows:
        weights = {f"weights, {c}": s for c, s in row["weights_seconds"].items()}
        seconds = ", ".join(f"{name} {s:.3f} s" for name, s in (row["seconds"] | weights).items())
        print(
            f"{row['waters']:4d} waters, {row['points']} points, {row['functions_at_a_point']:.0f} functions: {seconds}"
        )
    for row in chains:
        print(f"{row['carbons']:4d} carbons, {row['points']} points: weights, stratmann {row['weights_seconds']:.3f} s")
    print("exponents, from the first to the last (fitted to all):")
    for name, value in grown.items():
        print(f"  {name.replace('_', ' ')} {value:.2f} ({over_all[name]:.2f})")
    record = {"benchmark": "dft_growth", "machine": machine(backend), "load": os.getloadavg()[0], "grid": options.grid}
    save(options.json, record | {"rows": rows, "chains": chains, "exponents": grown, "fitted_exponents": over_all})
    return 1 if max(grown[name] for name in STEPS) > MAX_EXPONENT else 0


if __name__ == "__main__":
    sys.exit(main())
