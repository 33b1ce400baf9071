"""Integrals over a whole basis, as arrays of the backend (NumPy or CuPy)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import prod
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike

from cuanto import tuning
from cuanto.arrays import Array, Ints, add_transpose
from cuanto.backends.base import Backend
from cuanto.basis import Basis
from cuanto.errors import InputError
from cuanto.integrals.attenuation import attenuate
from cuanto.integrals.batches import BraBatch, KetBatch, charge_batch, ket_batch, shell_batch
from cuanto.integrals.engine import Engine, Triangle, check_algorithm, check_basis, resolve
from cuanto.integrals.pairs import RowMap, RowOf, class_pairs, pair_batches, pair_kets
from cuanto.integrals.segments import segments
from cuanto.integrals.uploaded_pairs import PAIR_THRESHOLD
from cuanto.memory import MIB, Budget
from cuanto.system import Molecule

POTENTIALS_AT_ONCE = tuning.size("cpu", "integrals.potentials_at_once")
TRANSPOSE_TILE = 1024
"""Rows and columns that are transposed at once."""


def _numbers(given: ArrayLike, shape: tuple[int, ...], what: str) -> Array:
    """Check that numbers are finite and have this shape."""
    try:
        array = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"{what} must be numbers of shape {shape}") from None
    if array.shape != shape or not np.isfinite(array).all():
        raise InputError(f"{what} must be finite numbers of shape {shape}, shape {array.shape} was given")
    return array


def _check_threshold(threshold: float) -> None:
    if not threshold >= 0.0:
        raise InputError(f"threshold must be a number, zero or positive, {threshold} was given")


def _allocate(budget: Budget, name: str, shape: tuple[int, ...], hint: str = "use a smaller basis") -> Any:
    """Zeros for a result, reserved from the budget."""
    budget.reserve(name, 8 * prod(shape), hint)
    return budget.backend.zeros(shape, np.float64)


def _one_electron(basis: Basis, backend: str | Backend, **components: int) -> list[Any]:
    """Matrices of several operators, given with their numbers of components, in one launch."""
    device, n = resolve(backend), check_basis(basis).nbf
    budget = Budget(device)
    outs = [_allocate(budget, operator, (count, n, n)) for operator, count in components.items()]
    engines = [Engine(device, out, row_stride=n, component_stride=n * n) for out in outs]
    shells = _single_shells(basis, device)
    device.run(
        jobs for operator, engine in zip(components, engines, strict=True) for jobs in engine.triangle(operator, shells)
    )
    return [out + out.transpose(0, 2, 1) for out in outs]


_shells: WeakKeyDictionary[Backend, WeakKeyDictionary[Basis, Triangle]] = WeakKeyDictionary()


def _single_shells(basis: Basis, device: Backend) -> Triangle:
    """Shells for one-electron integrals on the device, cached for each basis."""
    known = _shells.setdefault(device, WeakKeyDictionary())
    if basis not in known:
        bras = [shell_batch(group, coulomb=False) for group in segments(basis)]
        known[basis] = Triangle.of(bras, basis_kets(basis, coulomb=False), device)
    return known[basis]


def one_electron(basis: Basis, operator: str, components: int = 1, *, backend: str | Backend = "auto") -> Any:
    """<p|operator|q>, component first, of an operator named in `kernels.recurrences.one_electron`."""
    return _one_electron(basis, backend, **{operator: components})[0]


def overlap(basis: Basis, *, backend: str | Backend = "auto") -> Any:
    """S_pq = <p|q>"""
    return _one_electron(basis, backend, overlap=1)[0][0]


def kinetic(basis: Basis, *, backend: str | Backend = "auto") -> Any:
    """T_pq = <p|-1/2 nabla^2|q>"""
    return _one_electron(basis, backend, kinetic=1)[0][0]


def overlap_and_kinetic(basis: Basis, *, backend: str | Backend = "auto") -> tuple[Any, Any]:
    """S_pq and T_pq in one launch."""
    S_xpq, T_xpq = _one_electron(basis, backend, overlap=1, kinetic=1)
    return S_xpq[0], T_xpq[0]


def dipole(basis: Basis, *, origin: ArrayLike = (0.0, 0.0, 0.0), backend: str | Backend = "auto") -> Any:
    """r_xpq = <p|r - origin|q>, axis first; `origin` in Bohr."""
    origin_x = _numbers(origin, (3,), "origin")
    (r_xpq,) = _one_electron(basis, backend, dipole=3)
    if origin_x.any():
        S_pq = overlap(basis, backend=backend)
        for x in range(3):
            r_xpq[x] -= float(origin_x[x]) * S_pq
    return r_xpq


def quadrupole(basis: Basis, *, backend: str | Backend = "auto") -> Any:
    """<p|r_x r_y|q> about the coordinate origin; first index: xx, xy, xz, yy, yz, zz."""
    return one_electron(basis, "quadrupole", 6, backend=backend)


def nuclear(
    basis: Basis,
    molecule: Molecule | None = None,
    *,
    charges: ArrayLike | None = None,
    positions: ArrayLike | None = None,
    exponents: ArrayLike | None = None,
    algorithm: str = "auto",
    backend: str | Backend = "auto",
    pairs: Sequence[BraBatch] | None = None,
) -> Any:
    """V_pq = -sum_a Z_a <p|1/|r - R_a||q> of a molecule's nuclei, or of any charges at `positions` (Bohr).

    `exponents` (Bohr^-2): eta of charges spread as exp(-eta r^2), in place of points. `algorithm`: `auto`, `md`
    or `hgp`. `pairs`: result of `uploaded_pairs.upload_pairs` for the basis, if available.
    """
    Z_a, R_ax = _point_charges(molecule, charges, positions)
    eta_a = None if exponents is None else _numbers(exponents, Z_a.shape, "exponents of charges")
    if eta_a is not None and not (eta_a > 0.0).all():
        raise InputError("exponents of charges must be positive")
    device, n = resolve(backend), check_basis(basis).nbf
    V = _allocate(Budget(device), "nuclear attraction", (n * n,))
    if len(Z_a):
        kets = charge_batch(Z_a, R_ax, eta_a)
        all_pairs = pairs or basis_pairs(basis, RowMap(n, packed=False), PAIR_THRESHOLD)
        for bras in _portions(all_pairs, kets.count):
            pq = np.concatenate([bra.rows.reshape(-1) for bra in bras])
            again, before = _repeated(bras, n)
            indices = device.upload({"pq": pq, "qp": pq % n * n + pq // n, "again": again, "before": before})
            attraction = -_potentials(bras, kets, device, algorithm)
            attraction[indices["again"]] = attraction[indices["before"]]
            V[indices["pq"]] = attraction
            V[indices["qp"]] = attraction
    return V.reshape(n, n)


def _repeated(bras: list[BraBatch], n: int) -> tuple[Ints, Ints]:
    """Positions in the rows of all bras where a row occurs again, and where it occurred before.

    A pair of a shell with itself has rows pq and qp, whose integrals may differ in the last digit.
    """
    start, places, targets = 0, [], []
    for bra in bras:
        rows = bra.rows.reshape(bra.count, -1)
        own = np.flatnonzero(rows[:, 0] // n == rows[:, 0] % n)
        places.append((start + own[:, None] * rows.shape[1] + np.arange(rows.shape[1])).reshape(-1))
        targets.append(rows[own].reshape(-1))
        start += rows.size
    place, target = np.concatenate(places), np.concatenate(targets)
    _, first, which = np.unique(target, return_index=True, return_inverse=True)
    before = place[first[which]]
    again = place != before
    return place[again], before[again]


def _portions(bras: Iterable[BraBatch], kets: int) -> Iterator[list[BraBatch]]:
    """Batches whose potentials are kept at the same time."""
    portion: list[BraBatch] = []
    for bra in bras:
        portion.append(bra)
        if sum(mine.rows.size for mine in portion) * kets > POTENTIALS_AT_ONCE:
            yield portion
            portion = []
    if portion:
        yield portion


def _potentials(bras: list[BraBatch], kets: KetBatch, device: Backend, algorithm: str) -> Any:
    """The potential of all charges for the functions of some pairs."""
    ends = np.cumsum([bra.rows.size for bra in bras])
    potentials = device.zeros((int(ends[-1]), kets.count), np.float64)
    # Only the rows of these pairs are stored.
    own = [
        replace(bra, rows=np.arange(end - bra.rows.size, end).reshape(bra.rows.shape))
        for bra, end in zip(bras, ends, strict=True)
    ]
    Engine(device, potentials, row_stride=kets.count).run("coulomb", own, [kets], algorithm)
    return potentials.sum(axis=1)


def _point_charges(
    molecule: Molecule | None, charges: ArrayLike | None, positions: ArrayLike | None
) -> tuple[Array, Array]:
    if (molecule is None) == (charges is None) or (charges is None) != (positions is None):
        raise InputError("nuclear attraction: give a molecule, or charges and positions")
    if molecule is not None:
        if not isinstance(molecule, Molecule):
            raise InputError(f"molecule must be a cuanto.Molecule, {type(molecule).__name__} was given")
        return molecule.nuclei.charges.astype(float), molecule.R_ax
    assert charges is not None and positions is not None
    count = np.size(charges)
    return _numbers(charges, (count,), "charges"), _numbers(positions, (count, 3), "positions")


def unpack(packed: Any, n: int, device: Backend) -> Any:
    """Lower triangle (first axis) -> symmetric square (first two axes)."""
    xp = device.xp
    full = xp.zeros((n, n, *packed.shape[1:]))
    p, q = (xp.asarray(x) for x in np.tril_indices(n))
    full[p, q] = packed
    full[q, p] = packed
    return full


def basis_pairs(basis: Basis, row_of: RowOf, threshold: float, split: bool = True) -> Iterator[BraBatch]:
    """All pairs of shells of a basis."""
    classes = segments(basis)
    for x, y in class_pairs(len(classes)):
        yield from pair_batches(classes[x], classes[y], x == y, row_of, threshold, split)


def basis_kets(basis: Basis, coulomb: bool) -> list[KetBatch]:
    """All shells of a basis as kets."""
    return [ket_batch(group, coulomb) for group in segments(basis)]


def eri_2c(aux: Basis, *, algorithm: str = "auto", backend: str | Backend = "auto", omega: float | None = None) -> Any:
    """(P|Q); with `omega` (1/Bohr) the operator is erf(omega r)/r instead of 1/r, as in `eri_3c` and `eri_4c`."""
    device, naux = resolve(backend), check_basis(aux, "aux").nbf
    out = _allocate(Budget(device), "(P|Q)", (naux, naux))
    bras = [attenuate(shell_batch(group, coulomb=True), omega) for group in segments(aux)]
    shells = Triangle.of(bras, basis_kets(aux, coulomb=True), device)
    check_algorithm(algorithm)
    device.run(Engine(device, out, row_stride=naux).triangle("coulomb", shells, algorithm))
    add_transpose(out, TRANSPOSE_TILE)
    return out


def eri_3c(
    basis: Basis,
    aux: Basis,
    *,
    packed: bool = False,
    algorithm: str = "auto",
    backend: str | Backend = "auto",
    threshold: float = PAIR_THRESHOLD,
    omega: float | None = None,
) -> Any:
    """(pq|P): [p, q, P], or with `packed` the lower triangle [p (p + 1) / 2 + q, P].

    `algorithm`: `auto`, `md`, or `hgp`; pairs of a tight and a distant diffuse shell, for which `hgp` would lose
    digits, always use `md`. `threshold`: smaller products of primitives are neglected.
    """
    _check_threshold(threshold)
    device = resolve(backend)
    n, naux = check_basis(basis).nbf, check_basis(aux, "aux").nbf
    if packed:
        out = _allocate(Budget(device), "(pq|P)", (n * (n + 1) // 2, naux))
    else:
        out = _allocate(Budget(device), "(pq|P)", (n, n, naux), "use packed=True, which needs half of it")
    bras = (attenuate(pair, omega) for pair in basis_pairs(basis, RowMap(n, packed), threshold))
    Engine(device, out, row_stride=naux).run("coulomb", bras, basis_kets(aux, coulomb=True), algorithm)
    if not packed:
        for p in range(1, n):
            out[:p, p] = out[p, :p]
    device.synchronize()  # so that timings of this call include the work
    return out


def eri_4c(
    basis: Basis,
    *,
    packed: bool = False,
    algorithm: str = "auto",
    backend: str | Backend = "auto",
    threshold: float = PAIR_THRESHOLD,
    max_memory: float | None = None,
    omega: float | None = None,
) -> Any:
    """(pq|rs): [p, q, r, s], or with `packed` lower triangles of both pairs [p (p + 1) / 2 + q, r (r + 1) / 2 + s].

    `max_memory`: bytes that the arrays of this call may take; by default all free memory.
    """
    _check_threshold(threshold)
    device, n = resolve(backend), check_basis(basis).nbf
    pairs = n * (n + 1) // 2
    triangle, square = 8 * pairs**2, 8 * max(pairs**2 + n**2 * pairs, n**2 * pairs + n**4)
    hint = "raise max_memory" if packed else f"use packed=True, which needs {triangle / MIB:.3g} MiB"
    budget = Budget(device, max_memory, whole_process=False)
    budget.reserve(f"(pq|rs) of {n} functions", triangle if packed else square, hint)
    out = device.zeros((pairs, pairs), np.float64)
    bras = list(basis_pairs(basis, RowMap(n, packed=True), threshold))
    shells = Triangle.of([attenuate(bra, omega) for bra in bras], [pair_kets(bra) for bra in bras], device)
    check_algorithm(algorithm)
    device.run(Engine(device, out, row_stride=pairs).triangle("coulomb", shells, algorithm))
    add_transpose(out, TRANSPOSE_TILE)
    device.synchronize()  # so that timings of this call include the work
    if packed:
        return out
    half = unpack(out, n, device)
    del out  # before the largest array is allocated
    return unpack(half.transpose(2, 0, 1), n, device).transpose(2, 3, 0, 1)
