"""Memory shared by fitted integrals and the grid: each gets its part, and energies do not depend on it."""

from __future__ import annotations

import logging
from itertools import pairwise

import numpy as np
import pytest

import cuanto
from cuanto import Basis
from cuanto.backends.simt.arrays import limited_memory
from cuanto.coulomb.fitted_tensor import ThreeCentre
from cuanto.coulomb.fitting import FittedJK, TensorPlan, plan_tensor
from cuanto.coulomb.fitting_packed import PADDING, Group, cut_pairs, group_functions
from cuanto.coulomb.fitting_rows import find_partners
from cuanto.grid import batches
from cuanto.memory import MIB
from cuanto.methods import Context, Request
from cuanto.methods.context import builders_for, core_hamiltonian, make_terms
from cuanto.terms import ExchangeCorrelation
from fitting_cases import DATA, Device, molecule

ENERGY = 1e-9
"""Tolerance of energies between memory plans, Hartree."""


@pytest.fixture(autouse=True)
def basis_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUANTO_BASIS_PATH", str(DATA / "basis"))


def waters() -> tuple[Basis, Basis]:
    mol = molecule("water_16")
    return Basis("def2-svp", mol), Basis("def2-universal-jkfit", mol)


@pytest.mark.parametrize("share", [1.2, 1.6])
def test_a_fit_that_could_take_all_memory_leaves_the_grid_its_part(
    share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory for all integrals, but hardly more: they are stored, and the grid has large batches."""
    monkeypatch.setattr(batches, "MIN_BATCH", 1 << 14)
    mol, device = molecule("water_02"), Device()
    options = {"fitting": "jk", "auxbasis": "cc-pvdz-jkfit", "backend": device, "grid": (10, 26)}
    needed = FittedJK(Basis("cc-pvdz", mol), Basis("cc-pvdz-jkfit", mol), backend=device).plan.expected
    context = Context.of(Request.of(mol, "b3lyp", "cc-pvdz", max_memory=share * needed, **options))
    budget = context.budget
    builders = builders_for(context)
    assert isinstance(builders.coulomb, FittedJK) and builders.coulomb.plan.mode == "in-core"
    left = budget.limit - budget.reserved["matrices of the SCF"] - budget.reserved["grid"]
    assert budget.available() >= left // 8
    grid = make_terms(context, core_hamiltonian(context), builders)[-1]
    assert isinstance(grid, ExchangeCorrelation) and grid._plain.quadrature.work_bytes >= left // 16
    assert sum(budget.reserved.values()) <= budget.limit


def plans(limits: list[int]) -> list[TensorPlan]:
    basis, aux = waters()
    integrals = ThreeCentre(basis, aux, Device())
    return [plan_tensor(integrals, True, limit) for limit in limits]


def test_time_grows_with_less_memory() -> None:
    """Passes over stored integrals take no more time with more memory, and never much more than with a little more."""
    found = plans([int(size * MIB) for size in np.geomspace(850, 3300, 15)])
    assert all(one.memory.mode == "in-core" and one.memory.expected <= one.memory.limit for one in found)
    assert [one.storage for one in found] == sorted((one.storage for one in found), reverse=True)
    assert {one.storage for one in found} == {"packed", "blocks"}
    seconds = [one.memory.seconds for one in found]
    assert seconds == sorted(seconds, reverse=True) and seconds[-1] > 0.0
    rest = 0.03  # of an iteration without K
    assert all(rest + less < 1.5 * (rest + more) for less, more in pairwise(seconds))


def test_every_form_of_the_plan_occurs() -> None:
    in_core, direct, blocked, small = (one.memory for one in plans([size * MIB for size in (850, 800, 700, 300)]))
    assert [one.mode for one in (in_core, direct, blocked, small)] == ["in-core", "direct", "blocked", "direct"]
    assert direct.columns > blocked.columns > small.columns >= 16
    assert in_core.aux_at_once == direct.aux_at_once > blocked.aux_at_once > small.aux_at_once


def test_functions_are_grouped_while_few_rows_are_empty() -> None:
    q = [np.arange(4), np.arange(4), np.arange(2, 6), np.arange(40), np.arange(40), np.zeros(0, int), np.arange(3)]

    def ranges(groups: list[Group]) -> list[tuple[int, int, int]]:
        return [(group.first, group.last, len(group.q)) for group in groups]

    assert ranges(group_functions(q, 0)) == [(0, 2, 4), (2, 3, 4), (3, 5, 40), (6, 7, 3)]
    assert ranges(group_functions(q, 18)) == [(0, 3, 6), (3, 5, 40), (6, 7, 3)]
    basis, aux = waters()
    partners = find_partners(basis)
    parts = cut_pairs(basis, partners, 72, aux.nbf)
    assert len(parts.groups) < 0.4 * len(partners.alike) and partners.rows <= parts.places < PADDING * partners.rows
    recomputed = [parts.pairs(k, k + 1, Device()).groups for k in range(len(parts.rows))]
    for groups in (parts.groups, *recomputed):
        assert max((group.last - group.first) * len(group.q) for group in groups) <= parts.gathered_rows
    assert max(parts.rows) < 2.5 * min(parts.rows)


def test_energies_with_less_and_less_memory(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """From all integrals and values stored to none: first there are fewer values, then fewer integrals."""
    monkeypatch.setattr(batches, "MIN_BATCH", 1 << 14)
    caplog.set_level(logging.INFO, "cuanto")
    device, water, forms = Device(), molecule("water_01"), []
    options = {"fitting": "jk", "auxbasis": "cc-pvdz-jkfit", "backend": device}
    # a smaller grid where a batch of points would hardly fit
    cases = [(20_000_000, (10, 26)), (6_000_000, (10, 26)), (4_000_000, (10, 26)), (1_550_000, (10, 14))]
    whole = {grid: cuanto.energy(water, "b3lyp", "cc-pvdz", grid=grid, **options).energy for _, grid in cases}
    for limit, grid in cases:
        caplog.clear()
        with limited_memory(limit):
            less = cuanto.energy(water, "b3lyp", "cc-pvdz", grid=grid, **options)
        assert less.energy == pytest.approx(whole[grid], abs=ENERGY)
        said = [text for text in caplog.messages if text.startswith(("quadrature", "density fitting"))]
        forms.append([text.split(":")[1].strip() for text in said])
    recomputed = ["direct", "direct"]
    assert forms == [["in-core", "stored"], ["in-core", "partly stored"], ["in-core", "direct"], recomputed]
