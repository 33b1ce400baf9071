"""Bra batches against ket batches on a backend."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from cuanto.backends.base import Backend, Job, get_backend
from cuanto.errors import InputError
from cuanto.integrals.batches import BraBatch, KetBatch
from cuanto.kernels.abi import BRA_FIELDS
from cuanto.kernels.recurrences.boys import boys_table, table_float
from cuanto.kernels.tuning import choose_algorithm

ALGORITHMS = ("auto", "hgp", "md")


def resolve(backend: str | Backend) -> Backend:
    """A backend by name, or as it is."""
    if isinstance(backend, str):
        return get_backend(backend)
    if not hasattr(backend, "run"):
        raise InputError(f"backend must be a name (auto, cpu, cuda) or a backend, {type(backend).__name__} was given")
    return backend


class Engine:
    """Fills one result array; batches are copied to the device once."""

    def __init__(self, backend: Backend, out: Any, row_stride: int, component_stride: int = 0) -> None:
        self.backend = backend
        self.out = out
        self.real = np.dtype(out.dtype).type
        table = boys_table() if self.real == np.float64 else table_float()
        self.fixed = {
            "out": out,
            "row_stride": row_stride,
            "component_stride": component_stride,
            "boys_table": backend.to_device(table),
        }

    def bra(self, batch: BraBatch) -> dict[str, Any]:
        """Kernel arguments of a bra batch."""
        put = self.backend.to_device
        return {
            "bra_first": put(batch.first),
            "bra_record": put(batch.record.astype(self.real, copy=False)),
            "bra_coefficient": put(batch.coefficient.astype(self.real, copy=False)),
            "columns": batch.columns,
            "shell_record": put(batch.shell_record.astype(self.real, copy=False)),
            "rows": put(batch.rows),
        }

    def ket(self, batch: KetBatch) -> dict[str, Any]:
        """Kernel arguments of a ket batch."""
        put = self.backend.to_device
        return {
            "kets": batch.count,
            "ket_stride": batch.record.shape[2],
            "ket_primitives": batch.primitives,
            "ket_record": put(batch.record.astype(self.real, copy=False)),
            "cols": put(batch.cols),
        }

    def run(self, operator: str, bras: Iterable[BraBatch], kets: list[KetBatch], algorithm: str = "auto") -> None:
        """All bras against all kets; a batch of bras is at work while the next one is made."""
        if algorithm not in ALGORITHMS:
            raise InputError(f"unknown algorithm {algorithm!r}: choose {', '.join(ALGORITHMS)}")
        ket_arguments = [self.ket(ket) for ket in kets]
        self.backend.run(self.jobs(operator, bra, kets, ket_arguments, algorithm) for bra in bras)

    def jobs(
        self, operator: str, bra: BraBatch, kets: list[KetBatch], ket_arguments: list[dict[str, Any]], algorithm: str
    ) -> list[Job]:
        """One batch of bras against all kets."""
        bra_arguments = self.bra(bra)
        return [
            self.job(operator, bra, ket, algorithm, {**bra_arguments, **arguments})
            for ket, arguments in zip(kets, ket_arguments, strict=True)
        ]

    def job(self, operator: str, bra: BraBatch, ket: KetBatch, algorithm: str, arguments: dict[str, Any]) -> Job:
        """One batch of bras against one batch of kets."""
        primitives = len(bra.record) / bra.count * ket.primitives
        if algorithm == "auto" and bra.delicate:
            algorithm = "md"
        elif algorithm == "auto":
            algorithm = choose_algorithm(self.backend.name, operator, bra.shells, ket.shells, primitives)
        return Job(
            operator,
            bra.shells,
            ket.shells,
            algorithm,
            bra.columns,
            bra.count,
            ket.count,
            primitives,
            {"bra_fields": BRA_FIELDS[operator], **self.fixed, **arguments},
        )
