"""Equivalent states of broken symmetry.

A state with less symmetry than the nuclei has images under the operations that map the nuclei onto themselves: further
states, whose energies differ only because coordinates are rounded. Which of them an SCF ends in depends on rounding
errors, tolerances and the device; the choice made here does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import reduce
from math import sqrt

import numpy as np

from cuanto.arrays import Array, Ints
from cuanto.options import ScfOptions
from cuanto.scf.convergence import Criteria
from cuanto.scf.diagonalise import Diagonaliser
from cuanto.scf.loop import ExtrapolationStep, Problem, evaluate
from cuanto.scf.run import run_scf
from cuanto.scf.state import State
from cuanto.semiempirical.layout import Layout
from cuanto.semiempirical.properties import bond_orders, charges
from cuanto.system.symmetry import Operation, find_operations, identity, is_linear

SYMMETRY_TOLERANCE = 3e-4
"""Bohr: distance of an atom from the image of another one if coordinates have four digits in Angstrom."""
MAX_DIFFERENCE = 1e-3
"""Largest difference of charges and bond orders of the same state."""
MIN_GAIN = 2e-8
"""Hartree by which the lowest state must lie below the first one to be preferred to it."""
D_ORBITALS = np.array(
    [
        [[1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, 0.0]],
        [[0.0, 0.0, 1.0], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]],
        [[-1.0 / sqrt(3.0), 0.0, 0.0], [0.0, -1.0 / sqrt(3.0), 0.0], [0.0, 0.0, 2.0 / sqrt(3.0)]],
        [[0.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]],
        [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]],
    ]
) / sqrt(2.0)
"""Matrices Q of the orbitals x2-y2, xz, z2, yz, xy, which are r^T Q r."""


@dataclass(frozen=True, eq=False)
class Image:
    """An operation, and the charges and negative bond orders of the resulting state, by which states are ordered."""

    operation: Operation
    key: Array

    def differs(self, other: Image) -> bool:
        """Whether the states differ."""
        return bool((np.abs(self.key - other.key) > MAX_DIFFERENCE).any())

    def precedes(self, other: Image) -> bool:
        """Whether the first charge that differs is higher than in the other state, or else the first bond weaker."""
        different = np.flatnonzero(np.abs(self.key - other.key) > MAX_DIFFERENCE)
        return len(different) > 0 and bool(self.key[different[0]] > other.key[different[0]])


def settle(
    state: State,
    problem: Problem,
    layout: Layout,
    R_ax: Array,
    options: ScfOptions,
    diagonaliser: Diagonaliser,
    criteria: Criteria,
    notes: list[str],
) -> Iterator[State]:
    """Continue from a converged state: with itself, or with the SCF of an equivalent state that is preferred to it.

    If there are equivalent states, a note is added.
    """
    with problem.timings.measure("stability"):
        image, note = choose_image(problem, layout, R_ax, state)
    notes += [note] if note else []
    left, last, frame = int(options.max_iterations) - state.iteration, state, problem.frame
    if image is not state and left > 0:
        yield replace(state, converged=False)
        diagonaliser.restart()
        start = (frame.coefficients(image.C_spm, frame.X_pm), image.eps_sm)
        options = replace(options, max_iterations=left, guess_mixing=0.0)
        for found in run_scf(problem, start, options, diagonaliser, criteria, frame.X_pm, known=image):
            last = replace(found, iteration=state.iteration + found.iteration)
            if not last.converged:
                yield last
    if image is not state and (last is state or not last.converged or last.energy > state.energy + MIN_GAIN):
        reason = "higher in the end" if last is not state and last.converged else "not converged"
        notes[-1] += f", but {reason}: the one found first is kept"
        last = replace(state, iteration=last.iteration)
    yield last


def choose_image(problem: Problem, layout: Layout, R_ax: Array, state: State) -> tuple[State, str]:
    """The image to prefer, or the state itself, and a note if there are others.

    It is the first one in order of charges and bond orders, unless the lowest one is clearly lower.
    """
    frame, backend = problem.frame, problem.frame.backend
    own, *others = images(layout, R_ax, backend.to_host(state.D_spq))
    if not others:
        return state, ""
    C_spm = backend.to_host(state.C_spm)

    def state_of(image: Image) -> State:
        if image is own:
            return state
        rotated = backend.to_device(rotate_orbitals(layout, image.operation, C_spm))
        point = (frame.coefficients(rotated, frame.X_pm), state.eps_sm, "image")
        return evaluate(problem, ExtrapolationStep(problem), point).state

    energies = {image: float(state_of(image).energy) for image in (own, *others)}
    first = reduce(lambda best, one: one if one.precedes(best) else best, energies)
    lowest, highest = (bound(energies, key=energies.__getitem__) for bound in (min, max))
    is_first = energies[first] < energies[lowest] + MIN_GAIN
    chosen = "the first in order of charges and bond orders" if is_first else "the lowest"
    spread = energies[highest] - energies[lowest]
    note = f"broken symmetry: {len(energies)} equivalent states, energies within {spread:.1e} Hartree; {chosen} taken"
    return state_of(first if is_first else lowest), note


def images(layout: Layout, R_ax: Array, D_spq: Array) -> list[Image]:
    """One image for each equivalent state, that of the identity first; only this one for linear molecules, for which
    the energy does not depend on an angle about the axis."""
    charge_a, bonds_ab = charges(layout, D_spq.sum(axis=0)), bond_orders(layout, D_spq)
    operations, found = [identity(len(R_ax))], list[Image]()
    if not is_linear(R_ax, SYMMETRY_TOLERANCE) and equal_atoms_differ(layout, R_ax, charge_a, bonds_ab):
        operations = find_operations(layout.symbols, R_ax, SYMMETRY_TOLERANCE)
    for operation in operations:
        before = np.argsort(operation.image_a)
        image = Image(operation, np.append(charge_a[before], -bonds_ab[np.ix_(before, before)]))
        if all(image.differs(one) for one in found):
            found.append(image)
    return found


def equal_atoms_differ(layout: Layout, R_ax: Array, charge_a: Array, bonds_ab: Array) -> bool:
    """Whether charges or bond orders differ between atoms, or pairs of atoms, that may be equivalent.

    This takes much less time than a search for operations. Equivalent atoms have the same sum over all atoms of
    k/(1 + r), where k numbers the elements; equivalent pairs are at the same distance as well.
    """
    kind_a = layout.element_of_atom.astype(np.int64)
    d_ab = np.linalg.norm(R_ax[:, None] - R_ax, axis=2)
    terms_ab = (1.0 + kind_a) / (1.0 + d_ab)
    error = 2.0 * SYMMETRY_TOLERANCE * float((terms_ab / (1.0 + d_ab)).sum(axis=1).max())
    class_a = _number_classes(terms_ab.sum(axis=1), kind_a, error)
    pair_ab = class_a[:, None] * len(class_a) + class_a
    class_ab = _number_classes(d_ab.ravel(), pair_ab.ravel(), 2.0 * SYMMETRY_TOLERANCE)
    return max(_spread(charge_a, class_a), _spread(bonds_ab.ravel(), class_ab)) > MAX_DIFFERENCE


def _number_classes(values: Array, kinds: Ints, gap: float) -> Ints:
    """Number the classes of items of the same kind whose values are not separated by a gap."""
    order = np.lexsort((values, kinds))
    begins = (np.diff(values[order]) > gap) | (np.diff(kinds[order]) != 0)
    classes = np.empty(len(values), dtype=np.int64)
    classes[order] = np.append(0, np.cumsum(begins))
    return classes


def _spread(values: Array, classes: Ints) -> float:
    """Largest difference of values within a class."""
    order = np.argsort(classes, kind="stable")
    first, sorted_values = np.flatnonzero(np.diff(classes[order], prepend=-1)), values[order]
    return float((np.maximum.reduceat(sorted_values, first) - np.minimum.reduceat(sorted_values, first)).max())


def rotate_orbitals(layout: Layout, operation: Operation, C_spm: Array) -> Array:
    """Orbitals after an operation, which rotates those of every atom and moves them to another atom."""
    rotated, U_pq = np.empty(C_spm.shape), orbital_rotation(operation.R_xy)
    for n, atoms in layout.by_orbitals.items():
        before, after = (layout.first[a, None] + np.arange(n) for a in (atoms, operation.image_a[atoms]))
        rotated[:, after] = U_pq[:n, :n] @ C_spm[:, before]
    return rotated


def orbital_rotation(R_xy: Array) -> Array:
    """U_pq: the orbital q of an atom becomes sum_p U_pq p if space is rotated or reflected by R."""
    U_pq = np.eye(9)
    U_pq[1:4, 1:4] = R_xy
    U_pq[4:, 4:] = np.einsum("mxy,nxy->mn", D_ORBITALS, R_xy @ D_ORBITALS @ R_xy.T)
    return U_pq
