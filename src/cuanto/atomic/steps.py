"""The eight steps to the smallest well-tempered set of an element that reaches an accuracy.

D. Hennessey, thesis (Alberta 2018), section 2.1.1. From the highest momentum down to s: the fewest functions (1:b) with
which the optimised energy is still accurate (steps 1 to 5); then, down to p, as many diffuse functions dropped, (a:b),
as the accuracy allows (6 to 8). A chain of steps is a generator: it yields batches of independent sets to optimise and
is sent their outcomes, so that any scheduler can run them.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass, field, replace

from cuanto.atomic.species import LETTERS
from cuanto.atomic.wtbs import Range, WellTempered
from cuanto.errors import InputError

PROBES = 3  # sets tried at once by bisection
FULL_SCAN_UP_TO = 24
Parameters = tuple[float, ...]


@dataclass(frozen=True)
class Trial:
    """A set to optimise: ranges by angular momentum, and candidate starting parameters, of which the best are used.

    A trial with a `name` is not an optimisation, but the energy of the set of that name.
    """

    ranges: dict[str, Range]
    starts: tuple[Parameters, ...]
    name: str = ""

    @property
    def text(self) -> str:
        return self.name or "".join(f"{letter}({a}:{b})" for letter, (a, b) in self.ranges.items())


@dataclass(frozen=True)
class Outcome:
    """The result of a trial; without an energy it failed, and `error` says why."""

    energy: float | None
    parameters: Parameters = ()
    evaluations: int = 0
    error: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class Step:
    """One selection: relative errors of the sets tried, and the set chosen."""

    name: str
    tried: tuple[tuple[str, float | None], ...]
    chosen: str


@dataclass(frozen=True)
class SearchResult:
    """The result of a search; `error` is relative to the limit."""

    element: str
    ranges: dict[str, Range]
    parameters: Parameters
    energy: float
    reference: float
    error: float
    threshold: float
    steps: tuple[Step, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def basis(self) -> WellTempered:
        return WellTempered.shared(self.parameters, self.ranges)

    @property
    def accurate(self) -> bool:
        return self.error <= self.threshold


Batches = Generator[list[Trial], list[Outcome], SearchResult]


@dataclass
class Chain:
    """The search of one element. `occupied`: number of shells by angular momentum, s first; no range may be shorter."""

    element: str
    occupied: tuple[int, ...]
    reference: float
    threshold: float
    size: int
    start: Parameters
    scan: str = "auto"
    _steps: list[Step] = field(default_factory=list, init=False)
    _warnings: list[str] = field(default_factory=list, init=False)

    def run(self) -> Batches:
        """Run steps 1 to 8."""
        letters = LETTERS[: len(self.occupied)]
        current = Trial(dict.fromkeys(letters, (1, self.size)), (self.start,))
        (outcome,) = yield [current]
        if outcome.energy is None:
            raise InputError(f"{self.element}: the first set, {current.text}, failed: {outcome.error}")
        self._steps.append(Step("start", ((current.text, self.error_of(outcome)),), current.text))
        fewest = 1
        for letter in reversed(letters):
            low = max(fewest, self.occupied[letters.index(letter)])
            options: list[Range] = [(1, b) for b in range(low, self.size)]
            current, outcome = yield from self._select("fewest", letter, options, current, outcome)
            fewest = current.ranges[letter][1]
        for letter in reversed(letters[1:]):
            last = current.ranges[letter][1]
            options = [(a, last) for a in range(last - self.occupied[letters.index(letter)] + 1, 1, -1)]
            current, outcome = yield from self._select("diffuse", letter, options, current, outcome)
        return self._result(current, outcome)

    def error_of(self, outcome: Outcome) -> float | None:
        """Error relative to the limit, if there is an energy."""
        if outcome.energy is None:
            return None
        return abs((outcome.energy - self.reference) / self.reference)

    def accurate(self, outcome: Outcome) -> bool:
        error = self.error_of(outcome)
        return error is not None and error <= self.threshold

    def _select(
        self, kind: str, letter: str, options: list[Range], current: Trial, outcome: Outcome
    ) -> Generator[list[Trial], list[Outcome], tuple[Trial, Outcome]]:
        """Select the first accurate set of the options, which are sorted by size; the current set if there is none."""
        trials = [self._trial(letter, option, current, outcome.parameters) for option in options]
        known: dict[int, Outcome] = {}
        full = self.scan == "full" or (self.scan == "auto" and self.size <= FULL_SCAN_UP_TO)
        low, high = 0, len(trials)  # the answer is in low..high; len(trials) stands for the current set
        while low < high:
            probes = list(range(low, high)) if full else self._probes(kind, low, high)
            outcomes = yield [trials[i] for i in probes]
            known |= dict(zip(probes, outcomes, strict=True))
            good = [i for i in probes if self.accurate(known[i])]
            high = good[0] if good else high
            low = max([low, *(i + 1 for i in probes if i < high)])
            low = high if full else low
        chosen, result = (trials[high], known[high]) if high in known else (current, outcome)
        tried = tuple((trials[i].text, self.error_of(known[i])) for i in sorted(known))
        self._steps.append(Step(f"{kind} {letter}", tried, chosen.text))
        for i in sorted(known):
            if known[i].energy is None:
                self._warnings.append(f"{trials[i].text} failed: {known[i].error}")
        return replace(chosen, starts=(result.parameters,)), result

    @staticmethod
    def _probes(kind: str, low: int, high: int) -> list[int]:
        """Options to try next: evenly spaced ones, or the largest sets if diffuse functions are dropped, since only a
        few can be."""
        return evenly_spaced(low, high, PROBES) if kind == "fewest" else list(range(max(low, high - PROBES), high))

    def _trial(self, letter: str, limits: Range, current: Trial, parameters: Parameters) -> Trial:
        ranges = {**current.ranges, letter: limits}
        starts = [parameters]
        if letter == "s":
            starts.append(stretch(parameters, current.ranges["s"][1], limits[1]))
        return Trial(ranges, tuple(dict.fromkeys(starts)))

    def _result(self, current: Trial, outcome: Outcome) -> SearchResult:
        error = self.error_of(outcome)
        assert outcome.energy is not None and error is not None
        if error > self.threshold:
            self._warnings.append(
                f"no set of up to {self.size} functions reaches an error of {self.threshold:.1e}, only {error:.1e}"
            )
        return SearchResult(
            self.element,
            current.ranges,
            outcome.parameters,
            outcome.energy,
            self.reference,
            error,
            self.threshold,
            tuple(self._steps),
            tuple(self._warnings),
        )


def evenly_spaced(low: int, high: int, count: int) -> list[int]:
    """Up to `count` evenly spaced whole numbers of low..high-1."""
    found = {low + (high - low) * (i + 1) // (count + 1) for i in range(count)}
    return sorted(min(i, high - 1) for i in found)


def stretch(parameters: Parameters, before: int, after: int) -> Parameters:
    """Parameters with another beta, so that `after` functions span the range that `before` functions did."""
    alpha, beta, delta, gamma = parameters[:4]
    if after == before or after < 2:
        return parameters

    def growth(count: int) -> float:
        return sum(math.log1p(gamma * (k / count) ** delta) for k in range(2, count + 1))

    log_beta = ((before - 1) * math.log(beta) + growth(before) - growth(after)) / (after - 1)
    return (alpha, max(math.exp(log_beta), 1.05), delta, gamma)
