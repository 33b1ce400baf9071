"""Exchange of the uniform electron gas (Slater)."""

from __future__ import annotations

from math import pi

from cuanto.functionals.citation import Citation
from cuanto.functionals.density import Density, Spin
from cuanto.kernels.values import Value

FAMILY = "lda"
CITATIONS = (
    Citation("P. A. M. Dirac, Math. Proc. Camb. Phil. Soc. 26, 376 (1930)", "10.1017/S0305004100016108"),
    Citation("J. C. Slater, Phys. Rev. 81, 385 (1951)", "10.1103/PhysRev.81.385"),
)

C_X: float = 1.5 * (3 / (4 * pi)) ** (1 / 3)
"""Energy of a spin: -C_X rho_s^(4/3)."""


def spin_energy(s: Spin) -> Value:
    """Energy density of one spin."""
    return -C_X * s.rho * s.cube_root


def energy(d: Density) -> Value:
    """Energy density."""
    return spin_energy(d.a) + spin_energy(d.b)
