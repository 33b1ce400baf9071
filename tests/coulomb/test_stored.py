"""J and K from stored four-centre integrals: memory, and agreement with direct J and K."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import cuanto
from bundle import Case, backend, bundle
from cuanto import Basis, memory
from cuanto.backends.cpu.backend import CpuBackend
from cuanto.coulomb import DirectJK, IncrementalJK
from cuanto.coulomb.memory import store_limit
from cuanto.coulomb.stored import count_quartets
from cuanto.errors import InputError
from cuanto.memory import MIB, Budget, StorePlan
from cuanto.terms import exchange_correlation
from direct_reference import DATA, Array, close, densities, molecule_of
from fitting_cases import budget_of


@pytest.fixture(autouse=True)
def basis_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUANTO_BASIS_PATH", str(DATA / "basis"))


@pytest.fixture(scope="module")
def water() -> Iterator[tuple[cuanto.Molecule, Basis]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUANTO_BASIS_PATH", str(DATA / "basis"))
        molecule = molecule_of("water_01")
        yield molecule, Basis("6-31g**", molecule)


@pytest.mark.parametrize(
    "name, case", [("cpu-table", Case("both", "contracted", l_max=2)), ("cpu-lane", Case("pure", "general", l_max=1))]
)
def test_every_kind_of_shell_and_density(name: str, case: Case) -> None:
    """Against direct J (J engine) and K, which `test_direct.py` compares with all integrals."""
    basis, device = bundle(case)[0], backend(name)
    assert device is not None
    stored, direct = (DirectJK(basis, backend=device, threshold=1e-15, storage=how) for how in ("stored", "direct"))
    D_npq = np.stack(list(densities(basis.nbf).values()))
    J, K = stored(D_npq)  # all at once: the integrals are read once for all
    for M, exact in zip((J, K), direct(D_npq), strict=True):
        close(M, exact)
    close(stored.j(D_npq[0]), J[0])
    close(stored.k(D_npq[2]), K[2])


def matrices(basis: Basis, **options: object) -> tuple[DirectJK, Array, Array]:
    direct = DirectJK(basis, backend="cpu", **options)  # type: ignore[arg-type]
    J, K = direct(densities(basis.nbf)["symmetric"])
    return direct, J, K


def test_one_pass_gives_both_matrices(water: tuple[cuanto.Molecule, Basis], monkeypatch: pytest.MonkeyPatch) -> None:
    """K of the densities whose J was made last needs no further pass, once; K of others does."""
    direct = DirectJK(water[1], backend="cpu", storage="stored")
    builder, D_npq = IncrementalJK(direct), np.stack([densities(water[1].nbf)["symmetric"]] * 2)
    D_npq[1] *= 0.5
    D_npq[1] += densities(water[1].nbf)["general"]
    J, K = direct(D_npq)
    close(builder.coulomb(D_npq), J.sum(axis=0, keepdims=True))
    with monkeypatch.context() as patch:
        patch.setattr(DirectJK, "__call__", None)
        close(builder(D_npq, None, False, True)[1], K)
    close(builder(D_npq, None, False, True)[1], K)
    builder.coulomb(D_npq)
    D_npq *= 2.0
    close(builder(D_npq, None, False, True)[1], 2.0 * K)


@pytest.mark.parametrize("options", [{}, {"omega": 0.3}, {"precision": "mixed"}], ids=str)
def test_stored_integrals_give_the_direct_matrices(
    water: tuple[cuanto.Molecule, Basis], options: dict[str, object]
) -> None:
    direct, J, K = matrices(water[1], **options)
    stored, *ours = matrices(water[1], storage="auto", **options)
    assert stored.stored and not direct.stored and direct.plan is None
    for M, exact in zip(ours, (J, K), strict=True):
        close(M, exact, 1e-11 if not options.get("precision") else 1e-8)
    statistics = stored.statistics
    assert statistics.coulomb is None and statistics.quartets is not None
    assert 0 < statistics.quartets.quartets <= statistics.quartets.possible


@pytest.mark.parametrize("spins", [1, 2])
def test_stored_integrals_take_the_counted_memory(water: tuple[cuanto.Molecule, Basis], spins: int) -> None:
    """No more is allocated than planned; all integrals of a small molecule are significant."""
    plan = DirectJK(water[1], backend="cpu", storage="auto").plan
    assert plan is not None and plan.stored
    n = water[1].nbf
    assert plan.needed > 8 * (n * (n + 1) // 2) ** 2 // 2
    D = np.stack([densities(n)["symmetric"]] * spins)
    budget = budget_of(plan.needed)
    tracemalloc.start()
    try:
        stored = DirectJK(water[1], backend="cpu", storage="stored", budget=budget)
        stored(D)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert budget.reserved == {"four-centre integrals": plan.needed} and budget.available() == 0
    assert 0.3 * plan.needed < peak < plan.needed + MIB
    half = budget_of(2 * plan.needed - 2)  # too little
    short = DirectJK(water[1], backend="cpu", storage="auto", budget=half)
    assert not short.stored and short.plan is not None
    close(short.k(D), stored.k(D), 1e-11)
    with pytest.raises(InputError, match=r"takes .* MiB, .* MiB are allowed: raise max_memory") as refused:
        DirectJK(water[1], backend="cpu", storage="stored", budget=budget_of(plan.needed - 1))
    assert "\n" not in str(refused.value)


def test_counting_stops_at_the_limit(water: tuple[cuanto.Molecule, Basis], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cuanto.coulomb.stored.CHUNK_BYTES", 0)
    quartets = DirectJK(water[1], backend="cpu").quartets
    digest, window = quartets._parts[0]
    whole = count_quartets(digest, window, len(quartets._members), 2**30)
    some = count_quartets(digest, window, len(quartets._members), 2**12)
    assert whole.complete and not some.complete
    assert 2**12 < some.bytes < whole.bytes
    plan = quartets.store(2**12)
    assert not plan.stored and not plan.complete and "more than" in str(plan)


def test_uneven_chunks_are_counted(water: tuple[cuanto.Molecule, Basis], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cuanto.coulomb.stored.CHUNK_BYTES", 0)
    monkeypatch.setattr("cuanto.coulomb.stored.MAX_IMBALANCE", 0)
    quartets = DirectJK(water[1], backend="cpu").quartets
    digest, window = quartets._parts[0]
    assert count_quartets(digest, window, len(quartets._members), 2**30).complete


@pytest.mark.parametrize("storage", ["direct", "stored"])
def test_same_bits_with_other_threads(water: tuple[cuanto.Molecule, Basis], storage: str) -> None:
    D = densities(water[1].nbf)["general"]
    builders = [
        DirectJK(water[1], backend=CpuBackend(threads, "table"), storage=storage, one_pass=True) for threads in (1, 3)
    ]
    for build in builders:
        build.finish_compiling()
    for M, other in zip(*(build(D) for build in builders), strict=True):
        assert np.array_equal(M, other)


def test_single_precision_uses_the_j_engine(water: tuple[cuanto.Molecule, Basis]) -> None:
    stored, J, K = matrices(water[1], storage="stored", precision="single")
    _, *without = matrices(water[1], precision="single")
    assert stored.stored and stored.statistics.coulomb is not None
    close(J, without[0], 1e-12)
    close(K, without[1], 1e-5)


def test_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    device = CpuBackend()
    free = device.memory()[0]
    whole = Budget(device)
    assert 0.4 * free < store_limit(whole, False) < 0.6 * free < store_limit(whole, True) < free
    monkeypatch.setattr(memory, "_resident", lambda: 300 * MIB - memory.PROGRAM)
    assert store_limit(Budget(device, 1000 * MIB), True) == 700 * MIB
    assert store_limit(Budget(device, 1000 * MIB), False) == 350 * MIB  # the rest is for the grid
    assert store_limit(Budget(device, 200 * MIB), False) == 0  # too little to store any
    with pytest.raises(InputError, match="less than the 300 MiB"):
        store_limit(Budget(device, 200 * MIB), True)


def test_text_of_the_plan() -> None:
    assert (
        str(StorePlan("four-centre integrals", True, 100 * MIB, 200 * MIB))
        == "stored: all four-centre integrals kept, 100 of 200 MiB"
    )
    direct = str(StorePlan("four-centre integrals", False, 300 * MIB, 200 * MIB, complete=False))
    assert direct.startswith("direct: four-centre integrals recomputed")
    assert "200 MiB allowed, more than 300 to store them" in direct


def test_only_on_the_cpu(water: tuple[cuanto.Molecule, Basis]) -> None:
    with pytest.raises(InputError, match="storage='stored' needs backend='cpu', not 'simt'"):
        DirectJK(water[1], backend="simt", storage="stored")
    assert DirectJK(water[1], backend="simt", storage="auto").plan is None
    with pytest.raises(InputError, match="unknown storage 'disk': choose auto, stored, direct"):
        DirectJK(water[1], backend="cpu", storage="disk")


def test_no_increments_with_stored_integrals(water: tuple[cuanto.Molecule, Basis]) -> None:
    stored = DirectJK(water[1], backend="cpu", storage="stored")
    build = IncrementalJK(stored)
    D_spq = densities(water[1].nbf)["symmetric"][None]
    for D in (D_spq, D_spq, 1.001 * D_spq):
        assert np.array_equal(build(D, None, True, False)[0], stored.j(D))
        assert np.array_equal(build(D, None, False, True)[1], stored.k(D))


METHODS = (("hf", 1), ("uhf", 3), ("rohf", 3), ("b3lyp", 1), ("pbe", 1))


@pytest.mark.parametrize("method, multiplicity", METHODS)
def test_energies(method: str, multiplicity: int) -> None:
    """Integrals are stored by default unless the functional is pure: for J alone it is not worthwhile."""
    atoms = (["F", "H"], [[0.0, 0.0, 0.0], [0.0, 0.0, 1.73]]) if multiplicity == 1 else (["O"], [[0.0, 0.0, 0.0]])
    molecule = cuanto.Molecule(*atoms, multiplicity=multiplicity)
    common: dict[str, Any] = {"fitting": "none", "backend": "cpu"}
    if not method.endswith("hf"):
        common["grid"] = "coarse"
    stored = cuanto.energy(molecule, method, "6-31g", **common)
    direct = cuanto.energy(molecule, method, "6-31g", storage="direct", **common)
    assert stored.converged and abs(stored.energy - direct.energy) < 1e-9
    assert any("stored: all four-centre" in note for note in stored.notes) == (method != "pbe")
    assert not any("four-centre" in note for note in direct.notes)


def test_grid_memory_has_priority(monkeypatch: pytest.MonkeyPatch) -> None:
    """With storage `auto`, stored integrals leave room for a grid."""
    monkeypatch.setattr(memory, "_resident", lambda: -memory.PROGRAM)
    molecule = cuanto.Molecule(["F", "H"], [[0.0, 0.0, 0.0], [0.0, 0.0, 1.73]])
    common: dict[str, Any] = {"fitting": "none", "backend": "cpu", "grid": "coarse", "max_iterations": 1}
    for size, plan in ((exchange_correlation.GRID_BYTES, "stored: all"), (10**6, "direct: four-centre")):
        monkeypatch.setattr(exchange_correlation, "GRID_BYTES", size)
        found = cuanto.energy(molecule, "b3lyp", "6-31g", max_memory=2**30, **common)
        assert any(plan in note for note in found.notes)
