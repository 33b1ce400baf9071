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
O = (A A^T)^-1/2 A of the polar decomposition of A, whose singular values are all near one. U = S^-1/2 rather than
eigenvectors of S or T: it does not mix tight functions, with matrix elements of up to 1e8, into diffuse ones.

Derivatives: dh depends on dS, dT, dV and dW through E, R and X; only mixing of positive- and negative-energy solutions
changes X, whose energies differ by 2c^2 at least. `adjoint` returns the matrices that multiply dS, dT, dV and dW; the
equations are in docs/theory/x2c.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cuanto.backends.base import Backend
from cuanto.backends.linalg import add_to_diagonal

DEPENDENCE = 1e-11
"""Eigenvalues of the overlap matrix of normalised primitives below which their combinations are left out."""


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
        self._frame = _Frame(S_kl, backend)
        t, v, w = (self._frame.matrix(M_kl) for M_kl in (T_kl, V_kl, W_kl))
        self._small = 2.0**0.5 * c * _orthonormal(t, backend)  # k
        self._coupling = product(t, self._small)  # o = t k
        # k^T (w/4c^2 - t) k, of which the second part is -2c^2
        self._lower = product(product(self._small.T, w), self._small) / (4.0 * c * c)
        add_to_diagonal(self._lower, -2.0 * c * c)
        H = xp.concatenate(
            [
                xp.concatenate([v, self._coupling], axis=1),
                xp.concatenate([self._coupling.T, self._lower], axis=1),
            ]
        )
        self._E_m, self._Y = backend.linalg.eigh(H)
        n = self._frame.size
        A = self._Y[:n, n:]
        a2_m, self._Q = backend.linalg.eigh(product(A, A.T))
        self._a_m = xp.sqrt(a2_m)  # singular values of A
        O = product(self._Q / self._a_m, product(self._Q.T, A))
        self._h = product(O * self._E_m[n:], O.T)

    @property
    def dropped(self) -> int:
        """Number of linearly dependent combinations that were left out."""
        return len(self._matrices[0]) - self._frame.size

    def contracted(self, C_kp: Any) -> Any:
        """h between functions p = sum_k C_kp k."""
        product = self._backend.linalg.product
        B_ip = product(self._frame.dual.T, C_kp)
        h_pq = product(product(B_ip.T, self._h), B_ip)
        return 0.5 * (h_pq + h_pq.T)

    def adjoint(self, D_kl: Any) -> Adjoint:
        """Derivatives of E = sum_kl D_kl h_kl; D is symmetric."""
        product, frame = self._backend.linalg.product, self._frame
        d = product(product(frame.dual.T, D_kl), frame.dual)
        s_, t_, v_, w_ = self._orthonormal_adjoint(d)
        overlap = frame.back(s_)
        if self.dropped:
            overlap = overlap + self._dependence(D_kl, d, (s_, t_, v_, w_))
        return Adjoint(overlap, frame.back(t_), frame.back(v_), frame.back(w_))

    def _orthonormal_adjoint(self, d: Any) -> tuple[Any, Any, Any, Any]:
        """Derivatives with respect to s, t, v and w in the orthonormal functions, where s = 1; `_`: derivative by."""
        product, n = self._backend.linalg.product, self._frame.size
        E_m, A, B = self._E_m[n:], self._Y[:n, n:], self._Y[n:, n:]
        inverse = product(A.T, self._spectral(self._a_m**-2.0))  # A^-1
        X, R = product(B, inverse), self._spectral(self._a_m)
        L = product(inverse.T * E_m, inverse)
        L_ = product(product(R, d), R)
        R_ = 2.0 * product(L, product(R, d))
        # R = s^-1/2 (s^-1/2 m s^-1/2)^-1/2 s^1/2 with m = s + X^T X
        m_ = self._root_adjoint(_symmetric(R_))
        M = self._spectral(self._a_m**-2.0)
        turn = product(R_.T, R)
        s_ = 0.5 * (_symmetric(turn) - _symmetric(product(R, R_.T))) - _symmetric(product(M, m_)) + m_
        X_ = 2.0 * (product(X, m_) + product(self._coupling.T + product(self._lower, X), L_))
        XL_ = product(X, L_)
        mixing, weighted = self._mixing_adjoint(X, X_, inverse)
        s_ = s_ - weighted[:n, :n]
        v_ = L_ + mixing[:n, :n]
        coupling_ = 2.0 * (XL_.T + mixing[:n, n:])
        lower_ = product(XL_, X.T) + mixing[n:, n:]
        metric_ = product(product(X, m_), X.T) - weighted[n:, n:]
        return s_, *self._small_adjoint(coupling_, lower_, metric_, v_)

    def _small_adjoint(self, coupling_: Any, lower_: Any, metric_: Any, v_: Any) -> tuple[Any, Any, Any]:
        """From derivatives by t k, k^T (w/4c^2 - t) k and k^T t k/2c^2 to those by t and w; k is constant."""
        product, k, c2 = self._backend.linalg.product, self._small, self._c**2
        w_ = product(product(k, lower_), k.T) / (4.0 * c2)
        t_ = _symmetric(product(coupling_, k.T)) - 4.0 * c2 * w_
        t_ = t_ + product(product(k, metric_), k.T) / (2.0 * c2)
        return t_, v_, w_

    def _root_adjoint(self, R_: Any) -> Any:
        """Derivative by m of sum R_ m^-1/2, by divided differences; the eigenvalues of m are a^-2."""
        product, a = self._backend.linalg.product, self._a_m
        inner = product(product(self._Q.T, R_), self._Q)
        inner = -inner * (a[:, None] * a) ** 2 / (a[:, None] + a)
        return product(product(self._Q, inner), self._Q.T)

    def _mixing_adjoint(self, X: Any, X_: Any, inverse: Any) -> tuple[Any, Any]:
        """From the derivative by X to those by the Dirac matrix and, with the other sign, by its metric.

        dX = (B_- - X A_-) Z A^-1, Z_ij = Y_i^T (dH - E_j dM) Y_j / (E_j - E_i), i negative, j positive energies.
        """
        product, n = self._backend.linalg.product, self._frame.size
        low, high = self._Y[:, :n], self._Y[:, n:]
        outer = low[n:] - product(X, low[:n])
        Z_ij = product(product(outer.T, X_), inverse.T)
        Z_ij = Z_ij / (self._E_m[None, n:] - self._E_m[:n, None])
        left = product(low, Z_ij)
        return _symmetric(product(left, high.T)), _symmetric(product(left * self._E_m[n:], high.T))

    def _spectral(self, values: Any) -> Any:
        """A function of A A^T from its values."""
        return self._backend.linalg.product(self._Q * values, self._Q.T)

    def _dependence(self, D_kl: Any, d: Any, adjoints: tuple[Any, ...]) -> Any:
        """Part of the derivative by S because the functions that are kept do not span the basis.

        h = S U s^-1 h_U s^-1 U^T S with the kept combinations U, which change with S as well.
        """
        product, frame, U = self._backend.linalg.product, self._frame, self._frame.U_ki
        DSU = product(D_kl, frame.dual)
        outside = DSU - product(U, d)  # (1 - U U^T S) D S U
        direct = 2.0 * _symmetric(product(product(outside, self._h), U.T))
        S_kl = self._matrices[0]
        s_ = adjoints[0] - 2.0 * _symmetric(product(self._h, d))
        U_ = product(S_kl, product(DSU, self._h))
        for M_kl, M_ in zip(self._matrices, (s_, *adjoints[1:]), strict=True):
            U_ = U_ + product(product(M_kl, U), M_)
        return direct + frame.moving(2.0 * U_)


class _Frame:
    """Orthonormal combinations U of functions with overlap S; symmetric if none has to be left out."""

    def __init__(self, S_kl: Any, backend: Backend) -> None:
        xp, product = backend.xp, backend.linalg.product
        self._backend, self._scale_k = backend, 1.0 / xp.sqrt(xp.diagonal(S_kl))
        self._s_m, self._V_km = backend.linalg.eigh(S_kl * self._scale_k[:, None] * self._scale_k)
        self._dropped = int((self._s_m < DEPENDENCE).sum())
        s_i, V_ki = self._s_m[self._dropped :], self._V_km[:, self._dropped :]
        U_ki = V_ki / xp.sqrt(s_i)
        self.U_ki = self._scale_k[:, None] * (U_ki if self._dropped else product(U_ki, V_ki.T))
        self.dual = product(S_kl, self.U_ki)  # U^T dual = 1

    @property
    def size(self) -> int:
        """Number of orthonormal functions."""
        return int(self.U_ki.shape[1])

    def matrix(self, M_kl: Any) -> Any:
        """Between the orthonormal functions."""
        product = self._backend.linalg.product
        return _symmetric(product(product(self.U_ki.T, M_kl), self.U_ki))

    def back(self, M: Any) -> Any:
        """U M U^T"""
        product = self._backend.linalg.product
        return product(product(self.U_ki, M), self.U_ki.T)

    def moving(self, U_: Any) -> Any:
        """Derivative by S, from that by U: kept combinations (i) mix with those left out (d).

        dU_i = sum_d N V_d (V_d^T N dS N V_i) / (s_i - s_d) s_i^-1/2 + (what stays inside), N: normalisation.
        """
        xp, product, dropped = self._backend.xp, self._backend.linalg.product, self._dropped
        N_k = self._scale_k[:, None]
        V_kd, V_ki = self._V_km[:, :dropped] * N_k, self._V_km[:, dropped:] * N_k
        s_d, s_i = self._s_m[:dropped], self._s_m[dropped:]
        Z_di = product(V_kd.T, U_) / xp.sqrt(s_i) / (s_i - s_d[:, None])
        return _symmetric(product(product(V_kd, Z_di), V_ki.T))


def _orthonormal(t: Any, backend: Backend) -> Any:
    """k with k^T t k = 1, near the diagonal matrix t_ii^-1/2; t is positive definite."""
    xp = backend.xp
    scale = 1.0 / xp.sqrt(xp.diagonal(t))
    e_m, V = backend.linalg.eigh(t * scale[:, None] * scale)
    return scale[:, None] * backend.linalg.product(V / xp.sqrt(e_m), V.T)


def _symmetric(M: Any) -> Any:
    return 0.5 * (M + M.T)
