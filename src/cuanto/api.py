"""One call from a molecule to a result."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cuanto.backends.base import Backend
from cuanto.backends.blas import one_thread
from cuanto.basis import Basis, auxiliary_basis
from cuanto.basis.library import BasisChoice
from cuanto.coulomb.base import DirectBuilder, JKBuilder
from cuanto.coulomb.direct import DirectJK
from cuanto.coulomb.fitting import FittedJK
from cuanto.coulomb.quartets import PRECISIONS
from cuanto.errors import InputError
from cuanto.functionals import split_dispersion
from cuanto.grid import GridSettings
from cuanto.integrals.api import uploaded_pairs
from cuanto.integrals.batches import BraBatch
from cuanto.integrals.engine import resolve
from cuanto.log import Timings
from cuanto.methods import METHODS, SEMIEMPIRICAL, GaussianResult, HartreeFock, KohnSham, Result
from cuanto.methods.kohn_sham import Model
from cuanto.methods.result import watched
from cuanto.methods.semiempirical import semiempirical_energy
from cuanto.options import ScfOptions
from cuanto.scf.checkpoint import read_checkpoint
from cuanto.scf.stability import UNSTABLE
from cuanto.scf.state import Orbitals, State
from cuanto.system import Molecule
from cuanto.terms import CoreHamiltonian, Surroundings

FITTINGS = ("auto", "none", "j", "jk")
DEFAULT_BASIS, DEFAULT_GRID = "def2-svp", "fine"
OF_A_BASIS = ("basis", "fitting", "auxbasis", "precision", "grid", "field", "point_charges", "storage", "screening")
"""Settings that a method with orbitals of its own has no use for."""
NEUTRAL = {"fitting": "auto", "precision": "double", "storage": "auto"}
"""Values that ask for nothing."""
GRID_BYTES = 256
"""Of a point of a grid, with what is made on the way there: a little more than measured (benzene, ultrafine: 210)."""


@one_thread
def energy(
    molecule: Molecule,
    method: str = "hf",
    basis: BasisChoice | Basis | None = None,
    *,
    fitting: str = "auto",
    auxbasis: BasisChoice | Basis | None = None,
    backend: str | Backend = "auto",
    precision: str = "double",
    grid: str | tuple[int, int] | Mapping[str, Any] | GridSettings | None = None,
    max_memory: float | None = None,
    guess: str | os.PathLike[str] | Orbitals | Result = "sad",
    point_charges: Sequence[ArrayLike] | None = None,
    field: ArrayLike | None = None,
    on_iteration: Callable[[State], object] | None = None,
    **options: Any,
) -> Result:
    """Energy and orbitals of a molecule.

    `method`: hf, rhf, uhf or rohf, or a functional (`cuanto functionals` lists them; with `u` before it: unrestricted).
    `basis`: def2-svp when None.
    `fitting`: `jk` fits Coulomb and exchange matrices in `auxbasis` (chosen from the basis when None), `j` the Coulomb
    matrix only, `none` neither; `auto` is `jk` where there is exact exchange. `precision` of direct J and K, and of the
    integration of a functional on its `grid` (a level, radial and angular points, or `GridSettings`, also by name; fine
    when None).
    `max_memory`: bytes that density fitting and stored integrals keep to. `guess`: `sad`, `core`, or a result or the
    path of a checkpoint to start from.
    `point_charges`: charges (e) and positions (Bohr); `field`: Hartree/(e Bohr).
    `on_iteration` is called with every state. `options` are those of `cuanto.options.ScfOptions`.

    Semiempirical methods (mndo, am1, pm3, pm6; upm6 and so on: unrestricted) have neither basis nor fitting, and take
    `mopac_compatible`. What means nothing for a method is refused.
    """
    check(molecule, method, fitting, precision, max_memory)
    given = {"basis": basis, "fitting": fitting, "auxbasis": auxbasis, "precision": precision, "grid": grid}
    require_meaning(method, given | {"field": field, "point_charges": point_charges} | options)
    if method.lower() in SEMIEMPIRICAL:
        return semiempirical_energy(molecule, method, resolve(backend), max_memory, guess, on_iteration, **options)
    settings, device = ScfOptions.of(**options), resolve(backend)
    timings = Timings(synchronize=device.synchronize if settings.profile else None)
    surroundings = _surroundings(point_charges, field)
    model = None if method.lower() in METHODS else Model.of(method, molecule)
    grid_settings = GridSettings.of(DEFAULT_GRID if grid is None else grid)
    exchange, integrated = model is None or model.exchange, model is not None and bool(model.functional.parts)
    kind = fitting if fitting != "auto" else "jk" if exchange else "j"
    idle = _idle(method, precision, settings.storage, kind != "jk" or integrated, kind != "jk" and exchange)
    with timings.measure("basis sets"):
        basis = DEFAULT_BASIS if basis is None else basis
        orbital_basis = basis if isinstance(basis, Basis) else Basis(basis, molecule)
        aux = _fitting_basis(molecule, orbital_basis, kind, auxbasis)
    of_grid = GRID_BYTES * grid_settings.points(molecule.numbers) if integrated else 0
    builders = _Builders(orbital_basis, aux, kind, device, precision, max_memory, settings, timings, model, of_grid)
    with timings.measure("one-electron integrals"):
        core = CoreHamiltonian(molecule, orbital_basis, surroundings, device, builders.pairs)
    common = (molecule, orbital_basis, device, *builders.plain(), method.lower(), settings, surroundings, timings, core)
    if model is None:
        calculation = HartreeFock(*common)
    else:
        more: dict[str, Any] = {"precision": precision, "max_memory": max_memory, "grid": grid_settings}
        calculation = KohnSham(*common, model=model, attenuated=builders.attenuated(), **more)
    del builders  # and with it the pairs on the device
    state, history = watched(calculation.states(_start(guess)), on_iteration)
    return GaussianResult(
        molecule=molecule,
        method=calculation.method,
        state=state,
        backend=device,
        options=settings,
        timings=timings,
        history=history,
        notes=(*_notes(calculation, state), *idle),
        basis=orbital_basis,
        fitting=kind,
        auxbasis=aux,
        precision=precision,
        grid=grid_settings.plain if integrated else None,
        surroundings=surroundings,
    )


class _Builders:
    """Makes J and K builders of a calculation; on a GPU their integrals share `pairs` of shells with others.

    Integrals that nobody asked to store, and those of a fit, leave the bytes `of_grid` alone.
    """

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
        of_grid: int = 0,
    ) -> None:
        self._direct: dict[str, Any] = {"backend": device, "threshold": settings.screening, "precision": precision}
        if model is None or model.exchange:  # J alone is made faster than integrals are stored
            spared = max_memory
            if max_memory is not None and settings.storage == "auto":
                spared = max(1.0, max_memory - of_grid)
            self._direct |= {"storage": settings.storage, "max_memory": spared}
        self.omega = None
        if model is not None and model.functional.range_separation is not None:
            self.omega = model.functional.range_separation.omega
        self._fitted: dict[str, Any] = {"backend": device, "max_memory": max_memory, "kind": kind, "timings": timings}
        self._fitted["others"] = of_grid
        if self.omega is not None and kind == "jk":
            self._fitted["share"] = 0.5  # there are two
        self.basis, self.aux, self.kind, self.timings = basis, aux, kind, timings
        self.pairs: Sequence[BraBatch] | None = None
        if aux is not None and not device.traits.unified_memory:  # main memory may be too short for all of them
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


def check(
    molecule: Molecule,
    method: str,
    fitting: str = "auto",
    precision: str = "double",
    max_memory: float | None = None,
) -> None:
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
            if "did you mean" in str(error):
                raise InputError(str(error).replace("functional", "method", 1)) from None
            choice = ", ".join(names)
            raise InputError(f"unknown method {method!r}: choose {choice} or a functional; {error}") from None
    if fitting not in FITTINGS:
        raise InputError(f"unknown fitting {fitting!r}: choose {', '.join(FITTINGS)}")
    if precision not in PRECISIONS:
        raise InputError(f"unknown precision {precision!r}: choose {', '.join(PRECISIONS)}")
    number = isinstance(max_memory, (int, float, np.integer, np.floating)) and not isinstance(max_memory, bool)
    if max_memory is not None and not (number and max_memory > 0):
        raise InputError(f"max_memory must be a positive number of bytes, {max_memory!r} was given")


def require_meaning(method: str, given: Mapping[str, Any]) -> None:
    """Settings of `energy` by name; what means nothing for the method is refused: silence would look like consent."""
    semiempirical = method.lower() in SEMIEMPIRICAL
    for name, value in given.items():
        if value is None or (isinstance(value, str) and value == NEUTRAL.get(name)):
            continue
        if semiempirical and name in OF_A_BASIS:
            other = "a functional" if name == "grid" else "hf or a functional"
            raise InputError(f"{name} is not for {method}: leave it out, or use {other}")
        if name == "grid" and split_dispersion(method)[0].lower() in METHODS:
            raise InputError(f"grid is not for {method}, which integrates nothing on one: leave it out")
        if name == "mopac_compatible" and not semiempirical:
            raise InputError(f"mopac_compatible is not for {method}: leave it out, or use mndo, am1, pm3 or pm6")
    if given.get("auxbasis") is not None and given.get("fitting") == "none":
        raise InputError("auxbasis is of no use with fitting='none': leave out one of them")


def _surroundings(point_charges: Sequence[ArrayLike] | None, field: ArrayLike | None) -> Surroundings:
    """Point charges are a pair of arrays."""
    if point_charges is None:
        return Surroundings.of(field=field)
    try:
        charges, positions = point_charges
    except (TypeError, ValueError):
        raise InputError("point_charges are a pair: charges (e) and their positions (Bohr)") from None
    return Surroundings.of(charges, positions, field)


def _idle(method: str, precision: str, storage: str, precise: bool, stored: bool) -> list[str]:
    """What was asked for and has no effect: `precise` where the precision has one, `stored` where the storage has."""
    notes = []
    if precision != "double" and not precise:
        notes.append(f"precision={precision!r} has no effect here: {method} has neither direct J and K nor a grid")
    if storage == "stored" and not stored:
        notes.append("storage='stored' has no effect here: no exchange is made from four-centre integrals")
    return notes


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
    notes += _changed_metrics(calculation)
    pure = isinstance(calculation, KohnSham) and calculation.model is not None and not calculation.model.exchange
    direct = calculation.j_builder if pure else calculation.k_builder
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


def _changed_metrics(calculation: HartreeFock) -> list[str]:
    """What was done to metrics of the fit that are nearly singular; others need no words."""
    fits: dict[str, JKBuilder | None] = {"fitting metric": calculation.j_builder}
    if isinstance(calculation, KohnSham):
        fits["fitting metric at long range"] = calculation.attenuated
    return [
        f"{name}: {fit.metric}"
        for name, fit in fits.items()
        if isinstance(fit, FittedJK) and (fit.metric.raised or fit.metric.left_out)
    ]


__all__ = ["check", "energy", "require_meaning"]
