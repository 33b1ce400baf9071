"""Radial integrals of atoms: the closed sums, the tables made from them, and the kernels on every backend."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from atomic_cases import PLANE_NAMES, planes, random_basis, random_densities, slow_planes
from cuanto.atomic import SPECIES, AtomBasis, Repulsion
from cuanto.atomic.atom import MAX_EXPONENT, MIN_EXPONENT
from cuanto.atomic.species import exchange_factors
from cuanto.backends.cpu.backend import CpuBackend
from cuanto.backends.cuda.nvrtc import compile_nvrtc
from cuanto.kernels.atomic import class_tables, contract_source, integral_source, laurent
from oracles import atomic as slow
from tolerances import INTEGRAL_REL

SIZES = (3, 2, 2, 2, 2, 2, 2, 2, 2)
"""Numbers of functions of S+ to G+."""
KERNEL_REL = 1e-14
"""Relative tolerance; tighter than for other kernels, because all terms are positive."""


def quadrature(k: int, a: int, b: int, alpha: float, beta: float) -> mpmath.mpf:
    """R^k with one integration in closed form and one by quadrature."""
    with mpmath.workdps(30):
        x, half = mpmath.mpf(alpha), mpmath.mpf(1) / 2

        def inner(r: mpmath.mpf) -> mpmath.mpf:
            t = x * r * r
            n, m = half * (a + k + 1), half * (a - k)
            near = mpmath.gammainc(n, 0, t) / (2 * x**n) / r ** (k + 1)
            far = mpmath.gammainc(m, t) / (2 * x**m) * r**k
            return (near + far) * r**b * mpmath.exp(-beta * r * r)

        edges = [0, *(mpmath.mpf(s) / mpmath.sqrt(beta) for s in (0.1, 0.5, 1, 2, 3, 5, 10))]
        return mpmath.quad(inner, edges)


@pytest.mark.parametrize(
    ("k", "a", "b", "alpha", "beta"),
    [(0, 2, 4, 0.7, 31.0), (1, 3, 5, 2e3, 0.4), (2, 4, 6, 1.0, 1.0), (3, 5, 5, 1e-3, 5.0), (6, 8, 10, 9.0, 0.02)],
)
def test_closed_sums_are_the_integral(k: int, a: int, b: int, alpha: float, beta: float) -> None:
    exact = quadrature(k, a, b, alpha, beta)
    assert abs(slow.monomials(k, a, b, alpha, beta) / exact - 1) < 2e-15
    table = laurent(a, b, {k: Fraction(1)}, 1, 1)
    assert (table.values > 0).all()  # positive terms cannot cancel
    c = table.values[:, 0, 0]
    lower = np.polyval(c[: table.below], alpha / beta) / beta
    upper = np.polyval(c[table.below :], beta / alpha) / alpha
    found = (alpha + beta) ** (-(a + b - 1) / 2) * (lower + upper)
    assert abs(found / exact - 1) < 3e-15


def test_small_functions_of_the_oracle_are_derivatives() -> None:
    for species in SPECIES:
        z, r, step = 1.7, 0.8, 1e-5
        [(norm, power)] = slow.large(species.kappa, z)

        def large(x: float, norm: float = norm, power: int = power, z: float = z) -> float:
            return norm * x**power * np.exp(-z * x * x)

        derivative = (large(r + step) - large(r - step)) / (2 * step) + species.kappa / r * large(r)
        small = sum(c * r**n for c, n in slow.small(species.kappa, z)) * np.exp(-z * r * r)
        assert small * np.sqrt((2 * species.l + 3) * z) == pytest.approx(derivative, rel=1e-8)


@pytest.mark.parametrize("name", ["cpu", "simt"])
@pytest.mark.parametrize("extreme", [False, True], ids=["usual", "extreme"])
def test_every_class(name: str, extreme: bool) -> None:
    """All kinds of integrals of all pairs of species; errors are relative to the sum of the absolute terms."""
    basis = random_basis(3, SIZES, -16.0, 36.0) if extreme else random_basis(1, SIZES)
    repulsion = Repulsion(basis, name)
    for i in range(basis.nsym):
        for j in range(i + 1 if name == "cpu" else basis.nsym):
            expected, found = slow_planes(basis, i, j), planes(repulsion, i, j)
            sizes = slow_planes(basis, i, j, sizes=True)
            for plane in PLANE_NAMES:
                error = np.abs(found[plane] - expected[plane]) / sizes[plane]
                assert error.max() < KERNEL_REL, (SPECIES[i].label, SPECIES[j].label, plane)


@pytest.mark.parametrize("name", ["cpu", "simt"])
def test_potential_equals_that_of_the_oracle(name: str) -> None:
    basis = random_basis(5, (4, 3, 2, 3, 2, 1, 2))
    D_i = random_densities(basis)
    repulsion = Repulsion(basis, name)
    found = repulsion.potential(D_i)
    classes = {}
    for i in range(basis.nsym):
        for j in range(basis.nsym):
            one, other = SPECIES[i], SPECIES[j]
            z, y = basis.exponents[i], basis.exponents[j]
            result = slow.supermatrices(one.kappa, z, other.kappa, y, exchange_factors(one, other))
            classes[i, j] = slow.potential(result, D_i[j])
    for i, P in enumerate(found):
        expected = sum(classes[i, j] for j in range(basis.nsym))
        assert np.abs(P - expected).max() < INTEGRAL_REL * np.abs(expected).max()
    chosen, A_lm = (0, 3, 4), np.array([[0.3, 0.1, -0.2], [0.1, 0.5, 0.4], [-0.2, 0.4, 1.0]])
    for a, Q in enumerate(repulsion.open_shell(D_i, chosen, A_lm)):
        expected = sum(A_lm[a, b] * classes[chosen[a], m] for b, m in enumerate(chosen))
        assert np.abs(Q - expected).max() < INTEGRAL_REL * np.abs(expected).max()


@pytest.mark.parametrize("name", ["cpu", "simt"])
def test_large_components_alone(name: str) -> None:
    basis = random_basis(6, (4, 3, 2))
    D_i = random_densities(basis)
    for D, n in zip(D_i, basis.sizes, strict=True):
        D[n:] = D[:, n:] = 0.0
    whole = Repulsion(basis, name).potential(D_i)
    alone = Repulsion(basis, name, relativistic=False)
    parts = alone.potential([D[:n, :n] for D, n in zip(D_i, basis.sizes, strict=True)])
    for n, one, other in zip(basis.sizes, whole, parts, strict=True):
        assert np.abs(one[:n, :n] - other).max() < 1e-13 * np.abs(other).max()


def test_parts_and_threads_do_not_matter() -> None:
    """Large enough for several tasks; includes blocks of one row and symmetries without functions."""
    sizes = (30, 0, 25, 1, 28)
    basis = AtomBasis(tuple(0.05 * 1.7 ** np.arange(n) for n in sizes))
    D_i = random_densities(basis)
    one, many = (Repulsion(basis, CpuBackend(threads=n)).potential(D_i) for n in (1, 3))
    for P, Q in zip(one, many, strict=True):
        np.testing.assert_array_equal(P, Q)


def test_symmetries_without_functions_on_the_gpu_path() -> None:
    basis = AtomBasis((np.array([0.3, 2.0]), np.array([]), np.array([0.7])))
    D_i = random_densities(basis)
    pairs = zip(Repulsion(basis, "simt").potential(D_i), Repulsion(basis, "cpu").potential(D_i), strict=True)
    for P, Q in pairs:
        assert np.abs(P - Q).max(initial=0.0) <= 1e-13 * np.abs(Q).max(initial=1.0)


def test_the_range_of_exponents() -> None:
    """Integrals are finite for the smallest and largest accepted exponents in all species together."""
    basis = AtomBasis((np.array([MIN_EXPONENT, 1.0, MAX_EXPONENT]),) * 9)
    for P in Repulsion(basis, "cpu").potential([np.eye(6)] * 9):
        assert np.isfinite(P).all()


def test_few_texts_cover_all_classes() -> None:
    for target in ("cpu", "cuda"):
        texts = {integral_source(target, a.kappa, b.kappa).hash for a in SPECIES for b in SPECIES}
        assert len(texts) == 4
        assert len({integral_source(target, a.kappa, b.kappa, False).hash for a in SPECIES for b in SPECIES}) == 1
        assert contract_source(target, True).hash != contract_source(target, False).hash


def test_nvrtc_compiles_the_texts() -> None:
    for kappa, other in ((-1, -1), (-1, 1), (1, -1), (1, 1)):
        binary, _ = compile_nvrtc(integral_source("cuda", kappa, other).text, "sm_90")
        assert len(binary) > 1000
    compile_nvrtc(integral_source("cuda", -1, -1, False).text, "sm_80")
    for relativistic in (True, False):
        compile_nvrtc(contract_source("cuda", relativistic).text, "sm_90")


def test_tables_of_a_class_equal_those_of_its_orders() -> None:
    """F+ with F+ has four orders of exchange: the sum of four tables is as long as the longest of them."""
    species = SPECIES[6]
    factors = tuple(exchange_factors(species, species).items())
    tables = class_tables(species.kappa, species.kappa, factors)
    below, above, _ = tables.shape[3 * 4 : 3 * 5]
    assert (below, above) == (4, 4)
