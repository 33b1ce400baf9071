"""The NumPy reference on its own: Boys function, closed forms, limits and invariances, all without another program."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from cuanto.basis import Basis
from cuanto.basis.shell import Shell
from cuanto.basis.solid_harmonics import cartesian_powers, shell_matrix
from cuanto.integrals.gauss_hermite import overlap_kinetic_dipole
from oracle import mp_boys, mp_components, random_shell, reference_block
from oracles import integrals as reference
from oracles.integrals.hermite import expansion_coefficients
from tolerances import BOYS_REL, INTEGRAL_REL, SYMMETRY_REL

OPERATORS = {"overlap": 2, "kinetic": 2, "nuclear": 2, "dipole": 2, "2c": 2, "3c": 3, "4c": 4}
CHARGES = np.array([1.0, 2.5])
POSITIONS = np.array([[0.3, 0.1, 0.0], [1.0, 1.0, -1.0]])
ORIGIN = np.array([0.3, 0.2, -1.0])


def extra(operator: str, move: Any = lambda points: points) -> dict[str, Any]:
    """Charges or origin, moved with the molecule."""
    if operator == "nuclear":
        return {"charges": CHARGES, "positions": move(POSITIONS)}
    return {"origin": move(ORIGIN)} if operator == "dipole" else {}


def sample(operator: str, pure: bool = True) -> tuple[list[Shell], NDArray[np.float64]]:
    """Contracted shells p, d, f, s on separate centres."""
    rng = np.random.default_rng(3)
    shells = [random_shell(rng, l, 3, 2, pure, 1.0) for l in (1, 2, 3, 0)[: OPERATORS[operator]]]
    return shells, rng.uniform(-1.2, 1.2, (len(shells), 3))


def relative(values: Any, expected: Any) -> float:
    return float(abs(values - expected).max() / abs(expected).max())


@pytest.mark.parametrize("m_max", [0, 1, 7, 16, 30])
def test_boys_against_mpmath(m_max: int) -> None:
    """All orders, T from 0 to 1e4 with the neighbourhood of the switch between the two recursions."""
    rng = np.random.default_rng(1)
    special = [0.0, 1e-300, 1e-9, np.nextafter(40.0, 0.0), 40.0, 1e4]
    T = np.concatenate([special, np.linspace(0.1, 60.0, 31), 10 ** rng.uniform(-3, 4, 30)])
    F_m = reference.boys(m_max, T)
    with mp.workdps(40):
        for m in range(0, m_max + 1, 1 if m_max < 30 else 3):
            exact = np.array([float(mp_boys(m, mp.mpf(float(t)))) for t in T])
            assert abs(F_m[m] / exact - 1.0).max() <= BOYS_REL


def test_boys_keeps_the_shape() -> None:
    assert reference.boys(3, 0.0) == pytest.approx([1.0, 1 / 3, 1 / 5, 1 / 7], rel=1e-15)
    assert reference.boys(2, np.zeros((4, 0, 5))).shape == (3, 4, 0, 5)


def test_hermite_expansion_reproduces_the_product() -> None:
    """sum_t E_t (d/dP)^t exp(-p x_P^2) = x_A^i x_B^j exp(-a x_A^2 - b x_B^2) at any x."""
    a, b, A, B = np.array([0.7]), np.array([1.9]), 0.4, -0.8
    p = a + b
    P = (a * A + b * B) / p
    E = expansion_coefficients(4, 3, a, b, A - B)
    x = np.linspace(-2.0, 2.0, 9)
    # (d/dP)^t exp(-p x_P^2) = p^(t/2) H_t(sqrt(p) x_P) exp(-p x_P^2)
    lambda_t = [
        np.sqrt(p) ** t * np.polynomial.hermite.hermval(np.sqrt(p) * (x - P), [0] * t + [1]) * np.exp(-p * (x - P) ** 2)
        for t in range(8)
    ]
    for i in range(5):
        for j in range(4):
            product = (x - A) ** i * (x - B) ** j * np.exp(-a * (x - A) ** 2 - b * (x - B) ** 2)
            expansion = sum(E[i, j, t] * lambda_t[t] for t in range(i + j + 1))
            assert relative(expansion, product) <= 1e-13


def test_closed_forms_for_s_functions() -> None:
    """Overlap, kinetic energy, attraction and repulsion of two normalised s Gaussians, written out by hand."""
    a, b = 0.8, 0.3
    A, B = np.array([0.1, -0.3, 0.5]), np.array([1.0, 0.4, -0.2])
    shell_a, shell_b = (Shell.from_table(0, 0, [e], [[1.0]], True) for e in (a, b))
    p, mu, R2 = a + b, a * b / (a + b), ((A - B) ** 2).sum()
    P = (a * A + b * B) / p
    S = (4.0 * a * b / p**2) ** 0.75 * np.exp(-mu * R2)
    C = np.array([0.2, 0.2, 0.2])
    attraction = -2.0 * S * np.sqrt(p / np.pi) * reference.boys(0, p * ((P - C) ** 2).sum())[0]
    # two s charges of unit self-overlap: (2 pi / a)^(3/4) each, interacting as erf(sqrt(mu) R) / R
    charge = (2.0 * np.pi / a) ** 0.75 * (2.0 * np.pi / b) ** 0.75
    repulsion = charge * 2.0 * np.sqrt(mu / np.pi) * reference.boys(0, mu * R2)[0]
    assert reference.overlap(shell_a, A, shell_b, B) == pytest.approx(S, rel=1e-14)
    assert reference.kinetic(shell_a, A, shell_b, B) == pytest.approx(mu * (3.0 - 2.0 * mu * R2) * S, rel=1e-14)
    assert reference.nuclear(shell_a, A, shell_b, B, [1.0], [C]) == pytest.approx(attraction, rel=1e-14)
    assert reference.eri_2c(shell_a, A, shell_b, B) == pytest.approx(repulsion, rel=1e-14)


@pytest.mark.parametrize("l", range(7))
def test_spherical_functions_are_orthonormal(l: int) -> None:
    shell = random_shell(np.random.default_rng(l), l, 3, 1, True, 2.0)
    A = [0.5, -1.0, 2.0]
    S = reference.overlap(shell, A, shell, A)
    assert abs(S - np.eye(2 * l + 1)).max() <= SYMMETRY_REL


@pytest.mark.parametrize("l", range(7))
@pytest.mark.parametrize("pure", [True, False])
def test_component_polynomials_agree_with_forty_digits(l: int, pure: bool) -> None:
    """The transformation that the reference takes from the basis, against another formula."""
    column = {powers: i for i, powers in enumerate(cartesian_powers(l))}
    expected = np.zeros((2 * l + 1 if pure else len(column), len(column)))
    for row, polynomial in enumerate(mp_components(l, pure)):
        for powers, value in polynomial.items():
            expected[row, column[powers]] = float(value)
    assert relative(shell_matrix(l, pure), expected) <= 1e-15


@pytest.mark.parametrize("pure", [True, False])
@pytest.mark.parametrize("operator", OPERATORS)
def test_translation(operator: str, pure: bool) -> None:
    shells, centres = sample(operator, pure)
    shift = np.array([0.5, -0.25, 2.0])
    here = reference_block(operator, shells, centres, **extra(operator))
    there = reference_block(operator, shells, centres + shift, **extra(operator, lambda points: points + shift))
    assert relative(there, here) <= SYMMETRY_REL * 10


@pytest.mark.parametrize("operator", OPERATORS)
def test_rotation(operator: str) -> None:
    """The components of pure shells mix orthogonally: the norm of every (column, ..., column) sub-block stays."""
    shells, centres = sample(operator)
    rotate = Rotation.from_rotvec([0.4, -1.1, 0.7]).apply
    here = reference_block(operator, shells, centres, **extra(operator))
    there = reference_block(operator, shells, rotate(centres), **extra(operator, rotate))

    def norms(block: NDArray[np.float64]) -> NDArray[np.float64]:
        shape = [n for shell in shells for n in (shell.ncol, shell.ncomp)]
        squares = (block**2).reshape(-1, *shape)
        return np.asarray(squares.sum(axis=(0, *range(2, 1 + len(shape), 2))))

    assert relative(norms(there), norms(here)) <= SYMMETRY_REL * 10


@pytest.mark.parametrize("operator", ["overlap", "kinetic", "nuclear", "dipole", "2c", "3c"])
def test_exchange_of_the_two_functions(operator: str) -> None:
    """Hermiticity of the operators and symmetry of the charge distributions."""
    shells, centres = sample(operator)
    block = reference_block(operator, shells, centres, **extra(operator))
    order = [1, 0, 2][: len(shells)]
    swapped = reference_block(operator, [shells[i] for i in order], [centres[i] for i in order], **extra(operator))
    lead = 1 if operator == "dipole" else 0
    assert relative(np.swapaxes(swapped, lead, lead + 1), block) <= SYMMETRY_REL


def test_eightfold_symmetry_of_the_repulsion() -> None:
    shells, centres = sample("4c")
    block = reference_block("4c", shells, centres)
    for order in permutations(range(4)):
        if {frozenset(order[:2]), frozenset(order[2:])} == {frozenset((0, 1)), frozenset((2, 3))}:
            other = reference_block("4c", [shells[i] for i in order], centres[list(order)])
            assert relative(other, block.transpose(order)) <= SYMMETRY_REL


def test_tight_charge_is_a_point_charge() -> None:
    """(ab|P) with an ever tighter s charge distribution becomes the attraction to a point, with the other sign."""
    (shell_a, shell_b), (A, B) = sample("nuclear")
    exponent = 1e13
    shell_P = Shell(0, 0, np.array([exponent]), np.array([[np.sqrt(4 * np.pi) * (exponent / np.pi) ** 1.5]]), True)
    C = [0.2, 0.7, -0.1]
    block = reference.eri_3c(shell_a, A, shell_b, B, shell_P, C)[:, :, 0]
    assert relative(-block, reference.nuclear(shell_a, A, shell_b, B, [1.0], [C])) <= INTEGRAL_REL


def test_dipole_of_moved_origin() -> None:
    """<a|r - O|b> = <a|r|b> - O <a|b>."""
    (shell_a, shell_b), (A, B) = sample("dipole")
    S = reference.overlap(shell_a, A, shell_b, B)
    moved = reference.dipole(shell_a, A, shell_b, B, ORIGIN)
    assert relative(moved, reference.dipole(shell_a, A, shell_b, B) - ORIGIN[:, None, None] * S) <= SYMMETRY_REL


def test_kinetic_energy_is_the_curvature_of_the_overlap() -> None:
    """<a|nabla^2|b> = (d/dB)^2 <a|b>, by a fourth-order difference: independent of the recursion used."""
    (shell_a, shell_b), (A, B) = sample("kinetic")
    h = 0.02
    laplacian = np.zeros((shell_a.nbf, shell_b.nbf))
    for x in range(3):
        for steps, weight in ((-2, -1 / 12), (-1, 4 / 3), (0, -5 / 2), (1, 4 / 3), (2, -1 / 12)):
            moved = B + h * steps * np.eye(3)[x]
            laplacian += weight / h**2 * reference.overlap(shell_a, A, shell_b, moved)
    assert relative(-0.5 * laplacian, reference.kinetic(shell_a, A, shell_b, B)) <= 1e-5


def test_no_charges_no_attraction() -> None:
    (shell_a, shell_b), (A, B) = sample("nuclear")
    assert not reference.nuclear(shell_a, A, shell_b, B, [], np.zeros((0, 3))).any()


def test_pure_and_cartesian_shells_mix() -> None:
    """A block of pure and cartesian shells is the cartesian block with one side transformed."""
    (shell_a, shell_b), (A, B) = sample("overlap", pure=False)
    pure_b = Shell(0, shell_b.l, shell_b.exponents, shell_b.coefficients, True)
    C = np.kron(np.eye(shell_b.ncol), shell_matrix(shell_b.l, True))
    expected = reference.overlap(shell_a, A, shell_b, B) @ C.T
    assert relative(reference.overlap(shell_a, A, pure_b, B), expected) <= SYMMETRY_REL


def test_the_oracle_shares_nothing_with_the_kernel_generator() -> None:
    paths = sorted(Path(reference.__file__).parent.glob("*.py"))
    imported = [line for path in paths for line in path.read_text().splitlines() if "import" in line.split()]
    assert imported and not [line for line in imported if re.search(r"cuanto\.(kernels|integrals|backends)", line)]


@pytest.mark.parametrize("pure", [True, False])
def test_gauss_hermite_quadrature_agrees(pure: bool) -> None:
    rng = np.random.default_rng(5)
    shells = [replace(random_shell(rng, l, 3, 2, pure, 1.0), atom=l % 3) for l in (0, 1, 2, 3, 4)]
    basis = Basis.from_shells(shells, rng.uniform(-1.2, 1.2, (3, 3)))
    expected = reference.overlap_matrix(basis), reference.kinetic_matrix(basis), reference.dipole_matrices(basis)
    for values, exact in zip(overlap_kinetic_dipole(basis), expected, strict=True):
        np.testing.assert_allclose(values, exact, rtol=0, atol=INTEGRAL_REL * np.abs(exact).max())
