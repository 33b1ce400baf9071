"""One test body for every backend: one-, two- and three-centre integrals against libcint, the reference and mpmath.

These tests cover every geometry, contraction and range of exponents; test_every_class.py covers every class.
"""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import pytest

from bundle import (
    BACKENDS,
    CANCELLATION,
    FORMS,
    HAS_PYSCF,
    ONE_ELECTRON,
    Case,
    arguments,
    assert_blocks,
    backend,
    bundle,
    cases,
    evaluate,
    on,
    our_block,
)
from cuanto.backends.cpu.backend import CpuBackend
from cuanto.basis import Basis, Shell
from cuanto.errors import InputError
from cuanto.integrals import api
from cuanto.kernels.spec import MAX_L
from oracle import Array, block_scale, mp_block, reference_block
from sample import sample
from tolerances import INTEGRAL_REL, SMALLEST

REACH = {  # highest angular momentum of orbital and auxiliary shells; test_every_class.py covers higher ones
    "reference": (3, 4),
    "cpu-table": (4, 4),
    "cpu-lane": (2, 2),
    "simt-group": (3, 4),
    "simt-scratch": (2, 3),
    "simt-thread": (1, 2),
    "cuda-group": (5, 6),
    "cuda-thread": (2, 3),
}


def cases_of(name: str, form: str) -> list[Case]:
    """Cases for a backend and a form of functions.

    The mixed form (`both`) has many more classes, so its momenta are limited: orbital shells to f and auxiliary shells
    to g, lower where each class needs its own kernel.
    """
    l_max, aux_max = REACH[name]
    if not HAS_PYSCF:  # the NumPy reference would take minutes for higher angular momenta
        l_max, aux_max = min(l_max, 3), min(aux_max, 4)
    if form == "both":
        limits = {"cpu-lane": (2, 1), "simt-thread": (2, 0)}.get(name, (3, 4))
        l_max, aux_max = min(l_max, limits[0]), min(aux_max, limits[1])
    chosen = cases(form, l_max, aux_max, short=name != "cpu-table")
    # Each number of columns needs its own kernel: leave out shells with two columns, keep those with one and with four.
    if name == "simt-thread":
        return [case for case in chosen if case.contraction != "contracted"]
    return chosen


@pytest.fixture(autouse=True)
def no_pair_is_neglected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small blocks are compared as well. Nuclear attraction uses the same threshold."""
    monkeypatch.setattr(api, "PAIR_THRESHOLD", 0.0)


# --------------------------------------------------------- every geometry, contraction and range of exponents


@on(*BACKENDS)
@pytest.mark.parametrize("form", FORMS)
def test_one_electron(name: str, form: str) -> None:
    for case, operator in product(cases_of(name, form), ONE_ELECTRON):
        basis, aux = bundle(case)
        got = evaluate(backend(name), operator, basis, aux)
        assert_blocks(got, operator, basis, aux, f"{case} {operator}")


@on(*BACKENDS)
@pytest.mark.parametrize("algorithm", ["hgp", "md"])
@pytest.mark.parametrize("form", FORMS)
def test_two_centres(name: str, form: str, algorithm: str) -> None:
    for case in cases_of(name, form):
        basis, aux = bundle(case)
        got = evaluate(backend(name), "2c", basis, aux, algorithm)
        assert_blocks(got, "2c", basis, aux, f"{case} 2c {algorithm}")


@on(*BACKENDS)
@pytest.mark.parametrize(("form", "algorithm"), sample(list(product(FORMS, ("hgp", "md"))), 3))
def test_three_centres(name: str, form: str, algorithm: str) -> None:
    for case in cases_of(name, form):
        basis, aux = bundle(case)
        got = evaluate(backend(name), "3c", basis, aux, algorithm)
        assert_blocks(got, "3c", basis, aux, f"{case} 3c {algorithm}")


def test_three_centres_with_automatic_choice() -> None:
    """`auto` chooses the accurate algorithm, even if it is slower."""
    for case in cases("both", 3, 4):
        basis, aux = bundle(case)
        got = evaluate(backend("cpu-table"), "3c", basis, aux, "auto")
        assert_blocks(got, "3c", basis, aux, f"{case} 3c auto")


@pytest.mark.parametrize("pure", [True, False], ids=["pure", "cartesian"])
def test_highest_momenta(pure: bool) -> None:
    """Shells up to MAX_L = 8; higher ones are refused."""
    device = CpuBackend(schedule="table")
    pair = [Shell.from_table(i, l, [0.8 + i], [[1.0]], pure) for i, l in enumerate((MAX_L, 7))]
    basis = Basis.from_shells(pair, [HERE, NEAR])
    for operator in ("overlap", "kinetic", "2c"):
        assert_blocks(evaluate(device, operator, basis, basis), operator, basis, basis, operator)
    for momenta, algorithm in product([(7, 1, 2), (MAX_L, 0, 7)], ["hgp", "md"]):
        a, b, c = (Shell.from_table(i % 2, l, [0.8 + i], [[1.0]], pure) for i, l in enumerate(momenta))
        basis, aux = Basis.from_shells([a, b], [HERE, NEAR]), Basis.from_shells([c], [NEAR_TOO])
        exact = reference_block("3c", [a, b, c], [HERE, NEAR, NEAR_TOO])
        got = our_block(device, "3c", basis, aux, algorithm)
        assert np.abs(got - exact).max() <= INTEGRAL_REL * np.abs(exact).max(), f"{momenta} {algorithm}"
    beyond = Basis.from_shells([Shell.from_table(0, MAX_L + 1, [1.0], [[1.0]], pure)], [HERE])
    with pytest.raises(InputError, match=f"l = {MAX_L + 1}; integrals are implemented up to l = {MAX_L}"):
        evaluate(device, "overlap", beyond, beyond)


# ------------------------------------------------------------------------------ a sample, computed to forty digits

HERE = np.array([0.3, -0.4, 0.7])
NEAR, NEAR_TOO = np.array([1.4, 0.1, 0.0]), np.array([-0.1, 0.5, 0.9])
FAR, FURTHER = np.array([4.3, -6.4, 5.7]), np.array([7.3, -3.4, 8.7])
SETTINGS: dict[str, tuple[tuple[float, float, float], tuple[Array, Array, Array]]] = {
    "near": ((0.9, 1.7, 0.6), (HERE, NEAR, NEAR_TOO)),
    "far": ((0.7, 0.4, 0.9), (HERE, FAR, FURTHER)),
    "tight first": ((1e6, 1e-3, 0.5), (HERE, FAR, HERE)),
    "tight second": ((1e-3, 1e6, 2.0), (HERE, FAR, FAR)),
    "tight third": ((0.2, 1e-3, 1e6), (HERE, NEAR, HERE)),
    "one centre": ((2.0, 3e5, 1e-3), (HERE, HERE, HERE)),
    "a charge far away": ((2.0, 0.3, 1.0), (HERE, HERE, FURTHER)),
}
CLASSES: dict[str, list[tuple[int, ...]]] = {
    "overlap": [(0, 0), (2, 1), (5, 4)],
    "kinetic": [(1, 0), (2, 3), (4, 3)],
    "dipole": [(1, 1), (3, 0), (4, 5)],
    "nuclear": [(1, 0), (3, 2), (5, 4)],
    "2c": [(1, 0), (4, 3), (6, 5)],
    "3c": [(0, 0, 0), (1, 1, 1), (2, 1, 3), (3, 3, 4), (5, 2, 6)],
}
LOW = {  # classes with straight-line kernels
    operator: [momenta for momenta in classes if sum(momenta) < 5] for operator, classes in CLASSES.items()
}


@cache
def exact_block(operator: str, momenta: tuple[int, ...], setting: str, pure: bool) -> tuple[Basis, Basis, Array, float]:
    """A basis of the first two shells and one of the third, the block of integrals by mpmath, and its natural scale."""
    exponents, centres = SETTINGS[setting]
    pairs = zip(momenta, exponents, strict=False)
    shells = [Shell.from_table(i, l, [a], [[1.0]], pure) for i, (l, a) in enumerate(pairs)]
    basis = Basis.from_shells(shells[:2], centres[:2])
    aux = basis if operator == "2c" else Basis.from_shells([Shell.from_table(0, 0, [1.0], [[1.0]], pure)], [HERE])
    if operator == "3c":
        third = Shell(0, shells[2].l, shells[2].exponents, shells[2].coefficients, pure)
        aux = Basis.from_shells([third], centres[2:])
    extra = arguments(operator, basis, charges=3)
    used = list(centres[: len(shells)])
    scale = block_scale(operator, shells, used, **extra)
    return basis, aux, mp_block(operator, shells, used, **extra), scale


@on("reference", "cpu-table", "cpu-lane", "simt-group", "simt-thread", "cuda-group", "cuda-thread")
@pytest.mark.parametrize("operator", CLASSES)
def test_forty_digits(name: str, operator: str) -> None:
    """Tolerance: 1e-12 of the block's largest element; where Cartesian contributions cancel almost completely, 25 eps
    of their size."""
    classes = LOW if name in ("cpu-lane", "simt-thread", "cuda-thread") else CLASSES
    algorithms = ("hgp", "md") if operator in ("2c", "3c") else ("auto",)
    choices = sample([(m, s, pure) for m in classes[operator] for s in SETTINGS for pure in (True, False)], 3)
    for (momenta, setting, pure), algorithm in product(choices, algorithms):
        basis, aux, exact, scale = exact_block(operator, momenta, setting, pure)
        got = our_block(backend(name), operator, basis, aux, algorithm)
        largest = np.abs(exact).max()
        allowed = max(INTEGRAL_REL * largest, CANCELLATION * scale if largest < 1e-4 * scale else 0.0) + SMALLEST
        ratio = np.abs(got - exact).max() / allowed
        assert ratio <= 1, f"{operator} {momenta} {setting} {algorithm} pure={pure}: {ratio:.2g} times the tolerance"
