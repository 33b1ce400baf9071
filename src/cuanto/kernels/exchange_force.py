"""The GPU's kernels for the gradient of exact exchange, by classes of quartets of shells."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from cuanto.kernels import abi
from cuanto.kernels.build import Skeleton, integral_source
from cuanto.kernels.emit import function, straight_line
from cuanto.kernels.exchange_force_shared import (
    ARGUMENTS,
    Momenta,
    kernel_name,
    products,
    shared_bytes,
    shared_source,
)
from cuanto.kernels.passes import live_values
from cuanto.kernels.recurrences.components import powers
from cuanto.kernels.recurrences.hermite_forces import forces
from cuanto.kernels.text import Source

THREADS = 64
PART_PRODUCTS = 54
"""Products of four functions in one kernel: about 2,000 operations, of which the compiler keeps most in registers."""
LIVE_LIMIT = 250
"""Maximum number of live values of a kernel: beyond this, the compiler was seen to keep all of them in memory."""
MAX_PARTS = 9
"""Maximum number of kernels of a class; beyond this, threads share a quartet."""
MAX_ORDER = 7
"""Order of R up to which a thread evaluates a quartet."""
REGISTER_PRODUCTS = 32
"""Products of four functions whose densities may stay in registers."""


@dataclass(frozen=True)
class ForceKernel:
    """A kernel, and bytes of shared or of global memory of a block."""

    source: Source
    shared: int = 0
    scratch: int = 0


def bra_first(one: Momenta, other: Momenta) -> bool:
    """Whether the first of two pairs is the bra: the one with more products of functions."""
    return products(one) >= products(other)


@cache
def force_kernels(bra: Momenta, ket: Momenta, real: str, shared_limit: int) -> tuple[ForceKernel, ...]:
    """Kernels that together add all forces of a list of quartets of a class.

    `shared_limit`: maximum bytes of shared memory of a block.
    """
    if parts := ket_parts(bra, ket):
        return tuple(ForceKernel(straight_source(bra, ket, part, real)) for part in parts)
    size = shared_bytes(bra, ket, real)
    if size > shared_limit:
        return (ForceKernel(shared_source(bra, ket, real, in_scratch=True), scratch=size),)
    return (ForceKernel(shared_source(bra, ket, real), shared=size),)


def ket_parts(bra: Momenta, ket: Momenta) -> list[range]:
    """The products of the ket's functions for each straight-line kernel; none if there would be too many kernels."""
    size = products(ket)
    if sum(bra) + sum(ket) + 1 > MAX_ORDER:
        return []
    for count in range(-(-size // max(1, PART_PRODUCTS // products(bra))), min(size, MAX_PARTS) + 1):
        parts = [range(n * size // count, (n + 1) * size // count) for n in range(count)]
        if all(live_values(forces(bra, ket, part), by_number=True) <= LIVE_LIMIT for part in parts):
            return parts
    return []


def straight_source(bra: Momenta, ket: Momenta, part: range, real: str) -> Source:
    """Forces of a list of quartets, one thread for each, from a part of the products of the ket's functions."""
    lines = straight_line(
        forces(bra, ket, part),
        lambda record, index: f"{record}[{index}]",
        lambda n, name: f"out[{n}] = {name};",
        by_number=True,
    )
    records = ", ".join(f"const REAL* {name}" for name in ("bra", "ket", "X", "base", "gamma"))
    macros: dict[str, object] = {
        "NA": len(powers(bra[0])),
        "NB": len(powers(bra[1])),
        "ND": len(powers(ket[1])),
        "FIRST": part.start,
        "PRODUCTS": len(part),
        "ORDER": sum(bra) + sum(ket) + 1,
        "BRA_FIELDS": abi.COULOMB_BRA,
        "KET_FIELDS": abi.PAIR_KET,
        "GAMMA_LOOP": "UNROLL" if products(bra) * len(part) <= REGISTER_PRODUCTS else "NO_UNROLL",
    }
    name = kernel_name(bra, ket) + (f"_{part.start}" if len(part) < products(ket) else "")
    skeleton = Skeleton(("exchange_force_thread.cuh",), ARGUMENTS, THREADS)
    text = function(f"FN void forces({records}, REAL* out)", lines)
    return integral_source(name, "cuda", real, skeleton, macros, text)
