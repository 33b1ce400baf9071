"""The gradient of every term alone is the derivative of its energy at a fixed density matrix, on every backend.

Exchange and correlation on a grid are in tests/grid/test_gradient.py.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from cuanto import Basis, Molecule, integrals
from cuanto.backends.base import Backend, get_backend
from cuanto.coulomb import DirectJK, IncrementalJK
from cuanto.coulomb.fitting import FittedJK
from cuanto.coulomb.forces import Sources, electronic_gradient
from cuanto.integrals.derivative import two_centre_gradient
from cuanto.terms import (
    CoreHamiltonian,
    Coulomb,
    Dispersion,
    Exchange,
    NuclearRepulsion,
    Surroundings,
    Term,
    nuclear_repulsion,
)
from cuanto.terms.x2c import OneElectronModel
from fitting_cases import Device, budget_of
from oracle import random_shell
from scf_cases import basis
from tolerances import FORCE_CPU_CUDA, FORCE_DIFFERENCE

SYMBOLS = ("O", "H", "H")
POSITIONS = np.array([[0.0, 0.1, 0.2], [0.6, 1.3, -0.9], [0.1, -1.5, -0.8]])
CHARGES, AROUND = [0.7, -0.4], np.array([[3.0, 0.0, 1.0], [0.0, -4.0, 0.5]])
FIELD = (0.01, -0.02, 0.03)
OMEGA = 0.4
NAMES = [
    "nuclear repulsion",
    "core",
    "core with gaussian nuclei",
    "core with x2c",
    "coulomb",
    "exchange",
    "long-range exchange",
    "coulomb fitted",
    "coulomb fitted for j",
    "exchange fitted",
    "long-range exchange fitted",
]
MODELS = {
    "core": OneElectronModel(),
    "core with gaussian nuclei": OneElectronModel(gaussian_nuclei=True),
    "core with x2c": OneElectronModel(30.0, gaussian_nuclei=True),  # a small speed of light: large effects
}
CUDA = pytest.param("cuda", marks=pytest.mark.gpu)
NOT_ON_SIMT = ("nuclear repulsion", "exchange", "long-range exchange", "coulomb fitted for j")
"""Terms not tested on `simt`: without kernels, or covered by tests/coulomb/test_exchange_forces.py."""


@cache
def device_of(name: str) -> Backend:
    """A backend; for `simt` the CPU computes batches of integrals, which is faster; other kernels run on `simt`."""
    return Device() if name == "simt" else get_backend(name)


def make_term(name: str, R_ax: Any, around: Any = AROUND, backend: str = "cpu", orbital: str = "6-31g*") -> Term:
    """A term with atoms and point charges at these positions."""
    mol, device = Molecule(list(SYMBOLS), R_ax), device_of(backend)
    surroundings = Surroundings.of(CHARGES, around, field=FIELD)
    functions = basis(orbital, mol)
    if name == "nuclear repulsion":
        return NuclearRepulsion(mol, surroundings)
    if name.startswith("core"):
        return CoreHamiltonian(mol, functions, surroundings, device, None, MODELS[name])
    omega = OMEGA if "long-range" in name else None
    if "fitted" in name:
        kind = "j" if name.endswith("j") else "jk"
        aux = basis("cc-pvdz-jkfit", mol)
        builder: Any = FittedJK(functions, aux, backend=device, kind=kind, omega=omega)
    else:
        builder = IncrementalJK(DirectJK(functions, backend=device, threshold=1e-15, omega=omega))
    return Coulomb(builder) if name.startswith("coulomb") else Exchange(builder, 0.75)


def orbitals(n: int, spins: int) -> Any:
    C_spi = np.random.default_rng(4).normal(size=(spins, n, 4)) / np.sqrt(n)
    C_spi[spins - 1, :, 3] = 0.0  # a spin with fewer electrons has columns of zeros
    return C_spi


def slope(energy: Any, step: float = 4e-3) -> float:
    """Derivative from central differences of two steps, extrapolated."""
    one, two = ((energy(h) - energy(-h)) / (2 * h) for h in (step, 2 * step))
    return float((4 * one - two) / 3)


@pytest.mark.parametrize("spins", [1, 2])
@pytest.mark.parametrize("name", NAMES)
def test_gradient_is_the_derivative_of_the_energy(name: str, spins: int) -> None:
    n = basis("6-31g*", Molecule(list(SYMBOLS), POSITIONS)).nbf
    C_spi = orbitals(n, spins)
    D_spq = C_spi @ C_spi.transpose(0, 2, 1)
    gradient = make_term(name, POSITIONS).gradient(D_spq, C_spi)
    assert gradient is not None
    for atom, axis in ((0, 1), (2, 0)):

        def energy(h: float, element: tuple[int, int] = (atom, axis)) -> float:
            R_ax = POSITIONS.copy()
            R_ax[element] += h
            return float(make_term(name, R_ax).fock(D_spq, C_spi)[0])

        assert abs(gradient[atom, axis] - slope(energy)) < FORCE_DIFFERENCE
    if len(gradient) > len(POSITIONS):  # point charges move as well

        def energy_of_charge(h: float) -> float:
            around = AROUND.copy()
            around[0, 1] += h
            return float(make_term(name, POSITIONS, around).fock(D_spq, C_spi)[0])

        assert len(gradient) == len(POSITIONS) + len(CHARGES)
        assert abs(gradient[3, 1] - slope(energy_of_charge)) < FORCE_DIFFERENCE
    else:
        assert np.abs(gradient.sum(axis=0)).max() < FORCE_DIFFERENCE


@pytest.mark.parametrize(("kind", "functional"), [("d3bj", "pbe"), ("d4", "b3lyp")])
def test_dispersion(kind: str, functional: str) -> None:
    pytest.importorskip({"d3bj": "dftd3", "d4": "dftd4"}[kind])

    def energy(h: float) -> float:
        R_ax = POSITIONS.copy()
        R_ax[1, 2] += h
        return Dispersion(Molecule(list(SYMBOLS), R_ax), functional, kind).energy

    gradient = Dispersion(Molecule(list(SYMBOLS), POSITIONS), functional, kind).gradient(None, None)
    assert abs(gradient[1, 2] - slope(energy)) < FORCE_DIFFERENCE
    assert np.abs(gradient.sum(axis=0)).max() < FORCE_DIFFERENCE


@pytest.mark.parametrize(
    ("name", "backend"),
    [
        *((name, "simt") for name in NAMES if name not in NOT_ON_SIMT),
        *(pytest.param(name, "cuda", marks=pytest.mark.gpu) for name in NAMES if name != "nuclear repulsion"),
    ],
)
def test_devices_agree_with_the_cpu(name: str, backend: str) -> None:
    """The kernels of a GPU; `simt` runs them thread by thread, with a smaller basis."""
    orbital = "sto-3g" if backend == "simt" else "6-31g*"
    C_spi = orbitals(basis(orbital, Molecule(list(SYMBOLS), POSITIONS)).nbf, 2)
    found = []
    for where in ("cpu", backend):
        put = device_of(where).to_device
        D_spq = put(C_spi @ C_spi.transpose(0, 2, 1))
        found.append(make_term(name, POSITIONS, backend=where, orbital=orbital).gradient(D_spq, put(C_spi)))
    assert np.abs(found[0] - found[1]).max() < FORCE_CPU_CUDA


@pytest.mark.parametrize("share", [0.0, 0.02, 1.0])
def test_fitted_exchange_in_passes(share: float) -> None:
    """Few orbitals and few integrals at a time, where little memory is left."""
    mol = Molecule(list(SYMBOLS), POSITIONS)
    functions, aux = basis("6-31g*", mol), basis("cc-pvdz-jkfit", mol)
    C_spi = orbitals(functions.nbf, 1)
    fit = FittedJK(functions, aux, backend="cpu")
    whole = fit.exchange_gradient(None, C_spi)
    fit.budget = budget_of(share * 8 * functions.nbf**2 * aux.nbf)
    assert np.abs(fit.exchange_gradient(None, C_spi) - whole).max() < 1e-12


# ------------------------------------------------------------------------------------------- kernels of forces


def shells_to(l_max: int, backend: Backend) -> tuple[Basis, Any]:
    """Contracted shells of every angular momentum on three atoms, and a symmetric matrix."""
    rng = np.random.default_rng(9)
    shells = [random_shell(rng, l, nprim=2, ncol=1, pure=l % 2 == 0) for l in range(l_max + 1)]
    placed = [replace(shell, atom=k % 3) for k, shell in enumerate(shells)]
    result = Basis.from_shells(placed, POSITIONS)
    A = rng.normal(size=(result.nbf, result.nbf)) / result.nbf
    return result, backend.to_device(A + A.T)


@pytest.mark.parametrize("l_max", [2, 4])
@pytest.mark.parametrize("operator", ["overlap", "kinetic", "dipole", "coulomb"])
def test_two_centre_gradients(operator: str, l_max: int) -> None:
    """s to g functions, against differences of the integrals."""
    functions, M_pq = shells_to(l_max, get_backend("cpu"))
    compute: Any = {
        "overlap": integrals.overlap,
        "kinetic": integrals.kinetic,
        "dipole": integrals.dipole,
        "coulomb": integrals.eri_2c,
    }[operator]
    weights = np.stack([M_pq, 0.5 * M_pq, -M_pq]) if operator == "dipole" else M_pq
    found = two_centre_gradient(functions, {operator: weights}, get_backend("cpu"))

    def total(h: float) -> float:
        R_ax = POSITIONS.copy()
        R_ax[1, 0] += h
        return float((weights * compute(Basis.from_shells(list(functions.shells), R_ax), backend="cpu")).sum())

    assert abs(found[1, 0] - slope(total)) < FORCE_DIFFERENCE


@pytest.mark.parametrize("backend", ["cpu", "simt", CUDA])
def test_action_equals_reaction(backend: str) -> None:
    """Forces of electrons on points, of points on electrons and of a fitted density add up to zero."""
    device = device_of(backend)
    functions, D_pq = shells_to(1 if backend == "simt" else 4, device)
    points = np.array([1.0, 6.0, 8.0, *CHARGES]), np.concatenate([POSITIONS, AROUND])
    c_P = device.to_device(np.random.default_rng(1).normal(size=functions.nbf))
    for sources in (Sources(points=points), Sources(fit=(functions, c_P)), Sources(repulsion=True)):
        found = electronic_gradient(functions, D_pq, sources, device)
        assert np.abs(found).max() > 1e-3
        assert np.abs(found.sum(axis=0)).max() < 1e-9


def test_forces_on_nuclei_do_not_depend_on_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = make_term("nuclear repulsion", POSITIONS).gradient(None, None)
    monkeypatch.setattr(nuclear_repulsion, "PAIRS_AT_ONCE", 1)
    assert whole is not None
    np.testing.assert_allclose(make_term("nuclear repulsion", POSITIONS).gradient(None, None), whole, atol=1e-13)
