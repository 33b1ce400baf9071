"""Point groups and symmetry numbers of known molecules in any orientation, and operations that are maps."""

from __future__ import annotations

import numpy as np
import pytest

from cuanto.system.symmetry import LOOSE_TOLERANCE, find_operations, is_linear, symmetry_of
from vibration_cases import rotated

GROUPS = {
    "H2O": ("C2v", 2),
    "NH3": ("C3v", 3),
    "CH4": ("Td", 12),
    "C6H6": ("D6h", 12),
    "C2H6": ("D3d", 6),
    "CO2": ("Dooh", 2),
    "HCN": ("Coov", 1),
    "C2H4": ("D2h", 4),
    "H2O2": ("C2", 2),
    "C3H4_D2d": ("D2d", 4),
    "trans-butane": ("C2h", 2),
    "BF3": ("D3h", 6),
    "CH3CH2OH": ("Cs", 1),
    "C60": ("Ih", 60),
}


@pytest.mark.parametrize("name", GROUPS)
def test_point_groups_in_any_orientation(name: str) -> None:
    assert symmetry_of(*rotated(name)) == GROUPS[name]


@pytest.mark.parametrize("name", ["H2O", "CH4", "CO2", "C2H6"])
def test_operations_map_the_molecule_onto_itself(name: str) -> None:
    kinds, R_ax = rotated(name)
    r_ax = R_ax - R_ax.mean(axis=0)
    operations = find_operations(kinds, R_ax, LOOSE_TOLERANCE)
    assert np.array_equal(operations[0].R_xy, np.eye(3))
    for one in operations:
        assert np.allclose(one.R_xy @ one.R_xy.T, np.eye(3), atol=1e-12)
        assert np.abs(r_ax @ one.R_xy.T - r_ax[one.image_a]).max() < LOOSE_TOLERANCE
        assert [kinds[b] for b in one.image_a] == kinds


def test_isotopes_and_noise_reduce_the_symmetry() -> None:
    kinds, R_ax = rotated("CH4")
    assert symmetry_of([*kinds[:4], "D"], R_ax) == ("C3v", 3)
    noise = np.random.default_rng(0).normal(size=R_ax.shape)
    assert symmetry_of(kinds, R_ax + 1e-3 * noise) == ("Td", 12)
    assert len(find_operations(kinds, R_ax + 1e-3 * noise)) == 1
    assert symmetry_of(["Ne"], [[0.0, 0.0, 0.0]]) == ("Kh", 1)
    assert is_linear(rotated("C2H2")[1], 1e-3) and not is_linear(R_ax, 1e-3)
