"""Functionals at grid points on any backend, by their generated kernels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from cuanto.errors import InputError
from cuanto.functionals.functional import Functional
from cuanto.kernels.functional_source import THREADS

CHUNK = 8192
"""Points of a task on the CPU: a fraction of a millisecond."""
REALS = {"double": np.float64, "float": np.float32}


@dataclass(frozen=True, eq=False)
class XCValues:
    """Energy per volume e_g, and its derivatives in the layout of what they belong to (None: not needed).

    With one spin they are derivatives by rho, sigma = |grad rho|^2 and tau of both electrons together; with two by
    rho_a, rho_b; sigma_aa, sigma_ab, sigma_bb; tau_a, tau_b.
    """

    e_g: Any
    v_rho_sg: Any
    v_sigma_xg: Any | None
    v_tau_sg: Any | None


class Evaluator:
    """A functional on a backend for one (closed shells) or two spins; its kernel is compiled in the background.

    Calls from threads of the backend's own pool must have `parallel=False`.
    """

    def __init__(self, functional: Functional, backend: Any, spins: int, real: str = "double") -> None:
        if spins not in (1, 2) or real not in REALS:
            raise InputError(f"spins={spins}, real={real!r}: choose 1 or 2 spins, and double or float")
        self.functional, self.backend, self.spins = functional, backend, spins
        self.dtype = REALS[real]
        self.source = functional.source("cpu" if backend.name == "cpu" else "cuda", spins, real)
        self._kernel = backend.begin(self.source) if backend.name == "cpu" else None
        self._rows = {
            "rho": spins,
            "sigma": (1 if spins == 1 else 3) if functional.needs_gradient else 0,
            "tau": spins if functional.needs_tau else 0,
        }

    def __call__(
        self, rho_sg: Any, sigma_xg: Any | None = None, tau_sg: Any | None = None, parallel: bool = True
    ) -> XCValues:
        """Arrays of the backend: rho_sg (spins, n), sigma_xg (1 or 3, n), tau_sg (spins, n), the last two if needed."""
        given = {"rho": rho_sg, "sigma": sigma_xg, "tau": tau_sg}
        points = rho_sg.shape[-1]
        arrays = {name: self._checked(name, given[name], points) for name in given}
        xp, empty = self.backend.xp, {}
        for name, rows in self._rows.items():
            empty[f"v_{name}"] = xp.empty((rows, points), dtype=self.dtype)
        e_g = xp.empty(points, dtype=self.dtype)
        values = {"begin": 0, "end": points, "stride": points, **arrays, "e": e_g, **empty}
        if points:
            self._run(values, points, parallel)
        v_sigma, v_tau = (empty[f"v_{name}"] if self._rows[name] else None for name in ("sigma", "tau"))
        return XCValues(e_g, empty["v_rho"], v_sigma, v_tau)

    def _checked(self, name: str, array: Any, points: int) -> Any:
        """Contiguous, of the right type and shape; what the functional does not use is left out."""
        xp, rows = self.backend.xp, self._rows[name]
        if rows == 0:
            return xp.empty((0, points), dtype=self.dtype)
        if array is None or array.shape != (rows, points):
            shape = "nothing" if array is None else f"an array of shape {array.shape}"
            raise InputError(f"{self.functional.name} needs {name} of shape ({rows}, {points}): {shape} was given")
        return xp.ascontiguousarray(array, dtype=self.dtype)

    def _run(self, values: dict[str, Any], points: int, parallel: bool) -> None:
        if self._kernel is None:
            self.backend.launch(self.source, -(-points // THREADS), THREADS, 0, values)
            return
        function = self._kernel.result()
        fixed = [
            value.ctypes.data if isinstance(value := values[name], np.ndarray) else value
            for _, name in self.source.arguments[2:]
        ]
        if not parallel or points <= CHUNK:
            function(0, points, *fixed)
            return
        ranges = ((begin, min(begin + CHUNK, points)) for begin in range(0, points, CHUNK))
        self.backend.parallel(partial(function, begin, end, *fixed) for begin, end in ranges)
