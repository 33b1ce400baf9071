"""The SCF on a device whose arrays, like CuPy's, cannot be mixed with NumPy arrays: no implicit copies to the host."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

import cuanto
from cuanto.backends.base import get_backend
from cuanto.backends.simt.arrays import DeviceArray
from cuanto.backends.simt.backend import SimtBackend
from cuanto.log import Timings
from cuanto.options import ScfOptions
from cuanto.scf import orthogonal
from cuanto.scf.accelerator import Accelerator
from cuanto.scf.convergence import Criteria
from cuanto.scf.descent import descend
from cuanto.scf.diagonalise import Full
from cuanto.scf.diis import History
from cuanto.scf.loop import Density, Problem, first_orbitals, iterate
from cuanto.scf.occupations import Aufbau, Fermi
from cuanto.scf.orthogonal import make_frame
from cuanto.scf.pseudodiagonalise import Pseudo
from cuanto.scf.run import run_scf
from cuanto.scf.secants import Secants
from cuanto.scf.stability import lowest_mode
from cuanto.scf.state import State
from cuanto.terms.base import Term
from scf_cases import molecule, water


class Device(SimtBackend):
    """A device that counts how often the host waited for it."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0

    def download(self, arrays: Sequence[Any]) -> list[Any]:
        """Count one wait for all arrays."""
        self.reads += 1
        return super().download(arrays)


class Repulsion(Term):
    """Coulomb and exchange from stored four-centre integrals."""

    name = "two electrons"

    def __init__(self, eri: Any) -> None:
        self.J, self.K = eri, eri.transpose(0, 2, 1, 3)

    def fock(self, D_spq: Any, C_spi: Any) -> Any:
        size = D_spq.shape[1]
        J, K = (M.reshape(size**2, size**2) for M in (self.J, self.K))
        flat = D_spq.reshape(len(D_spq), -1)
        share = 0.5 if len(D_spq) == 1 else 1.0
        F_spq = (flat.sum(axis=0, keepdims=True) @ J - share * (flat @ K)).reshape(D_spq.shape)
        return 0.5 * (D_spq * F_spq).sum(), F_spq


class Core(Term):
    name = "core"

    def __init__(self, h_pq: Any) -> None:
        self.h_pq = h_pq

    def fock(self, D_spq: Any, C_spi: Any) -> Any:
        return (D_spq * self.h_pq).sum(), self.h_pq[None]


@lru_cache
def matrices(name: str) -> tuple[Any, ...]:
    mol, orbital = water(name="sto-3g")
    if name != "water":
        from scf_cases import basis

        mol = molecule(name)
        orbital = basis("def2-svp", mol)
    h = cuanto.integrals.kinetic(orbital, backend="cpu") + cuanto.integrals.nuclear(orbital, mol, backend="cpu")
    eri = cuanto.integrals.eri_4c(orbital, backend="cpu")
    return mol, orbital, cuanto.integrals.overlap(orbital, backend="cpu"), h, eri


def problem_on(device: Any, name: str, method: str, smearing: float = 0.0) -> tuple[Problem, Density]:
    mol, _, S, h, eri = matrices(name)
    frame = make_frame(device.to_device(S), 1e-7, device)
    terms = (Core(device.to_device(h)), Repulsion(device.to_device(eri)))
    electrons = (mol.nelectron,) if method == "rhf" else (mol.n_alpha, mol.n_beta)
    capacity = 2 if method == "rhf" else 1
    aufbau = Aufbau(electrons, capacity, frame.size)
    occupations: Any = Fermi(electrons, capacity, frame.size, smearing) if smearing else aufbau
    empty = device.to_device(np.zeros((len(electrons), len(S), len(S))))
    return Problem(terms, frame, occupations, method == "rohf", Timings()), Density(empty, empty)


@pytest.mark.parametrize("on_host", [False, True], ids=["algebra on the device", "algebra on the host"])
@pytest.mark.parametrize(
    ("name", "method", "how"),
    [
        ("water", "rhf", "full"),
        ("water", "rhf", "pseudo"),
        ("water", "rhf", "jacobi"),
        ("O2", "uhf", "pseudo"),
        ("O2", "rohf", "full"),
        ("water", "rhf", "smearing"),
        ("O2", "uhf", "smearing and shift"),
        ("O2", "uhf", "shift and damping"),
        ("water", "rhf", "descent"),
    ],
)
def test_device_and_host_arrays_are_never_mixed(
    name: str, method: str, how: str, on_host: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(orthogonal, "HOST_FUNCTIONS", 1000 if on_host else 0)
    device = Device()
    smearing = "smearing" in how
    problem, start = problem_on(device, name, method, 0.02 if smearing else 0.0)
    assert (problem.frame.device is not device) == on_host
    damped = {"damping": 0.3} if how == "shift and damping" else {}
    shift = 0.2 if "shift" in how else 0.0
    options, criteria = ScfOptions(**damped), Criteria(1e-9, 1e-6)
    frame = problem.frame
    diagonaliser: Any = Full(frame, shift, smearing)
    if how in ("pseudo", "jacobi"):
        diagonaliser = Pseudo(frame, "refined" if how == "pseudo" else "jacobi")
    begin: Any = start
    if how == "descent":
        *_, state = descend(problem, first_orbitals(problem, start), 60)
        begin = frame.coefficients(state.C_spm, device.to_device(matrices(name)[2])), state.eps_sm
    states: list[State] = list(iterate(problem, begin, Accelerator(options, frame), diagonaliser, criteria, 60))
    last = states[-1]
    mol, orbital = matrices(name)[:2]
    if not smearing:
        expected = cuanto.energy(mol, method, orbital, fitting="none", backend="cpu", gradient_tolerance=1e-6)
        assert abs(last.energy + mol.nuclear_repulsion() - expected.energy) < 1e-9
    assert last.converged and isinstance(last.D_spq, DeviceArray) and isinstance(last.C_spm, DeviceArray)
    if how == "full":
        mode = lowest_mode(problem, last)
        assert mode is not None and mode.stable == (method != "rohf")  # as PySCF, which finds -5e-3 for O2


def test_an_iteration_waits_for_the_device_at_most_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once for energies and scalar products, once to check that the rotations are safe."""
    monkeypatch.setattr(orthogonal, "HOST_FUNCTIONS", 0)
    device = Device()
    problem, start = problem_on(device, "water", "rhf")
    frame = problem.frame
    states = iterate(problem, start, Accelerator(ScfOptions(), frame), Pseudo(frame), Criteria(1e-9, 1e-6), 60)
    next(states)
    while True:
        before = device.reads
        if next(states).converged:
            break
        assert device.reads - before <= 2


def test_a_batch_is_extrapolated_like_each_of_its_calculations() -> None:
    """The errors of one calculation shrink and those of the other do not; early entries are dropped."""
    rng, device = np.random.default_rng(6), Device()
    together, alone = History(4, device, batched=True), [History(4, get_backend("cpu")) for _ in range(2)]
    for k in range(7):
        F_bjk, e_bjk = rng.normal(size=(2, 2, 3, 3)), rng.normal(size=(2, 2, 3, 3))
        e_bjk[0] *= 0.1**k
        norms = together.absorb(together.push(device.to_device(F_bjk), device.to_device(e_bjk)))
        for b, one in enumerate(alone):
            norm = one.absorb(one.push(F_bjk[b], e_bjk[b]))
            assert norm == pytest.approx(np.linalg.norm(e_bjk[b])) and device.to_host(norms)[b] == pytest.approx(norm)
        mixed = device.to_host(together.extrapolate())
        assert mixed.shape == F_bjk.shape
        assert all(np.allclose(mixed[b], one.extrapolate(), rtol=1e-10, atol=1e-10) for b, one in enumerate(alone))


class Swapped(Full):
    """Always occupies the lowest empty orbital instead of the highest occupied one."""

    def __call__(self, F_sjk: Any, C_sjm: Any, n_sm: Any, energy: float) -> tuple[Any, Any, str]:
        C_sjm, eps_sm, step = super().__call__(F_sjk, C_sjm, n_sm, energy)
        order = np.arange(C_sjm.shape[2])
        o = int(np.count_nonzero(n_sm[0]))
        order[[o - 1, o]] = o, o - 1
        return C_sjm[:, :, order], eps_sm[:, order], step


def test_a_state_that_is_not_aufbau_is_never_called_converged() -> None:
    device: Any = get_backend("cpu")
    problem, start = problem_on(device, "water", "rhf")
    accelerator = Accelerator(ScfOptions(), device)
    states = list(iterate(problem, start, accelerator, Swapped(device), Criteria(1e-8, 1e-5), 200))
    assert len(states) < 200, "the loop should end when nothing changes any more"
    assert states[-1].gradient < 1e-5 and abs(states[-1].energy_change) < 1e-8
    assert not any(state.converged for state in states)
    right = list(iterate(problem, start, Accelerator(ScfOptions(), device), Full(device), Criteria(1e-8, 1e-5), 200))
    assert right[-1].converged and right[-1].energy < states[-1].energy - 0.1


def test_rotations_can_start_from_known_orbitals() -> None:
    """Orbitals of a guess, for example: F is fully diagonalised only if it is far from diagonal in them."""
    F = np.diag(np.concatenate([np.linspace(-2.0, -0.5, 5), np.linspace(0.3, 2.0, 7)]))[None]
    change = np.random.default_rng(3).normal(size=(1, 12, 12))
    change, n_sm = change + change.transpose(0, 2, 1), np.where(np.arange(12) < 5, 2.0, 0.0)[None]
    host = get_backend("cpu")
    for size, step in ((1e-3, "pseudo"), (0.5, "full")):
        pseudo = Pseudo(host)
        pseudo.begin(np.eye(12)[None], F[:, np.arange(12), np.arange(12)])
        assert pseudo(F + size * change, np.eye(12)[None], n_sm, 0.0)[2] == step
    assert Pseudo(host)(F, np.eye(12)[None], n_sm, 0.0)[2] == "full"


@pytest.mark.parametrize("on_host", [False, True], ids=["algebra on the device", "algebra on the host"])
@pytest.mark.parametrize(("name", "method"), [("water", "rhf"), ("O2", "uhf")])
def test_secants_stay_where_the_algebra_is(
    name: str, method: str, on_host: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second SCF of the same molecule profits from those of the first."""
    monkeypatch.setattr(orthogonal, "HOST_FUNCTIONS", 1000 if on_host else 0)
    device, counts, energies, secants = Device(), [], [], Secants()
    for _ in range(2):
        problem, start = problem_on(device, name, method)
        S_pq = device.to_device(matrices(name)[2])
        common = (ScfOptions(stability="none"), Full(problem.frame), Criteria(1e-9, 1e-6), S_pq)
        states = list(run_scf(problem, start, *common, secants))
        assert states[-1].converged and len(secants)
        counts.append(len(states))
        energies.append(states[-1].energy)
    assert abs(energies[1] - energies[0]) < 1e-9
    assert counts[1] <= counts[0]
