"""Variables of functionals: spin densities, products of their gradients, kinetic energy densities.

Everything is a node of one graph. In a closed shell both spins are the same nodes, and the polarisation is constant.
tau_s = 1/2 sum_i |grad psi_is|^2.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import pi

from cuanto.kernels.ir import Graph
from cuanto.kernels.values import Value, cbrt, maximum, number, select, sqrt, variable

MIN_FRACTION = 2.0**-52
"""Lower bound of 1 - |zeta|: its negative powers and their derivatives stay finite."""
MIN_SIGMA = 1e-36
"""Lower bound of |grad rho|^2, so that its square root can be differentiated."""
K_F: float = (3 * pi**2) ** (1 / 3)
"""The Fermi momentum is K_F rho^(1/3)."""
CUBE_ROOT_2: float = 2 ** (1 / 3)
RADIUS_FACTOR: float = (3 / (4 * pi)) ** (1 / 3)
"""r_s rho^(1/3)"""
C_F: float = 0.3 * (6 * pi**2) ** (2 / 3)
"""tau_s of the uniform gas is C_F rho_s^(5/3)."""
C_S: float = 4 * (6 * pi**2) ** (2 / 3)
"""s^2 = sigma_ss / (C_S rho_s^(8/3)) for one spin, with the spin scaling of exchange."""


@dataclass(frozen=True)
class Spin:
    """Density, |gradient|^2 and kinetic energy density of one spin."""

    rho: Value
    sigma: Value
    tau: Value

    @cached_property
    def cube_root(self) -> Value:
        """rho_s^(1/3)"""
        return cbrt(self.rho)

    @cached_property
    def x_squared(self) -> Value:
        """x^2 = sigma_ss / rho_s^(8/3), Becke's reduced gradient."""
        return self.sigma / (self.rho * self.rho * self.cube_root**2)

    @cached_property
    def x(self) -> Value:
        """|grad rho_s| / rho_s^(4/3)"""
        return sqrt(self.sigma) / (self.rho * self.cube_root)

    @property
    def p(self) -> Value:
        """s^2 with Perdew's s of the density 2 rho_s."""
        return self.x_squared / C_S

    @property
    def s(self) -> Value:
        """Perdew's s of the density 2 rho_s."""
        return self.x / float(C_S**0.5)

    @cached_property
    def tau_uniform(self) -> Value:
        """Kinetic energy density of the uniform gas."""
        return C_F * self.rho * self.cube_root**2

    @cached_property
    def tau_w(self) -> Value:
        """von Weizsaecker kinetic energy density: that of one orbital."""
        return self.sigma / (8 * self.rho)


@dataclass(frozen=True)
class Polarisation:
    """1 + zeta, 1 - zeta and zeta."""

    up: Value
    down: Value
    zeta: Value

    def mean(self, numerator: int, denominator: int) -> Value:
        """[(1 + zeta)^q + (1 - zeta)^q] / 2"""
        power = Fraction(numerator, denominator)
        return 0.5 * (self.up**power + self.down**power)

    @cached_property
    def f(self) -> Value:
        """Interpolation of von Barth and Hedin: 0 if unpolarised, 1 if fully polarised."""
        return (self.mean(4, 3) - 1) / (CUBE_ROOT_2 - 1)

    @cached_property
    def phi(self) -> Value:
        """[(1 + zeta)^(2/3) + (1 - zeta)^(2/3)] / 2, where MIN_FRACTION counts as zero."""
        a, b = (select(x, 2 * MIN_FRACTION, 0, x ** Fraction(2, 3)) for x in (self.up, self.down))
        return 0.5 * (a + b)


@dataclass(frozen=True)
class Density:
    """Densities of both spins."""

    a: Spin
    b: Spin
    sigma_ab: Value

    @property
    def spins(self) -> tuple[Spin, Spin]:
        """alpha, beta"""
        return self.a, self.b

    @cached_property
    def rho(self) -> Value:
        """Total density."""
        return self.a.rho + self.b.rho

    @cached_property
    def sigma(self) -> Value:
        """|grad rho|^2 of the total density, bounded where the gradients of the spins cancel."""
        total = self.a.sigma + 2 * self.sigma_ab + self.b.sigma
        return total if self.a == self.b else maximum(total, MIN_SIGMA)

    @cached_property
    def tau(self) -> Value:
        """Total kinetic energy density."""
        return self.a.tau + self.b.tau

    @cached_property
    def cube_root(self) -> Value:
        """rho^(1/3)"""
        return cbrt(self.rho)

    @cached_property
    def inverse_root(self) -> Value:
        """rho^(-1/3)"""
        return 1 / self.cube_root

    @cached_property
    def rs(self) -> Value:
        """Radius of the sphere of one electron."""
        return radius(self.cube_root)

    @cached_property
    def polarisation(self) -> Polarisation:
        """Spin polarisation; 1 + zeta and 1 - zeta are ratios of densities, accurate near full polarisation."""
        up, down = (2 * s.rho / self.rho for s in self.spins)
        zeta = (self.a.rho - self.b.rho) / self.rho
        return Polarisation(maximum(up, MIN_FRACTION), maximum(down, MIN_FRACTION), zeta)

    @cached_property
    def p(self) -> Value:
        """s^2 of the total density."""
        return self.sigma / (4 * K_F**2 * self.rho * self.rho * self.cube_root**2)

    def t_squared(self, phi: Value) -> Value:
        """t^2 = sigma / (2 phi k_s rho)^2, k_s^2 = 4 k_F / pi."""
        return pi / (16 * K_F) * self.sigma / (phi * phi * self.rho * self.rho * self.cube_root)

    @cached_property
    def tau_w(self) -> Value:
        """von Weizsaecker kinetic energy density of the total density."""
        return self.sigma / (8 * self.rho)

    @cached_property
    def tau_uniform(self) -> Value:
        """Kinetic energy density of the unpolarised uniform gas."""
        return 0.3 * K_F**2 * self.rho * self.cube_root**2


def radius(cube_root: Value) -> Value:
    """r_s from rho^(1/3)."""
    return RADIUS_FACTOR / cube_root


def full_polarisation(graph: Graph) -> Polarisation:
    """zeta = 1, with the same bound as any density, so that self-correlation cancels exactly."""
    return Polarisation(number(graph, 2), number(graph, MIN_FRACTION), number(graph, 1))


def open_shell(graph: Graph) -> tuple[Density, list[Value]]:
    """Variables rho_a, rho_b, sigma_aa, sigma_ab, sigma_bb, tau_a, tau_b."""
    v = [variable(graph, i) for i in range(7)]
    return Density(Spin(v[0], v[2], v[5]), Spin(v[1], v[4], v[6]), v[3]), v


def closed_shell(graph: Graph) -> tuple[Density, list[Value]]:
    """Variables rho, sigma, tau of the total density."""
    v = [variable(graph, i) for i in range(3)]
    half = Spin(0.5 * v[0], 0.25 * v[1], 0.5 * v[2])
    return Density(half, half, half.sigma), v
