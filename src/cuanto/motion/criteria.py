"""Convergence of an optimisation: four criteria with Gaussian's values, and a limit on the predicted energy change.

All must be met. The gradient is that of the current geometry; the displacement is that of the next step (as in Gaussian
and in H. B. Schlegel, J. Comput. Chem. 3, 214 (1982), doi:10.1002/jcc.540030212), after superposition unless there are
point charges or a field. Each is measured by the root mean square and by the largest absolute value of its Cartesian
components. If the gradient is a hundred times below its limits, the surface is flat, and neither displacement nor
energy change matters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass, fields
from typing import Any

import numpy as np

from cuanto.arrays import Array
from cuanto.errors import InputError
from cuanto.options import require_known

FLAT_FRACTION = 0.01
"""Fraction of the limits of the gradient below which nothing else matters."""


@dataclass(frozen=True)
class Criteria:
    """Limits of root mean square and largest component: gradient in Hartree/Bohr, displacement in Bohr."""

    gradient_rms: float
    gradient_max: float
    displacement_rms: float
    displacement_max: float

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1:
                raise InputError(f"convergence: {name} is {value!r}: give a number between 0 and 1")

    @classmethod
    def of(cls, given: str | Mapping[str, Any] | Criteria) -> Criteria:
        """Make criteria from a name or from values by name; values that are not given are those of `normal`."""
        if isinstance(given, Criteria):
            return given
        if isinstance(given, Mapping):
            require_known(given, [one.name for one in fields(cls)], "convergence: unknown key")
            return cls(**{**vars(PRESETS["normal"]), **given})
        if not isinstance(given, str) or given.lower() not in PRESETS:
            raise InputError(f"unknown convergence {given!r:.60}: choose {', '.join(PRESETS)}")
        return PRESETS[given.lower()]

    def met(self, measures: Measures) -> tuple[bool, bool, bool, bool]:
        """Which of the four criteria are met."""
        first, second, third, fourth = (
            value <= limit for value, limit in zip(astuple(measures), astuple(self), strict=True)
        )
        return first, second, third, fourth

    @property
    def energy(self) -> float:
        """Limit of the energy change that is predicted for the next step, Hartree.

        This is a further condition, because in a large molecule many small components add up. It is 1e-6 Hartree for
        `normal` and tighter criteria.
        """
        return max(1e-6, self.gradient_max * self.displacement_max)

    def flat(self, measures: Measures) -> bool:
        """Whether the gradient is so small that nothing else matters."""
        small = (FLAT_FRACTION * self.gradient_rms, FLAT_FRACTION * self.gradient_max)
        return measures.gradient_rms <= small[0] and measures.gradient_max <= small[1]


PRESETS = {
    "loose": Criteria(1.7e-3, 2.5e-3, 6.7e-3, 1e-2),
    "normal": Criteria(3e-4, 4.5e-4, 1.2e-3, 1.8e-3),
    "tight": Criteria(1e-5, 1.5e-5, 4e-5, 6e-5),
    "verytight": Criteria(1e-6, 2e-6, 4e-6, 6e-6),
}
"""Gaussian 16's values, by the names that Gaussian and other programs use."""


@dataclass(frozen=True)
class Measures:
    """Values that are compared with the criteria; the displacement is NaN if there is no next step."""

    gradient_rms: float
    gradient_max: float
    displacement_rms: float
    displacement_max: float

    @classmethod
    def of(cls, gradient_ax: Array, displacement_ax: Array | None) -> Measures:
        """Root mean squares and largest components."""
        undefined = (float("nan"), float("nan"))
        moved = undefined if displacement_ax is None else size(displacement_ax)
        return cls(*size(gradient_ax), *moved)


def require_stationary(gradient_ax: Array) -> None:
    """Refuse to follow a reaction path from a point that does not even meet the loose criteria."""
    loose, (rms, largest) = PRESETS["loose"], size(gradient_ax)
    if rms > loose.gradient_rms or largest > loose.gradient_max:
        raise InputError(
            f"no reaction path starts here: the largest force is {largest:.1e} Hartree/Bohr, not zero as in a "
            "transition state; find that first, with ts (--ts on the command line) as well"
        )


def size(values: Array) -> tuple[float, float]:
    """Root mean square and largest absolute value."""
    return float(np.sqrt(np.mean(values**2))), float(np.abs(values).max())


def superpose(R_ax: Array, S_ax: Array) -> Array:
    """R_ax, moved and rotated onto S_ax, which is moved as well: the centre of both is the origin.

    W. Kabsch, Acta Cryst. A 32, 922 (1976), doi:10.1107/S0567739476001873.
    """
    R_ax, S_ax = R_ax - R_ax.mean(axis=0), S_ax - S_ax.mean(axis=0)
    U, _, V = np.linalg.svd(R_ax.T @ S_ax)
    proper = np.diag([1.0, 1.0, np.sign(np.linalg.det(U @ V))])
    rotated: Array = R_ax @ U @ proper @ V
    return rotated


def displacement(R_ax: Array, S_ax: Array) -> Array:
    """Displacement of the atoms from S_ax to R_ax, without translation and rotation of the whole molecule."""
    moved: Array = superpose(R_ax, S_ax) - (S_ax - S_ax.mean(axis=0))
    return moved
