"""Surroundings of a molecule: point charges, and one-electron operators such as a uniform electric field.

A new operator is an entry of `EXTERNAL_OPERATORS`; CONTRIBUTING.md shows how to add one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cuanto.arrays import Array
from cuanto.errors import InputError
from cuanto.options import errors_about_option

MAX_COMPONENT, MAX_WEIGHT = 1e6, 100.0
"""Largest charge or coordinate of a point charge, and largest component of an external operator, in atomic units."""


@dataclass(frozen=True)
class ExternalOperator:
    """A one-electron operator that the option of the same name adds to the core Hamiltonian.

    `integrals` names it in `kernels.recurrences.one_electron`. `weights` turns the value of the option into a factor
    for each of its components. `nuclear_energy` (weights, Z_a, R_ax) is the energy of the nuclei, if it acts on them,
    and `nuclear_gradient` its derivative with respect to R_ax.
    """

    integrals: str
    weights: Callable[[Any], Sequence[float]]
    nuclear_energy: Callable[[Sequence[float], Array, Array], float] | None = None
    nuclear_gradient: Callable[[Sequence[float], Array, Array], Array] | None = None


def _three_components(value: Any) -> list[float]:
    if np.shape(value) != (3,):
        raise InputError(f"a field has three components, an array of shape {np.shape(value)} was given")
    return list(value)


def _energy_in_field(field: Sequence[float], Z_a: Array, R_ax: Array) -> float:
    return -float(Z_a @ R_ax @ np.array(field))


def _gradient_in_field(field: Sequence[float], Z_a: Array, R_ax: Array) -> Array:
    return -np.outer(Z_a, field)


EXTERNAL_OPERATORS: Mapping[str, ExternalOperator] = {
    "field": ExternalOperator("dipole", _three_components, _energy_in_field, _gradient_in_field),
}
"""External operators by the name of their option in `cuanto.options`."""


@dataclass(frozen=True, eq=False)
class Surroundings:
    """Point charges (e) at positions (Bohr), and values of external operators such as a uniform electric field.

    The field is in Hartree/(e Bohr): a dipole mu has the energy -mu . field. The point charges interact neither with
    each other nor with the external operators: that energy does not depend on the molecule.
    """

    charges: Array = field(default_factory=lambda: np.zeros(0))
    positions: Array = field(default_factory=lambda: np.zeros((0, 3)))
    operators: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls, charges: ArrayLike | None = None, positions: ArrayLike | None = None, **operators: ArrayLike | None
    ) -> Surroundings:
        """Surroundings from user input, which is checked; an operator that is None is ignored."""
        with errors_about_option("point_charges"):
            if (charges is None) != (positions is None):
                raise InputError("point charges need both charges and positions")
            q = _numbers([] if charges is None else charges, "point charges").reshape(-1)
            R = _numbers([] if positions is None else positions, "positions of point charges").reshape(-1, 3)
            if len(q) != len(R):
                raise InputError(f"{len(q)} point charges have {len(R)} positions: give one row of three for each")
        values = {}
        for name, given in operators.items():
            with errors_about_option(name):
                value = None if given is None else _numbers(given, name, MAX_WEIGHT).tolist()
                if value is not None and any(EXTERNAL_OPERATORS[name].weights(value)):
                    values[name] = value
        return cls(q, R, values)

    @property
    def keywords(self) -> dict[str, Any]:
        """Keywords of `cuanto.energy` as plain data; empty for an isolated molecule."""
        charges = {"point_charges": [self.charges.tolist(), self.positions.tolist()]} if len(self.charges) else {}
        return {**charges, **self.operators}

    def weighted_operators(self) -> Iterator[tuple[ExternalOperator, Sequence[float]]]:
        """The external operators, each with the weights of its components."""
        for name, value in self.operators.items():
            operator = EXTERNAL_OPERATORS[name]
            yield operator, operator.weights(value)

    def nuclear_energy(self, Z_a: Array, R_ax: Array) -> float:
        """Energy of nuclei in the external operators, Hartree."""
        pairs = self.weighted_operators()
        return sum(one.nuclear_energy(weights, Z_a, R_ax) for one, weights in pairs if one.nuclear_energy)

    def nuclear_gradient(self, Z_a: Array, R_ax: Array) -> Array:
        """Derivative of `nuclear_energy` with respect to R_ax."""
        found = np.zeros_like(R_ax)
        for one, weights in self.weighted_operators():
            if one.nuclear_gradient is not None:
                found += one.nuclear_gradient(weights, Z_a, R_ax)
            elif one.nuclear_energy is not None:
                raise InputError(f"the gradient of the operator {one.integrals!r} is not implemented for nuclei")
        return found


def _numbers(given: ArrayLike, what: str, largest: float = MAX_COMPONENT) -> Array:
    try:
        array = np.array(given, dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"{what} must be numbers") from None
    if not np.isfinite(array).all() or (what.startswith("positions") and array.size % 3):
        raise InputError(f"{what} must be finite numbers, three for every position")
    if np.abs(array).max(initial=0.0) > largest:
        raise InputError(f"{what}: {np.abs(array).max():.3g} is too large, the limit is {largest:g} atomic units")
    return array
