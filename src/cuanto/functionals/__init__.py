"""Density functionals: definitions by Libxc label, common names, evaluation at grid points.

f = get_functional("b3lyp")                  # f.family, f.exact_exchange, f.range_separation, f.citations
xc = Evaluator(f, backend, spins=2)          # compiled in the background
v = xc(rho_sg, sigma_xg, tau_sg)             # v.e_g, v.v_rho_sg, v.v_sigma_xg, v.v_tau_sg
"""

from cuanto.functionals.evaluate import Evaluator, XCPotential, XCValues
from cuanto.functionals.functional import Functional, Part, RangeSeparation
from cuanto.functionals.registry import functional_names, get_functional, split_dispersion

__all__ = [
    "Evaluator",
    "Functional",
    "Part",
    "RangeSeparation",
    "XCPotential",
    "XCValues",
    "functional_names",
    "get_functional",
    "split_dispersion",
]
