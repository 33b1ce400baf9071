"""Shells in the form kernels want: by class, primitives and contraction columns as arrays.

A segment is a set of contraction columns over the same primitives. Columns with a single primitive become segments of
their own: the other columns then need fewer products, and nothing is computed twice that costs anything.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cuanto.basis import Basis, Shell
from cuanto.errors import InputError
from cuanto.kernels.recurrences.components import function_count, shell_scale
from cuanto.kernels.spec import MAX_L

Array = NDArray[np.float64]


@dataclass(frozen=True)
class SegmentClass:
    """All segments with the same momentum, number of primitives and number of columns."""

    l: int
    pure: bool
    exponents: Array  # [segment, primitive]
    coefficients: Array  # [segment, primitive, column], `shell_scale` folded in
    centres: Array  # [segment, axis]
    ao: NDArray[np.int64]  # [segment, column]: first AO

    @property
    def count(self) -> int:
        """Number of segments."""
        return len(self.centres)

    @property
    def columns(self) -> int:
        """Contraction columns of each segment."""
        return int(self.coefficients.shape[2])

    @property
    def functions(self) -> int:
        """Functions of one column."""
        return function_count(self.l, self.pure)

    def split_columns(self) -> SegmentClass:
        """Every column as a segment of its own."""
        n, k, q = self.coefficients.shape
        return SegmentClass(
            self.l,
            self.pure,
            np.repeat(self.exponents, q, axis=0),
            self.coefficients.transpose(0, 2, 1).reshape(n * q, k, 1),
            np.repeat(self.centres, q, axis=0),
            self.ao.reshape(n * q, 1),
        )


def segments(basis: Basis) -> list[SegmentClass]:
    """The classes of a basis, by momentum and size."""
    found: dict[tuple[int, bool, int, int], list[tuple[Array, Array, Array, NDArray[np.int64]]]] = {}
    parts: dict[tuple[int, int, int, bool], list[tuple[Array, Array, NDArray[np.int64]]]] = {}
    for shell, offset in zip(basis.shells, basis.offsets, strict=True):
        # Equal atoms share their arrays: each kind of shell is taken apart once.
        kind = (id(shell.exponents), id(shell.coefficients), shell.l, shell.pure)
        if shell.l > MAX_L:
            raise InputError(f"basis {basis.name} has a shell with l = {shell.l}; integrals are made up to l = {MAX_L}")
        if kind not in parts:
            parts[kind] = _parts(shell)
        for exponents, coefficients, start in parts[kind]:
            key = (shell.l, shell.pure or shell.l < 2, len(exponents), len(start))
            found.setdefault(key, []).append((exponents, coefficients, basis.R_ax[shell.atom], offset + start))
    return [
        SegmentClass(
            key[0],
            key[1],
            np.array([e for e, _, _, _ in members]),
            np.array([c for _, c, _, _ in members]),
            np.array([r for _, _, r, _ in members]),
            np.array([a for _, _, _, a in members]),
        )
        for key, members in sorted(found.items())
    ]


def _parts(shell: Shell) -> list[tuple[Array, Array, NDArray[np.int64]]]:
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
