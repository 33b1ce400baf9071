"""Texts of the kernels of effective core potentials: projections of basis functions, forces, and the local part."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from cuanto import tuning
from cuanto.kernels.abi import parse_arguments
from cuanto.kernels.recurrences.boys import MAX_ORDER
from cuanto.kernels.recurrences.components import shift_power
from cuanto.kernels.recurrences.mcmurchie_davidson import hermite_tuples
from cuanto.kernels.spec import MAX_L
from cuanto.kernels.text import SUMS, Source, assemble

MAX_PROJECTOR = 5
"""Highest angular momentum of a projector."""
SHELL_FIELDS = 6
"""Integers of a shell's record: momentum, functions, primitives, first row, first primitive, first coupling number."""
NODES = 32
"""Points of the quadrature over Gaussians in the local part (relative error 3e-12 at the highest order)."""
CUTOFF = 100.0
"""Exponents above which Gaussians of the local part are neglected."""
THREADS = tuning.size("cuda", "j.step_threads")
LAMBDAS = MAX_L + 1 + MAX_PROJECTOR + 1
"""Number of orders of Bessel functions."""

RANGE = parse_arguments("INDEX begin, INDEX end")
SHELLS = parse_arguments(
    "INDEX points, const double* radius, int momenta, const INDEX* reach, const INDEX* start, INDEX width, "
    "const INDEX* records, const double* distances, const double* exponent, const double* coefficient, "
    "const double* coupling"
)
LOCAL = parse_arguments(
    "INDEX first, int order, int tuples, const int* table, const double* geometry, int centres, const double* centre, "
    "const int* term_first, const double* term, const double* node, const double* weight, double* R, double* V"
)
KERNELS = {
    "core_project": RANGE + SHELLS + parse_arguments("double* P"),
    "core_force": RANGE + SHELLS + parse_arguments("const double* Q, double* force"),
    "core_local": RANGE + LOCAL,
    "core_local_force": RANGE
    + LOCAL
    + parse_arguments(
        "const int* lowered, const double* H, int densities, const double* factor, const INDEX* centre_atom, "
        "double* gradient"
    ),
}
TEXTS = {
    "core_project": ("core_bessel.h", "core_project.h"),
    "core_force": ("core_bessel.h", "core_force.h"),
    "core_local": ("j_pair.h", "core_local.h"),
    "core_local_force": ("j_pair.h", "core_local.h"),
}
SUMMED = ("core_local_force",)
"""Kernels that add to a gradient."""


def coupled_terms(l: int, degree: int) -> list[tuple[int, int]]:
    """(k, n): powers of r up to a degree and orders of Bessel functions that couple them with angular momentum l."""
    return [(k, n) for k in range(degree + 1) for n in range(l - k if l > k else (l + k) % 2, l + k + 1, 2)]


@cache
def lowered_tuples() -> NDArray[np.int32]:
    """Numbers of Hermite tuples lowered by one along each axis, [tuple, axis]; -1 where this is impossible."""
    tuples = hermite_tuples(MAX_ORDER)
    number = {t: i for i, t in enumerate(tuples)}
    table = np.array([[number.get(shift_power(t, x, -1), -1) for x in range(3)] for t in tuples], dtype=np.int32)
    table.setflags(write=False)
    return table


@cache
def core_source(target: str, name: str) -> Source:
    """A kernel by its name in `KERNELS`."""
    terms = max(len(coupled_terms(l, MAX_L + 1)) for l in range(MAX_PROJECTOR + 1))
    defines = {"LAMBDAS": LAMBDAS, "TERMS": terms, "SHELL_FIELDS": SHELL_FIELDS, "ORDERS": MAX_ORDER + 1}
    defines |= {"NODES": NODES, "THREADS": THREADS, "FORCES": int(name in SUMMED)}
    arguments = KERNELS[name] + (SUMS if name in SUMMED else ())
    macros = {**defines, "CUTOFF": CUTOFF}
    return assemble(name, target, "double", arguments, macros, TEXTS[name], threads=THREADS, per_block=THREADS)
