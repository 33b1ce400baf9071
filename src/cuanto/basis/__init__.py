"""Basis sets: sources, normalisation and order of the functions."""

from cuanto.basis.auxiliary import auxiliary_basis, fitting_basis
from cuanto.basis.basis_set import Basis, unit_norm_factors
from cuanto.basis.shell import Shell
from cuanto.basis.solid_harmonics import cartesian_powers, shell_matrix, solid_harmonic_matrix

__all__ = [
    "Basis",
    "Shell",
    "auxiliary_basis",
    "cartesian_powers",
    "fitting_basis",
    "shell_matrix",
    "solid_harmonic_matrix",
    "unit_norm_factors",
]
