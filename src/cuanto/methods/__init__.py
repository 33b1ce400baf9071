"""Methods: which terms, which occupations; and what they give back."""

from cuanto.methods.hartree_fock import METHODS, HartreeFock
from cuanto.methods.kohn_sham import KohnSham
from cuanto.methods.result import Result
from cuanto.methods.semiempirical import SEMIEMPIRICAL, Semiempirical, SemiempiricalResult

__all__ = ["METHODS", "SEMIEMPIRICAL", "HartreeFock", "KohnSham", "Result", "Semiempirical", "SemiempiricalResult"]
