"""Shells in the form that kernels read: by class, primitives and contraction columns as arrays.

A segment is a set of contraction columns over the same primitives. Columns with a single primitive are segments of
their own, so that the other columns need fewer products.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np

from cuanto.arrays import Array, Ints, range_starts
from cuanto.basis import Basis, Shell
from cuanto.errors import InputError
from cuanto.kernels.recurrences.components import function_count, shell_scale
from cuanto.kernels.spec import MAX_L


@dataclass(frozen=True)
class SegmentClass:
    """All segments with the same angular momentum, form and number of columns; their primitives one after the other."""

    l: int
    pure: bool
    first: Ints  # [segment + 1]: primitives of segment s are first[s] .. first[s + 1]
    exponents: Array  # [primitive]
    coefficients: Array  # [primitive, column], `shell_scale` folded in
    centres: Array  # [segment, axis]
    ao: Ints  # [segment, column]: first AO

    @property
    def count(self) -> int:
        """Number of segments."""
        return len(self.centres)

    @property
    def columns(self) -> int:
        """Contraction columns of each segment."""
        return int(self.coefficients.shape[1])

    @property
    def functions(self) -> int:
        """Functions of one column."""
        return function_count(self.l, self.pure)

    @cached_property
    def sizes(self) -> Ints:
        """Primitives of each segment."""
        return self.first[1:] - self.first[:-1]

    @cached_property
    def largest(self) -> Array:
        """Largest coefficient of each primitive."""
        return np.asarray(np.abs(self.coefficients).max(axis=1))


_known: WeakKeyDictionary[Basis, tuple[SegmentClass, ...]] = WeakKeyDictionary()


def segments(basis: Basis) -> tuple[SegmentClass, ...]:
    """The classes of a basis, low angular momenta first.

    They are cached; if an earlier basis had the same shells, its classes are only moved to the new positions.
    """
    if basis not in _known:
        _known[basis] = tuple(replace(one, centres=basis.R_ax[atoms]) for one, atoms in basis.of_shells(_segments))
    return _known[basis]


def require_momentum(basis: Basis, l: int) -> None:
    """Refuse shells of an angular momentum for which there are no integrals."""
    if l > MAX_L:
        raise InputError(f"basis {basis.name} has a shell with l = {l}; integrals are implemented up to l = {MAX_L}")


def _segments(basis: Basis) -> tuple[tuple[SegmentClass, Ints], ...]:
    """Classes of shells, and the atoms of their segments."""
    found: dict[tuple[int, bool, int], list[tuple[Array, Array, int, Ints]]] = {}
    parts: dict[tuple[int, int, int, bool], list[tuple[Array, Array, Ints]]] = {}
    for shell, offset in zip(basis.shells, basis.offsets, strict=True):
        require_momentum(basis, shell.l)
        # Equal atoms share their arrays: each kind of shell is split once.
        kind = (id(shell.exponents), id(shell.coefficients), shell.l, shell.pure)
        if kind not in parts:
            parts[kind] = _parts(shell)
        for exponents, coefficients, start in parts[kind]:
            key = (shell.l, shell.pure or shell.l < 2, len(start))
            found.setdefault(key, []).append((exponents, coefficients, shell.atom, offset + start))
    return tuple(_class(l, pure, members, basis.R_ax) for (l, pure, _), members in sorted(found.items()))


def _class(l: int, pure: bool, members: list[tuple[Array, Array, int, Ints]], R_ax: Array) -> tuple[SegmentClass, Ints]:
    exponents, coefficients, atoms, ao = zip(*members, strict=True)
    first, atom_s = range_starts([len(e) for e in exponents]), np.array(atoms)
    arrays = (np.concatenate(exponents), np.concatenate(coefficients), R_ax[atom_s], np.array(ao))
    return SegmentClass(l, pure, first, *arrays), atom_s


def _parts(shell: Shell) -> list[tuple[Array, Array, Ints]]:
    """Exponents, coefficients (`shell_scale` folded in) and first functions of the segments of a shell."""
    used = shell.coefficients != 0.0
    single = used.sum(axis=0) == 1
    groups = [np.flatnonzero(~single)] if not single.all() else []
    parts = []
    for columns in [*groups, *np.flatnonzero(single)[:, None]]:
        rows = used[:, columns].any(axis=1)
        coefficients = shell.coefficients[np.ix_(rows, columns)] * shell_scale(shell.l, shell.pure)
        parts.append((shell.exponents[rows], coefficients, columns * function_count(shell.l, shell.pure)))
    return parts
