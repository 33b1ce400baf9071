"""Estimated errors of the energy of a result by their source, from its density.

`fitting`: density fitting; `grid`: the quadrature of a functional; `screening`: neglected integrals and functions;
`precision`: rounding; `convergence`: the SCF. Each is the energy minus that of the same calculation without this error,
in Hartree; for screening and precision only the size is known. Errors of the basis and the method, which are larger,
are not included.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isfinite
from typing import TYPE_CHECKING

import numpy as np

from cuanto.coulomb.fit_error import fit_errors, without_redundancy
from cuanto.coulomb.fitting_rows import PAIR_BOUND
from cuanto.functionals import XCPotential
from cuanto.grid.settings import GridSettings
from cuanto.memory import Budget
from cuanto.methods.gradient import occupied_orbitals
from cuanto.methods.model import Model
from cuanto.options import DEFAULT_GRID
from cuanto.terms.exchange_correlation import grid_error

if TYPE_CHECKING:
    from cuanto.methods.gaussian_result import GaussianResult
    from cuanto.methods.result import Result

SOURCES = ("fitting", "grid", "screening", "precision", "convergence")
ROUNDING = 4 * float(np.finfo(np.float64).eps)
"""Relative error of the terms of the energy in double precision."""
MIXED = 1e-10
"""Error of mixed precision, Hartree per electron."""
SINGLE = 3e-8
"""Error of single precision, Hartree per electron, where it was not computed."""
NEGLECTED_ON_GRID = 1e-4
"""Error per electron of neglected functions, relative to the threshold of a grid."""
NEGLECTED_IN_FOCK = 1.0
"""Error per electron of neglected quartets, relative to the threshold of direct J and K."""
CANCELLATION = 0.3
"""Smallest fraction of the larger of two errors that is assumed to remain when errors of opposite signs cancel."""
NEGLECTED_IN_FIT = 1e-2
"""Error per electron of neglected pairs of functions, relative to the threshold of fitted J and K."""
SUBTRACTED = ("fitting", "grid")
"""Sources whose errors are nearly the same in a complex and in its fragments."""
REMAINDER = 0.1
"""Smallest fraction of the error of a complex that is assumed to remain in an interaction energy."""
SMALLEST_GAP = 0.1
"""Smallest mean difference of orbital energies to assume, Hartree; gaps are smaller than the mean and may vanish."""


def estimate_errors(result: GaussianResult, share: float = 1.0) -> dict[str, float]:
    """Errors by source; a source that does not exist in a calculation is left out. `share`: fraction of the memory to
    use."""
    model = Model.of(result.method, result.molecule)
    settings = GridSettings.of(DEFAULT_GRID if result.grid is None else result.grid)
    found: dict[str, float] = {}
    if result.auxbasis is not None:
        found["fitting"] = _fitting(result, model)
    if model.has_functional:
        found["grid"] = _grid(result, model, settings, share)
    found["screening"] = _screening(result, model, settings)
    found["precision"] = result.known_errors.get("precision", _precision(result, model))
    found["convergence"] = _convergence(result)
    return found


def estimate_semiempirical_errors(result: Result, magnitude: float) -> dict[str, float]:
    """Errors by source of a method without fitting, grid and neglected integrals; `magnitude`: sum of the sizes of the
    terms of the energy."""
    return {"precision": ROUNDING * magnitude, "convergence": _convergence(result)}


def total_error(errors: Mapping[str, float]) -> float:
    """The size of all errors together: signed ones may cancel, others are added."""
    signed = abs(_add(errors.get("fitting", 0.0), errors.get("grid", 0.0)))
    return signed + sum(abs(errors.get(name, 0.0)) for name in SOURCES[2:])


def interaction_errors(whole: Mapping[str, float], parts: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Errors by source of an energy minus those of its parts.

    Errors of fitting and grid are those of the atoms and for the most part the same in the whole and in the parts: they
    are subtracted. How much remains is less certain than that, so it is at least `REMAINDER` of that of the whole. The
    others have nothing to do with each other: their sizes are added.
    """
    found: dict[str, float] = {}
    for name, error in whole.items():
        others = [part.get(name, 0.0) for part in parts]
        if name in SUBTRACTED:
            left = error - sum(others)
            found[name] = float(np.copysign(max(abs(left), REMAINDER * abs(error)), left))
        else:
            found[name] = abs(error) + sum(map(abs, others))
    return found


def _add(one: float, other: float) -> float:
    """Their sum; how well errors of opposite signs cancel is less certain than their sizes."""
    least = CANCELLATION * max(abs(one), abs(other))
    return float(np.copysign(max(abs(one + other), least), one + other))


def _fitting(result: GaussianResult, model: Model) -> float:
    aux, functional = result.auxbasis, model.functional
    assert aux is not None
    charges_a, fitted_exchange = result.molecule.nuclei.charges, result.fitting == "jk"
    D_spq = without_redundancy(result.density, result.overlap, result.basis, charges_a)
    coulomb, exchange = fit_errors(result.basis, aux, D_spq, fitted_exchange and bool(functional.exact_exchange), None)
    exchange *= functional.exact_exchange
    separation = functional.range_separation
    if fitted_exchange and separation is not None:
        exchange += separation.beta * fit_errors(result.basis, aux, D_spq, True, separation.omega)[1]
    return _add(coulomb, exchange)


def _grid(result: GaussianResult, model: Model, settings: GridSettings, share: float) -> float:
    if result.partition is not None:
        settings = replace(settings, cube_edge=result.partition[0], sphere_fraction=result.partition[1])
    backend, state = result.backend, result.state
    potential = XCPotential(model.functional, backend, len(state.D_spq))
    density = state.D_spq, occupied_orbitals(state, backend.xp)
    budget = Budget(backend, result.settings.max_memory, share=share)
    return grid_error(potential, result.molecule, result.basis, settings, density, budget)


def _screening(result: GaussianResult, model: Model, settings: GridSettings) -> float:
    electrons, error = result.molecule.nelectron, 0.0
    if model.has_functional:
        error += NEGLECTED_ON_GRID * settings.threshold * electrons
    if _direct(result, model):
        error += NEGLECTED_IN_FOCK * result.settings.screening * electrons
    return error if result.auxbasis is None else error + NEGLECTED_IN_FIT * PAIR_BOUND * electrons


def _precision(result: GaussianResult, model: Model) -> float:
    rounding = ROUNDING * sum(abs(value) for value in result.energies.values())
    if result.precision == "double" or not (_direct(result, model) or model.has_functional):
        return rounding
    return rounding + (MIXED if result.precision == "mixed" else SINGLE) * result.molecule.nelectron


def _direct(result: GaussianResult, model: Model) -> bool:
    """Whether J or K come from four-centre integrals."""
    return result.fitting == "none" or (result.fitting == "j" and model.exchange)


def _convergence(result: Result) -> float:
    """Second-order change of the energy by the rotations that are left, from the norm of FDS - SDF."""
    gradient = result.state.gradient
    if not isfinite(gradient):
        return 0.0
    gap = result.gap if isfinite(result.gap) else 1.0
    rotations = gradient**2 / (8.0 if len(result.occupations) == 1 else 2.0)  # squares of F_ib
    return (2.0 if len(result.occupations) == 1 else 1.0) * rotations / max(gap, SMALLEST_GAP)
