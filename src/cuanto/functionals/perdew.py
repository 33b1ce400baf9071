"""Perdew's gradient-corrected functionals: P86, PW91, PBE and revPBE."""

from __future__ import annotations

from fractions import Fraction
from math import log as ln
from math import pi

from cuanto.functionals.density import K_F, Density, Polarisation, Spin
from cuanto.functionals.parts import Citation, define
from cuanto.functionals.uniform_gas import PERDEW_ZUNGER, PRINTED, define_enhanced, per_electron, perdew_zunger
from cuanto.kernels.values import Value, asinh, exp, expm1, log1p, sqrt

P86 = Citation("J. P. Perdew, Phys. Rev. B 33, 8822 (1986)", "10.1103/PhysRevB.33.8822")
PW91 = Citation(
    "J. P. Perdew, J. A. Chevary, S. H. Vosko, K. A. Jackson, M. R. Pederson, D. J. Singh, C. Fiolhais, "
    "Phys. Rev. B 46, 6671 (1992)",
    "10.1103/PhysRevB.46.6671",
)
PBE = Citation("J. P. Perdew, K. Burke, M. Ernzerhof, Phys. Rev. Lett. 77, 3865 (1996)", "10.1103/PhysRevLett.77.3865")
REVPBE = Citation("Y. Zhang, W. Yang, Phys. Rev. Lett. 80, 890 (1998)", "10.1103/PhysRevLett.80.890")

# ---- P86 ------------------------------------------------------------------------------------------------------

ALPHA, BETA, GAMMA, DELTA = 0.023266, 7.389e-6, 8.723, 0.472
"""Parameters of C(rho)."""
AT_INFINITY = 0.001667 + 0.002568
"""C(rho) at infinite density."""
CUTOFF = 1.745 * 0.11
"""Factor of the exponent phi that cuts off large gradients."""


def rasolt_geldart(rs: Value) -> Value:
    """Coefficient C(rho) of the gradient correction, as a function of r_s."""
    above = 0.002568 + rs * (ALPHA + BETA * rs)
    below = 1 + rs * (GAMMA + rs * (DELTA + 1e4 * BETA * rs))
    return 0.001667 + above / below


@define("gga_c_p86", P86, PERDEW_ZUNGER)
def p86(d: Density) -> Value:
    """Correlation energy density: the uniform gas of Perdew and Zunger, and a gradient correction."""
    c = rasolt_geldart(d.rs)
    phi = CUTOFF * AT_INFINITY * sqrt(d.sigma) / (c * d.rho ** Fraction(7, 6))
    spin = sqrt(d.polarisation.mean(5, 3))
    return perdew_zunger(d) + exp(-phi) * c * d.sigma / (spin * d.rho * d.cube_root)


# ---- PW91 -----------------------------------------------------------------------------------------------------

PW91_ALPHA = 0.09
NU = 16 / pi * K_F
C_X = -0.001667
C_C0 = 0.004235
PW91_BETA = NU * C_C0


@define_enhanced("gga_x_pw91", PW91)
def pw91_enhancement(s: Spin) -> Value:
    """Enhancement factor F(s)."""
    p = s.p
    becke = 1 + 0.19645 * s.s * asinh(7.7956 * s.s)
    return (becke + (0.2743 - 0.1508 * exp(-100 * p)) * p) / (becke + 0.004 * p * p)


def pw91_coefficient(rs: Value) -> Value:
    """C_xc(r_s). Like Libxc, omits the term 0.07389 r_s^3 that the paper has in the denominator."""
    above = 2.568 + rs * (23.266 + 0.007389 * rs)
    return 0.001 * above / (1 + rs * (8.723 + 0.472 * rs))


@define("gga_c_pw91", PW91)
def pw91(d: Density) -> Value:
    """Correlation energy density: that of the uniform gas and the gradient corrections H_0 and H_1."""
    rho, phi = d.rho, d.polarisation.phi
    phi3, t2 = phi**3, d.t_squared(phi)
    uniform = per_electron(d.rs, d.polarisation, PRINTED)
    w = expm1(-2 * PW91_ALPHA * uniform / (PW91_BETA * PW91_BETA * phi3))
    y = 2 * PW91_ALPHA / PW91_BETA * t2
    h0 = phi3 * PW91_BETA * PW91_BETA / (2 * PW91_ALPHA) * log1p(y * w * (w + y) / (w * w + w * y + y * y))
    # k_s^2 / k_F^2 = 4 / (pi k_F)
    ratio = 4 / (pi * K_F) * d.inverse_root
    c = pw91_coefficient(d.rs) - C_X - C_C0 - 3 * C_X / 7
    return rho * (uniform + h0 + NU * c * phi3 * t2 * exp(-100 * phi3 * phi * ratio * t2))


# ---- PBE and revPBE -------------------------------------------------------------------------------------------

KAPPA = 0.804
REVPBE_KAPPA = 1.245
"""Fitted to exchange-only total energies of atoms."""
PBE_BETA = 0.06672455060314922
PBE_GAMMA = (1 - ln(2)) / pi**2
MU = PBE_BETA * pi**2 / 3


@define_enhanced("gga_x_pbe", PBE)
def pbe_enhancement(s: Spin, kappa: float = KAPPA) -> Value:
    """Enhancement factor F(s), eq. 14."""
    return 1 + kappa * MU * s.p / (kappa + MU * s.p)


@define_enhanced("gga_x_pbe_r", REVPBE)
def revpbe_enhancement(s: Spin) -> Value:
    """Enhancement factor F(s) of PBE with another kappa."""
    return pbe_enhancement(s, REVPBE_KAPPA)


def pbe_per_electron(rs: Value, polarisation: Polarisation, t_squared: Value) -> Value:
    """Correlation energy per electron, eq. 7, with A = beta / (gamma w) inserted so that nothing is divided by zero."""
    uniform, phi3 = per_electron(rs, polarisation), polarisation.phi**3
    w = expm1(-uniform / (PBE_GAMMA * phi3))
    y = PBE_BETA / PBE_GAMMA * t_squared
    return uniform + PBE_GAMMA * phi3 * log1p(y * w * (w + y) / (w * w + w * y + y * y))


@define("gga_c_pbe", PBE)
def pbe(d: Density) -> Value:
    """Correlation energy density of PBE."""
    return d.rho * pbe_per_electron(d.rs, d.polarisation, d.t_squared(d.polarisation.phi))
