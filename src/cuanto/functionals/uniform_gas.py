"""The uniform electron gas: exchange, and fits of its correlation energy."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import pi

from cuanto.functionals.density import CUBE_ROOT_2, RADIUS_FACTOR, Density, Polarisation, Spin, radius
from cuanto.functionals.parts import Citation, define, define_exchange
from cuanto.kernels.values import Value, atan, cbrt, log, log1p, maximum, minimum, select, sqrt

DIRAC = Citation("P. A. M. Dirac, Math. Proc. Camb. Phil. Soc. 26, 376 (1930)", "10.1017/S0305004100016108")
SLATER = Citation("J. C. Slater, Phys. Rev. 81, 385 (1951)", "10.1103/PhysRev.81.385")
VWN = Citation("S. H. Vosko, L. Wilk, M. Nusair, Can. J. Phys. 58, 1200 (1980)", "10.1139/p80-159")
PERDEW_ZUNGER = Citation("J. P. Perdew, A. Zunger, Phys. Rev. B 23, 5048 (1981)", "10.1103/PhysRevB.23.5048")
PERDEW_WANG = Citation("J. P. Perdew, Y. Wang, Phys. Rev. B 45, 13244 (1992)", "10.1103/PhysRevB.45.13244")

C_X: float = 1.5 * (3 / (4 * pi)) ** (1 / 3)
"""Exchange energy density of one spin: -C_X rho_s^(4/3)."""
F_CURVATURE = 4 / (9 * (2 ** (1 / 3) - 1))
"""f''(0) of the function f(zeta) that interpolates between unpolarised and polarised."""


@define_exchange("lda_x", DIRAC, SLATER)
def exchange(s: Spin) -> Value:
    """Energy density of one spin."""
    return -C_X * s.rho * s.cube_root


def define_enhanced(label: str, *citations: Citation) -> Callable[[Callable[..., Value]], Callable[..., Value]]:
    """Register an exchange part, given the enhancement factor F of one spin that multiplies the uniform gas."""

    def register(factor: Callable[..., Value]) -> Callable[..., Value]:
        define_exchange(label, *citations)(lambda s: exchange(s) * factor(s))
        return factor

    return register


# ---- Vosko, Wilk and Nusair: A, x_0, b, c in Hartree ----------------------------------------------------------

VWN_PARAMAGNETIC = (0.0310907, -0.10498, 3.72744, 12.9352)
VWN_FERROMAGNETIC = (0.01554535, -0.32500, 7.06042, 18.0578)
VWN_STIFFNESS = (-1 / (6 * pi**2), -0.0047584, 1.13107, 13.0045)
RPA_PARAMAGNETIC = (0.0310907, -0.409286, 13.0720, 42.7198)
RPA_FERROMAGNETIC = (0.01554535, -0.743294, 20.1231, 101.578)


def vwn_fit(rs: Value, constants: Sequence[float]) -> Value:
    """Eq. 4.4: the integrated Pade approximant."""
    A, x0, b, c = constants
    x = sqrt(rs)
    X = rs + b * x + c
    Q = math.sqrt(4 * c - b * b)
    angle = atan(Q / (2 * x + b))
    shift = b * x0 / (x0 * x0 + b * x0 + c)
    return A * (log(rs / X) + 2 * b / Q * angle - shift * (log((x - x0) * (x - x0) / X) + 2 * (b + 2 * x0) / Q * angle))


@define("lda_c_vwn", VWN)
def vwn(d: Density) -> Value:
    """VWN5, fitted to quantum Monte Carlo energies."""
    fits = (VWN_PARAMAGNETIC, VWN_FERROMAGNETIC, VWN_STIFFNESS)
    para, ferro, stiffness = (vwn_fit(d.rs, constants) for constants in fits)
    f, z4 = d.polarisation.f, d.polarisation.zeta**4
    return d.rho * (para + stiffness * f * (1 - z4) / F_CURVATURE + (ferro - para) * f * z4)


@define("lda_c_vwn_rpa", VWN)
def vwn_rpa(d: Density) -> Value:
    """VWN1 with the constants of the random phase approximation: the local part of B3LYP in most programs."""
    para, ferro = vwn_fit(d.rs, RPA_PARAMAGNETIC), vwn_fit(d.rs, RPA_FERROMAGNETIC)
    return d.rho * (para + (ferro - para) * d.polarisation.f)


# ---- Perdew and Zunger: gamma, beta_1, beta_2 (low density), A, B, C, D (high density) of table XII -----------

PZ_UNPOLARISED = (-0.1423, 1.0529, 0.3334, 0.0311, -0.048, 0.0020, -0.0116)
PZ_POLARISED = (-0.0843, 1.3981, 0.2611, 0.01555, -0.0269, 0.0007, -0.0048)


def pz_fit(rs: Value, constants: Sequence[float]) -> Value:
    """Correlation energy per electron: eq. C3 at low density, eq. C5 at high density."""
    gamma, b1, b2, A, B, C, D = constants
    low = gamma / (1 + b1 * sqrt(rs) + b2 * rs)
    high = (A + C * rs) * log(rs) + B + D * rs
    return select(rs, 1, high, low)


@define("lda_c_pz", PERDEW_ZUNGER)
def perdew_zunger(d: Density) -> Value:
    """Correlation energy density of Perdew and Zunger: the local part of P86."""
    para = pz_fit(d.rs, PZ_UNPOLARISED)
    return d.rho * (para + (pz_fit(d.rs, PZ_POLARISED) - para) * d.polarisation.f)


# ---- Perdew and Wang ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Constants:
    """A of the three fits, and f''(0)."""

    A: tuple[float, float, float]
    f_curvature: float


PRINTED = Constants((0.031091, 0.015545, 0.016887), 1.709921)
PRECISE = Constants((0.0310907, 0.01554535, 0.0168869), F_CURVATURE)
"""More digits, as PBE and its descendants use them."""
# alpha_1, beta_1 ... beta_4 of table I: unpolarised, fully polarised, minus the spin stiffness
SHAPES = (
    (0.21370, 7.5957, 3.5876, 1.6382, 0.49294),
    (0.20548, 14.1189, 6.1977, 3.3662, 0.62517),
    (0.11125, 10.357, 3.6231, 0.88026, 0.49671),
)


def pw_fit(rs: Value, A: float, shape: tuple[float, ...]) -> Value:
    """The fit G(rs), eq. 10."""
    alpha, b1, b2, b3, b4 = shape
    x = sqrt(rs)
    return -2 * A * (1 + alpha * rs) * log1p(1 / (2 * A * x * (b1 + x * (b2 + x * (b3 + b4 * x)))))


def per_electron(rs: Value, polarisation: Polarisation, constants: Constants = PRECISE) -> Value:
    """Correlation energy per electron, eq. 8."""
    para, ferro, minus = (pw_fit(rs, A, shape) for A, shape in zip(constants.A, SHAPES, strict=True))
    f, z4 = polarisation.f, polarisation.zeta**4
    return para - minus * f * (1 - z4) / constants.f_curvature + (ferro - para) * f * z4


@define("lda_c_pw", PERDEW_WANG)
def perdew_wang(d: Density) -> Value:
    """Correlation energy density, with the constants as printed."""
    return d.rho * per_electron(d.rs, d.polarisation, PRINTED)


@define("lda_c_pw_mod", PERDEW_WANG)
def perdew_wang_precise(d: Density) -> Value:
    """Correlation energy density, with more digits of the constants."""
    return d.rho * per_electron(d.rs, d.polarisation)


def per_electron_one_spin(cube_root: Value, constants: Constants) -> Value:
    """Energy per electron of a fully polarised gas, from rho_s^(1/3)."""
    return pw_fit(radius(cube_root), constants.A[1], SHAPES[1])


def by_spins(d: Density, constants: Constants) -> tuple[Value, Value, Value]:
    """Energy densities of equal (alpha, beta) and of opposite spins (H. Stoll et al., doi:10.1007/BF02394557)."""
    same = [s.rho * per_electron_one_spin(s.cube_root, constants) for s in d.spins]
    if d.a == d.b:
        return same[0], same[1], d.rho * per_electron(d.rs, d.polarisation, constants) - same[0] - same[1]
    return same[0], same[1], _opposite(d, constants)


def _opposite(d: Density, constants: Constants) -> Value:
    """Correlation energy density of opposite spins, rho eps(rho, zeta) - sum_s rho_s eps_1(rho_s).

    Near full polarisation nearly equal numbers would be subtracted. Here every term vanishes with the minority spin:
    rho [eps(rho, zeta) - eps_1(rho)] + rho_min [eps_1(rho) - eps_1(rho_min)] + rho_max [eps_1(rho) - eps_1(rho_max)].
    """
    a, b = d.spins
    majority, minority = maximum(a.rho, b.rho), minimum(a.rho, b.rho)
    root_majority = select(a.rho, b.rho, b.cube_root, a.cube_root)
    root_minority = select(a.rho, b.rho, a.cube_root, b.cube_root)
    para, ferro, minus = (pw_fit(d.rs, A, shape) for A, shape in zip(constants.A, SHAPES, strict=True))
    f, not_f, not_z4 = d.polarisation.f, *_complements(d.polarisation)
    mixed = (para - ferro) * (not_f + f * not_z4) - minus * f * not_z4 / constants.f_curvature
    change = _fit_difference(d.cube_root, root_majority, minority, constants.A[1], SHAPES[1])
    return d.rho * mixed + minority * (ferro - per_electron_one_spin(root_minority, constants)) + majority * change


def _complements(p: Polarisation) -> tuple[Value, Value]:
    """1 - f and 1 - zeta^4 as products, without cancellation: 2^(4/3) - x^(4/3) is factorised down to 2 - x."""
    majority, minority = maximum(p.up, p.down), minimum(p.up, p.down)
    u, c = cbrt(majority), CUBE_ROOT_2
    rest = minority * (c + u) * (c * c + u * u) / (c * c + c * u + u * u) - minority * cbrt(minority)
    return rest / (2 * c - 2), majority * minority * (1 + p.zeta**2)


def _fit_difference(root: Value, other: Value, difference: Value, A: float, shape: tuple[float, ...]) -> Value:
    """Difference of the fits of two densities, from their cube roots and their difference."""
    alpha, b1, b2, b3, b4 = shape
    rs, rs_other = radius(root), radius(other)
    x, y = sqrt(rs), sqrt(rs_other)
    # rs_other - rs
    rs_change = RADIUS_FACTOR * difference / ((root * root + root * other + other * other) * root * other)
    Q, Q_other = (2 * A * z * (b1 + z * (b2 + z * (b3 + b4 * z))) for z in (x, y))
    slope = b1 + b2 * (x + y) + b3 * (rs + x * y + rs_other) + b4 * (x + y) * (rs + rs_other)
    logarithms = log1p(2 * A * slope * rs_change / ((x + y) * Q * (Q_other + 1)))
    return -2 * A * ((1 + alpha * rs) * logarithms - alpha * rs_change * log1p(1 / Q_other))
