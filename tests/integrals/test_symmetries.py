"""Integrals do not depend on position, orientation, order of shells or layout of the result; random shells."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from bundle import (
    BACKENDS,
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
from cuanto import Basis, Molecule, integrals
from cuanto.backends import get_backend
from cuanto.backends.cpu.backend import CpuBackend
from cuanto.basis import Shell, cartesian_powers, shell_matrix
from cuanto.errors import InputError
from cuanto.integrals import api
from cuanto.integrals.batches import ket_batch
from cuanto.integrals.engine import Engine
from cuanto.integrals.pairs import RowMap, pair_batches
from cuanto.integrals.segments import segments
from oracle import Array, block_scale, describe
from oracles import integrals as reference
from tolerances import INTEGRAL_ABS, INTEGRAL_REL, SMALLEST, SYMMETRY_REL


@pytest.fixture(autouse=True)
def no_pair_is_neglected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small blocks are compared as well; nuclear attraction takes its threshold from here."""
    monkeypatch.setattr(api, "PAIR_THRESHOLD", 0.0)


@cache
def many_shells(seed: int = 3) -> tuple[Basis, Basis]:
    """More shells of a class than lanes or threads, and not a multiple of their number."""
    rng = np.random.default_rng(seed)

    def basis(count: int, nprim: int) -> Basis:
        shells = [
            Shell.from_table(i, i % 3 % 2, rng.uniform(0.2, 3.0, nprim), rng.uniform(0.3, 1.0, (nprim, 1)), True)
            for i in range(count)
        ]
        return Basis.from_shells(shells, 3 * rng.normal(size=(count, 3)))

    return basis(11, 2), basis(71, 1)


@on(*(name for name in BACKENDS if name != "reference"))
def test_many_shells(name: str) -> None:
    basis, aux = many_shells()
    for operator in ("overlap", "nuclear", "2c", "3c"):
        got = evaluate(backend(name), operator, basis, aux)
        assert_blocks(got, operator, basis, aux, f"many shells, {operator}")


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
        sides = {"2c": (P, P), "3c": (p, p, P)}.get(operator, (p, p))
        for axis, functions in enumerate(sides, start=one.ndim - len(sides)):
            one = one.take(functions, axis)
        assert np.abs(two - one).max() <= SYMMETRY_REL * np.abs(one).max(), operator


def reordered(basis: Basis, order: NDArray[np.int64]) -> Basis:
    return Basis.from_shells([basis.shells[i] for i in order], basis.R_ax)


def functions_of(basis: Basis, order: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([basis.offsets[i] + np.arange(basis.shells[i].nbf) for i in order])


@pytest.mark.parametrize("algorithm", ["hgp", "md"])
@pytest.mark.parametrize("momenta", [(2, 0, 1), (2, 1, 2), (3, 1, 0), (3, 2, 4), (4, 0, 3)])
def test_pairs_the_other_way_round(momenta: tuple[int, int, int], algorithm: str) -> None:
    """(ab|P) = (ba|P): kernels for l_a < l_b, which the engine never uses, are correct as well."""
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
    """Integrals do not change if molecule and functions are rotated and translated together."""
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
    positions = [np.zeros(3), *(np.array(draw(st.tuples(*[st.floats(-8.0, 8.0)] * 3))) for _ in range(2))]
    for i in range(count):
        nprim, ncol = draw(st.integers(1, 3)), draw(st.integers(1, 2))
        exponents = [10.0 ** draw(st.floats(-3.0, 6.0)) for _ in range(nprim)]
        coefficients = [[draw(st.floats(0.2, 1.0)) for _ in range(ncol)] for _ in range(nprim)]
        shells.append(Shell.from_table(i, draw(st.integers(0, 3)), exponents, coefficients, draw(st.booleans())))
        centres.append(positions[draw(st.integers(0, 2))])
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
        extra = arguments(operator, basis, charges=3)
        got, exact = (our_block(d, operator, basis, aux, "auto") for d in (device, None))
        scale = block_scale(operator, shells[:used], centres[:used], **extra)
        if operator == "kinetic":
            S = block_scale("overlap", shells[:2], centres[:2])
            scale += S * max(shell.exponents.max() for shell in shells[:2])
        allowed = INTEGRAL_REL * np.abs(exact).max() + INTEGRAL_ABS * scale + SMALLEST
        ratio = np.abs(got - exact).max() / allowed
        assert ratio <= 1, f"{operator} {describe(shells[:used])}: {ratio:.2g} times the tolerance"


# ------------------------------------------------------------------------------------------------- the calls


def test_nuclei_are_point_charges(monkeypatch: pytest.MonkeyPatch) -> None:
    water = Molecule.from_string("3\n\nO 0 0 0.1\nH 0 0.76 -0.5\nH 0 -0.76 -0.5\n")
    basis = Basis("sto-3g", water)
    V = integrals.nuclear(basis, water, backend="cpu")
    assert np.array_equal(V, integrals.nuclear(basis, charges=[8, 1, 1], positions=water.R_ax, backend="cpu"))
    assert np.array_equal(V, V.T) and (np.diag(V) < 0).all()
    one = integrals.nuclear(basis, charges=[2.0], positions=[[0.0, 1.0, 2.0]], backend="cpu")
    assert one == pytest.approx(reference.nuclear_matrix(basis, [2.0], [[0.0, 1.0, 2.0]]), rel=1e-12)
    monkeypatch.setattr(api, "POTENTIALS_AT_ONCE", 10)  # one charge after the other
    assert integrals.nuclear(basis, water, backend="cpu") == pytest.approx(V, rel=1e-13)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda b: integrals.nuclear(b), "give a molecule, or charges and positions"),
        (lambda b: integrals.nuclear(b, charges=[1.0]), "give a molecule, or charges and positions"),
        (
            lambda b: integrals.nuclear(b, charges=[1.0, 2.0], positions=[[0, 0, 0]]),
            r"positions must be .* shape \(2, 3\), shape \(1, 3\)",
        ),
        (lambda b: integrals.eri_2c(b, algorithm="rys"), "unknown algorithm 'rys'.*hgp"),
        (lambda b: integrals.overlap(b, backend="gpu"), "unknown backend 'gpu'.*cuda"),
    ],
)
def test_wrong_calls(call: Callable[[Basis], object], message: str) -> None:
    basis, _ = bundle(Case(l_max=0, aux_max=0))
    with pytest.raises(InputError, match=message):
        call(basis)
