"""One call from a molecule to a result."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from numpy.typing import ArrayLike

from cuanto.backends.base import Backend
from cuanto.basis import Basis, auxiliary_basis
from cuanto.basis.library import BasisChoice
from cuanto.coulomb.base import DirectBuilder, JKBuilder
from cuanto.coulomb.direct import DirectJK
from cuanto.coulomb.fitting import FittedJK
from cuanto.errors import InputError
from cuanto.integrals.engine import resolve
from cuanto.log import Timings
from cuanto.methods import METHODS, HartreeFock, Result
from cuanto.options import ScfOptions
from cuanto.scf.checkpoint import read_checkpoint
from cuanto.scf.stability import UNSTABLE
from cuanto.scf.state import Orbitals, State
from cuanto.system import Molecule
from cuanto.terms import Surroundings

FITTINGS = ("auto", "none", "j", "jk")


def energy(
    molecule: Molecule,
    method: str = "hf",
    basis: BasisChoice | Basis = "def2-svp",
    *,
    fitting: str = "auto",
    auxbasis: BasisChoice | Basis | None = None,
    backend: str | Backend = "auto",
    precision: str = "double",
    max_memory: float | None = None,
    guess: str | os.PathLike[str] | Orbitals | Result = "sad",
    point_charges: tuple[ArrayLike, ArrayLike] | None = None,
    field: ArrayLike | None = None,
    on_iteration: Callable[[State], object] | None = None,
    **options: Any,
) -> Result:
    """Energy and orbitals of a molecule.

    `method`: hf, rhf, uhf or rohf. `fitting`: `jk` fits Coulomb and exchange matrices in `auxbasis` (chosen from the
    basis when None), `j` the Coulomb matrix only, `none` neither; `auto` is `jk`. `precision` of direct J and K.
    `max_memory`: bytes that density fitting keeps to. `guess`: `sad`, `core`, or a result or the path of a
    checkpoint to start from.
    `point_charges`: charges (e) and positions (Bohr); `field`: Hartree/(e Bohr).
    `on_iteration` is called with every state. `options` are those of `cuanto.options.ScfOptions`.
    """
    _check(molecule, method, fitting)
    settings, device = ScfOptions.of(**options), resolve(backend)
    timings = Timings(synchronize=getattr(device, "synchronize", None) if settings.profile else None)
    charges, positions = point_charges if point_charges is not None else (None, None)
    surroundings = Surroundings.of(charges, positions, field)
    kind = "jk" if fitting == "auto" else fitting
    with timings.measure("basis sets"):
        orbital_basis = basis if isinstance(basis, Basis) else Basis(basis, molecule)
        aux = _fitting_basis(molecule, orbital_basis, kind, auxbasis)
    j_builder, k_builder = _builders(orbital_basis, aux, kind, device, precision, max_memory, settings)
    if isinstance(j_builder, FittedJK):
        timings.seconds.update(j_builder.timings.seconds)
    calculation = HartreeFock(
        molecule, orbital_basis, device, j_builder, k_builder, method.lower(), settings, surroundings, timings
    )
    state: State | None = None
    for state in calculation.states(_start(guess)):
        if on_iteration is not None:
            on_iteration(state)
    assert state is not None  # at least one iteration is made
    notes = _notes(calculation, state)
    return Result(molecule, orbital_basis, calculation.method, state, device, settings, timings, kind, aux, notes)


def _check(molecule: Molecule, method: str, fitting: str) -> None:
    if not isinstance(molecule, Molecule):
        raise InputError(f"molecule must be a cuanto.Molecule, {type(molecule).__name__} was given")
    if not isinstance(method, str) or method.lower() not in METHODS:
        raise InputError(f"unknown method {method!r}: choose {', '.join(METHODS)}")
    if fitting not in FITTINGS:
        raise InputError(f"unknown fitting {fitting!r}: choose {', '.join(FITTINGS)}")


def _fitting_basis(molecule: Molecule, basis: Basis, kind: str, given: BasisChoice | Basis | None) -> Basis | None:
    if kind == "none":
        return None
    return given if isinstance(given, Basis) else auxiliary_basis(basis, molecule, kind, given)


def _start(guess: str | os.PathLike[str] | Orbitals | Result) -> str | Orbitals:
    """A guess by name, or orbitals from wherever they are."""
    if isinstance(guess, Result):
        return guess.orbitals
    return read_checkpoint(guess).orbitals if isinstance(guess, os.PathLike) else guess


def _builders(
    basis: Basis,
    aux: Basis | None,
    fitting: str,
    device: Backend,
    precision: str,
    max_memory: float | None,
    settings: ScfOptions,
) -> tuple[JKBuilder, JKBuilder]:
    """Builders of J and of K."""
    direct = DirectBuilder(DirectJK(basis, backend=device, threshold=settings.screening, precision=precision))
    if aux is None:
        return direct, direct
    fitted = FittedJK(basis, aux, backend=device, max_memory=max_memory, kind=fitting)
    return fitted, (fitted if fitting == "jk" else direct)


def _notes(calculation: HartreeFock, state: State) -> tuple[str, ...]:
    """What a reader of the result should know."""
    notes = []
    if isinstance(calculation.j_builder, FittedJK):
        notes.append(f"density fitting: {calculation.j_builder.plan}")
    direct = calculation.k_builder
    if isinstance(direct, DirectBuilder) and direct.direct.precision != "double":
        done = direct.direct.statistics.quartets
        error = f", about {done.error:.0e} Hartree in an element of K" if done is not None else ""
        notes.append(f"{direct.direct.precision} precision of direct J and K{error}")
    if state.curvature is not None:
        verdict = "stable" if state.curvature > UNSTABLE else "NOT a minimum"
        notes.append(f"internal stability: {verdict}, lowest curvature {state.curvature:.4f} Hartree")
    dropped = calculation.basis.nbf - int(state.n_sm.shape[1])
    if dropped:
        limit = calculation.options.linear_dependence
        notes.append(f"{dropped} combinations of functions left out: overlap eigenvalues below {limit:g}")
    return tuple(notes)


__all__ = ["energy"]
