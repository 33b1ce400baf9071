"""Every energy that an optimisation asked for, kept in a file line by line, so that no work is lost.

The optimisers are deterministic: started again with the known energies they walk the same path and arrive, without a
single calculation, where they were interrupted. A line is written at once and whole; half a line at the end, left by a
crash, is dropped.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from cuanto.errors import InputError
from cuanto.journal import JsonLines


@dataclass(frozen=True)
class Evaluation:
    """One set of parameters and its energy, None where there is none; `note` says why."""

    number: int
    parameters: tuple[float, ...]
    energy: float | None
    note: str = ""
    seconds: float = 0.0
    replayed: bool = False

    def numbered(self, number: int) -> Evaluation:
        return replace(self, number=number)


class EvaluationLog:
    """The evaluations of one optimisation; `problem` says which one, in full."""

    def __init__(self, path: str | os.PathLike[str], problem: dict[str, Any]) -> None:
        self._file = JsonLines(path)
        self._known: dict[tuple[float, ...], Evaluation] = {}
        lines = list(self._file.read())
        plain = json.loads(json.dumps(problem))
        if not lines:
            if not self._file.broken_off('{"problem"'):
                raise InputError(f"{path} is not a log of an optimisation; give another name")
            self._file.append({"problem": plain})
            return
        if lines[0].get("problem") != plain:
            raise InputError(f"{path} belongs to another optimisation{difference(lines[0], plain)}; give another name")
        for evaluation in evaluations_of(lines[1:]):
            self._known.setdefault(evaluation.parameters, replace(evaluation, replayed=True))

    def __len__(self) -> int:
        return len(self._known)

    def find(self, parameters: tuple[float, ...]) -> Evaluation | None:
        return self._known.get(parameters)

    def append(self, evaluation: Evaluation) -> None:
        values = asdict(evaluation)
        del values["replayed"]
        self._file.append(values)


def evaluations_of(lines: Iterable[dict[str, Any]]) -> Iterator[Evaluation]:
    """Those lines that are evaluations."""
    for line in lines:
        if isinstance(line.get("parameters"), list) and "energy" in line:
            yield Evaluation(
                int(line.get("number", 0)),
                tuple(map(float, line["parameters"])),
                None if line["energy"] is None else float(line["energy"]),
                str(line.get("note", "")),
                float(line.get("seconds", 0.0)),
            )


def read_evaluations(path: str | os.PathLike[str]) -> list[Evaluation]:
    """Of a finished or interrupted optimisation, in the order of the file."""
    lines = list(JsonLines(path).read())
    if not lines or "problem" not in lines[0]:
        raise InputError(f"{path} is not a log of an optimisation")
    return list(evaluations_of(lines[1:]))


def difference(header: dict[str, Any], problem: dict[str, Any]) -> str:
    """The first thing in which two problems differ, for a message."""
    stored = header.get("problem")
    if not isinstance(stored, dict):
        return ""
    for key, value in problem.items():
        if stored.get(key) != value:
            return f" ({key} differs)"
    return ""
