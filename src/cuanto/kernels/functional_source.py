"""Kernels of density functionals: energy density and first derivatives at grid points, from their graph.

rho[spin][point], sigma[pair][point] and tau[spin][point] have rows of `stride` numbers; with one spin, rho, sigma
and tau are totals over both spins; with two, the pairs are aa, ab, bb. Results: e[point] (energy per volume) and the
derivatives v_rho, v_sigma, v_tau, each in the layout of its variable. With the consumer `potential`, rho and the
results have the layout of a quadrature, [spin][component][point] (templates/xc.h).
"""

from __future__ import annotations

from cuanto import tuning
from cuanto.kernels.abi import parse_arguments
from cuanto.kernels.emit import function, straight_line
from cuanto.kernels.ir import Stage
from cuanto.kernels.text import Source, assemble

THREADS = tuning.size("cuda", "grid.functional_threads")
FAMILIES = ("lda", "gga", "mgga")
VARIABLES = {1: {"lda": 1, "gga": 2, "mgga": 3}, 2: {"lda": 2, "gga": 5, "mgga": 7}}
"""Number of variables of each family, by number of spins."""
FLOORS = {
    "double": {"RHO_FLOOR": 1e-14, "SPIN_FLOOR": 1e-24, "SIGMA_FLOOR": 1e-70, "TAU_FLOOR": 1e-40},
    "float": {"RHO_FLOOR": 1e-8, "SPIN_FLOOR": 1e-10, "SIGMA_FLOOR": 1e-30, "TAU_FLOOR": 1e-17},
}
"""Total density below which a point is ignored; smallest values of a spin's density, |gradient|^2 and kinetic energy
density. In single precision they keep every power in the formulas within the range of the type."""

ARGUMENTS = parse_arguments(
    "INDEX begin, INDEX end, INDEX stride, const REAL* rho, const REAL* sigma, const REAL* tau, REAL* e, REAL* "
    "v_rho, REAL* v_sigma, REAL* v_tau"
)
POTENTIAL = ARGUMENTS[:4] + parse_arguments("const REAL* weight, REAL* e, REAL* v")
MATHEMATICS = {"cpu": "xc_math_cpu.h", "cuda": "xc_math.cuh"}


def functional_source(
    stage: Stage, name: str, family: str, spins: int, target: str, real: str = "double", consumer: str = "store"
) -> Source:
    """The kernel of a functional; the stage computes the energy density and its derivatives in the order of variables.

    `consumer`: `store` (values at the points), or the `potential` of a quadrature.
    """
    arguments = POTENTIAL if consumer == "potential" else ARGUMENTS
    defines = {
        "SPINS": spins,
        "GRADIENT": int(family != "lda"),
        "KINETIC": int(family == "mgga"),
        "THREADS": THREADS,
        "POTENTIAL": int(consumer == "potential"),
        **{floor: f"REAL({value!r})" for floor, value in FLOORS[real].items()},
    }
    lines = straight_line(stage, "{}[{}]".format, "y[{}] = {};".format, by_number=True)
    body = (MATHEMATICS[target], function("FN void energy_density(const VEC* x, VEC* y)", lines), "xc_point.h", "xc.h")
    entry = f"xc_{name}_{spins}"
    return assemble(entry, target, real, arguments, defines, body, threads=THREADS, per_block=THREADS)
