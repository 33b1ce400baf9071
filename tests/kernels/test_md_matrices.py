"""Plans of products of matrices: functions in panels, and their expansion in Hermite Gaussians."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from cuanto.kernels.md_matrices import PANEL, PARITIES, cube_places, hermite_table, plan_of
from cuanto.kernels.recurrences.components import kernel_matrix, powers
from cuanto.kernels.spec import Shells

P, ALPHA, BETA = 1.7, 0.9, 0.8


def expansion(la: int, lb: int, PA: float, PB: float) -> np.ndarray:
    """E[i, j, t] of (x - A)^i (x - B)^j exp(-P x^2) from Hermite polynomials, by least squares; P is at the origin."""
    x = np.linspace(-2.0, 2.0, 60)
    scaled = np.sqrt(P) * x
    n = la + lb + 1
    # The Hermite Gaussian is (-d/dx)^t exp(-P x^2) up to its sign.
    basis = np.stack([np.sqrt(P) ** t * np.polynomial.hermite.hermval(scaled, np.eye(n)[t]) for t in range(n)], axis=1)
    E = np.zeros((la + 1, lb + 1, n))
    for i, j in product(range(la + 1), range(lb + 1)):
        E[i, j] = np.linalg.lstsq(basis, (x + PA) ** i * (x + PB) ** j, rcond=None)[0]
    return E


def dense(side: Shells, parity: int, E: np.ndarray, ket: bool) -> np.ndarray:
    """Coefficients [function, Hermite Gaussian] from a plan and one-dimensional expansions [axis, i, j, t]."""
    plan = plan_of(side, parity, ket)
    terms = plan.weights * E.reshape(-1)[plan.factors].prod(axis=1)
    packed = np.array([terms[a:b].sum() for a, b in zip(plan.first[:-1], plan.first[1:], strict=True)])
    found = np.zeros((int(plan.rows.max()) + 1, len(hermite_table(sum(side.l)))))
    for p, rows in enumerate(plan.rows):
        begin, end = plan.start[p], plan.start[p + 1]
        block = packed[PANEL * begin : PANEL * end].reshape(-1, PANEL)
        for i, row in enumerate(rows):
            if row >= 0:
                found[row, plan.hermites[begin:end]] = block[:, i]
    return found


@pytest.mark.parametrize(
    "side", [Shells((1, 0)), Shells((2, 1)), Shells((3, 2)), Shells((2, 2), (False, True))], ids=str
)
@pytest.mark.parametrize("parity", [0, 4, 7])
def test_coefficients(side: Shells, parity: int) -> None:
    """Every function of the pair once, E = Ex Ey Ez of its monomials; kets have the sign of the degree."""
    la, lb = side.l
    AB = np.array([0.0 if parity >> x & 1 else (0.4, -0.7, 0.9)[x] for x in range(3)])
    axes = np.array([expansion(la, lb, -BETA / P * d, ALPHA / P * d) for d in AB])
    H = hermite_table(la + lb)
    Ma, Mb = (np.array(kernel_matrix(l, pure)) for l, pure in zip(side.l, side.pure, strict=True))
    monomials = np.array(
        [[np.prod([axes[x][a[x], b[x], H[:, x]] for x in range(3)], axis=0) for b in powers(lb)] for a in powers(la)]
    )
    exact = np.einsum("ia,jb,abt->ijt", Ma, Mb, monomials).reshape(len(Ma) * len(Mb), len(H))
    np.testing.assert_allclose(dense(side, parity, axes, ket=False), exact, atol=1e-10)
    np.testing.assert_allclose(dense(side, parity, axes, ket=True), exact * (-1.0) ** H.sum(axis=1), atol=1e-10)


@pytest.mark.parametrize("parity", range(PARITIES))
def test_panels_list_what_their_rows_need(parity: int) -> None:
    """Parities remove coefficients; padding is at the end of a panel."""
    side = Shells((3, 3))
    plan = plan_of(side, parity, ket=False)
    functions = plan.rows[plan.rows >= 0]
    assert sorted(functions) == list(range(49))
    assert all((np.diff((row < 0).astype(int)) >= 0).all() for row in plan.rows)
    assert plan.coefficients <= plan_of(side, 0, ket=False).coefficients
    if parity == PARITIES - 1:  # both shells on one centre
        assert plan.coefficients < 0.3 * 49 * 84


def test_places_in_the_cube_add_up() -> None:
    total, H, places = 6, hermite_table(6), cube_places(6, 6)
    where = {tuple(t): place for t, place in zip(H.tolist(), places.tolist(), strict=True)}
    bras, kets = cube_places(2, total), cube_places(4, total)
    for (i, t), (j, u) in product(enumerate(hermite_table(2)), enumerate(hermite_table(4))):
        assert where[tuple((t + u).tolist())] == bras[i] + kets[j]
    assert len(set(where.values())) == len(H)
