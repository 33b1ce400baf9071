"""Derivatives of basis functions as Cartesian shells of one higher and one lower l, and two-centre gradients.

d/dx of x^a exp(-alpha r^2) is a x^(a-1) exp(-alpha r^2) - 2 alpha x^(a+1) exp(-alpha r^2): integrals of derivatives are
integrals of ordinary shells, computed by the ordinary kernels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cuanto.arrays import Array, Ints
from cuanto.backends.base import Backend
from cuanto.basis import Basis
from cuanto.integrals.api import basis_kets
from cuanto.integrals.attenuation import attenuate
from cuanto.integrals.batches import shell_batch
from cuanto.integrals.engine import Engine
from cuanto.integrals.segments import SegmentClass, segments
from cuanto.kernels.recurrences.components import function_count, kernel_matrix, powers, shift_power


@dataclass(frozen=True)
class DerivativeShells:
    """Shells whose functions make up derivatives: d phi_p/dx = sum of weight * function over all terms with p and x.

    `classes`: raised classes, each followed by the lowered one; `origins`: the class of the basis that each comes from;
    `size`: number of functions. The other arrays have one element per term.
    """

    classes: tuple[SegmentClass, ...]
    origins: tuple[SegmentClass, ...]
    size: int
    p: Ints
    x: Ints
    function: Ints
    weight: Array


def derivative_shells(basis: Basis) -> DerivativeShells:
    """The shells that make up the derivatives of all functions of a basis."""
    classes, origins, terms, size = [], [], [], 0
    for group in segments(basis):
        for step in (1, -1) if group.l else (1,):
            l = group.l + step
            functions = function_count(l, False)
            first = size + functions * np.arange(group.ao.size).reshape(group.ao.shape)
            coefficients = group.coefficients * (2.0 * group.exponents[:, None] if step == 1 else 1.0)
            arrays = (group.first, group.exponents, coefficients, group.centres, first)
            classes.append(SegmentClass(l, l < 2, *arrays))
            origins.append(group)
            size += functions * group.ao.size
            m, x, k, weight = coupling(group.l, group.pure, step)
            starts, own = group.ao.reshape(-1, 1), first.reshape(-1, 1)
            shape = (group.ao.size, len(m))
            columns = (starts + m, np.broadcast_to(x, shape), own + k, np.broadcast_to(weight, shape))
            terms.append([column.reshape(-1) for column in columns])
    p, x, function, weight = (np.concatenate(column) for column in zip(*terms, strict=True))
    return DerivativeShells(tuple(classes), tuple(origins), size, p, x, function, weight)


def coupling(l: int, pure: bool, step: int) -> tuple[Ints, Ints, Ints, Array]:
    """(m, x, k, weight): d/dx of function m contains weight times monomial k of the raised or lowered shell."""
    number = {a: k for k, a in enumerate(powers(l + step))}
    found = []
    for m, row in enumerate(kernel_matrix(l, pure)):
        for a, value in zip(powers(l), row, strict=True):
            for x in range(3):
                factor = -1.0 if step == 1 else float(a[x])
                if value and factor:
                    found.append((m, x, number[shift_power(a, x, step)], factor * value))
    rows = np.array(found)
    m, axis, k = rows[:, :3].astype(np.int64).T
    return m, axis, k, rows[:, 3]


def two_centre_gradient(basis: Basis, weights: dict[str, Any], backend: Backend, omega: float | None = None) -> Array:
    """sum_o sum_pq M_pq d(p|o|q)/dR_a over operators o with symmetric matrices M, [atom, axis]; on the host.

    `weights`: M_pq by the name of the operator; for the dipole moment (about the origin) M_xpq. `omega`: the operator
    "coulomb" is erf(omega r)/r instead of 1/r.
    """
    shells = derivative_shells(basis)
    n, sums = basis.nbf, np.zeros((len(shells.p),))
    position = backend.upload({"function": shells.function, "p": shells.p})
    for operator, M in weights.items():
        coulomb = operator == "coulomb"
        bras = [shell_batch(group, coulomb) for group in shells.classes]
        bras = [attenuate(bra, omega) for bra in bras] if coulomb else bras
        kets = basis_kets(basis, coulomb)
        M_xpq = M.reshape(-1, n, n)
        out = backend.zeros((len(M_xpq), shells.size, n), np.float64)
        Engine(backend, out, row_stride=n, component_stride=shells.size * n).run(operator, bras, kets)
        total_kp = sum(backend.linalg.product(O_kq, M_pq) for O_kq, M_pq in zip(out, M_xpq, strict=True))
        sums += backend.to_host(total_kp[position["function"], position["p"]])
    # A function moves with its atom: d/dR = -d/dr; the factor 2 is for the other function of each pair.
    return sum_by_atom(basis, -2.0 * sums * shells.weight, shells.p, shells.x)


def sum_by_atom(basis: Basis, values: Array, p: Ints, x: Ints) -> Array:
    """Add up values that belong to functions p and axes x by the atoms of the functions, [atom, axis]."""
    atom_p = basis.function_atoms
    gradient = np.zeros((len(basis.R_ax), 3))
    np.add.at(gradient, (atom_p[p], x), values)
    return gradient
