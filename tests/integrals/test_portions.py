"""Work that is divided into portions to fit into memory: the results do not depend on the portions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cuanto import Basis, integrals
from cuanto.backends.cpu.backend import CpuBackend
from cuanto.backends.simt.backend import SimtBackend
from cuanto.coulomb import DirectJK, fitting
from cuanto.coulomb.fitting import FittedJK
from cuanto.coulomb.fitting_blocks import BlockTensor
from cuanto.coulomb.fitting_rows import PAIR_BOUND
from cuanto.errors import InputError
from cuanto.grid.partition import sort_keys
from cuanto.integrals import api
from cuanto.integrals.uploaded_pairs import upload_pairs
from cuanto.kernels.describe import describe
from direct_reference import densities, ours
from fitting_cases import DATA, Device, budget_of, molecule, random_orbitals
from scripted import some_basis
from tolerances import INTEGRAL_REL


@pytest.fixture(autouse=True)
def basis_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUANTO_BASIS_PATH", str(DATA / "basis"))


def test_nuclear_attraction_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    mol = molecule("water_01")
    basis = Basis("cc-pvdz", mol)
    whole = integrals.nuclear(basis, mol, backend="cpu")
    seen = []
    potentials = api._potentials
    monkeypatch.setattr(api, "_potentials", lambda bras, *rest: seen.append(len(bras)) or potentials(bras, *rest))
    batches = len(upload_pairs(basis, CpuBackend(threads=1)))
    for limit in (0, 300):
        seen.clear()
        monkeypatch.setattr(api, "POTENTIALS_AT_ONCE", limit)
        parts = integrals.nuclear(basis, mol, backend="cpu")
        np.testing.assert_allclose(parts, whole, rtol=0, atol=INTEGRAL_REL * np.abs(whole).max())
        assert sum(seen) == batches and (len(seen) == batches if limit == 0 else 1 < len(seen) < batches)


def test_packed_rows_are_the_lower_triangle() -> None:
    basis, aux = some_basis(2, count=1), some_basis(1, count=1)
    full = integrals.eri_3c(basis, aux, backend="cpu")
    packed = integrals.eri_3c(basis, aux, packed=True, backend="cpu")
    p, q = np.tril_indices(basis.nbf)
    assert packed.shape == (len(p), aux.nbf)
    np.testing.assert_array_equal(packed, full[p, q])
    np.testing.assert_array_equal(full, full.transpose(1, 0, 2))


@pytest.mark.parametrize("device", [CpuBackend, Device])
def test_fit_with_some_stored_blocks(device: type[CpuBackend | Device], monkeypatch: pytest.MonkeyPatch) -> None:
    """K from some stored blocks and some that are recomputed in every build."""
    for name, schedule in fitting.SCHEDULES.items():
        monkeypatch.setitem(fitting.SCHEDULES, name, replace(schedule, functions=4, storages=("blocks",)))
    mol = molecule("water_01")
    basis, aux = Basis("cc-pvdz", mol), Basis("cc-pvdz-jkfit", mol)
    C_spi, D_spq = random_orbitals(basis.nbf, 5)
    whole = FittedJK(basis, aux, backend=device())
    make_plan = fitting.make_plan
    monkeypatch.setattr(fitting, "make_plan", lambda *given: replace(make_plan(*given), mode="blocked", kept=2))
    some = FittedJK(basis, aux, backend=device(), budget=budget_of(whole.plan.in_core - 1, device()))
    assert whole.plan.mode == "in-core" and isinstance(some.tensor, BlockTensor)
    assert 2 == len(some.tensor.stored) < some.plan.blocks
    for mine, theirs in zip(some(D_spq, C_spi, True, True), whole(D_spq, C_spi, True, True), strict=True):
        assert mine is not None and theirs is not None
        assert np.abs(mine - theirs).max() < 20.0 * PAIR_BOUND * np.abs(theirs).max()


def test_integrals_whose_values_do_not_fit_into_shared_memory() -> None:
    """A block of threads then keeps them in global memory."""
    basis = some_basis(1, count=1)
    D_pq = densities(basis.nbf)["symmetric"]
    found = []
    for limit in (48 * 1024, 128):
        direct = DirectJK(basis, backend=SimtBackend("group", shared_limit=limit), threshold=1e-15)
        found.append(ours(direct, D_pq))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=INTEGRAL_REL * np.abs(one).max())


@pytest.mark.parametrize("keys", [100, np.iinfo(np.int64).max // 2])
def test_points_are_sorted_by_any_number_of_keys(keys: int) -> None:
    """Sorting is stable, even for keys too large to be combined with positions."""
    key = np.random.default_rng(2).integers(0, 7, 50) * (keys // 7)
    found, order = sort_keys(key, keys, np)
    np.testing.assert_array_equal(order, np.argsort(key, kind="stable"))
    np.testing.assert_array_equal(found, key[order])


# ------------------------------------------------------------------------------------------------ kernels by name


def test_a_general_kernel_is_shown_with_its_tables() -> None:
    general, straight = (describe("3c", (1, 0, 1), target="cpu", schedule=name) for name in ("table", "lane"))
    for stage in ("primitive", "ket", "bra"):
        assert f"static const int {stage}_program[] = {{" in general.text
        assert f"static const REAL {stage}_numbers[] = {{" in general.text
    assert straight.tables == "" and general.cost == straight.cost
    assert f"{len(general.text.splitlines())} lines" in dict(general.summary())["source"]


@pytest.mark.parametrize(
    ("integral", "momenta", "options", "says"),
    [
        ("5c", (0, 0), {}, "unknown integral '5c': choose overlap"),
        ("3c", (0, 0), {}, "3c takes 3 angular momenta, 2 were given"),
        ("2c", (0, -1), {}, "angular momenta from 0 to"),
        ("3c", (0, 0, 0), {"algorithm": "rys"}, "unknown algorithm 'rys': choose auto, hgp or md"),
        (
            "4c",
            (1, 1, 1, 1),
            {"target": "cuda", "schedule": "quartet_block", "algorithm": "hgp"},
            "choose --algorithm md or auto",
        ),
    ],
)
def test_kernels_that_do_not_exist(integral: str, momenta: tuple[int, ...], options: dict[str, str], says: str) -> None:
    with pytest.raises(InputError) as caught:
        describe(integral, momenta, **options)
    assert says in str(caught.value)


@pytest.mark.parametrize("omega", [0, -0.3, float("nan"), "wide", [0.3]])
def test_omega_has_to_be_positive(omega: object) -> None:
    basis = some_basis(0, count=1)
    with pytest.raises(InputError, match="omega must be a positive number") as caught:
        integrals.eri_2c(basis, backend="cpu", omega=omega)
    assert repr(omega) in str(caught.value)


def test_memory_pool_is_freed_before_planning(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulated without a GPU: a pool holds 80 of 100 bytes, none of them in use."""
    from types import SimpleNamespace

    from cuanto.backends.cuda.backend import CudaBackend

    held = [80]
    pool = SimpleNamespace(free_bytes=lambda: held[0], free_all_blocks=lambda: held.__setitem__(0, 0))
    runtime = SimpleNamespace(memGetInfo=lambda: (100 - held[0], 100))
    pinned = SimpleNamespace(free_all_blocks=lambda: None)
    xp = SimpleNamespace(
        get_default_memory_pool=lambda: pool,
        get_default_pinned_memory_pool=lambda: pinned,
        cuda=SimpleNamespace(runtime=runtime),
    )
    device = object.__new__(CudaBackend)
    monkeypatch.setattr(device, "xp", xp, raising=False)
    assert device.memory() == (100, 100) and held == [0]
    held[0] = 5  # too little to release: it stays for later allocations, which are faster then
    assert device.memory() == (100, 100) and held == [5]
