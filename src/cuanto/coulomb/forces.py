"""Forces on the centres of pairs of basis functions: electrostatic ones, and those of overlap and kinetic energy.

Charge distributions (electron density, fitted density, nuclei and point charges) are densities of Hermite Gaussians,
and the force on one of them follows from the potential of the others, to one order higher than the energy needs: a
gradient of J costs about as much as J. With the product of primitives a and b expanded in Hermite Gaussians at P
(`hermite_pairs`), d/dA raises and lowers the angular momentum of a, and d/dA + d/dB = d/dP gives the next order of the
potential. The pairs are the same for all terms of the energy, and potentials are linear in the charges: `Sources` of
several terms are added, and their forces computed at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cuanto.arrays import Array
from cuanto.backends.base import Backend, Launch
from cuanto.basis import Basis
from cuanto.coulomb.hermite_pairs import PairBlock, Primitives, pair_blocks, primitives, single_blocks
from cuanto.coulomb.j_engine import Distributions, Potentials
from cuanto.coulomb.j_steps import Contraction, blocks_of
from cuanto.coulomb.j_tables import tuples_on
from cuanto.errors import InputError
from cuanto.integrals.derivative import two_centre_gradient
from cuanto.kernels.hermite_build import expansion_memory, step_source

POINT = 1e24
"""Exponent of a Gaussian that equals a point charge in double precision."""
THRESHOLD = 1e-12
"""Largest error of the force on a pair by screening."""
CHUNKS = 64
"""Chunks of pairs on a CPU, at most: each has its own sums."""


@dataclass(frozen=True)
class Sources:
    """What acts on the electron density of a basis; those of several terms are added.

    `points`: charges (positive for nuclei, which come first) and their positions; `fit`: a fitting basis, with the
    coefficients of the density that repels the electrons in place of their own (`repulsion`). `kinetic`: whether the
    kinetic energy counts; `overlap`: M_pq of an energy sum_pq M_pq S_pq; `operators`: one-electron operators with the
    factors of their components.
    """

    points: tuple[Array, Array] | None = None
    fit: tuple[Basis, Any] | None = None
    repulsion: bool | None = None
    kinetic: bool | None = None
    overlap: Any | None = None
    operators: Mapping[str, Sequence[float]] | None = None

    def __add__(self, other: Sources) -> Sources:
        """Both; a kind of source comes from one of them."""
        given = {name: value for name, value in vars(other).items() if value is not None}
        if twice := [name for name in given if getattr(self, name) is not None]:
            raise InputError(f"two terms have the same kind of sources: {', '.join(twice)}")
        return replace(self, **given)


@dataclass(frozen=True)
class Charges:
    """Charge distributions with their density, a vector over all their functions."""

    distributions: Distributions
    density: Any

    @classmethod
    def of(cls, blocks: Sequence[PairBlock], density: Any, backend: Backend) -> Charges:
        """From blocks of pairs or of single functions."""
        return cls(Distributions.of(blocks, backend), density.reshape(-1))

    def __add__(self, other: Charges) -> Charges:
        """All of both."""
        density = self.distributions.backend.xp.concatenate([self.density, other.density])
        return Charges(self.distributions.joined(other.distributions, len(self.density)), density)


def fitted_density(aux: Basis, c_P: Any, backend: Backend) -> Charges:
    """The fitted density with coefficients c_P in a fitting basis."""
    _check_places(aux)
    groups, contraction = primitives(aux)
    return Charges.of(single_blocks(groups, backend), Contraction(contraction, backend).spread(c_P[None]), backend)


def point_charges(charges: Array, positions: Array, backend: Backend) -> Charges:
    """Point charges as very narrow Gaussians; charges that attract electrons (nuclei) are negative."""
    n, height = len(charges), (POINT / np.pi) ** 1.5
    group = Primitives.of(((0, True),), 0, np.full(n, POINT), positions, np.full((n, 1), height), np.arange(n))
    return Charges.of(single_blocks([group], backend), backend.to_device(charges * height), backend)


def electronic_gradient(
    basis: Basis,
    D_pq: Any,
    sources: Sources,
    backend: Backend,
    omega: float | None = None,
    threshold: float = THRESHOLD,
) -> Array:
    """dE/dR of the energy of an electron density in the field of sources, at a fixed density matrix; on the host.

    Rows are the atoms, then the point charges. `omega`: the operator erf(omega r)/r in place of 1/r, for all charges.
    """
    _check_places(basis)
    atoms, xp = len(basis.R_ax), backend.xp
    groups, contraction = primitives(basis)
    M_pq = xp.zeros_like(D_pq) if sources.overlap is None else sources.overlap
    X_nkl = Contraction(contraction, backend).density(xp.stack([D_pq, M_pq]))
    blocks = pair_blocks(groups, threshold, backend)
    gradient = backend.zeros((atoms if sources.points is None else len(sources.points[0]), 3), np.float64)
    if sources.kinetic or sources.overlap is not None:
        _add_overlap(gradient[:atoms], blocks, X_nkl, float(bool(sources.kinetic)), backend)
    for target, source in _interactions(Charges.of(blocks, X_nkl[0], backend), sources, backend):
        _add_forces(gradient, target, source, threshold, omega)
    total = backend.to_host(gradient)
    if sources.operators:
        factors = sources.operators.items()
        weights = {name: xp.stack([factor * D_pq for factor in components]) for name, components in factors}
        total[:atoms] += two_centre_gradient(basis, weights, backend)
    return total


def _interactions(electrons: Charges, sources: Sources, backend: Backend) -> Iterator[tuple[Charges, Charges]]:
    """Targets, each with the charges that act on its centres."""
    points = fit = None
    if sources.points is not None:
        charges, positions = sources.points
        points = point_charges(-charges, positions, backend)
    if sources.fit is not None:
        fit = fitted_density(*sources.fit, backend)
        yield fit, replace(fit, density=-fit.density)
    single = points + fit if points is not None and fit is not None else points or fit
    if single is not None:
        yield single, electrons
    if sources.repulsion:
        yield electrons, electrons if single is None else electrons + single
    elif single is not None:
        yield electrons, single


def _add_forces(gradient: Any, target: Charges, source: Charges, threshold: float, omega: float | None) -> None:
    """Add the derivative of (target|source) with respect to the centres of the target alone, [centre, axis]."""
    potentials = Potentials(target.distributions, source.distributions, threshold, omega=omega, higher=1)
    V, backend = potentials.hermite(source.density[None]), potentials.backend
    launches = []
    for c in potentials.bras:
        common = {**potentials.steps.potential(c, V, 1), "X": target.density}
        for block, first in blocks_of(c.pairs):
            launches.append(_launch("j_force", block, gradient, {**common, "first": first}, backend, higher=1))
    backend.launch_all(launches)


def _add_overlap(gradient: Any, blocks: Sequence[PairBlock], X_nkl: Any, kinetic: float, backend: Backend) -> None:
    """Add the derivative of the overlap with the weights X[1], and of the kinetic energy with those of X[0]."""
    values = {"kinetic": kinetic, "X": X_nkl, "size": X_nkl[0].size}
    backend.launch_all([_launch("j_overlap", block, gradient, values, backend) for block in blocks])


def _launch(
    step: str, block: PairBlock, gradient: Any, values: Mapping[str, Any], backend: Backend, higher: int = 0
) -> Launch:
    """A step that adds forces; chunks of the CPU have more pairs than sums."""
    a, b = block.bra, block.ket
    program = backend.compile(step_source(backend.traits.language, step))
    own = {**block.pairs(tuples_on(backend), higher), **block.places, **a.arguments("a"), **b.arguments("b")}
    scratch, grain = expansion_memory(a.order, b.order, step), max(-(-block.count // CHUNKS), gradient.size)
    return Launch(program, block.count, {"size": 0, **own, **values, "gradient": gradient}, scratch, grain, "gradient")


def _check_places(basis: Basis) -> None:
    used = np.unique([shell.atom for shell in basis.shells])
    if len(np.unique(basis.R_ax[used], axis=0)) < len(used):
        raise InputError("two atoms are at the same place: forces on them are not defined")
