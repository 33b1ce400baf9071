"""The schedules of Fujii et al. (2024): a block of threads for an integral or for a quartet of shells."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest

from bundle import Case, Planner, bundle, on
from cuanto import integrals
from cuanto.backends import Backend
from cuanto.backends.base import Job
from cuanto.backends.cpu.backend import CpuBackend
from cuanto.backends.cuda.backend import CudaBackend
from cuanto.backends.cuda.launch import blocks_of
from cuanto.backends.cuda.nvrtc import compile_nvrtc
from cuanto.backends.simt.backend import SimtBackend
from cuanto.basis import Basis
from cuanto.errors import InputError
from cuanto.kernels import md_blocks
from cuanto.kernels.build import general_source
from cuanto.kernels.describe import describe
from cuanto.kernels.spec import BLOCK_SCHEDULES, SCHEDULES, Shells, long_name, schedule_name
from four_centre_cases import GENERAL, SMALL, assert_blocks, block, expected, four_shells, ours
from oracle import reference_block
from tolerances import INTEGRAL_ABS, INTEGRAL_REL

TWO = ("block-per-integral", "block-per-quartet")


@cache
def device(name: str) -> Backend:
    kind, schedule = name.split(":")
    return SimtBackend(schedule) if kind == "simt" else CudaBackend(schedule)


# ------------------------------------------------------------------------------------------- shared memory


def recursion(K: int) -> dict[int, set[tuple[int, int, int, int]]]:
    """Everything that R_tuv^0 of all degrees to K need, by batches k = t + u + v; each reads the two before it only."""
    batches: dict[int, set[tuple[int, int, int, int]]] = {k: set() for k in range(K + 1)}
    wanted = [(t, u, v, 0) for t, u, v in product(range(K + 1), repeat=3) if t + u + v <= K]
    while wanted:
        t, u, v, n = element = wanted.pop()
        if element in batches[t + u + v]:
            continue
        batches[t + u + v].add(element)
        for x in range(3):
            for step in (1, 2):
                lower = [t, u, v]
                lower[x] -= step
                if lower[x] >= 0:
                    assert t + u + v - sum(lower) in (1, 2)
                    wanted.append((*lower, n + 1))  # type: ignore[arg-type]
    return {k: {e for e in batch if e[3] <= K - k} for k, batch in batches.items()}


def full_store(K: int) -> int:
    """Numbers to store without triple buffering: those of all batches."""
    return (K + 1) * (K + 2) * (K + 3) * (K + 4) // 24


@pytest.mark.parametrize("K", range(11))
def test_batches_equal_those_of_the_recursion(K: int) -> None:
    batches = recursion(K)
    assert [len(batches[k]) for k in range(K + 1)] == [md_blocks.batch_size(K, k) for k in range(K + 1)]
    assert full_store(K) == sum(len(batch) for batch in batches.values())
    kept = sum(element[3] == 0 for batch in batches.values() for element in batch)
    assert md_blocks.hermite_count(K) == kept == len(md_blocks.tuple_table(K))
    assert md_blocks.triple_buffer(K) == 3 * max(len(batch) for batch in batches.values()) + kept


def test_figures_2_and_3_of_the_paper() -> None:
    """Triple buffering needs less memory from K = 7 on, and 0.344 of the full store at K = 24."""

    def counted(K: int) -> tuple[int, int]:
        tuples = [sum(1 for t in range(k + 1) for _ in range(k - t + 1)) for k in range(K + 1)]
        batches = [tuples[k] * (K - k + 1) for k in range(K + 1)]
        return 3 * max(batches) + sum(tuples), sum(batches)

    for K in range(25):
        assert counted(K) == (md_blocks.triple_buffer(K), full_store(K))
    assert [K for K in range(25) if md_blocks.triple_buffer(K) < full_store(K)] == list(range(7, 25))
    ratios = [md_blocks.triple_buffer(K) / full_store(K) for K in range(7, 25)]
    assert min(ratios) == ratios[-1] == 7056 / 20475  # 0.3446, in the paper 0.344


def job(momenta: tuple[int, int, int, int], pure: bool, columns: int = 1) -> Job:
    sides = [Shells(pair, (pure, pure)) for pair in (momenta[:2], momenta[2:])]
    return Job("coulomb", *sides, "md", columns, 3, 5, 1.0, {"out": np.zeros(1)})


@pytest.mark.parametrize("schedule", BLOCK_SCHEDULES)
def test_shared_memory_is_what_the_formula_says(schedule: str) -> None:
    for momenta in ((0, 0, 0, 0), (2, 1, 3, 0), (5, 5, 5, 5)):
        launch = Planner(schedule).plan(job(momenta, pure=False, columns=4))
        K = sum(momenta)
        assert launch.arguments["room"] == md_blocks.largest_batch(K)
        rest = launch.scratch // 8 - md_blocks.triple_buffer(K)
        assert 0 < rest < full_store(K) + 7000
        assert launch.scratch <= 99 * 1024  # available to a block on every GPU since Ampere
        assert launch.program.source.threads in (32, 64, 128, 256)


def test_blocks_are_counted() -> None:
    request = job((2, 1, 1, 0), pure=True, columns=2)
    launches = [Planner(schedule).plan(request) for schedule in BLOCK_SCHEDULES]
    assert [blocks_of(launch.program.source, launch.items) for launch in launches] == [3 * 5 * 2 * (5 * 3) * 3, 3 * 5]


def test_auto_takes_blocks_where_tables_would_be_huge() -> None:
    """McMurchie-Davidson between pairs of high angular momenta, the algorithm of ill-conditioned pairs."""

    def entry(request: Job, schedule: str = "auto") -> str:
        return Planner(schedule).plan(request).program.source.entry

    assert entry(job((5, 5, 5, 5), pure=True)) == "quartet_block_kernel"
    assert entry(job((1, 1, 1, 0), pure=True)) == "coulomb_pp_ps_md_thread_double_1"
    assert entry(job((3, 2, 2, 1), pure=True), "group") == "group_kernel"


# ------------------------------------------------------------------------------------------------ integrals


@pytest.mark.parametrize("form", ["pure", "cartesian"])
@pytest.mark.parametrize("contraction", ["primitive", "contracted"])
@on("simt:block-per-quartet", "cuda:block-per-quartet", "cuda:block-per-integral")
def test_all_classes_to_d(name: str, form: str, contraction: str) -> None:
    basis, exact = expected(Case(form, contraction, l_max=2))
    assert_blocks(ours(device(name), basis), exact, basis)


@on("simt:block-per-integral")
def test_s_and_p_by_integrals(name: str) -> None:
    basis, exact = expected(SMALL[0])
    assert_blocks(ours(device(name), basis), exact, basis)


@on("simt:block-per-quartet", "cuda:block-per-quartet", "cuda:block-per-integral")
def test_many_columns(name: str) -> None:
    basis, exact = expected(GENERAL)
    assert_blocks(ours(device(name), basis), exact, basis)


HIGH = [(5, 0, 0, 0), (3, 2, 2, 1), (4, 1, 3, 3), (5, 0, 5, 0), (5, 4, 1, 1), (5, 5, 4, 0)]
FEW_INTEGRALS = [(5, 0, 0, 0), (3, 0, 2, 1), (4, 0, 1, 1), (0, 0, 5, 1)]


@pytest.mark.parametrize("pure", [True, False], ids=["pure", "cartesian"])
@pytest.mark.parametrize("momenta", HIGH, ids=str)
@on("simt:block-per-quartet", "cuda:block-per-quartet", "cuda:block-per-integral")
def test_high_momenta(name: str, momenta: tuple[int, int, int, int], pure: bool) -> None:
    assert_same_block(name, momenta, pure, 1)


@pytest.mark.parametrize("pure", [True, False], ids=["pure", "cartesian"])
@pytest.mark.parametrize("momenta", FEW_INTEGRALS, ids=str)
def test_high_momenta_by_integrals(momenta: tuple[int, int, int, int], pure: bool) -> None:
    assert_same_block("simt:block-per-integral", momenta, pure, 2 if sum(momenta) < 6 else 1)


@pytest.mark.parametrize("pure", [True, False], ids=["pure", "cartesian"])
@on("simt:block-per-quartet", "cuda:block-per-quartet", "cuda:block-per-integral")
def test_the_largest_class(name: str, pure: bool) -> None:
    """(hh|hh): sums in global memory, 2 x 20 batches in turn."""
    assert_same_block(name, (5, 5, 5, 5) if pure or name.startswith("cuda") else (5, 5, 5, 2), pure, 1)


def assert_same_block(name: str, momenta: tuple[int, int, int, int], pure: bool, primitives: int) -> None:
    shells, centres = four_shells(momenta, pure, primitives)
    got = block(device(name), shells, centres)
    exact = reference_block("4c", shells, centres)
    assert np.abs(got - exact).max() <= INTEGRAL_REL * np.abs(exact).max() + INTEGRAL_ABS


@pytest.mark.parametrize("schedule", TWO)
def test_two_and_three_centres(schedule: str) -> None:
    """A single shell is a pair with an s function of exponent zero."""
    basis, aux = bundle(Case("pure", "primitive", l_max=1, aux_max=3))
    simt, cpu = SimtBackend(schedule), CpuBackend(schedule="table")
    for function, arguments in ((integrals.eri_2c, (aux,)), (integrals.eri_3c, (basis, aux))):
        got, wanted = (b.to_host(function(*arguments, backend=b)) for b in (simt, cpu))  # type: ignore[operator]
        np.testing.assert_allclose(got, wanted, rtol=0, atol=INTEGRAL_REL * np.abs(wanted).max())


@pytest.mark.parametrize("schedule", TWO)
def test_other_operators_use_the_general_kernel(schedule: str) -> None:
    basis, _ = bundle(Case(l_max=1, aux_max=1))
    backends = SimtBackend(schedule), CpuBackend(schedule="table")
    got, wanted = (b.to_host(integrals.overlap(basis, backend=b)) for b in backends)
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-14)


def test_too_high_a_momentum_is_refused() -> None:
    basis, _ = bundle(Case(l_max=1))
    high = Basis.from_shells([replace(basis.shells[0], l=6)], basis.R_ax[:1])
    with pytest.raises(InputError, match="l = 0 to 5, not 6"):
        integrals.eri_4c(high, backend=SimtBackend("block-per-quartet"))


# ---------------------------------------------------------------------------------------------------- names


def test_names_and_their_short_forms() -> None:
    for target, names in SCHEDULES.items():
        for name, short in names.items():
            assert schedule_name(name, target) == schedule_name(short, target) == short
            assert long_name(short) == name
        assert schedule_name("auto", target) == "auto"


@pytest.mark.parametrize("make", [SimtBackend, lambda name: describe("4c", (1, 0, 1, 0), target="cuda", schedule=name)])
def test_unknown_name_lists_the_choices(make: Any) -> None:
    with pytest.raises(
        InputError, match=r"unknown schedule 'warp'.*choose auto, quartet-per-thread.*block-per-quartet$"
    ):
        make("warp")


@pytest.mark.parametrize("schedule", TWO)
def test_descriptions_of_block_schedules(schedule: str) -> None:
    found = describe("4c", (1, 0, 1, 0), target="cuda", schedule=schedule)
    assert found.spec.algorithm == "md" and ("algorithm, schedule", f"md, {schedule}") in found.summary()
    with pytest.raises(InputError, match="McMurchie-Davidson"):
        describe("4c", (1, 0, 1, 0), "hgp", "cuda", schedule)
    with pytest.raises(InputError, match="Coulomb"):
        describe("overlap", (1, 0), target="cuda", schedule=schedule)


@pytest.mark.parametrize("real", ["double", "float"])
@pytest.mark.parametrize("schedule", BLOCK_SCHEDULES)
def test_nvrtc_compiles(schedule: str, real: str) -> None:
    cubin, log = compile_nvrtc(general_source(schedule, real).text, "sm_90")
    assert cubin[:4] == b"\x7fELF" and "warning" not in log, log
