"""Methods: which terms, which occupations; and what they give back."""

from cuanto.methods.hartree_fock import METHODS, HartreeFock
from cuanto.methods.result import Result

__all__ = ["METHODS", "HartreeFock", "Result"]
