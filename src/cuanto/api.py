"""Energies and gradients of a molecule: the functions that users call.

The modules that compute them take 0.3 s to import. The first call does that, while a GPU's first kernels are compiled.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from cuanto.backends.base import Backend, begin_compiling
from cuanto.errors import ConvergenceWarning
from cuanto.wording import count

if TYPE_CHECKING:
    from cuanto.basis import Basis
    from cuanto.basis.library import BasisChoice
    from cuanto.grid import GridSettings
    from cuanto.methods import Result
    from cuanto.scf.state import Orbitals, State
    from cuanto.system import Molecule

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
    max_memory: float | str | None = None,
    guess: str | os.PathLike[str] | Orbitals | Result = "sad",
    point_charges: Sequence[ArrayLike] | None = None,
    field: ArrayLike | None = None,
    on_iteration: Callable[[State], object] | None = None,
    **options: Any,
) -> Result:
    """Compute the energy and orbitals of a molecule, also given as a file, atoms, `smiles:CCO` or ASE's Atoms.

    Of a QCSchema input only the molecule is used; the command line and `cuanto.compute` use its model and keywords too.
    `charge` and `multiplicity`: None means those of the file, of Atoms or of the molecule, else 0 and the lowest one.
    `method`: hf, rhf, uhf, rohf or a functional (see `cuanto functionals`; unrestricted with a leading `u`).
    `basis`: None means def2-svp.
    `fitting`: `jk` fits Coulomb and exchange matrices in `auxbasis` (None: chosen to match the basis), `j` only the
    Coulomb matrix, `none` neither; `auto` is `jk` with exact exchange and `j` without.
    `precision`: double, mixed or single, for direct J and K and the integration of a functional.
    `grid`: a level, radial and angular points, or `GridSettings` (also as a dictionary); None means fine.
    `max_memory`: limit for density fitting and stored integrals, bytes, or text such as "4GB".
    `guess`: `sad`, `core`, a result, or the path of one (JSON) or of a checkpoint.
    `point_charges`: charges (e) and positions (Bohr); `field`: Hartree/(e Bohr).
    `on_iteration`: called with every state. `options`: all other fields of `CalculationOptions` and `ScfOptions` in
    `cuanto.options`.

    Semiempirical methods (mndo, am1, pm3, pm6, rm1; unrestricted as upm6) have neither basis nor fitting, and take
    `mopac_compatible`. Options that do not apply to a method are refused.
    """
    keywords = {
        "charge": charge,
        "multiplicity": multiplicity,
        "fitting": fitting,
        "auxbasis": auxbasis,
        "backend": backend,
        "precision": precision,
        "grid": grid,
        "max_memory": max_memory,
        "guess": guess,
        "point_charges": point_charges,
        "field": field,
    }
    return _warn_unconverged(_compute(molecule, method, basis, keywords | options, on_iteration))


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
    return _warn_unconverged(_compute(molecule, method, basis, tight_keywords(options), on_iteration, gradient=True))


def gradient_along_path(
    molecule: Molecule, method: str, basis: BasisChoice | Basis | None = None, *, forces: bool = True, **options: Any
) -> Result:
    """Like `gradient`, but without a search for the lowest state: for geometries, as in an optimisation, that must all
    have the same state. Without `forces` the energy alone.
    """
    keywords = tight_keywords(options)
    return _warn_unconverged(_compute(molecule, method, basis, keywords, gradient=forces, single_point=False))


def _compute(
    molecule: Molecule | str | os.PathLike[str],
    method: str,
    basis: BasisChoice | Basis | None,
    keywords: Mapping[str, Any],
    on_iteration: Callable[[State], object] | None = None,
    gradient: bool = False,
    single_point: bool = True,
) -> Result:
    """The result of a calculation; its modules are imported while the first kernels for a GPU are compiled."""
    begin_compiling(keywords.get("backend", "auto"))
    from cuanto.methods import Request
    from cuanto.solve import solve

    request = Request.of(molecule, method, basis, **keywords)
    return solve(replace(request, single_point=single_point), on_iteration, gradient)


def _warn_unconverged(result: Result) -> Result:
    """Return the result; if it did not converge, warn the caller of the public function."""
    if not result.converged:
        from cuanto.methods.hints import convergence_advice

        name, iterations = result.molecule.name or "the molecule", count(result.iterations, "iteration")
        text = f"the SCF of {name} did not converge in {iterations}: its energy has no meaning"
        warnings.warn(f"{text}; {convergence_advice(result.options)}", ConvergenceWarning, stacklevel=3)
    return result


def tight_keywords(keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Add the gradient tolerance that forces need to keywords of `energy`, unless they set one."""
    return {"gradient_tolerance": GRADIENT_TOLERANCE, **keywords}
