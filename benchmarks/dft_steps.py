"""The steps of a pass over the grid, each on its own: seconds, operations, share of the rate of a matrix product."""

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
from cuanto.grid.quadrature import Quadrature, orbitals_pay
from cuanto.memory import Budget

STEPS = ("density", "matrix")
"""Those that are products of matrices."""
LARGE = {"cpu": 2048, "cuda": 8192}
"""Rows of the matrices whose product gives the rate that steps are compared with."""


@dataclass(frozen=True, eq=False)
class Density:
    """A closed-shell density on the device: D and the orbitals it is made of."""

    D_spq: Any
    C_spi: Any

    @classmethod
    def of(cls, result: Any) -> Density:
        """That of a calculation."""
        n_sm = result.state.n_sm
        width = 1 + int(np.flatnonzero(n_sm.max(axis=0) > 0).max())
        roots = result.backend.to_device(np.sqrt(n_sm[:, None, :width]))
        return cls(result.state.D_spq, result.backend.to_device(result.coefficients)[:, :, :width] * roots)


def best_of(call: Callable[[], Any], backend: Backend, repeat: int) -> tuple[float, Any]:
    """Least seconds of several runs, and the last result; the device has finished before and after."""
    seconds, found = [], None
    for _ in range(repeat):
        backend.synchronize()
        start = time.perf_counter()
        found = call()
        backend.synchronize()
        seconds.append(time.perf_counter() - start)
    return min(seconds), found


def product_rate(backend: Backend, real: type = np.float64) -> float:
    """Operations per second of the array library's product of two large matrices."""
    n, xp = LARGE[backend.name], backend.xp
    a = backend.to_device(np.random.default_rng(0).random((n, n)).astype(real))
    seconds, _ = best_of(lambda: xp.matmul(a, a), backend, 4)
    return 2.0 * n**3 / seconds


def operations(quadrature: Quadrature, family: str, orbitals: int | None) -> tuple[float, float]:
    """Of the products in the density step (from so many orbitals, or from the matrix) and in the matrix step.

    Only those of listed functions count: neither what groups are filled up with, nor values and sums.
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
    """A functional of a closed shell on a grid; `real`: double or float."""

    molecule: cuanto.Molecule
    basis: cuanto.Basis
    functional: Functional
    settings: GridSettings
    backend: Backend
    real: str = "double"

    def measure(self, density: Density, repeat: int = 3) -> dict[str, Any]:
        """Set-up and steps: seconds, operations per second, memory of kept values; energy and electrons."""
        backend, family, settings = self.backend, self.functional.family, self.settings
        made, grid = best_of(lambda: make_grid(self.molecule, self.basis, settings, backend), backend, min(repeat, 2))
        common = (grid, self.basis, backend, family, settings, Budget(backend), self.real)
        prepared, (quadrature, plan) = best_of(lambda: make_quadrature(*common), backend, 1)
        width = density.C_spi.shape[2]
        orbitals = settings.density != "matrix" and (
            settings.density == "orbitals" or orbitals_pay(quadrature, family, width)
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
            "seconds": {"grid": made, "values": prepared},
        }
        found |= self._steps(quadrature, density.D_spq, density.C_spi if orbitals else None, repeat, found["seconds"])
        seconds, work = found["seconds"], operations(quadrature, family, width if orbitals else None)
        found["rates"] = {name: count / seconds[name] for name, count in zip(STEPS, work, strict=True)}
        found["pass"] = seconds["density"] + seconds["functional"] + seconds["matrix"]
        return found

    def _steps(self, quadrature: Any, D: Any, C: Any, repeat: int, seconds: dict[str, float]) -> dict[str, Any]:
        """Each after one run that compiles."""
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
    """Two lines of a pass."""
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
