"""Functions, densities and Kohn-Sham matrices from the kernels of every backend, against the NumPy oracle and PySCF."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from cuanto.backends.base import get_backend
from cuanto.backends.cuda.nvrtc import compile_nvrtc
from cuanto.basis import Basis
from cuanto.grid import panels
from cuanto.grid.base import ShellTable
from cuanto.grid.grouped_grid import GroupedGrid
from cuanto.grid.groups import make_grid
from cuanto.grid.quadrature import make_quadrature
from cuanto.grid.settings import GridSettings
from cuanto.kernels.grid_values import COMPONENTS, device_kernel, device_values
from fitting_cases import budget_of
from oracle import random_shell
from oracles import grid as reference
from scf_cases import basis, molecule

FAMILIES = ("lda", "gga", "mgga")
LIMIT = 1 << 30
EXACT = 1e-11
"""Tolerance relative to the largest element, with a threshold of 1e-14 for functions."""
SETTINGS: dict[str, Any] = {"level": (10, 26), "cube_edge": 3.0, "sphere_fraction": 0.4, "threshold": 1e-14}


@lru_cache
def case(backend: str) -> tuple[Basis, GroupedGrid, Any]:
    mol = molecule("water_02")
    orbital = basis("cc-pvdz", mol)
    grid = make_grid(mol, orbital, GridSettings(**SETTINGS), get_backend(backend))
    return orbital, grid, reference.functions_at(orbital, get_backend(backend).to_host(grid.position_xg).T)


def expected_density(chi: Any, D_pq: Any, family: str) -> Any:
    X = chi[0] @ D_pq
    rows = [(X * chi[0]).sum(axis=1)]
    if family != "lda":
        rows += [2 * (X * chi[x]).sum(axis=1) for x in (1, 2, 3)]
    if family == "mgga":
        rows.append(0.5 * sum(((chi[x] @ D_pq) * chi[x]).sum(axis=1) for x in (1, 2, 3)))
    return np.array(rows)


def expected_matrix(chi: Any, v_cg: Any, family: str) -> Any:
    B = chi[0] * v_cg[0][:, None]
    if family != "lda":
        B = B + sum(chi[x] * v_cg[x][:, None] for x in (1, 2, 3))
    V = chi[0].T @ B
    if family == "mgga":
        V = V + sum(chi[x].T @ (chi[x] * v_cg[4][:, None]) for x in (1, 2, 3))
    return V + V.T


def relative(found: Any, expected: Any) -> float:
    """Largest error of any row, relative to its largest element."""
    return float((abs(found - expected) / abs(expected).max(axis=-1, keepdims=True)).max())


def test_oracle_functions_agree_with_pyscf() -> None:
    from pyscf import gto

    mol = molecule("water_02")
    for cart in (False, True):
        orbital = Basis("def2-svp", mol, spherical=not cart)
        r_gx = np.random.default_rng(0).normal(size=(50, 3), scale=2.0)
        theirs = gto.M(
            atom=list(zip(mol.symbols, mol.R_ax.tolist(), strict=True)),
            unit="B",
            basis="def2-svp",
            cart=cart,
            verbose=0,
        )
        name = "GTOval_cart_deriv1" if cart else "GTOval_sph_deriv1"
        assert abs(reference.functions_at(orbital, r_gx) - theirs.eval_gto(name, r_gx)).max() < 1e-12


@pytest.mark.parametrize("backend", ["cpu", "simt"])
@pytest.mark.parametrize("store", ["recompute", "keep"])
@pytest.mark.parametrize("family", FAMILIES)
def test_density_and_matrix(family: str, store: str, backend: str) -> None:
    orbital, grid, chi = case(backend)
    settings = GridSettings(**SETTINGS, store=store, batch_bytes=1 << 20)
    quadrature, plan = make_quadrature(grid, orbital, get_backend(backend), family, settings, budget_of(LIMIT))
    assert plan.stored == (store == "keep") and quadrature.kept_bytes > 0
    put, get = get_backend(backend).to_device, get_backend(backend).to_host
    rng = np.random.default_rng(2)
    C_spi = rng.normal(size=(2, orbital.nbf, 7))
    D_spq = C_spi @ C_spi.transpose(0, 2, 1)
    for given in (None, put(C_spi)):
        rho_scg = get(quadrature.density(put(D_spq), given))
        assert rho_scg.shape == (2, COMPONENTS[family], len(grid.w_g))
        for s in range(2):
            assert relative(rho_scg[s], expected_density(chi, D_spq[s], family)) < EXACT
    v_scg = rng.normal(size=rho_scg.shape)
    F_spq = get(quadrature.matrix(put(v_scg)))
    for s in range(2):
        V = expected_matrix(chi, v_scg[s], family)
        assert abs(F_spq[s] - V).max() < EXACT * abs(V).max()
        assert abs(F_spq[s] - F_spq[s].T).max() <= 1e-14 * abs(V).max()


@pytest.mark.parametrize("backend", ["cpu", "simt"])
@pytest.mark.parametrize("family", FAMILIES)
def test_accuracy_of_single_precision(family: str, backend: str) -> None:
    orbital, grid, chi = case(backend)
    quadrature, _ = make_quadrature(
        grid, orbital, get_backend(backend), family, GridSettings(**SETTINGS), budget_of(LIMIT), "float"
    )
    put, get = get_backend(backend).to_device, get_backend(backend).to_host
    C_spi = np.random.default_rng(4).normal(size=(1, orbital.nbf, 5))
    rho_scg = get(quadrature.density(put(C_spi @ C_spi.transpose(0, 2, 1)), None))
    assert rho_scg.dtype == np.float32
    expected = expected_density(chi, (C_spi @ C_spi.transpose(0, 2, 1))[0], family)
    assert relative(rho_scg[0], expected) < 2e-5
    V = expected_matrix(chi, expected, family)
    assert abs(get(quadrature.matrix(put(expected[None])))[0] - V).max() < 2e-5 * abs(V).max()


@pytest.mark.parametrize("backend", ["cpu", "simt"])
@pytest.mark.parametrize("pure", [True, False])
def test_high_momenta_and_general_contractions(pure: bool, backend: str) -> None:
    rng = np.random.default_rng(6)
    mol = molecule("water_02")
    shells = [random_shell(rng, l, nprim=2, ncol=1 + l % 3, pure=pure) for l in range(7)]
    orbital = Basis.from_shells(shells, np.array([[0.1, -0.2, 0.3]]))
    settings = GridSettings(level=(6, 26), threshold=1e-14)
    grid = make_grid(mol, orbital, settings, get_backend(backend))
    put, get = get_backend(backend).to_device, get_backend(backend).to_host
    chi = reference.functions_at(orbital, get(grid.position_xg).T)
    quadrature, _ = make_quadrature(grid, orbital, get_backend(backend), "mgga", settings, budget_of(LIMIT))
    D = rng.normal(size=(orbital.nbf, orbital.nbf))
    rho_scg = get(quadrature.density(put((D + D.T)[None]), None))
    assert relative(rho_scg[0], expected_density(chi, D + D.T, "mgga")) < EXACT
    v_scg = rng.normal(size=rho_scg.shape)
    V = expected_matrix(chi, v_scg[0], "mgga")
    assert abs(get(quadrature.matrix(put(v_scg)))[0] - V).max() < EXACT * abs(V).max()


@pytest.mark.parametrize("lanes", [2, 4, 8])
@pytest.mark.parametrize("family", FAMILIES)
def test_kernels_of_the_cpu_do_not_depend_on_the_width_of_a_vector(
    family: str, lanes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def with_lanes(make: Any) -> Any:
        def make_source(*arguments: Any) -> Any:
            source = make(*arguments)
            return replace(source, text=f"#define LANES {lanes}\n{source.text}")

        return make_source

    for name in ("cpu_density", "cpu_matrix"):
        monkeypatch.setattr(panels, name, with_lanes(getattr(panels, name)))
    orbital, grid, chi = case("cpu")
    quadrature, _ = make_quadrature(
        grid, orbital, get_backend("cpu"), family, GridSettings(**SETTINGS), budget_of(LIMIT)
    )
    D = np.random.default_rng(9).normal(size=(1, orbital.nbf, orbital.nbf))
    D = D + D.transpose(0, 2, 1)
    rho_scg = quadrature.density(D, None)
    assert relative(rho_scg[0], expected_density(chi, D[0], family)) < EXACT
    V = expected_matrix(chi, rho_scg[0], family)
    assert abs(quadrature.matrix(rho_scg)[0] - V).max() < EXACT * abs(V).max()


@pytest.mark.parametrize("real", ["double", "float"])
@pytest.mark.parametrize("family", FAMILIES)
def test_blocks_of_groups_do_not_change_the_result(family: str, real: str, monkeypatch: pytest.MonkeyPatch) -> None:
    orbital, grid, _ = case("cpu")
    rng = np.random.default_rng(12)
    C_spi = rng.normal(size=(2, orbital.nbf, 5))
    D_spq, v_scg = C_spi @ C_spi.transpose(0, 2, 1), rng.normal(size=(2, COMPONENTS[family], len(grid.w_g)))
    found = []
    for functions in (1000, 4):
        monkeypatch.setattr(panels, "LOCAL_FUNCTIONS", functions)
        settings = GridSettings(**SETTINGS)
        quadrature = panels.PanelQuadrature(grid, orbital, get_backend("cpu"), family, real, settings, LIMIT)
        blocks, tasks = quadrature._blocks, panels._cut_into_tasks(grid)
        assert blocks.local == (functions == 4) and blocks.first[-1] == len(tasks.group)
        densities = quadrature.density(D_spq, None), quadrature.density(D_spq, C_spi)
        found.append((*densities, quadrature.matrix(v_scg)))
    assert len(blocks.first) - 1 < len(tasks.group)
    for one, other in zip(*found, strict=True):
        assert abs(one - other).max() <= (1e-13 if real == "double" else 1e-6) * abs(one).max()


@pytest.mark.parametrize("real", ["double", "float"])
@pytest.mark.parametrize("family", FAMILIES)
def test_cuda_text_compiles(family: str, real: str) -> None:
    orbital, _, _ = case("cpu")
    table = ShellTable.of(orbital)
    names = ("density", "weigh", "scatter", "gather_matrix", "gather_orbitals", "gather_transposed")
    sources = [device_values((table.kinds, table.columns, family), real)]
    sources += [device_kernel(name, family, real) for name in names]
    for source in sources:
        binary, _ = compile_nvrtc(source.text, "sm_90")
        assert binary.startswith(b"\x7fELF")
