"""The gradient of exact exchange against the derivatives of libcint and finite differences of the energy."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

from bundle import HAS_PYSCF, Case, backend, bundle, on
from cuanto import Basis
from cuanto.backends import Backend
from cuanto.backends.cpu.backend import CpuBackend
from cuanto.backends.cuda.nvrtc import compile_nvrtc
from cuanto.basis import Shell
from cuanto.coulomb import DirectJK, IncrementalJK, exchange_forces_cuda, quartets
from cuanto.coulomb.exchange_forces import THRESHOLD, exchange_forces, exchange_gradient, threshold_of
from cuanto.errors import InputError
from cuanto.kernels import exchange_force, exchange_force_shared
from cuanto.kernels.direct import cuda_select
from cuanto.memory import Budget
from cuanto.terms.exchange import Exchange
from direct_reference import DATA, Array, System, basis_of, density
from oracle import _libcint_arrays
from oracles.coulomb import exchange_forces as exchange_by_differences

AGREEMENT = 1e-8
OMEGA = 0.4


def symmetric(basis: Basis, spins: int) -> Array:
    """Random symmetric densities."""
    A = np.random.default_rng(7).normal(size=(spins, basis.nbf, basis.nbf)) / basis.nbf**0.5
    return A + A.transpose(0, 2, 1)


def gradient(name: str, basis: Basis, D_spq: Array, **options: Any) -> Array:
    """Gradient on a backend, by default with a very small threshold."""
    device = backend(name)
    assert device is not None
    return compute(device, basis, D_spq, **options)


def compute(device: Backend, basis: Basis, D_spq: Array, **options: Any) -> Array:
    forces = exchange_forces(basis, Budget(device), **{"threshold": 1e-14, **options})
    return exchange_gradient(basis, device.to_device(D_spq), forces)


# ---------------------------------------------------------------------------------------- against libcint


@cache
def derivatives(basis: Basis, omega: float | None) -> Array:
    """(d/dr p q|r t), [axis, p, q, r, t]."""
    from pyscf import gto

    atm, bas, env = _libcint_arrays(basis.shells, [basis.R_ax[shell.atom] for shell in basis.shells])
    env[gto.mole.PTR_RANGE_OMEGA] = omega or 0.0
    kind = "_cart" if any(shell.l > 1 and not shell.pure for shell in basis.shells) else "_sph"
    values: Array = gto.moleintor.getints("int2e_ip1" + kind, atm, bas, env, comp=3)
    return values.reshape(3, *(basis.nbf,) * 4)


def by_libcint(basis: Basis, D_spq: Array, omega: float | None) -> Array:
    """Gradient of E = -1/2 sum_s sum_pqrt D_spr D_sqt (pq|rt), or of half of it for a single D of both spins.

    Where PySCF is not installed (as on a machine with a GPU), the result of the CPU is the reference.
    """
    if not HAS_PYSCF:
        return gradient("cpu-table", basis, D_spq, omega=omega)
    moved_px = np.einsum("xpqrt,spr,sqt->px", derivatives(basis, omega), D_spq, D_spq, optimize=True)
    expected = np.zeros((len(basis.R_ax), 3))
    atoms = np.repeat([shell.atom for shell in basis.shells], [shell.nbf for shell in basis.shells])
    np.add.at(expected, atoms, (1.0 if len(D_spq) == 1 else 2.0) * moved_px)
    return expected


CASES = [Case("pure", "general", l_max=1), Case("pure", "contracted", l_max=2), Case("cartesian", "primitive", l_max=2)]


@pytest.mark.parametrize("omega", [None, OMEGA])
@pytest.mark.parametrize("case", CASES, ids=str)
@on("cpu-table", "cuda-group")
def test_against_libcint(name: str, case: Case, omega: float | None) -> None:
    basis = bundle(case)[0]
    for spins in (1, 2):
        D_spq = symmetric(basis, spins)
        found, expected = gradient(name, basis, D_spq, omega=omega), by_libcint(basis, D_spq, omega)
        np.testing.assert_allclose(found, expected, rtol=0.0, atol=AGREEMENT)
        np.testing.assert_allclose(found.sum(axis=0), 0.0, atol=AGREEMENT)


@on("cpu-table", "cuda-group")
def test_f_functions(name: str) -> None:
    basis = few_shells("spdf")
    D_spq = symmetric(basis, 2)
    np.testing.assert_allclose(gradient(name, basis, D_spq), by_libcint(basis, D_spq, None), rtol=0.0, atol=AGREEMENT)


@on("cpu-table", "cuda-group")
def test_tight_functions_of_copper(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exponents up to 76,000 and cartesian f functions; the default threshold."""
    monkeypatch.setenv("CUANTO_BASIS_PATH", str(DATA / "basis"))
    basis = basis_of(System("CuO", "6-31g**", False))
    C_spi = 0.1 * np.random.default_rng(0).normal(size=(2, basis.nbf, 14))
    D_spq = C_spi @ C_spi.transpose(0, 2, 1)
    found = gradient(name, basis, D_spq, threshold=THRESHOLD)
    np.testing.assert_allclose(found, by_libcint(basis, D_spq, None), rtol=0.0, atol=AGREEMENT)


@pytest.mark.parametrize("precision, error", [("mixed", 1e-8), ("single", 1e-4)])
@on("cpu-table", "cuda-group")
def test_precisions(name: str, precision: str, error: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Propane has large and small quartets; sums are reproducible, so that any difference is due to precision."""
    monkeypatch.setenv("CUANTO_BASIS_PATH", str(DATA / "basis"))
    basis = basis_of(System("alkane_03", "sto-3g", True))
    D_spq = density(basis)[None]
    double, found = (gradient(name, basis, D_spq, precision=p, threshold=THRESHOLD) for p in ("double", precision))
    assert 0.0 < np.abs(found - double).max() < error


@on("cpu-lane", "cuda-thread")
def test_straight_line_kernels(name: str) -> None:
    basis = bundle(CASES[0])[0]
    D_spq = symmetric(basis, 2)
    np.testing.assert_allclose(gradient(name, basis, D_spq), by_libcint(basis, D_spq, None), rtol=0.0, atol=AGREEMENT)


# ------------------------------------------------------------- the GPU's kernels against the NumPy oracle


@pytest.mark.parametrize("omega", [None, OMEGA])
def test_one_thread_per_quartet(omega: float | None) -> None:
    basis = few_shells("sp")
    D_spq = symmetric(basis, 2)
    found = gradient("simt-group", basis, D_spq, omega=omega)
    np.testing.assert_allclose(found, exchange_by_differences(basis, D_spq, omega), rtol=0.0, atol=AGREEMENT)


@pytest.fixture
def shared_kernels(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Threads share a quartet, as for high angular momenta."""
    monkeypatch.setattr(exchange_force, "MAX_ORDER", 0)
    exchange_force.force_kernels.cache_clear()
    yield
    exchange_force.force_kernels.cache_clear()


@pytest.mark.usefixtures("shared_kernels")
@pytest.mark.parametrize(
    "name, momenta, limit", [("simt-group", "dd", 20_000), ("simt-group", "pp", 0), ("simt-scratch", "pp", 0)]
)
def test_some_threads_per_quartet(name: str, momenta: str, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pure d functions; p functions with loops in place of straight-line expansions, in shared or global memory."""
    monkeypatch.setattr(exchange_force_shared, "EXPAND_LIMIT", limit)
    basis = few_shells(momenta)
    D_spq = symmetric(basis, 1)
    expected = 0.5 * exchange_by_differences(basis, D_spq)
    np.testing.assert_allclose(gradient(name, basis, D_spq), expected, rtol=0.0, atol=AGREEMENT)


def test_lists_that_do_not_fit_come_in_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    basis = few_shells("pp")
    D_spq = symmetric(basis, 2)
    whole = gradient("simt-group", basis, D_spq)
    monkeypatch.setattr(exchange_forces_cuda, "BUFFER_BYTES", 12 * exchange_forces_cuda.QUARTET_BYTES)
    np.testing.assert_allclose(gradient("simt-group", basis, D_spq), whole, rtol=0.0, atol=1e-13)


@pytest.mark.parametrize("precision", ["mixed", "single"])
def test_precisions_of_lists(precision: str) -> None:
    basis = few_shells("pp")
    D_spq = symmetric(basis, 2)
    exact, found = (gradient("simt-group", basis, D_spq, precision=p) for p in ("double", precision))
    assert np.abs(found - exact).max() < (1e-8 if precision == "mixed" else 1e-5)


def test_the_pairs_of_exchange_are_reused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A builder that has made K sets up no pairs for the gradient."""
    basis, device = few_shells("pp"), backend("simt-group")
    D_spq = symmetric(basis, 1)
    builder = IncrementalJK(DirectJK(basis, backend=device))
    builder(device.to_device(D_spq), want_j=False)
    monkeypatch.setattr(quartets, "pair_classes", None)
    found = builder.exchange_gradient(device.to_device(D_spq), None)
    np.testing.assert_allclose(found, 0.5 * exchange_by_differences(basis, D_spq), rtol=0.0, atol=AGREEMENT)


@cache
def few_shells(momenta: str) -> Basis:
    """Contracted shells, each at its own centre; the first one has two columns."""
    rng = np.random.default_rng(5)
    shells = []
    for atom, letter in enumerate(momenta):
        table = rng.uniform(0.3, 1.0, (2, 2 if atom == 0 else 1))
        shells.append(Shell.from_table(atom, "spdfg".index(letter), rng.uniform(0.3, 3.0, 2), table, True))
    return Basis.from_shells(shells, rng.normal(size=(len(shells), 3)))


# -------------------------------------------------------------------------------- against our own energy


def energy(basis: Basis, D_spq: Array, omega: float | None) -> float:
    term = Exchange(IncrementalJK(DirectJK(basis, backend=backend("cpu-table"), threshold=1e-15, omega=omega)))
    return float(term.fock(D_spq, None)[0])


def moved(basis: Basis, atom: int, axis: int, step: float) -> Basis:
    R_ax = basis.R_ax.copy()
    R_ax[atom, axis] += step
    return Basis.from_shells(list(basis.shells), R_ax)


@pytest.mark.parametrize("spins, omega", [(1, None), (2, OMEGA)])
def test_finite_differences(spins: int, omega: float | None) -> None:
    """For pure and Cartesian shells, by differences of two step lengths, extrapolated to zero."""
    basis = bundle(Case("both", "contracted", l_max=2))[0]
    D_spq = symmetric(basis, spins)
    found = gradient("cpu-table", basis, D_spq, omega=omega)
    for atom, axis in ((0, 0), (2, 1), (4, 2)):
        one, two = (
            (energy(moved(basis, atom, axis, h), D_spq, omega) - energy(moved(basis, atom, axis, -h), D_spq, omega))
            / (2.0 * h)
            for h in (1e-3, 2e-3)
        )
        assert abs(found[atom, axis] - (4.0 * one - two) / 3.0) < AGREEMENT


# ------------------------------------------------------------------------------------------------- screening


@on("cpu-table", "cuda-group")
def test_threshold_bounds_the_error(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is at most a hundred times the threshold."""
    monkeypatch.setenv("CUANTO_BASIS_PATH", str(DATA / "basis"))
    basis = basis_of(System("alkane_03", "sto-3g", True))
    D_spq = density(basis)[None]
    exact = gradient(name, basis, D_spq, threshold=1e-15)
    for threshold in (1e-6, 1e-8, 1e-10):
        error = np.abs(gradient(name, basis, D_spq, threshold=threshold) - exact).max()
        assert 0.0 < error < 100 * threshold


def test_default_threshold_beyond_d_functions() -> None:
    """The default threshold falls with l, because quartets have more integrals; errors stay below 1e-9 Hartree/Bohr."""
    assert [threshold_of(few_shells(momenta)) for momenta in ("sp", "spd", "spdf", "spdfg")] == pytest.approx(
        [1e-11, 1e-11, 1e-12, 1e-13]
    )
    basis = few_shells("sdfg")
    D_spq = 1e-4 * symmetric(basis, 1)  # small, so that many quartets are neglected
    found, exact = (compute(CpuBackend(), basis, D_spq, threshold=one) for one in (None, 1e-18))
    assert np.abs(found - exact).max() < 1e-9


def test_bits_do_not_depend_on_threads() -> None:
    basis = bundle(CASES[0])[0]
    D_spq = symmetric(basis, 1)
    one, two = (compute(CpuBackend(threads=n, schedule="table"), basis, D_spq) for n in (1, 2))
    assert np.array_equal(one, two)


def test_wrong_options_are_refused() -> None:
    basis = few_shells("s")
    with pytest.raises(InputError):
        gradient("cpu-table", basis, symmetric(basis, 1), threshold=0.0)
    with pytest.raises(InputError):
        gradient("cpu-table", basis, symmetric(basis, 1), precision="half")
    with pytest.raises(InputError):
        gradient("cpu-table", basis, symmetric(basis, 1), omega=-1.0)


def test_nvrtc_compiles_the_selection() -> None:
    cubin, log = compile_nvrtc(cuda_select(forces=True).text, "sm_90")
    assert cubin.startswith(b"\x7fELF") and "warning" not in log, log
