"""What every backend offers, and the choice of one by name."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cuanto.backends.communicator import Communicator
from cuanto.errors import InputError
from cuanto.kernels.spec import Shells
from cuanto.kernels.text import Source


class Factor(Protocol):
    """A lower triangle to divide by."""

    @property
    def L(self) -> Any:
        """The triangle."""

    def divide(self, B: Any) -> None:
        """Replace B by B L^-T."""


class Linalg(Protocol):
    """Dense linear algebra that a device does in its own way; everything else is in `xp`.

    Working memory, for plans: `factor_copies`, matrices of the size of A while `inverse_factor` runs, A included;
    `copied_rows` of `times_transpose_to`; `stack_copies`, arrays of the size of X while `gram_of_stack` runs.
    """

    factor_copies: int
    stack_copies: int

    @property
    def copied_rows(self) -> int:
        """Rows of temporary copies."""

    def threads(self, n: int) -> AbstractContextManager[None]:
        """A context in which algebra with matrices of n rows has as many threads of the host as it gains from."""

    def eigh(self, A: Any) -> tuple[Any, Any]:
        """Eigenvalues, ascending, and eigenvectors of a symmetric matrix, or of a stack of them."""

    def product(self, A: Any, B: Any) -> Any:
        """A B of two matrices, or of stacks of them."""

    def gram(self, X: Any) -> Any:
        """X X^T"""

    def gram_of_stack(self, X: Any) -> Any:
        """sum_i X_i X_i^T of matrices X_i."""

    def combine_rows(self, rows: Any, weights: Any, ranges: Any = None) -> Any:
        """sum_r weights_r rows_r; of some `ranges` [k, 2] of rows where weights are zero elsewhere."""

    def rows_times(self, rows: Any, vector: Any, ranges: Any = None) -> Any:
        """rows_r . vector of every row; of some `ranges` of rows where the others are not needed."""

    def inverse_factor(self, A: Any) -> tuple[Any, float]:
        """L^-1 of A = L L^T, perhaps written over A, and the smallest pivot; -1 where A is not positive definite."""

    def lower_gram(self, A: Any) -> Any:
        """A A^T, of which the lower triangle at least is there."""

    def divisor(self, L: Any) -> Factor:
        """A lower triangle, or a stack of them, ready to divide by."""

    def factor(self, G: Any) -> Factor:
        """Cholesky factor of a matrix whose upper triangle is not looked at."""

    def rotation_factors(self, X: Any) -> Iterator[Factor]:
        """Factors of 1 + X X^T and 1 + X^T X; a GPU goes on with other work until they are taken."""

    def times_transpose(self, rows: Any, L: Any, triangle: bool) -> None:
        """rows L^T, written over the rows; L is a lower `triangle` or a whole matrix."""

    def times_transpose_to(self, rows: Any, one: Any, other: Any, L: Any, triangle: bool) -> None:
        """The rows `one` times L^T, written over these and over the `other` rows."""


@dataclass(frozen=True)
class Traits:
    """What is different from device to device, as data.

    `language` of kernel texts; `schedule` of integral kernels; `unified_memory`: device arrays are host arrays;
    `workers`: threads or multiprocessors. `worth_compiling`: operations of a job from which a straight-line kernel
    repays its compilation. On a GPU: `group_threads` of a block of the general kernel, which has `shared_limit` bytes
    of fast memory at most; `quartet_threads` of a block for a quartet of shells (0: by class).
    """

    language: str
    schedule: str
    unified_memory: bool
    workers: int
    worth_compiling: float
    group_threads: int = 0
    shared_limit: int = 0
    quartet_threads: int = 0


class Program(Protocol):
    """A kernel that is being compiled, or is there already."""

    source: Source

    @property
    def ready(self) -> bool:
        """Has it been compiled?"""

    def wait(self) -> None:
        """Until it is compiled; an error of the compiler is raised here."""


@dataclass(frozen=True, eq=False)
class Launch:
    """So many items of a kernel, with its arguments by name; those that the kernel does not have are ignored.

    `scratch`: bytes of fast memory for a worker (a thread of the CPU, a block of threads of a GPU).
    `grain`: items that a thread of the CPU takes at once (0: as many as balance the work).
    `sums`: name of the argument, an array of doubles, to which items add; on a CPU, in a fixed order, from `sums_size`
    numbers of each chunk where the kernel has its own way to add them (`Source.merge`).
    `better`: asked now and then, while items are left, for a faster launch of the same work to go on with; None: not
    yet.
    """

    program: Program
    items: int
    arguments: Mapping[str, Any]
    scratch: int = 0
    grain: int = 0
    sums: str = ""
    sums_size: int = 0
    better: Iterator[Launch | None] | None = None


def when_ready(launch: Launch) -> Iterator[Launch | None]:
    """The launch, as soon as its kernel is compiled."""
    while not launch.program.ready:
        yield None
    yield launch


@dataclass(frozen=True)
class Job:
    """A batch of bras against a batch of kets of one class; `arguments` by the names of `kernels.abi.BATCH`."""

    operator: str
    bra: Shells
    ket: Shells
    algorithm: str
    columns: int
    bras: int
    kets: int
    primitives: float
    arguments: dict[str, Any]

    @property
    def real_name(self) -> str:
        """The kernels' number type."""
        return "double" if np.dtype(self.arguments["out"].dtype) == np.float64 else "float"


class Backend(Protocol):
    """A device: array module, copies, compilation and execution of kernels."""

    name: str
    xp: Any
    traits: Traits
    communicator: Communicator

    @property
    def linalg(self) -> Linalg:
        """Dense linear algebra."""

    def to_device(self, array: NDArray[Any]) -> Any:
        """A copy there (the array itself on the CPU)."""

    def upload(self, arrays: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
        """Several arrays, read-only from now on, in one copy."""

    def to_host(self, array: Any) -> NDArray[Any]:
        """A copy here; an array that is here already as it is."""

    def download(self, arrays: Sequence[Any]) -> list[NDArray[Any]]:
        """Copies of several arrays here, with one wait for the device."""

    def address(self, target: Any) -> int:
        """Where an array lies, for records that kernels follow; on the CPU also where a kernel's code begins."""

    def zeros(self, shape: tuple[int, ...], dtype: type[np.generic]) -> Any:
        """Memory for results."""

    def compile(self, source: Source, later: bool = False) -> Program:
        """Begin to compile a kernel in the background, unless it is there already.

        `later`: another one serves until then, so that computations come first.
        """

    def launch(self, program: Program, items: int, arguments: Mapping[str, Any], scratch: int = 0) -> None:
        """Run a kernel, as soon as it is compiled, after everything that was launched before."""

    def launch_all(self, launches: Sequence[Launch]) -> None:
        """Run kernels that do not depend on each other, side by side."""

    def run(self, groups: Iterable[Sequence[Job]]) -> None:
        """Do all jobs, each group as it comes; the jobs of a group share their bras. Safe to call from many threads."""

    def synchronize(self) -> None:
        """Wait for everything that was launched."""

    def finish_compiling(self) -> None:
        """Wait until every specialised kernel asked for so far is there."""

    def memory(self) -> tuple[int, int]:
        """Bytes free and in total."""


@cache
def get_backend(name: str) -> Backend:
    """`cpu`, `cuda`, or `auto`: the GPU when there is one (`simt`: the GPU's kernels on the CPU, for tests)."""
    if name == "auto":
        from cuanto.backends.cuda.backend import why_no_gpu

        return get_backend("cpu" if why_no_gpu() else "cuda")
    if name == "cpu":
        from cuanto.backends.cpu.backend import CpuBackend

        return CpuBackend()
    if name == "cuda":
        from cuanto.backends.cuda.backend import CudaBackend

        return CudaBackend()
    if name == "simt":
        from cuanto.backends.simt.backend import SimtBackend

        return SimtBackend()
    raise InputError(f"unknown backend {name!r}: choose auto, cpu or cuda")


if hasattr(os, "register_at_fork"):
    # Threads do not exist in a forked child: it makes backends of its own.
    os.register_at_fork(after_in_child=get_backend.cache_clear)
