"""Minimum of the energy over the parameters of a well-tempered set, without derivatives.

NEWUOA: M. J. D. Powell, in Large-Scale Nonlinear Optimization (2006) p. 255, doi:10.1007/0-387-30065-1_16; COBYQA:
T. M. Ragonneau, Z. Zhang, https://www.cobyqa.com. Both build a quadratic model from 2n+1 points in a trust region.

The variables are the parameters in units of their first values, since alpha is a hundred times smaller than delta. The
function is (E - E0)/|E0| in parts per billion: the surface is so flat that plain energies would drown in their digits.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto.atomic.evaluations import Evaluation, EvaluationLog
from cuanto.atomic.input import TrustRegion
from cuanto.atomic.wtbs import WellTempered
from cuanto.errors import CuantoError, InputError, MissingDependencyError

METHODS = ("auto", "newuoa", "cobyqa")
SCALE = 1e9
REFUSED_AT_LEAST = 1e6  # what a refused set counts as, in the scaled function
GAIN_WORTH_A_ROUND = 1e-11  # relative

EnergyOf = Callable[[WellTempered], float]
Watcher = Callable[[Evaluation], None]


class EnergyFailure(CuantoError):
    """The energy of one set could not be had; the optimiser goes elsewhere."""


@dataclass(frozen=True)
class Optimum:
    """The best set, and everything that was tried on the way."""

    basis: WellTempered
    energy: float
    evaluations: tuple[Evaluation, ...]
    converged: bool
    method: str

    @property
    def gain(self) -> float:
        """Energy of the start minus that of the optimum, relative."""
        first = next(e.energy for e in self.evaluations if e.energy is not None)
        return (first - self.energy) / abs(self.energy)


def optimise_basis(
    start: WellTempered,
    energy_of: EnergyOf,
    trust: TrustRegion | None = None,
    method: str = "auto",
    *,
    rounds: int = 1,
    log: EvaluationLog | None = None,
    watch: Watcher | None = None,
) -> Optimum:
    """The set of lowest energy near `start`.

    A further round begins at the best point of the one before, with the trust region wide again, as long as the last
    one gained something. Evaluations found in the log are not repeated: an interrupted run goes on where it was.
    """
    trust = trust or TrustRegion()
    method = resolve_method(method)
    objective = Objective(start, energy_of, log, watch)
    objective.first()
    converged = False
    for _ in range(rounds):
        left = trust.maxfun - len(objective.evaluations)
        if left < 1:
            break
        before = objective.best
        converged = MINIMISERS[method](objective, trust.rhobeg, trust.rhoend, left)
        if (before - objective.best) < GAIN_WORTH_A_ROUND * SCALE:
            break
    best = min((e for e in objective.evaluations if e.energy is not None), key=lambda e: e.energy or 0.0)
    assert best.energy is not None
    return Optimum(start.at(best.parameters), best.energy, tuple(objective.evaluations), converged, method)


def resolve_method(method: str) -> str:
    """NEWUOA where its package is installed, otherwise COBYQA."""
    if method not in METHODS:
        raise InputError(f"unknown optimiser {method!r}; it may be {', '.join(METHODS)}")
    if method == "cobyqa":
        return method
    try:
        import_module("nlopt")
    except ImportError:
        if method == "auto":
            return "cobyqa"
        raise MissingDependencyError(
            "NEWUOA needs the package nlopt (pip install nlopt); cobyqa works without it"
        ) from None
    return "newuoa"


class Objective:
    """The scaled function of the scaled variables, with a record of what was asked."""

    def __init__(
        self, start: WellTempered, energy_of: EnergyOf, log: EvaluationLog | None, watch: Watcher | None
    ) -> None:
        self.start = start
        self.evaluations: list[Evaluation] = []
        self.best = 0.0
        self.best_x = np.ones(len(start.parameters))
        self._energy_of, self._log, self._watch = energy_of, log, watch
        self._scale = np.array([p if p != 0 else 1.0 for p in start.parameters])
        self._offset = np.array([0.0 if p != 0 else 1.0 for p in start.parameters])  # zero is varied around zero
        self._seen: dict[tuple[float, ...], Evaluation] = {}
        self._origin = 0.0
        self._highest = 0.0

    def first(self) -> None:
        """The energy of the start, which everything is measured from."""
        evaluation = self._evaluate(self.best_x)
        if evaluation.energy is None:
            raise InputError(f"the set to start from has no energy: {evaluation.note}")
        self._origin = evaluation.energy

    def __call__(self, x: Sequence[float] | NDArray[np.float64]) -> float:
        evaluation = self._evaluate(np.array(x, dtype=float))
        if evaluation.energy is None:
            return max(10 * self._highest, REFUSED_AT_LEAST)
        value = (evaluation.energy - self._origin) / abs(self._origin) * SCALE
        self._highest = max(self._highest, value)
        if value < self.best:
            self.best, self.best_x = value, np.array(x, dtype=float)
        return value

    def _evaluate(self, x: NDArray[np.float64]) -> Evaluation:
        parameters = tuple(((x - self._offset) * self._scale).tolist())
        number = len(self.evaluations) + 1
        found = self._seen.get(parameters) or (self._log.find(parameters) if self._log is not None else None)
        if found is None:
            found = self._compute(number, parameters)
            if self._log is not None:
                self._log.append(found)
        self._seen[parameters] = found
        evaluation = found.numbered(number)
        self.evaluations.append(evaluation)
        if self._watch is not None:
            self._watch(evaluation)
        return evaluation

    def _compute(self, number: int, parameters: tuple[float, ...]) -> Evaluation:
        begin = time.perf_counter()
        basis = self.start.at(parameters)
        energy, note = None, basis.objection() or ""
        if not note:
            try:
                energy = float(self._energy_of(basis))
            except EnergyFailure as error:
                note = str(error)
        return Evaluation(number, parameters, energy, note, time.perf_counter() - begin)


def newuoa(objective: Objective, rhobeg: float, rhoend: float, maxfun: int) -> bool:
    """Through NLopt, whose version of NEWUOA takes the trust radii from the step and the tolerance of x."""
    nlopt: Any = import_module("nlopt")
    failure: list[BaseException] = []

    def function(x: NDArray[np.float64], _gradient: NDArray[np.float64]) -> float:
        try:
            return objective(x)
        except BaseException as error:  # NLopt would replace it by its own
            failure.append(error)
            raise nlopt.ForcedStop() from None

    optimiser = nlopt.opt(nlopt.LN_NEWUOA, len(objective.best_x))
    optimiser.set_min_objective(function)
    optimiser.set_initial_step(rhobeg)
    optimiser.set_xtol_abs(rhoend)
    optimiser.set_maxeval(maxfun)
    try:
        optimiser.optimize(objective.best_x.copy())
    except nlopt.RoundoffLimited:
        return True  # steps have become too small to matter
    except nlopt.ForcedStop:
        raise failure[0] from None
    return bool(optimiser.last_optimize_result() != nlopt.MAXEVAL_REACHED)


def cobyqa(objective: Objective, rhobeg: float, rhoend: float, maxfun: int) -> bool:
    """Through SciPy."""
    from scipy.optimize import minimize

    options = {"initial_tr_radius": rhobeg, "final_tr_radius": rhoend, "maxfev": maxfun}
    return bool(minimize(objective, objective.best_x.copy(), method="COBYQA", options=options).success)


MINIMISERS: dict[str, Callable[[Objective, float, float, int], bool]] = {"newuoa": newuoa, "cobyqa": cobyqa}
