"""Point groups: the rotations and reflections that map a molecule onto itself.

An operation of a molecule that is not linear is determined by the images of two atoms and its handedness, so that
trying all pairs of atoms of the same kind at the same distances finds every operation.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cuanto.arrays import Array, Ints

TIGHT_TOLERANCE = 2e-5
"""Bohr: distance of an atom from the image of another one for which derivatives may be taken from the image."""
LOOSE_TOLERANCE = 2e-2
"""Bohr: the same for the symmetry number, where rounded and loosely optimised geometries count as symmetric. Atoms that
are nearer to a line than this form a linear molecule.
"""
MIN_SINE = 0.1
"""Smallest sine of the angle between the two atoms that determine an operation."""


@dataclass(frozen=True, eq=False)
class Operation:
    """An orthogonal matrix about the centre of the molecule; atom a moves to the place of atom `image_a[a]`."""

    R_xy: Array
    image_a: Ints

    @property
    def proper(self) -> bool:
        """Whether the operation is a rotation."""
        return float(np.linalg.det(self.R_xy)) > 0

    @property
    def trace(self) -> float:
        """Trace of the matrix: 1 + 2 cos(angle) of a rotation, 1 of a mirror plane, -3 of the inversion."""
        return float(np.trace(self.R_xy))


def identity(atoms: int) -> Operation:
    """The operation that every molecule has."""
    return Operation(np.eye(3), np.arange(atoms))


def is_linear(R_ax: Array, tolerance: float = LOOSE_TOLERANCE) -> bool:
    """Whether all atoms lie on a line."""
    return len(R_ax) < 3 or bool(np.abs(_across(_centre(R_ax))).max() < tolerance)


def find_operations(kinds: Sequence[object], R_ax: ArrayLike, tolerance: float = TIGHT_TOLERANCE) -> list[Operation]:
    """All operations, the identity first; atoms of different `kinds` are never exchanged.

    For the infinite groups of linear molecules, the operations of a fourfold axis are returned.
    """
    r_ax = _centre(np.asarray(R_ax, dtype=float))
    names = list(dict.fromkeys(kinds))
    kind_a = np.array([names.index(kind) for kind in kinds])
    candidates = _linear_candidates(r_ax) if is_linear(r_ax, tolerance) else _candidates(kind_a, r_ax, tolerance)
    found = [identity(len(r_ax))]
    for R_xy in candidates:
        operation = _match(kind_a, r_ax, R_xy, tolerance)
        if operation is not None and all(np.abs(operation.R_xy - one.R_xy).max() > 1e-3 for one in found):
            found.append(operation)
    return found


def symmetry_of(kinds: Sequence[object], R_ax: ArrayLike) -> tuple[str, int]:
    """Point group and symmetry number (the number of rotations) within the loosest tolerance that gives a group."""
    positions, tolerance = np.asarray(R_ax, dtype=float), LOOSE_TOLERANCE
    if len(positions) == 1:
        return "Kh", 1
    if is_linear(positions):
        return ("Dooh", 2) if _is_reversible(kinds, positions) else ("Coov", 1)
    operations = find_operations(kinds, positions, tolerance)
    while not _is_group(operations):
        tolerance /= 2
        operations = find_operations(kinds, positions, tolerance)
    return _name(operations), sum(one.proper for one in operations)


def _is_reversible(kinds: Sequence[object], R_ax: Array) -> bool:
    """Whether a linear molecule has a centre of inversion, and so two equivalent ends."""
    r_ax = _centre(R_ax)
    along_a = r_ax @ _axis(r_ax)
    order = np.argsort(along_a)
    ends = along_a[order] + along_a[order[::-1]]
    same = all(kinds[a] == kinds[b] for a, b in zip(order, order[::-1], strict=True))
    return same and bool(np.abs(ends).max() < LOOSE_TOLERANCE)


def _name(operations: Sequence[Operation]) -> str:
    """Schoenflies symbol of a finite group."""
    rotations = [one for one in operations if one.proper]
    mirrors = sum(not one.proper and abs(one.trace - 1) < 0.1 for one in operations)
    n, chiral, highest = len(rotations), len(operations) == len(rotations), max(map(_order, rotations))
    inverted = _has_inversion(operations)
    cubic = {(12, 3): "T", (24, 4): "O", (60, 5): "I"}.get((n, highest))
    if cubic is not None:
        return cubic if chiral else "Td" if cubic == "T" and not inverted else f"{cubic}h"
    letter = "C" if n == highest else "D"
    if chiral:
        return f"{letter}{highest}"
    if letter == "D":
        return f"D{highest}{'d' if mirrors == highest else 'h'}"
    if highest == 1:
        return "Ci" if inverted else "Cs"
    return f"S{2 * highest}" if mirrors == 0 else f"C{highest}{'h' if mirrors == 1 else 'v'}"


def _order(rotation: Operation) -> int:
    """n of a rotation by 360 degrees / n; 1 for multiples of such a rotation."""
    angle = math.acos(min(max((rotation.trace - 1) / 2, -1.0), 1.0))
    n = round(2 * math.pi / angle) if angle > 0.01 else 1
    return n if n == 1 or abs(n * angle - 2 * math.pi) < 0.05 else 1


def _has_inversion(operations: Sequence[Operation]) -> bool:
    return any(one.trace < -2.9 for one in operations)


def _is_group(operations: Sequence[Operation]) -> bool:
    """Whether the product of any two operations is one of them."""
    known = np.array([one.R_xy.reshape(9) for one in operations])
    for one in operations:
        products = np.array([(one.R_xy @ R.reshape(3, 3)).reshape(9) for R in known])
        if np.abs(products[:, None] - known[None]).max(axis=2).min(axis=1).max() > 0.1:
            return False
    return True


def _centre(R_ax: Array) -> Array:
    return np.asarray(R_ax - R_ax.mean(axis=0))


def _axis(r_ax: Array) -> Array:
    """The longest axis of the molecule."""
    return np.asarray(np.linalg.svd(r_ax)[2][0])


def _across(r_ax: Array) -> Array:
    """Components of the positions perpendicular to the longest axis of the molecule."""
    axis_x = _axis(r_ax)
    return np.asarray(r_ax - np.outer(r_ax @ axis_x, axis_x))


def _linear_candidates(r_ax: Array) -> Iterator[Array]:
    """Operations of a fourfold axis along the molecule."""
    axes_yx = np.linalg.svd(r_ax)[2]
    for turn in range(4):
        cos, sin = round(math.cos(turn * math.pi / 2)), round(math.sin(turn * math.pi / 2))
        for along in (1.0, -1.0):
            for mirror in (1.0, -1.0):
                plane = np.array([[along, 0, 0], [0, cos, -sin * mirror], [0, sin, cos * mirror]])
                yield axes_yx.T @ plane @ axes_yx


def _candidates(kind_a: Ints, r_ax: Array, tolerance: float) -> Iterator[Array]:
    """Matrices that map two chosen atoms onto atoms of the same kind at the same distances."""
    length_a = np.linalg.norm(r_ax, axis=1)
    alike_ab = (kind_a[:, None] == kind_a) & (np.abs(length_a[:, None] - length_a) < 2 * tolerance)
    i, j = _chosen_pair(r_ax, length_a, alike_ab.sum(axis=1))
    frame, between = _frame(r_ax[i], r_ax[j]), np.linalg.norm(r_ax[i] - r_ax[j])
    for k in np.flatnonzero(alike_ab[i]):
        for l in np.flatnonzero(alike_ab[j]):
            if k == l or abs(np.linalg.norm(r_ax[k] - r_ax[l]) - between) > 4 * tolerance:
                continue
            image = _frame(r_ax[k], r_ax[l])
            yield image @ frame.T
            yield image @ np.diag([1.0, 1.0, -1.0]) @ frame.T


def _chosen_pair(r_ax: Array, length_a: Array, size_a: Array) -> tuple[int, int]:
    """Choose two atoms that are not in line with the centre and have few equivalent candidates."""
    best, found = math.inf, (0, 1)
    for i in np.argsort(size_a, kind="stable"):
        if length_a[i] < MIN_SINE * length_a.max():
            continue
        sine_a = np.linalg.norm(np.cross(r_ax[i], r_ax), axis=1) / (length_a[i] * length_a.max())
        if sine_a.max() < MIN_SINE:
            continue
        cost_a = np.where(sine_a > 0.5 * sine_a.max(), size_a[i] * size_a, math.inf)
        j = int(np.argmin(cost_a))
        if cost_a[j] < best:
            best, found = float(cost_a[j]), (int(i), j)
    if best == math.inf:  # nearly linear: the atom farthest from the axis decides
        far = np.linalg.norm(_across(r_ax), axis=1)
        found = (int(np.argmax(length_a)), int(np.argmax(far)))
    return found


def _frame(first_x: Array, second_x: Array) -> Array:
    """Orthonormal columns: along the first vector, in the plane of both, perpendicular to it."""
    one = first_x / np.linalg.norm(first_x)
    two = second_x - one * (one @ second_x)
    two = two / np.linalg.norm(two)
    return np.column_stack([one, two, np.cross(one, two)])


def _match(kind_a: Ints, r_ax: Array, R_xy: Array, tolerance: float) -> Operation | None:
    """The operation nearest to a matrix, if it maps every atom onto one of the same kind."""
    moved_ax = r_ax @ R_xy.T
    image_a = np.argmin(np.linalg.norm(moved_ax[:, None] - r_ax[None], axis=2), axis=1)
    if len(set(image_a.tolist())) < len(r_ax) or (kind_a[image_a] != kind_a).any():
        return None
    # The orthogonal matrix that fits best, of the same handedness.
    U, _, V = np.linalg.svd(r_ax[image_a].T @ r_ax)
    hand = np.sign(np.linalg.det(R_xy)) * np.sign(np.linalg.det(U @ V))
    best_xy = U @ np.diag([1.0, 1.0, hand]) @ V
    if is_linear(r_ax, tolerance):
        best_xy = R_xy  # nothing fixes the angle about the axis
    if np.linalg.norm(r_ax @ best_xy.T - r_ax[image_a], axis=1).max() > tolerance:
        return None
    return Operation(best_xy, image_a)
