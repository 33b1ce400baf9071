"""Correlation of the uniform electron gas in the random phase approximation: VWN1 with the RPA constants.

The local part of B3LYP as most programs have it.
"""

from __future__ import annotations

from cuanto.functionals.density import Density
from cuanto.functionals.lda_c_vwn import CITATIONS, FAMILY, fit
from cuanto.kernels.values import Value

__all__ = ["CITATIONS", "FAMILY", "energy"]

PARAMAGNETIC = (0.0310907, -0.409286, 13.0720, 42.7198)
FERROMAGNETIC = (0.01554535, -0.743294, 20.1231, 101.578)


def energy(d: Density) -> Value:
    """Energy density."""
    para, ferro = fit(d.rs, PARAMAGNETIC), fit(d.rs, FERROMAGNETIC)
    return d.rho * (para + (ferro - para) * d.polarisation.f)
