"""revPBE: the exchange of PBE with a kappa fitted to atoms."""

from __future__ import annotations

from cuanto.functionals.citation import Citation
from cuanto.functionals.density import Density
from cuanto.functionals.gga_x_pbe import exchange
from cuanto.kernels.values import Value

FAMILY = "gga"
CITATIONS = (Citation("Y. Zhang, W. Yang, Phys. Rev. Lett. 80, 890 (1998)", "10.1103/PhysRevLett.80.890"),)

KAPPA = 1.245


def energy(d: Density) -> Value:
    """Energy density."""
    return exchange(d, KAPPA)
