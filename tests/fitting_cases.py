"""What the tests of density fitting share: systems, orbitals, J and K written out, a device that is none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from cuanto import Basis, Molecule, integrals
from cuanto.backends import Backend, get_backend
from cuanto.backends.cpu.backend import CpuBackend
from cuanto.backends.linalg import DeviceLinalg
from cuanto.backends.simt.arrays import SimtLibrary
from cuanto.coulomb import fitting_plan
from cuanto.coulomb.fitted_tensor import ThreeCentre
from cuanto.coulomb.fitting_layout import make_layout
from cuanto.memory import Budget

Array = NDArray[np.float64]
DATA = Path(__file__).parent / "data"


class Device(CpuBackend):
    """The CPU with the linear algebra of a GPU."""

    def __init__(self) -> None:
        super().__init__()
        self.linalg = DeviceLinalg(np, SimtLibrary())  # type: ignore[assignment]


def use_device_storage(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fitted integrals of the CPU are stored as on a GPU."""
    monkeypatch.setitem(fitting_plan.SCHEDULES, "cpu", fitting_plan.SCHEDULES["cuda"])


def has_parameter(request: pytest.FixtureRequest, value: object) -> bool:
    """Is this one of the parameters of a test?"""
    return hasattr(request.node, "callspec") and value in request.node.callspec.params.values()


def budget_of(size: float, backend: str | Backend = "cpu") -> Budget:
    """Exactly so many bytes."""
    budget = Budget(get_backend(backend) if isinstance(backend, str) else backend)
    budget.limit = int(size)
    return budget


def smallest_budget(basis: Basis, aux: Basis, kind: str, omega: float | None = None) -> Budget:
    """What a fit on the CPU that keeps no integrals needs."""
    these = ThreeCentre(basis, aux, get_backend("cpu"), omega)
    layout = make_layout(basis, triangle=kind == "j", functions=fitting_plan.SCHEDULES["cpu"].functions)
    engine = fitting_plan.direct_fit_bytes(basis, aux, these.backend)
    return budget_of(replace(fitting_plan.block_sizes(these, layout), engine=engine).least)


def molecule(name: str) -> Molecule:
    return Molecule.from_xyz(DATA / "geometries" / f"{name}.xyz")


def random_orbitals(nbf: int, occupied: int, spins: int = 1, seed: int = 3) -> tuple[Array, Array]:
    """C_spi and D_spq of elements of about one."""
    C_spi = np.random.default_rng(seed).normal(size=(spins, nbf, occupied)) / np.sqrt(nbf)
    return C_spi, C_spi @ C_spi.transpose(0, 2, 1)


def fitted_jk(basis: Basis, aux: Basis, D_pq: Array, K_of: Array) -> tuple[Array, Array]:
    """J of D and K of D = K_of, by the definition."""
    I_pqP = integrals.eri_3c(basis, aux, backend="cpu")
    V_PQ = integrals.eri_2c(aux, backend="cpu")
    c_Ppq = np.linalg.solve(V_PQ, I_pqP.reshape(-1, aux.nbf).T).reshape(aux.nbf, basis.nbf, basis.nbf)
    J_pq = np.einsum("pqP,P->pq", I_pqP, np.einsum("Ppq,pq->P", c_Ppq, D_pq))
    half = np.einsum("prP,rt->ptP", I_pqP, K_of)
    return J_pq, np.einsum("ptP,Pqt->pq", half, c_Ppq)
