"""Direct J and K against all integrals and against PySCF's stored values; the text of their CUDA kernels."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from bundle import Case, backend, bundle, on
from cuanto import Basis
from cuanto.backends import Backend
from cuanto.backends.cpu.backend import CpuBackend, CpuProgram
from cuanto.backends.cuda.nvrtc import compile_nvrtc
from cuanto.backends.tiers import fixed_kernels
from cuanto.basis import Shell
from cuanto.coulomb import DirectJK, digest_cpu
from cuanto.coulomb.digest_cpu import Choice
from cuanto.kernels.build import general_source, source_of
from cuanto.kernels.direct import cuda_digest, cuda_expand, cuda_select
from cuanto.kernels.spec import KernelSpec, Shells
from direct_reference import (
    DATA,
    DEVICES,
    EXACT,
    SYSTEMS,
    Array,
    Record,
    System,
    close,
    densities,
    fingerprint_errors,
    four_centre,
    ours,
    stored_errors,
    title,
)
from oracles import integrals as reference
from sample import EVERY_CASE


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
@on("cpu-table", "cuda-group", "cuda-block")
def test_every_kind_of_shell_and_density(name: str, case: Case, algorithm: str, one_pass: bool) -> None:
    check(backend(name), bundle(case)[0], KINDS, algorithm=algorithm, one_pass=one_pass)


@pytest.mark.parametrize("one_pass", [True, False])
@on("cpu-table", "cuda-group", "cuda-block")
def test_f_functions(name: str, one_pass: bool) -> None:
    check(backend(name), bundle(WITH_F)[0], KINDS, algorithm="hgp", one_pass=one_pass)


@pytest.mark.parametrize("algorithm", ["hgp", "md"])
@on("cpu-lane", "cuda-thread")
def test_straight_line_kernels(name: str, algorithm: str) -> None:
    check(backend(name), bundle(Case("pure", "general", l_max=1))[0], KINDS, algorithm=algorithm, one_pass=True)


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether kernels count as compiled: an empty list means no."""
    known: list[bool] = []
    monkeypatch.setattr(CpuProgram, "ready", property(lambda self: bool(known)))
    return known


def eager_backend() -> CpuBackend:
    """A backend that compiles straight-line kernels for any amount of work."""
    device = CpuBackend(threads=2)
    device.traits = replace(device.traits, worth_compiling=0.0)
    return device


def test_later_calculations_use_straight_line_kernels(compiled: list[bool]) -> None:
    """They are compiled while general kernels run, and not used before the next calculation."""
    device, basis = eager_backend(), bundle(Case("pure", "general", l_max=1))[0]
    direct, D = DirectJK(basis, backend=device, threshold=1e-15, one_pass=True), densities(basis.nbf)["general"]
    with fixed_kernels():
        general = direct(D)
        digest: Any = direct.quartets._parts[0][0]
        assert digest._kernels["tables"].all()
        device.finish_compiling()
        compiled.append(True)
        for M, again in zip(general, direct(D), strict=True):
            assert np.array_equal(M, again)
        assert digest._kernels["tables"].all()
    for M, straight in zip(general, direct(D), strict=True):
        close(straight, M)
    assert not digest._kernels["tables"].any()


@pytest.mark.parametrize("broken", [False, True], ids=["compiled", "failed"])
def test_quartets_of_classes_worth_waiting_for_are_added_last(
    broken: bool, compiled: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kernels of two classes become ready, or fail, while the others run."""
    device, basis = eager_backend(), bundle(Case("pure", "general", l_max=1))[0]
    expected = DirectJK(basis, backend=CpuBackend(2, "table"), threshold=1e-15, one_pass=True)
    parts: list[int] = []
    launch_all = device.launch_all

    def watch(launches: Any) -> None:
        for launch in launches:
            if launch.program.source.entry == "digest":
                parts.append(int(np.count_nonzero(launch.arguments["bras"]["bras"])))
                compiled.append(True)
        launch_all(launches)

    def wait(self: Choice) -> None:
        assert len(parts) == 1
        self.straight.result().wait()

    monkeypatch.setattr(device, "launch_all", watch)
    monkeypatch.setattr(Choice, "finish", wait)
    if broken:
        monkeypatch.setattr(CpuProgram, "ready", property(lambda self: False))
        monkeypatch.setattr(CpuProgram, "failed", property(lambda self: bool(parts)))
    monkeypatch.setattr(digest_cpu, "is_worth_waiting", lambda backend, name, work, text: work > 1e6)
    with fixed_kernels():
        direct = DirectJK(basis, backend=device, threshold=1e-15, one_pass=True)
        D = densities(basis.nbf)["symmetric"]
        found, quartets = direct(D), direct.statistics.quartets
    digest: Any = direct.quartets._parts[0][0]
    assert len(parts) == 2 and min(parts) > 0 and sum(parts) == len(digest._kernels)
    straight = np.count_nonzero(digest._kernels["tables"] == 0)
    assert straight == (0 if broken else parts[1])
    for M, reference_M in zip(found, expected(D), strict=True):
        close(M, reference_M)
    assert quartets == expected.statistics.quartets


@cache
def few_shells(momenta: str) -> Basis:
    """Contracted shells, each at its own centre; capitals are Cartesian. The first one has two columns."""
    rng = np.random.default_rng(5)
    shells = []
    for atom, letter in enumerate(momenta):
        table = rng.uniform(0.3, 1.0, (2, 2 if atom == 0 else 1))
        exponents = rng.uniform(0.3, 3.0, 2)
        shells.append(Shell.from_table(atom, "spdfgh".index(letter.lower()), exponents, table, letter.islower()))
    return Basis.from_shells(shells, rng.normal(size=(len(shells), 3)))


@pytest.mark.parametrize("momenta, kind", [("sp", "general"), ("sD", "symmetric")])
@on("simt-group")
def test_group_kernels_on_simt(name: str, momenta: str, kind: str) -> None:
    check(backend(name), few_shells(momenta), (kind,), one_pass=True)


@pytest.mark.parametrize("momenta, kind", [("sp", "general"), ("sD", "symmetric"), ("gs", "symmetric")])
@on("simt-block", "cuda-block")
def test_blocks_of_threads(name: str, momenta: str, kind: str) -> None:
    check(backend(name), few_shells(momenta), (kind,), one_pass=True)


@on("simt-block", "simt-block-scratch", "cuda-block")
def test_long_contractions_by_blocks_of_threads(name: str) -> None:
    """More primitives than a block treats at once, in up to nine columns, and pairs of different lengths."""
    rng = np.random.default_rng(7)
    long = Shell.from_table(0, 0, 0.3 * 1.6 ** np.arange(9), rng.normal(size=(9, 3)), True)
    shells = [long, Shell.from_table(1, 1, [2.0, 0.8, 0.3], rng.normal(size=(3, 3)), True)]
    basis = Basis.from_shells(shells, rng.normal(size=(2, 3)))
    check(backend(name), basis, ("symmetric",), one_pass=False)
    check(backend(name), basis, ("symmetric",), one_pass=True)


@on("simt-thread")
def test_thread_kernels_on_simt(name: str) -> None:
    check(backend(name), few_shells("sp"), ("general",), algorithm="hgp", one_pass=True)


@on("cpu-table", "simt-group", "simt-block", "cuda-group", "cuda-block", "cuda-thread")
def test_a_single_shell(name: str) -> None:
    """(ss|ss) = 2 sqrt(a / pi) of a normalised s function."""
    basis = Basis.from_shells([Shell.from_table(0, 0, [0.8], [[1.0]], True)], [[0.1, 0.2, 0.3]])
    device = backend(name)
    assert device is not None
    for one_pass in (True, False):
        for M in ours(DirectJK(basis, backend=device, one_pass=one_pass), np.array([[2.0]])):
            close(M, np.array([[4.0 * np.sqrt(0.8 / np.pi)]]))


# -------------------------------------------------------------------------------------------- stored values

LONG = ("alkane_18", "cc-pv5z", "cc-pv6z")


def marks(name: str) -> list[Any]:
    return [pytest.mark.slow] if any(part in name for part in LONG) else []


def systems(device: str) -> list[Any]:
    """All systems; without a GPU the longest one only with CUANTO_EVERY_CASE=1."""
    chosen = [system for system in SYSTEMS if EVERY_CASE or device == "cuda" or system.molecule != "alkane_18"]
    gpu = [pytest.mark.gpu] if device == "cuda" else []
    return [
        pytest.param(system, device, marks=[*marks(str(system)), *gpu], id=f"{system}-{device}") for system in chosen
    ]


def records() -> list[Any]:
    return [pytest.param(record, marks=marks(title(record)), id=title(record)) for record in four_centre()]


@pytest.mark.parametrize("record", records())
@DEVICES
def test_fingerprints(record: Record, device: str) -> None:
    errors = fingerprint_errors(record, device)
    assert max(errors.values()) < EXACT, errors


@pytest.mark.parametrize("system, device", [*systems("cpu"), *systems("cuda")])
def test_against_pyscf(system: System, device: str) -> None:
    errors = stored_errors(system, device)
    assert max(errors.values()) < EXACT, errors


# ------------------------------------------------------------------------------------------------- CUDA text

STRAIGHT = KernelSpec("coulomb", Shells((1, 0)), Shells((1, 1)), "hgp", "thread", consumer="list")
TEXTS = {
    "select": cuda_select(),
    "digest any": cuda_digest("double", None),
    "digest any float": cuda_digest("float", None),
    "digest 1 3 3": cuda_digest("double", (1, 3, 3)),
    "digest 6 6 6": cuda_digest("float", (6, 6, 6)),
    "group": general_source("group", "double", "list"),
    "group float": general_source("group", "float", "list"),
    "expand": cuda_expand("double"),
    "expand float": cuda_expand("float"),
    "block": general_source("quartet_block", "double", "list"),
    "block float": general_source("quartet_block", "float", "list"),
    "straight": source_of(STRAIGHT),
    "straight md": source_of(replace(STRAIGHT, algorithm="md", columns=2)),
    "straight float": source_of(replace(STRAIGHT, real="float")),
}


@pytest.mark.parametrize("name", TEXTS)
def test_nvrtc_compiles(name: str) -> None:
    source = TEXTS[name]
    cubin, log = compile_nvrtc(source.text, "sm_90")
    assert cubin.startswith(b"\x7fELF") and source.entry.encode() in cubin
    assert "warning" not in log, log
