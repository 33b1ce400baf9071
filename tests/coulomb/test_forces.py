"""Expansions of pairs and forces on their centres: kernels against NumPy oracles, gradients against differences."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cuanto import Basis, integrals
from cuanto.backends import Backend, get_backend
from cuanto.backends.cpu.backend import CpuBackend
from cuanto.basis import Shell
from cuanto.coulomb import forces
from cuanto.coulomb.forces import Sources, electronic_gradient
from cuanto.coulomb.hermite_pairs import PairBlock, Primitives, pair_blocks, primitives, single_blocks
from cuanto.coulomb.j_engine import Distributions, Potentials
from cuanto.coulomb.j_steps import Steps
from cuanto.errors import InputError
from cuanto.kernels.recurrences.components import shell_scale
from cuanto.kernels.recurrences.mcmurchie_davidson import hermite_tuples
from oracles.forces import overlap_forces, potential_forces
from oracles.integrals.hermite import Array, expand_pair, hermite_indices
from oracles.integrals.two_electron import coulomb

ROUNDING = 1e-12
DEVICES = ["cpu", "simt", pytest.param("cuda", marks=pytest.mark.gpu)]
STEP = 1e-3
"""Step of the fourth-order finite differences, Bohr."""
R_AX = np.array([[0.0, 0.1, -0.2], [1.1, -0.7, 0.4], [-0.6, 0.9, 1.2]])
OMEGA = 0.4


def shells() -> list[Shell]:
    """An SP shell, a general contraction, cartesian and pure shells; the exponents differ."""
    shell = Shell.from_table
    return [
        shell(0, 0, [2.1, 0.4], [[0.6], [0.7]], True),
        shell(0, 1, [2.1, 0.4], [[0.3], [0.9]], True),
        shell(1, 0, [1.3, 0.5], [[0.5, 1.0], [0.6, 0.0]], True),
        shell(1, 2, [0.9], [[1.0]], True),
        shell(2, 1, [0.7], [[1.0]], True),
        shell(2, 2, [1.7], [[1.0]], False),
    ]


def basis_at(R_ax: Array = R_AX) -> Basis:
    return Basis.from_shells(shells(), R_ax)


def aux_at(R_ax: Array = R_AX) -> Basis:
    shell = Shell.from_table
    found = [shell(a, l, [1.4 + 0.3 * a], [[1.0]], True) for a in range(3) for l in (0, 1, 3)]
    return Basis.from_shells(found, R_ax)


def symmetric(n: int, seed: int = 3) -> Array:
    A = np.random.default_rng(seed).normal(size=(n, n))
    return np.asarray(A + A.T)


# ------------------------------------------------------------------------------------------- kernels and oracles


def shells_of(group: Primitives, k: int) -> Iterator[tuple[slice, Shell]]:
    """The shells of a primitive, which have one column without the scale that kernels leave out."""
    first = 0
    for l, pure in group.kind:
        shell = Shell(0, l, group.exponents[k : k + 1], np.full((1, 1), 1.0 / shell_scale(l, pure)), pure)
        yield slice(first, first + shell.nbf), shell
        first += shell.nbf


def pairs_of(block: PairBlock, host: dict[int, Primitives]) -> Iterator[tuple[int, Any, Any, Any]]:
    """For every pair: its number, the range of functions, shell and centre of both sides."""
    to_host = np.asarray if isinstance(block.E_kft, np.ndarray) else lambda array: array.get()
    a, b = host[id(block.bra)], host[id(block.ket)]
    for k, (u, v) in enumerate(zip(to_host(block.part("u")), to_host(block.part("v")), strict=True)):
        for rows, one in shells_of(a, u):
            for columns, other in shells_of(b, v):
                yield k, (rows, one, a.centres[u]), (columns, other, b.centres[v]), (u, v)


def blocks_on(device: Backend) -> tuple[list[PairBlock], dict[int, Primitives]]:
    """All pairs of the basis, and the primitives of their sides on the host."""
    groups, _ = primitives(basis_at())
    blocks = pair_blocks(groups, 1e-14, device)
    by_first = {(group.kind, group.first): group for group in groups}
    return blocks, {id(side): by_first[side.kind, side.first] for x in blocks for side in (x.bra, x.ket)}


def in_our_order(order: int) -> list[int]:
    """Positions of our tuples among those of the reference."""
    positions = {t: k for k, t in enumerate(hermite_indices(order))}
    return [positions[t] for t in hermite_tuples(order)]


@pytest.mark.parametrize("name", DEVICES)
def test_expansions_and_bounds(name: str) -> None:
    device = get_backend(name)
    blocks, host = blocks_on(device)
    assert len(blocks) == 15 and {len(block.bra.kind) for block in blocks} == {1, 2}
    for block in blocks:
        E, geometry, factor, bound, along = device.download(
            [block.E_kft, *(block.part(name) for name in ("geometry", "factor", "bound", "along"))]
        )
        shape = (block.count, block.bra.functions, block.ket.functions, -1)
        E_kmnt, largest = E.reshape(shape), np.zeros(block.count)
        a, b = host[id(block.bra)], host[id(block.ket)]
        for k, (rows, one, A), (columns, other, B), (u, v) in pairs_of(block, host):
            exact, tuples = expand_pair(one, A, other, B), in_our_order(one.l + other.l)
            found = E_kmnt[k, rows, columns]
            wanted = exact.H_fkt[:, 0, tuples].reshape((*found.shape[:2], -1))
            assert np.abs(found[..., : len(tuples)] - wanted).max() < ROUNDING
            assert not found[..., len(tuples) :].any()
            p = a.exponents[u] + b.exponents[v]
            P = (a.exponents[u] * A + b.exponents[v] * B) / p
            assert geometry[k] == pytest.approx([np.sqrt(p), *P], abs=ROUNDING)
            assert factor[k] == pytest.approx((1.0 if block.bra is block.ket and u == v else 2.0) * p**-1.5)
            sizes = np.sqrt(np.diag(coulomb(exact, exact))) * np.outer(a.scale[u, rows], b.scale[v, columns]).ravel()
            largest[k] = max(largest[k], sizes.max())
        assert bound == pytest.approx(largest, rel=1e-6)
        assert along.min() >= 0 and along.max() < 2**47


@pytest.mark.parametrize("name", DEVICES)
def test_forces_of_a_potential(name: str) -> None:
    """Potential and density of the primitive functions are random."""
    device = get_backend(name)
    blocks, host = blocks_on(device)
    rng = np.random.default_rng(5)
    bras = Distributions.of(blocks, device).as_bras(("double",), None, 1)
    X_kl = symmetric(blocks[0].charges.row)
    V = [rng.normal(size=c.count * len(hermite_tuples(c.order))) for c in bras.classes]
    gradient, exact = device.zeros((3, 3), np.float64), np.zeros((3, 3))
    for c, V_c in zip(bras.classes, V, strict=True):
        values = Steps(device).potential(c, device.to_device(V_c), 1) | {"X": device.to_device(X_kl.reshape(-1))}
        for block in c.pairs.blocks:
            rank, factor = device.download([c.rank[block.first :], block.part("factor")])
            launch = forces._launch("j_force", block, gradient, values, device, higher=1)
            device.launch_all([launch])
            a, b = host[id(block.bra)], host[id(block.ket)]
            for k, (rows, one, A), (columns, other, B), (u, v) in pairs_of(block, host):
                at = rank[k] * values["bra_stride"]
                numbers = V_c[at :: values["value_stride"]][: len(hermite_tuples(c.order))]
                potential = dict(zip(hermite_tuples(c.order), numbers, strict=True))
                m, n = a.first + a.functions * u + rows.start, b.first + b.functions * v + columns.start
                M_ab = 2.0 * np.pi**2.5 * factor[k] * X_kl[m : m + one.nbf, n : n + other.nbf]
                on_A, on_B = potential_forces(one, A, other, B, M_ab, potential)
                exact[a.atom[u]] += on_A
                exact[b.atom[v]] += on_B
    assert np.abs(device.to_host(gradient) - exact).max() < ROUNDING * np.abs(exact).max()


@pytest.mark.parametrize("name", DEVICES)
def test_forces_of_overlap_and_kinetic_energy(name: str) -> None:
    device = get_backend(name)
    blocks, host = blocks_on(device)
    X_nkl = np.stack([symmetric(blocks[0].charges.row, seed) for seed in (1, 2)])
    gradient, exact = device.zeros((3, 3), np.float64), np.zeros((3, 3))
    forces._add_overlap(gradient, blocks, device.to_device(X_nkl.reshape(-1)), X_nkl[0].size, 0.7, device)
    for block in blocks:
        a, b = host[id(block.bra)], host[id(block.ket)]
        for _, (rows, one, A), (columns, other, B), (u, v) in pairs_of(block, host):
            m, n = a.first + a.functions * u + rows.start, b.first + b.functions * v + columns.start
            kinetic, overlap = X_nkl[:, m : m + one.nbf, n : n + other.nbf]
            force = 2.0 * overlap_forces(one, A, other, B, overlap, 0.7 * kinetic)
            exact[a.atom[u]] += force
            exact[b.atom[v]] -= force
    assert np.abs(device.to_host(gradient) - exact).max() < ROUNDING * np.abs(exact).max()


# ---------------------------------------------------------------------------------------------- whole gradients

CHARGES = np.array([6.0, 1.0, 8.0, 0.4, -0.7])
FIELD = [0.3, -0.2, 0.1]


def positions(R_ax: Array, moved: int = -1, step: Array | None = None) -> Array:
    """The atoms and two point charges."""
    positions = np.concatenate([R_ax, [[3.0, 1.0, 0.5], [-2.0, -2.5, 1.5]]])
    if step is not None:
        positions[moved] += step
    return np.asarray(positions)


def energies(kind: str, D_pq: Array, c_P: Array) -> Callable[[Array], float]:
    """Energy as a function of the positions of atoms and point charges, by independent integrals."""

    def energy(R_cx: Array) -> float:
        basis, aux = basis_at(R_cx[:3]), aux_at(R_cx[:3])
        if kind == "points":
            M = integrals.nuclear(basis, charges=CHARGES, positions=R_cx, backend="cpu")
        elif kind == "fit":
            vector = np.einsum("pqP,pq->P", integrals.eri_3c(basis, aux, backend="cpu").reshape(*D_pq.shape, -1), D_pq)
            return float(c_P @ vector - 0.5 * c_P @ integrals.eri_2c(aux, backend="cpu") @ c_P)
        elif kind == "repulsion":
            return 0.5 * float(np.einsum("pqrt,pq,rt->", integrals.eri_4c(basis, backend="cpu"), D_pq, D_pq))
        elif kind == "operators":
            M = np.tensordot(FIELD, integrals.dipole(basis, backend="cpu"), 1)
        else:
            M = getattr(integrals, kind)(basis, backend="cpu")
        return float((M * D_pq).sum())

    return energy


def sources(kind: str, D_pq: Any, c_P: Any, put: Callable[[Array], Any] = np.asarray) -> Sources:
    values: dict[str, Any] = {"points": (CHARGES, positions(R_AX)), "fit": (aux_at(), put(c_P)), "repulsion": True}
    values |= {"kinetic": True, "overlap": put(D_pq), "operators": {"dipole": FIELD}}
    return Sources(**{kind: values[kind]})


@pytest.mark.parametrize("kind", ["points", "fit", "repulsion", "kinetic", "overlap", "operators"])
def test_every_source_against_differences(kind: str) -> None:
    D_pq, c_P = 0.1 * symmetric(basis_at().nbf), np.random.default_rng(1).normal(size=aux_at().nbf)
    found = electronic_gradient(basis_at(), D_pq, sources(kind, D_pq, c_P), get_backend("cpu"))
    energy = energies(kind, D_pq, c_P)
    assert len(found) == (5 if kind == "points" else 3)
    for centre, axis in ((0, 1), (2, 0), (len(found) - 1, 2)):
        unit = np.eye(3)[axis]
        values = [energy(positions(R_AX, centre, k * STEP * unit)) for k in (-2, -1, 1, 2)]
        assert found[centre, axis] == pytest.approx(np.dot([1, -8, 8, -1], values) / (12 * STEP), abs=2e-8)


def test_the_attenuated_operator_against_differences() -> None:
    D_pq = 0.1 * symmetric(basis_at().nbf)
    found = electronic_gradient(basis_at(), D_pq, Sources(repulsion=True), get_backend("cpu"), OMEGA)
    values = []
    for k in (-2, -1, 1, 2):
        basis = basis_at(positions(R_AX, 1, k * STEP * np.eye(3)[0])[:3])
        values.append(0.5 * np.einsum("pqrt,pq,rt->", integrals.eri_4c(basis, backend="cpu", omega=OMEGA), D_pq, D_pq))
    assert found[1, 0] == pytest.approx(np.dot([1, -8, 8, -1], values) / (12 * STEP), abs=2e-8)


@pytest.mark.parametrize("name", DEVICES)
@pytest.mark.parametrize("coulomb", ["fit", "repulsion"])
def test_sources_are_added(name: str, coulomb: str) -> None:
    """All terms together on a device agree with separate ones on the CPU; the order of threads does not matter."""
    D_pq, c_P = 0.1 * symmetric(basis_at().nbf), np.random.default_rng(1).normal(size=aux_at().nbf)
    device, kinds = get_backend(name), ["points", coulomb, "kinetic", "overlap", "operators"]
    total = sum((sources(kind, D_pq, c_P, device.to_device) for kind in kinds), Sources())
    found = electronic_gradient(basis_at(), device.to_device(D_pq), total, device)
    exact = np.zeros((5, 3))
    for kind in kinds:
        part = electronic_gradient(basis_at(), D_pq, sources(kind, D_pq, c_P), get_backend("cpu"))
        exact[: len(part)] += part
    assert np.abs(found - exact).max() < ROUNDING * np.abs(exact).max()
    if name == "cpu":
        again = [electronic_gradient(basis_at(), D_pq, total, CpuBackend(threads=n)) for n in (1, 3)]
        assert np.array_equal(again[0], again[1])


def test_short_memory_means_fewer_chunks_and_the_same_forces() -> None:
    D_pq, device = 0.1 * symmetric(basis_at().nbf), get_backend("simt")
    kets = Distributions.of(pair_blocks(primitives(basis_at())[0], 1e-12, device), device)
    numbers = []
    for room in (np.inf, 1e5, 0.0):
        launcher = Potentials(kets, kets, 1e-12, higher=1, room=room)._launcher
        numbers.append(sum(mine.stop - mine.start for mine in launcher.chunks.values()))
        found = electronic_gradient(basis_at(), device.to_device(D_pq), Sources(repulsion=True), device, room=room)
        exact = electronic_gradient(basis_at(), D_pq, Sources(repulsion=True), get_backend("cpu"))
        assert np.abs(found - exact).max() < ROUNDING * np.abs(exact).max()
    assert numbers[0] >= numbers[1] >= numbers[2] == len(kets.classes) ** 2


def test_refusals() -> None:
    with pytest.raises(InputError, match="same kind of sources: kinetic"):
        Sources(kinetic=True) + Sources(kinetic=True)
    D_pq = symmetric(basis_at().nbf)
    with pytest.raises(InputError, match="two atoms are at the same position"):
        electronic_gradient(basis_at(R_AX[[0, 0, 2]]), D_pq, Sources(kinetic=True), get_backend("cpu"))


def test_single_functions_are_pairs_with_one() -> None:
    """Forces on them have one centre."""
    groups, _ = primitives(aux_at())
    for block in single_blocks(groups, get_backend("cpu")):
        assert block.charges.row == 1 and (block.ket.atom == -1).all()
        moved = replace(block, charges=replace(block.charges, offset=7))
        assert moved.density_offsets["origin"] == 7 + block.bra.first
