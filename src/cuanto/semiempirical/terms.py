"""Energy terms and the orthonormal basis of an NDDO method, for the SCF loop that all methods share (`scf.loop`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cuanto.arrays import Array
from cuanto.backends.base import Backend
from cuanto.scf.loop import Density
from cuanto.scf.orthogonal import Frame, algebra_device
from cuanto.semiempirical import properties
from cuanto.semiempirical.fock import Fock
from cuanto.semiempirical.layout import Layout
from cuanto.semiempirical.parameters import Element
from cuanto.terms.base import Term


class Constant(Term):
    """Core repulsion or a correction, independent of the density."""

    linear = True

    def __init__(self, name: str, energy: float) -> None:
        self.name, self.energy = name, energy

    def fock(self, D_spq: Any, C_spi: Any | None) -> tuple[float, None]:
        """The constant energy, without a Fock matrix."""
        return self.energy, None


class Core(Term):
    """E = sum_pq h_pq D_pq, without the attraction to the cores of other atoms."""

    name, linear = "core", True

    def __init__(self, fock: Fock) -> None:
        self.h_pq, self._linalg = fock.H_bpq[0], fock.engine.backend.linalg

    def fock(self, D_spq: Any, C_spi: Any | None) -> tuple[Any, Any]:
        """Energy, linear in the density, and h."""
        D_pq = D_spq.sum(axis=0, dtype=np.float64)
        return self._linalg.scalar_product(D_pq, self.h_pq), self.h_pq[None]


class Repulsion(Term):
    """Coulomb and exchange energy of the electrons, with their attraction to the cores of other atoms (see `Fock`)."""

    name = "two-electron"

    def __init__(self, fock: Fock) -> None:
        self._fock = fock

    def fock(self, D_spq: Any, C_spi: Any | None) -> tuple[Any, Any]:
        """Energy, quadratic in the density, and dE/dD."""
        D_spq = D_spq.astype(np.float64, copy=False)
        energy_b, F_bspq = self._fock.two_electron(D_spq[None])
        return energy_b[0], F_bspq[0]

    def response(self, D_spq: Any, change_spq: Any) -> Any:
        """dE/dD of the change alone, without the attraction to the cores, which does not change."""
        return self._fock.response(change_spq[None])[0]


class DipoleMoment:
    """Dipole moments of densities (e Bohr), from their one-centre elements."""

    def __init__(self, layout: Layout, R_ax: Array, backend: Backend) -> None:
        rows, columns, weights = properties.dipole_vectors(layout, R_ax)
        self._backend = backend
        self._arrays = backend.upload({"rows": rows, "columns": columns, "weights": weights})

    def at(self, D_spq: Any) -> Any:
        """Dipole moment of the electrons, still on the device."""
        total = sum(D_pq[self._arrays["rows"], self._arrays["columns"]] for D_pq in D_spq)
        return self._arrays["weights"] @ total

    def __call__(self, change_spq: Any) -> float:
        """Largest component of the dipole moment of a density change."""
        return float(np.abs(self._backend.to_host(self.at(change_spq))).max())

    def of_change(self, halves: Sequence[tuple[Any, Any]]) -> float:
        """The same for a density change that is a sum of A B^T + B A^T, without forming it."""
        rows, columns = self._arrays["rows"], self._arrays["columns"]
        total = sum((A[rows] * B[columns]).sum(axis=1) + (A[columns] * B[rows]).sum(axis=1) for A, B in halves)
        return float(np.abs(self._backend.to_host(self._arrays["weights"] @ total)).max())


class Identity:
    """The identity matrix; products with it cost nothing."""

    __array_ufunc__ = None

    def __init__(self, size: int) -> None:
        self.shape = (size, size)

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def T(self) -> Identity:
        """The transpose: the identity itself."""
        return self

    def __matmul__(self, other: Any) -> Any:
        return other

    __rmatmul__ = __matmul__


class OrthonormalFrame(Frame):
    """The frame of a basis that is already orthonormal."""

    def products(
        self, F_sjk: Any, spin_orbitals_sji: Any, all_orbitals_sji: Any, C_sij: Any, D_spq: Any
    ) -> tuple[Any, Any]:
        """D and F D, in the precision of the orbitals."""
        D_sjk = self.to_algebra(D_spq)
        return D_sjk, self.linalg.product(F_sjk.astype(D_sjk.dtype, copy=False), D_sjk)

    def coefficients(self, C_spm: Any, S_pq: Any) -> Any:
        """The orbitals, unchanged, in double precision."""
        return self.to_algebra(C_spm).astype(np.float64, copy=False)


def orthonormal_frame(size: int, backend: Backend) -> Frame:
    """The frame of a basis of `size` NDDO orbitals."""
    return OrthonormalFrame(backend, algebra_device(size, backend), Identity(size), 0.0, 1.0, 0)


def start_density(layout: Layout, electrons: tuple[int, int], spins: int, backend: Backend) -> Density:
    """Density of neutral atoms, divided between the spins."""
    share_p = layout.per_orbital(atomic_shares)
    n, total = layout.orbitals, sum(electrons)
    parts = [1.0] if spins == 1 else [number / total for number in electrons]
    D_spq = backend.zeros((spins, n, n), np.float64)
    D_spq.reshape(spins, -1)[:, :: n + 1] = backend.to_device(np.outer(parts, share_p))
    return Density(D_spq, None)


def atomic_shares(element: Element) -> Array:
    """Occupations of a neutral atom's orbitals: spread over s and p; in metals two electrons in s, then d, then p."""
    charge = float(element.core_charge)
    if not element.shells.metal:
        count = min(element.orbitals, 4)
        return np.concatenate([np.full(count, charge / count), np.zeros(element.orbitals - count)])
    s = min(charge, 2.0)
    d = min(charge - s, 10.0)
    return np.concatenate([[s], np.full(3, (charge - s - d) / 3.0), np.full(5, d / 5.0)])
