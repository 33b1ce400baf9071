"""Gradients with respect to atoms: kernels of every backend against the reference, and finite differences."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from cuanto import Molecule
from cuanto.backends.base import get_backend
from cuanto.backends.cuda.nvrtc import compile_nvrtc
from cuanto.basis import Basis
from cuanto.errors import InputError
from cuanto.functionals import XCPotential, get_functional
from cuanto.grid import panels, weights
from cuanto.grid.base import ShellTable
from cuanto.grid.gradient import blocks_of_points
from cuanto.grid.grouped_grid import GroupedGrid
from cuanto.grid.groups import grid_of_points, make_grid
from cuanto.grid.quadrature import make_quadrature
from cuanto.grid.settings import PARTITIONS, GridSettings
from cuanto.grid.weights import share_gradient
from cuanto.kernels.grid_setup import weights_gradient_source
from cuanto.kernels.grid_values import COMPONENTS, device_kernel, device_values
from cuanto.terms.exchange_correlation import ExchangeCorrelation
from fitting_cases import budget_of
from oracle import random_shell
from oracles import grid as reference
from scf_cases import WATER, basis

FAMILIES = ("lda", "gga", "mgga")
LIMIT = 1 << 30
EXACT = 1e-11
"""Tolerance relative to the largest element, with a threshold of 1e-14 for functions."""
SETTINGS: dict[str, Any] = {"level": (8, 26), "cube_edge": 3.0, "sphere_fraction": 0.4, "threshold": 1e-14}


def atoms_of(orbital: Basis) -> Any:
    return np.repeat([shell.atom for shell in orbital.shells], [shell.nbf for shell in orbital.shells])


def expected_gradient(orbital: Basis, grid: GroupedGrid, D_spq: Any, v_scg: Any, moving: bool, backend: str) -> Any:
    r_gx = get_backend(backend).to_host(grid.position_xg).T
    chi, second = reference.functions_at(orbital, r_gx), reference.second_derivatives_at(orbital, r_gx)
    forces = reference.energy_forces(chi, second, D_spq, v_scg)
    gradient = np.zeros(orbital.R_ax.shape)
    for x, force_gp in enumerate(forces):
        np.subtract.at(gradient[:, x], atoms_of(orbital), force_gp.sum(axis=0))
        if moving:
            np.add.at(gradient[:, x], get_backend(backend).to_host(grid.atom_g), force_gp.sum(axis=1))
    return gradient


@lru_cache
def case(backend: str) -> tuple[Basis, GroupedGrid]:
    mol = Molecule.from_string(WATER)
    orbital = basis("cc-pvdz", mol)
    return orbital, make_grid(mol, orbital, GridSettings(**SETTINGS), get_backend(backend))


@lru_cache
def random_case(family: str, backend: str) -> tuple[Any, Any, Any, dict[bool, Any]]:
    """Orbitals, density matrices, potentials, and the gradients with fixed and with moving points."""
    orbital, grid = case(backend)
    rng = np.random.default_rng(2)
    C_spi = rng.normal(size=(2, orbital.nbf, 7))
    D_spq = C_spi @ C_spi.transpose(0, 2, 1)
    v_scg = rng.normal(size=(2, COMPONENTS[family], len(grid.w_g))) * grid.w_g
    found = {m: expected_gradient(orbital, grid, D_spq, v_scg, m, backend) for m in (False, True)}
    return C_spi, D_spq, v_scg, found


@pytest.mark.parametrize("backend", ["cpu", "simt"])
@pytest.mark.parametrize("family", FAMILIES)
def test_kernels_agree_with_the_reference(family: str, backend: str) -> None:
    orbital, grid = case(backend)
    C_spi, D_spq, v_scg, expected = random_case(family, backend)
    put = get_backend(backend).to_device
    for store, moving in (("recompute", True), ("keep", False)):
        settings = GridSettings(**SETTINGS, store=store, batch_bytes=1 << 20)
        quadrature, _ = make_quadrature(grid, orbital, get_backend(backend), family, settings, budget_of(LIMIT))
        for orbitals in (None, put(C_spi)):
            found = quadrature.backend.to_host(quadrature.gradient(put(D_spq), orbitals, put(v_scg), moving))
            assert abs(found - expected[moving]).max() < EXACT * abs(expected[moving]).max()


@pytest.mark.parametrize("backend", ["cpu", "simt"])
@pytest.mark.parametrize("pure", [True, False])
def test_high_momenta_and_general_contractions(pure: bool, backend: str) -> None:
    rng = np.random.default_rng(6)
    shells = [random_shell(rng, l, nprim=2, ncol=1 + l % 3, pure=pure) for l in range(7)]
    orbital = Basis.from_shells(shells, np.array([[0.1, -0.2, 0.3]]))
    settings, device = GridSettings(level=(6, 26), threshold=1e-14), get_backend(backend)
    grid = make_grid(Molecule.from_string("1\n\nAr 0 0 0\n"), orbital, settings, device)
    quadrature, _ = make_quadrature(grid, orbital, device, "mgga", settings, budget_of(LIMIT))
    D = rng.normal(size=(1, orbital.nbf, orbital.nbf))
    D_spq, v_scg = D + D.transpose(0, 2, 1), rng.normal(size=(1, 5, len(grid.w_g))) * grid.w_g
    found = device.to_host(quadrature.gradient(device.to_device(D_spq), None, device.to_device(v_scg), False))
    expected = expected_gradient(orbital, grid, D_spq, v_scg, False, backend)
    assert abs(found - expected).max() < EXACT * abs(expected).max()


@pytest.mark.parametrize("lanes", [2, 4, 8])
@pytest.mark.parametrize("family", FAMILIES)
def test_gradient_does_not_depend_on_the_width_of_a_vector(
    family: str, lanes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = panels.cpu_gradient
    monkeypatch.setattr(
        panels, "cpu_gradient", lambda *given: replace(make(*given), text=f"#define LANES {lanes}\n{make(*given).text}")
    )
    orbital, grid = case("cpu")
    C_spi, D_spq, v_scg, expected = random_case(family, "cpu")
    settings = GridSettings(**SETTINGS)
    quadrature, _ = make_quadrature(grid, orbital, get_backend("cpu"), family, settings, budget_of(LIMIT))
    for orbitals in (None, C_spi):
        found = quadrature.gradient(D_spq, orbitals, v_scg, True)
        assert abs(found - expected[True]).max() < EXACT * abs(expected[True]).max()


@pytest.mark.parametrize("family", FAMILIES)
def test_blocks_of_groups_do_not_change_the_result(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panels, "LOCAL_FUNCTIONS", 4)
    orbital, grid = case("cpu")
    C_spi, D_spq, v_scg, expected = random_case(family, "cpu")
    settings = GridSettings(**SETTINGS)
    result = panels.PanelQuadrature(grid, orbital, get_backend("cpu"), family, "double", settings, LIMIT)
    assert result._blocks.local
    for orbitals in (None, C_spi):
        found = result.gradient(D_spq, orbitals, v_scg, True)
        assert abs(found - expected[True]).max() < EXACT * abs(expected[True]).max()


CLUSTER = "7\n\nFe 0 0 0\nCl 0 0 2.1\nHe 1.9 0.3 -1.2\nH 0 5 0.2\nO 0.3 5.7 0.8\nH -0.5 6.2 1.2\nLi 9 0 0.5\n"


@pytest.mark.parametrize("backend", ["cpu", "simt"])
@pytest.mark.parametrize("partition", PARTITIONS)
def test_derivatives_of_weights_agree_with_the_reference(
    partition: str, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weights, "ENTRIES_AT_ONCE", 100)  # several passes
    mol, device = Molecule.from_string(CLUSTER), get_backend(backend)
    settings = GridSettings(**SETTINGS, partition=partition)
    grid = make_grid(mol, basis("sto-3g", mol), settings, device)
    f_g = np.random.default_rng(1).normal(size=len(grid.w_g)) * grid.w_g
    placed = blocks_of_points(grid, device.to_device(f_g), device)
    found = device.to_host(share_gradient(placed, mol.R_ax, mol.numbers, partition, device))
    atom_g, r_gx = device.to_host(grid.atom_g), device.to_host(grid.position_xg).T
    used = grid.w_g > 0
    expected = reference.weighted_share_gradient(f_g[used], r_gx[used], atom_g[used], mol.R_ax, mol.numbers, partition)
    assert abs(found - expected).max() < EXACT * abs(expected).max()
    assert abs(found.sum(axis=0)).max() < EXACT * abs(expected).max()


def term_of(functional: str, spins: int, R_ax: Any = None, backend: str = "cpu", **settings: Any) -> Any:
    mol = Molecule.from_string(WATER)
    mol = mol if R_ax is None else Molecule(mol.symbols, R_ax)
    potential = XCPotential(get_functional(functional), get_backend(backend), spins)
    return ExchangeCorrelation(
        potential, mol, basis("6-31g", mol), GridSettings(level=(15, 50), threshold=1e-14, **settings)
    )


def density(spins: int) -> Any:
    """A density matrix whose density is positive everywhere."""
    C_pi = np.linalg.qr(np.random.default_rng(8).normal(size=(13, 7)))[0]
    C_spi = np.stack([C_pi[:, :5], C_pi[:, 2:]])[:spins] * (np.sqrt(2.0) if spins == 1 else 1.0)
    return C_spi @ C_spi.transpose(0, 2, 1)


def check_against_differences(functional: str, D_spq: Any, elements: Any, **settings: Any) -> None:
    """The gradient at some atoms and axes, and that it adds up to zero."""
    term = term_of(functional, len(D_spq), **settings)
    gradient, R_ax = term.gradient(D_spq, None), term.molecule.R_ax
    assert gradient.shape == (3, 3) and abs(gradient.sum(axis=0)).max() < 1e-12
    for element in elements:

        def energy(step: float, element: Any = element) -> float:
            moved = R_ax.copy()
            moved[element] += step
            return float(term_of(functional, len(D_spq), moved, **settings).fock(D_spq, None)[0])

        h = 2e-3
        slope = (8 * (energy(h) - energy(-h)) - (energy(2 * h) - energy(-2 * h))) / (12 * h)
        assert abs(slope - gradient[element]) < 1e-9


@pytest.mark.parametrize(
    ("functional", "spins", "partition"),
    [
        ("lda", 1, "becke"),
        ("lda", 2, "stratmann"),
        ("pbe", 1, "stratmann"),
        ("pbe", 2, "becke-plain"),
        ("b3lyp", 1, "becke-bragg"),
        ("tpss", 1, "becke"),
        ("r2scan", 2, "becke"),
    ],
)
def test_gradient_is_the_derivative_of_the_energy(functional: str, spins: int, partition: str) -> None:
    check_against_differences(functional, density(spins), ((0, 0), (1, 2)), partition=partition)


@pytest.mark.parametrize("functional", ["pbe", "tpss"])
def test_gradient_where_a_spin_has_no_electrons(functional: str) -> None:
    D_spq = density(2)
    D_spq[1] = 0
    check_against_differences(functional, D_spq, ((1, 1),))


@pytest.mark.parametrize("precision", ["mixed", "single"])
def test_gradient_is_in_double_precision(precision: str) -> None:
    term, D_spq = term_of("pbe", 1), density(1)
    other = ExchangeCorrelation(term._potential, term.molecule, term.basis, term.settings, precision=precision)
    assert abs(other.gradient(D_spq, None) - term.gradient(D_spq, None)).max() < 1e-13


@pytest.mark.parametrize("device", ["simt", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("functional", ["lda", "pbe", "tpss"])
def test_device_agrees_with_the_cpu(functional: str, device: str) -> None:
    for response in (True, False):
        found = []
        for backend in ("cpu", device):
            term = term_of(functional, 2, backend=backend, response=response)
            where = get_backend(backend)
            found.append(where.to_host(term.gradient(where.to_device(density(2)), None)))
        assert abs(found[0] - found[1]).max() < 1e-12


def test_given_points_do_not_move() -> None:
    term, D_spq = term_of("pbe", 1), density(1)
    r_gx, cpu = term.grid.position_xg.T, get_backend("cpu")
    grid = grid_of_points(np.ascontiguousarray(r_gx), term.grid.w_g, term.basis, term.settings, cpu)
    for response in (True, False):
        settings = replace(term.settings, response=response)
        other = ExchangeCorrelation(term._potential, term.molecule, term.basis, settings, grid=grid)
        if response:
            with pytest.raises(InputError, match="do not move with atoms"):
                other.gradient(D_spq, None)
        else:
            rest = term_of("pbe", 1, response=False).gradient(D_spq, None)
            assert abs(other.gradient(D_spq, None) - rest).max() < 1e-12


@pytest.mark.parametrize("family", FAMILIES)
def test_cuda_text_compiles(family: str) -> None:
    table = ShellTable.of(case("cpu")[0])
    sources = [device_values((table.kinds, table.columns, family), "double", 1)]
    sources += [device_kernel(name, family, "double") for name in ("right", "force", "atoms")]
    sources += [weights_gradient_source("cuda", stratmann) for stratmann in (False, True)]
    for source in sources:
        binary, log = compile_nvrtc(source.text, "sm_90")
        assert binary.startswith(b"\x7fELF") and "warning" not in log
