"""Exchange and correlation as a term: PySCF's numbers, derivatives, precisions, invariances, warnings."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from cuanto import Molecule
from cuanto.backends.base import get_backend
from cuanto.errors import InputError
from cuanto.functionals import XCPotential, get_functional
from cuanto.grid import GridSettings, grid_of_points
from cuanto.terms.exchange_correlation import ExchangeCorrelation
from scf_cases import basis, molecule
from tolerances import CPU_CUDA, FINITE_DIFFERENCE

CPU = get_backend("cpu")
SAME_GRID = 1e-9
"""Tolerance of energies against PySCF on the same points, Hartree."""
GRADIENT = 1e-7
"""Tolerance of gradients, Hartree/Bohr: the programs leave out different negligible functions and points."""
NAMES = {"lda": "lda,vwn", "pbe": "pbe", "blyp": "blyp", "tpss": "tpss", "r2scan": "r2scan"}


@lru_cache
def pyscf_case(name: str) -> tuple[Any, Any, Any]:
    """A molecule of PySCF, the grid of the reference energies, and a density."""
    from pyscf import dft, gto, scf

    mol = molecule(name)
    atoms = list(zip(mol.symbols, mol.R_ax.tolist(), strict=True))
    theirs = gto.M(atom=atoms, unit="B", basis="def2-svp", spin=mol.multiplicity - 1, verbose=0)
    grids = dft.gen_grid.Grids(theirs)
    grids.atom_grid, grids.prune = (30, 110), None
    grids.build()
    mf = scf.UHF(theirs)
    mf.max_cycle = 2
    mf.kernel()
    return theirs, grids, mf.make_rdm1()


def ours(name: str) -> tuple[Molecule, Any]:
    from cuanto import Basis

    mol = molecule(name)
    return mol, Basis("def2-svp", mol)


@pytest.mark.parametrize("functional", NAMES)
def test_energy_and_matrix_of_pyscf(functional: str) -> None:
    from pyscf import dft

    theirs, grids, D_spq = pyscf_case("water_02")
    mol, orbital = ours("water_02")
    settings = GridSettings(level=(30, 110))
    D = D_spq.sum(axis=0)
    n, e, v = dft.numint.NumInt().nr_rks(theirs, grids, NAMES[functional], D)
    grid = grid_of_points(grids.coords, grids.weights, orbital, settings, CPU)
    for given in (None, grid):
        term = ExchangeCorrelation(XCPotential(get_functional(functional), CPU, 1), mol, orbital, settings, grid=given)
        energy, F_spq = term.fock(D[None], None)
        assert abs(energy - e) < SAME_GRID and abs(term.electrons - n) < SAME_GRID
        assert abs(F_spq[0] - v).max() < SAME_GRID


@pytest.mark.parametrize("functional", ["lda", "pbe", "tpss"])
def test_open_shells_of_pyscf(functional: str) -> None:
    from pyscf import dft

    theirs, grids, D_spq = pyscf_case("NO2")
    mol, orbital = ours("NO2")
    n, e, v = dft.numint.NumInt().nr_uks(theirs, grids, NAMES[functional], D_spq)
    term = ExchangeCorrelation(
        XCPotential(get_functional(functional), CPU, 2), mol, orbital, GridSettings(level=(30, 110))
    )
    energy, F_spq = term.fock(D_spq, None)
    assert abs(energy - e) < SAME_GRID and abs(term.electrons - sum(n)) < SAME_GRID
    assert abs(F_spq - v).max() < SAME_GRID


@pytest.mark.parametrize("response", [True, False])
@pytest.mark.parametrize(
    ("functional", "name"),
    [
        *((functional, "water_02") for functional in ("lda", "pbe", "tpss", "r2scan", "b3lyp")),
        *((functional, "NO2") for functional in ("lda", "pbe", "tpss")),
    ],
)
def test_gradient_of_pyscf(functional: str, name: str, response: bool) -> None:
    from pyscf import dft, grad

    theirs, grids, D_spq = pyscf_case(name)
    mol, orbital = ours(name)
    if mol.multiplicity == 1:
        D_spq, module = D_spq.sum(axis=0)[None], grad.rks
    else:
        module = grad.uks
    call = module.get_vxc_full_response if response else module.get_vxc
    points_ax, v_sxpq = call(dft.numint.NumInt(), theirs, grids, NAMES.get(functional, functional), np.squeeze(D_spq))
    v_sxpq = v_sxpq.reshape(-1, 3, orbital.nbf, orbital.nbf)
    by_function = 2 * np.einsum("sxpq,spq->px", v_sxpq, D_spq)
    expected = np.array([by_function[first:last].sum(axis=0) for *_, first, last in theirs.aoslice_by_atom()])
    if response:
        expected += points_ax
    settings = GridSettings(level=(30, 110), response=response)
    potential = XCPotential(get_functional(functional), CPU, len(D_spq))
    gradient = ExchangeCorrelation(potential, mol, orbital, settings).gradient(D_spq, None)
    assert abs(gradient - expected).max() < GRADIENT
    if response:
        assert abs(gradient.sum(axis=0)).max() < SAME_GRID


def small_term(functional: str, spins: int, backend: str = "cpu", **more: Any) -> tuple[Any, Any]:
    """Water in a small basis, and orbitals of a plausible density."""
    mol = Molecule.from_string("3\n\nO 0.0 0.1 0.117\nH 0.2 0.757 -0.469\nH 0.0 -0.757 -0.469\n")
    orbital = basis("6-31g", mol)
    settings = GridSettings(level=(15, 50), **more.pop("settings", {}))
    result = ExchangeCorrelation(
        XCPotential(get_functional(functional), get_backend(backend), spins), mol, orbital, settings, **more
    )
    from cuanto import integrals

    S = integrals.overlap(orbital, backend="cpu")
    w, U = np.linalg.eigh(S)
    C = (U / np.sqrt(w)) @ np.linalg.qr(np.random.default_rng(8).normal(size=S.shape))[0]
    return result, np.stack([C[:, :5], C[:, 2:7]])[:spins] * (np.sqrt(2.0) if spins == 1 else 1.0)


@pytest.mark.parametrize("spins", [1, 2])
@pytest.mark.parametrize("functional", ["lda", "pbe", "tpss"])
def test_fock_is_the_derivative_of_the_energy(functional: str, spins: int) -> None:
    term, C_spi = small_term(functional, spins)
    D = C_spi @ C_spi.transpose(0, 2, 1)
    V = np.random.default_rng(1).normal(size=D.shape)
    V, h = V + V.transpose(0, 2, 1), 1e-4
    # Change the orbitals to first order, so that the density stays positive.
    V = C_spi @ (C_spi.transpose(0, 2, 1) @ V)
    V = V + V.transpose(0, 2, 1)
    slope = (term.fock(D + h * V, None)[0] - term.fock(D - h * V, None)[0]) / (2 * h)
    expected = float((term.fock(D, None)[1] * V).sum())
    assert abs(slope - expected) < FINITE_DIFFERENCE * max(1.0, abs(expected))


@pytest.mark.parametrize("functional", ["lda", "pbe", "tpss"])
def test_cpu_and_device_agree_from_matrix_and_orbitals(functional: str) -> None:
    found = []
    for backend in ("cpu", "simt"):
        for density in ("matrix", "orbitals"):
            term, C_spi = small_term(functional, 2, backend, settings={"density": density})
            put, get = get_backend(backend).to_device, get_backend(backend).to_host
            energy, F_spq = term.fock(put(C_spi @ C_spi.transpose(0, 2, 1)), put(C_spi))
            found.append((float(energy), get(F_spq), float(term.electrons)))
    for energy, F_spq, electrons in found[1:]:
        assert abs(energy - found[0][0]) < CPU_CUDA and abs(electrons - found[0][2]) < CPU_CUDA
        assert abs(F_spq - found[0][1]).max() < CPU_CUDA


@pytest.mark.gpu
@pytest.mark.parametrize("spins", [1, 2])
@pytest.mark.parametrize("functional", ["lda", "pbe", "tpss"])
def test_cuda_agrees_with_the_cpu(functional: str, spins: int) -> None:
    for settings in ({}, {"density": "orbitals", "store": "recompute", "partition": "stratmann"}):
        found = []
        for backend in ("cpu", "cuda"):
            term, C_spi = small_term(functional, spins, backend, settings=dict(settings))
            put, read = get_backend(backend).to_device, get_backend(backend).to_host
            D_spq = put(C_spi @ C_spi.transpose(0, 2, 1))
            energy, F_spq = term.fock(D_spq, put(C_spi))
            found.append((float(energy), read(F_spq), float(term.electrons), read(term.gradient(D_spq, put(C_spi)))))
        for one, other in zip(*found, strict=True):
            assert np.abs(one - other).max() < CPU_CUDA


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("name", "method", "precision"),
    [
        ("water_02", "pbe", "double"),
        ("water_02", "r2scan", "double"),
        ("water_02", "b3lyp", "double"),
        ("CH3", "pbe", "double"),
        ("CH3", "tpss", "double"),
        ("CH3", "b3lyp", "double"),
        ("water_02", "pbe", "mixed"),
    ],
)
def test_cuda_and_cpu_converge_to_the_same_energy(name: str, method: str, precision: str) -> None:
    import cuanto

    mol = molecule(name)
    orbital = basis("def2-svp", mol)
    aux = basis("def2-universal-jkfit", mol)
    common: dict[str, Any] = {"fitting": "auto", "auxbasis": aux, "grid": "coarse"}
    on_cpu = cuanto.energy(mol, method, orbital, backend="cpu", **common)
    on_gpu = cuanto.energy(mol, method, orbital, backend="cuda", precision=precision, **common)
    assert on_cpu.converged and on_gpu.converged
    assert abs(on_cpu.energy - on_gpu.energy) < (CPU_CUDA if precision == "double" else 1e-7)


def test_two_equal_spins_are_a_closed_shell() -> None:
    closed, C_spi = small_term("pbe", 1)
    D = C_spi @ C_spi.transpose(0, 2, 1)
    energy, F_spq = closed.fock(D, None)
    unrestricted, _ = small_term("pbe", 2)
    same, F_both = unrestricted.fock(np.concatenate([D, D]) / 2, None)
    assert abs(energy - same) < 1e-11 and abs(F_both - F_spq).max() < 1e-11


@pytest.mark.parametrize("partition", ["becke", "stratmann"])
def test_the_partition_into_groups_changes_nothing(partition: str) -> None:
    found = []
    for edge, fraction in ((1.5, 0.0), (4.0, 0.6), (50.0, 1.0)):
        settings = {"cube_edge": edge, "sphere_fraction": fraction, "partition": partition, "threshold": 1e-10}
        term, C_spi = small_term("pbe", 1, settings=settings)
        found.append(term.fock(C_spi @ C_spi.transpose(0, 2, 1), None))
    for energy, F_spq in found[1:]:
        assert abs(energy - found[0][0]) < CPU_CUDA and abs(F_spq - found[0][1]).max() < CPU_CUDA


def test_mixed_precision_follows_double_and_single_is_near() -> None:
    double, C_spi = small_term("pbe", 1)
    mixed, _ = small_term("pbe", 1, precision="mixed")
    single, _ = small_term("pbe", 1, precision="single")
    D = C_spi @ C_spi.transpose(0, 2, 1)
    change = np.random.default_rng(3).normal(size=D.shape)
    change = change + change.transpose(0, 2, 1)
    for n in range(8):  # an SCF that converges
        energy, F_spq = double.fock(D + 0.02 * 5.0**-n * change, None)
        other, F_other = mixed.fock(D + 0.02 * 5.0**-n * change, None)
        assert abs(energy - other) < 1e-8 and abs(F_spq - F_other).max() < 1e-7
    passes = mixed._integrate.passes
    assert passes["single"] >= 4 and passes["double"] >= 2
    energy, exact = single.fock(D, None)[0], double.fock(D, None)[0]
    assert 0 < abs(energy - exact) < 1e-4


def test_a_coarse_grid_is_named() -> None:
    term, C_spi = small_term("lda", 1, settings={})
    term.fock(C_spi @ C_spi.transpose(0, 2, 1), None)
    assert "the grid is too coarse: the density integrates to" in str(term.warning(9))
    assert term.warning(round(float(term.electrons))) is None or abs(term.electrons - 10) > 1e-3
    with pytest.raises(InputError, match="unknown precision 'half'"):
        small_term("lda", 1, precision="half")
