"""Bra and ket batches of shells: the records that kernels read (layout in `kernels.abi`)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cuanto.integrals.segments import Array, Indices, SegmentClass
from cuanto.kernels.spec import Shells

KET_PADDING = 32
"""Kets are padded to a multiple of this: a warp, or four vectors of eight lanes."""
COULOMB_FACTOR = 2.0 * np.pi**2.5


@dataclass(frozen=True)
class BraBatch:
    """Shells or pairs of shells of one class; `delicate` pairs would lose digits in a horizontal recurrence."""

    shells: Shells
    columns: int
    first: NDArray[np.int32]
    record: Array
    coefficient: Array
    shell_record: Array
    rows: Indices
    delicate: bool = False

    @property
    def count(self) -> int:
        """Number of bras."""
        return len(self.first) - 1


@dataclass(frozen=True)
class KetBatch:
    """Shells, or point charges, of one class: record [primitive, field, ket]."""

    shells: Shells
    count: int
    primitives: int
    record: Array
    cols: NDArray[np.int32]


def ket_batches(group: SegmentClass, coulomb: bool) -> list[KetBatch]:
    """Every column of every segment as a ket, by number of primitives."""
    return [_kets(group, int(k), coulomb) for k in np.unique(group.sizes)]


def _kets(group: SegmentClass, size: int, coulomb: bool) -> KetBatch:
    """Segments of so many primitives; first field 1/exponent (Coulomb) or exponent."""
    mine = np.flatnonzero(group.sizes == size)
    primitives = group.first[mine] + np.arange(size)[:, None]  # [primitive, segment]
    exponents = np.repeat(group.exponents[primitives], group.columns, axis=1)
    coefficients = group.coefficients[primitives].reshape(size, -1)
    record = np.empty((size, 5, exponents.shape[1]))
    record[:, 0] = 1.0 / exponents if coulomb else exponents
    record[:, 1:4] = np.repeat(group.centres[mine], group.columns, axis=0).T
    record[:, 4] = coefficients * exponents**-1.5 if coulomb else coefficients
    cols = group.ao[mine].reshape(-1).astype(np.int32)
    return KetBatch(Shells((group.l,), (group.pure,)), len(cols), size, _padded(record), cols)


def charge_batch(charges: Array, positions: Array) -> KetBatch:
    """Point charges as s functions of infinite exponent; the density of a unit charge tends to (c/pi)^(3/2)."""
    n = len(charges)
    record = np.zeros((1, 5, n))
    record[0, 1:4] = positions.T
    record[0, 4] = charges * np.pi**-1.5
    return KetBatch(Shells((0,)), n, 1, _padded(record), np.arange(n, dtype=np.int32))


def _padded(record: Array) -> Array:
    """The last ket repeated with coefficient zero."""
    extra = -record.shape[2] % KET_PADDING
    tail = np.repeat(record[:, :, -1:], extra, axis=2)
    tail[:, 4] = 0.0
    return np.ascontiguousarray(np.concatenate([record, tail], axis=2))


def shell_batch(group: SegmentClass, coulomb: bool) -> BraBatch:
    """Single shells as bras: of two-centre Coulomb integrals, or of one-electron integrals."""
    exponents = group.exponents
    centres = np.repeat(group.centres, group.sizes, axis=0)
    if coulomb:
        record = np.zeros((len(exponents), 14))
        record[:, 0], record[:, 1:4], record[:, 10] = exponents, centres, 0.5 / exponents
        factor = COULOMB_FACTOR / exponents
    else:
        record = np.column_stack([exponents, centres, 0.5 / exponents])
        factor = np.full(len(exponents), np.pi**1.5)
    rows = group.ao[:, :, None] + np.arange(group.functions)
    return BraBatch(
        Shells((group.l,), (group.pure,)),
        group.columns,
        group.first.astype(np.int32),
        record,
        group.coefficients * factor[:, None],
        np.zeros((group.count, 3)),
        rows.reshape(group.count, -1),
    )
