"""What every backend offers, and the choice of one by name."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
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

    @property
    def real_name(self) -> str:
        """The kernels' number type."""
        return "double" if np.dtype(self.arguments["out"].dtype) == np.float64 else "float"


class Backend(Protocol):
    """A device: array module, copies, and asynchronous execution of jobs."""

    name: str
    xp: Any

    def to_device(self, array: NDArray[Any]) -> Any:
        """A copy there (the array itself on the CPU)."""

    def upload(self, arrays: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
        """Several arrays, read-only from now on, in one copy."""

    def to_host(self, array: Any) -> NDArray[Any]:
        """A copy here."""

    def download(self, arrays: Sequence[Any]) -> list[NDArray[Any]]:
        """Copies of several arrays here, with one wait for the device."""

    def zeros(self, shape: tuple[int, ...], dtype: type[np.generic]) -> Any:
        """Memory for results."""

    def run(self, groups: Iterable[Sequence[Job]]) -> None:
        """Do all jobs, each group as it comes; the jobs of a group share their bras. Safe to call from many threads."""

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
    # The threads of a pool do not exist in a forked child: it makes backends of its own.
    os.register_at_fork(after_in_child=get_backend.cache_clear)
