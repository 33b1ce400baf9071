"""Time each step of a pass over the grid: seconds, operations, and speed as a fraction of a large matrix product."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import cuanto
from cuanto.backends.base import Backend
from cuanto.functionals import Functional, XCPotential
from cuanto.grid import GridSettings, make_grid, make_quadrature
from cuanto.grid.integration import Integration
from cuanto.grid.quadrature import Quadrature
from cuanto.memory import Budget

STEPS = ("density", "matrix")
"""Steps that consist of matrix products."""
LARGE = {"cpu": 2048, "cuda": 8192}
"""Size of the square matrices whose product is the reference for the speed of the steps."""


@dataclass(frozen=True, eq=False)
class Density:
    """A closed-shell density on the device: D and the orbitals it is made of."""

    D_spq: Any
    C_spi: Any

    @classmethod
    def of(cls, result: Any) -> Density:
        """The density of a result."""
        n_sm = result.state.n_sm
        width = 1 + int(np.flatnonzero(n_sm.max(axis=0) > 0).max())
        roots = result.backend.to_device(np.sqrt(n_sm[:, None, :width]))
        return cls(result.state.D_spq, result.backend.to_device(result.coefficients)[:, :, :width] * roots)


def best_of(call: Callable[[], Any], backend: Backend, repeat: int) -> tuple[float, Any]:
    """Shortest time of several runs, in seconds, and the last result; waits for the device before and after each."""
    seconds, result = [], None
    for _ in range(repeat):
        backend.synchronize()
        start = time.perf_counter()
        result = call()
        backend.synchronize()
        seconds.append(time.perf_counter() - start)
    return min(seconds), result


def product_rate(backend: Backend, real: type = np.float64) -> float:
    """Operations per second of the array library's product of two large matrices."""
    n, xp = LARGE[backend.name], backend.xp
    a = backend.to_device(np.random.default_rng(0).random((n, n)).astype(real))
    seconds, _ = best_of(lambda: xp.matmul(a, a), backend, 4)
    return 2.0 * n**3 / seconds


def operations(quadrature: Quadrature, family: str, orbitals: int | None) -> tuple[float, float]:
    """Floating-point operations of the matrix products in the density step and in the matrix step.

    `orbitals`: their number if the density comes from orbitals, None if it comes from the matrix. Only products of the
    significant functions are counted, neither padding nor the evaluation of functions and sums.
    """
    by_matrix, by_orbitals = quadrature.products[family]
    grid = quadrature.grid
    points, functions = grid.points.astype(float), grid.functions.astype(float)
    squares = 2.0 * by_matrix * float((points * functions**2).sum())
    if orbitals is None:
        return squares, squares
    return 2.0 * by_orbitals * orbitals * float((points * functions).sum()), squares


@dataclass(frozen=True, eq=False)
class Pass:
    """A pass of a closed-shell functional over a grid; `real`: double or float."""

    molecule: cuanto.Molecule
    basis: cuanto.Basis
    functional: Functional
    settings: GridSettings
    backend: Backend
    real: str = "double"

    def measure(self, density: Density, repeat: int = 3) -> dict[str, Any]:
        """Measure set-up and steps: seconds, operations per second, memory of stored values; energy, electrons."""
        backend, family, settings = self.backend, self.functional.family, self.settings
        grid_seconds, grid = best_of(
            lambda: make_grid(self.molecule, self.basis, settings, backend), backend, min(repeat, 2)
        )
        common = (grid, self.basis, backend, family, settings, Budget(backend), self.real)
        values_seconds, (quadrature, plan) = best_of(lambda: make_quadrature(*common), backend, 1)
        width = density.C_spi.shape[2]
        orbitals = settings.density != "matrix" and (
            settings.density == "orbitals" or quadrature.prefers_orbitals(width)
        )
        found: dict[str, Any] = {
            "points": len(grid.w_g),
            "groups": len(grid),
            "functions_at_a_point": grid.mean_functions,
            "cube_edge": grid.cube_edge,
            "sphere_fraction": grid.sphere_fraction,
            "density_from": "orbitals" if orbitals else "matrix",
            "kept": bool(plan.keep),
            "values_bytes": int(quadrature.kept_bytes),
            "seconds": {"grid": grid_seconds, "values": values_seconds},
        }
        found |= self._steps(quadrature, density.D_spq, density.C_spi if orbitals else None, repeat, found["seconds"])
        seconds, work = found["seconds"], operations(quadrature, family, width if orbitals else None)
        found["rates"] = {name: count / seconds[name] for name, count in zip(STEPS, work, strict=True)}
        found["pass"] = seconds["density"] + seconds["functional"] + seconds["matrix"]
        return found

    def _steps(self, quadrature: Any, D: Any, C: Any, repeat: int, seconds: dict[str, float]) -> dict[str, Any]:
        """Time each step, after one run that compiles the kernels."""
        backend, w_g = self.backend, self.backend.xp.asarray(quadrature.grid.w_g)
        evaluate = XCPotential(self.functional, backend, 1)
        integrate = Integration(evaluate, quadrature, w_g, self.functional.family).integrate
        rho_scg = quadrature.density(D, C)
        energy, electrons, potential_scg = integrate(rho_scg)
        quadrature.matrix(potential_scg)
        seconds["density"], _ = best_of(lambda: quadrature.density(D, C), backend, repeat)
        seconds["functional"], _ = best_of(lambda: integrate(rho_scg), backend, repeat)
        seconds["matrix"], _ = best_of(lambda: quadrature.matrix(potential_scg), backend, repeat)
        return {"energy": float(energy), "electrons": float(electrons)}


def show(found: dict[str, Any], rate: float) -> None:
    """Print two lines about a pass."""
    seconds, rates = found["seconds"], found["rates"]
    print(
        f"  {found['points']} points in {found['groups']} groups, {found['functions_at_a_point']:.0f} functions at a "
        f"point, cubes of {found['cube_edge']:g} Bohr, spheres {found['sphere_fraction']:.0%}, density from "
        f"{found['density_from']}, values {'kept' if found['kept'] else 'made again'}",
        flush=True,
    )
    steps = ", ".join(f"{name} {1e3 * s:.2f}" for name, s in seconds.items())
    reached = ", ".join(f"{name} {r / 1e9:.0f} GFLOP/s = {r / rate:.0%}" for name, r in rates.items())
    print(f"  ms: {steps}; of {rate / 1e9:.0f} GFLOP/s of a large product: {reached}", flush=True)
