"""Values of other programs for every class, from data/blocks.npz, and the same blocks on any backend.

A class is one block: a shell of a first basis, one of a second, and for (pq|P) one of an auxiliary basis. Of each block
the file has some elements, the largest, and a sum over all with weights cos(k), so that no wrong element goes
unnoticed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise, product
from typing import Any

import numpy as np

from bundle import CANCELLATION
from cuanto.arrays import Ints
from cuanto.backends import Backend
from cuanto.backends.base import Job
from cuanto.backends.kinds import kind_of
from cuanto.basis import Basis, Shell
from cuanto.integrals.api import basis_kets
from cuanto.integrals.batches import BraBatch, KetBatch, charge_batch, shell_batch
from cuanto.integrals.engine import Engine
from cuanto.integrals.pairs import RowMap, pair_batches
from cuanto.integrals.segments import segments
from oracle import Array, reference_block
from paths import DATA
from tolerances import INTEGRAL_REL, SMALLEST

FILE = DATA / "blocks.npz"
OPERATORS = ("overlap", "kinetic", "dipole", "nuclear", "2c", "3c")
SETTINGS = ("near", "shared centre", "tight first", "tight second")
ILL_CONDITIONED = "tight second"
"""Settings whose ill-conditioned pairs use the McMurchie-Davidson scheme; other settings have none."""
FORMS = {"pure": True, "cartesian": False}
L_MAX, AUX_MAX = 5, 6


@cache
def load() -> dict[str, Any]:
    with np.load(FILE) as stored:
        return dict(stored)


@dataclass(frozen=True, eq=False)
class Scene:
    """Bases of a setting: orbital shells 0 .. L_MAX twice, auxiliary shells 0 .. AUX_MAX twice; point charges."""

    first: Basis
    second: Basis
    aux_first: Basis
    aux: Basis
    charges: Array
    positions: Array

    def sides(self, operator: str) -> list[Basis]:
        if operator == "2c":
            return [self.aux_first, self.aux]
        return [self.first, self.second, self.aux] if operator == "3c" else [self.first, self.second]

    def extra(self, operator: str) -> dict[str, Array]:
        """Further arguments of the reference, besides shells and centres."""
        return {"charges": self.charges, "positions": self.positions} if operator == "nuclear" else {}


@cache
def scene(setting: str, form: str) -> Scene:
    return scene_of(load(), setting, form)


def scene_of(stored: dict[str, Any], setting: str, form: str) -> Scene:
    s = SETTINGS.index(setting)
    edges = np.cumsum([0, L_MAX + 1, L_MAX + 1, AUX_MAX + 1, AUX_MAX + 1])
    bases = []
    for begin, end in pairwise(edges.tolist()):
        shells = [
            Shell(l, l, stored["exponents"][s, n], stored["coefficients"][s, n][:, None], FORMS[form])
            for l, n in enumerate(range(begin, end))
        ]
        bases.append(Basis.from_shells(shells, stored["centres"][s, begin:end]))
    first, second, aux_first, aux = bases
    return Scene(first, second, aux_first, aux, stored["charges"], stored["positions"][s])


def classes(operator: str) -> list[tuple[int, ...]]:
    """All classes; a pair of shells has the higher angular momentum first."""
    if operator == "2c":
        return list(product(range(AUX_MAX + 1), repeat=2))
    pairs: list[tuple[int, ...]] = list(product(range(L_MAX + 1), repeat=2))
    if operator not in ("nuclear", "3c"):
        return pairs
    ordered = [pair for pair in pairs if pair[0] >= pair[1]]
    return [(*pair, c) for pair in ordered for c in range(AUX_MAX + 1)] if operator == "3c" else ordered


def weighted_sum(block: Array) -> float:
    return float(block.reshape(-1) @ np.cos(np.arange(block.size)))


# ---------------------------------------------------------------------------------------------- on a backend


class _Rectangle(RowMap):
    """Rows of pairs of a function of one basis and one of another."""

    def __call__(self, i: Ints, j: Ints) -> Ints:
        return i * self.nbf + j


Wanted = Collection[tuple[int, ...]]


def ours(
    device: Backend | None, operator: str, setting: str, form: str, algorithm: str = "auto", wanted: Wanted = ()
) -> Array:
    """[component, first, second(, auxiliary)]: the wanted classes (all by default), NaN elsewhere; None: reference."""
    here, wanted = scene(setting, form), wanted or classes(operator)
    if device is None:
        return _by_reference(here, operator, wanted)
    sizes = [b.nbf for b in here.sides(operator)]
    components = 3 if operator == "dipole" else 1
    shape = (components, *sizes, *here.charges.shape) if operator == "nuclear" else (components, *sizes)
    out = device.zeros(shape, np.float64)
    out += np.nan
    stride = shape[-1]
    engine = Engine(device, out, row_stride=stride, component_stride=sizes[0] * sizes[1])
    kernel = "coulomb" if operator in ("nuclear", "2c", "3c") else operator
    groups = []
    for bra, kets in _batches(here, operator, wanted):
        groups.append(engine.jobs(kernel, bra, engine.bras([bra])[0], kets, engine.kets(kets), algorithm))
    _compile_together(device, groups)
    device.run(groups)
    values = device.to_host(out)
    return -values.sum(axis=-1) if operator == "nuclear" else values


def _batches(here: Scene, operator: str, wanted: Wanted) -> Iterator[tuple[BraBatch, list[KetBatch]]]:
    """Bras with the kets that make wanted classes with them."""
    coulomb = operator in ("nuclear", "2c", "3c")
    first, second, *_ = here.sides(operator)
    if operator in ("nuclear", "3c"):
        rows = _Rectangle(second.nbf, packed=False)
        pairs = [(a, b) for a, b in product(segments(first), segments(second)) if a.l >= b.l]
        bras = [batch for a, b in pairs for batch in pair_batches(a, b, False, rows, 0.0)]
        kets = basis_kets(here.aux, coulomb) if operator == "3c" else [charge_batch(here.charges, here.positions)]
    else:
        bras, kets = [shell_batch(group, coulomb) for group in segments(first)], basis_kets(second, coulomb)
    for bra in bras:
        if partners := [ket for ket in kets if _class(operator, bra, ket) in wanted]:
            yield bra, partners


def _class(operator: str, bra: BraBatch, ket: KetBatch) -> tuple[int, ...]:
    return bra.shells.l if operator == "nuclear" else bra.shells.l + ket.shells.l


def _compile_together(device: Backend, groups: list[list[Job]]) -> None:
    """Compile all kernels on all cores before they are launched; on a GPU every class has its own."""
    if device.traits.schedule == "thread":
        for jobs in groups:
            for job in jobs:
                device.compile(kind_of(job).source(job.real_name))
        device.finish_compiling()


def _by_reference(here: Scene, operator: str, wanted: Wanted) -> Array:
    sides = here.sides(operator)
    values = np.full((3 if operator == "dipole" else 1, *(b.nbf for b in sides)), np.nan)
    for momenta in wanted:
        shells, centres, index = block_of(sides, momenta)
        values[index] = reference_block(operator, shells, centres, **here.extra(operator))
    return values


# ------------------------------------------------------------------------------------------ block by block


def block_of(sides: list[Basis], momenta: tuple[int, ...]) -> tuple[list[Shell], list[Array], tuple[Any, ...]]:
    """Shells and centres of a class (a shell's number is its momentum), and the index of its block in the array."""
    shells = [b.shells[l] for b, l in zip(sides, momenta, strict=True)]
    first = [int(b.offsets[l]) for b, l in zip(sides, momenta, strict=True)]
    index = (..., *(slice(i, i + shell.nbf) for i, shell in zip(first, shells, strict=True)))
    return shells, [b.R_ax[l] for b, l in zip(sides, momenta, strict=True)], index


def assert_stored(values: Array, operator: str, setting: str, form: str, wanted: Wanted = (), what: str = "") -> None:
    """1e-12 of the largest element of every block, and the rounding of cartesian functions that cancel."""
    stored, sides = load(), scene(setting, form).sides(operator)
    s, f = SETTINGS.index(setting), list(FORMS).index(form)
    for n, momenta in enumerate(classes(operator)):
        if wanted and momenta not in wanted:
            continue
        block = values[block_of(sides, momenta)[2]]
        largest, scale, total = stored[f"{operator} sizes"][s, f, n]
        exact = stored[f"{operator} values"][s, f, n]
        allowed = INTEGRAL_REL * largest + CANCELLATION * scale + SMALLEST
        errors = [
            *np.abs(block.reshape(-1)[stored[f"{operator} positions"][s, f, n]] - exact),
            np.abs(block).max() - largest,
            (weighted_sum(block) - total) / block.size,  # errors of all elements may add up
        ]
        error = np.abs(errors).max()
        assert error <= allowed, f"{what} {operator} {momenta} {setting} {form}: {error / allowed:.2g} times allowed"
