"""What every backend offers, and the choice of one by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cuanto.errors import InputError
from cuanto.kernels.spec import Shells


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


class Backend(Protocol):
    """A device: array module, copies, and asynchronous execution of jobs."""

    name: str
    xp: Any

    def to_device(self, array: NDArray[Any]) -> Any:
        """A copy there (the array itself on the CPU)."""

    def to_host(self, array: Any) -> NDArray[Any]:
        """A copy here."""

    def zeros(self, shape: tuple[int, ...], dtype: type[np.generic]) -> Any:
        """Memory for results."""

    def submit(self, jobs: Sequence[Job]) -> None:
        """Start jobs that share their bras."""

    def synchronize(self) -> None:
        """Wait for all jobs; errors show here."""

    def finish_compiling(self) -> None:
        """Wait until every specialised kernel asked for so far is there."""

    def memory(self) -> tuple[int, int]:
        """Bytes free and in total."""


@cache
def get_backend(name: str = "auto") -> Backend:
    """`cpu`, `cuda`, `simt`, or `auto`: the GPU when there is one."""
    if name == "auto":
        from cuanto.backends.cuda.backend import cuda_available

        name = "cuda" if cuda_available() else "cpu"
    if name == "cpu":
        from cuanto.backends.cpu.backend import CpuBackend

        return CpuBackend()
    if name == "cuda":
        from cuanto.backends.cuda.backend import CudaBackend

        return CudaBackend()
    if name == "simt":
        from cuanto.backends.simt.backend import SimtBackend

        return SimtBackend()
    raise InputError(f"unknown backend {name!r}: choose auto, cpu, cuda or simt")
