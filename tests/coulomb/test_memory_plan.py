"""The memory plan of density fitting: stored blocks, the limit, and the text of the plan."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuanto import Basis, Molecule, core_potentials, memory
from cuanto.backends import get_backend
from cuanto.backends.cpu.backend import CpuBackend
from cuanto.coulomb.builders import make_builders
from cuanto.coulomb.fitting import FittedJK
from cuanto.coulomb.fitting_blocks import BlockTensor
from cuanto.coulomb.fitting_packed import PackedRows
from cuanto.coulomb.fitting_rows import PAIR_BOUND
from cuanto.coulomb.memory import COLUMNS, FEW_COLUMNS, Sizes, make_plan
from cuanto.errors import InputError
from cuanto.log import Timings
from cuanto.memory import MIB, Budget
from cuanto.methods import Context, Request
from cuanto.methods.context import builders_for, core_hamiltonian, make_terms
from cuanto.methods.model import Model
from cuanto.options import CalculationOptions
from fitting_cases import DATA, Array, Device, budget_of, molecule, random_orbitals

SIZES = Sizes(blocks=(300, 500, 400), fixed=100, column=2, work=10, naux=50, widest=7)


@pytest.fixture(autouse=True)
def basis_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUANTO_BASIS_PATH", str(DATA / "basis"))


def test_everything_is_stored_if_it_fits() -> None:
    """With few orbitals at a time if memory is short; X and the copies of the set-up are not needed together."""
    assert SIZES.in_core == 100 + 1200 + FEW_COLUMNS * 2 == replace(SIZES, work=FEW_COLUMNS * 2).in_core
    assert replace(SIZES, work=90).in_core == 100 + 1200 + 90 and replace(SIZES, metric=2000).in_core == 2000
    plan = make_plan(SIZES, SIZES.stored(COLUMNS))
    assert (plan.mode, plan.kept, plan.columns, plan.aux_at_once) == ("in-core", 3, COLUMNS, 50)
    more = replace(SIZES, columns=3 * COLUMNS + 6, pass_seconds=0.5)
    three = make_plan(more, SIZES.stored(COLUMNS) + 9)
    assert (three.columns, three.seconds) == (COLUMNS + 2, 1.5)  # three passes of equal size
    assert three.expected == SIZES.stored(COLUMNS) + 4
    assert make_plan(more, 10 * SIZES.in_core).columns == 3 * COLUMNS + 6
    assert make_plan(SIZES, SIZES.in_core).columns == FEW_COLUMNS


def test_less_memory_stores_less() -> None:
    limits = range(SIZES.in_core, 180, -1)
    plans = [make_plan(SIZES, limit) for limit in limits]
    assert {plan.mode for plan in plans} == {"in-core", "blocked", "direct"}
    assert all(one.kept >= other.kept for one, other in pairwise(plans))
    assert plans[-1].mode == "direct" and plans[-1].columns >= 1


def test_too_little_memory_is_refused() -> None:
    sizes = Sizes(tuple(MIB * b for b in SIZES.blocks), 100 * MIB, 2 * MIB, 10 * MIB, 50, 7)
    with pytest.raises(InputError, match=r"needs 172 MiB at least, 171 MiB are allowed: raise max_memory") as refused:
        make_plan(sizes, 171 * MIB)
    assert "\n" not in str(refused.value)
    assert make_plan(sizes, 172 * MIB).mode == "direct"
    with pytest.raises(InputError, match="needs 180 MiB at least"):
        make_plan(replace(sizes, metric=180 * MIB), 179 * MIB)
    with pytest.raises(InputError, match="needs 177 MiB at least"):
        make_plan(replace(sizes, engine=5 * MIB), 176 * MIB)


def test_j_alone_needs_no_blocks() -> None:
    sizes = replace(SIZES, column=0, engine=50)
    plan = make_plan(sizes, 150)
    assert (plan.mode, plan.kept, plan.expected) == ("direct", 0, 150)
    with pytest.raises(InputError, match="at least"):
        make_plan(sizes, 149)
    assert make_plan(sizes, sizes.in_core).mode == "in-core"


def test_all_orbitals_are_transformed_at_once_if_integrals_are_recomputed() -> None:
    """A second pass would recompute all integrals, which costs more than storing blocks saves."""
    sizes = replace(SIZES, columns=100, column=3, call_bytes=0)
    plan = make_plan(sizes, 1000)
    assert (plan.mode, plan.columns, plan.kept, plan.aux_at_once) == ("blocked", 100, 1, 29)
    plan = make_plan(sizes, 700)
    assert (plan.mode, plan.columns, plan.kept) == ("direct", 100, 0)
    assert make_plan(sizes, 300).columns == 34  # three passes of equal size


def test_few_large_slices_are_recomputed_if_calls_take_long() -> None:
    plan = make_plan(replace(SIZES, columns=100, column=3, call_bytes=500), 1000)
    assert (plan.mode, plan.columns, plan.kept, plan.aux_at_once) == ("direct", 100, 0, 50)


@given(
    st.lists(st.integers(1, 10**6), min_size=1, max_size=30),
    st.integers(0, 10**6),
    st.integers(0, 10**5),
    st.integers(0, 10**6),
    st.integers(1, 500),
    st.integers(1, 10**8),
)
def test_expected_memory_is_within_the_limit(
    blocks: list[int], fixed: int, column: int, work: int, naux: int, limit: int
) -> None:
    sizes = Sizes(tuple(blocks), fixed, column, work, naux, min(naux, 9))
    try:
        plan = make_plan(sizes, limit)
    except InputError:
        assert limit < fixed + max(blocks) + column
        return
    assert plan.expected <= limit
    assert 0 <= plan.kept <= len(blocks)
    if plan.exchange:
        assert plan.columns >= 1 and sizes.widest <= plan.aux_at_once <= naux


def test_text_of_the_plan() -> None:
    assert str(make_plan(SIZES, 10**9)).startswith("in-core: all integrals kept")
    blocked = str(make_plan(SIZES, 1000))
    assert blocked.startswith("blocked: J engine, for K 1 of 3 blocks kept") and "in-core needs" in blocked
    assert str(make_plan(SIZES, 250)).startswith("direct: J engine, integrals for K recomputed in every build")
    assert str(make_plan(replace(SIZES, column=0), 250)).startswith("direct: J engine, 0 of 0 MiB (in-core needs")


def test_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    device = CpuBackend()
    free = device.memory()[0]
    assert 0.5 * free < Budget(device).available() < free
    monkeypatch.setattr(memory, "_resident", lambda: 300 * MIB - memory.PROGRAM)
    assert Budget(device, 1000 * MIB).available() == 700 * MIB
    # Arrays on a GPU are not in the process's memory.
    assert Budget(get_backend("simt"), 1000 * MIB).available() == 1000 * MIB
    small = Budget(device, 200 * MIB)
    assert small.available() == 0
    message = "max_memory of 200 MiB is less than the 300 MiB of the program itself: give at least 316 MiB, more for"
    with pytest.raises(InputError, match=message) as no:
        small.require_room()
    assert "\n" not in str(no.value)
    with pytest.raises(InputError, match=message):
        small.reserve("core potentials", MIB)
    with pytest.raises(InputError, match=r"max_memory of 4 bytes is less than .*, such as max_memory=4e9 \(4 GB\)"):
        Budget(device, 4).require_room()
    for nonsense in (0, -1.0, float("nan")):
        with pytest.raises(InputError, match="positive number of bytes"):
            Budget(device, nonsense)


def test_reservations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has a name; memory used without or beyond a reservation is subtracted as well."""
    resident = [0]
    monkeypatch.setattr(memory, "_resident", lambda: resident[0] * MIB - memory.PROGRAM)
    budget = Budget(CpuBackend(), 1000 * MIB)
    budget.reserve("integrals", 300 * MIB)
    budget.reserve("integrals", 100 * MIB)
    budget.reserve("grid", 200 * MIB)
    assert budget.available() == 400 * MIB and budget.reserved == {"integrals": 400 * MIB, "grid": 200 * MIB}
    with pytest.raises(InputError, match="values: 401 MiB are needed, 400 MiB are left: raise max_memory"):
        budget.reserve("values", 401 * MIB)
    resident[0] = 500  # part of the reserved memory
    assert budget.available() == 400 * MIB
    resident[0] = 700  # more than is reserved
    assert budget.available() == 300 * MIB
    budget.release("integrals")
    budget.release("nothing")
    assert budget.available() == 300 * MIB
    resident[0] = 0
    assert budget.available() == 800 * MIB
    budget.record("J engine", 900 * MIB)  # recorded even beyond the limit
    assert budget.reserved["J engine"] == 900 * MIB and budget.available() == 0
    resident[0] = 300
    assert Budget(CpuBackend(), 1000 * MIB).available() == 700 * MIB
    assert Budget(CpuBackend(), 1000 * MIB, whole_process=False).available() == 1000 * MIB


RESIDENT = """
import numpy as np
from cuanto import memory
before = memory._resident()
block = np.ones(50 * 2**20 // 8)
print(memory._resident() - before)
"""


def test_resident_memory_equals_that_of_the_process() -> None:
    """A new process is used, which has no freed memory to reuse."""
    done = subprocess.run([sys.executable, "-c", RESIDENT], capture_output=True, text=True, check=True)
    assert 40 * MIB < int(done.stdout) < 60 * MIB


@cache
def butane() -> tuple[Basis, Basis]:
    mol = molecule("alkane_04")
    return Basis("cc-pvdz", mol), Basis("cc-pvdz-jkfit", mol)


@cache
def all_stored(kind: str, device: type[CpuBackend | Device]) -> tuple[int, tuple[Array | None, Array | None]]:
    """Bytes of a fit of butane that stores all integrals, and its J and K."""
    basis, aux = butane()
    C_spi, D_spq = random_orbitals(basis.nbf, 40, spins=2)
    fit = FittedJK(basis, aux, backend=device(), kind=kind)
    assert fit.plan.mode == "in-core"
    return fit.plan.in_core, fit(D_spq, C_spi, True, kind == "jk")


@pytest.mark.parametrize("kind", ["jk", "j"])
@pytest.mark.parametrize("device", [CpuBackend, Device])
@pytest.mark.parametrize("share", [0.7, 0.5, 0.4])
def test_every_mode_has_the_same_result(kind: str, device: type[CpuBackend | Device], share: float) -> None:
    basis, aux = butane()
    C_spi, D_spq = random_orbitals(basis.nbf, 40, spins=2)
    in_core, whole = all_stored(kind, device)
    less = FittedJK(basis, aux, backend=device(), kind=kind, budget=budget_of(share * in_core, device()))
    packed = kind == "jk" and device is Device
    assert isinstance(less.tensor, PackedRows if packed else BlockTensor)
    assert (less.plan.mode == "in-core") == (packed and share > 0.45)  # a GPU stores each pair once if memory is short
    if less.plan.mode != "in-core":
        assert "J engine" in less.timings.seconds and less.plan.kept < less.plan.blocks
    # Rows leave out negligible pairs of shells; the CPU and the GPU apply different bounds.
    tolerance = 20.0 * PAIR_BOUND if kind == "jk" else 1e-12
    for mine, theirs in zip(less(D_spq, C_spi, True, kind == "jk"), whole, strict=True):
        if theirs is None:
            assert mine is None and kind == "j"
        else:
            assert np.abs(mine - theirs).max() < tolerance * max(1.0, np.abs(theirs).max())


@pytest.mark.parametrize("device", [CpuBackend, Device])
def test_two_fits_share_the_memory(device: type[CpuBackend | Device], monkeypatch: pytest.MonkeyPatch) -> None:
    """Range-separated functionals have two fits."""
    monkeypatch.setattr(memory, "_resident", lambda: -memory.PROGRAM)
    hydrogen = Molecule(["H", "H"], [[0.0, 0.0, 0.0], [0.0, 0.0, 1.4]])
    basis, aux = Basis("cc-pvdz", hydrogen), Basis("cc-pvdz-jkfit", hydrogen)
    options = CalculationOptions(fitting="jk", auxbasis=aux, max_memory=1000 * MIB)
    for method in ("wb97x", "b3lyp"):
        backend = device()
        budget = Budget(backend, 1000 * MIB)
        omega = Model.of(method, hydrogen).omega
        result = make_builders(basis, backend, options, Timings(), omega=omega, budget=budget)
        first, second = result.coulomb, result.long_range
        assert isinstance(first, FittedJK)
        if method == "b3lyp":
            assert second is None and first.plan.limit == 1000 * MIB
            continue
        assert isinstance(second, FittedJK) and first.plan.limit == 500 * MIB
        assert second.plan.limit == 1000 * MIB - first.plan.expected  # the memory that the first fit does not need
        assert set(budget.reserved) == {"fitted integrals", "fitted integrals at long range"}


@pytest.mark.parametrize(
    ("method", "fitting", "more"),
    [
        ("rhf", "jk", ["fitted integrals"]),
        ("b3lyp", "none", ["grid", "four-centre integrals", "values of functions"]),
        ("wb97x", "jk", ["grid", "fitted integrals", "fitted integrals at long range", "values of functions"]),
    ],
)
def test_everything_large_reserves_by_name(method: str, fitting: str, more: list[str]) -> None:
    hydrogen = Molecule(["H", "H"], [[0.0, 0.0, 0.0], [0.0, 0.0, 1.4]])
    grid = {"level": (10, 26), "store": "keep"} if method != "rhf" else None
    context = Context.of(Request.of(hydrogen, method, "cc-pvdz", fitting=fitting, backend="cpu", grid=grid))
    make_terms(context, core_hamiltonian(context), builders_for(context))
    assert sorted(context.budget.reserved) == sorted(["matrices of the SCF", *more])
    assert all(size > 0 for size in context.budget.reserved.values())


def test_core_potentials_reserve_their_matrix_before_integrals() -> None:
    iodide = Molecule(["H", "I"], [[0.0, 0.0, 0.0], [0.0, 0.0, 3.0]])
    context = Context.of(Request.of(iodide, "rhf", "def2-svp", fitting="none", storage="direct", backend="cpu"))
    builders = builders_for(context)
    assert context.budget.reserved["core potentials"] == 8 * context.basis.nbf**2
    make_terms(context, core_hamiltonian(context), builders)
    assert context.budget.reserved["core potentials"] == 8 * context.basis.nbf**2
    with pytest.raises(InputError, match=r"core potentials: .* are needed, 0 MiB are left"):
        core_potentials.matrix(context.basis, backend="cpu", budget=budget_of(100))


@pytest.mark.parametrize("kind, share", [("jk", 1.0), ("jk", 0.75), ("jk", 0.5), ("jk", 0.35), ("j", 1.0), ("j", 0.5)])
@pytest.mark.parametrize("device", [CpuBackend, Device])
def test_no_more_is_allocated_than_expected(kind: str, share: float, device: type[CpuBackend | Device]) -> None:
    """Measured by `tracemalloc`, which sees NumPy's arrays but not kernels, libraries and their buffers."""
    basis, aux = butane()
    C_spi, D_spq = random_orbitals(basis.nbf, 17)
    limit = share * all_stored(kind, device)[0]
    tracemalloc.start()
    try:
        fit = FittedJK(basis, aux, backend=device(), kind=kind, budget=budget_of(limit, device()))
        fit(D_spq, C_spi, True, kind == "jk")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (fit.plan.mode == "in-core") == (share >= (0.45 if isinstance(fit.tensor, PackedRows) else 1.0))
    assert 0.3 * fit.plan.expected < peak < fit.plan.expected + MIB  # plus Python objects
