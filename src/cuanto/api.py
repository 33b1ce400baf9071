"""One call from a molecule to a result."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from numpy.typing import ArrayLike

from cuanto.backends.base import Backend
from cuanto.backends.blas import one_thread
from cuanto.basis import Basis
from cuanto.basis.library import BasisChoice
from cuanto.errors import InputError
from cuanto.grid import GridSettings
from cuanto.methods import Calculation, Context, GaussianResult, Request, Result
from cuanto.methods.gaussian import builders_for, core_hamiltonian, make_terms
from cuanto.methods.result import run_iterations
from cuanto.methods.semiempirical import semiempirical_energy
from cuanto.scf.checkpoint import read_checkpoint
from cuanto.scf.state import Orbitals, State
from cuanto.system import Molecule


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
    `on_iteration` is called with every state. `options` are the others of `cuanto.options`: `CalculationOptions` and
    `ScfOptions`.

    Semiempirical methods (mndo, am1, pm3, pm6; upm6 and so on: unrestricted) have neither basis nor fitting, and take
    `mopac_compatible`. What means nothing for a method is refused.
    """
    request = Request.of(
        molecule,
        method,
        basis,
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
    return solve(request, on_iteration)


@one_thread
def solve(request: Request, on_iteration: Callable[[State], object] | None = None) -> Result:
    """Carry out a request."""
    if request.model is None:
        return semiempirical_energy(request, on_iteration)
    context = Context.of(request)
    pairs = context.shared_pairs()
    core = core_hamiltonian(context, pairs)
    builders = builders_for(context, pairs)
    del pairs  # from the device
    calculation = Calculation(context, core, make_terms(context, core, builders))
    state, history = run_iterations(calculation.states(_start(request.options.guess)), on_iteration)
    return GaussianResult(
        molecule=request.molecule,
        method=context.model.name,
        state=state,
        backend=context.backend,
        options=request.scf,
        timings=context.timings,
        history=history,
        notes=calculation.notes(state),
        basis=context.basis,
        settings=context.options,
    )


def _start(guess: str | os.PathLike[str] | Orbitals | Result) -> str | Orbitals:
    """A guess by name, or orbitals from wherever they are."""
    if isinstance(guess, GaussianResult):
        return guess.orbitals
    if isinstance(guess, Result):
        raise InputError(f"a result of {guess.method} has no orbitals in a basis of Gaussians: use guess='sad'")
    return read_checkpoint(guess).orbitals if isinstance(guess, os.PathLike) else guess
