"""Texts of the kernels of effective core potentials: projections of basis functions, forces, and the local part."""

from __future__ import annotations

from functools import cache

from cuanto import tuning
from cuanto.kernels.abi import parse_arguments
from cuanto.kernels.recurrences.boys import MAX_ORDER
from cuanto.kernels.spec import MAX_L
from cuanto.kernels.text import Source, assemble

MAX_PROJECTOR = 5
"""Highest angular momentum of a projector."""
SHELL_FIELDS = 6
"""Integers of a shell's record: momentum, functions, primitives, first row, first primitive, first coupling number."""
NODES = 32
"""Points of the quadrature over Gaussians in the local part (relative error 3e-12 at the highest order)."""
CUTOFF = 600.0
"""Exponents above which Gaussians of the local part are neglected."""
THREADS = tuning.size("cuda", "j.step_threads")
LAMBDAS = MAX_L + 1 + MAX_PROJECTOR + 1

RANGE = parse_arguments("INDEX begin, INDEX end")
SHELLS = parse_arguments(
    "INDEX points, const double* radius, int momenta, const INDEX* reach, const INDEX* start, INDEX width, "
    "const INDEX* records, const double* distances, const double* exponent, const double* coefficient, "
    "const double* coupling"
)
KERNELS = {
    "core_project": RANGE + SHELLS + parse_arguments("double* P"),
    "core_force": RANGE + SHELLS + parse_arguments("const double* Q, double* force"),
    "core_local": RANGE
    + parse_arguments(
        "INDEX first, int order, int tuples, const int* table, const double* geometry, const double* centre, "
        "int terms, const double* term, const double* node, const double* weight, double* V"
    ),
}
HEADERS = {"core_project": "core_bessel.h", "core_force": "core_bessel.h", "core_local": "j_pair.h"}


def coupled_terms(l: int, degree: int) -> list[tuple[int, int]]:
    """(k, n): powers of r up to a degree and orders of Bessel functions that couple them with momentum l."""
    return [(k, n) for k in range(degree + 1) for n in range(l - k if l > k else (l + k) % 2, l + k + 1, 2)]


@cache
def core_source(target: str, name: str) -> Source:
    """`core_project`, `core_force` or `core_local`."""
    terms = max(len(coupled_terms(l, MAX_L + 1)) for l in range(MAX_PROJECTOR + 1))
    defines = {"LAMBDAS": LAMBDAS, "TERMS": terms, "SHELL_FIELDS": SHELL_FIELDS, "ORDERS": MAX_ORDER + 1}
    defines |= {"NODES": NODES, "THREADS": THREADS}
    body = (HEADERS[name], f"{name}.h")
    macros = {**defines, "CUTOFF": CUTOFF}
    return assemble(name, target, "double", KERNELS[name], macros, body, threads=THREADS, per_block=THREADS)
