"""Grids: radial and angular rules, pruning, levels, weights of the cells; against formulas, PySCF and the oracle."""

from __future__ import annotations

from math import pi
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import lebedev_rule
from scipy.spatial import cKDTree

from cuanto import Molecule
from cuanto.backends.base import get_backend
from cuanto.backends.cuda.nvrtc import compile_nvrtc
from cuanto.errors import InputError
from cuanto.grid.partition import divide
from cuanto.grid.points import NEGLIGIBLE_ENERGY, angular_numbers, atomic_points, molecular_points
from cuanto.grid.rules import DEGREES, RADIAL_RULES, bragg_slater_radii, lebedev, radial_rule, treutler_scales
from cuanto.grid.settings import LEVELS, PARTITIONS, GridSettings
from cuanto.kernels.grid_setup import near_source, weights_source
from oracles import grid as reference
from oracles.grid_groups import cell_weights

FORMAMIDE = """6

C  0.0000  0.4200  0.0000
O  1.2000  0.2500  0.1000
N -0.9400 -0.5600  0.0000
H -0.4400  1.4300  0.0500
H -0.6500 -1.5300  0.0200
H -1.9200 -0.3400  0.0000
"""
METAL = "3\n\nFe 0 0 0\nCl 0 0 2.1\nHe 1.9 0.3 -1.2\n"
WEIGHT = 1e-12
"""Tolerance of the weight of a point, relative to its weight in the atom."""


@pytest.mark.parametrize("points", [6, 50, 194, 590])
def test_lebedev_integrates_all_monomials_up_to_its_degree(points: int) -> None:
    x_gx, w_g = lebedev(points)
    assert x_gx.shape == (points, 3) and abs(w_g.sum() - 4 * pi) < 1e-12
    for degree in range(0, DEGREES[points] + 1, 2):
        # int z^n over the sphere
        assert abs(w_g @ x_gx[:, 2] ** degree - 4 * pi / (degree + 1)) < 1e-11


@pytest.mark.parametrize("points", DEGREES)
def test_lebedev_rules_are_those_of_scipy(points: int) -> None:
    x_gx, w_g = lebedev(points)
    x_xg, w = lebedev_rule(DEGREES[points])
    ours, scipy = np.column_stack([x_gx, w_g]), np.vstack([x_xg + 0.0, w]).T  # 0.0, not -0.0
    assert sorted(ours.tolist()) == sorted(scipy.tolist())


def test_other_numbers_of_points_are_refused() -> None:
    with pytest.raises(InputError, match="no Lebedev rule of 300 points: the nearest has 302"):
        lebedev(300)


@pytest.mark.parametrize("rule", RADIAL_RULES)
@pytest.mark.parametrize("Z", [1, 3, 8, 26])
def test_radial_rules_integrate_gaussians(rule: str, Z: int) -> None:
    r, w = radial_rule(rule, 100, Z)
    assert (np.diff(r) > 0).all() and (w > 0).all()
    for a in (0.3, 1.0, 20.0):
        exact = np.sqrt(pi) / (4 * a**1.5)
        assert abs(w @ np.exp(-a * r**2) / exact - 1) < 1e-7


def test_becke_radial_rule_is_the_thesis_formula() -> None:
    n, Z = 35, 8
    r, _ = radial_rule("becke", n, Z)
    x = np.cos(pi * np.arange(1, n + 1) / (n + 1))
    half = 0.5 * bragg_slater_radii()[Z]
    assert abs(half - 0.57) < 0.005  # as given in the paper for oxygen
    assert np.allclose(np.sort(half * (1 + x) / (1 - x)), r, rtol=1e-13)


def test_radii_radial_rule_and_pruning_equal_those_of_pyscf() -> None:
    from pyscf.dft import gen_grid, radi

    assert np.allclose(bragg_slater_radii()[1:97], radi.BRAGG_RADII[1:97], rtol=1e-14)
    assert treutler_scales()[1:37].tolist() == list(radi._treutler_ahlrichs_xi[1:37])
    for Z in (1, 2, 7, 17, 30):
        theirs, slope = radi.treutler_ahlrichs(60, Z)
        r, w = radial_rule("treutler", 60, Z)
        assert np.allclose(r, theirs, rtol=1e-11) and np.allclose(w, theirs**2 * slope, rtol=1e-11)
        for full in (38, 50, 74, 86, 110, 302, 590):
            assert (angular_numbers(Z, r, full, True) == gen_grid.nwchem_prune(Z, r, full)).all()


def test_levels_grow_and_exact_numbers_are_exact() -> None:
    sizes = [len(atomic_points(8, GridSettings(level=level))[1]) for level in LEVELS]
    assert sizes == sorted(sizes) and len(set(sizes)) == len(sizes)
    assert len(atomic_points(8, GridSettings(level=(99, 590)))[1]) == 99 * 590


@pytest.mark.parametrize("Z", [1, 8, 29])
def test_only_shells_of_negligible_energy_are_left_out(Z: int) -> None:
    """Exchange of the density of a hydrogen-like atom; whole shells, so that angular rules do not matter."""
    settings = GridSettings(level=(100, 194))
    (r_gx, w_g, _), (_, kept_g, _) = (atomic_points(Z, settings, least) for least in (0.0, NEGLIGIBLE_ENERGY))
    assert 0 <= len(w_g) - len(kept_g) <= 20 * 194 and np.array_equal(w_g[-len(kept_g) :], kept_g)
    rho_g = 2 * Z**3 / pi * np.exp(-2 * Z * np.sqrt((r_gx**2).sum(axis=1)))
    e_g = w_g * rho_g ** (4 / 3)
    assert e_g[: len(w_g) - len(kept_g)].sum() < 1e-11
    assert len(atomic_points(8, GridSettings(level=(99, 590), pruning="nwchem"))[1]) < 99 * 590
    assert GridSettings.of("99x590").level == GridSettings.of((99, 590)).level == (99, 590)
    assert GridSettings.of(GridSettings(level="coarse"), partition="stratmann").partition == "stratmann"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"level": "ultrafin"}, "unknown grid 'ultrafin'; did you mean 'ultrafine'"),
        ({"level": "huge"}, "choose coarse, medium"),
        ({"level": (99, 591)}, "no Lebedev rule of 591 points"),
        ({"level": (0, 590)}, "radial shells"),
        ({"level": 7}, "level .* or"),
        ({"radial": "simpson"}, "unknown radial"),
        ({"partition": "voronoi"}, "unknown partition"),
        ({"cube_edge": 0.0}, "cube_edge is 0"),
        ({"response": "no"}, "response must be true or false"),
        ({"sphere_fraction": 1.5}, "sphere_fraction"),
        ({"threshold": float("nan")}, "must be a number"),
    ],
)
def test_errors_of_bad_settings_are_helpful(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        GridSettings(**given)


@given(st.text(max_size=12))
def test_any_text_is_a_level_or_an_input_error(text: str) -> None:
    try:
        settings = GridSettings.of(text)
    except InputError:
        return
    assert settings.level in LEVELS or isinstance(settings.level, tuple)


@pytest.mark.parametrize("backend", ["cpu", "simt"])
@pytest.mark.parametrize("partition", PARTITIONS)
@pytest.mark.parametrize("geometry", [FORMAMIDE, METAL], ids=["formamide", "FeClHe"])
def test_weights_agree_with_the_oracle(geometry: str, partition: str, backend: str) -> None:
    mol = Molecule.from_string(geometry, charge=0)
    points = molecular_points(mol, GridSettings(level=(12, 50), partition=partition))
    groups = divide(points, 3.0, 0.4)
    w_g = cell_weights(points, groups, mol, partition, get_backend(backend))
    r_gx, atom_g = points.r_gx[groups.order], points.atom_g[groups.order]
    share_g = reference.cell_shares(r_gx, atom_g, mol.R_ax, mol.numbers.astype(float), partition)
    assert abs(w_g / points.w_g[groups.order] - share_g).max() < WEIGHT


@pytest.mark.parametrize("partition", ["becke", "becke-bragg", "becke-plain", "stratmann"])
def test_weights_equal_those_of_pyscf(partition: str) -> None:
    from pyscf import dft, gto

    mol = Molecule.from_string(FORMAMIDE)
    theirs = gto.M(atom=list(zip(mol.symbols, mol.R_ax.tolist(), strict=True)), unit="B", basis="sto-3g", verbose=0)
    grids = dft.gen_grid.Grids(theirs)
    grids.atom_grid, grids.prune = (15, 86), None
    grids.radii_adjust = {
        "becke": dft.radi.treutler_atomic_radii_adjust,
        "becke-bragg": dft.radi.becke_atomic_radii_adjust,
    }.get(partition)
    if partition == "stratmann":
        grids.becke_scheme = dft.gen_grid.stratmann
    tables = grids.gen_atomic_grids(theirs, grids.atom_grid, grids.radi_method, 0, None)
    r_gx, expected = grids.get_partition(
        theirs, tables, grids.radii_adjust, grids.atomic_radii, grids.becke_scheme, concat=True
    )
    points = molecular_points(mol, GridSettings(level=(15, 86), partition=partition))
    groups = divide(points, 3.0, 0.4)
    w_g = cell_weights(points, groups, mol, partition, get_backend("cpu"))
    distance, same = cKDTree(r_gx).query(points.r_gx[groups.order])
    assert distance.max() < 1e-10 and len(set(same.tolist())) == len(w_g)
    kept = w_g != 0.0
    assert np.allclose(w_g[kept], expected[same][kept], rtol=1e-9, atol=1e-12)
    assert (expected[same][~kept] <= 1.001e-12 * points.w_g[groups.order][~kept]).all()  # negligible shares


@pytest.mark.parametrize("partition", ["becke", "stratmann"])
def test_weights_do_not_change_with_position_and_order(partition: str) -> None:
    mol = Molecule.from_string(FORMAMIDE)
    other = Molecule(mol.symbols[::-1], mol.R_ax[::-1] + np.array([1.0, -2.0, 0.5]))
    totals = []
    for one in (mol, other):
        points = molecular_points(one, GridSettings(level=(12, 50)))
        w_g = cell_weights(points, divide(points, 3.0, 0.4), one, partition, get_backend("cpu"))
        totals.append(np.sort(w_g))
    assert np.allclose(*totals, rtol=1e-9, atol=1e-12)


def test_stratmann_cells_ignore_distant_atoms() -> None:
    near = Molecule.from_string("2\n\nO 0 0 0\nH 0 0 1.0\n")
    far = Molecule(("O", "H", "O", "H"), np.concatenate([near.R_ax, near.R_ax + np.array([0.0, 400.0, 0.0])]))
    found = []
    for mol in (near, far):
        points = molecular_points(mol, GridSettings(level=(30, 50)))
        groups = divide(points, 4.0, 0.5)
        w_g = cell_weights(points, groups, mol, "stratmann", get_backend("cpu"))
        back = np.empty_like(w_g)
        back[groups.order] = w_g
        found.append(back[: 2 * 30 * 50])
    inner = abs(found[0]) < 1e3  # shells beyond the middle between the molecules are shared
    assert np.allclose(found[0][inner], found[1][inner], rtol=1e-12)


@pytest.mark.parametrize("stratmann", [False, True])
@pytest.mark.parametrize("source", [weights_source, near_source])
def test_cuda_text_of_the_weights_compiles(source: Any, stratmann: bool) -> None:
    binary, _ = compile_nvrtc(source("cuda", stratmann).text, "sm_90")
    assert binary.startswith(b"\x7fELF")
