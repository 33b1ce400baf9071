"""Methods: their terms and occupations, requests and results."""

from cuanto.methods.context import Context
from cuanto.methods.gaussian import Calculation
from cuanto.methods.gaussian_result import GaussianResult
from cuanto.methods.history import Iteration
from cuanto.methods.model import METHODS, SEMIEMPIRICAL, Model
from cuanto.methods.request import Request
from cuanto.methods.result import Result
from cuanto.methods.semiempirical import Semiempirical, SemiempiricalResult

__all__ = [
    "METHODS",
    "SEMIEMPIRICAL",
    "Calculation",
    "Context",
    "GaussianResult",
    "Iteration",
    "Model",
    "Request",
    "Result",
    "Semiempirical",
    "SemiempiricalResult",
]
