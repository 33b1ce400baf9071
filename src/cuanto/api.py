"""One call from a molecule to a result."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cuanto.backends.base import Backend
from cuanto.basis import Basis, auxiliary_basis
from cuanto.basis.library import BasisChoice
from cuanto.coulomb.base import DirectBuilder, JKBuilder
from cuanto.coulomb.direct import DirectJK
from cuanto.coulomb.fitting import FittedJK
from cuanto.errors import InputError
from cuanto.grid import GridSettings
from cuanto.integrals.api import uploaded_pairs
from cuanto.integrals.batches import BraBatch
from cuanto.integrals.engine import resolve
from cuanto.log import Timings
from cuanto.methods import (
    METHODS,
    SEMIEMPIRICAL,
    GaussianResult,
    HartreeFock,
    Iteration,
    KohnSham,
    Result,
)
from cuanto.methods.kohn_sham import Model
from cuanto.methods.semiempirical import semiempirical_energy
from cuanto.options import ScfOptions
from cuanto.scf.checkpoint import read_checkpoint
from cuanto.scf.stability import UNSTABLE
from cuanto.scf.state import Orbitals, State
from cuanto.system import Molecule
from cuanto.terms import CoreHamiltonian, Surroundings

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
    grid: str | tuple[int, int] | GridSettings = "fine",
    max_memory: float | None = None,
    guess: str | os.PathLike[str] | Orbitals | Result = "sad",
    point_charges: tuple[ArrayLike, ArrayLike] | None = None,
    field: ArrayLike | None = None,
    on_iteration: Callable[[State], object] | None = None,
    **options: Any,
) -> Result:
    """Energy and orbitals of a molecule.

    `method`: hf, rhf, uhf or rohf, or a functional (`cuanto functionals` lists them; with `u` before it: unrestricted).
    `fitting`: `jk` fits Coulomb and exchange matrices in `auxbasis` (chosen from the basis when None), `j` the Coulomb
    matrix only, `none` neither; `auto` is `jk` where there is exact exchange. `precision` of direct J and K, and of the
    integration of a functional on its `grid` (a level, or radial and angular points).
    `max_memory`: bytes that density fitting and stored integrals keep to. `guess`: `sad`, `core`, or a result or the
    path of a checkpoint to start from.
    `point_charges`: charges (e) and positions (Bohr); `field`: Hartree/(e Bohr).
    `on_iteration` is called with every state. `options` are those of `cuanto.options.ScfOptions`.

    Semiempirical methods (mndo, am1, pm3, pm6; upm6 and so on: unrestricted) need neither basis nor fitting, and take
    `mopac_compatible`.
    """
    check(molecule, method, fitting)
    if method.lower() in SEMIEMPIRICAL:
        if point_charges is not None or field is not None:
            raise InputError(f"{method} takes neither point_charges nor field: use hf, or leave them out")
        return semiempirical_energy(molecule, method, resolve(backend), max_memory, guess, on_iteration, **options)
    settings, device = ScfOptions.of(**options), resolve(backend)
    timings = Timings(synchronize=getattr(device, "synchronize", None) if settings.profile else None)
    charges, positions = point_charges if point_charges is not None else (None, None)
    surroundings = Surroundings.of(charges, positions, field)
    model = None if method.lower() in METHODS else Model.of(method, molecule)
    grid_settings = grid if isinstance(grid, GridSettings) else GridSettings.of(grid)
    kind = fitting if fitting != "auto" else "jk" if model is None or model.exchange else "j"
    with timings.measure("basis sets"):
        orbital_basis = basis if isinstance(basis, Basis) else Basis(basis, molecule)
        aux = _fitting_basis(molecule, orbital_basis, kind, auxbasis)
    builders = _Builders(orbital_basis, aux, kind, device, precision, max_memory, settings, timings, model)
    with timings.measure("one-electron integrals"):
        core = CoreHamiltonian(molecule, orbital_basis, surroundings, device, builders.pairs)
    common = (molecule, orbital_basis, device, *builders.plain(), method.lower(), settings, surroundings, timings, core)
    if model is None:
        calculation = HartreeFock(*common)
    else:
        more: dict[str, Any] = {"precision": precision, "max_memory": max_memory, "grid": grid_settings}
        calculation = KohnSham(*common, model=model, attenuated=builders.attenuated(), **more)
    del builders  # and with it the pairs on the device
    state, history = _watched(calculation.states(_start(guess)), on_iteration)
    return GaussianResult(
        molecule=molecule,
        method=calculation.method,
        state=state,
        backend=device,
        options=settings,
        timings=timings,
        history=history,
        notes=_notes(calculation, state),
        basis=orbital_basis,
        fitting=kind,
        auxbasis=aux,
        precision=precision,
        grid=grid_settings.level if model is not None else None,
    )


def _watched(
    states: Iterator[State], on_iteration: Callable[[State], object] | None
) -> tuple[State, tuple[Iteration, ...]]:
    """The last state, and what is kept of every one."""
    state, history = None, []
    for state in states:
        history.append(Iteration.of(state))
        if on_iteration is not None:
            on_iteration(state)
    assert state is not None  # at least one iteration is made
    return state, tuple(history)


class _Builders:
    """Makes J and K builders of a calculation; on a GPU their integrals share `pairs` of shells with others."""

    def __init__(
        self,
        basis: Basis,
        aux: Basis | None,
        kind: str,
        device: Backend,
        precision: str,
        max_memory: float | None,
        settings: ScfOptions,
        timings: Timings,
        model: Model | None,
    ) -> None:
        self._direct: dict[str, Any] = {"backend": device, "threshold": settings.screening, "precision": precision}
        if model is None or model.exchange:  # J alone is made faster than integrals are stored
            self._direct |= {"storage": settings.storage, "max_memory": max_memory}
        self.omega = None
        if model is not None and model.functional.range_separation is not None:
            self.omega = model.functional.range_separation.omega
        self._fitted: dict[str, Any] = {"backend": device, "max_memory": max_memory, "kind": kind, "timings": timings}
        if self.omega is not None and kind == "jk":
            self._fitted["share"] = 0.5  # there are two
        self.basis, self.aux, self.kind, self.timings = basis, aux, kind, timings
        self.pairs: Sequence[BraBatch] | None = None
        if aux is not None and device.xp is not np:  # main memory may be too short for all of them
            with timings.measure("pairs of shells"):
                self.pairs = uploaded_pairs(basis, device)

    def plain(self) -> tuple[JKBuilder, JKBuilder]:
        """Of J and of K."""
        if self.aux is None:
            direct = self._of_quartets()
            return direct, direct
        fitted = FittedJK(self.basis, self.aux, pairs=self.pairs, **self._fitted)
        return fitted, (fitted if self.kind == "jk" else self._of_quartets())

    def attenuated(self) -> JKBuilder | None:
        """Of the exchange at long range, where a functional has it."""
        if self.omega is None:
            return None
        if self.aux is None or self.kind != "jk":
            return self._of_quartets(self.omega)
        return FittedJK(self.basis, self.aux, omega=self.omega, **self._fitted)

    def _of_quartets(self, omega: float | None = None) -> JKBuilder:
        with self.timings.measure("four-centre integrals"):
            return DirectBuilder(DirectJK(self.basis, omega=omega, **self._direct))


def check(molecule: Molecule, method: str, fitting: str = "auto") -> None:
    """What can be wrong with the arguments of `energy` before anything is computed."""
    if not isinstance(molecule, Molecule):
        raise InputError(f"molecule must be a cuanto.Molecule, {type(molecule).__name__} was given")
    if not isinstance(method, str) or not method:
        raise InputError(f"a method is a name such as hf, b3lyp or pm6, {method!r} was given")
    if method.lower() not in (*METHODS, *SEMIEMPIRICAL):
        try:
            Model.of(method, molecule)
        except InputError as error:
            names = (*METHODS, *SEMIEMPIRICAL)
            if close := difflib.get_close_matches(method.lower(), names, n=1):
                raise InputError(f"unknown method {method!r}; did you mean {close[0]!r}? Or: {error}") from None
            choice = ", ".join(names)
            raise InputError(f"unknown method {method!r}: choose {choice} or a functional; {error}") from None
    if fitting not in FITTINGS:
        raise InputError(f"unknown fitting {fitting!r}: choose {', '.join(FITTINGS)}")


def _fitting_basis(molecule: Molecule, basis: Basis, kind: str, given: BasisChoice | Basis | None) -> Basis | None:
    if kind == "none":
        return None
    return given if isinstance(given, Basis) else auxiliary_basis(basis, molecule, kind, given)


def _start(guess: str | os.PathLike[str] | Orbitals | Result) -> str | Orbitals:
    """A guess by name, or orbitals from wherever they are."""
    if isinstance(guess, GaussianResult):
        return guess.orbitals
    if isinstance(guess, Result):
        raise InputError(f"a result of {guess.method} has no orbitals in a basis of Gaussians: use guess='sad'")
    return read_checkpoint(guess).orbitals if isinstance(guess, os.PathLike) else guess


def _notes(calculation: HartreeFock, state: State) -> tuple[str, ...]:
    """What a reader of the result should know."""
    notes = []
    if isinstance(calculation.j_builder, FittedJK):
        notes.append(f"density fitting: {calculation.j_builder.plan}")
    direct = calculation.k_builder
    if isinstance(direct, DirectBuilder) and direct.direct.plan is not None:
        notes.append(f"exchange: {direct.direct.plan}")
    if isinstance(direct, DirectBuilder) and direct.direct.precision != "double":
        done = direct.direct.statistics.quartets
        error = f", about {done.error:.0e} Hartree in an element of K" if done is not None else ""
        notes.append(f"{direct.direct.precision} precision of direct J and K{error}")
    if state.curvature is not None:
        verdict = "stable" if state.curvature > UNSTABLE else "NOT a minimum"
        notes.append(f"internal stability: {verdict}, lowest curvature {state.curvature:.4f} Hartree")
    if isinstance(calculation, KohnSham):
        notes += calculation.remarks()
    dropped = calculation.basis.nbf - int(state.n_sm.shape[1])
    if dropped:
        limit = calculation.options.linear_dependence
        notes.append(f"{dropped} combinations of functions left out: overlap eigenvalues below {limit:g}")
    return tuple(notes)


__all__ = ["check", "energy"]
