"""Matrix and gradient of the core potentials of all atoms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from cuanto.arrays import Array
from cuanto.backends.base import Backend
from cuanto.basis import Basis
from cuanto.basis.core_potential import HIGHEST_POWER, CorePotential
from cuanto.core_potentials.local import LocalPart, local_parts
from cuanto.core_potentials.semilocal import Projections
from cuanto.errors import InputError
from cuanto.integrals.engine import check_basis, resolve
from cuanto.kernels.core_potential import MAX_PROJECTOR
from cuanto.memory import Budget

Potentials = Sequence[CorePotential | None]


RESERVATION = "core potentials"
"""Name under which memory is reserved for the matrix."""


def reserve(basis: Basis, budget: Budget) -> None:
    """Reserve memory for the matrix, before other parts of the calculation take it."""
    if RESERVATION not in budget.reserved:
        budget.reserve(RESERVATION, 8 * basis.nbf**2)


def matrix(
    basis: Basis,
    potentials: Potentials | None = None,
    *,
    backend: str | Backend = "auto",
    budget: Budget | None = None,
) -> Any:
    """V_pq = sum_a <p|U_a|q> of the core potentials of all atoms; `potentials` replaces those of the basis.

    The memory of the matrix is reserved from `budget`, by default all free memory.
    """
    device, n = resolve(backend), check_basis(basis).nbf
    given, budget = _given(basis, potentials), Budget(device) if budget is None else budget
    reserve(basis, budget)
    V_pq = device.zeros((n, n), np.float64)
    for part in _parts(basis, given, device, budget.available()):
        rows = device.to_device(part.functions)
        V_pq[rows[:, None], rows] += part.matrix()
    return V_pq


def gradient(
    basis: Basis, D_pq: Any, potentials: Potentials | None = None, *, backend: str | Backend = "auto"
) -> Array:
    """dE/dR of E = sum_pq D_pq V_pq at a fixed symmetric density matrix, [atom, axis], on the host.

    The potential of an atom moves with it: the force on it is opposite to those on the basis functions.
    """
    device = resolve(backend)
    total = np.zeros((len(check_basis(basis).R_ax), 3))
    for part in _parts(basis, _given(basis, potentials), device, Budget(device).available()):
        rows = device.to_device(part.functions)
        total += part.gradient(device.xp.ascontiguousarray(D_pq[rows[:, None], rows]))
    return total


def _parts(
    basis: Basis, given: Sequence[tuple[int, CorePotential]], device: Backend, room: int
) -> Iterator[LocalPart | Projections]:
    """The local potentials, and the projected one of each atom, if they reach any basis function.

    `room`: bytes for one of them, if possible.
    """
    yield from local_parts(basis, [(atom, potential.local) for atom, potential in given], device, room)
    for atom, potential in given:
        projected = Projections.of(basis, atom, potential, device)
        if projected is not None:
            yield projected


def _given(basis: Basis, potentials: Potentials | None) -> list[tuple[int, CorePotential]]:
    """The potentials with their atoms."""
    chosen = basis.core_potentials if potentials is None else potentials
    if len(chosen) != len(basis.R_ax):
        raise InputError(
            f"{len(chosen)} core potentials were given for {len(basis.R_ax)} atoms: give one for each, or None"
        )
    found = [(atom, potential) for atom, potential in enumerate(chosen) if potential is not None]
    for atom, potential in found:
        _check(atom, potential)
    return found


def _check(atom: int, potential: CorePotential) -> None:
    if len(potential.projected) > MAX_PROJECTOR + 1:
        raise InputError(
            f"the core potential of atom {atom + 1} has projectors up to l = {len(potential.projected) - 1}; "
            f"they are implemented up to l = {MAX_PROJECTOR}"
        )
    for term in (*potential.local, *(term for terms in potential.projected for term in terms)):
        if not 0 <= term.power <= HIGHEST_POWER or not term.exponent > 0.0:
            raise InputError(
                f"the core potential of atom {atom + 1} has a term r^{term.power - 2} exp(-{term.exponent:g} r^2); "
                f"powers from -2 to {HIGHEST_POWER - 2} and positive exponents are implemented"
            )
