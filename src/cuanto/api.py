"""Energies and gradients of a molecule: the functions that users call."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

from numpy.typing import ArrayLike

from cuanto.backends.base import Backend
from cuanto.backends.blas import one_thread
from cuanto.backends.tiers import fixed_kernels
from cuanto.basis import Basis
from cuanto.basis.library import BasisChoice
from cuanto.errors import ConvergenceWarning, InputError
from cuanto.grid import GridSettings
from cuanto.integrals.engine import resolve
from cuanto.memory import retry_with_less_memory
from cuanto.methods import Calculation, GaussianResult, Request, Result
from cuanto.methods.hints import convergence_advice, hints
from cuanto.methods.history import run_iterations
from cuanto.methods.semiempirical import semiempirical_energy
from cuanto.scf.state import Orbitals, State
from cuanto.system import Molecule
from cuanto.system.text import quote

GRADIENT_TOLERANCE = 1e-7
"""Norm of FDS - SDF, Hartree: the error of a nuclear gradient is of the same size."""


def energy(
    molecule: Molecule | str | os.PathLike[str],
    method: str = "hf",
    basis: BasisChoice | Basis | None = None,
    *,
    charge: int | None = None,
    multiplicity: int | None = None,
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
    """Compute the energy and orbitals of a molecule, which may also be a file, `smiles:CCO` or ASE's Atoms.

    `charge` and `multiplicity`: None means those of the file, of Atoms or of the molecule, else 0 and the lowest one.
    `method`: hf, rhf, uhf, rohf or a functional (see `cuanto functionals`; unrestricted with a leading `u`).
    `basis`: None means def2-svp.
    `fitting`: `jk` fits Coulomb and exchange matrices in `auxbasis` (None: chosen to match the basis), `j` only the
    Coulomb matrix, `none` neither; `auto` is `jk` with exact exchange and `j` without.
    `precision`: double, mixed or single, for direct J and K and the integration of a functional.
    `grid`: a level, radial and angular points, or `GridSettings` (also as a dictionary); None means fine.
    `max_memory`: limit for density fitting and stored integrals, bytes.
    `guess`: `sad`, `core`, a result, or the path of a checkpoint.
    `point_charges`: charges (e) and positions (Bohr); `field`: Hartree/(e Bohr).
    `on_iteration`: called with every state. `options`: all other fields of `CalculationOptions` and `ScfOptions` in
    `cuanto.options`.

    Semiempirical methods (mndo, am1, pm3, pm6, rm1; unrestricted as upm6) have neither basis nor fitting, and take
    `mopac_compatible`. Options that do not apply to a method are refused.
    """
    request = Request.of(
        molecule,
        method,
        basis,
        charge=charge,
        multiplicity=multiplicity,
        fitting=fitting,
        auxbasis=auxbasis,
        backend=backend,
        precision=precision,
        grid=grid,
        max_memory=max_memory,
        guess=guess,
        point_charges=point_charges,
        field=field,
        **options,
    )
    return _warn_unconverged(solve(request, on_iteration))


def gradient(
    molecule: Molecule | str | os.PathLike[str],
    method: str = "hf",
    basis: BasisChoice | Basis | None = None,
    *,
    on_iteration: Callable[[State], object] | None = None,
    **options: Any,
) -> Result:
    """Compute the energy of a molecule and its gradient (`.gradient` of the result, in Hartree/Bohr).

    Arguments are those of `energy`; the SCF converges to a gradient of 1e-7 unless `gradient_tolerance` says otherwise.
    The gradient of the point charges is `.charges_gradient`. An SCF that does not converge raises a `ConvergenceError`,
    unless `unconverged_gradient` is set; the gradient is then not the derivative of the energy.
    """
    request = Request.of(molecule, method, basis, **tight_keywords(options))
    return _warn_unconverged(solve(request, on_iteration, gradient=True))


def gradient_along_path(
    molecule: Molecule, method: str, basis: BasisChoice | Basis | None = None, **options: Any
) -> Result:
    """Like `gradient`, but without a search for the lowest state: for geometries, as in an optimisation, that must all
    have the same state.
    """
    request = replace(Request.of(molecule, method, basis, **tight_keywords(options)), single_point=False)
    return _warn_unconverged(solve(request, gradient=True))


def _warn_unconverged(result: Result) -> Result:
    """Return the result; if it did not converge, warn the caller of the public function."""
    if not result.converged:
        many = f"{result.iterations} iteration{'' if result.iterations == 1 else 's'}"
        text = (
            f"the SCF of {result.molecule.name or 'the molecule'} did not converge in {many}: its energy has no meaning"
        )
        warnings.warn(f"{text}; {convergence_advice(result.options)}", ConvergenceWarning, stacklevel=3)
    return result


def tight_keywords(keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Add the gradient tolerance that forces need to keywords of `energy`, unless they set one."""
    return {"gradient_tolerance": GRADIENT_TOLERANCE, **keywords}


@one_thread
def solve(request: Request, on_iteration: Callable[[State], object] | None = None, gradient: bool = False) -> Result:
    """Compute a request, and its `gradient` while the integrals are still in memory."""
    if request.model is None:
        found = _with_hints(semiempirical_energy(request, on_iteration))
        if gradient:
            _ = found.gradient  # computed here, or refused with an error
        return found
    backend = resolve(request.options.backend)
    with fixed_kernels():
        result = retry_with_less_memory(lambda share: _solve(request, on_iteration, gradient, share), backend)
        return _with_hints(result)


def _solve(
    request: Request, on_iteration: Callable[[State], object] | None, gradient: bool, share: float
) -> GaussianResult:
    """Compute a request in a Gaussian basis within a `share` of the memory that it may use."""
    calculation = Calculation.of(request, share)
    if gradient:
        calculation.begin_gradient()
    context = calculation.context
    state, history = run_iterations(calculation.states(_start(request.options.guess, request.molecule)), on_iteration)
    errors = calculation.known_errors(state)
    return GaussianResult(
        molecule=context.request.molecule,
        method=context.model.name,
        state=state,
        backend=context.backend,
        options=request.scf,
        timings=context.timings,
        history=history,
        notes=calculation.notes(state, errors),
        basis=context.basis,
        settings=context.options,
        gradients=calculation.gradient(state) if gradient else None,
        S_pq=calculation.core.S_pq,
        partition=calculation.partition,
        known_errors=errors,
    )


def _with_hints(result: Result) -> Result:
    """The result with hints among its notes."""
    found = tuple(hints(result))
    return replace(result, notes=(*result.notes, *found)) if found else result


def _start(guess: str | os.PathLike[str] | Orbitals | Result, molecule: Molecule) -> str | Orbitals:
    """Return the name of a guess, or the orbitals of a result or checkpoint."""
    if isinstance(guess, GaussianResult):
        return guess.orbitals
    if isinstance(guess, Result):
        raise InputError(f"a result of {guess.method} has no orbitals in a Gaussian basis: use guess='sad'")
    return restart_orbitals(guess, molecule) if isinstance(guess, os.PathLike) else guess


def restart_orbitals(path: str | os.PathLike[str], molecule: Molecule) -> Orbitals:
    """Orbitals of a checkpoint, or of a result in JSON, of the same atoms; their positions may differ."""
    # Imported when needed, because interfaces import this module.
    found: Result = import_module("cuanto.interfaces.read").read(path)
    if not isinstance(found, GaussianResult):
        raise InputError(f"{os.fspath(path)} has no orbitals in a Gaussian basis: start without it")
    if found.molecule.symbols != molecule.symbols:
        others, own = (quote(" ".join(one.symbols), 60) for one in (found.molecule, molecule))
        raise InputError(
            f"{os.fspath(path)} belongs to another molecule, with the atoms {others} instead of {own}: start without it"
        )
    return found.orbitals
