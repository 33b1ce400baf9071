"""Scalar-relativistic one-electron Hamiltonian: kinetic energy and attraction to nuclei by spin-free X2C.

The decoupling (`terms.decoupling`) is done in the decontracted basis with the nuclei of the whole molecule, and the
result is contracted. Fields and point charges are not part of it, and the electron repulsion is not transformed. How
nuclei and electrons are described is a `OneElectronModel`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cuanto import integrals
from cuanto.arrays import Array, Ints
from cuanto.backends.base import Backend
from cuanto.basis import Basis
from cuanto.basis.decontract import decontract
from cuanto.coulomb.forces import POINT_EXPONENT, Sources, electronic_gradient
from cuanto.integrals.batches import BraBatch
from cuanto.integrals.momentum import DerivativeBasis
from cuanto.system.nuclear_sizes import gaussian_exponent, mass_number, rms_radius
from cuanto.terms.decoupling import Decoupling


@dataclass(frozen=True)
class OneElectronModel:
    """How electrons and nuclei are described.

    `c`: speed of light for X2C, None without relativity. `gaussian_nuclei`: nuclei are Gaussians instead of points.
    """

    c: float | None = None
    gaussian_nuclei: bool = False

    def exponents(self, protons: Ints) -> Array | None:
        """Exponents of the charge distributions of nuclei with these numbers of protons; None for points."""
        if not self.gaussian_nuclei:
            return None
        return np.array([gaussian_exponent(rms_radius(mass_number(int(Z)))) if Z else POINT_EXPONENT for Z in protons])

    def atom(self, basis: Basis, protons: int, charge: int, backend: Backend) -> Any:
        """The one-electron matrix of an atom at the origin; `charge` is that of nucleus and core electrons together."""
        nuclei = Nuclei(np.array([float(charge)]), np.zeros((1, 3)), self.exponents(np.array([protons])))
        if self.c is not None:
            return X2C(basis, nuclei, self.c, backend).h_pq
        return integrals.kinetic(basis, backend=backend) + nuclei.attraction(basis, backend)


NONRELATIVISTIC = OneElectronModel()


@dataclass(frozen=True, eq=False)
class Nuclei:
    """Charges Z_a at R_ax that attract electrons; `exponents` of Gaussian nuclei, None for points."""

    Z_a: Array
    R_ax: Array
    exponents: Array | None = None

    def attraction(self, basis: Basis, backend: Backend, pairs: Sequence[BraBatch] | None = None) -> Any:
        """V_pq; `pairs` as for `integrals.nuclear`."""
        Z_a, R_ax, eta_a = self.Z_a, self.R_ax, self.exponents
        return integrals.nuclear(basis, charges=Z_a, positions=R_ax, exponents=eta_a, backend=backend, pairs=pairs)

    @property
    def sources(self) -> Sources:
        """The nuclei as sources of forces."""
        return Sources(points=(self.Z_a, self.R_ax), exponents=self.exponents)


class X2C:
    """h_pq, the spin-free X2C Hamiltonian of electrons in the field of nuclei."""

    def __init__(self, basis: Basis, nuclei: Nuclei, c: float, backend: Backend) -> None:
        self._nuclei, self._backend = nuclei, backend
        self._primitive, C_kp = decontract(basis)
        self._C_kp = backend.to_device(C_kp)
        self._derivatives = DerivativeBasis(self._primitive)
        S_kl, T_kl = integrals.overlap_and_kinetic(self._primitive, backend=backend)
        V_kl = nuclei.attraction(self._primitive, backend)
        W_kl = self._derivatives.fold(nuclei.attraction(self._derivatives.basis, backend), backend.xp)
        self._decoupling = Decoupling(S_kl, T_kl, V_kl, W_kl, c, backend)
        self.h_pq = self._decoupling.contracted(self._C_kp)

    def __str__(self) -> str:
        functions, dropped = self._primitive.nbf, self._decoupling.dropped
        less = f", {dropped} linearly dependent ones left out" if dropped else ""
        return f"spin-free X2C in {functions} decontracted functions{less}"

    def gradient(self, D_pq: Any) -> Array:
        """Derivative of sum_pq D_pq h_pq with respect to the atoms; on the host."""
        backend, product, C_kp = self._backend, self._backend.linalg.product, self._C_kp
        adjoint = self._decoupling.adjoint(product(product(C_kp, D_pq), C_kp.T))
        field, derivatives = self._nuclei.sources, self._derivatives
        motion = Sources(kinetic=True, overlap=adjoint.overlap)
        found = electronic_gradient(self._primitive, adjoint.kinetic, motion, backend)
        found += electronic_gradient(self._primitive, adjoint.potential, field, backend)
        D_kl = derivatives.unfold(adjoint.momentum, backend.xp)
        return np.asarray(found + electronic_gradient(derivatives.basis, D_kl, field, backend))
