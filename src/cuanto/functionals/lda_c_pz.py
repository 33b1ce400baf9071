"""Correlation of the uniform electron gas: Perdew and Zunger 1981, the local part of P86."""

from __future__ import annotations

from collections.abc import Sequence

from cuanto.functionals.citation import Citation
from cuanto.functionals.density import Density
from cuanto.kernels.values import Value, log, select, sqrt

FAMILY = "lda"
CITATIONS = (Citation("J. P. Perdew, A. Zunger, Phys. Rev. B 23, 5048 (1981)", "10.1103/PhysRevB.23.5048"),)

# gamma, beta_1, beta_2 (low density), A, B, C, D (high density) of table XII
UNPOLARISED = (-0.1423, 1.0529, 0.3334, 0.0311, -0.048, 0.0020, -0.0116)
POLARISED = (-0.0843, 1.3981, 0.2611, 0.01555, -0.0269, 0.0007, -0.0048)


def fit(rs: Value, constants: Sequence[float]) -> Value:
    """Eqs. C3 and C5."""
    gamma, b1, b2, A, B, C, D = constants
    low = gamma / (1 + b1 * sqrt(rs) + b2 * rs)
    high = (A + C * rs) * log(rs) + B + D * rs
    return select(rs, 1, high, low)


def per_electron(d: Density) -> Value:
    """Energy of an electron."""
    para = fit(d.rs, UNPOLARISED)
    return para + (fit(d.rs, POLARISED) - para) * d.polarisation.f


def energy(d: Density) -> Value:
    """Energy density."""
    return d.rho * per_electron(d)
