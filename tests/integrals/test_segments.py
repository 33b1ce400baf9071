"""Shells by class: a moved basis has the classes of the original one, with other centres."""

from __future__ import annotations

import numpy as np

from cuanto import Basis, Molecule, integrals
from cuanto.integrals.segments import segments

WATER = Molecule.from_string("3\n\nO 0 0 0.1\nH 0 0.75 -0.5\nH 0 -0.75 -0.5\n")


def test_a_moved_basis_shares_everything_but_centres() -> None:
    basis, R_ax = Basis("6-31g", WATER), WATER.R_ax * 1.1
    moved, fresh = basis.moved_to(R_ax), Basis("6-31g", Molecule(WATER.symbols, R_ax))
    for old, mine, new in zip(segments(basis), segments(moved), segments(fresh), strict=True):
        assert mine.exponents is old.exponents and mine.ao is old.ao
        assert np.array_equal(mine.centres, new.centres) and not np.array_equal(mine.centres, old.centres)
    S_pq, expected = (integrals.overlap(one, backend="cpu") for one in (moved, fresh))
    assert np.array_equal(S_pq, expected)
