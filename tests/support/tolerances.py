"""Tolerances that several tests share, by name."""

import numpy as np

# generated kernel or reference against another evaluation, per block: INTEGRAL_REL * scale + INTEGRAL_ABS
INTEGRAL_REL = 1e-12
INTEGRAL_ABS = 100 * float(np.finfo(np.float64).eps)
# blocks below this are equal to zero (underflow of exp)
SMALLEST = 1e-280
# Boys function against mpmath, relative, double precision
BOYS_REL = 1e-14
# exact symmetries and sum rules of the reference, relative to the largest element
SYMMETRY_REL = 1e-13
# energies and matrix norms, CPU against CUDA
CPU_CUDA = 1e-9
# analytic against finite-difference derivative
FINITE_DIFFERENCE = 1e-6
# energy against another program with the same basis and settings, in Hartree
ENERGY = 1e-8
ENERGY_GRID = 1e-6
# analytic gradients (Hartree/Bohr): against extrapolated differences of our own energy, and CPU against CUDA
FORCE_DIFFERENCE = 1e-7
FORCE_CPU_CUDA = 1e-8
