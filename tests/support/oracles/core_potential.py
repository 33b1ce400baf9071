"""Core potentials by brute force: basis functions on spheres about the potential, and plain radial quadrature.

<p|U|q> = int r^2 dr [U_L(r) int p q dOmega + sum_lm U_l(r) <p|lm><lm|q>], both integrals over directions from values of
the functions. It converges for functions that vary slowly over the spheres; tight ones on other centres need more
directions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import sph_harm_y

from cuanto.basis import Basis
from cuanto.basis.core_potential import CorePotential, RadialTerm
from oracles.grid import functions_at

Array = NDArray[np.float64]


def sphere(degree: int) -> tuple[Array, Array, Array]:
    """Polar angles, azimuths and weights, exact for polynomials of a degree."""
    cosine, weight = np.polynomial.legendre.leggauss(degree // 2 + 1)
    azimuth = np.arange(degree + 1) * 2 * np.pi / (degree + 1)
    theta, phi = (x.reshape(-1) for x in np.meshgrid(np.arccos(cosine), azimuth, indexing="ij"))
    return theta, phi, np.repeat(weight, len(azimuth)) * 2 * np.pi / len(azimuth)


def radial_points(end: float, panels: int, points: int = 16) -> tuple[Array, Array]:
    """Gauss points on panels that become wider in proportion to the square of their number."""
    edges = end * (np.arange(panels + 1) / panels) ** 2
    x, w = np.polynomial.legendre.leggauss(points)
    half = 0.5 * np.diff(edges)[:, None]
    return (edges[:-1, None] + half * (1 + x)).reshape(-1), (half * w).reshape(-1)


def value(terms: Sequence[RadialTerm], r: float) -> float:
    """U(r)"""
    return sum(t.coefficient * r ** (t.power - 2) * np.exp(-t.exponent * r**2) for t in terms)


def shells_of_points(
    basis: Basis, centre: Array, potential: CorePotential, end: float, panels: int, degree: int
) -> Iterator[tuple[Array, float, list[tuple[float, Array]]]]:
    """For every radius: functions and gradients, the weight of U_L, and weights and harmonics of U_l.

    Values are multiplied by the square roots of the weights of directions.
    """
    theta, phi, weight = sphere(degree)
    unit = np.stack([np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), np.cos(theta)], axis=1)
    root = np.sqrt(weight)[:, None]
    orders = range(len(potential.projected))
    harmonics = [root * np.stack([sph_harm_y(l, m, theta, phi) for m in range(-l, l + 1)], axis=1) for l in orders]
    for r, dr in zip(*radial_points(end, panels), strict=True):
        chi = functions_at(basis, centre + r * unit) * root
        weights = [r**2 * dr * value(terms, r) for terms in (potential.local, *potential.projected)]
        yield chi, weights[0], list(zip(weights[1:], harmonics, strict=True))


def core_matrix_and_gradient(
    basis: Basis, atom: int, potential: CorePotential, D: Array, *, end: float, panels: int, degree: int
) -> tuple[Array, Array]:
    """V_pq of the potential of one atom, and dE/dR of E = sum_pq D_pq V_pq, [atom, axis].

    Functions move, and the potential against all of them.
    """
    V, slope = np.zeros((basis.nbf, basis.nbf)), np.zeros((3, basis.nbf))
    for chi, local, projected in shells_of_points(basis, basis.R_ax[atom], potential, end, panels, degree):
        V += local * chi[0].T @ chi[0]
        slope -= 2 * local * np.einsum("xgp,gp->xp", chi[1:], chi[0] @ D)
        for weight, Y in projected:
            P, *dP = Y.conj().T @ chi
            V += weight * (P.conj().T @ P).real
            slope -= 2 * weight * np.einsum("xmp,mp->xp", np.array(dP), (P @ D).conj()).real
    gradient = np.zeros((len(basis.R_ax), 3))
    np.add.at(gradient, basis.function_atoms, slope.T)
    gradient[atom] -= slope.sum(axis=1)
    return V, gradient
