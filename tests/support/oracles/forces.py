"""Forces on the centres of a pair of primitive shells, from expansions of shells with raised and lowered momentum."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cuanto.basis.shell import Shell
from cuanto.basis.solid_harmonics import cartesian_powers, shell_matrix
from oracles.integrals.hermite import Array, expansion_coefficients, hermite_indices

Index = tuple[int, int, int]


def monomial_weights(shell_a: Shell, shell_b: Shell, M_ab: Array) -> Array:
    """Weights of the functions of two primitive shells -> weights of their monomials, coefficients included."""
    C_a, C_b = (shell_matrix(s.l, s.pure) * s.coefficients[0, 0] for s in (shell_a, shell_b))
    return np.asarray(C_a.T @ M_ab @ C_b)


def _derivative(table: Array, i: int, a: float) -> Array:
    """d/dA of x_A^i exp(-a x_A^2), from integrals with all powers: 2 a table[i + 1] - i table[i - 1]."""
    lowered = i * table[i - 1] if i else 0.0 * table[0]
    return np.asarray(2.0 * a * table[i + 1] - lowered)


def potential_forces(
    shell_a: Shell, A: Array, shell_b: Shell, B: Array, M_ab: Array, V: Mapping[Index, float]
) -> tuple[Array, Array]:
    """dE/dA and dE/dB of E = sum_ab M_ab sum_tuv E_ab,tuv V_tuv, where V_tuv are derivatives of a potential at P."""
    a, b = shell_a.exponents, shell_b.exponents
    axes = [expansion_coefficients(shell_a.l + 1, shell_b.l, a, b, A[x] - B[x])[..., 0] for x in range(3)]
    on_A, on_P = np.zeros(3), np.zeros(3)
    weights = monomial_weights(shell_a, shell_b, M_ab)
    for i, row in zip(cartesian_powers(shell_a.l), weights, strict=True):
        for j, weight in zip(cartesian_powers(shell_b.l), row, strict=True):
            plain = [axes[x][i[x], j[x]] for x in range(3)]
            moved = [_derivative(axes[x][:, j[x]], i[x], a[0]) for x in range(3)]
            for t in hermite_indices(shell_a.l + shell_b.l + 1):
                for x in range(3):
                    rest = np.prod([plain[y][t[y]] for y in range(3) if y != x])
                    on_A[x] += weight * moved[x][t[x]] * rest * V[t]
                    on_P[x] += weight * (plain[x][t[x] - 1] if t[x] else 0.0) * rest * V[t]
    return on_A, on_P - on_A


def overlap_forces(shell_a: Shell, A: Array, shell_b: Shell, B: Array, M_ab: Array, T_ab: Array) -> Array:
    """dE/dA of E = sum_ab (M_ab <a|b> + T_ab <a|-1/2 nabla^2|b>); dE/dB is its negative."""
    a, b = shell_a.exponents, shell_b.exponents
    S = []
    for x in range(3):
        E = expansion_coefficients(shell_a.l + 1, shell_b.l + 2, a, b, A[x] - B[x])[:, :, 0, 0]
        S.append(np.sqrt(np.pi / (a[0] + b[0])) * E)
    T = [_kinetic(S[x], shell_b.l, b[0]) for x in range(3)]
    force = np.zeros(3)
    weights = [np.ndenumerate(monomial_weights(shell_a, shell_b, matrix)) for matrix in (M_ab, T_ab)]
    powers_a, powers_b = cartesian_powers(shell_a.l), cartesian_powers(shell_b.l)
    for ((m, n), overlap), (_, kinetic) in zip(*weights, strict=True):
        i, j = powers_a[m], powers_b[n]
        s, t = [S[x][i[x], j[x]] for x in range(3)], [T[x][i[x], j[x]] for x in range(3)]
        for x in range(3):
            y, z = (x + 1) % 3, (x + 2) % 3
            ds, dt = (_derivative(table[x][:, j[x]], i[x], a[0]) for table in (S, T))
            force[x] += overlap * ds * s[y] * s[z]
            force[x] += kinetic * (dt * s[y] * s[z] + ds * (t[y] * s[z] + s[y] * t[z]))
    return force


def _kinetic(S: Array, l_b: int, b: float) -> Array:
    """-1/2 d^2/dx^2 of x^j exp(-b x^2): j (j - 1) x^(j-2) - 2 b (2 j + 1) x^j + 4 b^2 x^(j+2), times -1/2."""
    T = np.zeros((len(S), l_b + 1))
    for j in range(l_b + 1):
        lowered = j * (j - 1) * S[:, j - 2] if j > 1 else 0.0
        T[:, j] = -0.5 * (lowered - 2.0 * b * (2 * j + 1) * S[:, j] + 4.0 * b * b * S[:, j + 2])
    return T
