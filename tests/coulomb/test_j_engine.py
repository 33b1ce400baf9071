"""J from Hermite densities: against the reference, PySCF and stored fingerprints; screening, precision, devices."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bundle import Case, bundle
from cuanto import Basis
from cuanto.backends import get_backend
from cuanto.backends.cpu.backend import CpuBackend
from cuanto.backends.cuda.nvrtc import compile_nvrtc
from cuanto.basis import Shell, unit_norm_factors
from cuanto.coulomb import j_steps
from cuanto.coulomb.hermite_pairs import primitives
from cuanto.coulomb.j_engine import JEngine
from cuanto.coulomb.j_steps import Contraction
from cuanto.errors import InputError
from cuanto.kernels.hermite_build import STEPS, general_source, operations, step_source, straight_source, tuple_table
from j_cases import (
    DATA,
    EXACT,
    MIXED,
    MIXED_ENERGY,
    PER_THRESHOLD,
    Array,
    decaying_density,
    molecule,
    ours,
    pyscf_j,
    random_density,
)
from oracles import integrals as reference
from oracles.coulomb import coulomb_matrix, exchange_matrix, hermite_coulomb_matrix

FOUR_CENTRE: list[dict[str, Any]] = json.loads((DATA / "integrals.json").read_text())["four_centre"]
ROUNDING = 1e-12
"""Tolerance relative to the largest element of J."""


@pytest.fixture(autouse=True)
def basis_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUANTO_BASIS_PATH", str(DATA / "basis"))


def all_straight(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use straight-line kernels for all classes."""
    monkeypatch.setattr(j_steps, "WORTH_COMPILING", {"cpu": 0.0, "cuda": 0.0})


def all_general(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the general kernel for all classes."""
    monkeypatch.setattr(j_steps, "WORTH_COMPILING", {"cpu": float("inf"), "cuda": float("inf")})


def close(J: Array, exact: Array, tolerance: float = ROUNDING) -> None:
    assert np.abs(J - exact).max() <= tolerance * max(1.0, np.abs(exact).max())


# ------------------------------------------------------------------------------------------------- exactness

SMALL = [Case(form, kind, l_max=2) for form in ("pure", "both") for kind in ("contracted", "general")]


def test_the_reference_by_two_algorithms() -> None:
    basis, _ = bundle(Case("both", "contracted", l_max=1))
    D = random_density(basis.nbf)[0]
    close(hermite_coulomb_matrix(basis, D), coulomb_matrix(basis, D))
    K = exchange_matrix(basis, D)
    close(K, np.einsum("prqt,qt->pr", reference.eri_4c_tensor(basis).transpose(0, 2, 1, 3), D))
    assert np.abs(K - K.T).max() < ROUNDING * np.abs(K).max()


@pytest.mark.parametrize("case", SMALL, ids=str)
def test_against_the_reference(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    all_general(monkeypatch)
    basis, _ = bundle(case)
    D = random_density(basis.nbf)[0]
    close(ours(basis, D, threshold=1e-15), hermite_coulomb_matrix(basis, D))


@pytest.mark.parametrize("record", FOUR_CENTRE, ids=lambda r: f"{r['molecule']}-{r['basis']}-{r['cartesian']}")
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_stored_fingerprints(record: dict[str, Any], device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    all_general(monkeypatch)
    basis = Basis(record["basis"], molecule(record["molecule"]), spherical=not record["cartesian"])
    i = np.arange(basis.nbf)
    D = 2.0 * np.cos(0.1 * np.outer(i, i))
    for normalisation, expected in record["normalisations"].items():
        s = unit_norm_factors(basis) if normalisation == "unit" else np.ones(basis.nbf)
        J = ours(basis, D * np.outer(s, s), device, compiled=False) * np.outer(s, s)
        found = {
            "sum_abs": np.abs(J).sum(),
            "frobenius": np.linalg.norm(J),
            "trace_JD": (J * D).sum(),
            "first": J[0, 0],
            "last": J[-1, -1],
            "first_last": J[0, -1],
        }
        for name, value in found.items():
            assert value == pytest.approx(expected["J"][name], rel=1e-11, abs=EXACT), name


@pytest.mark.parametrize("name, basis_name", [("naphthalene", "6-31g**"), ("CuO", "6-31g**")])
def test_against_pyscf(name: str, basis_name: str) -> None:
    basis = Basis(basis_name, molecule(name), spherical=True)
    D = decaying_density(basis)
    assert np.abs(ours(basis, D) - pyscf_j(basis, D)).max() < EXACT


@pytest.mark.slow
def test_high_momenta_against_pyscf() -> None:
    """Shells up to h; large systems are compared with stored values in test_direct.py."""
    basis = Basis("cc-pv5z", molecule("water_01"))
    D = decaying_density(basis)
    assert np.abs(ours(basis, D, compiled=False) - pyscf_j(basis, D)).max() < EXACT


@pytest.mark.slow
def test_highest_momentum() -> None:
    """l = 8 on both sides: Hermite orders 16 + 16, the highest order of the Boys function that is implemented."""
    shells = [Shell.from_table(atom, l, [0.7 + 0.2 * atom], [[1.0]], True) for atom, l in ((0, 8), (1, 0))]
    basis = Basis.from_shells(shells, [[0.0, 0.0, 0.0], [0.4, -0.3, 0.5]])
    D = random_density(basis.nbf)[0]
    close(ours(basis, D, threshold=1e-15), hermite_coulomb_matrix(basis, D), 1e-11)


def test_straight_line_kernels_equal_the_general_one(monkeypatch: pytest.MonkeyPatch) -> None:
    basis = Basis("cc-pvdz", molecule("water_02"))
    D = random_density(basis.nbf, 2)
    all_general(monkeypatch)
    general = ours(basis, D)
    all_straight(monkeypatch)
    close(ours(basis, D), general)


def test_translation() -> None:
    basis = Basis("6-31g**", molecule("water_01"))
    moved = Basis.from_shells(basis.shells, basis.R_ax + np.array([7.0, -5.0, 3.0]))
    D = random_density(basis.nbf)[0]
    close(ours(moved, D), ours(basis, D))


# ------------------------------------------------------------------------------------------------ structure


def test_equal_primitives_are_merged() -> None:
    """An SP shell has one set of primitives; the contraction maps them to all of its functions."""
    groups, C_pk = primitives(Basis("6-31g**", molecule("water_01"), spherical=True))
    kinds = {group.kind: group.count for group in groups}
    s, p, d = (0, True), (1, True), (2, True)
    assert kinds == {(s,): 6 + 2 * 4, (s, p): 3 + 1, (d,): 1, (p,): 2}
    assert C_pk.shape == (24, 14 + 4 * 4 + 5 + 2 * 3)


def test_several_densities() -> None:
    basis = Basis("6-31g**", molecule("water_01"))
    D = random_density(basis.nbf, 3)
    engine = JEngine(basis, backend="cpu")
    together = engine(D)
    for D_pq, J_pq in zip(D, together, strict=True):
        alone = engine(D_pq)
        assert alone.shape == D_pq.shape
        close(alone, J_pq)
    assert engine(D[:0]).shape == (0, basis.nbf, basis.nbf)


def test_only_the_symmetric_part_matters() -> None:
    basis = Basis("sto-3g", molecule("water_01"))
    D = np.random.default_rng(3).normal(size=(basis.nbf, basis.nbf))
    J = ours(basis, D)
    close(J, ours(basis, 0.5 * (D + D.T)))
    close(J, J.T)


def test_same_bits_again_and_with_other_threads() -> None:
    basis = Basis("6-31g**", molecule("water_03"))
    D = random_density(basis.nbf)[0]
    results = []
    for threads in (1, 3):
        engine = JEngine(basis, backend=CpuBackend(threads=threads))
        engine(D)
        engine.finish_compiling()
        results += [engine(D), engine(D)]
    assert all(np.array_equal(J, results[0]) for J in results)


def test_bad_input() -> None:
    basis = Basis("sto-3g", molecule("water_01"))
    with pytest.raises(InputError, match="7 x 7"):
        JEngine(basis, backend="cpu")(np.zeros((3, 3)))
    with pytest.raises(InputError, match="precision"):
        JEngine(basis, backend="cpu", precision="half")
    with pytest.raises(InputError, match="threshold"):
        JEngine(basis, backend="cpu", threshold=0.0)


# ------------------------------------------------------------------------------------ screening and precision


def test_the_error_follows_the_threshold() -> None:
    basis = Basis("6-31g**", molecule("benzene"))
    D = decaying_density(basis)
    exact = ours(basis, D, threshold=1e-14)
    counts = []
    for threshold in (1e-5, 1e-7, 1e-9, 1e-11):
        engine = JEngine(basis, backend="cpu", threshold=threshold)
        error = np.abs(engine(D) - exact).max()
        statistics = engine.statistics
        assert error < PER_THRESHOLD * threshold
        assert statistics.error < PER_THRESHOLD * threshold
        counts.append(statistics.interactions)
    assert counts == sorted(counts) and counts[0] < 0.6 * counts[-1]


def test_increments_are_cheap_and_add_up() -> None:
    basis = Basis("6-31g**", molecule("benzene"))
    D = decaying_density(basis)
    change = 1e-6 * decaying_density(basis, length=1.0)
    engine = JEngine(basis, backend="cpu", threshold=1e-10)
    first = engine(D)
    whole = engine.statistics.interactions
    second = first + engine(change)
    assert engine.statistics.interactions < 0.8 * whole
    assert np.abs(second - engine(D + change)).max() < PER_THRESHOLD * 1e-10


def test_zero_density() -> None:
    basis = Basis("sto-3g", molecule("water_01"))
    engine = JEngine(basis, backend="cpu")
    assert not engine(np.zeros((basis.nbf, basis.nbf))).any()
    assert engine.statistics.interactions == 0


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_precision(device: str) -> None:
    basis = Basis("6-31g**", molecule("benzene"))
    D = decaying_density(basis)
    exact = ours(basis, D, device)
    for precision in ("mixed", "single"):
        engine = JEngine(basis, backend=device, precision=precision)
        J = engine.backend.to_host(engine(engine.backend.to_device(D)))
        statistics, error = engine.statistics, np.abs(J - exact).max()
        assert 0.1 * statistics.interactions < statistics.single
        assert error < PER_THRESHOLD * statistics.error
        if precision == "mixed":
            assert statistics.single < statistics.interactions
            assert error < MIXED
            assert 0.5 * abs(((J - exact) * D).sum()) < MIXED_ENERGY


def test_exponents_beyond_single_precision() -> None:
    shells = [Shell.from_table(0, l, [alpha], [[1.0]], True) for l, alpha in ((3, 2e6), (0, 0.5))]
    basis = Basis.from_shells(shells, [[0.0, 0.0, 0.0]])
    D = random_density(basis.nbf)[0]
    close(ours(basis, D, precision="single"), hermite_coulomb_matrix(basis, D))


# -------------------------------------------------------------------------------------------------- devices


def s_and_p(kind: str = "contracted") -> Basis:
    """Basis of two shells: it has three Hermite orders, so that few kernels have to be compiled."""
    basis, _ = bundle(Case("pure", kind, l_max=1))
    return Basis.from_shells([replace(shell, atom=k) for k, shell in enumerate(basis.shells[:2])], basis.R_ax[:2])


@pytest.mark.parametrize("precision", ["double", "single"])
def test_thread_kernels_on_simt(precision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    all_straight(monkeypatch)
    basis = s_and_p()
    D = random_density(basis.nbf)[0]
    tolerance = ROUNDING if precision == "double" else 1e-5
    close(ours(basis, D, "simt", precision=precision), hermite_coulomb_matrix(basis, D), tolerance)


@pytest.mark.parametrize("precision", ["double", "mixed"])
def test_general_kernel_on_simt(precision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    all_general(monkeypatch)
    basis, _ = bundle(Case("both", "contracted", l_max=2))
    D = random_density(basis.nbf, 2)
    exact = np.stack([hermite_coulomb_matrix(basis, D_pq) for D_pq in D])
    close(ours(basis, D, "simt", precision=precision), exact, ROUNDING if precision == "double" else MIXED)


@pytest.mark.parametrize("name", ["cpu", "simt"])
def test_contractions(name: str) -> None:
    """Sparse contractions equal products with the dense matrix."""
    device, basis = get_backend(name), bundle(Case("both", "general", l_max=1))[0]
    sparse = primitives(basis)[1]
    contraction, C_pk = Contraction(sparse, device), sparse.toarray()
    rng = np.random.default_rng(2)
    D_npq, X_nkl = (rng.normal(size=(2, n, n)) for n in C_pk.shape)
    for found, exact in (
        (contraction.density(device.to_device(D_npq)), C_pk.T @ (0.5 * (D_npq + D_npq.transpose(0, 2, 1))) @ C_pk),
        (contraction.matrix(device.to_device(X_nkl)), C_pk @ (X_nkl + X_nkl.transpose(0, 2, 1)) @ C_pk.T),
        (contraction.gather(device.to_device(X_nkl[0])), X_nkl[0] @ C_pk.T),
        (contraction.spread(device.to_device(D_npq[0])), D_npq[0] @ C_pk),
    ):
        close(device.to_host(found), exact)


@pytest.mark.gpu
@pytest.mark.parametrize("tier", [all_straight, all_general])
@pytest.mark.parametrize("name, basis_name", [("water_02", "6-31g**"), ("CuO", "6-31g**"), ("alkane_04", "cc-pvdz")])
def test_gpu_equals_cpu(name: str, basis_name: str, tier: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tier(monkeypatch)
    basis = Basis(basis_name, molecule(name), spherical=True)
    D = random_density(basis.nbf, 2)
    J = ours(basis, D, "cuda")
    close(J, ours(basis, D, "cpu"))
    assert np.abs(J - ours(basis, D, "cuda")).max() < 1e-12


@pytest.mark.parametrize("real", ["double", "float"])
@pytest.mark.parametrize("orders", [(0, 0), (1, 2), (4, 3)])
def test_the_cuda_text_compiles(orders: tuple[int, int], real: str) -> None:
    source = straight_source("cuda", *orders, 2, real)
    assert compile_nvrtc(source.text, "sm_90")[0][:4] == b"\x7fELF"
    assert compile_nvrtc(general_source("cuda", real).text, "sm_90")[0][:4] == b"\x7fELF"


@pytest.mark.parametrize("step", STEPS)
def test_the_steps_compile(step: str) -> None:
    assert compile_nvrtc(step_source("cuda", step).text, "sm_90")[0][:4] == b"\x7fELF"


def test_operation_count_is_not_below_the_multiply_adds_of_the_text() -> None:
    """The estimate, which decides between kernels, is at least the number of multiply-adds into `acc` (R_(t+s) H_s) in
    the text of the kernel."""
    for orders in ((0, 0), (1, 1), (2, 2), (3, 1)):
        text = straight_source("cpu", *orders, 1, "double").text
        products = text.count("acc[") // 2
        assert products <= operations(*orders, 1)


def test_the_table_of_tuples() -> None:
    table = tuple_table()
    degrees = table[:, :3].sum(axis=1)
    assert (np.diff(degrees) >= 0).all() and degrees[-1] == 32
    for t, u, v, axis, power, once, twice, _ in table[1:200]:
        lowered = np.array([t, u, v])
        lowered[axis] -= 1
        assert power == lowered[axis] and (table[once, :3] == lowered).all()
        lowered[axis] -= 1
        assert power == 0 or (table[twice, :3] == lowered).all()


def test_the_backend_by_name() -> None:
    basis = Basis("sto-3g", molecule("water_01"))
    assert JEngine(basis, backend="cpu").backend is get_backend("cpu")
