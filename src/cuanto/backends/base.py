"""The protocol of backends, and the choice of one by name."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cuanto.backends.communicator import Communicator
from cuanto.errors import InputError
from cuanto.kernels.spec import Shells
from cuanto.kernels.text import Source


class Factor(Protocol):
    """A lower triangular matrix, prepared for solves."""

    @property
    def L(self) -> Any:
        """The matrix."""

    def divide(self, B: Any) -> None:
        """Replace B by B L^-T."""


class Linalg(Protocol):
    """Dense linear algebra that differs between devices; everything else is in `xp`.

    Workspace, for memory plans: `factor_copies` matrices of the size of A (A included) in `inverse_factor`;
    `copied_rows` in `times_transpose_to`, `solved_rows` in `times_transpose`; `stack_copies` arrays of the size of X in
    `gram_of_stack`.
    """

    factor_copies: int
    stack_copies: int

    @property
    def copied_rows(self) -> int:
        """Rows of workspace of `times_transpose_to`."""

    def solved_rows(self, n: int, given: int = 0) -> int:
        """Rows of workspace that `times_transpose` allocates for a matrix L of n rows; `given`: rows of its `work`."""

    def threads(self, n: int) -> AbstractContextManager[None]:
        """Context in which BLAS uses as many host threads as are worthwhile for matrices of n rows."""

    def host_threads(self, n: int) -> AbstractContextManager[None]:
        """The same for factorisations in main memory, which are made there even if the device is a GPU."""

    def eigh(self, A: Any) -> tuple[Any, Any]:
        """Eigenvalues, ascending, and eigenvectors of a symmetric matrix, or of a stack of them."""

    def product(self, A: Any, B: Any) -> Any:
        """A B of two matrices, or of stacks of them."""

    def add_products(self, A: Any, B_k: Any, C_k: Any) -> None:
        """Add A B_k to every matrix of the stack C, whose rows may be parts of longer ones."""

    def scalar_product(self, A: Any, B: Any) -> Any:
        """Sum of the products of the elements of two arrays."""

    def gram(self, X: Any) -> Any:
        """X X^T"""

    def gram_of_stack(self, X: Any) -> Any:
        """sum_i X_i X_i^T"""

    def combine_rows(self, rows: Any, weights: Any, ranges: Any = None) -> Any:
        """sum_r weights_r rows_r, over `ranges` [k, 2] of rows if weights are zero elsewhere."""

    def rows_times(self, rows: Any, vector: Any, ranges: Any = None) -> Any:
        """rows_r . vector of every row, or only of those in `ranges`."""

    def inverse_factor(self, A: Any) -> tuple[Any, float]:
        """L^-1 of A = L L^T (A may be overwritten) and the smallest pivot, -1 if A is not positive definite."""

    def lower_gram(self, A: Any) -> Any:
        """A A^T; only its lower triangle is defined."""

    def divisor(self, L: Any) -> Factor:
        """Prepare solves with a lower triangle, or a stack of them."""

    def factor(self, G: Any) -> Factor:
        """Cholesky factor of a matrix, of which only the lower triangle is read."""

    def rotation_factors(self, X: Any) -> Iterator[Factor]:
        """Factors of 1 + X X^T and 1 + X^T X; a GPU computes them concurrently with other work until they are used."""

    def times_transpose(self, rows: Any, L: Any, triangle: bool, work: Any = None) -> None:
        """Replace rows by rows L^T; L is a lower `triangle` or a full matrix. `work`: memory for some of the rows."""

    def times_transpose_to(self, rows: Any, one: Any, other: Any, L: Any, triangle: bool) -> None:
        """Set rows[one] and rows[other] to rows[one] L^T; `one` and `other` are lists of row numbers."""


SUM_PARTS = 16
"""Number of parts into which sums are divided on a CPU, whatever the number of threads."""


@dataclass(frozen=True)
class Traits:
    """Properties of a device, as data.

    `language` of kernel texts; `schedule` of integral kernels; `unified_memory`: device arrays are host arrays;
    `workers`: threads or multiprocessors; `worth_compiling`: operations of a job above which compiling a straight-line
    kernel is worthwhile. On a GPU: `group_threads` of a block of the general kernel, which may use `shared_limit` bytes
    of fast memory; `quartet_threads` of a block for a quartet of shells (0: by class). `waiting_factor`:
    on a CPU threads that compute for each that compiles; 0 if kernels are compiled only when they are launched.
    """

    language: str
    schedule: str
    unified_memory: bool
    workers: int
    worth_compiling: float
    group_threads: int = 0
    shared_limit: int = 0
    quartet_threads: int = 0
    waiting_factor: float = 1.0

    @property
    def parts(self) -> int:
        """Number of parts into which sums are divided; fixed on a CPU, so that results do not depend on the number of
        threads."""
        return SUM_PARTS if self.unified_memory else self.workers

    @property
    def parallel_calculations(self) -> bool:
        """Whether independent calculations should run at the same time, one per core of a CPU; on a GPU they would
        compete for all of it."""
        return self.unified_memory


class Program(Protocol):
    """A kernel, compiled or being compiled."""

    source: Source

    @property
    def ready(self) -> bool:
        """Whether it has been compiled."""

    @property
    def failed(self) -> bool:
        """Whether the compiler reported an error."""

    def wait(self) -> None:
        """Wait until it is compiled; compiler errors are raised here."""


@dataclass(frozen=True, eq=False)
class Launch:
    """A kernel with a number of items and arguments by name; arguments that the kernel does not have are ignored.

    `scratch`: bytes of fast memory per worker (a thread of the CPU, a block of threads of a GPU).
    `grain`: items per chunk on the CPU (0: as many as balance the work).
    `sums`: name of the argument, an array of doubles, to which items add; a GPU adds exactly (`exact_sums`), the CPU
    adds chunks in a fixed order, from `sums_size` numbers per chunk if the kernel has its own merge function
    (`Source.merge`).
    `otherwise`: makes a launch of the same work by another kernel, for one that may turn out not to compile. While a
    kernel with such a replacement is being compiled, other launches are run first.
    """

    program: Program
    items: int
    arguments: Mapping[str, Any]
    scratch: int = 0
    grain: int = 0
    sums: str = ""
    sums_size: int = 0
    otherwise: Callable[[], Launch] | None = None


Class = tuple[str, Shells, Shells, str]
"""Operator, bra, ket and algorithm of integrals."""


def class_to_json(given: Class) -> list[Any]:
    """A class of integrals as JSON data, for other processes."""
    operator, bra, ket, algorithm = given
    return [operator, *([side.l, side.pure, side.hermite] for side in (bra, ket)), algorithm]


def class_from_json(given: list[Any]) -> Class:
    """The class of integrals that `class_to_json` described."""
    operator, *sides, algorithm = given
    bra, ket = (Shells(tuple(l), tuple(pure), hermite) for l, pure, hermite in sides)
    return operator, bra, ket, algorithm


@dataclass(frozen=True)
class Job:
    """A batch of bras against a batch of kets of one class; `arguments` by the names of `kernels.abi.BATCH`.

    `calls`: how often the calculation is expected to do as much work of this class.
    """

    operator: str
    bra: Shells
    ket: Shells
    algorithm: str
    columns: int
    bras: int
    kets: int
    primitives: float
    arguments: dict[str, Any]
    calls: float = 1.0

    @property
    def real_name(self) -> str:
        """Number type of the kernel."""
        return real_name(self.arguments["out"].dtype)


def real_name(dtype: Any) -> str:
    """C type of the numbers of an array: `double` or `float`."""
    return "double" if np.dtype(dtype) == np.float64 else "float"


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
        """A copy on the device (on the CPU the array itself)."""

    def upload(self, arrays: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
        """Copies of several arrays on the device in one transfer; they are read-only."""

    def to_host(self, array: Any) -> NDArray[Any]:
        """A copy in main memory; an array that is there already is returned as it is."""

    def download(self, arrays: Sequence[Any]) -> list[NDArray[Any]]:
        """Copies of several arrays in main memory, with one wait for the device."""

    def address(self, target: Any) -> int:
        """Address of an array, for pointers in records; on the CPU also that of a kernel's code."""

    def zeros(self, shape: tuple[int, ...], dtype: type[np.generic]) -> Any:
        """Zeroed memory on the device."""

    def compile(self, source: Source, later: bool = False) -> Program:
        """Start compiling a kernel in the background, unless it is in the cache. `later`: at low priority, because
        another kernel can be used until then.
        """

    def expect(self, classes: Sequence[Class]) -> None:
        """Announce classes of integrals that will be needed soon: their tables may be made in the background."""

    def expect_kernel(self, given: Class, columns: int, real: str, consumer: str) -> None:
        """Announce a straight-line kernel, with these contraction columns, number type and consumer, that later
        calculations would use: it may be made in the background."""

    def launch(self, program: Program, items: int, arguments: Mapping[str, Any], scratch: int = 0) -> None:
        """Run a kernel after all earlier launches; waits for its compilation."""

    def launch_all(self, launches: Sequence[Launch]) -> None:
        """Run kernels that do not depend on each other concurrently."""

    def run(self, groups: Iterable[Sequence[Job]]) -> None:
        """Run all jobs, group by group; the jobs of a group share their bras. Safe to call from many threads."""

    def synchronize(self) -> None:
        """Wait for everything that was launched."""

    def finish_compiling(self) -> None:
        """Wait until every kernel requested so far is compiled."""

    def memory(self) -> tuple[int, int]:
        """Free and total bytes."""

    def release_memory(self) -> None:
        """Give back memory that is kept for later allocations but not in use."""

    def memory_errors(self) -> AbstractContextManager[None]:
        """Context in which every error of the device that means too little memory is a `MemoryError`."""


def begin_compiling(backend: str | Backend) -> None:
    """Start compiling the kernels that every first calculation on a GPU needs, if this name can mean one.

    Those of CuPy can only be compiled once CuPy is imported: it comes before modules that can be imported meanwhile.
    """
    if isinstance(backend, str) and _begin(backend):
        with suppress(Exception):  # which is raised again when the calculation needs its backend
            get_backend(backend)


def _begin(name: str) -> bool:
    """Start compiling our kernel for all classes of integrals; whether the name can mean a GPU, and CuPy is there."""
    if name.lower() not in ("auto", "cuda"):
        return False
    from cuanto.backends.cuda.start import begin, cupy_installed

    if cupy_installed():
        begin()
    return cupy_installed()


@cache
def get_backend(name: str) -> Backend:
    """`cpu`, `cuda`, or `auto`: the GPU when there is one (`simt`: the GPU's kernels on the CPU, for tests)."""
    if name != name.lower():
        return get_backend(name.lower())
    _begin(name)
    if name == "auto":
        from cuanto.backends.cuda.backend import why_no_gpu

        return get_backend("cpu" if why_no_gpu() else "cuda")
    if name not in ("cpu", "cuda", "simt"):
        raise InputError(f"unknown backend {name!r}: choose auto, cpu or cuda")
    module = import_module(f"cuanto.backends.{name}.backend")
    backend: Backend = getattr(module, f"{name.capitalize()}Backend")()
    return backend


if hasattr(os, "register_at_fork"):
    # Threads do not survive a fork: the child creates backends of its own.
    os.register_at_fork(after_in_child=get_backend.cache_clear)
