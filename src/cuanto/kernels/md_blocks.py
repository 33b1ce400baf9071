"""The schedules `block-per-integral` and `block-per-quartet`: their storage and their index tables.

H. Fujii, Y. Ito, S. Tsuji, K. Suzuki, N. Yokogawa, K. Nakano, A. Kasagi, "A parallel computation for McMurchie-Davidson
algorithm on the GPU" (2024), where they are called 1B1CI and 1B1SP; their short names in the code are `integral_block`
and `quartet_block`. A block of threads computes R_tuv^n by batches k = t + u + v; batch k has all tuples of that degree
with n = 0 .. K - k, where K is the total momentum, and needs batches k - 1 and k - 2 only: three buffers of the size of
the largest batch are used in rotation (triple buffering), and R_tuv^0 is kept separately. The text of the kernels is
`templates/md_blocks.cuh`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import prod

import numpy as np
from numpy.typing import NDArray

from cuanto import tuning
from cuanto.errors import InputError
from cuanto.kernels import abi
from cuanto.kernels.recurrences.components import kernel_matrix, powers
from cuanto.kernels.recurrences.hermite_coulomb import hermite_count
from cuanto.kernels.spec import Shells

MAX_BLOCK_L = 5
"""Highest angular momentum: the text of the kernels has unrolled Hermite expansions up to this one."""
MAX_THREADS = 256
"""Largest number of threads in a block (as in the paper)."""
CHUNK = 32
"""Primitive quartets whose Boys functions a block computes at once; the same as in the text."""
POTENTIALS = tuning.size("cuda", "integrals.block_potentials")
"""Largest number of integrals between Hermite Gaussians of the bra and ket monomials that a block of
`block-per-quartet` stores at once. If a single ket monomial has more, they are stored all the same."""
NAMES = "block-per-integral and block-per-quartet"
"""The two schedules in error messages."""

ARGUMENTS = abi.BATCH + abi.parse_arguments(
    "int bra_fields, int ket_fields, int la, int lb, int lc, int ld, int bra_functions, int ket_functions, "
    "const int* tuples, const int* bra_start, const int* bra_monomial, const REAL* bra_value, const int* ket_start, "
    "const int* ket_monomial, const REAL* ket_value, int room, int at_once, REAL* scratch, INDEX scratch_stride"
)


def check(operator: str, bra: Shells, ket: Shells) -> None:
    """Refuse classes that the kernels cannot compute."""
    if operator != "coulomb":
        raise InputError(f"the schedules {NAMES} compute Coulomb integrals only, not {operator}: choose schedule auto")
    if (l := max(*bra.l, *ket.l)) > MAX_BLOCK_L:
        raise InputError(f"the schedules {NAMES} support l = 0 to {MAX_BLOCK_L}, not {l}: choose schedule auto")


def batch_size(K: int, k: int) -> int:
    """How many values R_tuv^n batch k has, for total angular momentum K."""
    return (k + 1) * (k + 2) * (K - k + 1) // 2


@cache
def largest_batch(K: int) -> int:
    """Size of one buffer: how many values the largest batch has."""
    return max(batch_size(K, k) for k in range(K + 1))


def triple_buffer(K: int) -> int:
    """How many values triple buffering keeps: three buffers and R_tuv^0 (section VI of the paper)."""
    return 3 * largest_batch(K) + hermite_count(K)


@cache
def tuple_table(order: int) -> NDArray[np.int32]:
    """All (t, u, v) up to degree `order`, by rising degree; each is packed into one integer, 8 bits per index."""
    table = np.array([t | u << 8 | v << 16 for k in range(order + 1) for t, u, v in powers(k)], dtype=np.int32)
    table.setflags(write=False)
    return table


@dataclass(frozen=True)
class Functions:
    """Functions of a bra or ket as sparse rows over its monomials (for pairs, the second shell runs fastest)."""

    start: NDArray[np.int32]
    monomial: NDArray[np.int32]
    value: NDArray[np.float64]

    @property
    def count(self) -> int:
        """Number of functions."""
        return len(self.start) - 1


@cache
def functions_of(side: Shells) -> Functions:
    """The transformation from the monomials of a bra or ket to its functions.

    The common factor of a shell (`components.shell_scale`) is not included: the contraction coefficients have it.
    """
    matrix = np.ones((1, 1))
    for l, pure in zip(side.l, side.pure, strict=True):
        matrix = np.kron(matrix, np.array(kernel_matrix(l, pure)))
    row, monomial = np.nonzero(matrix)
    start = np.searchsorted(row, np.arange(len(matrix) + 1))
    return Functions(start.astype(np.int32), monomial.astype(np.int32), matrix[row, monomial])


@dataclass(frozen=True)
class Storage:
    """How many values a block stores: `shared` in shared memory, `sums` there too if they fit, else in global memory.

    `at_once`: number of ket monomials that are processed together.
    """

    shared: int
    sums: int
    at_once: int


def storage(bra: Shells, ket: Shells, columns: int, threads: int, per_integral: bool) -> Storage:
    """The storage that `md_blocks.cuh` needs."""
    bra_order, ket_order = sum(bra.l), sum(ket.l)
    K = bra_order + ket_order
    expansions = sum(3 * prod(l + 1 for l in side.l) * (sum(side.l) + 1) for side in (bra, ket))
    shared = triple_buffer(K) + CHUNK * (K + 4) + expansions
    if per_integral:
        hermites = hermite_count(bra_order) + hermite_count(ket_order)
        return Storage(shared + hermites + threads + -(-hermites // 2), 0, 1)
    bra_monomials, ket_monomials = (prod(len(powers(l)) for l in side.l) for side in (bra, ket))
    at_once = min(ket_monomials, max(1, POTENTIALS // hermite_count(bra_order)))
    sums = bra_monomials * (columns * ket_monomials + functions_of(ket).count)
    return Storage(shared + at_once * hermite_count(bra_order), sums, at_once)


def block_threads(bra: Shells, ket: Shells) -> int:
    """Threads of a block, a power of two from 32 to MAX_THREADS: if possible one per value of the largest batch."""
    wanted = largest_batch(sum(bra.l) + sum(ket.l))
    threads = 32
    while threads < min(wanted, MAX_THREADS):
        threads *= 2
    return threads
