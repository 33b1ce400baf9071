"""Integrals over a whole basis: the functions users call. Arrays live on the backend's device (NumPy or CuPy)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cuanto.backends.base import Backend
from cuanto.basis import Basis
from cuanto.errors import InputError
from cuanto.integrals.batches import BraBatch, KetBatch, charge_batch, ket_batch, shell_batch
from cuanto.integrals.engine import Engine, resolve
from cuanto.integrals.pairs import RowMap, pair_batches, pair_kets
from cuanto.integrals.segments import Array, segments
from cuanto.system import Molecule

PAIR_THRESHOLD = 1e-18
"""Primitive pairs below this contribute nothing that double precision could show."""
POTENTIALS_AT_ONCE = 8_000_000
"""Numbers that the nuclear attraction keeps before they are added up over the charges."""


def _checked(basis: Basis, what: str = "basis") -> Basis:
    if not isinstance(basis, Basis):
        raise InputError(f"{what} must be a cuanto.Basis, {type(basis).__name__} was given")
    return basis


def _numbers(given: ArrayLike, shape: tuple[int, ...], what: str) -> Array:
    """Finite numbers of this shape."""
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


def _allocate(device: Backend, shape: tuple[int, ...], hint: str = "") -> Any:
    """Memory for a result, refused before the system runs out of it."""
    size, (free, _) = 8 * prod(shape), device.memory()
    if size > free:
        raise InputError(f"the result needs {size / 2**30:.1f} GiB, {free / 2**30:.1f} GiB are free{hint}")
    return device.zeros(shape, np.float64)


def _one_electron(operator: str, basis: Basis, components: int, backend: str | Backend) -> Any:
    device, n = resolve(backend), _checked(basis).nbf
    out = _allocate(device, (components, n, n))
    engine = Engine(device, out, row_stride=n, component_stride=n * n)
    bras = [shell_batch(group, coulomb=False) for group in segments(basis)]
    engine.run(operator, bras, basis_kets(basis, coulomb=False))
    return (out + out.transpose(0, 2, 1)) * 0.5


def overlap(basis: Basis, *, backend: str | Backend = "auto") -> Any:
    """S_pq = <p|q>"""
    return _one_electron("overlap", basis, 1, backend)[0]


def kinetic(basis: Basis, *, backend: str | Backend = "auto") -> Any:
    """T_pq = <p|-1/2 nabla^2|q>"""
    return _one_electron("kinetic", basis, 1, backend)[0]


def dipole(basis: Basis, *, origin: ArrayLike = (0.0, 0.0, 0.0), backend: str | Backend = "auto") -> Any:
    """r_xpq = <p|r - origin|q>, axis first; `origin` in Bohr."""
    origin_x = _numbers(origin, (3,), "origin")
    r_xpq = _one_electron("dipole", basis, 3, backend)
    if origin_x.any():
        S_pq = overlap(basis, backend=backend)
        for x in range(3):
            r_xpq[x] -= float(origin_x[x]) * S_pq
    return r_xpq


def nuclear(
    basis: Basis,
    molecule: Molecule | None = None,
    *,
    charges: ArrayLike | None = None,
    positions: ArrayLike | None = None,
    backend: str | Backend = "auto",
) -> Any:
    """V_pq = -sum_a Z_a <p|1/|r - R_a||q> of a molecule's nuclei, or of any point charges at `positions` (Bohr)."""
    Z_a, R_ax = _point_charges(molecule, charges, positions)
    device, n = resolve(backend), _checked(basis).nbf
    V = _allocate(device, (n * (n + 1) // 2,))
    for bra in basis_pairs(basis, RowMap(n, packed=True), PAIR_THRESHOLD):
        # Rows of this batch only, so that the potentials of many charges need little memory.
        own = np.arange(bra.rows.size).reshape(bra.rows.shape)
        rows = device.to_device(bra.rows.reshape(-1))
        at_once = max(1, POTENTIALS_AT_ONCE // bra.rows.size)
        for start in range(0, len(Z_a), at_once):
            kets = charge_batch(Z_a[start : start + at_once], R_ax[start : start + at_once])
            potentials = device.zeros((bra.rows.size, kets.count), np.float64)
            Engine(device, potentials, row_stride=kets.count).run("coulomb", [replace(bra, rows=own)], [kets])
            V[rows] = V[rows] - potentials.sum(axis=1)
    return unpack(V, n, device)


def _point_charges(
    molecule: Molecule | None, charges: ArrayLike | None, positions: ArrayLike | None
) -> tuple[Array, Array]:
    if (molecule is None) == (charges is None) or (charges is None) != (positions is None):
        raise InputError("nuclear attraction: give a molecule, or charges and positions")
    if molecule is not None:
        if not isinstance(molecule, Molecule):
            raise InputError(f"molecule must be a cuanto.Molecule, {type(molecule).__name__} was given")
        return molecule.numbers.astype(float), molecule.R_ax
    assert charges is not None and positions is not None  # by the first test
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


def add_transpose(matrix: Any, tile: int = 1024) -> None:
    """M + M^T in place of M, by tiles."""
    n = len(matrix)
    for i in range(0, n, tile):
        for j in range(0, i + 1, tile):
            rows, cols = slice(i, i + tile), slice(j, j + tile)
            total = matrix[rows, cols] + matrix[cols, rows].T
            matrix[rows, cols] = total
            matrix[cols, rows] = total.T


def basis_pairs(basis: Basis, row_of: RowMap, threshold: float) -> Iterator[BraBatch]:
    """All pairs of shells of a basis; high momenta first, so that the last ranges of work are short ones."""
    classes = segments(basis)
    for x in reversed(range(len(classes))):
        for y in reversed(range(x + 1)):
            yield from pair_batches(classes[x], classes[y], x == y, row_of, threshold)


def basis_kets(basis: Basis, coulomb: bool) -> list[KetBatch]:
    """All shells of a basis as kets."""
    return [ket_batch(group, coulomb) for group in segments(basis)]


def eri_2c(aux: Basis, *, algorithm: str = "auto", backend: str | Backend = "auto") -> Any:
    """(P|Q)"""
    device, naux = resolve(backend), _checked(aux, "aux").nbf
    out = _allocate(device, (naux, naux))
    bras = [shell_batch(group, coulomb=True) for group in segments(aux)]
    Engine(device, out, row_stride=naux).run("coulomb", bras, basis_kets(aux, coulomb=True), algorithm)
    return (out + out.T) * 0.5


def eri_3c(
    basis: Basis,
    aux: Basis,
    *,
    packed: bool = False,
    algorithm: str = "auto",
    backend: str | Backend = "auto",
    threshold: float = PAIR_THRESHOLD,
) -> Any:
    """(pq|P): [p, q, P], or with `packed` the lower triangle [p (p + 1) / 2 + q, P].

    `algorithm`: `auto`, `md`, or `hgp`; a tight shell and a distant diffuse one, between which `hgp` would lose digits,
    are always left to `md`.
    `threshold`: products of primitives whose size is below it are left out.
    """
    _check_threshold(threshold)
    device = resolve(backend)
    n, naux = _checked(basis).nbf, _checked(aux, "aux").nbf
    if packed:
        out = _allocate(device, (n * (n + 1) // 2, naux))
    else:
        out = _allocate(device, (n, n, naux), "; packed=True needs half of it")
    bras = basis_pairs(basis, RowMap(n, packed), threshold)
    Engine(device, out, row_stride=naux).run("coulomb", bras, basis_kets(aux, coulomb=True), algorithm)
    if not packed:
        for p in range(1, n):
            out[:p, p] = out[p, :p]
    return out


def eri_4c(
    basis: Basis,
    *,
    packed: bool = False,
    algorithm: str = "auto",
    backend: str | Backend = "auto",
    threshold: float = PAIR_THRESHOLD,
    max_memory: float | None = None,
) -> Any:
    """(pq|rs): [p, q, r, s], or with `packed` lower triangles of both pairs [p (p + 1) / 2 + q, r (r + 1) / 2 + s].

    `max_memory`: bytes that the result and its making may take, all that is free by default; more is refused.
    """
    _check_threshold(threshold)
    device, n = resolve(backend), _checked(basis).nbf
    pairs = n * (n + 1) // 2
    _check_memory(n, packed, max_memory, device)
    out = device.zeros((pairs, pairs), np.float64)
    bras = list(basis_pairs(basis, RowMap(n, packed=True), threshold))
    Engine(device, out, row_stride=pairs).run_triangle(bras, [pair_kets(bra) for bra in bras], algorithm)
    add_transpose(out)
    if packed:
        return out
    half = unpack(out, n, device)
    del out  # before the largest array is made
    return unpack(half.transpose(2, 0, 1), n, device).transpose(2, 3, 0, 1)


def _check_memory(n: int, packed: bool, max_memory: float | None, device: Backend) -> None:
    """Refuse four-centre integrals of `n` functions that do not fit."""
    if max_memory is not None and not max_memory > 0:
        raise InputError(f"max_memory must be a positive number of bytes, {max_memory} was given")
    pairs = n * (n + 1) // 2
    triangle, square = 8 * pairs**2, 8 * max(pairs**2 + n**2 * pairs, n**2 * pairs + n**4)
    need, free = triangle if packed else square, device.memory()[0]
    limit = free if max_memory is None else min(max_memory, free)
    if need > limit:
        hint = "" if packed else f" (packed=True needs {triangle / 2**30:.3g} GiB)"
        kind = "are free" if limit == free else "are allowed by max_memory"
        raise InputError(f"(pq|rs) of {n} functions needs {need / 2**30:.3g} GiB{hint}, {limit / 2**30:.3g} GiB {kind}")


__all__ = ["dipole", "eri_2c", "eri_3c", "eri_4c", "kinetic", "nuclear", "overlap"]
