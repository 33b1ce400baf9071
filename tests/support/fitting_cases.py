"""Helpers for tests of density fitting: systems, orbitals, J and K by definition, a fast simulated device."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto import Basis, Molecule, integrals
from cuanto.backends import Backend, get_backend
from cuanto.backends.base import Job
from cuanto.backends.simt.arrays import DeviceArray
from cuanto.backends.simt.backend import SimtBackend
from cuanto.coulomb import fitting
from cuanto.coulomb.fitted_tensor import ThreeCentre
from cuanto.coulomb.fitting_layout import make_layout
from cuanto.memory import Budget
from paths import DATA

Array = NDArray[np.float64]


class Device(SimtBackend):
    """A simulated GPU that computes integrals by the kernels of the CPU, which is much faster."""

    def run(self, groups: Iterable[Sequence[Job]]) -> None:
        """Run on the memory of the device."""
        get_backend("cpu").run([replace(job, arguments=_memory(job.arguments)) for job in jobs] for jobs in groups)


def _memory(arguments: dict[str, Any]) -> dict[str, Any]:
    assert not any(isinstance(value, np.ndarray) for value in arguments.values())
    return {name: value._memory if isinstance(value, DeviceArray) else value for name, value in arguments.items()}


def budget_of(size: float, backend: str | Backend = "cpu") -> Budget:
    """A budget of exactly this many bytes."""
    budget = Budget(get_backend(backend) if isinstance(backend, str) else backend)
    budget.limit = int(size)
    return budget


def smallest_budget(basis: Basis, aux: Basis, kind: str, omega: float | None = None) -> Budget:
    """Bytes needed by a fit on the CPU that stores no integrals."""
    three_centre = ThreeCentre(basis, aux, get_backend("cpu"), omega)
    layout = make_layout(basis, triangle=kind == "j", functions=fitting.SCHEDULES["cpu"].functions)
    engine = fitting.engine_bytes(three_centre, exchange=kind == "jk")
    return budget_of(replace(fitting.block_sizes(three_centre, layout), engine=engine).minimum)


def molecule(name: str) -> Molecule:
    return Molecule.from_xyz(DATA / "geometries" / f"{name}.xyz")


def random_orbitals(nbf: int, occupied: int, spins: int = 1, seed: int = 3) -> tuple[Array, Array]:
    """C_spi and D_spq with elements of order one."""
    C_spi = np.random.default_rng(seed).normal(size=(spins, nbf, occupied)) / np.sqrt(nbf)
    return C_spi, C_spi @ C_spi.transpose(0, 2, 1)


def fitted_jk(basis: Basis, aux: Basis, D_pq: Array, exchange_D_pq: Array) -> tuple[Array, Array]:
    """J of the density `D_pq` and K of `exchange_D_pq`, by definition."""
    I_pqP = integrals.eri_3c(basis, aux, backend="cpu")
    V_PQ = integrals.eri_2c(aux, backend="cpu")
    c_Ppq = np.linalg.solve(V_PQ, I_pqP.reshape(-1, aux.nbf).T).reshape(aux.nbf, basis.nbf, basis.nbf)
    J_pq = np.einsum("pqP,P->pq", I_pqP, np.einsum("Ppq,pq->P", c_Ppq, D_pq))
    half = np.einsum("prP,rt->ptP", I_pqP, exchange_D_pq)
    return J_pq, np.einsum("ptP,Pqt->pq", half, c_Ppq)
