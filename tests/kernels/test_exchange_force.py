"""Kernels of exchange forces: expression graphs against differences of integrals, and texts that NVRTC compiles."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest

from cuanto import Basis
from cuanto.backends.cuda.nvrtc import compile_nvrtc
from cuanto.basis import Shell
from cuanto.integrals.segments import segments
from cuanto.kernels.exchange_force import bra_first, force_kernels, ket_parts
from cuanto.kernels.exchange_force_shared import Momenta, products, shared_source, workers
from cuanto.kernels.recurrences.components import powers
from cuanto.kernels.recurrences.hermite_expansion import expansion
from cuanto.kernels.recurrences.hermite_forces import forces
from cuanto.kernels.text import Source
from oracles.coulomb import quartet_derivatives
from oracles.integrals import boys
from programs import Array, evaluate_stage

CLASSES: list[tuple[Momenta, Momenta]] = [((0, 0), (0, 0)), ((1, 0), (1, 1)), ((2, 1), (1, 0)), ((1, 1), (2, 0))]
EXPONENTS = np.array([0.9, 0.4, 0.7, 1.3])
CENTRES = np.array([[0.1, -0.3, 0.5], [0.8, 0.2, -0.4], [-0.6, 0.7, 0.3], [0.2, 1.1, 0.9]])
SHARES = EXPONENTS[::2] / (EXPONENTS[::2] + EXPONENTS[1::2])


def pair(n: int) -> Array:
    """P - A, P - B, 1/2p and a/p of the bra (0) or the ket (1)."""
    a, b, AB, share = *EXPONENTS[2 * n : 2 * n + 2], CENTRES[2 * n] - CENTRES[2 * n + 1], SHARES[n]
    return np.array([*((share - 1.0) * AB), *(share * AB), 0.5 / (a + b), share])


def interaction(order: int) -> tuple[Array, Array]:
    """P - Q, and R_0^n with the factors of four s functions."""
    (p, q), distances = EXPONENTS[::2] + EXPONENTS[1::2], CENTRES[::2] - CENTRES[1::2]
    X = np.subtract(*(SHARES[:, None] * CENTRES[::2] + (1.0 - SHARES[:, None]) * CENTRES[1::2]))
    decay = np.exp(-(SHARES * EXPONENTS[1::2] * (distances**2).sum(axis=1)).sum())
    rho = p * q / (p + q)
    factor = 2.0 * np.pi**2.5 / (p * q * np.sqrt(p + q)) * decay
    return X, factor * (-2.0 * rho) ** np.arange(order + 1) * boys(order, np.array(rho * X @ X))


@pytest.mark.parametrize("bra, ket", CLASSES, ids=str)
def test_forces_of_a_primitive_quartet(bra: Momenta, ket: Momenta) -> None:
    momenta = (*bra, *ket)
    shells = [Shell.from_table(n, l, [EXPONENTS[n]], [[1.0]], False) for n, l in enumerate(momenta)]
    Gamma = np.random.default_rng(3).normal(size=[len(powers(l)) for l in momenta])
    scale = prod(float(segments(Basis.from_shells([s], [[0.0] * 3] * 4))[0].coefficients[0, 0]) for s in shells)
    order = sum(momenta) + 1
    X, base = interaction(order)
    sums = np.zeros(10)
    half = products(ket) // 2
    for part in (range(half), range(half, products(ket))):
        gamma = scale * Gamma.reshape(-1, products(ket))[:, part].reshape(-1)
        values = {"bra": pair(0), "ket": pair(1), "X": X, "base": base, "gamma": gamma}
        sums += np.array(evaluate_stage(forces(bra, ket, part), values), dtype=float)
    energy, (total, on_bra, on_ket) = sums[0], sums[1:].reshape(3, 3)
    # Add the derivatives of the exponentials of A - B and C - D.
    for found, n in ((on_bra, 0), (on_ket, 1)):
        found -= 2.0 * EXPONENTS[2 * n + 1] * SHARES[n] * energy * (CENTRES[2 * n] - CENTRES[2 * n + 1])
    a, c = SHARES
    ours = [a * total + on_bra, (1 - a) * total - on_bra, on_ket - c * total, (c - 1) * total - on_ket]
    np.testing.assert_allclose(ours, quartet_derivatives(shells, CENTRES, Gamma), rtol=0.0, atol=1e-9)


def test_expansion_of_a_density() -> None:
    """The density of a bra: the number of outputs, and the value at its centre for an infinitely narrow product."""
    stage, fields = expansion(2, 1), pair(0)
    gamma = np.random.default_rng(4).normal(size=18)
    outputs = np.array(evaluate_stage(stage, {"pair": fields, "gamma": gamma}))
    assert len(outputs) == 20 + 3 * 10
    # x_A^i x_B^j at the centre of the Hermite Gaussians: s functions only, in the limit of a narrow product.
    narrow = np.array(evaluate_stage(stage, {"pair": np.array([*fields[:6], 0.0, fields[7]]), "gamma": gamma}))
    monomials = [np.prod(fields[:3] ** a) * np.prod(fields[3:6] ** b) for a in np.array(powers(2)) for b in np.eye(3)]
    np.testing.assert_allclose(narrow[0], gamma @ np.array(monomials), atol=1e-14)


def test_workers_fill_a_warp() -> None:
    for count in (1, 3, 6, 9, 10, 18, 36, 60, 100, 225, 441):
        threads, each, rounds = workers(count)
        assert threads <= 32 and threads * each * rounds >= count


def test_low_momenta_have_straight_line_code() -> None:
    assert bra_first((2, 1), (1, 1)) and not bra_first((2, 0), (1, 1))
    assert len(ket_parts((1, 1), (1, 0))) == 1 and not ket_parts((2, 2), (2, 2))
    parts = ket_parts((2, 1), (1, 1))
    assert len(parts) > 1 and [n for part in parts for n in part] == list(range(9))


SOURCES = [
    force_kernels((1, 0), (0, 0), "double", 0)[0].source,
    force_kernels((2, 1), (1, 1), "float", 0)[0].source,
    shared_source((3, 0), (2, 1), "double", in_scratch=True),
    shared_source((3, 2), (2, 2), "float"),
]


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.entry)
def test_nvrtc_compiles(source: Source) -> None:
    cubin, log = compile_nvrtc(source.text, "sm_90")
    assert cubin.startswith(b"\x7fELF") and source.entry.encode() in cubin and "warning" not in log, log
