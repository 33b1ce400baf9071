"""The solution of a request: SCF, gradient, hints."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module

from cuanto.backends.blas import one_thread
from cuanto.backends.tiers import fixed_kernels
from cuanto.errors import InputError
from cuanto.integrals.engine import resolve
from cuanto.memory import retry_with_less_memory
from cuanto.methods import Calculation, GaussianResult, Request, Result
from cuanto.methods.hints import with_hints
from cuanto.methods.history import run_iterations
from cuanto.methods.semiempirical import semiempirical_energy
from cuanto.scf.state import Orbitals, State
from cuanto.system import Molecule
from cuanto.system.text import quote


@one_thread
def solve(request: Request, on_iteration: Callable[[State], object] | None = None, gradient: bool = False) -> Result:
    """Compute a request, and its `gradient` while the integrals are still in memory."""
    if request.model is None:
        found = with_hints(semiempirical_energy(request, on_iteration))
        if gradient:
            _ = found.gradient  # computed here, or refused with an error
        return found
    backend = resolve(request.options.backend)
    with fixed_kernels():
        result = retry_with_less_memory(lambda share: _solve(request, on_iteration, gradient, share), backend)
        return with_hints(result)


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
