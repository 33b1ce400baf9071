"""Oracle of the NDDO kernels: charges listed one by one, overlaps by quadrature, four-index rotations.

M. J. S. Dewar and W. Thiel, Theor. Chim. Acta 46, 89 (1977), doi:10.1007/BF00548085; W. Thiel and A. A. Voityuk,
J. Phys. Chem. 100, 616 (1996), doi:10.1021/jp952148o. Shares nothing with `cuanto.kernels`; Bohr and Hartree. All
functions take arrays of pairs of one kind of elements.
"""

from __future__ import annotations

from functools import cache
from math import factorial, sqrt

import numpy as np
from numpy.typing import NDArray

from cuanto.semiempirical.parameters import Element

Array = NDArray[np.float64]
Charges = list[tuple[float, float, float, float]]
"""(q, x, y, z) in units of the charge separation."""
Distribution = list[tuple[float, str, str, str]]
"""(factor, multipole, shells of its separation, shells of its additive term)."""

HALF = 1.0 / sqrt(2.0)
SHELL = "spppddddd"
NAMES = ("s", "x", "y", "z", "d2", "d1", "d0", "d-1", "d-2")

SIX = ((0.0, 0.0, 1.0), (0.0, 0.0, -1.0), (1.0, 0.0, 0.0), (-1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, -1.0, 0.0))
MULTIPOLES: dict[str, Charges] = {
    "q": [(1.0, 0.0, 0.0, 0.0)],
    "10": [(0.5, 0, 0, 1), (-0.5, 0, 0, -1)],
    "11": [(0.5, 1, 0, 0), (-0.5, -1, 0, 0)],
    "1-1": [(0.5, 0, 1, 0), (-0.5, 0, -1, 0)],
    "20": [(0.25 if z else -0.125, x, y, z) for x, y, z in SIX],
    "22": [(0.25, 1, 0, 0), (0.25, -1, 0, 0), (-0.25, 0, 1, 0), (-0.25, 0, -1, 0)],
    "21": [(0.25 * a * b, a * HALF, 0, b * HALF) for a in (1, -1) for b in (1, -1)],
    "2-1": [(0.25 * a * b, 0, a * HALF, b * HALF) for a in (1, -1) for b in (1, -1)],
    "2-2": [(0.25 * a * b, a * HALF, b * HALF, 0) for a in (1, -1) for b in (1, -1)],
    "xx": [(0.25, 2, 0, 0), (-0.5, 0, 0, 0), (0.25, -2, 0, 0)],
    "yy": [(0.25, 0, 2, 0), (-0.5, 0, 0, 0), (0.25, 0, -2, 0)],
    "zz": [(0.25, 0, 0, 2), (-0.5, 0, 0, 0), (0.25, 0, 0, -2)],
    "xz": [(0.25 * a * b, a, 0, b) for a in (1, -1) for b in (1, -1)],
    "yz": [(0.25 * a * b, 0, a, b) for a in (1, -1) for b in (1, -1)],
    "xy": [(0.25 * a * b, a, b, 0) for a in (1, -1) for b in (1, -1)],
}
T = 1.0 / sqrt(3.0)
EXPANSION: dict[tuple[str, str], dict[str, float]] = {
    ("s", "s"): {"q": 1},
    ("s", "z"): {"10": 1},
    ("s", "x"): {"11": 1},
    ("s", "y"): {"1-1": 1},
    ("s", "d0"): {"20": 2 * T},
    ("s", "d1"): {"21": 1},
    ("s", "d-1"): {"2-1": 1},
    ("s", "d2"): {"22": 1},
    ("s", "d-2"): {"2-2": 1},
    ("z", "z"): {"q": 1, "20": 4 / 3},
    ("x", "x"): {"q": 1, "20": -2 / 3, "22": 1},
    ("y", "y"): {"q": 1, "20": -2 / 3, "22": -1},
    ("x", "z"): {"21": 1},
    ("y", "z"): {"2-1": 1},
    ("x", "y"): {"2-2": 1},
    ("z", "d0"): {"10": 2 * T},
    ("z", "d1"): {"11": 1},
    ("z", "d-1"): {"1-1": 1},
    ("x", "d0"): {"11": -T},
    ("y", "d0"): {"1-1": -T},
    ("x", "d1"): {"10": 1},
    ("y", "d-1"): {"10": 1},
    ("x", "d2"): {"11": 1},
    ("x", "d-2"): {"1-1": 1},
    ("y", "d2"): {"1-1": -1},
    ("y", "d-2"): {"11": 1},
    ("d0", "d0"): {"q": 1, "20": 4 / 3},
    ("d1", "d0"): {"21": T},
    ("d-1", "d0"): {"2-1": T},
    ("d2", "d0"): {"22": -2 * T},
    ("d-2", "d0"): {"2-2": -2 * T},
    ("d1", "d1"): {"q": 1, "20": 2 / 3, "22": 1},
    ("d-1", "d-1"): {"q": 1, "20": 2 / 3, "22": -1},
    ("d1", "d-1"): {"2-2": 1},
    ("d1", "d2"): {"21": 1},
    ("d1", "d-2"): {"2-1": 1},
    ("d-1", "d2"): {"2-1": -1},
    ("d-1", "d-2"): {"21": 1},
    ("d2", "d2"): {"q": 1, "20": -4 / 3},
    ("d-2", "d-2"): {"q": 1, "20": -4 / 3},
}
"""Thiel and Voityuk's combinations of multipoles; d0 = z2, d1 = xz, d-1 = yz, d2 = x2-y2, d-2 = xy."""


def with_d(i: int, j: int) -> Distribution:
    """The product of two orbitals in an integral that has a d function."""
    pair = (NAMES[i], NAMES[j])
    shells = "".join(sorted((SHELL[i], SHELL[j]), key="spd".index))
    found = EXPANSION.get(pair) or EXPANSION.get(pair[::-1], {})
    monopole = "0dd" if shells == "dd" else "0"
    others = shells if "d" in shells else f"{shells} core"
    return [(c, pole, shells, monopole if pole == "q" else others) for pole, c in found.items()]


def without_d(i: int, j: int) -> Distribution:
    """The product of two orbitals in an integral over s and p orbitals."""
    i, j = sorted((i, j))
    if j == 0:
        return [(1.0, "q", "sp", "0")]
    if i == 0:
        return [(1.0, {"x": "11", "y": "1-1", "z": "10"}[NAMES[j]], "sp", "sp")]
    quadrupole = (1.0, NAMES[i] + NAMES[j], "pp", "pp")
    return [(1.0, "q", "sp", "0"), quadrupole] if i == j else [quadrupole]


def interaction(pole: tuple[str, Array, Array], other: tuple[str, Array, Array], R: Array) -> Array:
    """Two sets of charges (name, separation, additive term) at a distance R along z."""
    (name, D, rho), (mate, E, sigma) = pole, other
    total = np.zeros_like(R)
    for q, x, y, z in MULTIPOLES[name]:
        for p, u, v, w in MULTIPOLES[mate]:
            squared = (x * D - u * E) ** 2 + (y * D - v * E) ** 2 + (R + w * E - z * D) ** 2 + (rho + sigma) ** 2
            total += q * p / np.sqrt(squared)
    return total


class Side:
    """Parameters of one side of all pairs as arrays."""

    def __init__(self, elements: list[Element]) -> None:
        self.elements, self.orbitals, self.n = elements, elements[0].orbitals, elements[0].kind
        self.D = {key: np.array([e.D[key] for e in elements]) for key in elements[0].D}
        self.rho = {key: np.array([e.rho[key] for e in elements]) for key in elements[0].rho}
        self.zeta = np.array([e.zeta for e in elements]).T

    def pole(self, name: str, shells: str, additive: str, d: bool) -> tuple[str, Array, Array]:
        """A multipole with its separation and additive term; `d`: in an integral with d functions, whose pp differs."""
        zero = np.zeros(len(self.elements))
        D = self.D.get(shells, zero) * (sqrt(2.0) if d and shells == "pp" else 1.0)
        return name, D if name != "q" else zero, self.rho[additive]


def local_repulsion(A: Side, B: Side, R: Array) -> Array:
    """(ij|kl) in the local frame, z from A to B: [pair, i, j, k, l]."""
    W = np.zeros((len(R), A.orbitals, A.orbitals, B.orbitals, B.orbitals))
    known: dict[tuple[str, ...], Array] = {}
    for i, j, k, l in np.ndindex(*W.shape[1:]):
        if j > i or l > k:
            continue
        d = max(i, j, k, l) > 3
        if not d and {i, j} == {1, 2} and {k, l} == {1, 2}:
            continue
        expand = with_d if d else without_d
        value = np.zeros(len(R))
        for c, name, shells, additive in expand(i, j):
            for b, mate, others, term in expand(k, l):
                if not _interact(name, mate):
                    continue
                key = (name, shells, additive, mate, others, term)
                if key not in known:
                    known[key] = interaction(A.pole(name, shells, additive, d), B.pole(mate, others, term, d), R)
                value = value + c * b * known[key]
        for p, q in {(i, j), (j, i)}:
            for r, t in {(k, l), (l, k)}:
                W[:, p, q, r, t] = value
    if min(A.orbitals, B.orbitals) > 1:  # this value makes the integrals invariant under rotation about the axis
        value = 0.5 * (W[:, 1, 1, 1, 1] - W[:, 1, 1, 2, 2])
        for p, q in ((1, 2), (2, 1)):
            W[:, p, q, 1, 2] = W[:, p, q, 2, 1] = value
    return W


def _interact(name: str, mate: str) -> bool:
    """Multipoles of Thiel and Voityuk need equal m; of Dewar and Thiel's charges all but odd ones interact."""
    order = {"q": 0, "10": 0, "20": 0, "11": 1, "21": 1, "1-1": -1, "2-1": -1, "22": 2, "2-2": -2}
    if name in order and mate in order:
        return order[name] == order[mate]
    odd = {"11": "x", "xz": "x", "1-1": "y", "yz": "y", "xy": "xy"}
    return odd.get(name, "") == odd.get(mate, "")


THETA = {
    (0, 0): ([[1.0]], 0, sqrt(0.5)),
    (1, 0): ([[0.0], [1.0]], 0, sqrt(1.5)),
    (1, 1): ([[1.0]], 1, sqrt(0.75)),
    (2, 0): ([[0.0, -1.0], [0.0], [2.0]], 0, sqrt(0.625)),
    (2, 1): ([[0.0], [1.0]], 1, sqrt(3.75)),
    (2, 2): ([[1.0]], 2, sqrt(0.9375)),
}
"""Solid harmonics: coefficients [power of z][power of rho^2], the power of rho in front, and the norm."""


@cache
def overlap_polynomial(n: int, l: int, m_: int, k: int, m: int) -> Array:
    """c_ij of xi^i eta^j in the overlap of (n, l, m) with (m_, k, m)."""

    def product(a: Array, b: Array) -> Array:
        out = np.zeros((len(a) + len(b) - 1, a.shape[1] + b.shape[1] - 1))
        for i, row in enumerate(a):
            for j, column in enumerate(b):
                out[i + j] += np.convolve(row, column)
        return out

    def power(a: Array, exponent: int) -> Array:
        out = np.ones((1, 1))
        for _ in range(exponent):
            out = product(out, a)
        return out

    xi_plus_eta, xi_minus_eta = np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([[0.0, -1.0], [1.0, 0.0]])
    z_a, z_b = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[-1.0, 0.0], [0.0, 1.0]])
    rho_2 = product(np.array([[-1.0], [0.0], [1.0]]), np.array([[1.0, 0.0, -1.0]]))

    def solid(l: int, z: Array) -> Array:
        table, _, norm = THETA[l, m]
        out = np.zeros((7, 7))
        for i, row in enumerate(table):
            for j, c in enumerate(row):
                term = product(power(z, i), power(rho_2, j))
                out[: len(term), : term.shape[1]] += c * norm * term
        return out

    whole = product(
        product(power(xi_plus_eta, n - l), power(xi_minus_eta, m_ - k)), product(solid(l, z_a), solid(k, z_b))
    )
    return product(whole, power(rho_2, m))


def auxiliary_b(b: Array, count: int, mopac: float | None = None) -> Array:
    """B_k(b) = int_-1^1 x^k exp(-b x) dx; `mopac`: its truncated series up to this |b|."""
    x, w = np.polynomial.legendre.leggauss(60)
    exact = np.einsum("g,gk,gp->kp", w, x[:, None] ** np.arange(count), np.exp(-np.outer(x, b)))
    if mopac is None:
        return np.asarray(exact)
    last = np.select([np.abs(b) <= 0.5, np.abs(b) <= 1.0, np.abs(b) <= 2.0], [6, 7, 12], 15)
    series = np.zeros_like(exact)
    for k in range(count):
        for j in range(16):
            if (k + j) % 2 == 0:
                series[k] += np.where(j <= last, 2.0 * (-b) ** j / (factorial(j) * (k + j + 1)), 0.0)
    return np.asarray(np.where(np.abs(b) <= mopac, series, exact))


def mopac_limit(A: Side, B: Side) -> float:
    """|b| up to which MOPAC 23 takes its truncated series: its routine for H to Cl (no d, He, Ne), and the other."""
    for side in (A, B):
        if side.orbitals > 4 or side.elements[0].number > 17 or side.elements[0].symbol in ("He", "Ne"):
            return 3.0
    return 1.0 if A.n[0] + B.n[0] == 6 else 0.5


def local_overlap(A: Side, B: Side, R: Array, mopac: bool = False) -> Array:
    """S_ik in the local frame, both axes z from A to B: [pair, i, k]."""
    S = np.zeros((len(R), A.orbitals, B.orbitals))
    m_of = (0, 1, -1, 0, 2, 1, 0, -1, -2)
    for i, k in np.ndindex(A.orbitals, B.orbitals):
        if m_of[i] != m_of[k]:
            continue
        l, q, m = "spd".index(SHELL[i]), "spd".index(SHELL[k]), abs(m_of[i])
        za, zb, n, n_ = A.zeta[l], B.zeta[q], A.n[l], B.n[q]
        p, b = 0.5 * R * (za + zb), 0.5 * R * (za - zb)
        c = overlap_polynomial(n, l, n_, q, m)
        aux_a = [np.exp(-p) / p]
        for j in range(1, len(c)):
            aux_a.append((j * aux_a[-1] + np.exp(-p)) / p)
        aux_b = auxiliary_b(b, c.shape[1], mopac_limit(A, B) if mopac else None)
        total = np.einsum("ij,ip,jp->p", c, np.array(aux_a), aux_b)
        norm = (2 * za) ** (n + 0.5) * (2 * zb) ** (n_ + 0.5) / sqrt(factorial(2 * n) * factorial(2 * n_))
        S[:, i, k] = norm * (0.5 * R) ** (n + n_ + 1) * total
    return S


def rotation(u_px: Array, orbitals: int) -> Array:
    """T[pair, local, molecular] for unit vectors from A to B."""
    helper = np.eye(3)[np.argmin(np.abs(u_px), axis=1)]
    x = np.cross(helper, u_px)
    x /= np.linalg.norm(x, axis=1)[:, None]
    Q = np.stack([x, np.cross(u_px, x), u_px], axis=1)
    T = np.zeros((len(u_px), 9, 9))
    T[:, 0, 0], T[:, 1:4, 1:4] = 1.0, Q
    t = np.zeros((5, 3, 3))
    t[0] = sqrt(0.75) * np.diag([1.0, -1.0, 0.0])
    t[2] = np.diag([-0.5, -0.5, 1.0])
    for a, (i, j) in ((1, (0, 2)), (3, (1, 2)), (4, (0, 1))):
        t[a, i, j] = t[a, j, i] = sqrt(0.75)
    T[:, 4:, 4:] = 2.0 / 3.0 * np.einsum("pij,aik,pkl,bjl->pab", Q, t, Q, t, optimize=True)
    return T[:, :orbitals, :orbitals]


def pair_blocks(A: Side, B: Side, d_px: Array, mopac: bool = False) -> tuple[Array, Array]:
    """(mn|ls) and S in the molecular frame for vectors from A to B."""
    R = np.linalg.norm(d_px, axis=1)
    u_px = d_px / R[:, None]
    T, V = rotation(u_px, A.orbitals), rotation(u_px, B.orbitals)
    W = np.einsum("pijkl,pim,pjn->pmnkl", local_repulsion(A, B, R), T, T, optimize=True)
    W = np.einsum("pmnkl,pkr,pls->pmnrs", W, V, V, optimize=True)
    return W, np.einsum("pik,pim,pkr->pmr", local_overlap(A, B, R, mopac), T, V, optimize=True)


def core_attraction(A: Element, B: Element, d_x: Array) -> Array:
    """Interaction of all products on A with a unit charge at B that has the additive term of B's core: [m, n]."""
    R = np.linalg.norm(d_x)
    side = Side([A])
    V = np.zeros((A.orbitals, A.orbitals))
    charge = ("q", np.zeros(1), np.array([B.rho["core"]]))
    for i, j in np.ndindex(V.shape):
        if A.symbol == "He" and (i, j) != (0, 0):  # MOPAC leaves them out
            continue
        d = max(i, j) > 3
        for c, name, shells, additive in with_d(i, j) if d else without_d(i, j):
            if name not in ("q", "10", "20", "xx", "yy", "zz"):
                continue
            additive = f"{additive} core" if additive in ("sp", "pp") else additive
            V[i, j] += c * interaction(side.pole(name, shells, additive, d), charge, np.array([R]))[0]
    T = rotation((d_x / R)[None], A.orbitals)[0]
    return np.asarray(T.T @ V @ T)
