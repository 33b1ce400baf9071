"""NDDO kernels on the CPU and on the simulated GPU, against the NumPy oracle."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cuanto import Molecule
from cuanto.backends.base import get_backend
from cuanto.backends.cpu.backend import CpuBackend
from cuanto.backends.cuda.nvrtc import compile_nvrtc
from cuanto.errors import InputError
from cuanto.kernels import nddo
from cuanto.kernels.nddo_multipoles import products
from cuanto.memory import Budget
from cuanto.semiempirical.batch import BATCH, batch_size
from cuanto.semiempirical.engine import REPULSION, PairEngine, Slab
from cuanto.semiempirical.fock import Fock
from cuanto.semiempirical.layout import Layout
from cuanto.semiempirical.terms import Core, Repulsion
from nddo_cases import Array, layout_of, molecule
from oracles import nddo as slow
from oracles.nddo_core import core_repulsion

CLASSES = [("glycine", "AM1"), ("CH3SH", "PM6"), ("CH3I", "PM6"), ("ICl", "PM3"), ("H3PO4", "PM6")]
SIMT_CLASSES = [*CLASSES, ("AgH", "PM6"), ("HeH+", "AM1")]
CLASSES += [("Rh(CO)2Cl2-", "PM6"), ("LuF3", "PM6"), ("HZnHg+", "PM6"), ("SiH3OH", "PM6"), ("XeF4", "PM6")]
CLASSES += [("HeNH3", "AM1"), ("BCl2CH3", "AM1"), ("MoO3H2_model", "AM1"), ("SeH2", "MNDO"), ("EuF3_rm1", "RM1")]
"""These cover, besides light elements: clipped additive terms, cores with additive terms of their own, pairs without
parameters, noble gases, terms of single pairs of elements, Gaussians of MNDO. GPU texts are compiled for fewer of
them."""
TRUNCATED = [("glycine", "PM6"), ("ICl", "PM3"), ("CH3SH", "AM1"), ("HI", "PM6"), ("HeNH3", "PM3"), ("NeH+", "PM6")]
TRUNCATED += [("SiH4", "AM1"), ("KrF2", "AM1"), ("SnH4", "MNDO"), ("CrO2Cl2", "PM6"), ("AuCl", "PM6")]
SMALL = 1e-13


def slow_matrices(layout: Layout, R_ax: Array, mopac: bool) -> tuple[Array, Array]:
    """G, and the core Hamiltonian between atoms, from pairs one by one."""
    G, H = np.zeros((layout.products,) * 2), np.zeros((layout.orbitals,) * 2)
    for a in range(len(R_ax)):
        for b in range(a):
            one, other = layout.elements[a], layout.elements[b]
            W, S = slow.pair_blocks(slow.Side([one]), slow.Side([other]), (R_ax[b] - R_ax[a])[None], mopac)
            (i, j), (k, l) = (np.array(products(element.orbitals)).T for element in (one, other))
            p, q = (slice(*layout.first_product[atom : atom + 2]) for atom in (a, b))
            G[p, q] = W[0][i, j][:, k, l]
            G[q, p] = G[p, q].T
            m, n = (slice(*layout.first[atom : atom + 2]) for atom in (a, b))
            beta = one.per_orbital(one.beta)[:, None] + other.per_orbital(other.beta)
            H[m, n] = 0.5 * beta * S[0]
            H[n, m] = H[m, n].T
    return G, H


def slow_attraction(layout: Layout, R_ax: Array) -> Array:
    """Minus the attraction of all packed products to the cores of other atoms."""
    V = np.zeros(layout.products)
    for a, one in enumerate(layout.elements):
        i, j = np.array(products(one.orbitals)).T
        for b, other in enumerate(layout.elements):
            if a != b:
                block = other.core_charge * slow.core_attraction(one, other, R_ax[b] - R_ax[a])
                V[slice(*layout.first_product[a : a + 2])] += block[i, j]
    return V


@pytest.mark.parametrize(
    ("name", "method", "backend"), [(*case, "cpu") for case in CLASSES] + [(*case, "simt") for case in SIMT_CLASSES]
)
def test_integrals_equal_those_of_the_oracle(name: str, method: str, backend: str) -> None:
    layout, R_bax = layout_of(molecule(name, method), method)
    G, H = slow_matrices(layout, R_bax[0], False)
    engine = PairEngine(layout, R_bax, get_backend(backend))
    differing = engine.attraction_difference()
    differing = engine.backend.zeros((1, layout.products), np.float64) if differing is None else differing
    arrays = [*engine.core(), *(G_b for _, G_b in engine.blocks()), differing]
    found, attraction, energy, result, difference = get_backend(backend).download(arrays)
    assert np.abs(result[0] - G).max() < SMALL
    assert np.abs(found[0] - H).max() < SMALL
    assert np.abs(attraction[0] - G @ layout.cores).max() < 10 * SMALL
    assert np.abs(attraction[0] - difference[0] - slow_attraction(layout, R_bax[0])).max() < 10 * SMALL
    assert energy[0].sum() == pytest.approx(core_repulsion(layout, R_bax[0]), rel=SMALL)


@pytest.mark.parametrize(("name", "method"), TRUNCATED)
def test_the_truncated_series_equals_that_of_the_oracle(name: str, method: str) -> None:
    layout, R_bax = layout_of(molecule(name), method)
    _, H = slow_matrices(layout, R_bax[0], True)
    found, _, _ = PairEngine(layout, R_bax, get_backend("cpu"), mopac=True).core()
    assert np.abs(found[0] - H).max() < SMALL
    exact, _, _ = PairEngine(layout, R_bax, get_backend("cpu")).core()
    assert 1e-12 < np.abs(found[0] - exact[0]).max() < 1e-4


def test_overlaps_far_away_and_of_unlike_exponents() -> None:
    """Nothing overflows, and very different exponents (iodine and hydrogen) lose no digits."""
    for distance in (20.0, 100.0, 5000.0):
        far = Molecule(["I", "H", "C"], [[0, 0, 0], [0, 0, distance], [0, 3.0, 1.0]], charge=0)
        layout, R_bax = layout_of(far, "PM6")
        found, _, energy = PairEngine(layout, R_bax, get_backend("cpu")).core()
        assert np.isfinite(found).all() and np.isfinite(energy).all()
        if distance < 1000:
            assert np.abs(found[0] - slow_matrices(layout, R_bax[0], False)[1]).max() < SMALL


def slow_exchange(layout: Layout, G: Array, D_pq: Array) -> Array:
    """-sum_ns (mn|ls) D_ns between atoms."""
    F = np.zeros_like(D_pq)
    for a, one in enumerate(layout.elements):
        for b, other in enumerate(layout.elements):
            if a == b:
                continue
            W = np.zeros((one.orbitals, one.orbitals, other.orbitals, other.orbitals))
            for t, (i, j) in enumerate(products(one.orbitals)):
                for u, (k, l) in enumerate(products(other.orbitals)):
                    value = G[layout.first_product[a] + t, layout.first_product[b] + u]
                    W[i, j, k, l] = W[j, i, k, l] = W[i, j, l, k] = W[j, i, l, k] = value
            m, n = (slice(*layout.first[atom : atom + 2]) for atom in (a, b))
            F[m, n] = -np.einsum("mnls,ns->ml", W, D_pq[m, n])
    return F


@pytest.mark.parametrize("backend", ["cpu", "simt"])
@pytest.mark.parametrize(("name", "method"), [("CH3SH", "PM6"), ("ICl", "PM6")])
def test_exchange_and_slabs(name: str, method: str, backend: str) -> None:
    """Stored G and G recomputed in slabs give the same matrices."""
    layout, R_bax = layout_of(molecule(name), method)
    device = get_backend(backend)
    engine = PairEngine(layout, R_bax, device)
    ((_, G_b),) = list(engine.blocks())
    rng = np.random.default_rng(4)
    D = rng.normal(size=(1, 2, layout.orbitals, layout.orbitals))
    D = D + D.transpose(0, 1, 3, 2)
    q = rng.normal(size=(1, layout.products))
    D_b, q_b = device.to_device(D), device.to_device(q)
    F_b, again_b = device.zeros(D.shape, np.float64), device.zeros(D.shape, np.float64)
    potentials = [engine.coulomb_and_exchange(q_b, D_b, F_b, 0.7)]
    engine.slabs = [Slab(0, 1), Slab(1, len(layout.symbols))]
    potentials.append(engine.coulomb_and_exchange(q_b, D_b, again_b, 0.7))
    G, kept, recomputed, potential, again = device.download([G_b, F_b, again_b, *potentials])
    for s in (0, 1):
        assert np.abs(kept[0, s] - 0.7 * slow_exchange(layout, G[0], D[0, s])).max() < 1e-12
    assert np.abs(potential[0] - G[0] @ q[0]).max() < 1e-12
    assert np.abs(again - potential).max() < 1e-12 and np.abs(kept - recomputed).max() < 1e-12


def budget_with(left: int) -> Budget:
    """A budget with only this number of bytes left."""
    budget = Budget(get_backend("cpu"))
    budget.reserve("others", budget.limit - left)
    return budget


def test_the_memory_plan() -> None:
    layout, R_bax = layout_of(molecule("ribavirin"), "PM6")
    whole = PairEngine(layout, R_bax, get_backend("cpu"))
    budget = budget_with(12 * layout.products * 60)
    parts = PairEngine(layout, R_bax, get_backend("cpu"), budget)
    assert whole.stored and not parts.stored
    assert parts.slabs[0].begin == 0 and parts.slabs[-1].end == 29
    for slab in parts.slabs:
        assert layout.first_product[slab.end] - layout.first_product[slab.begin] <= 60
    assert 0 < budget.reserved[REPULSION] <= 8 * layout.products * 60
    with pytest.raises(InputError, match="2 molecules needs"):
        PairEngine(layout, np.concatenate([R_bax, R_bax]), get_backend("cpu"), budget_with(10_000))


def test_batches_reserve_their_memory() -> None:
    layout, _ = layout_of(molecule("HCN"), "PM6")
    budget = budget_with(10**6)
    sizes = [batch_size(layout, budget, 1000) for _ in range(2)]
    assert sizes[0] == sizes[1] < 64 and 0 < budget.reserved[BATCH] <= 450_000


@pytest.mark.parametrize("spins", [1, 2])
def test_fock_matrices_are_derivatives_of_the_energy(spins: int) -> None:
    layout, R_bax = layout_of(molecule("CH3SH"), "PM6")
    fock = Fock(PairEngine(layout, R_bax, get_backend("cpu")))
    rng = np.random.default_rng(spins)
    D, change = rng.normal(size=(2, spins, layout.orbitals, layout.orbitals))
    D, change = D + D.transpose(0, 2, 1), change + change.transpose(0, 2, 1)
    for term in (Core(fock), Repulsion(fock)):
        _, F = term.fock(D, None)
        step = 1e-3
        slope = (term.fock(D + step * change, None)[0] - term.fock(D - step * change, None)[0]) / (2 * step)
        assert np.sum(F * change) == pytest.approx(slope, rel=1e-9)


def test_threads_do_not_change_a_digit() -> None:
    layout, R_bax = layout_of(molecule("ribavirin"), "AM1")
    R_bax = np.repeat(R_bax, 8, axis=0)
    rng = np.random.default_rng(0)
    D = rng.normal(size=(8, 1, layout.orbitals, layout.orbitals))
    D = D + D.transpose(0, 1, 3, 2)
    found: list[Any] = []
    for threads in (1, 3):
        engine = PairEngine(layout, R_bax, CpuBackend(threads=threads))
        found.append((*engine.core(), Fock(engine).two_electron(D)[1], engine.gradient(D)))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("orbitals", [(1, 1), (4, 1), (4, 4), (9, 1)])
def test_nvrtc_compiles_the_texts(orbitals: tuple[int, int]) -> None:
    a, b = orbitals
    texts = [nddo.repulsion_source("cuda", a, b), nddo.exchange_source("cuda", a, b)]
    kind_a, kind_b = ({1: (1,), 4: (2, 2), 9: (4, 4, 3)}[n] for n in orbitals)
    texts += [nddo.core_source("cuda", kind_a, kind_b), nddo.core_source("cuda", kind_a, kind_b, "gradient")]
    texts.append(nddo.repulsion_source("cuda", a, b, "gradient"))
    if b == 1:
        texts += [nddo.attraction_source("cuda", a), nddo.attraction_source("cuda", a, "gradient")]
    for source in texts:
        assert len(compile_nvrtc(source.text, "sm_90")[0]) > 1000


def test_number_of_distinct_repulsion_integrals() -> None:
    """Two atoms with s and p have 22 distinct integrals (Dewar and Thiel)."""
    from cuanto.kernels.nddo_multipoles import repulsion

    assert repulsion(4, 4).values == 22
    assert repulsion(1, 1).values == 1 and repulsion(4, 1).values == 4
