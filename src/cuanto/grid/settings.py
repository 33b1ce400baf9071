"""Settings of a grid: a named level or numbers of points, the quadrature rules, and the grouping of points."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from math import prod
from typing import Any

from cuanto.errors import InputError
from cuanto.grid.rules import DEGREES, RADIAL_RULES, lebedev
from cuanto.options import Option, choice, number, option, require_known

Level = str | tuple[int, int]

LEVELS: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "coarse": ((35, 50, 55, 60, 65, 70, 75), (110, 110, 194, 194, 194, 194, 194)),
    "medium": ((45, 60, 70, 75, 80, 85, 90), (194, 194, 302, 302, 302, 302, 302)),
    "fine": ((50, 75, 80, 90, 95, 100, 105), (302, 302, 434, 590, 590, 590, 590)),
    "ultrafine": ((75, 99, 105, 115, 120, 125, 130), (590, 590, 590, 770, 770, 770, 770)),
    "superfine": ((120, 150, 155, 165, 170, 175, 180), (974, 974, 974, 974, 974, 974, 974)),
}
"""Radial shells, and points of a full shell, by the period of the element."""
LAST_OF_PERIOD = (2, 10, 18, 36, 54, 86, 118)
PARTITIONS = ("becke", "becke-bragg", "becke-plain", "stratmann")
PRUNINGS = ("auto", "nwchem", "none")
STORES = ("auto", "keep", "recompute")
DENSITIES = ("auto", "orbitals", "matrix")


@dataclass(frozen=True, kw_only=True)
class GridSettings:
    """A grid and how functions are integrated on it.

    `level`: coarse, medium, fine, ultrafine, superfine, or (radial shells, points per shell) for every element.
    `partition`: Becke's cells shifted by Treutler's function of Bragg-Slater radii (`becke`), by Becke's own
    (`becke-bragg`), or not (`becke-plain`); `stratmann`: cells of finite range, for large molecules.
    `pruning`: fewer points per shell near the nucleus and far outside (`nwchem`); `auto`: for named levels only.
    `cube_edge` (Bohr) and `sphere_fraction` (of the radial shells) of the groups of points: by a cost model if None.
    `threshold`: functions that are smaller in a whole group are neglected there.
    `store`: keep the values of functions, or recompute them in every pass; `density` from orbitals or from the matrix.
    `batch_bytes`: working memory of a pass on a device.
    `response`: include the motion of points and the change of weights in gradients, which are then derivatives of the
    energy; without it only functions move, as in many programs.
    """

    level: Level = "fine"
    radial: str = choice("treutler", RADIAL_RULES, "Radial rule.")
    partition: str = choice("becke", PARTITIONS, "Partition of space among the atoms.")
    pruning: str = choice("auto", PRUNINGS, "Fewer points on some shells.")
    cube_edge: float | None = option(None, "number", "Edge of cubes.", low=0.5, high=1000.0, unit="Bohr")
    sphere_fraction: float | None = option(
        None, "number", "Fraction of the radial shells grouped by spheres.", low=0.0, high=1.0
    )
    threshold: float = number(3e-9, 1e-20, 1e-3, "Smallest significant function.")
    store: str = choice("auto", STORES, "Store the values of functions.")
    density: str = choice("auto", DENSITIES, "Source of the density.")
    batch_bytes: int = number(1 << 30, 1 << 20, 1 << 50, "Working memory on a device.")
    response: bool = option(True, "switch", "Include the response of the grid in gradients.")

    def __post_init__(self) -> None:
        object.__setattr__(self, "level", _level(self.level))
        for one in _options():
            one.check(getattr(self, one.name))

    @classmethod
    def of(
        cls, given: GridSettings | str | Sequence[int] | Mapping[str, Any] | None = None, **more: Any
    ) -> GridSettings:
        """Make settings from user input: settings (also as a dictionary), a level such as "fine", or "99,590", or (99,
        590)."""
        if isinstance(given, Mapping):
            require_known(given, asdict(cls()), "unknown grid setting")
            return cls(**given, **more)
        if isinstance(given, GridSettings):
            return replace(given, **more) if more else given
        return cls(**more) if given is None else cls(level=_level(given), **more)

    @property
    def plain(self) -> Level | dict[str, Any]:
        """Plain data from which `of` makes the same settings: the level alone, or with all non-default settings."""
        default = asdict(GridSettings(level=self.level))
        changed = {name: value for name, value in asdict(self).items() if value != default[name]}
        return {"level": self.level, **changed} if changed else self.level

    def numbers(self, Z: int) -> tuple[int, int]:
        """Radial shells and points of a full shell of an element."""
        if isinstance(self.level, tuple):
            return self.level
        shells, points = LEVELS[self.level]
        period = next(i for i, last in enumerate(LAST_OF_PERIOD) if last >= Z)
        return shells[period], points[period]

    def points(self, numbers: Iterable[int]) -> int:
        """Approximate number of points of a molecule: pruning leaves half of them."""
        return sum(prod(self.numbers(int(Z))) for Z in numbers) // (2 if self.pruned else 1)

    @property
    def pruned(self) -> bool:
        """Whether inner and outer shells have fewer points."""
        return self.pruning == "nwchem" or (self.pruning == "auto" and isinstance(self.level, str))


@cache
def _options() -> tuple[Option, ...]:
    """The options among the settings."""
    known = [(one.name, one.metadata["option"]) for one in fields(GridSettings) if "option" in one.metadata]
    return tuple(replace(given, name=name) for name, given in known)


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
        lebedev(angular)  # the error names the nearest rule
    return radial, angular
