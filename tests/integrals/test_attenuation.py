"""Integrals of erf(omega r)/r: against libcint and the reference, and in the limits of omega."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from bundle import HAS_PYSCF, Case, backend, bundle, cartesian, on
from cuanto import Basis, integrals
from cuanto.backends import Backend
from cuanto.backends.cpu.backend import CpuBackend
from cuanto.backends.cuda.backend import CudaBackend
from cuanto.backends.cuda.nvrtc import compile_nvrtc
from cuanto.backends.simt.backend import SimtBackend
from cuanto.basis import Shell
from cuanto.coulomb import DirectJK, FittedJK, JEngine
from cuanto.errors import InputError
from cuanto.integrals.attenuation import attenuate
from cuanto.integrals.uploaded_pairs import upload_pairs
from cuanto.kernels.build import integrals_of, source_of
from cuanto.kernels.spec import KernelSpec, Shells, coulomb_operator
from oracle import Array, _libcint_arrays
from oracles import integrals as reference
from tolerances import INTEGRAL_ABS, INTEGRAL_REL, SMALLEST

ALGORITHMS = pytest.mark.parametrize("algorithm", ["hgp", "md"])


# ---------------------------------------------------------------------------------------------- integrals


@dataclass(frozen=True)
class Setting:
    """Shells, and the range of the operator."""

    case: Case
    omega: float

    def __str__(self) -> str:
        return f"{self.case}-{self.omega}"


WITH_F = [
    Setting(Case("pure", "primitive", "near", "normal", 3, 4), 0.1),
    Setting(Case("cartesian", "primitive", "coincident", "tight", 3, 4), 0.4),
    Setting(Case("pure", "contracted", "near", "diffuse", 3, 4), 0.4),
    Setting(Case("cartesian", "primitive", "near", "normal", 3, 4), 1e3),
    Setting(Case("pure", "primitive", "near", "tight", 3, 4), 30.0),
]
MIXED = Setting(Case("both", "primitive", "distant", "mixed", 2, 3), 0.3)
SMALL = [
    Setting(Case("pure", "general", "near", "normal", 1, 1), 0.33),
    Setting(Case("both", "primitive", "near", "normal", 2, 2), 1.0),
]


@cache
def exact(setting: Setting, operator: str) -> tuple[Basis, Basis, Array]:
    """Both bases of a bundle and their integrals: libcint's, or the reference's where libcint is not accurate.

    Of (P|Q) between high momenta libcint has six digits for small omega. Without libcint (as on a GPU node) the table
    kernel is used, which CPU tests compare with libcint; the reference is slower.
    """
    basis, aux = bundle(setting.case)
    if setting.case.form == "both" or operator == "2c":
        return basis, aux, reference_integrals(operator, basis, aux, setting.omega)
    if not HAS_PYSCF:
        return basis, aux, ours(backend("cpu-table"), operator, setting, "md")
    return basis, aux, libcint(operator, basis, aux, setting.omega, setting.case.form)


def libcint(operator: str, basis: Basis, aux: Basis, omega: float, form: str) -> Array:
    from pyscf import gto

    shells = [*basis.shells, *aux.shells]
    centres = [b.R_ax[shell.atom] for b in (basis, aux) for shell in b.shells]
    atm, bas, env = _libcint_arrays(shells, centres)
    env[gto.mole.PTR_RANGE_OMEGA] = omega
    n, end = len(basis.shells), len(shells)
    name, edges = {
        "2c": ("int2c2e", (n, end, n, end)),
        "3c": ("int3c2e", (0, n, 0, n, n, end)),
        "4c": ("int2e", (0, n, 0, n, 0, n, 0, n)),
    }[operator]
    kind = "sph" if form == "pure" else "cart"
    values: Array = gto.moleintor.getints(f"{name}_{kind}", atm, bas, env, shls_slice=edges)
    return values


def reference_integrals(operator: str, basis: Basis, aux: Basis, omega: float | None) -> Array:
    if operator == "2c":
        return reference.eri_2c_matrix(aux, omega)
    return reference.eri_3c_tensor(basis, aux, omega) if operator == "3c" else reference.eri_4c_tensor(basis, omega)


def ours(device: Backend | None, operator: str, setting: Setting, algorithm: str = "auto") -> Array:
    basis, aux = bundle(setting.case)
    if device is None:
        return reference_integrals(operator, basis, aux, setting.omega)
    common: dict[str, Any] = {"backend": device, "omega": setting.omega, "algorithm": algorithm}
    if operator == "2c":
        return device.to_host(integrals.eri_2c(aux, **common))
    if operator == "3c":
        return device.to_host(integrals.eri_3c(basis, aux, threshold=0.0, **common))
    return device.to_host(integrals.eri_4c(basis, threshold=0.0, **common))


def block_maxima(values: Array, sides: list[Basis]) -> Array:
    for axis, side in enumerate(sides):
        values = np.maximum.reduceat(values, np.asarray(side.offsets), axis=axis)
    return values


def sides_of(operator: str, basis: Basis, aux: Basis) -> list[Basis]:
    return {"2c": [aux] * 2, "3c": [basis, basis, aux], "4c": [basis] * 4}[operator]


def check(device: Backend | None, operator: str, setting: Setting, algorithm: str = "auto") -> None:
    """Check that every block of shells is within 1e-12 of its largest element, or within rounding errors."""
    basis, aux, expected = exact(setting, operator)
    got = ours(device, operator, setting, algorithm)
    assert got.shape == expected.shape
    sides = sides_of(operator, basis, aux)
    error, scale = (block_maxima(np.abs(values), sides) for values in (got - expected, expected))
    allowed = INTEGRAL_REL * scale + INTEGRAL_ABS * rounding(operator, setting, scale)
    assert (error <= allowed).all(), f"{(error / (allowed + SMALLEST)).max():.2g} times the tolerance"


def rounding(operator: str, setting: Setting, scale: Array) -> Array:
    """Rounding errors of Cartesian functions that cancel in pure ones, estimated from the largest block or the Schwarz
    bound."""
    if operator == "2c" or setting == MIXED:
        basis, aux = (cartesian(b) for b in bundle(setting.case))
        return block_maxima(
            np.abs(reference_integrals(operator, basis, aux, setting.omega)), sides_of(operator, basis, aux)
        )
    if operator == "3c":
        return np.asarray(scale.max(axis=2, keepdims=True))
    bound = np.sqrt(np.einsum("pqpq->pq", scale))
    return np.asarray(np.einsum("pq,rs->pqrs", bound, bound))


@pytest.mark.parametrize("operator", ["3c", "4c"])
def test_the_reference_is_right(operator: str) -> None:
    """Against libcint; without it, the reference is what others are compared with."""
    check(None, operator, Setting(Case("pure", "primitive", "near", "normal", 2, 3), 0.4))
    check(None, operator, Setting(Case("cartesian", "contracted", "near", "normal", 1, 2), 2.0))


@pytest.mark.parametrize("setting", WITH_F[:2], ids=str)
def test_two_centres_of_the_reference(setting: Setting) -> None:
    """Relative to the largest, because libcint has few digits here; without it against the HGP scheme."""
    basis, aux = bundle(setting.case)
    V_PQ = reference_integrals("2c", basis, aux, setting.omega)
    if HAS_PYSCF:
        expected = libcint("2c", basis, aux, setting.omega, setting.case.form)
    else:
        expected = ours(backend("cpu-table"), "2c", setting, "hgp")
    assert np.abs(V_PQ - expected).max() <= INTEGRAL_REL * np.abs(expected).max()


@ALGORITHMS
@pytest.mark.parametrize("operator", ["2c", "3c"])
@pytest.mark.parametrize("setting", WITH_F, ids=str)
@on("cpu-table", "cuda-group")
def test_two_and_three_centres(name: str, setting: Setting, operator: str, algorithm: str) -> None:
    check(backend(name), operator, setting, algorithm)


@ALGORITHMS
@pytest.mark.parametrize("setting", WITH_F, ids=str)
@on("cpu-table", "cuda-group")
def test_four_centres(name: str, setting: Setting, algorithm: str) -> None:
    check(backend(name), "4c", setting, algorithm)


@pytest.mark.parametrize("operator", ["3c", "4c"])
@on("cpu-table", "cuda-group")
def test_tight_beside_diffuse(name: str, operator: str) -> None:
    check(backend(name), operator, MIXED)


@ALGORITHMS
@pytest.mark.parametrize("operator", ["2c", "3c"])
@pytest.mark.parametrize("setting", SMALL, ids=str)
@on("simt-group", "cuda-group")
def test_group_schedule(name: str, setting: Setting, operator: str, algorithm: str) -> None:
    check(backend(name), operator, setting, algorithm)


@ALGORITHMS
@on("cpu-lane", "simt-thread", "cuda-thread")
def test_straight_line_kernels(name: str, algorithm: str) -> None:
    for operator in ("2c", "3c") if name == "simt-thread" else ("2c", "3c", "4c"):
        check(backend(name), operator, SMALL[0], algorithm)


@cache
def by_blocks(kind: str, schedule: str) -> Backend:
    return SimtBackend(schedule) if kind == "simt" else CudaBackend(schedule)


@pytest.mark.parametrize("schedule", ["block-per-integral", "block-per-quartet"])
@pytest.mark.parametrize("kind", ["simt", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_block_schedules(kind: str, schedule: str) -> None:
    """Block schedules use McMurchie-Davidson, whichever algorithm is requested."""
    check(by_blocks(kind, schedule), "3c", SMALL[0], "hgp")


@ALGORITHMS
def test_large_omega_is_the_plain_operator(algorithm: str) -> None:
    basis, aux = bundle(Case("pure", "contracted", "near", "normal", 2, 3))
    common: dict[str, Any] = {"backend": backend("cpu-table"), "algorithm": algorithm}
    for omega, tolerance in ((1e9, 1e-13), (float("inf"), 1e-14)):
        for plain, limit in (
            (integrals.eri_2c(aux, **common), integrals.eri_2c(aux, omega=omega, **common)),
            (integrals.eri_3c(basis, aux, **common), integrals.eri_3c(basis, aux, omega=omega, **common)),
            (integrals.eri_4c(basis, **common), integrals.eri_4c(basis, omega=omega, **common)),
        ):
            assert np.abs(limit - plain).max() <= tolerance * np.abs(plain).max()


@pytest.mark.parametrize("omega", [1e-3, 1e-6, 1e-100])
def test_small_omega_couples_charges_only(omega: float) -> None:
    """erf(omega r)/r = 2 omega / sqrt(pi) (1 - (omega r)^2 / 3 + ...)"""
    basis, _ = bundle(Case("pure", "primitive", "near", "normal", 2, 3))
    S_pq = integrals.overlap(basis, backend="cpu")
    for algorithm in ("hgp", "md"):
        values = integrals.eri_4c(basis, backend=CpuBackend(schedule="table"), omega=omega, algorithm=algorithm)
        charges = 2.0 / np.sqrt(np.pi) * np.einsum("pq,rs->pqrs", S_pq, S_pq)
        assert np.abs(values / omega - charges).max() <= 100.0 * omega**2 + 1e-13


def test_one_shell_by_hand() -> None:
    """(ss|ss) of one normalised s function: 2/sqrt(pi) (1/2a + 1/2a + 1/omega^2)^(-1/2)"""
    a, omega = 0.8, 0.45
    basis = Basis.from_shells([Shell.from_table(0, 0, [a], [[1.0]], True)], [[0.1, 0.2, 0.3]])
    value = integrals.eri_4c(basis, backend="cpu", omega=omega).item()
    assert value == pytest.approx(2.0 / np.sqrt(np.pi) / np.sqrt(1.0 / a + 1.0 / omega**2), rel=1e-14)


# ------------------------------------------------------------------------------------------ kernels, input


def test_mcmurchie_davidson_kernels_are_used_for_both_operators() -> None:
    assert coulomb_operator(True, "md") == coulomb_operator(False, "md") == coulomb_operator(False, "hgp") == "coulomb"
    assert coulomb_operator(True, "hgp") == "coulomb_erf"


def test_attenuation_costs_one_more_product() -> None:
    """Compares operations per primitive quartet, without those that all kets share."""
    bra, ket = Shells((2, 1)), Shells((2, 1))
    plain, erf = (integrals_of(operator, bra, ket, "hgp") for operator in ("coulomb", "coulomb_erf"))
    assert erf.width == plain.width
    assert len(erf.primitive.graph.kind) - len(plain.primitive.graph.kind) <= 4


@pytest.mark.parametrize(
    "bra, ket, real", [((0,), (1,), "double"), ((1, 1), (2,), "double"), ((1, 0), (1, 1), "float")]
)
def test_nvrtc_compiles(bra: tuple[int, ...], ket: tuple[int, ...], real: str) -> None:
    spec = KernelSpec("coulomb_erf", Shells(bra), Shells(ket), "hgp", "thread", real)
    sources = [source_of(spec)] + ([source_of(replace(spec, consumer="list"))] if len(ket) == 2 else [])
    for source in sources:
        cubin, _ = compile_nvrtc(source.text, "sm_90")
        assert cubin.startswith(b"\x7fELF") and "coulomb_erf" in source.entry


@pytest.mark.parametrize("omega", [0.0, -0.3, float("nan"), "short", [0.3]])
def test_invalid_omega_is_refused(omega: Any) -> None:
    basis, aux = bundle(Case("pure", "primitive", "near", "normal", 1, 1))
    for call in (
        lambda: integrals.eri_2c(aux, backend="cpu", omega=omega),
        lambda: integrals.eri_3c(basis, aux, backend="cpu", omega=omega),
        lambda: integrals.eri_4c(basis, backend="cpu", omega=omega),
        lambda: DirectJK(basis, backend="cpu", omega=omega),
        lambda: JEngine(basis, backend="cpu", omega=omega),
        lambda: FittedJK(basis, aux, backend="cpu", omega=omega),
    ):
        with pytest.raises(InputError, match="omega must be a positive number"):
            call()


def test_pairs_are_unchanged_without_omega() -> None:
    basis, _ = bundle(Case("pure", "primitive", "near", "normal", 1, 1))
    for pair in upload_pairs(basis, CpuBackend()):
        assert attenuate(pair, None) is pair
        changed = attenuate(pair, 0.5)
        assert (
            changed.attenuated
            and changed.device["bra_record"] is changed.record
            and (changed.record[:, 0] < pair.record[:, 0]).all()
        )
