"""Direct J and K against all integrals and against PySCF's stored values; the text of their CUDA kernels."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from bundle import Case, backend, bundle, on
from cuanto import Basis, Molecule
from cuanto.backends import Backend, reference
from cuanto.backends.cuda.nvrtc import compile_nvrtc
from cuanto.basis import Shell, unit_norm_factors
from cuanto.coulomb import DirectJK
from cuanto.kernels.listed import cuda_digest, cuda_group, cuda_select, cuda_straight
from cuanto.kernels.spec import KernelSpec, Shells
from direct_reference import (
    DATA,
    DEVICES,
    EXACT,
    SYSTEMS,
    Array,
    Record,
    System,
    basis_of,
    close,
    densities,
    density,
    molecule_of,
    ours,
    stored,
)


@pytest.fixture(autouse=True)
def basis_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUANTO_BASIS_PATH", str(DATA / "basis"))


# --------------------------------------------------------------------------------- against all integrals

SMALL = [
    Case("pure", "general", l_max=1),
    Case("cartesian", "primitive", l_max=2),
    Case("both", "contracted", l_max=2),
]
WITH_F = Case("pure", "primitive", l_max=3)


@cache
def tensor(basis: Basis) -> Array:
    return reference.eri_4c_tensor(basis)


def exact_jk(basis: Basis, D_npq: Array) -> tuple[Array, Array]:
    """J_pq = sum_rt (pq|rt) D_rt, K_pq = sum_rt (pr|qt) D_rt"""
    J = np.einsum("pqrt,nrt->npq", tensor(basis), D_npq)
    return J, np.einsum("prqt,nrt->npq", tensor(basis), D_npq)


def check(device: Backend | None, basis: Basis, kinds: tuple[str, ...], **options: Any) -> None:
    assert device is not None
    direct = DirectJK(basis, backend=device, threshold=1e-15, **options)
    for kind in kinds:
        D = densities(basis.nbf)[kind]
        for M, exact in zip(ours(direct, D), exact_jk(basis, D[None]), strict=True):
            close(M, exact[0])


KINDS = ("symmetric", "antisymmetric", "general")


@pytest.mark.parametrize("one_pass", [True, False])
@pytest.mark.parametrize("algorithm", ["hgp", "md"])
@pytest.mark.parametrize("case", SMALL, ids=str)
@on("cpu-table", "cuda-group")
def test_every_kind_of_shell_and_density(name: str, case: Case, algorithm: str, one_pass: bool) -> None:
    check(backend(name), bundle(case)[0], KINDS, algorithm=algorithm, one_pass=one_pass)


@pytest.mark.parametrize("one_pass", [True, False])
@on("cpu-table", "cuda-group")
def test_f_functions(name: str, one_pass: bool) -> None:
    check(backend(name), bundle(WITH_F)[0], KINDS, algorithm="hgp", one_pass=one_pass)


@pytest.mark.parametrize("algorithm", ["hgp", "md"])
@on("cpu-lane", "cuda-thread")
def test_straight_line_kernels(name: str, algorithm: str) -> None:
    check(backend(name), bundle(Case("pure", "general", l_max=1))[0], KINDS, algorithm=algorithm, one_pass=True)


@cache
def few_shells(momenta: str) -> Basis:
    """Contracted shells at places of their own; capitals are cartesian. The first one has two columns."""
    rng = np.random.default_rng(5)
    shells = []
    for atom, letter in enumerate(momenta):
        table = rng.uniform(0.3, 1.0, (2, 2 if atom == 0 else 1))
        exponents = rng.uniform(0.3, 3.0, 2)
        shells.append(Shell.from_table(atom, "spdf".index(letter.lower()), exponents, table, letter.islower()))
    return Basis.from_shells(shells, rng.normal(size=(len(shells), 3)))


@pytest.mark.parametrize("momenta, kind", [("sp", "general"), ("sD", "symmetric")])
@on("simt-group")
def test_group_kernels_on_simt(name: str, momenta: str, kind: str) -> None:
    check(backend(name), few_shells(momenta), (kind,), one_pass=True)


@on("simt-thread")
def test_thread_kernels_on_simt(name: str) -> None:
    check(backend(name), few_shells("sp"), ("general",), algorithm="hgp", one_pass=True)


@on("cpu-table", "simt-group", "cuda-group", "cuda-thread")
def test_a_single_shell(name: str) -> None:
    """(ss|ss) = 2 sqrt(a / pi) of a normalised s function."""
    basis = Basis.from_shells([Shell.from_table(0, 0, [0.8], [[1.0]], True)], [[0.1, 0.2, 0.3]])
    device = backend(name)
    assert device is not None
    for one_pass in (True, False):
        for M in ours(DirectJK(basis, backend=device, one_pass=one_pass), np.array([[2.0]])):
            close(M, np.array([[4.0 * np.sqrt(0.8 / np.pi)]]))


# -------------------------------------------------------------------------------------------- stored values

FOUR_CENTRE: list[Record] = json.loads((DATA / "integrals.json").read_text())["four_centre"]
SLOW_BASES = ("cc-pv5z", "cc-pv6z")  # classes of g and h functions take long to prepare


def four_centre_records() -> Iterator[Any]:
    for record in FOUR_CENTRE:
        form = "cartesian" if record["cartesian"] else "spherical"
        marks = [pytest.mark.slow] if record["basis"] in SLOW_BASES else []
        yield pytest.param(record, marks=marks, id=f"{record['molecule']}-{record['basis']}-{form}")


@pytest.mark.parametrize("record", list(four_centre_records()))
@DEVICES
def test_fingerprints(record: Record, device: str) -> None:
    """J and K of integrals.json; D_ij = 2 cos(0.1 i j)."""
    name = record["molecule"]
    atom = Molecule(["H"], [[0.0, 0.0, 0.0]], multiplicity=2)
    molecule = atom if name == "H_atom" else molecule_of(name)
    basis = Basis(record["basis"], molecule, spherical=not record["cartesian"])
    i = np.arange(basis.nbf)
    D = 2.0 * np.cos(0.1 * np.outer(i, i))
    direct = DirectJK(basis, backend=device, threshold=1e-12)
    for normalisation, expected in record["normalisations"].items():
        s = unit_norm_factors(basis) if normalisation == "unit" else np.ones(basis.nbf)
        scale = np.outer(s, s)
        for letter, M in zip("JK", ours(direct, D * scale), strict=True):
            check_fingerprint(M * scale, D, letter, expected[letter])


def check_fingerprint(M: Array, D: Array, letter: str, expected: Record) -> None:
    size = float(np.abs(M).max())
    found = {
        "sum_abs": (np.abs(M).sum(), np.abs(M).sum()),
        "frobenius": (np.linalg.norm(M), np.linalg.norm(M)),
        f"trace_{letter}D": ((M * D).sum(), np.abs(M * D).sum()),
        "first": (M[0, 0], size),
        "last": (M[-1, -1], size),
        "first_last": (M[0, -1], size),
    }
    for name, (value, scale) in found.items():
        assert value == pytest.approx(expected[name], rel=0, abs=EXACT * scale), f"{letter} {name}"


def large_systems() -> Iterator[Any]:
    for system in SYSTEMS:
        large = system.molecule in ("alkane_18", "water_01")
        yield pytest.param(system, marks=[pytest.mark.slow] if large else [], id=str(system))


@pytest.mark.parametrize("system", list(large_systems()))
@DEVICES
def test_against_pyscf(system: System, device: str) -> None:
    record, basis = stored()[str(system)], basis_of(system)
    assert basis.nbf == record["nbf"]
    D = density(basis)
    places = np.array(record["places"])
    for letter, M in zip("JK", ours(DirectJK(basis, backend=device, threshold=1e-12), D), strict=True):
        expected = record[letter]
        assert np.abs(M[places[:, 0], places[:, 1]] - expected["elements"]).max() < EXACT
        assert np.linalg.norm(M) == pytest.approx(expected["frobenius"], rel=EXACT)
        assert (M * D).sum() == pytest.approx(expected["trace_with_D"], rel=EXACT)


# ------------------------------------------------------------------------------------------------- CUDA text

STRAIGHT = KernelSpec("coulomb", Shells((1, 0), (True, True)), Shells((1, 1), (True, True)), "hgp", "thread")
TEXTS = {
    "select": cuda_select(),
    "digest any": cuda_digest("double", None),
    "digest any float": cuda_digest("float", None),
    "digest 1 3 3": cuda_digest("double", (1, 3, 3)),
    "digest 6 6 6": cuda_digest("float", (6, 6, 6)),
    "group": cuda_group("double"),
    "group float": cuda_group("float"),
    "straight": cuda_straight(STRAIGHT),
    "straight md": cuda_straight(replace(STRAIGHT, algorithm="md", columns=2)),
    "straight float": cuda_straight(replace(STRAIGHT, real="float")),
}


@pytest.mark.parametrize("name", TEXTS)
def test_nvrtc_compiles(name: str) -> None:
    source = TEXTS[name]
    cubin, log = compile_nvrtc(source.text, "sm_90")
    assert cubin.startswith(b"\x7fELF") and source.entry.encode() in cubin
    assert "warning" not in log, log
