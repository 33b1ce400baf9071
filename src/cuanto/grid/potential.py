"""From densities at the points to the energy and to the potentials that a quadrature takes.

J. A. Pople, P. M. W. Gill, B. G. Johnson, Chem. Phys. Lett. 199, 557 (1992), doi:10.1016/0009-2614(92)85009-Y: the
matrix is chi_p B_q plus its transpose with B = w (v_rho/2 + v_grad . grad) chi, v_grad = 2 v_sigma grad rho (closed
shells), and w v_tau/4 grad chi_p . grad chi_q.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Protocol

import numpy as np

from cuanto.backends.base import Backend

CHUNK = 8192
"""Points of a task on the CPU."""


class XC(Protocol):
    """A functional at points (`functionals.Evaluator`)."""

    def __call__(self, rho_sg: Any, sigma_xg: Any | None, tau_sg: Any | None, parallel: bool = True) -> Any:
        """Energy per volume e_g and derivatives v_rho_sg, v_sigma_xg, v_tau_sg."""


def contractions(rho_scg: Any, xp: Any) -> Any:
    """sigma: |grad rho|^2 of one spin; aa, ab, bb of two."""
    slope = rho_scg[:, 1:4]
    pairs = ((0, 0),) if len(slope) == 1 else ((0, 0), (0, 1), (1, 1))
    return xp.stack([(slope[s] * slope[t]).sum(axis=0) for s, t in pairs])


def potentials(rho_scg: Any, w_g: Any, xc: Any, xp: Any) -> Any:
    """[spin, component, point] from the derivatives of the energy density, weights included."""
    spins, components, points = rho_scg.shape
    out = xp.empty((spins, components, points), dtype=np.float64)
    out[:, 0] = 0.5 * w_g * xc.v_rho_sg
    if components > 1:
        v, slope = w_g * xc.v_sigma_xg, rho_scg[:, 1:4]
        for s in range(spins):
            out[s, 1:4] = 2 * v[2 * s] * slope[s]
            if spins == 2:
                out[s, 1:4] += v[1] * slope[1 - s]
    if components > 4:
        out[:, 4] = 0.25 * w_g * xc.v_tau_sg
    return out


def integrate(evaluate: XC, rho_scg: Any, w_g: Any, backend: Backend) -> tuple[Any, Any, Any]:
    """Energy, number of electrons, and potentials; on the CPU in parts that stay in its cache."""
    xp, points = backend.xp, rho_scg.shape[2]
    if backend.name != "cpu":
        return _part(evaluate, rho_scg, w_g, xp, True)
    spans = [slice(first, min(first + CHUNK, points)) for first in range(0, points, CHUNK)]
    out = np.empty(rho_scg.shape)
    sums = np.zeros((len(spans), 2))

    def work(number: int, span: slice) -> None:
        energy, electrons, v_scg = _part(evaluate, rho_scg[:, :, span], w_g[span], xp, False)
        out[:, :, span] = v_scg
        sums[number] = energy, electrons

    backend.parallel(partial(work, number, span) for number, span in enumerate(spans))  # type: ignore[attr-defined]
    energy, electrons = sums.sum(axis=0).tolist()
    return energy, electrons, out


def _part(evaluate: XC, rho_scg: Any, w_g: Any, xp: Any, parallel: bool) -> tuple[Any, Any, Any]:
    rho_scg = rho_scg.astype(np.float64, copy=False)
    rho_sg = xp.ascontiguousarray(rho_scg[:, 0])
    sigma_xg = contractions(rho_scg, xp) if rho_scg.shape[1] > 1 else None
    tau_sg = xp.ascontiguousarray(rho_scg[:, 4]) if rho_scg.shape[1] > 4 else None
    xc = evaluate(rho_sg, sigma_xg, tau_sg, parallel=parallel)
    return w_g @ xc.e_g, w_g @ rho_sg.sum(axis=0), potentials(rho_scg, w_g, xc, xp)
