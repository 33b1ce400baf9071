"""The optimisation of an atom's basis in `cuanto atom --optimise`."""

from __future__ import annotations

import json as json_format
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cuanto.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from cuanto.atomic.input import AtomInput, TrustRegion
    from cuanto.atomic.optimise import Evaluation, Optimum


def optimise(
    console: Console, job: AtomInput, device: str, method: str, max_evaluations: int | None, log: Path | None
) -> Optimum:
    """Optimise the well-tempered set of the job and show the progress."""
    from cuanto.atomic.input import TrustRegion
    from cuanto.atomic.job import AtomEnergy, described
    from cuanto.atomic.optimise import EvaluationLog, optimise_basis, resolve_method
    from cuanto.atomic.report import parameter_texts
    from cuanto.atomic.wtbs import WellTempered

    basis = job.basis
    if not isinstance(basis, WellTempered):
        raise InputError("only well-tempered sets can be optimised: use --basis wtbs or bastype='wtbs'")
    trust = job.optimise or TrustRegion(iprint=2)
    if max_evaluations is not None:
        trust = replace(trust, maxfun=max_evaluations)
    problem = described(job)
    path = _default_log(job, problem) if log is None else log
    kept = EvaluationLog(path, problem)
    method = resolve_method(method)
    known = f", {len(kept.known)} evaluations known" if kept.known else ""
    console.print(f"optimising with {method.upper()}, log {path}{known}", markup=False)
    rounds, energy_of = 1 if job.optimise else 3, AtomEnergy(job, device)
    try:
        with Progress(console, trust) as progress:
            found = optimise_basis(basis, energy_of, trust, method, rounds=rounds, log=kept, watch=progress)
    except KeyboardInterrupt:
        console.print(f"interrupted; the same command with --log {path} continues", markup=False)
        raise
    state = "optimum" if found.converged else f"NOT converged in {len(found.evaluations)} evaluations; best so far"
    if job.optimise is None or trust.iprint >= 1 or not found.converged:
        console.print(f"{len(found.evaluations)} evaluations, relative gain {found.gain:.2e}")
    console.print(f"{state}: " + ", ".join(parameter_texts(found.basis)))
    return found


def _default_log(job: AtomInput, problem: dict[str, Any]) -> Path:
    """A file name that is unique to the optimisation."""
    import hashlib

    from cuanto.atomic.report import symbol_of_charge

    digest = hashlib.sha256(json_format.dumps(problem, sort_keys=True).encode()).hexdigest()[:8]
    name = symbol_of_charge(job.nucleus.charge).replace("=", "")
    return Path(f"cuanto-{name}-{digest}.jsonl")


class Progress:
    """A status line on a terminal, and as many printed lines as `iprint` asks for."""

    def __init__(self, console: Console, trust: TrustRegion) -> None:
        self.console, self.iprint = console, trust.iprint
        self._best: Evaluation | None = None
        self._radius = trust.rhobeg
        self._status: Any = None

    def __enter__(self) -> Progress:
        if self.console.is_terminal and self.iprint < 3:
            self._status = self.console.status("optimising")
            self._status.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._status is not None:
            self._status.stop()

    def __call__(self, evaluation: Evaluation) -> None:
        best = self._best
        distance = self._distance(evaluation)
        if evaluation.energy is not None and (best is None or best.energy is None or evaluation.energy < best.energy):
            self._best = evaluation
        shrunk = 0 < distance < 0.1 * self._radius
        if self.iprint >= 3 or (self.iprint == 2 and (shrunk or best is None)):
            self.console.print(self._text(evaluation if self.iprint >= 3 else self._best or evaluation), markup=False)
        if shrunk:
            self._radius *= 0.1  # estimated from the steps: the optimisers do not report it
        if self._status is not None and self._best is not None:
            self._status.update(f"evaluation {evaluation.number}, best {self._best.energy:.12f}")

    def _distance(self, evaluation: Evaluation) -> float:
        """From the best point, relative to its parameters."""
        if self._best is None:
            return 0.0
        pairs = zip(evaluation.parameters, self._best.parameters, strict=True)
        return float(max(abs(x - y) / (abs(y) or 1.0) for x, y in pairs))

    @staticmethod
    def _text(evaluation: Evaluation) -> str:
        energy = f"{evaluation.energy:.12f}" if evaluation.energy is not None else f"refused: {evaluation.note}"
        return f"{evaluation.number:6d}  {energy}  " + "  ".join(f"{p:.7g}" for p in evaluation.parameters)
