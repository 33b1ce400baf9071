"""The nucleus: a point, a uniformly charged sphere or a Gaussian; sizes are those of `system.nuclear_sizes`."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, sqrt
from typing import Literal

from cuanto.errors import require
from cuanto.system.nuclear_sizes import BOHR_IN_FEMTOMETRES, gaussian_exponent, mass_number, rms_radius

Model = Literal["point", "sphere", "gaussian"]
MODELS: tuple[Model, ...] = ("point", "sphere", "gaussian")
RADII = (1e-3, 1e3)
"""Smallest and largest root mean square radius (fm) that can be given."""


@dataclass(frozen=True)
class Nucleus:
    """Charge, model, and the model's `size`: radius R of a sphere (Bohr), exponent eta of a Gaussian (Bohr^-2)."""

    charge: float
    model: Model = "point"
    size: float | None = None

    def __post_init__(self) -> None:
        require(self.model in MODELS, f"unknown nuclear model {self.model!r}: choose {', '.join(MODELS)}")
        require(isfinite(self.charge) and self.charge > 0, f"nuclear charge {self.charge}: give a positive number")
        if self.model == "point":
            require(self.size is None, "a point nucleus has no size: choose sphere or gaussian")
        elif self.size is None:
            whole = self.charge == round(self.charge)
            require(whole, f"no radius is known for the charge {self.charge}: give the size of the nucleus")
            size = self.size_of(self.model, rms_radius(mass_number(round(self.charge))))
            object.__setattr__(self, "size", size)
        else:
            good = isfinite(self.size) and self.size > 0
            require(good, f"size {self.size} of the nucleus: give a positive number")

    @classmethod
    def of_radius(cls, charge: float, model: Model, femtometres: float | None) -> Nucleus:
        """A nucleus with this root mean square radius in fm, or that of its element if it is None."""
        if femtometres is None:
            return cls(charge, model)
        smallest, largest = RADII
        good = isfinite(femtometres) and smallest <= femtometres <= largest
        require(good, f"nuclear radius {femtometres:g} fm: give a number from {smallest:g} to {largest:g}")
        require(model != "point", "a point nucleus has no radius: choose sphere or gaussian, or leave out the radius")
        return cls(charge, model, cls.size_of(model, femtometres / BOHR_IN_FEMTOMETRES))

    @staticmethod
    def size_of(model: Model, rms: float) -> float:
        """R or eta of a nucleus with this root mean square radius (Bohr)."""
        return sqrt(5.0 / 3.0) * rms if model == "sphere" else gaussian_exponent(rms)

    @property
    def rms(self) -> float:
        """Root mean square radius in Bohr."""
        if self.size is None:
            return 0.0
        return self.size / sqrt(5.0 / 3.0) if self.model == "sphere" else sqrt(1.5 / self.size)

    @property
    def femtometres(self) -> float:
        """Root mean square radius in fm."""
        return self.rms * BOHR_IN_FEMTOMETRES
