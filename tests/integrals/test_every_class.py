"""Every class up to l = 5 (auxiliary functions: 6) on every backend, against stored values of libcint and mpmath."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import product

import numpy as np
import pytest

from bundle import backend, on
from cuanto.kernels.build import cost_of, unrolled
from cuanto.kernels.spec import Shells
from sample import EVERY_CASE
from stored_blocks import FORMS, ILL_CONDITIONED, OPERATORS, SETTINGS, assert_stored, classes, load, ours

TWO_INDICES = tuple(operator for operator in OPERATORS if operator != "3c")
SAMPLE = [(2, 2, 2), (4, 0, 3), (4, 2, 5), (5, 0, 6), (5, 3, 6), (5, 5, 0)]
Momenta = tuple[int, ...]


TURN = {"cpu-lane": 0, "simt-thread": 1, "cpu-table": 0, "simt-group": 1}
LARGE, LARGEST = 9, 12
"""Total angular momentum of (pq|P) from which the emulated GPU runs a class in one setting only (LARGE), and from which
classes do not run in Cartesian form without a GPU (LARGEST)."""


def in_turn(name: str, momenta: Iterable[Momenta], form: str, setting: str = SETTINGS[0]) -> set[Momenta]:
    """Select classes so that each runs in one form on the CPU and in the other form on the emulated GPU."""
    turn = TURN.get(name)
    if turn is None:
        return set(momenta)
    limit = 99 if FORMS[form] else LARGEST
    if name == "simt-group" and setting != SETTINGS[0]:
        limit = LARGE
    return {one for one in momenta if (sum(one) + FORMS[form]) % 2 == turn and sum(one) < limit}


def algorithms(name: str) -> tuple[str, ...]:
    """Algorithms to test; the reference has only one."""
    return ("auto",) if name == "reference" else ("hgp", "md")


@on("reference", "cpu-table", "simt-group", "cuda-group")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("operator", TWO_INDICES)
def test_one_and_two_centres(name: str, operator: str, form: str) -> None:
    for setting in SETTINGS:
        for algorithm in algorithms(name) if operator in ("2c", "nuclear") else ("auto",):
            got = ours(backend(name), operator, setting, form, algorithm)
            assert_stored(got, operator, setting, form, what=f"{name} {algorithm}")


@on("reference", "cpu-table", "simt-group", "cuda-group")
@pytest.mark.parametrize("form", FORMS)
def test_three_centres(name: str, form: str) -> None:
    """Tables for the CPU and for GPU groups are one program in two forms; without a GPU each runs half of the cases."""
    settings = ("near", "shared centre") if name == "simt-group" else SETTINGS
    for setting, algorithm in product(settings, algorithms(name)):
        wanted = in_turn(name, classes("3c"), form, setting)
        if name == "simt-group":
            wanted = sampled(name, wanted, "3c", algorithm)
        got = ours(backend(name), "3c", setting, form, algorithm, wanted)
        assert_stored(got, "3c", setting, form, wanted, f"{name} {algorithm}")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("algorithm", ["hgp", "md"])
def test_values_in_global_memory(algorithm: str, form: str) -> None:
    """A sample of classes in the variant that large classes use on a GPU."""
    got = ours(backend("simt-scratch"), "3c", "near", form, algorithm, SAMPLE)
    assert_stored(got, "3c", "near", form, SAMPLE, algorithm)


# --------------------------------------------------------------------------------------- straight-line kernels


def sides(operator: str, momenta: Momenta, form: str) -> tuple[Shells, Shells]:
    """Bra and ket of a class."""
    pure = FORMS[form]
    count = 2 if operator in ("3c", "nuclear") else 1
    ket = momenta[count:] or (0,)
    return Shells(momenta[:count], (pure,) * count), Shells(ket, (pure,) * len(ket))


@cache
def operations(operator: str, momenta: Momenta, form: str, algorithm: str) -> tuple[int, bool, bool]:
    """Operations in the text of a straight-line kernel, and whether `auto` would use it on the CPU and on a GPU."""
    kernel = operator if algorithm == "os" else "coulomb"
    cost = cost_of(kernel, *sides(operator, momenta, form), algorithm)
    return cost.text_operations, unrolled("cpu", cost), unrolled("cuda", cost)


def straight_classes(name: str, operator: str, form: str, algorithm: str) -> set[Momenta]:
    """The classes that `auto` unrolls, and the next larger class.

    Every class is a kernel to be compiled. `lane` and `thread` kernels contain the same functions: without a GPU each
    runs every class in one form only, pure on one of them and Cartesian on the other.
    """
    straight, larger = set[Momenta](), dict[Momenta, int]()
    for momenta in classes(operator):
        if larger.keys() & set(lowered(momenta)):
            larger[momenta] = 10**9  # only larger than its lower neighbour; the exact size does not matter
            continue
        size, cpu, cuda = operations(operator, momenta, form, algorithm)
        if cpu if name == "cpu-lane" else cuda:
            straight.add(momenta)
        else:
            larger[momenta] = size
    if algorithm == "md":  # used for ill-conditioned pairs only, whose second function is never s
        straight = {momenta for momenta in straight if momenta[1] > 0}
    if larger:
        straight.add(min(larger, key=lambda momenta: larger[momenta]))
    return sampled(name, in_turn(name, straight, form), operator, algorithm)


def sampled(name: str, momenta: set[Momenta], operator: str, algorithm: str) -> set[Momenta]:
    """Every eighth class where compilers are slow; all of them on a GPU, or with CUANTO_EVERY_CASE=1."""
    if name not in TURN or EVERY_CASE:
        return momenta
    offset = len(operator) + len(algorithm) + TURN[name]
    return {one for k, one in enumerate(sorted(momenta)) if (k + offset) % 8 == 0 or one == max(momenta)}


def lowered(momenta: Momenta) -> Iterator[Momenta]:
    for i, l in enumerate(momenta):
        yield (*momenta[:i], l - 1, *momenta[i + 1 :])


@on("cpu-lane", "simt-thread", "cuda-thread")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("algorithm", ["hgp", "md"])
def test_straight_three_centres(name: str, algorithm: str, form: str) -> None:
    wanted = straight_classes(name, "3c", form, algorithm)
    assert len(wanted) > 1
    for setting in SETTINGS:
        if algorithm == "hgp" and setting == ILL_CONDITIONED:
            continue
        got = ours(backend(name), "3c", setting, form, algorithm, wanted)
        assert_stored(got, "3c", setting, form, wanted, f"{name} {algorithm}")


@on("cpu-lane", "simt-thread", "cuda-thread")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("operator", TWO_INDICES)
def test_straight_one_and_two_centres(name: str, operator: str, form: str) -> None:
    algorithm = "hgp" if operator in ("2c", "nuclear") else "os"
    wanted = straight_classes(name, operator, form, algorithm)
    for setting in SETTINGS:
        if operator == "nuclear" and setting == ILL_CONDITIONED:
            continue
        got = ours(backend(name), operator, setting, form, "auto", wanted)
        assert_stored(got, operator, setting, form, wanted, name)


def test_the_stored_values_are_complete() -> None:
    """All classes are stored, none vanishes in all settings, and a single wrong element is noticed."""
    for operator in OPERATORS:
        sizes = load()[f"{operator} sizes"]
        assert sizes.shape == (len(SETTINGS), len(FORMS), len(classes(operator)), 3)
        assert (sizes[..., 1].max(axis=0) > 0).all()
    some = [(1, 0, 2), (5, 5, 6)]
    values = ours(backend("cpu-table"), "3c", "near", "pure", wanted=some)
    assert_stored(values, "3c", "near", "pure", some)
    for factor in (1 + 1e-6, np.nan):
        wrong = values.copy()
        wrong[0, -1, -1, -1] *= factor
        with pytest.raises(AssertionError, match=r"3c \(5, 5, 6\) near pure"):
            assert_stored(wrong, "3c", "near", "pure", some)
