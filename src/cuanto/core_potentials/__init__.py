"""Effective core potentials: matrix elements and gradients of semilocal potentials."""

from cuanto.core_potentials.api import gradient, matrix, reserve

__all__ = ["gradient", "matrix", "reserve"]
