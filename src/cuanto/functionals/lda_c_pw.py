"""Correlation of the uniform electron gas: Perdew and Wang 1992, with the constants as printed."""

from __future__ import annotations

from dataclasses import dataclass

from cuanto.functionals.citation import Citation
from cuanto.functionals.density import Density, Polarisation, radius
from cuanto.kernels.functional_graph import Value, least, log1p, select, sqrt

FAMILY = "lda"
CITATIONS = (Citation("J. P. Perdew, Y. Wang, Phys. Rev. B 45, 13244 (1992)", "10.1103/PhysRevB.45.13244"),)

# alpha_1, beta_1 ... beta_4 of table I: unpolarised, fully polarised, minus the spin stiffness
SHAPES = (
    (0.21370, 7.5957, 3.5876, 1.6382, 0.49294),
    (0.20548, 14.1189, 6.1977, 3.3662, 0.62517),
    (0.11125, 10.357, 3.6231, 0.88026, 0.49671),
)
LEAST_MINORITY = 1e-11
"""1 - |zeta| below which there are no pairs of opposite spins."""


@dataclass(frozen=True)
class Constants:
    """A of the three fits, and f''(0)."""

    A: tuple[float, float, float]
    f_curvature: float


PRINTED = Constants((0.031091, 0.015545, 0.016887), 1.709921)


def fit(rs: Value, A: float, shape: tuple[float, ...]) -> Value:
    """Eq. 10."""
    alpha, b1, b2, b3, b4 = shape
    x = sqrt(rs)
    return -2 * A * (1 + alpha * rs) * log1p(1 / (2 * A * x * (b1 + x * (b2 + x * (b3 + b4 * x)))))


def per_electron(rs: Value, polarisation: Polarisation, constants: Constants = PRINTED) -> Value:
    """Energy of an electron, eq. 8."""
    para, ferro, minus = (fit(rs, A, shape) for A, shape in zip(constants.A, SHAPES, strict=True))
    f, z4 = polarisation.f, polarisation.zeta**4
    return para - minus * f * (1 - z4) / constants.f_curvature + (ferro - para) * f * z4


def of_one_spin(cube_root: Value, constants: Constants = PRINTED) -> Value:
    """Energy of an electron where all have the same spin, from rho_s^(1/3)."""
    return fit(radius(cube_root), constants.A[1], SHAPES[1])


def by_spins(d: Density, constants: Constants = PRINTED) -> tuple[Value, Value, Value]:
    """Energy densities of equal (alpha, beta) and of opposite spins (H. Stoll et al., doi:10.1007/BF02394557).

    The last is a difference of which only rounding is left near full polarisation: then it is nothing.
    """
    same = [s.rho * of_one_spin(s.cube_root, constants) for s in d.spins]
    opposite = d.rho * per_electron(d.rs, d.polarisation, constants) - same[0] - same[1]
    minority = least(d.polarisation.up, d.polarisation.down)
    return same[0], same[1], select(minority, LEAST_MINORITY, 0, opposite)


def energy(d: Density) -> Value:
    """Energy density."""
    return d.rho * per_electron(d.rs, d.polarisation)
