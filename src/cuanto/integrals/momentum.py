"""Matrix elements W_pq = sum_x <d_x p|V|d_x q> of the potential between derivatives of basis functions.

The derivatives of a primitive are combinations of Cartesian shells of the next higher and the next lower
angular momentum (`integrals.derivative`). Those shells form a separate basis, in which V is computed as in any other
basis: for energies by the kernels of nuclear attraction, for gradients by `coulomb.forces`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any

import numpy as np

from cuanto.arrays import Array
from cuanto.basis import Basis, Shell
from cuanto.integrals.derivative import coupling
from cuanto.kernels.recurrences.components import function_count, shell_scale


@dataclass(frozen=True)
class _Block:
    """Primitives of one angular momentum l, and the derivative shells of either l + 1 or l - 1 that belong to them.

    `first`: their first function in the basis; `start`: their first function in the derivative basis.
    `G_xmk`: d_x of function m = sum_k G_xmk derivative function k; the same for all `count` primitives.
    """

    first: int
    start: int
    count: int
    G_xmk: Array

    @property
    def functions(self) -> slice:
        """Functions of the basis."""
        return slice(self.first, self.first + self.count * self.G_xmk.shape[1])

    @property
    def derivatives(self) -> slice:
        """Functions of the derivative basis."""
        return slice(self.start, self.start + self.count * self.G_xmk.shape[2])


class DerivativeBasis:
    """Functions in which the derivatives of a decontracted basis are expanded; its shells are sorted by momentum."""

    def __init__(self, basis: Basis) -> None:
        self._primitive, self._blocks = basis, []
        shells: list[Shell] = []
        first = start = 0
        for (l, pure), group in groupby(basis.shells, key=lambda shell: (shell.l, shell.pure)):
            own = list(group)
            count = sum(shell.ncol for shell in own)
            for step in (1, -1) if l else (1,):
                self._blocks.append(_Block(first, start, count, _combinations(l, pure, step)))
                shells += [_derivative_shell(shell, step) for shell in own]
                start += count * function_count(l + step, False)
            first += count * function_count(l, pure)
        self._shells = shells

    @cached_property
    def basis(self) -> Basis:
        """The derivative functions, on the same atoms."""
        return Basis.from_shells(self._shells, self._primitive.R_ax, symbols=self._primitive.symbols)

    def fold(self, V_kl: Any, xp: Any) -> Any:
        """sum_x <d_x p|V|d_x q> from V between derivative functions."""
        n = self._primitive.nbf
        W_pq = xp.zeros((n, n))
        for x in range(3):
            half_pl = xp.zeros((n, len(V_kl)))
            for block in self._blocks:
                rows = V_kl[block.derivatives].reshape(block.count, -1, len(V_kl))
                half_pl[block.functions] += (xp.asarray(block.G_xmk[x]) @ rows).reshape(-1, len(V_kl))
            for block in self._blocks:
                columns = half_pl[:, block.derivatives].reshape(n, block.count, -1)
                W_pq[:, block.functions] += (columns @ xp.asarray(block.G_xmk[x].T)).reshape(n, -1)
        return W_pq

    def unfold(self, D_pq: Any, xp: Any) -> Any:
        """D_kl with sum_kl D_kl V_kl = sum_pq D_pq W_pq for every V."""
        n, size = self._primitive.nbf, self.basis.nbf
        D_kl = xp.zeros((size, size))
        for x in range(3):
            half_kq = xp.zeros((size, n))
            for block in self._blocks:
                rows = D_pq[block.functions].reshape(block.count, -1, n)
                half_kq[block.derivatives] = (xp.asarray(block.G_xmk[x].T) @ rows).reshape(-1, n)
            for block in self._blocks:
                columns = half_kq[:, block.functions].reshape(size, block.count, -1)
                D_kl[:, block.derivatives] += (columns @ xp.asarray(block.G_xmk[x])).reshape(size, -1)
        return D_kl


def _combinations(l: int, pure: bool, step: int) -> Array:
    """G_xmk of one angular momentum, for derivative shells of l + step."""
    G_xmk = np.zeros((3, function_count(l, pure), function_count(l + step, False)))
    m, x, k, weight = coupling(l, pure, step)
    np.add.at(G_xmk, (x, m, k), weight)
    return G_xmk


def _derivative_shell(shell: Shell, step: int) -> Shell:
    """Cartesian shell of l + step with the factors of `coupling`."""
    l, pure = shell.l + step, shell.l + step < 2
    scale = shell_scale(shell.l, shell.pure) / shell_scale(l, pure)
    factor = 2.0 * shell.exponents[:, None] if step == 1 else 1.0
    return Shell(shell.atom, l, shell.exponents, shell.coefficients * factor * scale, pure)
