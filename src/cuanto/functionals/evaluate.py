"""Values of functionals at grid points, by generated kernels on any backend."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cuanto import tuning
from cuanto.backends.base import Backend, Launch
from cuanto.errors import InputError
from cuanto.functionals.functional import Functional

CHUNK = tuning.size("cpu", "grid.functional_points")
REALS = {"double": np.float64, "float": np.float32}


@dataclass(frozen=True, eq=False)
class XCValues:
    """Energy density e_g and its derivatives, in the layout of the variables (None: not needed).

    With one spin, derivatives are with respect to rho, sigma = |grad rho|^2 and tau of the total density; with two,
    with respect to rho_a, rho_b; sigma_aa, sigma_ab, sigma_bb; tau_a, tau_b.
    """

    e_g: Any
    v_rho_sg: Any
    v_sigma_xg: Any | None
    v_tau_sg: Any | None


class Evaluator:
    """A functional on a backend for one (closed shells) or two spins; its kernel is compiled in the background."""

    def __init__(self, functional: Functional, backend: Backend, spins: int, real: str = "double") -> None:
        if spins not in (1, 2) or real not in REALS:
            raise InputError(f"spins={spins}, real={real!r}: choose 1 or 2 spins, and double or float")
        self.functional, self.backend, self.spins = functional, backend, spins
        self.dtype = REALS[real]
        self._program = backend.compile(functional.source(backend.traits.language, spins, real))
        self._rows = {
            "rho": spins,
            "sigma": (1 if spins == 1 else 3) if functional.needs_gradient else 0,
            "tau": spins if functional.needs_tau else 0,
        }

    def __call__(self, rho_sg: Any, sigma_xg: Any | None = None, tau_sg: Any | None = None) -> XCValues:
        """Evaluate at n points, from arrays of the backend: rho_sg (spins, n); if needed, sigma_xg (1 or 3, n) and
        tau_sg (spins, n)."""
        given = {"rho": rho_sg, "sigma": sigma_xg, "tau": tau_sg}
        points = rho_sg.shape[-1]
        arrays = {name: self._validate(name, given[name], points) for name in given}
        xp, empty = self.backend.xp, {}
        for name, rows in self._rows.items():
            empty[f"v_{name}"] = xp.empty((rows, points), dtype=self.dtype)
        e_g = xp.empty(points, dtype=self.dtype)
        values = {"stride": points, **arrays, "e": e_g, **empty}
        self.backend.launch_all([Launch(self._program, points, values, grain=CHUNK)])
        v_sigma, v_tau = (empty[f"v_{name}"] if self._rows[name] else None for name in ("sigma", "tau"))
        return XCValues(e_g, empty["v_rho"], v_sigma, v_tau)

    def _validate(self, name: str, array: Any, points: int) -> Any:
        """Check the shape of an array and make it contiguous; empty if the functional does not need it."""
        xp, rows = self.backend.xp, self._rows[name]
        if rows == 0:
            return xp.empty((0, points), dtype=self.dtype)
        if array is None or array.shape != (rows, points):
            shape = "nothing" if array is None else f"an array of shape {array.shape}"
            raise InputError(f"{self.functional.name} needs {name} of shape ({rows}, {points}): {shape} was given")
        return xp.ascontiguousarray(array, dtype=self.dtype)


class XCPotential:
    """Potentials of a functional for a quadrature; densities and potentials are [spin, component, point].

    J. A. Pople, P. M. W. Gill, B. G. Johnson, Chem. Phys. Lett. 199, 557 (1992), doi:10.1016/0009-2614(92)85009-Y: the
    Kohn-Sham matrix is chi_p B_q plus its transpose with B = w (v_rho/2 + v_grad . grad) chi,
    v_grad = 2 v_sigma grad rho (closed shells), and w v_tau/4 grad chi_p . grad chi_q.
    """

    def __init__(self, functional: Functional, backend: Backend, spins: int) -> None:
        self.functional, self.backend = functional, backend
        source = functional.source(backend.traits.language, spins, consumer="potential")
        self._program = backend.compile(source)

    def __call__(self, rho_scg: Any, w_g: Any) -> tuple[Any, Any]:
        """Compute the energy density e_g, and the potentials times the weights."""
        xp, points = self.backend.xp, rho_scg.shape[2]
        e_g, v_scg = xp.empty(points), xp.empty(rho_scg.shape)
        values = {"stride": points, "rho": rho_scg, "weight": w_g, "e": e_g, "v": v_scg}
        self.backend.launch_all([Launch(self._program, points, values, grain=CHUNK)])
        return e_g, v_scg
