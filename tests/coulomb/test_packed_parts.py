"""Packed rows in several parts: J and K with all, some and none of them stored."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cuanto import Basis
from cuanto.coulomb import fitting, fitting_packed
from cuanto.coulomb.fitting import FittedJK
from cuanto.coulomb.fitting_packed import PackedRows
from cuanto.coulomb.fitting_rows import PAIR_BOUND
from fitting_cases import DATA, Device, budget_of, molecule, random_orbitals


def test_parts_that_are_recomputed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Functions with different partners are copied together, in every part."""
    monkeypatch.setenv("CUANTO_BASIS_PATH", str(DATA / "basis"))
    monkeypatch.setattr(fitting_packed, "GROUPS", 4)
    device, mol = Device(), molecule("alkane_06")
    basis, aux = Basis("cc-pvdz", mol), Basis("cc-pvdz-jkfit", mol)
    C_spi, D_spq = (device.to_device(x) for x in random_orbitals(basis.nbf, 40))
    expected = [device.to_host(X) for X in FittedJK(basis, aux, backend=device)(D_spq, C_spi)]
    schedule = replace(fitting.SCHEDULES["cuda"], storages=("packed",), functions=30)
    monkeypatch.setitem(fitting.SCHEDULES, "cuda", schedule)
    kept = []
    for limit in (200e6, 115e6, 107e6, 60e6):
        fit = FittedJK(basis, aux, backend=device, budget=budget_of(limit, device))
        assert isinstance(fit.tensor, PackedRows) and fit.plan.blocks > 3
        kept.append(fit.plan.kept)
        for mine, theirs in zip(fit(D_spq, C_spi), expected, strict=True):
            assert np.abs(device.to_host(mine) - theirs).max() < 20.0 * PAIR_BOUND * np.abs(theirs).max()
    assert kept == sorted(kept, reverse=True) and kept[-1] == 0 and len(set(kept)) > 2
