"""CM5 charges: published values, a direct evaluation of the formula, and the sum of charges."""

from __future__ import annotations

import math

import numpy as np
import pytest

import cuanto
from cuanto import Molecule
from cuanto.arrays import Array
from cuanto.properties import cm5
from cuanto.units import BOHR_IN_ANGSTROM

WATER = "O 0 0 0.117551\nH 0 0.756673 -0.470206\nH 0 -0.756673 -0.470206\n"
HYDROGEN_CHLORIDE = "Cl 0 0 0.070785\nH 0 0 -1.203341\n"
SODIUM_COMPOUND = """C -0.609205 -0.729240 0.000221
C -1.930996 -0.681585 0.000231
Na 1.673943 -0.877925 0.000017
Cl 0.107604 1.151032 -0.000156
H -2.564230 0.197873 -0.000122
H -2.437197 -1.643297 -0.000112
"""
PHENYLUREA = """C -2.585060 -1.031121 -0.039836
C -3.019151 0.286906 0.001659
C -2.077282 1.304388 0.048828
C -0.716691 1.033287 0.054999
C -0.285145 -0.293334 0.012905
C -1.232035 -1.319904 -0.034006
N 1.063351 -0.670447 0.030124
C 2.181849 0.137092 -0.019814
N 3.362904 -0.587503 -0.014599
O 2.161817 1.345506 -0.105228
H 1.221439 -1.662067 -0.028326
H 4.173941 -0.013589 0.137055
H 3.393655 -1.474935 0.457432
H 0.009797 1.828633 0.085145
H -0.897370 -2.351338 -0.066181
H -2.401084 2.337170 0.080642
H -4.076370 0.515908 -0.003521
H -3.301242 -1.842064 -0.077515
"""
PUBLISHED = {
    "water": (WATER, "-0.3065 0.1533 0.1533", "-0.6423 0.3211 0.3211"),
    "hydrogen chloride": (HYDROGEN_CHLORIDE, "-0.1358 0.1358", "-0.1918 0.1918"),
    "sodium compound": (
        SODIUM_COMPOUND,
        "-0.2004 -0.1366 0.5685 -0.2929 0.0314 0.0299",
        "-0.2818 -0.2361 0.7136 -0.3628 0.0845 0.0827",
    ),
    "phenylurea": (
        PHENYLUREA,
        "-0.0393 -0.0511 -0.0335 -0.0533 0.0522 -0.0630 -0.0866 0.2076 -0.1753 -0.3077 0.1241 0.1299 0.1187 0.0340 "
        "0.0304 0.0394 0.0356 0.0379",
        "-0.0950 -0.1071 -0.0891 -0.1016 0.1053 -0.1113 -0.4302 0.3639 -0.6233 -0.3517 0.3272 0.3259 0.3139 0.1017 "
        "0.0900 0.0956 0.0917 0.0941",
    ),
}
"""Geometry / Angstrom, Hirshfeld and CM5 charges of the supporting information, doi:10.1021/ct200866d."""


def molecule(text: str) -> Molecule:
    return Molecule.from_string(f"{len(text.splitlines())}\n\n{text}")


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_charges(name: str) -> None:
    text, hirshfeld, expected = PUBLISHED[name]
    found = cm5(molecule(text), np.array(hirshfeld.split(), dtype=float))
    np.testing.assert_allclose(found, np.array(expected.split(), dtype=float), rtol=0, atol=1e-4)


@pytest.mark.parametrize("name", [*list(PUBLISHED)[:3], pytest.param("phenylurea", marks=pytest.mark.slow)])
def test_published_charges_are_computed(name: str) -> None:
    """M06-L/6-31+G**; the published free atoms are not described, so only charges with similar ones can agree."""
    text, *published = PUBLISHED[name]
    found = cuanto.energy(molecule(text), "m06-l", "6-31+g**", backend="cpu")
    bound = 0.006 if len(text.splitlines()) <= 3 else 0.026
    for charges, expected in zip((found.hirshfeld_charges, found.cm5_charges), published, strict=True):
        np.testing.assert_allclose(charges, np.array(expected.split(), dtype=float), rtol=0, atol=bound)


def direct(symbols: tuple[str, ...], r_ax: Array, q_a: Array) -> list[float]:
    """The formula, pair by pair, with the parameters of a few elements; r in Angstrom."""
    D = {"H": 0.0056, "C": -0.0446, "N": -0.1072, "O": -0.0802, "Br": -0.0313, "Fe": 0.0, "I": -0.0220, "Rn": -0.0269}
    R = {"H": 0.32, "C": 0.75, "N": 0.71, "O": 0.64, "Br": 1.17, "Fe": 1.24, "I": 1.36, "Rn": 1.46}
    pairs = {"HC": 0.0502, "HN": 0.1747, "HO": 0.1671, "CN": 0.0556, "CO": 0.0234, "NO": -0.0346}
    found = []
    for a, one in enumerate(symbols):
        total = float(q_a[a])
        for b, other in enumerate(symbols):
            if a != b:
                T = pairs.get(one + other, -pairs.get(other + one, 0.0)) or D[one] - D[other]
                total += T * math.exp(-2.474 * (math.dist(r_ax[a], r_ax[b]) - R[one] - R[other]))
        found.append(total)
    return found


def test_the_formula_and_the_sum() -> None:
    symbols = ["H", "C", "N", "O", "Br", "Fe", "I", "Rn"]
    r_ax = np.random.default_rng(3).normal(size=(8, 3)) * 2.0
    q_a = np.linspace(-0.5, 0.6, 8)
    found = cm5(Molecule(symbols, r_ax / BOHR_IN_ANGSTROM, charge=1), q_a)
    np.testing.assert_allclose(found, direct(tuple(symbols), r_ax, q_a), rtol=0, atol=1e-12)
    assert found.sum() == pytest.approx(q_a.sum(), abs=1e-12)


def test_ghosts_take_no_part() -> None:
    alone = Molecule(["O", "H"], [[0, 0, 0], [0, 0, 1.8]], charge=-1)
    with_ghost = Molecule(["O", "H", "Gh-N"], [[0, 0, 0], [0, 0, 1.8], [0, 1.0, 0]], charge=-1)
    charges = cm5(with_ghost, np.array([-1.2, 0.2, 0.0]))
    np.testing.assert_allclose(charges, [*cm5(alone, np.array([-1.2, 0.2])), 0.0], rtol=0, atol=1e-14)


def test_a_result_has_them() -> None:
    found = cuanto.energy(molecule(WATER), "hf", "def2-svp", backend="cpu")
    np.testing.assert_allclose(found.cm5_charges, cm5(found.molecule, found.hirshfeld_charges), rtol=0, atol=1e-14)
    assert found.cm5_charges[0] == pytest.approx(-0.665, abs=0.015)
