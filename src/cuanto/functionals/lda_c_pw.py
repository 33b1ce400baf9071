"""Correlation of the uniform electron gas: Perdew and Wang 1992, with the constants as printed."""

from __future__ import annotations

from dataclasses import dataclass

from cuanto.functionals.citation import Citation
from cuanto.functionals.density import CUBE_ROOT_2, RADIUS, Density, Polarisation, radius
from cuanto.kernels.values import Value, cbrt, largest, least, log1p, select, sqrt

FAMILY = "lda"
CITATIONS = (Citation("J. P. Perdew, Y. Wang, Phys. Rev. B 45, 13244 (1992)", "10.1103/PhysRevB.45.13244"),)

# alpha_1, beta_1 ... beta_4 of table I: unpolarised, fully polarised, minus the spin stiffness
SHAPES = (
    (0.21370, 7.5957, 3.5876, 1.6382, 0.49294),
    (0.20548, 14.1189, 6.1977, 3.3662, 0.62517),
    (0.11125, 10.357, 3.6231, 0.88026, 0.49671),
)


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
    """Energy densities of equal (alpha, beta) and of opposite spins (H. Stoll et al., doi:10.1007/BF02394557)."""
    same = [s.rho * of_one_spin(s.cube_root, constants) for s in d.spins]
    if d.a == d.b:
        return same[0], same[1], d.rho * per_electron(d.rs, d.polarisation, constants) - same[0] - same[1]
    return same[0], same[1], _opposite(d, constants)


def _opposite(d: Density, constants: Constants) -> Value:
    """What the energy has beyond that of either spin alone, rho eps(rho, zeta) - sum_s rho_s eps_1(rho_s).

    Near full polarisation nearly equal numbers would be subtracted. Here every term is small with the minority spin:
    rho [eps(rho, zeta) - eps_1(rho)] + rho_min [eps_1(rho) - eps_1(rho_min)] + rho_max [eps_1(rho) - eps_1(rho_max)].
    """
    a, b = d.spins
    most, few = largest(a.rho, b.rho), least(a.rho, b.rho)
    root_most = select(a.rho, b.rho, b.cube_root, a.cube_root)
    root_few = select(a.rho, b.rho, a.cube_root, b.cube_root)
    para, ferro, minus = (fit(d.rs, A, shape) for A, shape in zip(constants.A, SHAPES, strict=True))
    f, not_f, not_z4 = d.polarisation.f, *_beside_one(d.polarisation)
    mixed = (para - ferro) * (not_f + f * not_z4) - minus * f * not_z4 / constants.f_curvature
    change = _change_of_fit(d.cube_root, root_most, few, constants.A[1], SHAPES[1])
    return d.rho * mixed + few * (ferro - of_one_spin(root_few, constants)) + most * change


def _beside_one(p: Polarisation) -> tuple[Value, Value]:
    """1 - f and 1 - zeta^4 as products: 2^(4/3) - x^(4/3) has the factor 2^(1/3) - x^(1/3), and that has 2 - x."""
    most, few = largest(p.up, p.down), least(p.up, p.down)
    u, c = cbrt(most), CUBE_ROOT_2
    rest = few * (c + u) * (c * c + u * u) / (c * c + c * u + u * u) - few * cbrt(few)
    return rest / (2 * c - 2), most * few * (1 + p.zeta**2)


def _change_of_fit(root: Value, other: Value, difference: Value, A: float, shape: tuple[float, ...]) -> Value:
    """Fit of a density less that of another one, from their cube roots and their difference."""
    alpha, b1, b2, b3, b4 = shape
    rs, rs_other = radius(root), radius(other)
    x, y = sqrt(rs), sqrt(rs_other)
    grown = RADIUS * difference / ((root * root + root * other + other * other) * root * other)  # rs_other - rs
    Q, Q_other = (2 * A * z * (b1 + z * (b2 + z * (b3 + b4 * z))) for z in (x, y))
    slope = b1 + b2 * (x + y) + b3 * (rs + x * y + rs_other) + b4 * (x + y) * (rs + rs_other)
    logarithms = log1p(2 * A * slope * grown / ((x + y) * Q * (Q_other + 1)))
    return -2 * A * ((1 + alpha * rs) * logarithms - alpha * grown * log1p(1 / Q_other))


def energy(d: Density) -> Value:
    """Energy density."""
    return d.rho * per_electron(d.rs, d.polarisation)
