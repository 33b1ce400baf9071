"""Becke's exchange of 1988."""

from __future__ import annotations

from cuanto.functionals.citation import Citation
from cuanto.functionals.density import Density, Spin
from cuanto.functionals.lda_x import C_X
from cuanto.kernels.values import Value, asinh

FAMILY = "gga"
CITATIONS = (Citation("A. D. Becke, Phys. Rev. A 38, 3098 (1988)", "10.1103/PhysRevA.38.3098"),)

BETA = 0.0042


def coefficient(s: Spin) -> Value:
    """What replaces C_X: the energy of a spin is minus this times rho_s^(4/3)."""
    return C_X + BETA * s.x_squared / (1 + 6 * BETA * s.x * asinh(s.x))


def spin_energy(s: Spin) -> Value:
    """Energy density of one spin."""
    return -s.rho * s.cube_root * coefficient(s)


def energy(d: Density) -> Value:
    """Energy density."""
    return spin_energy(d.a) + spin_energy(d.b)
