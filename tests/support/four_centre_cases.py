"""Shells, quartets and the comparison of four-centre integrals, block by block."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import combinations_with_replacement

import numpy as np

from bundle import HAS_PYSCF, Case, bundle
from bundle import backend as common_backend
from cuanto import integrals
from cuanto.backends.base import Backend
from cuanto.backends.cpu.backend import CpuBackend
from cuanto.backends.simt.backend import SimtBackend
from cuanto.basis import Basis, Shell
from cuanto.integrals.batches import BraBatch
from cuanto.integrals.engine import Engine
from cuanto.integrals.pairs import RowMap, pair_batches, pair_kets
from cuanto.integrals.segments import segments
from oracle import Array, _libcint_arrays
from tolerances import INTEGRAL_ABS, INTEGRAL_REL

SMALL = [Case("pure", kind, l_max=1) for kind in ("primitive", "contracted")]


GENERAL = Case("pure", "general", l_max=1)


QUARTET_BLOCKS = SimtBackend("block-per-quartet")


def backend(name: str) -> Backend | None:
    return QUARTET_BLOCKS if name == "simt-quartet" else common_backend(name)


def ours(device: Backend | None, basis: Basis, algorithm: str = "auto") -> Array:
    assert device is not None
    result: Array = device.to_host(integrals.eri_4c(basis, algorithm=algorithm, backend=device, threshold=0.0))
    return result


@cache
def expected(case: Case) -> tuple[Basis, Array]:
    basis, _ = bundle(case)
    if not HAS_PYSCF:  # as on a GPU node: compare with the table kernel, which CPU tests compare with libcint
        return basis, ours(CpuBackend(schedule="table"), basis)
    from pyscf import gto

    atm, bas, env = _libcint_arrays(basis.shells, [basis.R_ax[shell.atom] for shell in basis.shells])
    kind = "sph" if case.form == "pure" else "cart"
    values: Array = gto.moleintor.getints(f"int2e_{kind}", atm, bas, env)
    return basis, values


def assert_blocks(got: Array, exact: Array, basis: Basis) -> None:
    """Every block of four shells within 1e-12 of its largest element, or of the rounding of its Schwarz bound."""
    starts = np.asarray(basis.offsets)
    error, scale = np.abs(got - exact), np.abs(exact)
    for axis in range(4):
        error, scale = (np.maximum.reduceat(x, starts, axis=axis) for x in (error, scale))
    diagonal = np.sqrt(np.einsum("pqpq->pq", scale))
    allowed = INTEGRAL_REL * scale + INTEGRAL_ABS * np.einsum("pq,rs->pqrs", diagonal, diagonal)
    assert (error <= allowed).all(), f"{(error / allowed).max():.2g} times the tolerance"


def four_shells(momenta: tuple[int, ...], pure: bool, primitives: int, columns: int = 1) -> tuple[list[Shell], Array]:
    """One shell of each angular momentum, each at another position."""
    rng = np.random.default_rng([*momenta, pure, primitives])
    shells = []
    for l in momenta:
        exponents = 0.7 * 3.0 ** np.arange(primitives) * rng.uniform(0.7, 1.4, primitives)
        shells.append(Shell.from_table(0, l, exponents, rng.uniform(0.3, 1.0, (primitives, columns)), pure))
    return shells, 0.7 * rng.normal(size=(4, 3))


def block(device: Backend | None, shells: list[Shell], centres: Array, algorithm: str = "auto") -> Array:
    """(ab|cd) of four shells, without the other blocks of their basis (but for pairs of equal angular momenta)."""
    assert device is not None

    def pair(i: int, j: int) -> tuple[list[BraBatch], int, int]:
        basis = Basis.from_shells([replace(shells[i], atom=0), replace(shells[j], atom=1)], centres[[i, j]])
        n = basis.nbf
        classes = segments(basis)
        batches = []
        for x, y in combinations_with_replacement(range(len(classes)), 2):
            if {classes[x].l, classes[y].l} == {shells[i].l, shells[j].l}:
                batches += pair_batches(classes[y], classes[x], x == y, RowMap(n, packed=False), 0.0)
        return batches, n, shells[i].nbf

    (bras, n, na), (kets, m, nc) = pair(0, 1), pair(2, 3)
    out = device.zeros((n * n, m * m), np.float64)
    Engine(device, out, row_stride=m * m).run("coulomb", bras, [pair_kets(k) for k in kets], algorithm)
    full = device.to_host(out).reshape(n, n, m, m)
    # Rows and columns are those of the lower triangle.
    return full[na:, :na, nc:, :nc].transpose(1, 0, 3, 2)
