"""Evaluation of integrals of bra batches with ket batches on a backend."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, cast
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from cuanto.arrays import Array
from cuanto.backends.base import Backend, Job, get_backend, real_name
from cuanto.basis import Basis
from cuanto.errors import InputError
from cuanto.integrals.batches import BraBatch, KetBatch
from cuanto.integrals.pairs import FOUR_CENTRE_LOSS
from cuanto.kernels.abi import bra_fields, ket_fields
from cuanto.kernels.build import choose_algorithm
from cuanto.kernels.recurrences.boys import boys_table, table_float
from cuanto.kernels.spec import BLOCK_SCHEDULES, Shells, coulomb_operator

ALGORITHMS = ("auto", "hgp", "md")


def resolve(backend: object) -> Backend:
    """The backend of a name, or the backend itself."""
    if isinstance(backend, str):
        return get_backend(backend)
    if not hasattr(backend, "run"):
        raise InputError(f"backend must be a name (auto, cpu, cuda) or a backend, {type(backend).__name__} was given")
    return cast(Backend, backend)


_tables: WeakKeyDictionary[Backend, dict[Hashable, Any]] = WeakKeyDictionary()


def copy_once(backend: Backend, name: Hashable, make: Callable[[], Any]) -> Any:
    """A table that kernels read, one copy for each device."""
    known = _tables.setdefault(backend, {})
    if name not in known:
        known[name] = backend.to_device(make())
    return known[name]


def boys_on(backend: Backend, real: str) -> Any:
    """The table of the Boys function for a number type."""
    return copy_once(backend, real, {"double": boys_table, "float": table_float}[real])


def check_basis(basis: Basis, name: str = "basis") -> Basis:
    """Raise an error for anything but a basis."""
    if not isinstance(basis, Basis):
        raise InputError(f"{name} must be a cuanto.Basis, {type(basis).__name__} was given")
    return basis


def check_algorithm(algorithm: str) -> None:
    """Refuse an unknown algorithm."""
    if algorithm not in ALGORITHMS:
        raise InputError(f"unknown algorithm {algorithm!r}: choose {', '.join(ALGORITHMS)}")


def upload_groups(backend: Backend, groups: Sequence[Mapping[str, NDArray[Any]]]) -> list[dict[str, Any]]:
    """Copy groups of arrays to the device at once."""
    flat = {f"{k} {name}": array for k, group in enumerate(groups) for name, array in group.items()}
    uploaded = backend.upload(flat)
    return [{name: uploaded[f"{k} {name}"] for name in group} for k, group in enumerate(groups)]


def bra_arrays(batch: BraBatch, real: type[np.generic] = np.float64) -> dict[str, NDArray[Any]]:
    """Arrays of a bra batch by the names of kernel arguments, without the rows of the result."""
    return {
        "bra_first": batch.first,
        "bra_record": batch.record.astype(real, copy=False),
        "bra_coefficient": batch.coefficient.astype(real, copy=False),
        "bra_shell": batch.shell.astype(real, copy=False),
    }


@lru_cache(maxsize=4096)
def _algorithm(language: str, operator: str, bra: Shells, ket: Shells, primitives: float) -> str:
    """The faster algorithm, cached."""
    return choose_algorithm(language, operator, bra, ket, primitives)


@dataclass(frozen=True)
class Triangle:
    """Shells, or pairs of shells, as bras and as kets on a device; `halves`: the kets with half their coefficients.

    Two batches are combined once, and a batch is combined with its own halved kets: the result plus its transpose
    contains every integral.
    """

    bras: list[BraBatch]
    kets: list[KetBatch]
    arguments: list[dict[str, Any]]
    ket_arguments: list[dict[str, Any]]
    halves: list[dict[str, Any]]

    @classmethod
    def of(cls, bras: list[BraBatch], kets: list[KetBatch], backend: Backend) -> Triangle:
        """Copy all batches to the device at once, in double precision."""
        halved = [replace(ket, record=_half_coefficient(ket.record)) for ket in kets]
        arrays = [{**bra_arrays(bra), "rows": bra.rows} for bra in bras] + [
            {**ket_arrays(ket), "cols": ket.cols} for ket in kets + halved
        ]
        uploaded = upload_groups(backend, arrays)
        n = len(bras)
        mine = [{"columns": bra.columns, **own} for bra, own in zip(bras, uploaded, strict=False)]
        others = [{"kets": ket.count, **own} for ket, own in zip(kets + halved, uploaded[n:], strict=True)]
        return cls(bras, kets, mine, others[:n], others[n:])


def _half_coefficient(record: Array) -> Array:
    """Records [primitive, field, lane] of kets with half of each coefficient, which is field 4."""
    half = record.copy()
    half[:, 4] *= 0.5
    return half


def ket_arrays(batch: KetBatch, real: type[np.generic] = np.float64) -> dict[str, NDArray[Any]]:
    """Arrays of a ket batch by the names of kernel arguments, without the columns of the result."""
    return {
        "ket_first": batch.first,
        "ket_record": batch.record.astype(real, copy=False),
        "ket_shell": batch.shell.astype(real, copy=False),
    }


class Engine:
    """Computes integrals into one result array."""

    def __init__(self, backend: Backend, out: Any, row_stride: int, component_stride: int = 0) -> None:
        self.backend = backend
        self.out = out
        self.real = np.dtype(out.dtype).type
        self.fixed = {
            "out": out,
            "row_stride": row_stride,
            "component_stride": component_stride,
            "boys_table": boys_on(backend, real_name(out.dtype)),
        }

    def bras(self, batches: Sequence[BraBatch]) -> list[dict[str, Any]]:
        """Kernel arguments of bra batches; arrays that are on the device are not copied again."""
        arrays = [{"rows": b.rows} if b.device else {**bra_arrays(b, self.real), "rows": b.rows} for b in batches]
        uploaded = upload_groups(self.backend, arrays)
        return [
            {"columns": batch.columns, **(batch.device or {}), **own}
            for batch, own in zip(batches, uploaded, strict=True)
        ]

    def kets(self, batches: Sequence[KetBatch]) -> list[dict[str, Any]]:
        """Kernel arguments of ket batches."""
        uploaded = upload_groups(self.backend, [{**ket_arrays(b, self.real), "cols": b.cols} for b in batches])
        return [{"kets": batch.count, **own} for batch, own in zip(batches, uploaded, strict=True)]

    def run(
        self,
        operator: str,
        bras: Iterable[BraBatch],
        kets: list[KetBatch],
        algorithm: str = "auto",
        calls: float = 1.0,
    ) -> None:
        """Compute all bras with all kets; each batch of an iterator is launched before the next one is made.

        `calls`: how often the calculation is expected to do as much work.
        """
        check_algorithm(algorithm)
        arguments = self.kets(kets)
        portions: Iterable[Sequence[BraBatch]] = [bras] if isinstance(bras, list) else ([bra] for bra in bras)
        self.backend.run(
            self.jobs(operator, bra, mine, kets, arguments, algorithm, calls)
            for portion in portions
            for bra, mine in zip(portion, self.bras(portion), strict=True)
        )

    def triangle(self, operator: str, shells: Triangle, algorithm: str = "auto") -> Iterator[list[Job]]:
        """Jobs of all products; the transpose has to be added to their result."""
        for k, (bra, arguments) in enumerate(zip(shells.bras, shells.arguments, strict=True)):
            kets = [*shells.ket_arguments[:k], shells.halves[k]]
            yield self.jobs(operator, bra, arguments, shells.kets[: k + 1], kets, algorithm)

    def jobs(
        self,
        operator: str,
        bra: BraBatch,
        bra_arguments: dict[str, Any],
        kets: list[KetBatch],
        ket_arguments: list[dict[str, Any]],
        algorithm: str = "auto",
        calls: float = 1.0,
    ) -> list[Job]:
        """One batch of bras against all kets, both with their arguments."""
        return [
            self.job(operator, bra, ket, algorithm, {**bra_arguments, **arguments}, calls)
            for ket, arguments in zip(kets, ket_arguments, strict=True)
        ]

    def job(
        self,
        operator: str,
        bra: BraBatch,
        ket: KetBatch,
        algorithm: str,
        arguments: dict[str, Any],
        calls: float = 1.0,
    ) -> Job:
        """One batch of bras against one batch of kets."""
        primitives = len(bra.record) / bra.count * ket.primitives
        four_centres = len(bra.shells.l) == len(ket.shells.l) == 2
        lossy = four_centres and bra.loss * ket.loss > FOUR_CENTRE_LOSS
        if operator == "coulomb" and (bra.ill_conditioned or ket.ill_conditioned or lossy):
            algorithm = "md"  # a horizontal recurrence would lose digits
        elif algorithm == "auto":
            algorithm = _algorithm(self.backend.traits.language, operator, bra.shells, ket.shells, primitives)
        if bra.attenuated:
            if self.backend.traits.schedule in BLOCK_SCHEDULES:
                algorithm = "md"  # these schedules have no other algorithm
            operator = coulomb_operator(True, algorithm)
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
            calls,
        )
