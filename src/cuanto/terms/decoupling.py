"""Spin-free exact two-component (X2C) decoupling of one-electron matrices, and its derivative by one backward sweep.

W. Kutzelnigg and W. Liu, J. Chem. Phys. 123, 241102 (2005), doi:10.1063/1.2137315; W. Liu and D. Peng, J. Chem. Phys.
131, 031104 (2009), doi:10.1063/1.3159445: with the spin-free part of W = sigma.p V sigma.p, K. G. Dyall, J. Chem. Phys.
100, 2118 (1994), doi:10.1063/1.466508. The modified Dirac equation in the kinetically balanced basis,

    [ V   T           ] [A]   [ S  0        ] [A]
    [ T   W/4c^2 - T  ] [B] = [ 0  T/2c^2   ] [B] E,

has solutions A, B of positive energies E, which X = B A^-1 decouples from the others: with
L = V + X^T T + T X + X^T (W/4c^2 - T) X and R = S^-1/2 (S^-1/2 (S + X^T T X/2c^2) S^-1/2)^-1/2 S^1/2, h = R^T L R has
their energies in the metric S.

Here the large component is expanded in orthonormal functions U, the small one in U k with k^T (U^T T U) k = 2c^2, so
that the vectors (A, B) are orthonormal. Then R = (A A^T)^1/2, and h = O E O^T with the orthogonal factor
O = (A A^T)^-1/2 A of the polar decomposition of A, whose singular values a are all near one. U comes from a Cholesky
factor of S: unlike eigenvectors of S or T, it does not mix tight functions, with matrix elements of up to 1e8, into
diffuse ones. It is then rotated such that A A^T is diagonal.

Derivatives: dh depends on dS, dT, dV and dW through E, R and X. X changes only if solutions of positive and negative
energy mix, whose energies differ by 2c^2 at least. `adjoint` returns the matrices that multiply dS, dT, dV and dW; the
equations are in docs/theory/x2c.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from cuanto.backends.base import Backend
from cuanto.backends.linalg import add_to_diagonal
from cuanto.errors import InputError

DEPENDENCE = 1e-11
"""Combinations of normalised primitives with an eigenvalue of the overlap matrix below this are left out."""
SAFE_PIVOT = 1e-8
"""If all pivots of a Cholesky factorisation of the overlap matrix are larger than this, eigenvalues are not needed."""


@dataclass(frozen=True, eq=False)
class Adjoint:
    """dE = sum_kl (overlap_kl dS_kl + kinetic_kl dT_kl + potential_kl dV_kl + momentum_kl dW_kl); all are symmetric."""

    overlap: Any
    kinetic: Any
    potential: Any
    momentum: Any


class Decoupling:
    """The X2C Hamiltonian of matrices S, T, V, W over decontracted functions."""

    def __init__(self, S_kl: Any, T_kl: Any, V_kl: Any, W_kl: Any, c: float, backend: Backend) -> None:
        self._backend, self._c, self._matrices = backend, c, (S_kl, T_kl, V_kl, W_kl)
        xp, product = backend.xp, backend.linalg.product
        frame = self._frame = _Frame(S_kl, backend)
        t, v = frame.matrix(T_kl), frame.matrix(V_kl)
        k = 2.0**0.5 * c * _orthonormal(t, backend)
        self._small = product(frame.U_ki, k)  # functions of the small component, U k
        # (U k)^T (W/4c^2 - T) U k, of which the second part is -2c^2
        lower = 0.25 / (c * c) * _symmetric(product(product(self._small.T, W_kl), self._small))
        add_to_diagonal(lower, -2.0 * c * c)
        upper = product(t, k)
        H = xp.concatenate([xp.concatenate([v, upper], axis=1), xp.concatenate([upper.T, lower], axis=1)])
        self._E_m, self._Y = backend.linalg.eigh(H)
        n = frame.size
        a2_i, self._Q = backend.linalg.eigh(product(self._Y[:n, n:], self._Y[:n, n:].T))
        frame.rotate(self._Q)
        self._a_i, self._A = xp.sqrt(a2_i), product(self._Q.T, self._Y[:n, n:])
        O = self._A / self._a_i[:, None]
        self._h = product(O * self._E_m[n:], O.T)

    @property
    def dropped(self) -> int:
        """Number of linearly dependent combinations that were left out."""
        return len(self._matrices[0]) - self._frame.size

    def contracted(self, C_kp: Any) -> Any:
        """h between functions p = sum_k C_kp k."""
        product = self._backend.linalg.product
        B_ip = product(self._frame.dual.T, C_kp)
        return _symmetric(product(product(B_ip.T, self._h), B_ip))

    def adjoint(self, D_kl: Any) -> Adjoint:
        """Derivatives of E = sum_kl D_kl h_kl for a symmetric D; `x_` is the derivative with respect to x."""
        product, frame, n, a = self._backend.linalg.product, self._frame, self._frame.size, self._a_i[:, None]
        d = product(product(frame.dual.T, D_kl), frame.dual)
        # X = B A^-1, and o^T + q X = B E A^-1 by the Dirac equation; A^-1 = A^T a^-2
        A, B = self._A, self._Y[n:, n:]
        square = a * a
        X, BE = product(B, A.T) / square.T, product(B * self._E_m[n:], A.T) / square.T
        # h = R L R with R = s^-1/2 (s^-1/2 m s^-1/2)^-1/2 s^1/2, m = s + X^T X; at s = 1, R = a and L = h/(a a^T)
        L_ = a * d * a.T
        R_ = 2.0 * product(self._h, d) / a
        # Divided differences of m^-1/2; the eigenvalues of m are a^-2
        m_ = -_symmetric(R_) * (square * square.T) / (a + a.T)
        s_ = _symmetric(0.5 * (R_.T * a.T - a * R_.T) - m_ / square) + m_
        Xm_, XL_ = product(X, m_), product(X, L_)
        X_ = 2.0 * (Xm_ + product(BE, L_))
        H_, M_ = self._mixing_adjoint(X, X_)
        upper_ = 2.0 * (XL_.T + H_[:n, n:])
        lower_ = product(XL_, X.T) + H_[n:, n:]
        metric_ = product(Xm_, X.T) + M_[n:, n:]
        s_, v_ = s_ + M_[:n, :n], L_ + H_[:n, :n]
        overlap, potential, c2 = frame.transform_back(s_), frame.transform_back(v_), self._c**2
        momentum = 0.25 / c2 * self._times_small(self._small, lower_)
        kinetic = self._times_small(frame.U_ki, upper_) + 0.5 / c2 * self._times_small(self._small, metric_)
        found = Adjoint(_symmetric(overlap), _symmetric(kinetic) - 4.0 * c2 * momentum, potential, momentum)
        return found if not self.dropped else self._add_dependence(D_kl, d, s_, found)

    def _times_small(self, left: Any, M: Any) -> Any:
        """left M (U k)^T"""
        product = self._backend.linalg.product
        return product(product(left, M), self._small.T)

    def _mixing_adjoint(self, X: Any, X_: Any) -> tuple[Any, Any]:
        """Derivatives with respect to the Dirac matrix H and the diagonal blocks of its metric M, from dE/dX.

        dX = (B_- - X A_-) Z A^-1, Z_ij = Y_i^T (dH - E_j dM) Y_j / (E_j - E_i), i negative, j positive energies.
        """
        xp, product, n, E_m = self._backend.xp, self._backend.linalg.product, self._frame.size, self._E_m
        low = product(self._Q.T, self._Y[:n, :n])
        outer = self._Y[n:, :n] - product(X, low)
        Z_ij = product(product(outer.T, X_ / (self._a_i * self._a_i)), self._A)
        Z_ij = Z_ij / (E_m[None, n:] - E_m[:n, None])
        Y = xp.concatenate([xp.concatenate([low, self._A], axis=1), self._Y[n:]])
        left = product(Y[:, :n], Z_ij)
        H_, M_ = _symmetric(product(left, Y[:, n:].T)), xp.zeros_like(Y)
        for own in (slice(0, n), slice(n, 2 * n)):
            M_[own, own] = -_symmetric(product(left[own] * E_m[n:], Y[own, n:].T))
        return H_, M_

    def _add_dependence(self, D_kl: Any, d: Any, s_: Any, found: Adjoint) -> Adjoint:
        """Add the part of dE/dS that appears if the functions that are kept do not span the basis.

        h = S U s^-1 h_U s^-1 U^T S with the kept combinations U, which change with S as well.
        """
        product, frame, U = self._backend.linalg.product, self._frame, self._frame.U_ki
        S_kl, DSU = self._matrices[0], product(D_kl, frame.dual)
        outside = DSU - product(U, d)  # (1 - U U^T S) D S U
        direct = 2.0 * _symmetric(product(product(outside, self._h), U.T))
        s_ = s_ - 2.0 * _symmetric(product(self._h, d))
        U_ = product(S_kl, product(DSU, self._h) + product(U, s_))
        # dE/dU of t = U^T T U is 2 T U (dE/dt), and U (dE/dt) = (dE/dT) S U; likewise for V and W
        for M_kl, M_ in zip(self._matrices[1:], (found.kinetic, found.potential, found.momentum), strict=True):
            U_ = U_ + product(M_kl, product(M_, frame.dual))
        return replace(found, overlap=found.overlap + direct + frame.overlap_adjoint(2.0 * U_))


class _Frame:
    """Orthonormal combinations U of functions with overlap S."""

    def __init__(self, S_kl: Any, backend: Backend) -> None:
        xp = backend.xp
        self._backend, self._scale_k = backend, 1.0 / xp.sqrt(xp.diagonal(S_kl))
        normalised = S_kl * self._scale_k[:, None] * self._scale_k
        inverse, pivot = backend.linalg.inverse_factor(normalised.copy())
        if pivot > SAFE_PIVOT:
            U_ki = inverse.T
        else:
            self._s_m, self._V_km = backend.linalg.eigh(normalised)
            self._dropped = int((self._s_m < DEPENDENCE).sum())
            U_ki = self._V_km[:, self._dropped :] / xp.sqrt(self._s_m[self._dropped :])
        self.U_ki, self._S_kl = self._scale_k[:, None] * U_ki, S_kl

    @property
    def size(self) -> int:
        """Number of orthonormal functions."""
        return int(self.U_ki.shape[1])

    def rotate(self, Q: Any) -> None:
        """Replace U by U Q."""
        self.U_ki = self._backend.linalg.product(self.U_ki, Q)

    @cached_property
    def dual(self) -> Any:
        """S U, once U is final."""
        return self._backend.linalg.product(self._S_kl, self.U_ki)

    def matrix(self, M_kl: Any) -> Any:
        """M between the orthonormal functions."""
        product = self._backend.linalg.product
        return _symmetric(product(product(self.U_ki.T, M_kl), self.U_ki))

    def transform_back(self, M: Any) -> Any:
        """U M U^T"""
        product = self._backend.linalg.product
        return product(product(self.U_ki, M), self.U_ki.T)

    def overlap_adjoint(self, U_: Any) -> Any:
        """dE/dS from dE/dU: kept combinations (i) mix with those left out (d).

        dV_i = sum_d V_d (V_d^T N dS N V_i) / (s_i - s_d) + (mixing of kept ones), and U = N V s^-1/2 up to a rotation;
        N: normalisation.
        """
        product, dropped, N_k = self._backend.linalg.product, self._dropped, self._scale_k[:, None]
        V_kd, V_ki = self._V_km[:, :dropped] * N_k, self._V_km[:, dropped:] * N_k
        s_d, s_i = self._s_m[:dropped], self._s_m[dropped:]
        scaled = product((self._V_km[:, dropped:] / N_k).T, self.U_ki)  # s^-1/2 and the rotation
        Z_di = product(product(V_kd.T, U_), scaled.T) / (s_i - s_d[:, None])
        return _symmetric(product(product(V_kd, Z_di), V_ki.T))


def _orthonormal(t: Any, backend: Backend) -> Any:
    """k with k^T t k = 1, an upper triangle; t is positive definite."""
    xp = backend.xp
    scale = 1.0 / xp.sqrt(xp.diagonal(t))
    inverse, pivot = backend.linalg.inverse_factor(t * scale[:, None] * scale)
    if pivot < 0.0:
        raise InputError("x2c: the kinetic energies of the decontracted functions are not positive: use another basis")
    return scale[:, None] * inverse.T


def _symmetric(M: Any) -> Any:
    return 0.5 * (M + M.T)
