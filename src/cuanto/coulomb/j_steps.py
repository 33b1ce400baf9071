"""The steps of the J engine around the interactions: density to Hermite densities, order of the kets, potential to J.

On the host they are array operations; on a GPU each is one launch (templates/j_steps.cuh), because many small array
operations would take longer than the interactions of a small molecule.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from cuanto.coulomb.hermite_pairs import PairBlock, bound_buckets
from cuanto.kernels.hermite_build import KETS, STEP_THREADS, step_source
from cuanto.kernels.recurrences.hermite_coulomb import GEOMETRY, hermite_count


@dataclass(frozen=True)
class HermiteClass:
    """All pairs of one Hermite order on the device: as the blocks have them (natural order), and sorted as bras."""

    order: int
    count: int
    blocks: tuple[PairBlock, ...]
    places: tuple[Any, ...]  # of each block, [pair, functions]: elements of the densities of primitive functions
    geometry: dict[str, Any]  # number type -> [pair, field], natural order
    bound_factor: Any  # [pair, Hermite function]: to the self-repulsion
    bound_matrix: Any
    ket_factor: Any  # [pair, Hermite function]
    bra_factor: Any  # [pair]
    curve: Any  # place of each pair along a curve in space
    rank: Any  # place of each pair among the bras
    bra_record: dict[str, Any]
    bra_bound: Any  # [group of bras]: the largest


@dataclass(frozen=True)
class HermiteDensity:
    """H_knt of the pairs of a class, their bounds, and the keys that sort them as kets."""

    H_knt: Any
    bound: Any
    key: Any


class Steps(Protocol):
    """A device's way through the steps; potentials V are as its launcher leaves them."""

    def density(self, c: HermiteClass, X_nkl: Any) -> HermiteDensity:
        """Hermite densities of a class from the density X of primitive functions."""

    def reach(self, rest: Any, bounds: Any, limit: float, single_limit: float) -> tuple[Any, Any]:
        """For every group of bras the groups of kets in double precision, and all that it meets.

        rest[k] is the sum of the bounds of the last k + 1 kets; a limit is what those left out may do together.
        """

    def record(self, c: HermiteClass, real: str, order: Any, H_knt: Any) -> Any:
        """Records of kets in the order in which they are met."""

    def collect(self, c: HermiteClass, V: Any, J_nkl: Any) -> None:
        """Write the potentials of a class, contracted with its expansions, into J of primitive functions."""


class ArraySteps:
    """NumPy."""

    def density(self, c: HermiteClass, X_nkl: Any) -> HermiteDensity:
        """A small matrix product for every pair."""
        X_nK = X_nkl.reshape(len(X_nkl), -1)
        H_knt = np.concatenate(
            [X_nK[:, at].transpose(1, 0, 2) @ block.E_kft for block, at in zip(c.blocks, c.places, strict=True)]
        )
        g_kw = ((H_knt * c.bound_factor[:, None, :]) @ c.bound_matrix).reshape(c.count, -1)
        bound = np.sqrt((g_kw**2).sum(axis=1))
        return HermiteDensity(H_knt, bound, c.curve - bound_buckets(bound) * c.count)

    def reach(self, rest: Any, bounds: Any, limit: float, single_limit: float) -> tuple[Any, Any]:
        """In blocks of kets."""
        end, split = (
            -(-(len(rest) - np.searchsorted(rest, x / bounds, side="right")) // KETS) for x in (limit, single_limit)
        )
        return np.minimum(split, end).astype(np.int32), end.astype(np.int32)

    def record(self, c: HermiteClass, real: str, order: Any, H_knt: Any) -> Any:
        """[block, field, lane]; lanes without a ket have no density, but an exponent."""
        geometry = c.geometry[real]
        fields_kf = np.concatenate([geometry, (H_knt * c.ket_factor[:, None, :]).reshape(c.count, -1)], axis=1)[order]
        blocks = -(-c.count // KETS)
        padded = np.zeros((blocks * KETS, fields_kf.shape[1]), dtype=geometry.dtype)
        padded[: c.count] = fields_kf
        padded[c.count :, 0] = 1.0
        return np.ascontiguousarray(padded.reshape(blocks, KETS, -1).transpose(0, 2, 1))

    def collect(self, c: HermiteClass, V: Any, J_nkl: Any) -> None:
        """V_kw"""
        n = len(J_nkl)
        V_ktn = (V[c.rank] * c.bra_factor[:, None]).reshape(c.count, n, -1).transpose(0, 2, 1)
        first = 0
        for block, places in zip(c.blocks, c.places, strict=True):
            values_kfn = block.E_kft @ V_ktn[first : first + block.count]
            J_nkl.reshape(n, -1)[:, places] = values_kfn.transpose(2, 0, 1)
            first += block.count


class KernelSteps:
    """Launches on a GPU."""

    def __init__(self, backend: Any) -> None:
        self.backend = backend

    def _launch(self, step: str, blocks: int, values: dict[str, Any], shared: int = 0, real: str = "double") -> None:
        self.backend.launch(step_source(step, real), blocks, STEP_THREADS, shared, values)

    def density(self, c: HermiteClass, X_nkl: Any) -> HermiteDensity:
        """A block of threads for every pair."""
        xp, n, tuples = self.backend.xp, len(X_nkl), hermite_count(c.order)
        H_knt, bound = xp.empty((c.count, n, tuples)), xp.empty(c.count)
        key = xp.empty(c.count, dtype=np.int64)
        shared = {"densities": n, "tuples": tuples, "X": X_nkl, "size": X_nkl[0].size, "factor": c.bound_factor}
        shared |= {"W": c.bound_matrix, "curve": c.curve, "count": c.count, "H": H_knt, "bound": bound, "key": key}
        first = 0
        for block, places in zip(c.blocks, c.places, strict=True):
            values = {"first": first, "functions": block.functions, "places": places, "E": block.E_kft}
            self._launch("j_density", block.count, {**shared, **values}, 8 * n * tuples)
            first += block.count
        return HermiteDensity(H_knt, bound, key)

    def reach(self, rest: Any, bounds: Any, limit: float, single_limit: float) -> tuple[Any, Any]:
        """A thread for every group of bras."""
        groups = len(bounds)
        split, end = self.backend.xp.empty((2, groups), dtype=np.int32)
        values = {"groups": groups, "kets": len(rest), "rest": rest, "bounds": bounds, "limit": limit}
        values |= {"single_limit": single_limit, "split": split, "end": end}
        self._launch("j_reach", -(-groups // STEP_THREADS), values)
        return split, end

    def record(self, c: HermiteClass, real: str, order: Any, H_knt: Any) -> Any:
        """[ket, field]; a thread for every number."""
        n, tuples = H_knt.shape[1:]
        geometry = c.geometry[real]
        record = self.backend.xp.empty((c.count, GEOMETRY[real] + n * tuples), dtype=geometry.dtype)
        values = {"kets": c.count, "densities": n, "tuples": tuples, "order": order, "geometry": geometry}
        values |= {"H": H_knt, "factor": c.ket_factor, "record": record}
        self._launch("j_record", -(-record.size // STEP_THREADS), values, real=real)
        return record

    def collect(self, c: HermiteClass, V: Any, J_nkl: Any) -> None:
        """V_wk; a thread for every function of every pair."""
        shared = {"densities": len(J_nkl), "tuples": hermite_count(c.order), "bras": c.count, "rank": c.rank}
        shared |= {"factor": c.bra_factor, "V": V, "J": J_nkl, "size": J_nkl[0].size}
        first = 0
        for block, places in zip(c.blocks, c.places, strict=True):
            values = {"first": first, "pairs": block.count, "functions": block.functions, "places": places}
            grid = -(-block.count * block.functions // STEP_THREADS)
            self._launch("j_collect", grid, {**shared, **values, "E": block.E_kft})
            first += block.count
