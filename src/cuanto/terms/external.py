"""Surroundings of a molecule: point charges and a uniform electric field."""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import field as _field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cuanto.errors import InputError

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Surroundings:
    """Point charges (e) at positions (Bohr), and a field (Hartree/(e Bohr)): a dipole mu has the energy -mu . field.

    The interaction of the charges with each other and with the field is not included.
    """

    charges: Array = _field(default_factory=lambda: np.zeros(0))
    positions: Array = _field(default_factory=lambda: np.zeros((0, 3)))
    field: tuple[float, float, float] = (0.0, 0.0, 0.0)

    @classmethod
    def of(
        cls, charges: ArrayLike | None = None, positions: ArrayLike | None = None, field: ArrayLike | None = None
    ) -> Surroundings:
        """Check and convert what a user gives."""
        if (charges is None) != (positions is None):
            raise InputError("point charges need both charges and positions")
        q = _numbers([] if charges is None else charges, "point charges").reshape(-1)
        R = _numbers([] if positions is None else positions, "positions of point charges").reshape(-1, 3)
        if len(q) != len(R):
            raise InputError(f"{len(q)} point charges have {len(R)} positions: give one row of three for each")
        x, y, z = _vector(field)
        return cls(q, R, (x, y, z))

    @property
    def keywords(self) -> dict[str, Any]:
        """Keywords of `cuanto.energy` as plain data; empty if there are no surroundings."""
        found: dict[str, Any] = {}
        if len(self.charges):
            found["point_charges"] = [self.charges.tolist(), self.positions.tolist()]
        return found | ({"field": list(self.field)} if any(self.field) else {})


def _vector(given: ArrayLike | None) -> list[float]:
    vector = _numbers(np.zeros(3) if given is None else given, "field")
    if vector.shape != (3,):
        raise InputError(f"a field has three components, not an array of shape {vector.shape}")
    return [float(value) for value in vector]


def _numbers(given: ArrayLike, what: str) -> Array:
    try:
        array = np.array(given, dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"{what} must be numbers") from None
    if not np.isfinite(array).all() or (what.startswith("positions") and array.size % 3):
        raise InputError(f"{what} must be finite numbers, three for every position")
    return array
