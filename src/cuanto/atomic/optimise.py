"""Minimum of the energy over the parameters of a well-tempered set, without derivatives.

NEWUOA: M. J. D. Powell, in Large-Scale Nonlinear Optimization (2006) p. 255, doi:10.1007/0-387-30065-1_16; COBYQA:
T. M. Ragonneau, Z. Zhang, https://www.cobyqa.com. Both build a quadratic model from 2n+1 points in a trust region.

The variables are the parameters divided by their initial values, since alpha is a hundred times smaller than delta. The
function is (E - E0)/|E0| in parts per billion: the surface is so flat that unscaled energies would agree in most
digits.

Every energy is kept in a log. The optimisers are deterministic: given the logged energies, they retrace the same path
without any new calculation and continue where they were interrupted.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto.atomic.input import TrustRegion
from cuanto.atomic.wtbs import WellTempered
from cuanto.errors import CuantoError, InputError, MissingDependencyError, require
from cuanto.journal import JsonLines
from cuanto.system.text import parse_json_numbers

METHODS = ("auto", "newuoa", "cobyqa")
SCALE = 1e9
FAILURE_VALUE = 1e6
"""Smallest value that the scaled function has for a set whose energy could not be computed."""
MIN_ROUND_GAIN = 1e-11
"""Relative gain of a round below which no further one is started."""

EnergyOf = Callable[[WellTempered], float]


class EnergyFailure(CuantoError):
    """The energy of one set could not be computed; the optimiser tries other sets."""


@dataclass(frozen=True)
class Evaluation:
    """One set of parameters with its energy; where it is None, `note` says why."""

    number: int
    parameters: tuple[float, ...]
    energy: float | None
    note: str = ""
    seconds: float = 0.0


class EvaluationLog:
    """The evaluations of one optimisation by parameters, kept in a file if there is a path.

    `problem` describes the optimisation in full. Damaged lines of the file are ignored, and so are those without an
    energy: the next run tries again, as the reason may have been the machine.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, problem: dict[str, Any] | None = None) -> None:
        self._file = None if path is None else JsonLines(path)
        self.known: dict[tuple[float, ...], Evaluation] = {}
        if self._file is None:
            return
        lines, plain = list(self._file.read()), json.loads(json.dumps(problem))
        if not lines:
            require(self._file.is_truncated('{"problem"'), f"{path} is not a log of an optimisation; give another name")
            self._file.append({"problem": plain})
            return
        if (stored := lines[0].get("problem")) != plain:
            old = stored if isinstance(stored, dict) else plain
            different = next((f" ({key} differs)" for key, value in plain.items() if old.get(key) != value), "")
            raise InputError(f"{path} belongs to another optimisation{different}; give another name")
        for line in lines[1:]:
            if found := _logged(line):
                self.known.setdefault(found.parameters, found)

    def append(self, evaluation: Evaluation) -> None:
        """Remember an evaluation and write its line."""
        self.known[evaluation.parameters] = evaluation
        if self._file is not None:
            self._file.append(asdict(evaluation))


def _logged(line: dict[str, Any]) -> Evaluation | None:
    """The evaluation of a line of a log; None if there is no energy or the line is damaged."""
    try:
        parameters = parse_json_numbers(line.get("parameters"))
        (energy,) = parse_json_numbers([line.get("energy")])
    except InputError:
        return None
    return Evaluation(0, tuple(parameters), energy)


@dataclass(frozen=True)
class Optimum:
    """The best set, and everything that was tried."""

    basis: WellTempered
    energy: float
    evaluations: tuple[Evaluation, ...]
    converged: bool
    method: str

    @property
    def gain(self) -> float:
        """Relative difference between the energies of the start and of the optimum."""
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
    watch: Callable[[Evaluation], None] | None = None,
) -> Optimum:
    """Find the set of lowest energy near `start`. Each further round starts from the best point so far with the initial
    trust region, as long as the last round gained enough. Evaluations found in the log are not repeated: an interrupted
    run continues where it stopped.
    """
    trust = trust or TrustRegion()
    method = resolve_method(method)
    objective = Objective(start, energy_of, log or EvaluationLog(), watch)
    converged = False
    for _ in range(rounds):
        left = trust.maxfun - len(objective.evaluations)
        if left < 1:
            break
        before = objective.best
        converged = MINIMISERS[method](objective, trust.rhobeg, trust.rhoend, left)
        if (before - objective.best) < MIN_ROUND_GAIN * SCALE:
            break
    energy, i = min((e.energy, i) for i, e in enumerate(objective.evaluations) if e.energy is not None)
    best = start.at(objective.evaluations[i].parameters)
    return Optimum(best, energy, tuple(objective.evaluations), converged, method)


def resolve_method(method: str) -> str:
    """NEWUOA where its package is installed, otherwise COBYQA."""
    require(method in METHODS, f"unknown optimiser {method!r}; it may be {', '.join(METHODS)}")
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


def evaluate(basis: WellTempered, energy_of: EnergyOf, log: EvaluationLog, number: int = 0) -> Evaluation:
    """The energy of a set, from the log if it is known there."""
    if basis.parameters in log.known:
        return replace(log.known[basis.parameters], number=number)
    begin = time.perf_counter()
    energy, note = None, basis.invalid_reason() or ""
    if not note:
        try:
            energy = float(energy_of(basis))
        except EnergyFailure as error:
            note = str(error)
    found = Evaluation(number, basis.parameters, energy, note, time.perf_counter() - begin)
    log.append(found)
    return found


class Objective:
    """The scaled function of the scaled variables, zero at the start, and its evaluations."""

    def __init__(
        self,
        start: WellTempered,
        energy_of: EnergyOf,
        log: EvaluationLog,
        watch: Callable[[Evaluation], None] | None,
    ) -> None:
        self.start, self.evaluations = start, list[Evaluation]()
        self.best, self.best_x = 0.0, np.ones(len(start.parameters))
        self._energy_of, self._log, self._watch = energy_of, log, watch
        self._scale = np.array([p if p != 0 else 1.0 for p in start.parameters])
        self._offset = np.array([0.0 if p != 0 else 1.0 for p in start.parameters])  # zero has no scale
        self._highest = 0.0
        first = self._evaluate(self.best_x)
        if first.energy is None:
            raise InputError(f"the set to start from has no energy: {first.note}")
        self._origin = first.energy

    def __call__(self, x: Sequence[float] | NDArray[np.float64]) -> float:
        evaluation = self._evaluate(np.array(x, dtype=float))
        if evaluation.energy is None:
            return max(10 * self._highest, FAILURE_VALUE)
        value = (evaluation.energy - self._origin) / abs(self._origin) * SCALE
        self._highest = max(self._highest, value)
        if value < self.best:
            self.best, self.best_x = value, np.array(x, dtype=float)
        return value

    def _evaluate(self, x: NDArray[np.float64]) -> Evaluation:
        basis = self.start.at(((x - self._offset) * self._scale).tolist())
        self.evaluations.append(evaluate(basis, self._energy_of, self._log, len(self.evaluations) + 1))
        if self._watch is not None:
            self._watch(self.evaluations[-1])
        return self.evaluations[-1]


def newuoa(objective: Objective, rhobeg: float, rhoend: float, maxfun: int) -> bool:
    """Minimise by NLopt, whose version of NEWUOA takes the trust radii from the step and the tolerance of x."""
    nlopt: Any = import_module("nlopt")
    failure: list[BaseException] = []

    def function(x: NDArray[np.float64], _gradient: NDArray[np.float64]) -> float:
        try:
            return objective(x)
        except BaseException as error:  # NLopt would raise its own error instead
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
    """Minimise by SciPy."""
    from scipy.optimize import minimize

    options = {"initial_tr_radius": rhobeg, "final_tr_radius": rhoend, "maxfev": maxfun}
    return bool(minimize(objective, objective.best_x.copy(), method="COBYQA", options=options).success)


MINIMISERS: dict[str, Callable[[Objective, float, float, int], bool]] = {"newuoa": newuoa, "cobyqa": cobyqa}
