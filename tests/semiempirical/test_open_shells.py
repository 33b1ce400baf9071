"""Unrestricted states: the SCF leaves saddle points by default."""

from __future__ import annotations

import numpy as np
import pytest

from cuanto import Molecule
from cuanto.units import BOHR_IN_ANGSTROM
from nddo_cases import molecule, run


def triplet(name: str) -> Molecule:
    """A symmetric triplet, whose SCF from neutral atoms ends at a saddle point."""
    angles = np.arange(6) * np.pi / 3.0
    ring = np.stack([np.cos(angles), np.sin(angles), 0.0 * angles], axis=1)
    symbols, places = {
        "benzene": (["C"] * 6 + ["H"] * 6, np.concatenate([1.395 * ring, 2.482 * ring])),
        "acetylene": (["C", "C", "H", "H"], np.outer([0.608, -0.608, 1.674, -1.674], [0.0, 0.0, 1.0])),
        "carbon dioxide": (["C", "O", "O"], np.outer([0.0, 1.178, -1.178], [0.0, 0.0, 1.0])),
    }[name]
    return Molecule(symbols, places / BOHR_IN_ANGSTROM, multiplicity=3)


@pytest.mark.parametrize(("name", "gain"), [("benzene", 20.0), ("acetylene", 10.0), ("carbon dioxide", 10.0)])
def test_triplets_do_not_end_at_saddle_points(name: str, gain: float) -> None:
    mol = triplet(name)
    saddle, found, followed = (run(mol, "am1", stability=how) for how in ("none", "auto", "follow"))
    assert saddle.converged and found.converged
    assert found.heat_of_formation < saddle.heat_of_formation - gain
    assert found.heat_of_formation == pytest.approx(followed.heat_of_formation, abs=1e-3)
    assert any("internal stability: stable" in note for note in found.notes)


def test_minima_need_only_a_quick_test() -> None:
    found, plain = run(molecule("CH3"), "pm6"), run(molecule("CH3"), "pm6", stability="none")
    assert found.energy == plain.energy and found.iterations == plain.iterations
    assert found.state.curvature is None
