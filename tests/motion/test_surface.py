"""A surface gives the results of `cuanto.gradient`, and carries orbitals from one geometry to the next."""

from __future__ import annotations

import numpy as np
import pytest

import cuanto
from cuanto import Molecule
from cuanto.errors import InputError
from cuanto.motion.surface import Surface

WATER = Molecule.from_string("3\nname=water\nO 0 0 0.1\nH 0 0.75 -0.5\nH 0 -0.75 -0.5\n")


@pytest.mark.parametrize(("method", "basis"), [("hf", "sto-3g"), ("pm6", None)])
def test_a_surface_agrees_with_gradient_and_starts_from_the_last_orbitals(method: str, basis: str | None) -> None:
    surface = Surface(WATER, method, basis, backend="cpu")
    first = surface.at(WATER.R_ax)
    moved = WATER.R_ax + 0.01 * np.eye(3)
    second = surface.at(moved)
    alone = cuanto.gradient(surface.molecule_at(moved), method, basis, backend="cpu")
    assert second.energy == pytest.approx(alone.energy, abs=1e-9)
    assert np.allclose(second.gradient, alone.gradient, atol=1e-6)
    assert second.iterations <= first.iterations
    assert surface.result is second


def test_options_are_checked_before_the_first_geometry() -> None:
    with pytest.raises(InputError):
        Surface(WATER, "hf", "sto-3g", gird="fine")
