"""Forces on the centres of pairs of basis functions: electrostatic ones, and those of overlap and kinetic energy.

Charge distributions (electron density, fitted density, nuclei and point charges) are densities of Hermite Gaussians,
and the force on one of them follows from the potential of the others, to one order higher than the energy needs: a
gradient of J costs about as much as J. With the product of primitives a and b expanded in Hermite Gaussians at P
(`hermite_pairs`), d/dA raises and lowers the angular momentum of a, and d/dA + d/dB = d/dP gives the next order of the
potential. The pairs are the same for all terms of the energy, and potentials are linear in the charges: `Sources` of
several terms are added, and their forces computed at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cuanto.arrays import Array
from cuanto.backends.base import Backend, Launch
from cuanto.basis import Basis
from cuanto.coulomb.hermite_pairs import ChargeSet, PairBlock, Primitives, charge_blocks, primitives
from cuanto.coulomb.j_engine import Distributions, Potentials
from cuanto.coulomb.j_steps import Contraction
from cuanto.coulomb.j_tables import tuples_on
from cuanto.errors import InputError
from cuanto.integrals.derivative import two_centre_gradient
from cuanto.kernels.hermite_build import expansion_memory, step_source

POINT_EXPONENT = 1e24
"""Exponent of a Gaussian that equals a point charge in double precision."""
THRESHOLD = 1e-12
"""Largest error that screening causes in the force on a pair."""
POINTS, FIT, ELECTRONS = "points", "fit", "electrons"
"""Names of the sets of charges."""
CHUNKS = 64
"""Maximum number of chunks of pairs on a CPU, each with its own sums."""


@dataclass(frozen=True)
class Sources:
    """Charges and operators that act on the electron density; those of several terms are added.

    `points`: charges (positive for nuclei, which come first) and their positions; `exponents`: those of Gaussian charge
    distributions in place of points. The electrons are repelled by their own density if `repulsion` is set, or by a
    fitted one: `fit` is a fitting basis and the coefficients. `kinetic`: whether the kinetic energy is included;
    `overlap`: M_pq of an energy sum_pq M_pq S_pq; `operators`: one-electron operators with the factors of their
    components.
    """

    points: tuple[Array, Array] | None = None
    exponents: Array | None = None
    fit: tuple[Basis, Any] | None = None
    repulsion: bool | None = None
    kinetic: bool | None = None
    overlap: Any | None = None
    operators: Mapping[str, Sequence[float]] | None = None

    def __add__(self, other: Sources) -> Sources:
        """Combine sources; each kind may come from only one of them."""
        given = {name: value for name, value in vars(other).items() if value is not None}
        if twice := [name for name in given if getattr(self, name) is not None]:
            raise InputError(f"two terms have the same kind of sources: {', '.join(twice)}")
        return replace(self, **given)


def electronic_gradient(
    basis: Basis,
    D_pq: Any,
    sources: Sources,
    backend: Backend,
    omega: float | None = None,
    room: float = np.inf,
) -> Array:
    """dE/dR of the energy of an electron density in the field of sources, at a fixed density matrix; on the host.

    Rows are the atoms, then the point charges. `omega`: the operator erf(omega r)/r in place of 1/r, for all charges.
    `room`: bytes of memory for potentials.
    """
    _check_places(basis)
    atoms, xp = len(basis.R_ax), backend.xp
    M_pq = xp.zeros_like(D_pq) if sources.overlap is None else sources.overlap
    sets, X, X_nkl = _charges(basis, xp.stack([D_pq, M_pq]), sources, backend)
    blocks = charge_blocks(sets, THRESHOLD, backend)
    gradient = backend.zeros((atoms if sources.points is None else len(sources.points[0]), 3), np.float64)
    if sources.kinetic or sources.overlap is not None:
        pairs = [block for block in blocks if block.charges.name == ELECTRONS]
        _add_overlap(gradient[:atoms], pairs, X, X_nkl[0].size, float(bool(sources.kinetic)), backend)
    if signs := _signs(sources):
        all_charges = Distributions.of(blocks, backend)
        potentials = Potentials(all_charges, all_charges, THRESHOLD, omega=omega, higher=1, signs=signs, room=room)
        _add_forces(gradient, potentials, X)
    total = backend.to_host(gradient)
    if sources.operators:
        factors = sources.operators.items()
        weights = {name: xp.stack([factor * D_pq for factor in components]) for name, components in factors}
        total[:atoms] += two_centre_gradient(basis, weights, backend)
    return total


def _signs(sources: Sources) -> dict[tuple[str, str], int]:
    """Pairs of sets that interact (first the one on which forces act), with the sign of the density of the second."""
    signs: dict[tuple[str, str], int] = {}
    for name in (POINTS, FIT):
        if getattr(sources, name) is not None:
            signs |= {(name, ELECTRONS): 1, (ELECTRONS, name): 1}
    if sources.fit is not None:
        signs[FIT, FIT] = -1
    if sources.repulsion:
        signs[ELECTRONS, ELECTRONS] = 1
    return signs


def _charges(basis: Basis, D_npq: Any, sources: Sources, backend: Backend) -> tuple[list[ChargeSet], Any, Any]:
    """Return the charge sets (points, fitted density, electrons), a vector of all densities, and its part for D_npq."""
    sets, single = [], []
    if sources.points is not None:
        charges, positions = sources.points
        n = len(charges)
        eta_a = np.full(n, POINT_EXPONENT) if sources.exponents is None else sources.exponents
        height = (eta_a / np.pi) ** 1.5
        group = Primitives.of(((0, True),), 0, eta_a, positions, height[:, None], np.arange(n))
        sets.append(ChargeSet(POINTS, [group], single=True))
        single.append(backend.to_device(-height * charges))
    if sources.fit is not None:
        aux, c_P = sources.fit
        _check_places(aux)
        groups, C_Pk = primitives(aux)
        sets.append(ChargeSet(FIT, groups, single=True, offset=sum(map(len, single))))
        single.append(Contraction(C_Pk, backend).spread(c_P[None])[0])
    groups, C_pk = primitives(basis)
    offset, size = sum(map(len, single)), C_pk.shape[1]
    sets.append(ChargeSet(ELECTRONS, groups, single=False, offset=offset))
    X = backend.xp.empty(offset + len(D_npq) * size**2)
    if single:
        X[:offset] = backend.xp.concatenate(single)
    X_nkl = Contraction(C_pk, backend).density(D_npq, X[offset:].reshape(-1, size, size))
    return sets, X, X_nkl


def _add_forces(gradient: Any, potentials: Potentials, X: Any) -> None:
    """Add the derivative of the energy of all charges in the potentials of the others, [centre, axis]."""
    parts = []
    for c, V in zip(potentials.bras, potentials.hermite(X[None]), strict=True):
        values = potentials.steps.potential(c, V, 1)
        parts += [(block, values) for block in c.pairs.blocks]
    add_block_forces(gradient, parts, X, potentials.backend)


def add_block_forces(
    gradient: Any, parts: Sequence[tuple[PairBlock, Mapping[str, Any]]], X: Any, backend: Backend
) -> None:
    """Add the forces on the pairs of blocks with density X in their potentials, given as by `Steps.potential`."""
    backend.launch_all([_launch("j_force", block, gradient, {**V, "X": X}, backend, higher=1) for block, V in parts])


def _add_overlap(
    gradient: Any, blocks: Sequence[PairBlock], X: Any, size: int, kinetic: float, backend: Backend
) -> None:
    """Add the derivatives of kinetic energy and overlap.

    In X the weights of the overlap begin `size` elements after those of the kinetic energy.
    """
    values = {"kinetic": kinetic, "X": X, "size": size}
    backend.launch_all([_launch("j_overlap", block, gradient, values, backend) for block in blocks])


def _launch(
    step: str, block: PairBlock, gradient: Any, values: Mapping[str, Any], backend: Backend, higher: int = 0
) -> Launch:
    """A launch that adds forces; on a CPU a chunk has at least as many pairs as there are sums to merge."""
    a, b = block.bra, block.ket
    program = backend.compile(step_source(backend.traits.language, step))
    own = {**block.pairs(tuples_on(backend), higher), **block.density_offsets, **a.arguments("a"), **b.arguments("b")}
    scratch, grain = expansion_memory(a.order, b.order, step), max(-(-block.count // CHUNKS), gradient.size)
    return Launch(program, block.count, {"size": 0, **own, **values, "gradient": gradient}, scratch, grain, "gradient")


def _check_places(basis: Basis) -> None:
    used = np.unique(basis.function_atoms)
    if len(np.unique(basis.R_ax[used], axis=0)) < len(used):
        raise InputError("two atoms are at the same position: forces on them are not defined")
