"""Coulomb and exchange matrices of a density."""

from cuanto.coulomb.base import DirectOptions
from cuanto.coulomb.direct import DirectJK, IncrementalJK
from cuanto.coulomb.fitting import FittedJK
from cuanto.coulomb.j_engine import JEngine

__all__ = ["DirectJK", "DirectOptions", "FittedJK", "IncrementalJK", "JEngine"]
