"""Quantities derived from the parameters of an element: charge separations, additive terms, radial integrals.

M. J. S. Dewar and W. Thiel, Theor. Chim. Acta 46, 89 (1977), doi:10.1007/BF00548085 (s and p); W. Thiel and
A. A. Voityuk, J. Phys. Chem. 100, 616 (1996), doi:10.1021/jp952148o (d). Bohr and Hartree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from math import factorial, sqrt

Radial = tuple[int, float]
"""Principal quantum number and Slater exponent."""

MIN_ADDITIVE, MAX_ADDITIVE = 0.1, 5.0
"""Bohr: bounds of additive terms."""


def norm(radial: Radial) -> float:
    """N of R(r) = N r^(n-1) exp(-zeta r)."""
    n, zeta = radial
    return float((2.0 * zeta) ** (n + 0.5) / sqrt(factorial(2 * n)))


def moment(a: Radial, b: Radial, k: int) -> float:
    """<r^k> between two Slater functions."""
    power = a[0] + b[0] + k
    return norm(a) * norm(b) * factorial(power) / (a[1] + b[1]) ** (power + 1)


@cache
def slater_condon(k: int, a: Radial, b: Radial, c: Radial, d: Radial) -> float:
    """R^k(ab, cd) in Hartree; a and b belong to the first electron."""
    n, m = a[0] + b[0], c[0] + d[0]
    zeta, eta = a[1] + b[1], c[1] + d[1]
    inner = _inside(n + k, m - k - 1, zeta, eta) + _inside(m + k, n - k - 1, eta, zeta)
    return norm(a) * norm(b) * norm(c) * norm(d) * inner


def _inside(p: int, q: int, a: float, b: float) -> float:
    """int_0^inf s^q exp(-b s) int_0^s r^p exp(-a r) dr ds.

    The closed form cancels badly for large p; all terms of this series, of the incomplete gamma function, are positive:
    sum_(j > p) p!/j! a^(j-p-1) (q+j)!/(a+b)^(q+j+1).
    """
    term = factorial(p + q + 1) / ((p + 1) * (a + b) ** (p + q + 2))
    total, j = 0.0, p + 1
    while total + term != total:
        total, j = total + term, j + 1
        term *= a / (a + b) * (q + j) / j
    return total


def additive_dipole(D: float, target: float) -> float:
    """rho with [1/rho - 1/sqrt(rho^2 + D^2)]/4 = target."""

    def interaction(rho: float) -> float:
        far = sqrt(rho * rho + D * D)
        return 0.25 * D * D / (rho * far * (rho + far))  # rewritten, because the difference cancels for small D

    return _root(interaction, target)


def additive_quadrupole(D: float, target: float) -> float:
    """rho with [1/rho - 2/sqrt(rho^2 + D^2) + 1/sqrt(rho^2 + 2 D^2)]/8 = target, for charges at (+-D, +-D)."""
    squared = D * D
    return _root(
        lambda rho: 0.125 * (1.0 / rho - 2.0 / sqrt(rho * rho + squared) + 1.0 / sqrt(rho * rho + 2.0 * squared)),
        target,
    )


def additive_square(D: float, target: float) -> float:
    """The same for a square of charges at the distance D from its centre."""
    return additive_quadrupole(D / sqrt(2.0), target)


def _root(falling: Callable[[float], float], target: float) -> float:
    """Root by bisection of a function that falls from infinity to zero."""
    low, high = 1e-3, 1e3
    for _ in range(200):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        low, high = (middle, high) if falling(middle) > target else (low, middle)
    return 0.5 * (low + high)


def clip_additive(rho: float) -> float:
    """Clip an additive term to the range that MOPAC searches for shells with d functions."""
    return min(max(rho, MIN_ADDITIVE), MAX_ADDITIVE)


def isolated_atom(configuration: Sequence[int], U: Sequence[float], g: Mapping[str, float]) -> float:
    """Energy of an atom in its ground configuration, without the two-electron energy of d electrons."""
    s, p = configuration[0], configuration[1] if len(configuration) > 1 else 0
    l = min(p, 6 - p)
    energy = sum(number * u for number, u in zip(configuration, U, strict=True)) + max(s - 1, 0) * g["g_ss"]
    if p == 0:
        return energy
    pairs = 0.25 * l * (l - 1)
    energy += s * p * (g["g_sp"] - 0.5 * g["h_sp"])
    return energy + (0.5 * p * (p - 1) + pairs) * g["g_p2"] - pairs * g["g_pp"]
