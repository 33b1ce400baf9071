"""Decontracted basis sets: every primitive is a function, and a matrix contracts them to the original basis."""

from __future__ import annotations

import numpy as np

from cuanto.arrays import Array
from cuanto.basis.basis_set import Basis
from cuanto.basis.shell import Shell, normalised_coefficients, tabulated_coefficients


def decontract(basis: Basis) -> tuple[Basis, Array]:
    """Normalised primitives of a basis, and C_kp: basis function p = sum_k C_kp primitive function k.

    Primitives with the same atom, angular momentum and exponent are merged. There is one shell, with a column for each
    primitive, for every atom and angular momentum; shells are sorted by angular momentum first.
    """
    members: dict[tuple[int, bool, int], list[int]] = {}
    for number, shell in enumerate(basis.shells):
        members.setdefault((shell.l, shell.pure, shell.atom), []).append(number)
    kinds = sorted(members)
    exponents = {kind: np.unique(np.concatenate([basis.shells[x].exponents for x in members[kind]])) for kind in kinds}
    shells = [
        Shell(atom, l, exponents[l, pure, atom], _normalised(l, exponents[l, pure, atom]), pure)
        for l, pure, atom in kinds
    ]
    primitive = Basis.from_shells(shells, basis.R_ax, symbols=basis.symbols, name=f"{basis.name}, decontracted")
    C_kp = np.zeros((primitive.nbf, basis.nbf))
    for kind, shell, first in zip(kinds, shells, primitive.offsets, strict=True):
        for x in members[kind]:
            own, components = basis.shells[x], np.arange(shell.ncomp)
            rows = first + np.searchsorted(shell.exponents, own.exponents) * shell.ncomp
            columns = basis.offsets[x] + np.arange(own.ncol) * own.ncomp
            places = (rows[:, None, None] + components, columns[None, :, None] + components)
            np.add.at(C_kp, places, tabulated_coefficients(own)[:, :, None])  # an exponent may appear twice
    return primitive, C_kp


def _normalised(l: int, exponents: Array) -> Array:
    """Coefficients of normalised primitives, each a column."""
    return normalised_coefficients(l, exponents, np.eye(len(exponents)))
