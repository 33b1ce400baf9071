"""Points in groups: a sphere around each atom, cubes elsewhere; and the significant functions of each group.

R. E. Stratmann, G. E. Scuseria, M. J. Frisch, Chem. Phys. Lett. 257, 213 (1996), doi:10.1016/0009-2614(96)00600-8; the
spheres: a group with the innermost radial shells of an atom has many points and few functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import pi, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto.arrays import Array, Ints, Ints32
from cuanto.backends.base import Backend
from cuanto.basis import Basis
from cuanto.basis.shell import Shell
from cuanto.grid.points import Points
from cuanto.kernels.grid_setup import setup_kernel

REACH_STEP, REACH_END = 0.05, 80.0
"""Bohr: distances at which the size of a function is evaluated."""


@dataclass(frozen=True, eq=False)
class Groups:
    """Points `order[first[i]:first[i + 1]]` belong to group i."""

    order: Ints
    first: Ints

    def __len__(self) -> int:
        return len(self.first) - 1

    @property
    def sizes(self) -> Ints:
        """Points of each group."""
        return np.diff(self.first)


def divide(points: Points, edge: float, fraction: float) -> Groups:
    """Group the points of inner shells (a `fraction` of them) by atom and all others by cubes, so that near points stay
    together."""
    atoms = int(points.atom_g.max()) + 1
    r_xg = points.r_xg
    index_xg = ((r_xg - r_xg.min(axis=1)[:, None]) / edge).astype(np.int64)
    counts_x = index_xg.max(axis=1) + 1
    cube_g = (index_xg[0] * counts_x[1] + index_xg[1]) * counts_x[2] + index_xg[2]
    key_g = np.where(points.depth_g < fraction, points.atom_g, atoms + cube_g)
    return group_by_key(key_g)


def group_by_key(key_g: Ints) -> Groups:
    """Group points with equal keys, keeping their order."""
    sorted_keys, order = sort_keys(key_g, int(key_g.max(initial=0)) + 1, np)
    edges = np.flatnonzero(np.diff(sorted_keys)) + 1
    first = np.concatenate([[0], edges, [len(order)]]) if len(order) else np.zeros(1, dtype=np.int64)
    return Groups(order, first)


def sort_keys(key: Any, keys: int, xp: Any) -> tuple[Any, Any]:
    """Sorted keys and their original positions; sorting values is several times faster than argsort."""
    points = len(key)
    if keys > np.iinfo(np.int64).max // max(1, points):
        order = xp.argsort(key, kind="stable")
        return key[order], order
    both = xp.sort(points * key + xp.arange(points, dtype=np.int64))
    return xp.floor_divide(both, points), xp.remainder(both, points)


def envelope(shell: Shell) -> Array:
    """Size of the shell's functions at and beyond the distances 0, REACH_STEP, 2 REACH_STEP, ...

    A maximum between two steps may be higher by a few parts in ten thousand; in the tails, which determine the reach,
    there is none.
    """
    r = np.arange(0.0, REACH_END, REACH_STEP)
    angular = sqrt((2 * shell.l + 1) / (4 * pi)) if shell.pure or shell.l < 2 else 1.0
    size = np.zeros_like(r)
    for q in range(shell.ncol):
        terms = np.exp(-np.outer(shell.exponents, r**2)) * abs(shell.coefficients[:, q, None])
        np.maximum(size, angular * r**shell.l * terms.sum(axis=0), out=size)
    return np.maximum.accumulate(size[::-1])[::-1]


def envelopes(shells: Sequence[Shell]) -> tuple[Array, Ints]:
    """Envelopes of all different shells, and the envelope of each shell."""
    known: dict[tuple[int, bool, bytes, bytes], int] = {}
    rows: list[Array] = []
    kinds: list[int] = []
    for shell in shells:
        key = (shell.l, shell.pure, shell.exponents.tobytes(), shell.coefficients.tobytes())
        if key not in known:
            known[key] = len(rows)
            rows.append(envelope(shell))
        kinds.append(known[key])
    return np.array(rows), np.array(kinds)


@dataclass(frozen=True, eq=False)
class Boxes:
    """Bounding boxes of the points of each group, with centre and radius (arrays of the backend)."""

    box_low: Any
    box_high: Any
    centre: Any
    radius: Any

    @classmethod
    def of(cls, position_xg: Any, first: Ints, backend: Backend) -> Boxes:
        """Boxes of the points first[i] to first[i + 1]."""
        xp, groups = backend.xp, len(first) - 1
        boxes = cls(xp.empty((groups, 3)), xp.empty((groups, 3)), xp.empty((groups, 3)), xp.empty(groups))
        values = {"points": position_xg.shape[1], "position": position_xg, "first": backend.to_device(first)}
        launch(backend, "extents", groups, {**values, **boxes.arguments})
        return boxes

    @property
    def arguments(self) -> dict[str, Any]:
        """Arrays by the names of the kernel's arguments."""
        return {"box_low": self.box_low, "box_high": self.box_high, "centre": self.centre, "radius": self.radius}

    def part(self, chosen: Any) -> Boxes:
        """Boxes of some groups."""
        return Boxes(*(array[chosen] for array in self.arguments.values()))


@dataclass(frozen=True, eq=False)
class _ShellEnvelopes:
    """Envelopes of all different shells, and for every shell its envelope, atom, number of functions and mark."""

    rows: Array
    kinds: Ints
    atoms: Ints
    sizes: Ints32
    marks: NDArray[np.uint64]


def _shell_envelopes(basis: Basis) -> _ShellEnvelopes:
    atom_s = np.array([shell.atom for shell in basis.shells])
    sizes = np.array([shell.nbf for shell in basis.shells], dtype=np.int32)
    marks = np.random.default_rng(1).integers(0, 2**64, len(atom_s), dtype=np.uint64)
    return _ShellEnvelopes(*envelopes(basis.shells), atom_s, sizes, marks)


class ShellReaches:
    """The reach of the shells of a basis, on a backend; `sizes` and `first`: number of functions and first function.

    The mark of a list is a sum of random numbers of its shells: equal marks mean equal lists (with 100,000 lists the
    probability of an error is below 1e-9).
    """

    def __init__(self, basis: Basis, threshold: float, backend: Backend) -> None:
        self.backend = backend
        table = basis.of_shells(_shell_envelopes)
        atom_s, rows, kinds, self.sizes = table.atoms, table.rows, table.kinds, table.sizes
        self.first = np.asarray(basis.offsets[: len(atom_s)], dtype=np.int32)
        tables = {
            "shell_centre": np.ascontiguousarray(basis.R_ax[atom_s]),
            "reach": REACH_STEP * (rows > threshold).sum(axis=1)[kinds],
            "shell_size": self.sizes,
            "shell_ao": self.first,
            "shell_mark": table.marks,
            "shell_kind": kinds.astype(np.int32),
            "envelope": rows,
        }
        self._arguments = {**backend.upload(tables), "shells": len(atom_s), "envelope_steps": rows.shape[1]}
        self._arguments["reach_step"] = REACH_STEP

    def count(self, boxes: Boxes) -> tuple[Ints, Ints, NDArray[np.uint64]]:
        """Numbers of significant shells and functions of each group, and the mark of its list (on the host)."""
        xp, groups = self.backend.xp, len(boxes.radius)
        arrays = {
            "group_shells": xp.empty(groups, dtype=np.int32),
            "group_functions": xp.empty(groups, dtype=np.int32),
            "group_mark": xp.empty(groups, dtype=np.uint64),
        }
        launch(self.backend, "count", groups, {**self._arguments, **boxes.arguments, **arrays})
        shells, functions, marks = self.backend.download(list(arrays.values()))
        return shells.astype(np.int64), functions.astype(np.int64), marks

    def fill(self, boxes: Boxes, chosen: Ints, list_first: Ints, ao_first: Ints) -> dict[str, Any]:
        """The shells of the chosen groups, where their functions begin in the list, and the functions."""
        xp = self.backend.xp
        arrays = {
            "list_shell": xp.empty(int(list_first[-1]), dtype=np.int32),
            "list_row": xp.empty(int(list_first[-1]), dtype=np.int32),
            "ao": xp.empty(int(ao_first[-1]), dtype=np.int32),
        }
        tables = self.backend.upload({"chosen": chosen, "list_first": list_first, "ao_first": ao_first})
        launch(self.backend, "fill", len(chosen), {**self._arguments, **boxes.arguments, **tables, **arrays})
        return arrays

    def bounds(self, boxes: Boxes, list_first: Ints, list_shell: Any) -> Any:
        """Upper bounds of the functions of each shell of a list at the points of its group."""
        values = {"list_first": self.backend.to_device(list_first), "list_shell": list_shell}
        values["bound"] = self.backend.xp.empty(len(list_shell))
        launch(self.backend, "bound", len(list_first) - 1, {**self._arguments, **boxes.arguments, **values})
        return values["bound"]


def launch(backend: Backend, name: str, items: int, values: dict[str, Any]) -> None:
    """Run one of the kernels that set up a grid."""
    backend.launch(backend.compile(setup_kernel(name, backend.traits.language)), items, values)
