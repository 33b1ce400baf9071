"""NVRTC compiles the generated CUDA text: a sample that covers every algorithm, schedule, operator and size.

All classes to l = 3 (auxiliary 4, four centres 2) are compiled by `tools/check_cuda.py`; here its list is checked for
completeness.
"""

from __future__ import annotations

import importlib.util
import re
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from bundle import Case, Planner, bundle, expand_kernel_macro
from cuanto import integrals
from cuanto.backends.base import Job
from cuanto.backends.cuda.nvrtc import compile_nvrtc
from cuanto.backends.kinds import kind_of
from cuanto.kernels.build import cost_of, source_of, unrolled
from cuanto.kernels.cost import Cost
from cuanto.kernels.spec import BLOCK_SCHEDULES, KernelSpec, Shells
from cuanto.kernels.text import Source
from paths import ROOT

TOOLS = ROOT / "tools"
CUBIN = b"\x7fELF"


def spec(operator: str, bra: str, ket: str, algorithm: str, schedule: str, **more: Any) -> KernelSpec:
    """Shells by letter; capitals are cartesian."""

    def shells(letters: str) -> Shells:
        return Shells(tuple("spdfghi".index(x.lower()) for x in letters), tuple(x.islower() for x in letters))

    return KernelSpec(operator, shells(bra), shells(ket), algorithm, schedule, **more)


SAMPLE = [
    spec("overlap", "f", "d", "os", "thread"),
    spec("overlap", "s", "s", "os", "thread", columns=16),
    spec("kinetic", "d", "D", "os", "thread"),
    spec("dipole", "p", "d", "os", "thread", columns=2),
    spec("quadrupole", "d", "p", "os", "thread"),
    spec("coulomb", "ss", "s", "hgp", "thread", columns=16),
    spec("coulomb", "pp", "p", "md", "thread"),
    spec("coulomb", "pp", "d", "hgp", "thread", real="float"),
    spec("coulomb", "Ds", "P", "hgp", "thread", columns=2),
    spec("coulomb", "fs", "F", "md", "thread"),
    spec("coulomb", "dd", "d", "hgp", "thread"),
    spec("coulomb", "ff", "f", "hgp", "thread"),
    spec("coulomb", "g", "f", "md", "thread"),
    spec("coulomb", "i", "h", "hgp", "thread"),
    spec("coulomb", "ps", "pp", "md", "thread"),
    spec("coulomb", "pp", "DD", "hgp", "thread"),
    KernelSpec("coulomb", Shells((5,), hermite=True), Shells((3,)), "md", "thread"),
    spec("coulomb", "hh", "i", "md", "group"),
    spec("coulomb", "hh", "i", "hgp", "group", real="float"),
]
SIZES = (100, 500, 2000)
"""Numbers of operations that divide texts into four ranges of size, each of which must occur in the sample."""


def class_cost(kernel: KernelSpec) -> Cost:
    return cost_of(kernel.operator, kernel.bra, kernel.ket, kernel.algorithm)


def check_cuda() -> ModuleType:
    found = importlib.util.spec_from_file_location("check_cuda", TOOLS / "check_cuda.py")
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@pytest.mark.parametrize("kernel", SAMPLE, ids=lambda kernel: kernel.name)
def test_nvrtc_compiles(kernel: KernelSpec) -> None:
    source = source_of(kernel)
    cubin, log = compile_nvrtc(source.text, "sm_90")
    assert cubin.startswith(CUBIN) and source.entry.encode() in cubin
    assert "warning" not in log, log


def test_sample_covers_every_kind() -> None:
    assert {kernel.operator for kernel in SAMPLE} == {"overlap", "kinetic", "dipole", "quadrupole", "coulomb"}
    assert {kernel.algorithm for kernel in SAMPLE} == {"os", "hgp", "md"}
    assert {kernel.schedule for kernel in SAMPLE} == {"thread", "group"}
    assert {kernel.real for kernel in SAMPLE} == {"double", "float"}
    assert {len(kernel.bra.l) for kernel in SAMPLE if kernel.operator == "coulomb"} == {1, 2}
    assert {len(kernel.ket.l) for kernel in SAMPLE if kernel.operator == "coulomb"} == {1, 2}
    straight = [class_cost(kernel) for kernel in SAMPLE if kernel.schedule == "thread"]
    assert all(unrolled("cuda", cost) for cost in straight)
    sizes = {int(np.searchsorted(SIZES, cost.text_operations)) for cost in straight}
    assert sizes == set(range(len(SIZES) + 1))
    assert not any(unrolled("cuda", class_cost(kernel)) for kernel in SAMPLE if kernel.schedule == "group")


@pytest.mark.parametrize("kernel", SAMPLE, ids=lambda kernel: kernel.name)
def test_text_is_a_complete_kernel(kernel: KernelSpec) -> None:
    source = source_of(kernel)
    text = expand_kernel_macro(source.text)
    assert text.count('extern "C"') == text.count("__global__") == 1
    assert "<<<" not in text and "#include" not in text
    assert re.search(rf"__global__[^;{{]*\b(ENTRY|{source.entry})\b", text)


@pytest.fixture(scope="module")
def jobs() -> list[Job]:
    """All jobs of the integrals of shells up to f (auxiliary ones up to g) on a GPU."""
    recorder = Planner()
    for contraction in ("primitive", "general"):
        basis, aux = bundle(Case(contraction=contraction, l_max=3, aux_max=4))
        for operator in (integrals.overlap, integrals.kinetic, integrals.dipole):
            operator(basis, backend=recorder)
        integrals.nuclear(basis, charges=[1.0], positions=[[0.0, 0.0, 0.0]], backend=recorder)
        for algorithm in ("auto", "hgp", "md"):
            integrals.eri_2c(aux, algorithm=algorithm, backend=recorder)
            integrals.eri_3c(basis, aux, algorithm=algorithm, backend=recorder, threshold=0.0)
    return recorder.jobs


@pytest.fixture(scope="module")
def four_centre_jobs() -> list[Job]:
    """All jobs of (pq|rs) of shells up to d on a GPU."""
    recorder = Planner()
    for form, contraction, geometry, exponents in (
        ("pure", "primitive", "near", "normal"),
        ("pure", "contracted", "distant", "mixed"),
        ("cartesian", "contracted", "near", "normal"),
    ):
        basis, _ = bundle(Case(form, contraction, geometry, exponents, l_max=2))
        integrals.eri_4c(basis, packed=True, backend=recorder, threshold=0.0)
    return recorder.jobs


def texts(job: Job) -> list[Source]:
    """The straight-line kernel if it would be used, and the general one."""
    schedules = ("thread", "group") if kind_of(job).straight else ("group",)
    return [Planner(schedule).plan(job).program.source for schedule in schedules]


def test_check_compiles_every_class_that_is_asked_for(jobs: list[Job], four_centre_jobs: list[Job]) -> None:
    module = check_cuda()
    job_classes = {(job.operator, job.bra, job.ket, job.algorithm) for job in jobs}
    assert job_classes == set(module.classes(3, 4))
    four = {(job.operator, job.bra, job.ket, job.algorithm) for job in four_centre_jobs}
    assert four <= set(module.four_centre_classes(2))
    assert {algorithm for _, _, _, algorithm in four} == {"hgp", "md"}
    kernels = module.specs(3, 4)
    compiled = {source_of(kernel).hash for kernel in kernels}
    assert len(compiled) == len(kernels)
    most = max(job.columns for job in jobs)
    fewest_and_most = [job for job in (*jobs, *four_centre_jobs) if job.columns in (1, most)]
    missing = {source.entry for job in fewest_and_most for source in texts(job) if source.hash not in compiled}
    assert not missing


def test_check_covers_every_schedule() -> None:
    kernels = check_cuda().specs(3, 4)
    assert {kernel.schedule for kernel in kernels} == {"thread", "group", *BLOCK_SCHEDULES}
    for schedule in ("group", *BLOCK_SCHEDULES):
        assert [kernel.real for kernel in kernels if kernel.schedule == schedule] == ["double", "float"]
    assert all(unrolled("cuda", class_cost(kernel)) for kernel in kernels if kernel.schedule == "thread")


def test_check_reports_what_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    module = check_cuda()
    kernel = spec("overlap", "s", "s", "os", "thread")
    assert module.compile_spec(kernel, "sm_80")[1] == ""
    broken = Source("__global__ void f() { wrong_line(); }", "f", "cuda", ())
    monkeypatch.setattr(module, "source_of", lambda spec: broken)
    assert "wrong_line" in module.compile_spec(kernel, "sm_80")[1]
