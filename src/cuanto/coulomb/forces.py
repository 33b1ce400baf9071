"""Electrostatic forces between charge distributions: electron density, fitted density, nuclei and point charges.

Only the potential of the Hermite densities is computed, to one order higher than the energy needs. The force on a
distribution follows from it pair by pair, so a gradient of J costs about as much as J. With the product of primitives a
and b expanded in Hermite Gaussians at P (`hermite_pairs`), d/dA raises and lowers the angular momentum of a, and
d/dA + d/dB = d/dP gives the next order of the potential.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from cuanto.arrays import Array, Ints
from cuanto.backends.base import Backend
from cuanto.basis import Basis
from cuanto.coulomb.hermite_pairs import (
    CHUNK_NUMBERS,
    PairBlock,
    Primitives,
    expand_derivative,
    pair_blocks,
    primitives,
    single_blocks,
)
from cuanto.coulomb.j_engine import Distributions, Potentials
from cuanto.coulomb.j_steps import Contraction
from cuanto.errors import InputError
from cuanto.kernels.hermite_build import GROUPINGS
from cuanto.kernels.recurrences.components import raised
from cuanto.kernels.recurrences.hermite_coulomb import hermite_count
from cuanto.kernels.recurrences.mcmurchie_davidson import hermite_tuples

POINT = 1e24
"""Exponent of a Gaussian that equals a point charge in double precision."""
THRESHOLD = 1e-12
"""Largest error of the force on a pair by screening."""


@dataclass(frozen=True)
class ChargeDistribution:
    """A charge distribution as kets, and as bras of one order higher.

    `density`: density matrix or coefficients of the primitive functions; `places`: its centres, [centre, axis].
    """

    kets: Distributions
    bras: Distributions
    density: Any
    places: Array

    def atom(self, group: Primitives) -> Ints:
        """The index of each primitive's centre in `places`."""
        return _find(group.centres, self.places)


def electron_density(
    basis: Basis, D_pq: Any, backend: Backend, threshold: float = THRESHOLD, omega: float | None = None
) -> ChargeDistribution:
    """The electron density of a density matrix, from the primitive pairs of a basis."""
    _check_places(basis)
    groups, contraction = primitives(basis)
    blocks = pair_blocks(groups, threshold, backend)
    density = Contraction(contraction, backend).density(D_pq[None])
    return _charge(blocks, contraction.shape[1], density, basis.R_ax, backend, omega)


def fitted_density(aux: Basis, c_P: Any, backend: Backend, omega: float | None = None) -> ChargeDistribution:
    """The fitted density with coefficients c_P in a fitting basis."""
    _check_places(aux)
    groups, contraction = primitives(aux)
    density = Contraction(contraction, backend).spread(c_P[None])
    return _charge(single_blocks(groups, backend), 1, density, aux.R_ax, backend, omega)


def point_charges(charges: Array, positions: Array, backend: Backend, omega: float | None = None) -> ChargeDistribution:
    """Point charges as very narrow Gaussians; charges that attract electrons (nuclei) are negative."""
    n, height = len(charges), (POINT / np.pi) ** 1.5
    group = Primitives(((0, True),), np.full(n, POINT), positions, np.full((n, 1), height), 0)
    density = backend.to_device(charges[None] * height)
    return _charge(single_blocks([group], backend), 1, density, positions, backend, omega)


def _charge(
    blocks: Sequence[PairBlock], size: int, density: Any, places: Array, backend: Backend, omega: float | None
) -> ChargeDistribution:
    kets = Distributions.of(blocks, size, backend, omega)
    return ChargeDistribution(kets, Distributions.of(blocks, size, backend, omega, higher=1), density, places)


def interaction_gradient(
    target: ChargeDistribution, source: ChargeDistribution, backend: Backend, threshold: float = THRESHOLD
) -> Array:
    """Derivative of the interaction (target|source) with respect to the centres of the target alone, [centre, axis]."""
    potentials = Potentials(target.bras, source.kets, backend, threshold, "double")
    V = potentials.hermite(source.density)
    gradient = np.zeros_like(target.places)
    for c in target.bras.classes:
        bra_major = GROUPINGS[backend.traits.language].bra_major
        width = hermite_count(c.order)
        V_kt = V[c.order].reshape(-1, width)[c.rank] if bra_major else V[c.order].reshape(width, -1)[:, c.rank].T
        V_kt = V_kt * (2.0 * c.bra_factor)[:, None]
        first = 0
        for block, places in zip(c.blocks, c.places, strict=True):
            rows = slice(first, first + block.count)
            first = rows.stop
            _add_block(gradient, target, block, places, V_kt[rows], backend)
    return gradient


def _add_block(
    gradient: Array, target: ChargeDistribution, block: PairBlock, places: Any, V_kt: Any, backend: Backend
) -> None:
    """Add the derivatives with respect to both centres of the pairs of a block."""
    xp, put = backend.xp, backend.to_device
    X_kf = target.density.reshape(-1)[places]
    shifted = [put(index) for index in _shifted(block.order)]
    H_kt = (X_kf[:, None, :] @ block.E_kft)[:, 0]
    total_kx = xp.stack([(H_kt * V_kt[:, index]).sum(axis=1) for index in shifted], axis=1)
    atom_u = target.atom(block.bra)[block.u]
    if not block.ket.exponents.any():  # a single function, paired with the constant 1
        np.add.at(gradient, atom_u, backend.to_host(total_kx))
        return
    first_kx = xp.empty((block.count, 3))
    numbers = 3 * block.functions * hermite_count(block.order + 1)
    step = max(1, CHUNK_NUMBERS // numbers)
    for begin in range(0, block.count, step):
        some = slice(begin, begin + step)
        for x in range(3):
            E_kft = expand_derivative(block, some, x, backend)
            H = (X_kf[some][:, None, :] @ E_kft)[:, 0]
            first_kx[some, x] = (H * V_kt[some]).sum(axis=1)
    first_kx, total_kx = backend.to_host(first_kx), backend.to_host(total_kx)
    np.add.at(gradient, atom_u, first_kx)
    np.add.at(gradient, target.atom(block.ket)[block.v], total_kx - first_kx)


@cache
def _shifted(order: int) -> tuple[Ints, ...]:
    """For each axis: indices of the tuples t, raised by one along it, among those of the next order."""
    number = {t: k for k, t in enumerate(hermite_tuples(order + 1))}
    return tuple(np.array([number[raised(t, x)] for t in hermite_tuples(order)]) for x in range(3))


def _check_places(basis: Basis) -> None:
    used = np.unique([shell.atom for shell in basis.shells])
    if len(np.unique(basis.R_ax[used], axis=0)) < len(used):
        raise InputError("two atoms are at the same place: forces on them are not defined")


def _find(centres: Array, places: Array) -> Ints:
    """The row of `places` that equals each of `centres`."""
    number = {tuple(place): k for k, place in enumerate(places.tolist())}
    return np.array([number[tuple(centre)] for centre in centres.tolist()], dtype=np.int64)
