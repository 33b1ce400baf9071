"""Bra and ket batches of shells: the records that kernels read (layout in `kernels.abi`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cuanto.arrays import Array, Ints, Ints32, range_members, range_starts
from cuanto.integrals.segments import SegmentClass
from cuanto.kernels.abi import BLOCK, COULOMB_BRA, SIZE
from cuanto.kernels.spec import Shells

COULOMB_FACTOR = 2.0 * np.pi**2.5


@dataclass(frozen=True)
class BraBatch:
    """Shells or pairs of shells of one class; `ill_conditioned` pairs would lose digits in a horizontal recurrence.

    `loss`: factor by which such a recurrence would multiply the rounding errors of the worst pair.
    `attenuated`: the records are those of erf(omega r)/r (`integrals.attenuation`).
    `device`: arguments of kernels (without `rows`), if all arrays but `rows` are on the device, in double precision.
    """

    shells: Shells
    columns: int
    first: Any
    record: Any
    coefficient: Any
    shell: Any
    rows: Ints
    ill_conditioned: bool = False
    loss: float = 1.0
    attenuated: bool = False
    device: Mapping[str, Any] | None = None

    @property
    def count(self) -> int:
        """Number of bras."""
        return len(self.first) - 1


@dataclass(frozen=True)
class KetBatch:
    """Shells, pairs of shells, or point charges, of one class, in blocks of `abi.BLOCK` kets (flags as for bras)."""

    shells: Shells
    count: int
    first: Ints32  # [block + 1]: primitives of each block
    record: Array  # [primitive, field, lane]
    shell: Array  # [block, axis, lane]: distance of the two centres of a pair
    cols: Ints32  # [ket function, ket]
    ill_conditioned: bool = False
    loss: float = 1.0

    @property
    def primitives(self) -> float:
        """Average number of primitives of a ket."""
        return len(self.record) * BLOCK / max(1, self.count)


def ket_batch(group: SegmentClass, coulomb: bool) -> KetBatch:
    """Make a ket from each column of each segment; the first field is 1/exponent (Coulomb) or the exponent."""
    owner, _ = range_members(group.sizes)
    record = np.empty((len(group.exponents), group.columns, 5))
    record[:, :, 0] = (1.0 / group.exponents if coulomb else group.exponents)[:, None]
    record[:, :, 1:4] = group.centres[owner][:, None, :]
    weight = group.exponents**-1.5 if coulomb else np.ones(len(group.exponents))
    record[:, :, 4] = group.coefficients * weight[:, None]
    kets = owner[:, None] * group.columns + np.arange(group.columns)
    cols = group.ao.reshape(-1) + np.arange(group.functions)[:, None]
    shells = Shells((group.l,), (group.pure,))
    return block_kets(shells, kets.reshape(-1), record.reshape(-1, 5), np.zeros((cols.shape[1], 3)), cols)


def charge_batch(charges: Array, positions: Array, exponents: Array | None = None) -> KetBatch:
    """Charges as the primitives of a block of kets, whose integrals have to be summed.

    A charge is an s function with one of the `exponents`, infinite for points: (c/pi)^(3/2) exp(-c r^2) is the density
    of a unit charge.
    """
    n = len(charges)
    kets = min(n, BLOCK)
    record = np.zeros((n, 5))
    record[:, 0] = 0.0 if exponents is None else 1.0 / exponents
    record[:, 1:4] = positions
    record[:, 4] = charges * np.pi**-1.5
    return block_kets(Shells((0,)), np.arange(n) % kets, record, np.zeros((kets, 3)), np.arange(kets)[None, :])


def block_kets(shells: Shells, owner: Ints, record: Array, distance: Array, cols: Ints) -> KetBatch:
    """Sort kets by number of primitives and divide them into blocks of BLOCK; missing primitives have zero
    coefficients and a size (of pairs) below every cutoff.

    `owner`: ket of each primitive; `distance` [ket, axis]; `cols` [function, ket].
    """
    count = cols.shape[1]
    sizes = np.bincount(owner, minlength=count)
    order = np.argsort(-sizes, kind="stable")
    blocks = -(-count // BLOCK)
    # Lanes without a ket repeat the last one; their results are not stored.
    lanes = np.concatenate([order, np.repeat(order[-1:], blocks * BLOCK - count)]).reshape(blocks, BLOCK)
    longest = sizes[lanes].max(axis=1)
    sorted_primitives = np.argsort(owner, kind="stable")
    block, position = range_members(longest)
    within, ket = position[:, None], lanes[block]  # [primitive, lane]
    valid = within < sizes[ket]
    source = sorted_primitives[range_starts(sizes)[ket] + np.minimum(within, sizes[ket] - 1)]
    padded = record[source]  # [primitive, lane, field]
    padded[~valid, 4] = 0.0
    if record.shape[1] > SIZE:
        padded[~valid, SIZE] = -1.0  # below every cutoff
    return KetBatch(
        shells,
        count,
        range_starts(longest).astype(np.int32),
        np.ascontiguousarray(padded.transpose(0, 2, 1)),
        np.ascontiguousarray(distance[lanes].transpose(0, 2, 1)),
        np.ascontiguousarray(cols[:, order].astype(np.int32)),
    )


def shell_batch(group: SegmentClass, coulomb: bool) -> BraBatch:
    """Single shells as bras of two-centre Coulomb integrals, or of one-electron integrals."""
    exponents = group.exponents
    centres = np.repeat(group.centres, group.sizes, axis=0)
    if coulomb:
        record = np.zeros((len(exponents), COULOMB_BRA))
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
