"""Perdew and Wang's correlation with more digits of the constants, as PBE and its descendants use it."""

from __future__ import annotations

from cuanto.functionals.density import Density
from cuanto.functionals.lda_c_pw import CITATIONS, FAMILY, Constants, per_electron
from cuanto.functionals.lda_c_vwn import F_CURVATURE
from cuanto.kernels.values import Value

__all__ = ["CITATIONS", "FAMILY", "energy"]

PRECISE = Constants((0.0310907, 0.01554535, 0.0168869), F_CURVATURE)


def energy(d: Density) -> Value:
    """Energy density."""
    return d.rho * per_electron(d.rs, d.polarisation, PRECISE)
