"""The basis as the kernels of the quadrature read it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cuanto.basis import Basis
from cuanto.kernels.grid_values import SHELL_FIELDS, ShellKind


@dataclass(frozen=True, eq=False)
class ShellTable:
    """Shells in AO order: `shell` [kind, primitives, columns, first number], centres, records of primitives."""

    kinds: tuple[ShellKind, ...]
    columns: int
    shell: NDArray[np.int32]
    centre: NDArray[np.float64]
    primitive: NDArray[np.float64]

    @classmethod
    def of(cls, basis: Basis) -> ShellTable:
        """Equal shells share their primitives."""
        kinds = sorted({(shell.l, shell.pure or shell.l < 2) for shell in basis.shells})
        table = np.zeros((len(basis.shells), SHELL_FIELDS), dtype=np.int32)
        known: dict[bytes, int] = {}
        records: list[NDArray[np.float64]] = []
        end = 0
        for i, shell in enumerate(basis.shells):
            record = np.column_stack([shell.exponents, shell.coefficients])
            key = np.int64(shell.ncol).tobytes() + record.tobytes()
            if key not in known:
                known[key] = end
                records.append(record.reshape(-1))
                end += record.size
            kind = kinds.index((shell.l, shell.pure or shell.l < 2))
            table[i] = (kind, shell.nprim, shell.ncol, known[key])
        centre = basis.R_ax[[shell.atom for shell in basis.shells]]
        widest = max(shell.ncol for shell in basis.shells)
        return cls(tuple(kinds), widest, table, np.ascontiguousarray(centre), np.concatenate(records))
