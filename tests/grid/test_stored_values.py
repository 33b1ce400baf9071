"""Values of functions that are stored within a memory limit: more of them with more memory, and the same results."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from cuanto.backends.base import get_backend
from cuanto.errors import InputError
from cuanto.grid import batches
from cuanto.grid.batches import BatchQuadrature
from cuanto.grid.groups import make_grid
from cuanto.grid.quadrature import make_quadrature
from cuanto.grid.settings import GridSettings
from cuanto.memory import MIB, StorePlan
from fitting_cases import budget_of
from scf_cases import basis, molecule

SETTINGS = GridSettings(level=(24, 86), batch_bytes=1 << 22)


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "MIN_BATCH", 1 << 18)


def quadrature_of(limit: float, settings: GridSettings = SETTINGS) -> tuple[BatchQuadrature, StorePlan, Any]:
    mol, device, budget = molecule("water_02"), get_backend("simt"), budget_of(limit, "simt")
    orbital = basis("cc-pvdz", mol)
    found = make_quadrature(make_grid(mol, orbital, settings, device), orbital, device, "gga", settings, budget)
    assert isinstance(found[0], BatchQuadrature)
    return found[0], found[1], budget


def test_stored_values_grow_with_the_memory() -> None:
    """As many batches as fit are stored; density and matrix do not depend on it."""
    whole, plan, _ = quadrature_of(1 << 30)
    count, device = len(whole.batches), get_backend("simt")
    assert plan.stored and plan.kept == plan.needed == whole.kept_bytes and len(whole.kept) == count > 5
    C_spi = np.random.default_rng(2).normal(size=(1, whole.nbf, 7))
    D_spq = device.to_device(C_spi @ C_spi.transpose(0, 2, 1))
    rho_scg = whole.density(D_spq, None)
    F_spq = device.to_host(whole.matrix(rho_scg))
    stored = []
    for share in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0):
        less, plan, budget = quadrature_of(SETTINGS.batch_bytes + 2.02 * share * whole.kept_bytes)
        stored.append(len(less.kept))
        assert plan.stored == (share == 1.0) and budget.reserved.get("values of functions", 0) == plan.kept
        assert plan.kept == sum(chi.nbytes for chi in less.kept) <= 0.5 * (plan.limit - less.work_bytes)
        assert np.array_equal(device.to_host(less.density(D_spq, None)), device.to_host(rho_scg))
        assert np.array_equal(device.to_host(less.matrix(rho_scg)), F_spq)
    assert stored[0] == 0 and stored[-1] == count and all(0 < b - a < count / 2 for a, b in pairwise(stored))


def test_a_batch_takes_most_of_the_memory_first() -> None:
    """Small batches cost more time than recomputed values."""
    limit = 1.0 * SETTINGS.batch_bytes
    less, plan, _ = quadrature_of(limit)
    assert 0.7 < less.work_bytes / (batches.WORK_SHARE * limit) <= 1.0
    assert plan.kept <= 0.5 * (limit - less.work_bytes)
    assert len(quadrature_of(1000)[0].batches) > len(less.batches)
    assert 0.8 < quadrature_of(8 * SETTINGS.batch_bytes)[0].work_bytes / SETTINGS.batch_bytes <= 1.0


def test_required_values_are_all_stored_or_refused() -> None:
    keep = replace(SETTINGS, store="keep")
    needed = quadrature_of(1 << 30, keep)[0].kept_bytes
    assert quadrature_of(needed, keep)[1].stored
    with pytest.raises(InputError, match=r"storing the values of functions takes .* or use store='recompute'"):
        quadrature_of(needed - 1, keep)


def test_text_of_a_part() -> None:
    text = str(StorePlan("values of functions", False, 300 * MIB, 200 * MIB, kept=90 * MIB))
    assert text == "partly stored: 90 of 300 MiB of the values of functions kept, 200 MiB allowed"
