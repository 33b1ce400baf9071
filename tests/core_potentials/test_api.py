"""Matrix and gradient of core potentials: against brute force, PySCF, closed forms and finite differences."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.special import eval_legendre, ive

from cuanto import Basis, core_potentials, integrals
from cuanto.backends import get_backend
from cuanto.basis import Shell
from cuanto.basis.core_potential import CorePotential, RadialTerm
from cuanto.core_potentials import local, radial
from cuanto.errors import InputError
from oracles.core_potential import core_matrix_and_gradient
from paths import ROOT
from tolerances import FINITE_DIFFERENCE

Array = NDArray[np.float64]
DEVICES = pytest.mark.parametrize("device", ["cpu", "simt", pytest.param("cuda", marks=pytest.mark.gpu)])
EXACT = 1e-10
"""Tolerance against other evaluations, relative to the largest element of a block of two shells or to 1."""
ROUNDING = 1e-12
R_AX = np.array([[0.1, -0.2, 0.3], [1.1, 0.9, -0.6], [-0.8, 1.4, 1.3]])


def shell(atom: int, l: int, exponents: list[float], coefficients: list[list[float]], pure: bool = True) -> Shell:
    return Shell.from_table(atom, l, exponents, coefficients, pure)


def basis_at(R_ax: Array = R_AX) -> Basis:
    """Contracted, generally contracted, pure and Cartesian shells up to f."""
    single = [[1.0]]
    shells = [
        shell(0, 0, [5.0, 0.7], [[0.4], [0.7]]),
        shell(0, 1, [1.3, 0.3], [[0.5, 0.0], [0.6, 1.0]]),
        shell(0, 2, [0.8], single),
        shell(1, 0, [1.9], single),
        shell(1, 1, [0.4], single),
        shell(1, 2, [0.9], single, pure=False),
        shell(2, 0, [0.15], single),
        shell(2, 3, [0.7], single),
    ]
    return Basis.from_shells(shells, R_ax)


def every_power() -> CorePotential:
    """A local part with all powers, projectors from s to h with different ones; no f projector."""
    local = tuple(RadialTerm(n, 0.9 + 0.4 * n, 1.5 - 0.7 * n) for n in range(5))
    projected = tuple(
        () if l == 3 else (RadialTerm(l % 3, 1.1 + 0.3 * l, 2.0), RadialTerm(2, 0.8, -0.5)) for l in range(6)
    )
    return CorePotential(28, local, projected)


def symmetric(n: int) -> Array:
    A = np.random.default_rng(5).normal(size=(n, n))
    return np.asarray(A + A.T)


@cache
def brute_force() -> tuple[Array, Array]:
    """Matrix and gradient of a potential at the first atom."""
    basis = basis_at()
    return core_matrix_and_gradient(basis, 0, every_power(), symmetric(basis.nbf), end=6.0, panels=5, degree=39)


@DEVICES
def test_against_brute_force(device: str) -> None:
    backend, basis = get_backend(device), basis_at()
    potentials = [every_power(), None, None]
    V_pq = backend.to_host(core_potentials.matrix(basis, potentials, backend=backend))
    D_pq = backend.to_device(symmetric(basis.nbf))
    gradient = core_potentials.gradient(basis, D_pq, potentials, backend=backend)
    for found, expected in zip((V_pq, gradient), brute_force(), strict=True):
        np.testing.assert_allclose(found, expected, rtol=0, atol=EXACT * abs(expected).max())
    assert abs(V_pq - V_pq.T).max() < ROUNDING


def test_gradient_is_the_derivative_of_the_energy() -> None:
    D_pq, potentials, step = symmetric(basis_at().nbf), [every_power(), None, every_power()], 1e-3

    def energy(atom: int, x: int, shift: float) -> float:
        R_ax = R_AX.copy()
        R_ax[atom, x] += shift
        return float((D_pq * core_potentials.matrix(basis_at(R_ax), potentials, backend="cpu")).sum())

    gradient = core_potentials.gradient(basis_at(), D_pq, potentials, backend="cpu")
    for atom, x in ((0, 1), (1, 2), (2, 0)):
        near, far = (energy(atom, x, k * step) - energy(atom, x, -k * step) for k in (1, 2))
        assert gradient[atom, x] == pytest.approx((8 * near - far) / (12 * step), abs=FINITE_DIFFERENCE)


def pyscf_basis(mole: Any) -> Basis:
    shells = [
        Shell(mole.bas_atom(i), mole.bas_angular(i), mole.bas_exp(i), mole._libcint_ctr_coeff(i), not mole.cart)
        for i in range(mole.nbas)
    ]
    return Basis.from_shells(shells, mole.atom_coords())


def largest_block_error(mole: Any, V_pq: Array, reference: Array) -> float:
    """Largest difference in a block of two shells relative to its largest element, or to 1."""
    first = mole.ao_loc_nr()[:-1]

    def largest(A: Array) -> Array:
        return np.maximum.reduceat(np.maximum.reduceat(abs(A), first, axis=0), first, axis=1)

    return float((largest(V_pq - reference) / np.maximum(1.0, largest(reference))).max())


@pytest.mark.parametrize(
    ("distance", "cartesian", "exponent", "power"),
    [
        (0.0, False, 0.3, 0),
        (0.05, True, 200.0, 1),
        (2.0, False, 15.0, 2),
        (2.0, True, 0.3, 1),
        (2.0, False, 200.0, 0),
        (4.0, False, 1.0, 2),
        (8.0, False, 0.3, 1),
    ],
)
def test_matrix_against_pyscf(distance: float, cartesian: bool, exponent: float, power: int) -> None:
    """Shells to g, projectors to h; coincident, near and far centres; tight and diffuse functions and potentials."""
    from pyscf import gto

    here = [[l, [a, 1.0]] for l, a in ((0, 0.05), (0, 90.0), (1, 0.6), (2, 8.0), (3, 0.3), (4, 0.6))]
    there = [[l, [a, 1.0]] for l, a in ((0, 1.1), (1, 0.08), (2, 0.9), (3, 0.5), (4, 1.1))]
    terms = [[] for _ in range(power)] + [[[exponent, 1.0]]]
    ecp = {"I": [28, [[l, terms] for l in range(-1, 6)]]}
    atoms = [("I", (0, 0, 0)), ("H", (0, 0, 9))]
    mole = gto.M(atom=atoms, basis={"I": here, "H": there}, ecp=ecp, cart=cartesian, spin=None, verbose=0)
    mole.set_geom_(np.array([[0, 0, 0], distance * np.array([0.3, 0.5, 0.81])]), unit="Bohr")
    term = (RadialTerm(power, exponent, 1.0),)
    potentials = [CorePotential(28, term, (term,) * 6), None]
    V_pq = core_potentials.matrix(pyscf_basis(mole), potentials, backend="cpu")
    assert largest_block_error(mole, V_pq, mole.intor("ECPscalar")) < EXACT


def test_tight_functions_at_a_distance_against_the_closed_form() -> None:
    """With r^0 exp(-z r^2), the overlap of three s functions; quadratures of other programs miss such functions."""
    z, c, distance, exponents = 0.86, -1.7, 3.0, [7817.0, 20.0, 0.5]
    basis = Basis.from_shells([shell(1, 0, [a], [[1.0]]) for a in exponents], [[0.0, 0.0, 0.0], [0.0, 0.0, distance]])
    potentials = [CorePotential(46, (RadialTerm(2, z, c),), ()), None]
    V_pq = core_potentials.matrix(basis, potentials, backend="cpu")
    a = np.array(exponents)
    p, norm = a[:, None] + a, (2 * a / np.pi) ** 0.75
    expected = c * np.outer(norm, norm) * (np.pi / (p + z)) ** 1.5 * np.exp(-p * z / (p + z) * distance**2)
    np.testing.assert_allclose(V_pq, expected, rtol=ROUNDING)


def test_projected_tight_functions_of_two_neighbours() -> None:
    """s functions of neighbours against their expansion in Bessel functions; PySCF 2.14 neglects such pairs."""
    R_ax = np.array([[0.0, 0.0, 0.0], [3.8, 0.2, 0.0], [-1.8, 3.3, 0.1]])
    exponents, z, coefficients = [1268.0, 0.36], 0.133, (0.034, -1.1, 2.0)
    basis = Basis.from_shells([shell(atom, 0, [a], [[1.0]]) for atom in (1, 2) for a in exponents], R_ax)
    projected = tuple((RadialTerm(2, z, c),) for c in coefficients)
    V_pq = core_potentials.matrix(basis, [CorePotential(54, (), projected), None, None], backend="cpu")
    r, dr = np.linspace(1e-6, 12.0, 100_001, retstep=True)
    centres = [(R_ax[atom], a) for atom in (1, 2) for a in exponents]
    expected = np.zeros_like(V_pq)
    for l, c in enumerate(coefficients):
        radial_p = []  # l component of exp(-a |r - R|^2), which contains the Bessel function i_l(2 a r R)
        for R_x, a in centres:
            R = np.linalg.norm(R_x)
            bessel = np.sqrt(np.pi / (4 * a * r * R)) * ive(l + 0.5, 2 * a * r * R)
            radial_p.append((2 * a / np.pi) ** 0.75 * bessel * np.exp(-a * (r - R) ** 2))
        weight = 4 * np.pi * (2 * l + 1) * c * np.exp(-z * r**2) * r**2 * dr
        units = np.array([R_x / np.linalg.norm(R_x) for R_x, _ in centres])
        expected += eval_legendre(l, units @ units.T) * ((np.array(radial_p) * weight) @ np.array(radial_p).T)
    np.testing.assert_allclose(V_pq, expected, rtol=0, atol=EXACT)


def test_projected_functions_of_two_far_neighbours() -> None:
    """g and d functions 8 and 4 Bohr from the potential by brute force; PySCF 2.14 neglects these, which reach 5e-8."""
    R_ax = np.array([[0.0, 0.0, 0.0], [2.4, 4.0, 6.5], [1.92, -3.2, 1.44]])
    basis = Basis.from_shells([shell(1, 4, [0.08], [[1.0]]), shell(2, 2, [0.15], [[1.0]])], R_ax)
    potential = CorePotential(28, (), ((RadialTerm(2, 0.3, 1.0),),) * 6)
    V_pq = core_potentials.matrix(basis, [potential, None, None], backend="cpu")
    nothing = np.zeros_like(V_pq)
    expected, _ = core_matrix_and_gradient(basis, 0, potential, nothing, end=10.0, panels=6, degree=59)
    assert abs(expected[:9, 9:]).max() > 1e-8
    np.testing.assert_allclose(V_pq, expected, rtol=0, atol=ROUNDING)


def test_projected_tight_functions_need_more_panels() -> None:
    """For functions with a finite angular expansion, the sum of all projected parts equals the local potential."""
    basis = Basis.from_shells([shell(0, l, [a], [[1.0]]) for l in range(6) for a in (5000.0, 0.01)], [[0.0, 0.0, 0.0]])
    terms = (RadialTerm(2, 900.0, 40.0), RadialTerm(1, 0.4, 1.0), RadialTerm(0, 6.0, 0.3))
    local = core_potentials.matrix(basis, [CorePotential(2, terms, ())], backend="cpu")
    projected = core_potentials.matrix(basis, [CorePotential(2, (), (terms,) * 6)], backend="cpu")
    np.testing.assert_allclose(projected, local, rtol=0, atol=EXACT * abs(local).max())


def test_quadrature_is_converged(monkeypatch: pytest.MonkeyPatch) -> None:
    shells = [shell(0, 0, [900.0, 0.4], [[0.3], [0.8]]), shell(1, 0, [3000.0], [[1.0]]), shell(1, 1, [40.0], [[1.0]])]
    basis = Basis.from_shells(shells, [[0.0, 0.0, 0.0], [0.3, 0.4, 1.2]])
    terms = (RadialTerm(0, 500.0, 3.0), RadialTerm(1, 20.0, 30.0), RadialTerm(2, 0.6, 9.0))
    potentials = [CorePotential(46, (), (terms, terms, terms)), None]
    V_pq = core_potentials.matrix(basis, potentials, backend="cpu")
    monkeypatch.setattr(radial, "RESOLUTION", 3.0)
    monkeypatch.setattr(radial, "THRESHOLD", 1e-17)
    finer = core_potentials.matrix(basis, potentials, backend="cpu")
    np.testing.assert_allclose(V_pq, finer, rtol=0, atol=ROUNDING * abs(finer).max())


def test_portions_of_atoms_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    basis, potentials = basis_at(), [every_power()] * 3
    D_pq = symmetric(basis.nbf)
    whole = [core_potentials.matrix(basis, potentials, backend="cpu")]
    whole.append(core_potentials.gradient(basis, D_pq, potentials, backend="cpu"))
    monkeypatch.setattr(local, "FUNCTIONS_AT_ONCE", 5)
    np.testing.assert_allclose(core_potentials.matrix(basis, potentials, backend="cpu"), whole[0], atol=ROUNDING)
    gradient = core_potentials.gradient(basis, D_pq, potentials, backend="cpu")
    np.testing.assert_allclose(gradient, whole[1], atol=1e-10)


@DEVICES
def test_rotation_and_translation(device: str) -> None:
    backend, rotation = get_backend(device), np.linalg.qr(np.random.default_rng(2).normal(size=(3, 3)))[0]
    potentials = [every_power(), None, every_power()]
    values = []
    for R_ax in (R_AX, R_AX @ rotation.T + [0.3, -5.0, 2.0]):
        basis = basis_at(R_ax)
        V_pq = backend.to_host(core_potentials.matrix(basis, potentials, backend=backend))
        values.append(eigh(V_pq, integrals.overlap(basis, backend="cpu"), eigvals_only=True))
    np.testing.assert_allclose(*values, rtol=0, atol=ROUNDING * abs(values[0]).max())


def test_potentials_of_a_basis_and_far_ones() -> None:
    basis = Basis.from_shells([shell(0, 0, [1.0], [[1.0]])], [[0.0, 0.0, 0.0], [0.0, 0.0, 60.0]])
    assert not core_potentials.matrix(basis, backend="cpu").any()
    far = [None, every_power()]
    assert not core_potentials.matrix(basis, far, backend="cpu").any()
    assert not core_potentials.gradient(basis, np.ones((1, 1)), far, backend="cpu").any()
    own = Basis.from_shells(basis.shells, basis.R_ax, core_potentials=[every_power(), None])
    given = core_potentials.matrix(basis, [every_power(), None], backend="cpu")
    np.testing.assert_array_equal(core_potentials.matrix(own, backend="cpu"), given)
    assert given[0, 0] != 0.0
    nothing = core_potentials.matrix(basis, [CorePotential(2, (), ((), ())), None], backend="cpu")
    assert not nothing.any()


@pytest.mark.parametrize(
    ("potentials", "words"),
    [
        ([None], "1 core potentials were given for 3 atoms"),
        ([CorePotential(2, (RadialTerm(5, 1.0, 1.0),), ()), None, None], "powers from -2 to 2"),
        ([CorePotential(2, (), ((RadialTerm(2, -1.0, 1.0),),)), None, None], "positive exponents"),
        ([CorePotential(2, (), ((),) * 7), None, None], "projectors up to l = 6"),
    ],
)
def test_what_is_refused(potentials: list[CorePotential | None], words: str) -> None:
    with pytest.raises(InputError, match=words):
        core_potentials.matrix(basis_at(), potentials, backend="cpu")


def test_the_stored_comparison_of_integrals() -> None:
    """All models of tools/check_core_potentials.py, with functions of one, two and three centres, and all sets of the
    Basis Set Exchange agree with PySCF."""
    record = json.loads((ROOT / "benchmarks" / "results" / "ecp_integrals.json").read_text())
    models, three, sets = record["models"], record["three centres"], record["sets"]
    assert len({(row["tight"], row["distance"], row["exponent"], row["power"]) for row in models}) == 144
    assert {row["distance"] for row in models} >= {0.0, 0.05, 8.0} and {row["power"] for row in models} == {0, 1, 2}
    assert len({row["set"] for row in sets}) == 88 and max(row["projectors"] for row in sets) >= 5
    assert len({(*row["distances"], row["exponent"], row["power"]) for row in three}) == 60
    assert {row["exponent"] for row in three} == {row["exponent"] for row in models} == {0.3, 2.0, 15.0, 200.0}
    assert {row["power"] for row in three} == {0, 1, 2} and min(min(row["distances"]) for row in three) > 0.0
    assert max(row["difference"] for row in models + three + sets) < EXACT
