"""Two-electron integrals of one atom.

Integrals over s and p are parameters; those with d functions follow from radial integrals of the internal exponents
and angular factors of real harmonics (W. Thiel and A. A. Voityuk, J. Phys. Chem. 100, 616 (1996),
doi:10.1021/jp952148o). All orders k are kept, so that the integrals are invariant under rotation.
Orbitals: s, x, y, z, then x2-y2, xz, z2, yz, xy.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from cuanto.arrays import Array
from cuanto.basis.solid_harmonics import cartesian_powers, solid_harmonic_matrix
from cuanto.semiempirical.parameters import Element

D_ORDER = (4, 3, 2, 1, 0)
"""x2-y2, xz, z2, yz, xy among m = -2..2 = xy, yz, z2, xz, x2-y2."""
SHELL = (0, 1, 1, 1, 2, 2, 2, 2, 2)
ZERO_FACTOR = 1e-10
"""Angular factors below this count as zero by symmetry."""


def integrals(element: Element) -> Array:
    """(pq|rt) of all orbitals of the element."""
    n, g = element.orbitals, element.shells.g
    I_pqrt = _with_d(element) if n == 9 else np.zeros((n, n, n, n))
    sp = np.zeros((min(n, 4),) * 4)
    sp[0, 0, 0, 0] = g["g_ss"]
    h_pp = 0.5 * (g.get("g_pp", 0.0) - g.get("g_p2", 0.0))
    for i in range(1, len(sp)):
        sp[0, 0, i, i] = sp[i, i, 0, 0] = g["g_sp"]
        sp[0, i, 0, i] = sp[i, 0, i, 0] = sp[0, i, i, 0] = sp[i, 0, 0, i] = g["h_sp"]
        for j in range(1, len(sp)):
            sp[i, i, j, j] = g["g_pp"] if i == j else g["g_p2"]
            if i != j:
                sp[i, j, i, j] = sp[i, j, j, i] = h_pp
    I_pqrt[: len(sp), : len(sp), : len(sp), : len(sp)] = sp
    return I_pqrt


def _with_d(element: Element) -> Array:
    """sum_k 4 pi/(2k+1) R^k sum_m <p q km> <r t km> for k = 0..4."""
    I_pqrt = np.zeros((9, 9, 9, 9))
    for k, G_mpq in enumerate(gaunt()):
        angular = 4.0 * np.pi / (2 * k + 1) * np.einsum("mpq,mrt->pqrt", G_mpq, G_mpq)
        R = np.zeros((3, 3, 3, 3))
        for a, b, c, d in np.ndindex(3, 3, 3, 3):
            # radial integrals that vanish by the triangle rule may diverge
            allowed = all(abs(x - y) <= k <= x + y and (x + y + k) % 2 == 0 for x, y in ((a, b), (c, d)))
            names = "spd"[a] + "spd"[b], "spd"[c] + "spd"[d]
            R[a, b, c, d] = element.shells.radial(k, *names) if allowed else 0.0
        I_pqrt += angular * R[np.ix_(SHELL, SHELL, SHELL, SHELL)]
    return I_pqrt


@cache
def gaunt() -> tuple[Array, ...]:
    """<Y_p Y_q Y_km>[m, p, q] for k = 0..4, by exact quadrature."""
    x, w = np.polynomial.legendre.leggauss(24)
    phi = 2.0 * np.pi * np.arange(48) / 48
    sine = np.sqrt(1.0 - x * x)
    r_gx = np.stack(
        [np.outer(sine, np.cos(phi)), np.outer(sine, np.sin(phi)), np.outer(x, np.ones(48))], axis=-1
    ).reshape(-1, 3)
    w_g = np.outer(w, np.full(48, 2.0 * np.pi / 48)).reshape(-1)
    Y = [_harmonics(l, r_gx) for l in range(5)]
    Y_pg = np.concatenate([Y[0], Y[1], Y[2][list(D_ORDER)]])
    found = []
    for k in range(5):
        G_mpq = np.einsum("mg,pg,qg,g->mpq", Y[k], Y_pg, Y_pg, w_g, optimize=True)
        found.append(np.where(np.abs(G_mpq) > ZERO_FACTOR, G_mpq, 0.0))
    return tuple(found)


def _harmonics(l: int, r_gx: Array) -> Array:
    monomials = np.stack([np.prod(r_gx ** np.array(powers), axis=1) for powers in cartesian_powers(l)])
    return np.asarray(solid_harmonic_matrix(l) @ monomials)
