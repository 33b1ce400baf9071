"""Bra batches against ket batches on a backend."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from cuanto.backends.base import Backend, Job, get_backend
from cuanto.errors import InputError
from cuanto.integrals.batches import BraBatch, KetBatch
from cuanto.integrals.pairs import FOUR_CENTRE_LOSS
from cuanto.kernels.abi import bra_fields, ket_fields
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


def _check_algorithm(algorithm: str) -> None:
    if algorithm not in ALGORITHMS:
        raise InputError(f"unknown algorithm {algorithm!r}: choose {', '.join(ALGORITHMS)}")


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
            "bra_shell": put(batch.shell.astype(self.real, copy=False)),
            "rows": put(batch.rows),
        }

    def ket(self, batch: KetBatch) -> dict[str, Any]:
        """Kernel arguments of a ket batch."""
        put = self.backend.to_device
        return {
            "kets": batch.count,
            "ket_first": put(batch.first),
            "ket_record": put(batch.record.astype(self.real, copy=False)),
            "ket_shell": put(batch.shell.astype(self.real, copy=False)),
            "cols": put(batch.cols),
        }

    def run(self, operator: str, bras: Iterable[BraBatch], kets: list[KetBatch], algorithm: str = "auto") -> None:
        """All bras against all kets; a batch of bras is at work while the next one is made."""
        _check_algorithm(algorithm)
        ket_arguments = [self.ket(ket) for ket in kets]
        self.backend.run(self.jobs(operator, bra, kets, ket_arguments, algorithm) for bra in bras)

    def run_triangle(self, pairs: list[BraBatch], kets: list[KetBatch], algorithm: str = "auto") -> None:
        """Pairs against themselves, each product of two batches once: integrals with their transpose are the result.

        A batch against itself has all products, so it gets half of each.
        """
        _check_algorithm(algorithm)
        arguments = [self.ket(ket) for ket in kets]

        def groups() -> Iterator[list[Job]]:
            for k, pair in enumerate(pairs):
                if k:
                    yield self.jobs("coulomb", pair, kets[:k], arguments[:k], algorithm)
                half = replace(pair, coefficient=0.5 * pair.coefficient)
                yield self.jobs("coulomb", half, kets[k : k + 1], arguments[k : k + 1], algorithm)

        self.backend.run(groups())

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
        four_centres = len(bra.shells.l) == len(ket.shells.l) == 2
        delicate = bra.delicate or ket.delicate or (four_centres and bra.loss * ket.loss > FOUR_CENTRE_LOSS)
        if operator == "coulomb" and delicate:
            algorithm = "md"  # whatever was asked for: a horizontal recurrence would lose digits
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
            {"bra_fields": bra_fields(operator), "ket_fields": ket_fields(ket.shells), **self.fixed, **arguments},
        )
