"""Sums on a GPU: exact, whatever the order of additions; whole calculations give the same bits every time."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import cuanto
from cuanto.arrays import Array
from cuanto.backends.base import Launch
from cuanto.backends.exact_sums import ExactSums
from cuanto.backends.simt.backend import SimtBackend
from cuanto.backends.simt.kernel import Order, compile_simt
from cuanto.kernels.abi import parse_arguments
from cuanto.kernels.text import SUMS, Source, assemble
from scf_cases import basis, molecule

FINE = Fraction(1, 2**46)
"""Unit of the sums."""
BODY = """
KERNEL(64) ENTRY(PARAMETERS) {
    FOR_ITEMS(i) ADD(SUMS(out) + place[i], value[i]);
}
"""


def adding() -> Source:
    """A kernel that adds out[place[i]] += value[i]."""
    arguments = parse_arguments("INDEX begin, INDEX end, const int* place, const double* value, double* out") + SUMS
    return assemble("add_values", "cuda", "double", arguments, {}, (BODY,), threads=64, per_block=64)


def numbers(count: int) -> Array:
    """Numbers of both signs, between 1e-12 and 1e9."""
    rng = np.random.default_rng(3)
    return rng.choice([-1.0, 1.0], count) * 10.0 ** rng.uniform(-12.0, 9.0, count)


def test_sums_equal_those_of_rational_numbers() -> None:
    """The error of each number is at most half of the unit; the last rounding is that of the result."""
    backend, value = SimtBackend(), numbers(1000)
    place = (np.arange(1000) % 7).astype(np.int32)
    out = backend.to_device(np.arange(7.0))
    arguments = {"place": backend.to_device(place), "value": backend.to_device(value), "out": out}
    backend.launch_all([Launch(backend.compile(adding()), 1000, arguments, sums="out")] * 2)
    for k, found in enumerate(backend.to_host(out)):
        exact = k + 2 * sum(map(Fraction, value[place == k]))
        assert abs(Fraction(found) - exact) <= 286 * FINE / 2 + abs(exact) * Fraction(2) ** -51


@pytest.mark.parametrize("order", ["forward", "reverse"])
def test_bits_do_not_depend_on_the_order(order: Order) -> None:
    backend, source, value = SimtBackend(), adding(), numbers(640)
    kernel = compile_simt(source.text, source.entry)
    place, found = backend.to_device(np.zeros(640, dtype=np.int32)), set()
    for given in (value, value[::-1].copy(), np.sort(value)):
        sums = ExactSums(backend, (1,))
        arguments = [np.int64(0), np.int64(640), place, backend.to_device(given), sums.numbers, sums.numbers]
        kernel.launch((10,), (64,), 0, arguments, order)
        found.add(float(backend.to_host(sums.total())[0]))
    assert len(found) == 1 and len({sum(value), sum(value[::-1])}) == 2


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf, 1e300])
def test_what_does_not_fit_is_not_lost(wrong: float) -> None:
    backend = SimtBackend()
    out = backend.zeros((2,), np.float64)
    value = np.array([1.0, *[wrong] * 4, -2.0, 5.0])
    place = np.array([0, 0, 0, 0, 0, 0, 1], dtype=np.int32)
    arguments = {"place": backend.to_device(place), "value": backend.to_device(value), "out": out}
    backend.launch_all([Launch(backend.compile(adding()), 7, arguments, sums="out")])
    first, second = backend.to_host(out)
    assert np.isnan(first) and second == 5.0


@pytest.mark.gpu
@pytest.mark.parametrize("method", ["rhf", "pbe", "b3lyp", "r2scan"])
@pytest.mark.parametrize("fitting", ["none", "jk"])
@pytest.mark.parametrize("precision", ["double", "mixed"])
def test_calculations_give_the_same_bits_on_a_gpu(method: str, fitting: str, precision: str) -> None:
    """Energy, orbitals and gradient, once all kernels are compiled: two calculations request them."""
    mol = molecule("caffeine")
    aux = basis("def2-universal-jkfit", mol) if fitting == "jk" else None
    found = set()
    for turn in range(5):
        one = cuanto.gradient(
            mol, method, basis("def2-svp", mol), auxbasis=aux, fitting=fitting, precision=precision, backend="cuda"
        )
        cuanto.backends.get_backend("cuda").finish_compiling()
        if turn > 1:
            found.add((one.energy, one.orbital_energies.tobytes(), one.gradient.tobytes()))
    assert len(found) == 1


@pytest.mark.gpu
@pytest.mark.parametrize("method", ["mndo", "am1", "pm3", "pm6"])
def test_semiempirical_calculations_give_the_same_bits_on_a_gpu(method: str) -> None:
    found = set()
    for turn in range(4):
        one = cuanto.gradient(molecule("ribavirin"), method, backend="cuda")
        if turn:
            found.add((one.energy, one.orbital_energies.tobytes(), one.gradient.tobytes()))
    assert len(found) == 1
