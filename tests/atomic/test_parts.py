"""Parts of an atom: angular factors, occupations, nuclei, exponents, one-electron matrices."""

from __future__ import annotations

import re
from fractions import Fraction
from math import comb, sqrt

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from atomic_cases import entries
from cuanto.atomic import (
    SPECIES,
    Atom,
    AtomBasis,
    Nucleus,
    Occupation,
    ScfSettings,
    even_tempered,
    well_tempered,
)
from cuanto.atomic.nucleus import MODELS
from cuanto.atomic.one_electron import attraction, balance, core, moments, orthonormaliser, overlap, potential_integral
from cuanto.atomic.species import exchange_factors
from cuanto.errors import InputError
from oracles import atomic as slow

LAMBDA = """
S+S+ L0=1/2; S+P- L1=1/6; S+P+ L1=1/6; S+D- L2=1/10; S+D+ L2=1/10; S+F- L3=1/14; S+F+ L3=1/14; P-P- L0=1/2;
P-P+ L2=1/10; P-D- L1=1/6; P-D+ L3=1/14; P-F- L2=1/10; P-F+ L4=1/18; P+P+ L0=1/4 L2=1/20; P+D- L1=1/60 L3=9/140;
P+D+ L1=1/10 L3=1/35; P+F- L2=1/70 L4=1/21; P+F+ L2=9/140 L4=5/252; D-D- L0=1/4 L2=1/20; D-D+ L2=1/70 L4=1/21;
D-F- L1=1/10 L3=1/35; D-F+ L3=1/84 L5=5/132; D+D+ L0=1/6 L2=4/105 L4=1/63; D+F- L1=1/210 L3=4/315 L5=25/693;
D+F+ L1=1/14 L3=1/42 L5=5/462; F-F- L0=1/6 L2=4/105 L4=1/63; F-F+ L2=1/210 L4=5/462 L6=25/858;
F+F+ L0=1/8 L2=5/168 L4=9/616 L6=25/3432
"""


def test_angular_factors() -> None:
    """Factors of S+ to F+ equal the published ones, and those up to G+ obey the sum rules."""
    species = {one.label: one for one in SPECIES}
    for text in LAMBDA.split(";"):
        name, *terms = text.split()
        one, other = species[name[:2]], species[name[2:]]
        expected = {int(k): Fraction(v) for k, v in re.findall(r"L(\d)=([\d/]+)", " ".join(terms))}
        assert exchange_factors(one, other) == expected == exchange_factors(other, one)
    for one in SPECIES:
        for other in SPECIES:
            # The sum of (2k + 1) Lambda_k over all k is 1, and exchange has only every other k.
            total = sum((2 * k + 1) * x for k, x in exchange_factors(one, other).items())
            assert 0 < total < 1
        assert exchange_factors(one, one)[0] == Fraction(1, one.capacity)


def test_species() -> None:
    labels = [one.label for one in SPECIES]
    assert labels == ["S+", "P-", "P+", "D-", "D+", "F-", "F+", "G-", "G+"]
    assert [one.l for one in SPECIES] == [0, 1, 1, 2, 2, 3, 3, 4, 4]
    assert [one.lbar for one in SPECIES] == [1, 0, 2, 1, 3, 2, 4, 3, 5]
    assert [one.capacity for one in SPECIES] == [2, 2, 4, 4, 6, 6, 8, 8, 10]


@pytest.mark.parametrize(("l", "n"), [(l, n) for l in (1, 2, 3) for n in (1, 2, l + 1, 4 * l + 1)])
def test_one_open_subshell_couples_as_its_configuration(l: int, n: int) -> None:
    """All distributions over the two components: every f is M (n - 1)/(n (M - 1)), M = 4l + 2."""
    opened = [False] * (2 * l - 1) + [True, True]
    occupation = Occupation.all_of((1,) * (2 * l + 1), opened, n)
    M = 4 * l + 2
    assert np.abs(1.0 - occupation.coupling() - M * (n - 1) / (n * (M - 1))).max() < 1e-14
    assert occupation.mean_occupations == pytest.approx([n * 2 * l / M, n * (2 * l + 2) / M], abs=1e-14)
    weights = [comb(2 * l, int(a)) * comb(2 * l + 2, int(b)) for a, b in occupation.configurations]
    assert occupation.normalised_weights == pytest.approx(np.array(weights) / comb(M, n), abs=1e-14)


def test_factors_between_separate_subshells_are_one() -> None:
    """f between s and d is 1 for 3d5 4s1, whose configurations are listed one by one."""
    listed = tuple((1.0, float(n), 5.0 - n) for n in (4, 3, 2, 1, 0))
    occupation = Occupation((3, 2, 2, 0, 0), (True, False, False, True, True), listed)
    A_lm = occupation.coupling()
    assert np.abs(A_lm[0, 1:]).max() < 1e-14
    assert A_lm[0, 0] == pytest.approx(1.0)  # one electron does not repel itself
    assert occupation.electrons == pytest.approx(24.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (((),), "same length"),
        (((1, -1),), "non-negative"),
        (((1,), (True,)), "give both"),
        (((1,), (False,), ((1.0,),)), "give both"),
        (((1,), (True,), ((3.0,),)), "holds 0 to 2 electrons"),
        (((1,), (True,), ((1.0, 1.0),)), "give 1 numbers"),
        (((1,), (True,), ((2.0,),)), "declare it closed"),
        (((1,), (True,), ((0.0,),)), "leave it out"),
        (((1, 0, 0), (False, True, True), ((1.0, 1.0), (2.0, 1.0))), "the first one 2"),
        (((1,), (True,), ((1.0,),), (-1.0,)), "non-negative"),
    ],
)
def test_impossible_occupations(arguments: tuple, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Occupation(*arguments)
    with pytest.raises(InputError, match="do not fit"):
        Occupation.all_of((1, 0, 0), (0, 1, 1), 7)


def test_nuclear_sizes_are_the_stored_ones() -> None:
    for entry in entries().values():
        for model, key in (("gaussian", "gaussian_eta"), ("sphere", "sphere_R_bohr")):
            nucleus = Nucleus(entry["Z"], model)
            assert nucleus.size == pytest.approx(entry["nucleus"][key], rel=1e-14)
            assert nucleus.rms == pytest.approx(entry["nucleus"]["r_rms_bohr"], rel=1e-14)
    assert Nucleus(1, "gaussian").size == pytest.approx(2.1248239e9, rel=1e-7)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.0,), "positive"),
        ((float("nan"),), "positive"),
        ((1.0, "fermi"), "unknown nuclear model"),
        ((1.0, "point", 1.0), "has no size"),
        ((1.0, "sphere", -1.0), "positive number"),
        ((1.5, "gaussian"), "give the size"),
        ((120, "gaussian"), "give the size"),
    ],
)
def test_impossible_nuclei(arguments: tuple, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Nucleus(*arguments)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("a", [0.1, 30.0, 1e8, 1e12])
def test_potentials_against_quadrature(model: str, a: float) -> None:
    nucleus = Nucleus(54, model)

    def potential(r: mpmath.mpf) -> mpmath.mpf:
        if model == "gaussian":
            return mpmath.erf(mpmath.sqrt(nucleus.size) * r) / r
        if model == "sphere" and r < nucleus.size:
            return (3 - (r / nucleus.size) ** 2) / (2 * mpmath.mpf(nucleus.size))
        return 1 / r

    with mpmath.workdps(25):
        width = 1 / mpmath.sqrt(a)
        size = 0 if nucleus.size is None else nucleus.rms * mpmath.sqrt(5 / mpmath.mpf(3))
        inner = [s * size / width for s in (0.2, 0.5, 1, 2, 4) if 0 < s * size < 9 * width]
        edges = sorted({0, *inner, *map(mpmath.mpf, (0.2, 1, 2, 4, 9))})
        for n in range(5):
            # in units of the width of the Gaussian
            scaled = mpmath.quad(lambda x, n=n: potential(x * width) * x ** (2 * n + 2) * mpmath.exp(-x * x), edges)
            exact = scaled * width ** (2 * n + 3)
            assert abs(potential_integral(nucleus, n, np.array(a)) / exact - 1) < 5e-15


@pytest.mark.parametrize("species", SPECIES, ids=lambda one: one.label)
def test_matrices_against_the_oracle(species) -> None:
    """Sums over monomials of the slow functions: overlap, kinetic balance, moments, attraction of a point."""
    z = np.array([0.3, 2.0, 45.0])
    a = np.add.outer(z, z)

    def matrix(make, extra: int) -> np.ndarray:
        """<f|r^extra|g>."""
        f = [make(species.kappa, x) for x in z]
        found = np.zeros((3, 3))
        for p in range(3):
            for q in range(3):
                for c, n in f[p]:
                    for d, m in f[q]:
                        t = 0.5 * (n + m + extra + 1)
                        found[p, q] += c * d * float(mpmath.gamma(t)) / (2.0 * a[p, q] ** t)
        return found

    for found, make in zip(overlap(species, z), (slow.large, slow.small), strict=True):
        assert np.abs(found - matrix(make, 0)).max() < 1e-14
        assert np.diag(found) == pytest.approx(np.ones(3), abs=1e-15)
    for power in (-1, 1, 2):
        for found, make in zip(moments(species, z, power), (slow.large, slow.small), strict=True):
            expected = matrix(make, power)
            assert np.abs(found - expected).max() < 2e-14 * np.abs(expected).max()
    for found, make in zip(attraction(species, z, Nucleus(7.0)), (slow.large, slow.small), strict=True):
        expected = -7.0 * matrix(make, -1)
        assert np.abs(found - expected).max() < 2e-14 * np.abs(expected).max()
    # kinetic balance: d/dr + kappa/r of large function q is balance_q times small function q
    one = core(species, z, Nucleus(7.0), 3.0, True)
    assert np.abs(one.T[3:, :3] - 3.0 * overlap(species, z)[1] * balance(species, z)).max() < 1e-13


@pytest.mark.parametrize("species", SPECIES[:7], ids=lambda one: one.label)
def test_hydrogenic_levels(species) -> None:
    """The lowest state of every kappa: the formula of Dirac and Sommerfeld."""
    Z, c = 1.0, 137.03599976
    z = even_tempered(0.0007, 1.6, 45)
    one = core(species, z, Nucleus(Z), c, True)
    lowest = np.linalg.eigvalsh(one.X.T @ one.h @ one.X)[one.negative]
    k = abs(species.kappa)
    gamma = sqrt(k * k - (Z / c) ** 2)
    n_r = species.l + 1 - k
    exact = c * c * (1.0 / sqrt(1.0 + (Z / c) ** 2 / (gamma + n_r) ** 2) - 1.0)
    assert abs(lowest - exact) < 2e-9


def test_functions_that_depend_on_each_other_are_left_out() -> None:
    z = np.concatenate([even_tempered(0.1, 2.0, 8), even_tempered(0.1, 2.0, 8)[2:4] * (1 + 1e-9)])
    S_LL, S_SS = overlap(SPECIES[0], np.sort(z))
    X_L, X_S = orthonormaliser([S_LL, S_SS])
    assert X_L.shape[1] == X_S.shape[1] < len(z)
    for S, X in ((S_LL, X_L), (S_SS, X_S)):
        assert np.abs(X.T @ S @ X - np.eye(X.shape[1])).max() < 1e-5


def test_well_tempered_sets() -> None:
    zeta = well_tempered(0.1, 2.0, 3.0, 0.5, last=6)
    assert zeta[0] == 0.1
    for k in range(2, 7):
        assert zeta[k - 1] / zeta[k - 2] == pytest.approx(2.0 * (1 + 0.5 * (k / 6) ** 3.0))
    assert well_tempered(0.1, 2.0, 3.0, 0.5, last=6, first=3) == pytest.approx(zeta[2:])
    assert well_tempered(0.1, 2.0, 3.0, 0.5, last=6, K=9)[-1] < zeta[-1]


@given(st.tuples(*[st.floats(-3.0, 6.0)] * 4), st.integers(1, 30))
def test_well_tempered_sets_rise_or_are_refused(parameters: tuple[float, float, float, float], last: int) -> None:
    try:
        zeta = well_tempered(*parameters, last=last)
    except InputError as error:
        assert "\n" not in str(error)
    else:
        assert len(zeta) == last and (zeta > 0).all() and np.isfinite(zeta).all() and (np.diff(zeta) > 0).all()


def test_impossible_exponents_and_settings() -> None:
    for exponents, message in (
        ((), "1 to 9 are possible"),
        (([1.0, -1.0],), "positive"),
        (([float("inf")],), "positive"),
        (([1.0, 1.0],), "equal"),
        (([1.0],) * 10, "10 symmetries"),
    ):
        with pytest.raises(InputError, match=message):
            AtomBasis(exponents)
    for call in (lambda: even_tempered(1.0, 0.9, 3), lambda: well_tempered(1.0, 2.0, 1.0, 1.0, 3, 4)):
        with pytest.raises(InputError):
            call()
    basis = AtomBasis(([1.0, 2.0],))
    with pytest.raises(InputError, match="give the same number of both"):
        Atom(Nucleus(2), basis, Occupation((1, 0, 0)))
    with pytest.raises(InputError, match="give more"):
        Atom(Nucleus(6), basis, Occupation((3,)))
    for settings in ({"c": 0.0}, {"damping": 1.0}, {"max_iterations": 0}, {"level_shift": -1.0}, {"threshold_SS": 0.0}):
        with pytest.raises(InputError):
            ScfSettings(**settings)
    with pytest.raises(InputError, match="above 300000 the SCF does not converge"):
        ScfSettings(c=1e200)
    assert ScfSettings(c=1e200, relativistic=False).c == 1e200
    with pytest.raises(InputError, match="unknown accelerator"):
        ScfSettings(accelerator="magic")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="unknown diagonaliser 'magic': choose full or pseudo"):
        ScfSettings(diagonaliser="magic")  # type: ignore[arg-type]
