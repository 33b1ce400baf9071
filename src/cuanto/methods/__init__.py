"""Methods: which terms, which occupations; and what they give back."""

from cuanto.methods.hartree_fock import METHODS, HartreeFock
from cuanto.methods.kohn_sham import KohnSham
from cuanto.methods.result import GaussianResult, Iteration, Result
from cuanto.methods.semiempirical import SEMIEMPIRICAL, Semiempirical, SemiempiricalResult

__all__ = [
    "METHODS",
    "SEMIEMPIRICAL",
    "GaussianResult",
    "HartreeFock",
    "Iteration",
    "KohnSham",
    "Result",
    "Semiempirical",
    "SemiempiricalResult",
]
