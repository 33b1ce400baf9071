"""J and K from quartets of shells; bounds decide which are neglected, and in which precision others are evaluated.

A quartet adds at most Q_ab Q_cd max |D| to an element of K, with Q = sqrt (ab|ab) (Schwarz; M. Haeser and R. Ahlrichs,
doi:10.1002/jcc.540100111), where the maximum is over the blocks ac, ad, bc, bd; for J it is over ab and cd, times two.
Quartets below the threshold are neglected; with mixed precision those below `SINGLE_BOUND` are evaluated in
single precision and summed in double.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cuanto.backends.base import Backend
from cuanto.basis import Basis
from cuanto.coulomb.base import DirectOptions
from cuanto.coulomb.digest_cpu import CpuDigest, Window
from cuanto.coulomb.digest_cuda import CudaDigest
from cuanto.coulomb.memory import BUILD_MATRICES
from cuanto.coulomb.pair_classes import DevicePairs, PairClass, pair_classes, segment_of_function
from cuanto.coulomb.stored import StoredDigest, count_quartets
from cuanto.integrals.segments import segments
from cuanto.kernels.abi import SIZE
from cuanto.memory import Budget, StorePlan

PRIMITIVE_SHARE = 1e-4
"""Primitive pairs are neglected below this fraction of the threshold of quartets."""
SIZE_SHARE = 0.01
"""Primitive quartets are neglected below this fraction of the threshold."""
SINGLE_BOUND = 1e-5
"""Quartets that add less are evaluated in single precision, when precision is mixed."""
SINGLE_ERROR = 1e-6
"""Error of an integral in single precision relative to its bound: a few units of the last digit."""
SPINS = 2
"""Densities to plan for."""
CHUNK_MATRICES = 2 * SPINS
"""Matrices of each chunk of a build: J and K of every density."""
DIGESTS: dict[str, type[CpuDigest] | type[CudaDigest]] = {"cpu": CpuDigest, "cuda": CudaDigest}
"""Digests by the language of kernels: vectors of kets on a CPU, lists of quartets on a GPU."""


def windows(precision: str, threshold: float) -> dict[str, Window]:
    """Number types of a precision, with the range of the bounds of the quartets that are evaluated in each."""
    ranges: dict[str, dict[str, Window]] = {
        "double": {"float64": (threshold, np.inf)},
        "single": {"float32": (threshold, np.inf)},
        "mixed": {"float32": (threshold, SINGLE_BOUND), "float64": (SINGLE_BOUND, np.inf)},
    }
    return ranges[precision]


@dataclass(frozen=True)
class Statistics:
    """Numbers of quartets of shells: evaluated, of these in single precision, and existing. `error`: estimated error of
    an element of J or K due to neglect and single precision, assuming random signs.
    """

    quartets: int
    single: int
    possible: int
    error: float


class QuartetEngine:
    """J and K of a basis by quartets; pairs, bounds and kernels are set up once per geometry."""

    def __init__(self, basis: Basis, budget: Budget, options: DirectOptions) -> None:
        backend, threshold, precision = budget.backend, options.threshold, options.precision
        self.backend, self.threshold, self.precision, self.nbf = backend, threshold, precision, basis.nbf
        pairs = pair_classes(basis, threshold * PRIMITIVE_SHARE, options.omega)
        make: Any = DIGESTS[backend.traits.language]
        cutoff = threshold * SIZE_SHARE
        # Bounds are always evaluated in double precision.
        double = make(budget, pairs, options.algorithm, np.float64, cutoff)
        self.pairs: list[PairClass] = double.pairs
        digests = {"float64": double}
        if precision != "double":
            rounded = [round_to_single(pair) for pair in double.pairs]
            digests["float32"] = make(budget, rounded, options.algorithm, np.float32, cutoff)
        self._parts = [(digests[name], window) for name, window in windows(precision, threshold).items()]
        # All combinations of the columns of a pair with itself are evaluated.
        kets, own = (sum(p.bra.count * p.columns**n for p in double.pairs) for n in (1, 2))
        self._possible = (kets**2 + own) // 2
        self._members = backend.to_device(_members(basis))
        self._done: list[Any] = []

    @staticmethod
    def begin(backend: Backend, precision: str) -> None:
        """Start compiling the kernels that every calculation needs."""
        for real in ("double", "float")[: 1 + (precision != "double")]:
            DIGESTS[backend.traits.language].begin(backend, real)

    @staticmethod
    def can_store(backend: Backend) -> bool:
        """Whether integrals can be stored in the memory of this backend."""
        return DIGESTS[backend.traits.language].storable

    def store(self, limit: int) -> StorePlan:
        """Store all integrals if they fit into `limit` bytes; called once, if `can_store`."""
        segments, matrix = len(self._members), 8 * self.nbf**2
        amounts, needed, complete = [], SPINS * BUILD_MATRICES * matrix, True
        for digest, window in self._parts:
            needed += CHUNK_MATRICES * digest.copies * matrix
            amounts.append(count_quartets(digest, window, segments, max(0, limit - needed)))
            needed, complete = needed + amounts[-1].bytes, complete and amounts[-1].complete
        stored = complete and needed <= limit
        if stored:
            self._parts = [
                (StoredDigest(digest, window, segments, amount), window)
                for (digest, window), amount in zip(self._parts, amounts, strict=True)
            ]
        return StorePlan("four-centre integrals", stored, needed, limit, complete)

    @property
    def device_pairs(self) -> dict[str, list[DevicePairs]]:
        """Pairs that are on the device for selected quartets, by the type of their numbers."""
        return {digest.real.name: digest.device_pairs for digest, _ in self._parts}

    def largest(self, D_npq: Any) -> Any:
        """Largest |D| between every two segments."""
        return _largest(D_npq, self._members)

    def __call__(self, D_npq: Any, want_j: bool, want_k: bool, antisymmetric: bool = False) -> tuple[Any, Any]:
        """J and K of densities that are all symmetric, or all antisymmetric (whose J is zero)."""
        xp = self.backend.xp
        J, K = (xp.zeros_like(D_npq) if wanted else None for wanted in (want_j and not antisymmetric, want_k))
        J, K = self._add(D_npq, self.largest(D_npq), J, K, -1.0 if antisymmetric else 1.0)
        return (xp.zeros_like(D_npq) if want_j and J is None else J), K

    def total_j_and_k(self, D_npq: Any) -> tuple[Any, Any]:
        """J of the sum of symmetric densities, [1, p, q], and their K; only where integrals can be stored."""
        xp = self.backend.xp
        total = D_npq.sum(axis=0, keepdims=True)
        largest = self.largest(xp.concatenate([D_npq, total]))
        return self._add(D_npq, largest, xp.zeros_like(total), xp.zeros_like(D_npq))

    def _add(self, D_npq: Any, largest: Any, J: Any | None, K: Any | None, sign: float = 1.0) -> tuple[Any, Any]:
        """Add the quartets to J and K, which begin as zeros, and `sign` times the transposes."""
        self._done = [engine.add(D_npq, largest, window, J, K) for engine, window in self._parts]
        J, K = (M if M is None else M + sign * M.transpose(0, 2, 1) for M in (J, K))
        return J, K

    @property
    def statistics(self) -> Statistics:
        """Statistics of the last call."""
        done = [int(count) for count in self._done]
        single = done[0] if self.precision != "double" and done else 0
        largest = SINGLE_BOUND if self.precision == "mixed" else 1.0
        neglected = max(0, self._possible - sum(done))
        error = self.threshold * neglected**0.5 + SINGLE_ERROR * largest * single**0.5
        return Statistics(sum(done), single, self._possible, error)


def largest_by_segments(basis: Basis, D_npq: Any, backend: Backend) -> Any:
    """Largest |D| between every two segments of a basis."""
    return _largest(D_npq, backend.to_device(_members(basis)))


def _largest(D_npq: Any, members: Any) -> Any:
    A = abs(D_npq).max(axis=0)
    return A[members].max(axis=1)[:, members].max(axis=2)


def _members(basis: Basis) -> Any:
    """Functions of every segment, [segment, position]; short rows are filled by repeating functions."""
    owner, count = segment_of_function(segments(basis), basis.nbf)
    members = [np.flatnonzero(owner == s) for s in range(count)]
    size = max(len(own) for own in members)
    return np.array([np.resize(own, size) for own in members])


def round_to_single(pairs: PairClass) -> PairClass:
    """Round records to single precision; centres of charge become sums of two numbers."""
    bra_record, ket_record = pairs.bra.record.copy(), pairs.ket.record.copy()
    for centre, low in ((bra_record[:, 1:4], bra_record[:, 11:SIZE]), (ket_record[:, 1:4], ket_record[:, 11:SIZE])):
        exact = centre + low
        centre[:] = exact.astype(np.float32)
        low[:] = exact - centre
    return replace(pairs, bra=replace(pairs.bra, record=bra_record), ket=replace(pairs.ket, record=ket_record))
