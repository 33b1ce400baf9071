"""What grid is wanted: a named level or exact numbers, the rules behind it, and how points are grouped.

Checked once here, trusted everywhere else.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import prod
from typing import Any

from cuanto.errors import InputError
from cuanto.grid.angular import DEGREES, lebedev
from cuanto.grid.radial import RADIAL_RULES

Level = str | tuple[int, int]

LEVELS: dict[str, tuple[tuple[int, ...], int]] = {
    "coarse": ((35, 50, 55, 60, 65, 70, 75), 110),
    "medium": ((45, 60, 70, 75, 80, 85, 90), 194),
    "fine": ((50, 75, 80, 90, 95, 100, 105), 302),
    "ultrafine": ((75, 99, 105, 115, 120, 125, 130), 590),
    "superfine": ((120, 150, 155, 165, 170, 175, 180), 974),
}
"""Radial shells by the period of the element, and points of a full shell."""
LAST_OF_PERIOD = (2, 10, 18, 36, 54, 86, 118)
PARTITIONS = ("becke", "becke-bragg", "becke-plain", "stratmann")
PRUNINGS = ("auto", "nwchem", "none")
STORES = ("auto", "keep", "recompute")
DENSITIES = ("auto", "orbitals", "matrix")


@dataclass(frozen=True, kw_only=True)
class GridSettings:
    """A grid and the way it is worked through.

    `level`: coarse, medium, fine, ultrafine, superfine, or (radial shells, points per shell) for every element.
    `partition`: Becke's cells shifted by Treutler's function of Bragg-Slater radii (`becke`), by Becke's own
    (`becke-bragg`), or not (`becke-plain`); `stratmann`: cells with a finite reach, for large molecules.
    `pruning`: fewer points per shell near the nucleus and far outside (`nwchem`); `auto`: for levels, not for numbers.
    `cube_edge` (Bohr) and `sphere_fraction` (of the radial shells) of the groups of points: by a cost model when None.
    `threshold`: functions that stay below it in a whole group are left out there.
    `store`: keep the functions' values, or make them in every pass; `density`: from occupied orbitals or the matrix.
    `batch_bytes`: working memory of a pass on a device.
    `response`: forces are derivatives of the energy, with points and weights that follow the atoms; without it, of the
    functions alone, as in many programs.
    """

    level: Level = "fine"
    radial: str = "treutler"
    partition: str = "becke"
    pruning: str = "auto"
    cube_edge: float | None = None
    sphere_fraction: float | None = None
    threshold: float = 3e-9
    store: str = "auto"
    density: str = "auto"
    batch_bytes: int = 1 << 30
    response: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "level", _level(self.level))
        choices = {
            "radial": RADIAL_RULES,
            "partition": PARTITIONS,
            "pruning": PRUNINGS,
            "store": STORES,
            "density": DENSITIES,
        }
        for name, known in choices.items():
            if getattr(self, name) not in known:
                raise InputError(f"unknown {name} {getattr(self, name)!r} of a grid: choose {', '.join(known)}")
        if not isinstance(self.response, bool):
            raise InputError(f"response of a grid is true or false, {self.response!r} was given")
        _within("cube_edge", self.cube_edge, 0.5, 1000.0)
        _within("sphere_fraction", self.sphere_fraction, 0.0, 1.0)
        _within("threshold", self.threshold, 1e-20, 1e-3)
        _within("batch_bytes", self.batch_bytes, 1 << 20, 1 << 50)

    @classmethod
    def of(
        cls, given: GridSettings | str | Sequence[int] | Mapping[str, Any] | None = None, **more: Any
    ) -> GridSettings:
        """From what a user gave: settings (also by name), a level such as "fine", or "99,590", or (99, 590)."""
        if isinstance(given, Mapping):
            if unknown := given.keys() - asdict(cls()):
                raise InputError(f"unknown {min(unknown)!r} of a grid: choose {', '.join(asdict(cls()))}")
            return cls(**given, **more)
        if isinstance(given, GridSettings):
            return replace(given, **more) if more else given
        return cls(**more) if given is None else cls(level=_level(given), **more)

    @property
    def plain(self) -> Level | dict[str, Any]:
        """What `of` makes the same settings from: the level, or what is not as usual by name."""
        usual = asdict(GridSettings(level=self.level))
        changed = {name: value for name, value in asdict(self).items() if value != usual[name]}
        return {"level": self.level, **changed} if changed else self.level

    def numbers(self, Z: int) -> tuple[int, int]:
        """Radial shells and points of a full shell of an element."""
        if isinstance(self.level, tuple):
            return self.level
        shells, points = LEVELS[self.level]
        period = next(i for i, last in enumerate(LAST_OF_PERIOD) if last >= Z)
        return shells[period], points

    def points(self, numbers: Iterable[int]) -> int:
        """About how many of a molecule: pruning leaves half of them."""
        return sum(prod(self.numbers(int(Z))) for Z in numbers) // (2 if self.pruned else 1)

    @property
    def pruned(self) -> bool:
        """Fewer points on the inner and outer shells?"""
        return self.pruning == "nwchem" or (self.pruning == "auto" and isinstance(self.level, str))


def _level(given: object) -> Level:
    if isinstance(given, str):
        name = given.strip().lower()
        if name in LEVELS:
            return name
        parts = name.strip("()[] ").replace("x", ",").split(",")
        if len(parts) == 2 and all(part.strip().isdecimal() for part in parts):
            return _numbers(int(parts[0]), int(parts[1]))
        close = difflib.get_close_matches(name, LEVELS, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"choose {', '.join(LEVELS)}, or numbers such as 99,590"
        raise InputError(f"unknown grid {given!r}; {hint}")
    if isinstance(given, Sequence) and len(given) == 2 and all(isinstance(n, int) for n in given):
        return _numbers(int(given[0]), int(given[1]))
    raise InputError(f"a grid is a level ({', '.join(LEVELS)}) or (radial, angular), {given!r} was given")


def _numbers(radial: int, angular: int) -> tuple[int, int]:
    if not 1 <= radial <= 10_000:
        raise InputError(f"{radial} radial shells of a grid: give a number from 1 to 10000")
    if angular not in DEGREES:
        lebedev(angular)  # says which rules there are
    return radial, angular


def _within(name: str, value: float | None, low: float, high: float) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise InputError(f"{name} of a grid must be a number, {value!r} was given")
    if not low <= value <= high:
        raise InputError(f"{name} of a grid is {value:g}: give a number from {low:g} to {high:g}")
