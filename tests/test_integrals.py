"""One test body for every backend: all one-, two- and three-centre integrals against libcint, the reference and mpmath."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bundle import (
    FORMS,
    ONE_ELECTRON,
    Case,
    arguments,
    assert_blocks,
    bundle,
    cases,
    evaluate,
    some_classes,
)
from cuanto import Basis, Molecule, integrals
from cuanto.backends import Backend, get_backend
from cuanto.backends.cpu.backend import CpuBackend
from cuanto.backends.cuda.backend import CudaBackend
from cuanto.backends.simt.backend import SimtBackend
from cuanto.basis import Shell, cartesian_powers, shell_matrix
from cuanto.errors import InputError
from cuanto.integrals import api
from cuanto.integrals.batches import RowMap, ket_batch, pair_batches
from cuanto.integrals.engine import Engine
from cuanto.integrals.segments import segments
from oracle import Array, block_scale, describe, mp_block
from tolerances import INTEGRAL_ABS, INTEGRAL_REL, SMALLEST, SYMMETRY_REL

BACKENDS: dict[str, Callable[[], Backend | None]] = {
    "reference": lambda: None,
    "cpu-table": lambda: CpuBackend(schedule="table"),
    "cpu-lane": lambda: CpuBackend(schedule="lane"),
    "simt-group": lambda: SimtBackend("group"),
    "simt-scratch": lambda: SimtBackend("group", shared_limit=2000),  # values in global memory, as for (hh|i) on a GPU
    "simt-thread": lambda: SimtBackend("thread"),
    "cuda-group": lambda: CudaBackend("group"),
    "cuda-thread": lambda: CudaBackend("thread"),
}
REACH = {  # highest momentum of orbital and auxiliary shells; straight-line kernels are compiled one by one
    "reference": (3, 4),
    "cpu-table": (5, 6),
    "cpu-lane": (2, 2),
    "simt-group": (3, 4),
    "simt-scratch": (2, 3),
    "simt-thread": (2, 2),
    "cuda-group": (5, 6),
    "cuda-thread": (2, 3),
}
EVERY_CASE = ("cpu-table", "cuda-group", "cuda-thread")


def on(*names: str) -> pytest.MarkDecorator:
    marks = {name: [pytest.mark.gpu] if name.startswith("cuda") else [] for name in names}
    return pytest.mark.parametrize("name", [pytest.param(name, marks=marks[name]) for name in names])


@cache
def backend(name: str) -> Backend | None:
    return BACKENDS[name]()


def cases_of(name: str, form: str) -> list[Case]:
    """Mixed forms make many more classes: they go up to f and g, or d and p for kernels that are compiled one by one."""
    l_max, aux_max = REACH[name]
    if form == "both":
        l_max, aux_max = (2, 1) if name in ("cpu-lane", "simt-thread") else (min(l_max, 3), min(aux_max, 4))
    return cases(form, l_max, aux_max, short=name not in EVERY_CASE)


@pytest.fixture(autouse=True)
def no_pair_is_neglected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small blocks are compared as well; nuclear attraction takes its threshold from here."""
    monkeypatch.setattr(api, "PAIR_THRESHOLD", 0.0)


# ------------------------------------------------------------------------------------------------ every class


@on(*BACKENDS)
@pytest.mark.parametrize("form", FORMS)
def test_one_electron(name: str, form: str) -> None:
    for case, operator in product(cases_of(name, form), ONE_ELECTRON):
        basis, aux = bundle(case)
        got = evaluate(backend(name), operator, basis, aux)
        assert_blocks(got, operator, basis, aux, "auto", f"{case} {operator}")


@on(*BACKENDS)
@pytest.mark.parametrize("algorithm", ["hgp", "md"])
@pytest.mark.parametrize("form", FORMS)
def test_two_centres(name: str, form: str, algorithm: str) -> None:
    for case in cases_of(name, form):
        basis, aux = bundle(case)
        got = evaluate(backend(name), "2c", basis, aux, algorithm)
        assert_blocks(got, "2c", basis, aux, algorithm, f"{case} 2c {algorithm}")


@on(*BACKENDS)
@pytest.mark.parametrize("algorithm", ["hgp", "md"])
@pytest.mark.parametrize("form", FORMS)
def test_three_centres(name: str, form: str, algorithm: str) -> None:
    for case in cases_of(name, form):
        basis, aux = bundle(case)
        got = evaluate(backend(name), "3c", basis, aux, algorithm)
        assert_blocks(got, "3c", basis, aux, algorithm, f"{case} 3c {algorithm}")


def test_three_centres_by_choice() -> None:
    """`auto` takes the scheme that keeps the digits, whatever it costs: no allowance for horizontal recurrences."""
    for case in cases("both", 3, 4):
        basis, aux = bundle(case)
        got = evaluate(backend("cpu-table"), "3c", basis, aux, "auto")
        assert_blocks(got, "3c", basis, aux, "auto", f"{case} 3c auto")


HIGH = [(2, 2, 2), (3, 1, 2), (3, 3, 1), (4, 0, 3), (3, 0, 6)]
HIGHEST = [(4, 2, 5), (5, 0, 6), (4, 4, 4), (5, 5, 0), (5, 3, 6)]


@on("cpu-lane", "simt-thread", "simt-group", "simt-scratch", "cuda-thread")
@pytest.mark.parametrize("algorithm", ["hgp", "md"])
def test_sample_of_high_classes(name: str, algorithm: str) -> None:
    """Straight-line kernels near the unrolling limit; index tables up to h and i."""
    wanted = set(HIGH if name in ("cpu-lane", "simt-thread", "cuda-thread") else HIGH + HIGHEST)
    device = backend(name)
    assert device is not None
    basis, aux = bundle(Case("pure", "contracted", "near", "normal"))
    got = some_classes(device, basis, aux, wanted, algorithm)
    expected = some_classes(CpuBackend(schedule="table"), basis, aux, wanted, algorithm)
    assert np.count_nonzero(expected) > 1000
    assert np.abs(got - expected).max() <= INTEGRAL_REL * np.abs(expected).max()


# ------------------------------------------------------------------------------ a sample against forty digits

HERE = np.array([0.3, -0.4, 0.7])
NEAR, NEAR_TOO = HERE + [1.1, 0.5, -0.7], HERE + [-0.4, 0.9, 0.2]
FAR, FURTHER = HERE + [4.0, -6.0, 5.0], HERE + [7.0, -3.0, 8.0]
SETTINGS: dict[str, tuple[tuple[float, float, float], tuple[Array, Array, Array]]] = {
    "near": ((0.9, 1.7, 0.6), (HERE, NEAR, NEAR_TOO)),
    "far": ((0.7, 0.4, 0.9), (HERE, FAR, FURTHER)),
    "tight first": ((1e6, 1e-3, 0.5), (HERE, FAR, HERE)),
    "tight second": ((1e-3, 1e6, 2.0), (HERE, FAR, FAR)),
    "tight third": ((0.2, 1e-3, 1e6), (HERE, NEAR, HERE)),
    "one centre": ((2.0, 3e5, 1e-3), (HERE, HERE, HERE)),
    "a charge far away": ((2.0, 0.3, 1.0), (HERE, HERE, FURTHER)),
}
CLASSES = {
    "overlap": [(0, 0), (2, 1), (5, 4)],
    "kinetic": [(1, 0), (3, 2), (5, 5)],
    "dipole": [(1, 1), (3, 0), (4, 5)],
    "nuclear": [(1, 0), (3, 2), (5, 4)],
    "2c": [(1, 0), (4, 3), (6, 5)],
    "3c": [(0, 0, 0), (1, 1, 1), (2, 1, 3), (3, 3, 4), (5, 2, 6)],
}
LOW = {  # what straight-line kernels are compiled for
    operator: [momenta for momenta in classes if sum(momenta) < 5] for operator, classes in CLASSES.items()
}


@cache
def exact_block(operator: str, momenta: tuple[int, ...], setting: str, pure: bool) -> tuple[Basis, Basis, Array, float]:
    """Bases of two shells and of the third one, the block of mpmath, and its natural scale."""
    exponents, centres = SETTINGS[setting]
    pairs = zip(momenta, exponents, strict=False)
    shells = [Shell.from_table(i, l, [a], [[1.0]], pure) for i, (l, a) in enumerate(pairs)]
    basis = Basis.from_shells(shells[:2], centres[:2])
    aux = basis if operator == "2c" else Basis.from_shells([Shell.from_table(0, 0, [1.0], [[1.0]], pure)], [HERE])
    if operator == "3c":
        third = Shell(0, shells[2].l, shells[2].exponents, shells[2].coefficients, pure)
        aux = Basis.from_shells([third], centres[2:])
    extra = arguments(operator, basis)
    used = list(centres[: len(shells)])
    scale = block_scale(operator, shells, used, **extra)
    return basis, aux, mp_block(operator, shells, used, **extra), scale


def our_block(device: Backend | None, operator: str, basis: Basis, aux: Basis, algorithm: str) -> Array:
    a, b = (shell.nbf for shell in basis.shells)
    if operator == "3c" and device is not None:
        high, low = sorted((shell.l for shell in basis.shells), reverse=True)
        values = some_classes(device, basis, aux, [(high, low, aux.shells[0].l)], algorithm)
    else:
        values = evaluate(device, operator, basis, aux, algorithm)
    return values[:a, a:] if operator == "3c" else values[..., :a, a : a + b]


@on("reference", "cpu-table", "cpu-lane", "simt-group", "simt-thread", "cuda-group", "cuda-thread")
@pytest.mark.parametrize("operator", CLASSES)
def test_forty_digits(name: str, operator: str) -> None:
    """1e-12 of the block's largest element; where cartesian functions cancel almost completely: 100 eps of their size."""
    classes = LOW if name in ("cpu-lane", "simt-thread", "cuda-thread") else CLASSES
    algorithms = ("auto", "md") if operator in ("2c", "3c") else ("auto",)
    for momenta, setting, pure, algorithm in product(classes[operator], SETTINGS, (True, False), algorithms):
        basis, aux, exact, scale = exact_block(operator, momenta, setting, pure)
        got = our_block(backend(name), operator, basis, aux, algorithm)
        largest = np.abs(exact).max()
        allowed = max(INTEGRAL_REL * largest, INTEGRAL_ABS * scale if largest < 1e-4 * scale else 0.0) + SMALLEST
        ratio = np.abs(got - exact).max() / allowed
        assert ratio <= 1, f"{operator} {momenta} {setting} {algorithm} pure={pure}: {ratio:.2g} times the tolerance"


# ------------------------------------------------------------------------------------ what must not matter


def many_shells(seed: int = 3) -> tuple[Basis, Basis]:
    """More shells of a class than lanes or threads take at once, and no multiple of them."""
    rng = np.random.default_rng(seed)

    def basis(count: int, nprim: int) -> Basis:
        shells = [
            Shell.from_table(i, i % 3 % 2, rng.uniform(0.2, 3.0, nprim), rng.uniform(0.3, 1.0, (nprim, 1)), True)
            for i in range(count)
        ]
        return Basis.from_shells(shells, 3 * rng.normal(size=(count, 3)))

    return basis(19, 2), basis(107, 1)


@on(*BACKENDS)
def test_many_shells(name: str) -> None:
    basis, aux = many_shells()
    for operator in ("overlap", "nuclear", "2c", "3c"):
        got = evaluate(backend(name), operator, basis, aux)
        assert_blocks(got, operator, basis, aux, "auto", f"many shells, {operator}")


@on("cpu-table", "simt-group", "cuda-group")
def test_packed_and_square(name: str) -> None:
    device = backend(name)
    assert device is not None
    basis, aux = bundle(Case("both", "general", l_max=2, aux_max=2))
    square = device.to_host(integrals.eri_3c(basis, aux, backend=device))
    packed = device.to_host(integrals.eri_3c(basis, aux, backend=device, packed=True))
    assert np.array_equal(packed, square[np.tril_indices(basis.nbf)])
    assert np.array_equal(square, square.transpose(1, 0, 2))


def test_neglected_pairs_do_not_show() -> None:
    for case in cases("pure", 2, 2):
        basis, aux = bundle(case)
        everything = integrals.eri_3c(basis, aux, backend="cpu", threshold=0.0)
        usual = integrals.eri_3c(basis, aux, backend="cpu")
        assert np.abs(usual - everything).max() <= 1e-15 * np.abs(everything).max(), str(case)


def test_order_of_shells() -> None:
    """Another order of the shells is another order of the functions, and another first shell in many pairs."""
    basis, aux = bundle(Case("both", "contracted", l_max=3, aux_max=4))
    order, aux_order = (np.random.default_rng(2).permutation(len(b.shells)) for b in (basis, aux))
    mixed, mixed_aux = reordered(basis, order), reordered(aux, aux_order)
    p, P = functions_of(basis, order), functions_of(aux, aux_order)
    for operator in (*ONE_ELECTRON, "2c", "3c"):
        one = evaluate(backend("cpu-table"), operator, basis, aux)
        two = evaluate(backend("cpu-table"), operator, mixed, mixed_aux)
        expected = {"2c": one[..., P, :][..., P], "3c": one[p][:, p][..., P]}.get(operator, one[..., p, :][..., p])
        assert np.abs(two - expected).max() <= SYMMETRY_REL * np.abs(one).max(), operator


def reordered(basis: Basis, order: Array) -> Basis:
    return Basis.from_shells([basis.shells[i] for i in order], basis.R_ax)


def functions_of(basis: Basis, order: Array) -> Any:
    return np.concatenate([basis.offsets[i] + np.arange(basis.shells[i].nbf) for i in order])


@pytest.mark.parametrize("algorithm", ["hgp", "md"])
@pytest.mark.parametrize("momenta", [(2, 0, 1), (2, 1, 2), (3, 1, 0), (3, 2, 4), (4, 0, 3)])
def test_pairs_the_other_way_round(momenta: tuple[int, int, int], algorithm: str) -> None:
    """(ab|P) = (ba|P): kernels for l_a < l_b, which the engine never asks for, are right as well."""
    basis, aux = bundle(Case("pure", "contracted", l_max=max(momenta[:2]), aux_max=momenta[2]))
    first, second = (next(g for g in segments(basis) if g.l == l) for l in momenta[:2])
    ket = next(ket_batch(g, coulomb=True) for g in segments(aux) if g.l == momenta[2])
    results = []
    for a, b in ((first, second), (second, first)):
        out = np.zeros((basis.nbf, basis.nbf, aux.nbf))
        engine = Engine(CpuBackend(schedule="table"), out, row_stride=aux.nbf)
        engine.run("coulomb", pair_batches(a, b, False, RowMap(basis.nbf, packed=False), 0.0), [ket], algorithm)
        results.append(out)
    assert np.abs(results[0]).max() > 0
    assert np.abs(results[0] - results[1]).max() <= SYMMETRY_REL * np.abs(results[0]).max()


def rotation(seed: int = 4) -> Array:
    Q, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))
    return np.asarray(Q * np.sign(np.linalg.det(Q)))


def representation(basis: Basis, R: Array) -> Array:
    """D with f_p(R^-1 u) = sum_q D_pq f_q(u), from the values at random points."""
    points = np.random.default_rng(6).normal(size=(200, 3))

    def values(l: int, pure: bool, at: Array) -> Array:
        monomials = np.array([np.prod(at ** np.array(powers), axis=1) for powers in cartesian_powers(l)])
        return np.asarray(shell_matrix(l, pure) @ monomials)

    D, first = np.zeros((basis.nbf, basis.nbf)), 0
    for shell in basis.shells:
        turned, straight = values(shell.l, shell.pure, points @ R), values(shell.l, shell.pure, points)
        block = np.linalg.lstsq(straight.T, turned.T, rcond=None)[0].T
        for _ in range(shell.ncol):
            D[first : first + len(block), first : first + len(block)] = block
            first += len(block)
    return D


def test_rotation_and_translation() -> None:
    """A molecule turned and moved has the same integrals over functions that are turned and moved with it."""
    basis, aux = bundle(Case("both", "contracted", l_max=3, aux_max=4))
    R, shift = rotation(), np.array([1.0, -2.0, 0.5])
    moved, moved_aux = (Basis.from_shells(b.shells, b.R_ax @ R.T + shift) for b in (basis, aux))
    D, D_aux = representation(basis, R), representation(aux, R)
    charges = arguments("nuclear", basis)
    turned_charges = {**charges, "positions": charges["positions"] @ R.T + shift}
    for operator in (*ONE_ELECTRON, "2c", "3c"):
        before = evaluate(backend("cpu-table"), operator, basis, aux)
        if operator == "nuclear":
            after = integrals.nuclear(moved, backend="cpu", **turned_charges)
        elif operator == "dipole":
            after = integrals.dipole(moved, origin=R @ arguments("dipole", basis)["origin"] + shift, backend="cpu")
            after = np.einsum("yx,ypq->xpq", R, after)
        else:
            after = evaluate(backend("cpu-table"), operator, moved, moved_aux)
        if operator == "3c":
            back = np.einsum("pr,qt,PQ,rtQ->pqP", D, D, D_aux, after, optimize=True)
        else:
            sides = D_aux if operator == "2c" else D
            back = sides @ after @ sides.T
        assert np.abs(back - before).max() <= 10 * SYMMETRY_REL * np.abs(before).max(), operator


# --------------------------------------------------------------------------------------------- random shells


@st.composite
def placed_shells(draw: st.DrawFn, count: int) -> tuple[list[Shell], list[Array]]:
    """Shells to f, 1e-3 to 1e6, on a few centres that they may share."""
    shells, centres = [], []
    places = [np.zeros(3), *(np.array(draw(st.tuples(*[st.floats(-8.0, 8.0)] * 3))) for _ in range(2))]
    for i in range(count):
        nprim, ncol = draw(st.integers(1, 3)), draw(st.integers(1, 2))
        exponents = [10.0 ** draw(st.floats(-3.0, 6.0)) for _ in range(nprim)]
        coefficients = [[draw(st.floats(0.2, 1.0)) for _ in range(ncol)] for _ in range(nprim)]
        shells.append(Shell.from_table(i, draw(st.integers(0, 3)), exponents, coefficients, draw(st.booleans())))
        centres.append(places[draw(st.integers(0, 2))])
    return shells, centres


@given(placed=placed_shells(3))
@settings(max_examples=60)
def test_random_shells(placed: tuple[list[Shell], list[Array]]) -> None:
    """The general kernel against the reference, whatever the shells are."""
    shells, centres = placed
    basis = Basis.from_shells(shells[:2], centres[:2])
    third = Shell(0, shells[2].l, shells[2].exponents, shells[2].coefficients, shells[2].pure)
    aux = Basis.from_shells([third], centres[2:])
    device = get_backend("cpu")
    for operator in (*ONE_ELECTRON, "3c"):
        used = 3 if operator == "3c" else 2
        extra = arguments(operator, basis)
        got, exact = (our_block(d, operator, basis, aux, "auto") for d in (device, None))
        scale = block_scale(operator, shells[:used], centres[:used], **extra)
        if operator == "kinetic":
            S = block_scale("overlap", shells[:2], centres[:2])
            scale += S * max(shell.exponents.max() for shell in shells[:2])
        allowed = INTEGRAL_REL * np.abs(exact).max() + INTEGRAL_ABS * scale + SMALLEST
        ratio = np.abs(got - exact).max() / allowed
        assert ratio <= 1, f"{operator} {describe(shells[:used])}: {ratio:.2g} times the tolerance"


# ------------------------------------------------------------------------------------------------- the calls


def test_nuclei_are_point_charges() -> None:
    water = Molecule.from_string("3\n\nO 0 0 0.1\nH 0 0.76 -0.5\nH 0 -0.76 -0.5\n")
    basis = Basis("sto-3g", water)
    V = integrals.nuclear(basis, water, backend="cpu")
    assert np.array_equal(V, integrals.nuclear(basis, charges=[8, 1, 1], positions=water.R_ax, backend="cpu"))
    assert np.array_equal(V, V.T) and (np.diag(V) < 0).all()
    one = integrals.nuclear(basis, charges=2.0, positions=[0.0, 1.0, 2.0], backend="cpu")
    assert one == pytest.approx(evaluate_point(basis, 2.0, [0.0, 1.0, 2.0]), rel=1e-12)


def evaluate_point(basis: Basis, charge: float, position: list[float]) -> Array:
    from cuanto.backends import reference

    return reference.nuclear_matrix(basis, [charge], [position])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda b: integrals.nuclear(b), "give a molecule, or charges and positions"),
        (lambda b: integrals.nuclear(b, charges=[1.0]), "give a molecule, or charges and positions"),
        (lambda b: integrals.nuclear(b, charges=[1.0, 2.0], positions=[[0, 0, 0]]), "2 charges but 1 positions"),
        (lambda b: integrals.eri_2c(b, algorithm="rys"), "unknown algorithm 'rys'.*hgp"),
        (lambda b: integrals.overlap(b, backend="gpu"), "unknown backend 'gpu'.*cuda"),
    ],
)
def test_wrong_calls(call: Callable[[Basis], object], message: str) -> None:
    basis, _ = bundle(Case(l_max=0, aux_max=0))
    with pytest.raises(InputError, match=message):
        call(basis)
