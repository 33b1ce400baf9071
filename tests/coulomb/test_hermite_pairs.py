"""Selection of pairs of primitives and their order as bras: kernels against plain loops."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from cuanto import Basis
from cuanto.backends import get_backend
from cuanto.basis import Shell
from cuanto.coulomb import hermite_pairs
from cuanto.coulomb.hermite_pairs import BOUND_SHARE, ChargeSet, charge_blocks, pair_blocks, pair_counts, primitives
from cuanto.coulomb.j_engine import Distributions, Potentials
from cuanto.kernels.hermite_build import GROUPINGS
from oracles.hermite_pairs import bounds_of_higher_order, bra_keys, significant_pairs

DEVICES = pytest.mark.parametrize("name", ["cpu", "simt", pytest.param("cuda", marks=pytest.mark.gpu)])
THRESHOLD = 1e-6


def chain(atoms: int = 40) -> Basis:
    """Atoms in a line, far enough for many pairs to be negligible."""
    shell, R_ax = Shell.from_table, np.zeros((atoms, 3))
    R_ax[:, 0] = 1.3 * np.arange(atoms)
    R_ax[:, 1] = 0.2 * np.sin(np.arange(atoms))
    found = []
    for a in range(atoms):
        found += [shell(a, 0, [3.0, 0.3], [[0.4], [0.7]], True), shell(a, 1, [0.3], [[1.0]], True)]
        found += [shell(a, 2, [0.8], [[1.0]], True)] if a % 3 == 0 else []
    return Basis.from_shells(found, R_ax)


@DEVICES
@pytest.mark.parametrize("chunk", [hermite_pairs.CHUNK_NUMBERS, 999])
def test_significant_pairs(name: str, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The selected pairs are those of plain loops, even if the pairs of a kind do not fit into a chunk."""
    monkeypatch.setattr(hermite_pairs, "CHUNK_NUMBERS", chunk)
    device, (groups, _) = get_backend(name), primitives(chain(12))
    blocks = pair_blocks(groups, THRESHOLD, device)
    kinds = [(a, b) for i, a in enumerate(groups) for b in groups[: i + 1]]
    exact = []
    for a, b in kinds:
        sides = [(side.exponents, side.centres, side.size, side.order) for side in (a, b)]
        exact.append(list(significant_pairs(sides[0], sides[1], a is b, BOUND_SHARE * THRESHOLD)))
    assert pair_counts(groups, THRESHOLD, device) == [len(found) for found in exact]
    assert any(len(found) < a.count * b.count // 2 for found, (a, b) in zip(exact, kinds, strict=True))
    wanted = {(a.first, b.first): found for found, (a, b) in zip(exact, kinds, strict=True)}
    assert len(blocks) == len(kinds)
    for block in blocks:
        u, v = device.download([block.part("u"), block.part("v")])
        assert list(zip(u, v, strict=True)) == wanted[block.bra.first, block.ket.first]


@DEVICES
@pytest.mark.parametrize("higher, omega", [(0, None), (1, 0.4)])
def test_the_order_of_bras(name: str, higher: int, omega: float | None) -> None:
    """Bras are sorted within a class; records have the exponents of the attenuated operator, groups a largest bound."""
    device, (groups, _) = get_backend(name), primitives(chain())
    sets = [ChargeSet("single", groups, single=True), ChargeSet("pairs", groups, single=False, offset=7)]
    charges = Distributions.of(charge_blocks(sets, THRESHOLD, device), device)
    wanted = [("single", order) for order in range(3)] + [("pairs", order) for order in range(5)]
    assert [(c.name, c.order) for c in charges.classes] == wanted
    bras, arrays = charges.as_bras(("double", "float"), omega, higher), charges.arrays
    bound, along, geometry, bounds = device.download([arrays.bound, arrays.along, arrays.geometry, bras.bounds])
    together = GROUPINGS[device.traits.language].bras
    for c in bras.classes:
        mine, root = c.pairs.range, geometry[c.pairs.range, 0]
        sizes = bounds_of_higher_order(bound[mine], root, c.order, higher)
        rank, record, single = device.download([c.rank[mine], c.record["double"], c.record["float"]])
        order, keys = np.argsort(rank), bra_keys(sizes, along[mine])
        assert np.array_equal(rank[order], np.arange(c.count))
        assert [keys[pair] for pair in order] == sorted(keys)
        exact = geometry[mine][order]
        exact[:, 0] = (exact[:, 0] ** -2 + (0.0 if omega is None else omega**-2)) ** -0.5
        assert record == pytest.approx(exact, rel=1e-14, abs=1e-14)
        assert single[:, 1:4].astype(float) + single[:, 4:] == pytest.approx(exact[:, 1:], abs=1e-12)
        starts = [*range(0, c.count, together), c.count]
        assert bounds[c.groups] == pytest.approx([sizes[order[i:j]].max() for i, j in pairwise(starts)], rel=1e-14)


@DEVICES
def test_signs_of_interactions_between_sets(name: str) -> None:
    """Each pair of sets interacts with its sign, or not at all: compared with one pair of sets at a time."""
    device, (groups, _) = get_backend(name), primitives(chain(5))
    size = sum(group.count * group.functions for group in groups)
    pairs = ChargeSet("pairs", groups, single=False, offset=size)
    charges = Distributions.of(charge_blocks([ChargeSet("single", groups, True), pairs], 1e-12, device), device)
    X = device.to_device(np.random.default_rng(2).normal(size=(1, size + size**2)))
    signs = {("single", "pairs"): 1, ("single", "single"): -1, ("pairs", "single"): 1}
    parts = {names: Potentials(charges, charges, 1e-12, signs={names: 1}) for names in signs}
    alone = {names: potentials.hermite(X) for names, potentials in parts.items()}
    together = Potentials(charges, charges, 1e-12, signs=signs).hermite(X)
    for c, V in zip(charges.classes, together, strict=True):
        exact = sum(
            sign * device.to_host(alone[names][c.number]) for names, sign in signs.items() if names[0] == c.name
        )
        assert np.abs(device.to_host(V) - exact).max() < 1e-12 * np.abs(exact).max()
