"""Exchange of Perdew and Wang 1991."""

from __future__ import annotations

from cuanto.functionals.citation import Citation
from cuanto.functionals.density import Density, Spin
from cuanto.functionals.lda_x import spin_energy
from cuanto.kernels.values import Value, asinh, exp

FAMILY = "gga"
CITATIONS = (
    Citation(
        "J. P. Perdew, J. A. Chevary, S. H. Vosko, K. A. Jackson, M. R. Pederson, D. J. Singh, C. Fiolhais, "
        "Phys. Rev. B 46, 6671 (1992)",
        "10.1103/PhysRevB.46.6671",
    ),
)


def enhancement(s: Spin) -> Value:
    """F(s)"""
    p = s.p
    becke = 1 + 0.19645 * s.s * asinh(7.7956 * s.s)
    return (becke + (0.2743 - 0.1508 * exp(-100 * p)) * p) / (becke + 0.004 * p * p)


def energy(d: Density) -> Value:
    """Energy density."""
    return spin_energy(d.a) * enhancement(d.a) + spin_energy(d.b) * enhancement(d.b)
