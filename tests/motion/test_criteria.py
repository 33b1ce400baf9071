"""Criteria of convergence."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from cuanto.errors import InputError
from cuanto.motion.criteria import PRESETS, Criteria, Measures, displacement, superpose


def test_normal_criteria_are_those_of_the_gaussian_program() -> None:
    assert tuple(vars(PRESETS["normal"]).values()) == (3e-4, 4.5e-4, 1.2e-3, 1.8e-3)


def test_each_preset_is_stricter_than_the_one_before() -> None:
    limits = [np.array(list(vars(one).values())) for one in PRESETS.values()]
    assert all((b < a).all() for a, b in pairwise(limits))


def test_criteria_are_met_one_by_one() -> None:
    measures = Measures(1e-4, 1e-3, 1e-3, float("nan"))
    assert PRESETS["normal"].met(measures) == (True, False, True, False)
    assert not PRESETS["normal"].flat(measures)
    assert PRESETS["normal"].flat(Measures(2e-6, 4e-6, 1.0, 1.0))


def test_the_energy_of_a_step() -> None:
    assert [round(one.energy, 8) for one in PRESETS.values()] == [2.5e-5, 1e-6, 1e-6, 1e-6]


def test_measures_are_over_components() -> None:
    gradient = np.array([[3e-4, 0.0, 0.0], [0.0, -4e-4, 0.0]])
    found = Measures.of(gradient, None)
    assert found.gradient_rms == pytest.approx(np.sqrt(25e-8 / 6)) and found.gradient_max == 4e-4
    assert np.isnan(found.displacement_rms)


def test_criteria_from_names_and_values() -> None:
    assert Criteria.of("Tight") is PRESETS["tight"]
    assert Criteria.of({"gradient_max": 1e-3}) == Criteria(3e-4, 1e-3, 1.2e-3, 1.8e-3)
    with pytest.raises(InputError, match="choose loose, normal, tight, verytight"):
        Criteria.of("tightest")
    with pytest.raises(InputError, match="did you mean 'gradient_max'"):
        Criteria.of({"gradient_maximum": 1e-3})
    with pytest.raises(InputError, match="between 0 and 1"):
        Criteria.of({"gradient_max": -1.0})


def test_a_rotation_is_no_displacement() -> None:
    generator = np.random.default_rng(1)
    R_ax = generator.normal(size=(5, 3))
    rotation = np.linalg.qr(generator.normal(size=(3, 3)))[0]
    rotation *= np.linalg.det(rotation)
    moved = R_ax @ rotation + [1.0, 2.0, 3.0]
    assert np.abs(displacement(moved, R_ax)).max() < 1e-12
    mirrored = R_ax * [1, 1, -1]  # a mirror image cannot be reached by rotation
    assert np.abs(displacement(mirrored, R_ax)).max() > 0.1
    assert superpose(R_ax, moved).mean(axis=0) == pytest.approx(0, abs=1e-12)
