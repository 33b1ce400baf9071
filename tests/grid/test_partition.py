"""Groups of points: no point and no significant function is lost; the choice of a partition; memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cuanto import Basis, Molecule
from cuanto.backends.base import get_backend
from cuanto.backends.cuda.nvrtc import compile_nvrtc
from cuanto.basis import Shell
from cuanto.grid.batches import cut_into_pieces
from cuanto.grid.cost import COSTS, EDGES, FRACTIONS, choose_partition, points_near
from cuanto.grid.grouped_grid import GroupedGrid
from cuanto.grid.groups import PADDING, grid_of_points, make_grid
from cuanto.grid.panels import PanelQuadrature
from cuanto.grid.partition import Boxes, ShellReaches, divide
from cuanto.grid.points import molecular_points
from cuanto.grid.quadrature import SCHEDULES, values_limit
from cuanto.grid.settings import GridSettings
from cuanto.kernels.grid_setup import KERNELS, setup_kernel
from oracle import random_shell
from oracles import grid as reference
from oracles.grid_groups import Extents, extents, reaches, significant
from scf_cases import basis, molecule

CPU = get_backend("cpu")


def water_cluster(settings: GridSettings) -> Any:
    mol = molecule("water_02")
    return mol, basis("6-31g", mol), molecular_points(mol, settings)


def on_host(grid: GroupedGrid, backend: Any) -> GroupedGrid:
    names = ("position_xg", "list_shell", "list_row", "ao")
    return replace(grid, **{name: backend.to_host(getattr(grid, name)) for name in names})


def boxes_of(points: Any, groups: Any, name: str) -> tuple[Boxes, Extents]:
    """Boxes from the kernels of a backend, and from NumPy."""
    backend = get_backend(name)
    position = backend.to_device(np.ascontiguousarray(points.r_gx[groups.order].T))
    boxes = Boxes.of(position, groups.first, backend)
    return boxes, Extents(*backend.download(list(boxes.arguments.values())))


@pytest.mark.parametrize("name", ["cpu", "simt"])
@pytest.mark.parametrize("fraction", [0.0, 0.5, 1.0])
def test_groups_have_every_point_once_within_their_boxes(fraction: float, name: str) -> None:
    _, _, points = water_cluster(GridSettings(level=(20, 50)))
    groups = divide(points, 2.5, fraction)
    assert sorted(groups.order.tolist()) == list(range(len(points)))
    _, where = boxes_of(points, groups, name)
    for field in ("low_gx", "high_gx", "centre_gx", "radius_g"):
        assert np.allclose(getattr(where, field), getattr(extents(points.r_gx, groups), field), rtol=1e-13, atol=1e-13)
    for i in range(len(groups)):
        r_gx = points.r_gx[groups.order[groups.first[i] : groups.first[i + 1]]]
        assert (r_gx >= where.low_gx[i] - 1e-12).all() and (r_gx <= where.high_gx[i] + 1e-12).all()
        assert np.linalg.norm(r_gx - where.centre_gx[i], axis=1).max() <= where.radius_g[i] + 1e-12
    if fraction == 1.0:
        assert len(groups) == 6  # a sphere for each atom


@pytest.mark.parametrize("pure", [True, False])
@pytest.mark.parametrize("l", [0, 1, 2, 4])
def test_no_function_is_larger_beyond_its_reach(l: int, pure: bool) -> None:
    from cuanto.basis import Basis

    rng = np.random.default_rng(l)
    shell = random_shell(rng, l, nprim=3, ncol=2, pure=pure)
    direction = rng.normal(size=(200, 3))
    direction /= np.linalg.norm(direction, axis=1)[:, None]
    one = Basis.from_shells([shell], np.zeros((1, 3)))
    for threshold in (1e-4, 1e-9):
        end = float(reaches([shell], threshold)[0])
        for factor in (1.0, 1.1, 1.5, 3.0):
            assert abs(reference.functions_at(one, factor * end * direction)[0]).max() <= threshold
        assert abs(reference.functions_at(one, 0.8 * end * direction)[0]).max() > threshold / 100


@pytest.mark.parametrize("name", ["cpu", "simt"])
def test_lists_contain_every_significant_function(name: str) -> None:
    settings = GridSettings(level=(25, 50), threshold=1e-5)
    _, orbital, points = water_cluster(settings)
    groups = divide(points, 2.0, 0.4)
    listed = significant(orbital, reaches(orbital.shells, settings.threshold), extents(points.r_gx, groups))
    found = ShellReaches(orbital, settings.threshold, get_backend(name)).count(boxes_of(points, groups, name)[0])
    assert found[0].tolist() == listed.sum(axis=1).tolist()
    assert found[1].tolist() == (listed @ np.array([shell.nbf for shell in orbital.shells])).tolist()
    assert len(np.unique(found[2])) == len(np.unique(listed, axis=0))
    size = abs(reference.functions_at(orbital, points.r_gx)[0])
    shell_of = np.repeat(np.arange(len(orbital.shells)), [shell.nbf for shell in orbital.shells])
    for i in range(len(groups)):
        largest = size[groups.order[groups.first[i] : groups.first[i + 1]]].max(axis=0)
        assert (largest[~listed[i][shell_of]] <= settings.threshold).all()
    assert not listed.all()


@pytest.mark.parametrize("name", ["cpu", "simt"])
def test_grid_keeps_weights_merges_equal_lists_and_is_padded(name: str) -> None:
    backend = get_backend(name)
    settings = GridSettings(level=(30, 50), cube_edge=2.0, sphere_fraction=0.4)
    mol, orbital, points = water_cluster(settings)
    grid = on_host(make_grid(mol, orbital, settings, backend), backend)
    assert (grid.points % PADDING[backend.traits.language] == 0).all() and (grid.points > 0).all()
    lists = {
        np.sort(grid.list_shell[a:b]).tobytes() for a, b in zip(grid.list_first[:-1], grid.list_first[1:], strict=True)
    }
    assert len(lists) == len(grid) < len(divide(points, 2.0, 0.4))
    for i in range(len(grid)):
        shells = grid.list_shell[grid.list_first[i] : grid.list_first[i + 1]]
        ao = [a for s in shells for a in range(orbital.offsets[s], orbital.offsets[s] + orbital.shells[s].nbf)]
        assert grid.ao[grid.ao_first[i] : grid.ao_first[i + 1]].tolist() == ao
        assert len(set(ao)) == len(ao)
        largest = abs(reference.functions_at(orbital, grid.position_xg.T[slice(*grid.point_first[i : i + 2])])[0])
        if grid.bound is not None:
            bound = grid.bound[grid.ao_first[i] : grid.ao_first[i + 1]]
            assert (np.diff(bound) <= 0).all() and (largest.max(axis=0)[ao] <= bound * (1 + 1e-3)).all()
        rows = grid.list_row[grid.list_first[i] : grid.list_first[i + 1]]
        assert rows.tolist() == [ao.index(orbital.offsets[s]) for s in shells]
    # the integral of a density of unit charge shows that no point was lost
    R_x = mol.R_ax[0]
    density = (2.0 / np.pi) ** 1.5 * np.exp(-2.0 * ((grid.position_xg.T - R_x) ** 2).sum(axis=1))
    assert abs(grid.w_g @ density - 1) < 1e-3


@pytest.mark.parametrize("name", ["cpu", "simt"])
def test_points_close_to_a_heavy_nucleus_are_kept(name: str) -> None:
    """Their weights are small, but the density is not."""
    mol = Molecule(["Xe", "H"], [[0.0, 0.0, 0.0], [0.0, 0.0, 3.2]])
    a, backend = 1e6, get_backend(name)
    orbital = Basis.from_shells([Shell.from_table(atom, 0, [0.3], [[1.0]], True) for atom in (0, 1)], mol.R_ax)
    grid = on_host(make_grid(mol, orbital, GridSettings(level=(300, 50)), backend), backend)
    density = (2 * a / np.pi) ** 1.5 * np.exp(-2 * a * (grid.position_xg**2).sum(axis=0))
    assert grid.w_g @ density == pytest.approx(1.0, abs=1e-10)
    far = molecular_points(mol, GridSettings(level=(300, 50)))
    assert np.count_nonzero(grid.w_g) < 0.97 * len(far)


@pytest.mark.parametrize("partition", ["becke", "stratmann"])
def test_a_grid_made_on_a_device_has_the_points_of_the_host(partition: str) -> None:
    settings = GridSettings(level=(20, 50), cube_edge=2.0, sphere_fraction=0.4, partition=partition)
    mol, orbital, _ = water_cluster(settings)
    found = []
    for name in ("cpu", "simt"):
        grid = on_host(make_grid(mol, orbital, settings, get_backend(name)), get_backend(name))
        used = grid.w_g != 0
        rows = np.column_stack([grid.position_xg.T[used], grid.w_g[used], np.repeat(grid.functions, grid.points)[used]])
        found.append(rows[np.lexsort(rows[:, :3].T)])
    assert len(found[0]) == len(found[1]) and np.allclose(*found, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_cuda_text_of_the_groups_compiles(name: str) -> None:
    binary, _ = compile_nvrtc(setup_kernel(name, "cuda").text, "sm_90")
    assert binary.startswith(b"\x7fELF")


def test_given_points() -> None:
    _, orbital, points = water_cluster(GridSettings(level=(20, 50)))
    grid = grid_of_points(points.r_gx, points.w_g, orbital, GridSettings(), CPU)
    assert abs(grid.w_g.sum() - points.w_g.sum()) < 0.5 * points.w_g.sum()
    assert np.count_nonzero(grid.w_g) <= len(points)


def test_pieces_cover_all_points_and_have_few_sizes() -> None:
    settings = GridSettings(level=(30, 50), cube_edge=1.5, sphere_fraction=0.4)
    mol, orbital, _ = water_cluster(settings)
    grid = make_grid(mol, orbital, settings, get_backend("simt"))
    counts = []
    for batch in (0.0, 1e-4, 1.0):
        pieces = cut_into_pieces(grid, replace(COSTS["cuda"], batch=batch))
        points = np.concatenate([np.arange(p, p + n) for p, n in zip(pieces.point_t, pieces.size_t, strict=True)])
        assert sorted(points.tolist()) == list(range(len(grid.w_g)))
        assert (pieces.rows_t >= grid.functions[pieces.group_t]).all()
        sizes = [(pieces.rows_t[i], pieces.size_t[i]) for i in pieces.bounds()[:-1]]
        assert len(set(sizes)) == len(sizes)
        counts.append(len(sizes))
    assert counts[0] >= counts[1] >= counts[2] >= 1


def test_cost_model_chooses_and_can_be_overridden() -> None:
    settings = GridSettings(level=(20, 50))
    _, orbital, points = water_cluster(settings)
    on_cpu, on_device = (ShellReaches(orbital, settings.threshold, get_backend(name)) for name in ("cpu", "simt"))
    sizes = np.array([shell.nbf for shell in orbital.shells])
    for on_backend, language in ((on_cpu, "cpu"), (on_device, "cuda")):
        edge, fraction = choose_partition(points, on_backend, settings)
        e, f = EDGES.index(edge), FRACTIONS.index(fraction)
        near = [(EDGES[i], fraction) for i in (e - 1, e + 1) if 0 <= i < len(EDGES)]
        near += [(edge, FRACTIONS[i]) for i in (f - 1, f + 1) if 0 <= i < len(FRACTIONS)]
        predicted = []
        for choice in [(edge, fraction), *near]:
            groups = divide(points, *choice)
            listed = significant(orbital, reaches(orbital.shells, settings.threshold), extents(points.r_gx, groups))
            predicted.append(COSTS[language].seconds(groups.sizes, (listed @ sizes).astype(np.int64)))
        assert min(predicted) == predicted[0] and len(set(predicted)) > 1
    given = GridSettings(level=(20, 50), cube_edge=5.0, sphere_fraction=0.3)
    assert choose_partition(points, on_cpu, given) == (5.0, 0.3)
    assert choose_partition(points, on_device, GridSettings(cube_edge=5.0))[0] == 5.0


def test_the_sample_has_the_nearest_points(monkeypatch: pytest.MonkeyPatch) -> None:
    _, _, points = water_cluster(GridSettings(level=(20, 50)))
    R_mx = points.r_gx[[0, -1]]
    monkeypatch.setattr("cuanto.grid.cost.SAMPLE_POINTS", 100)
    sample = points_near(points, R_mx)
    chosen = {tuple(r_x) for r_x in sample.r_gx.tolist()}
    for R_x in R_mx:
        distance_g = np.linalg.norm(points.r_gx - R_x, axis=1)
        closer = points.r_gx[distance_g < np.sort(distance_g)[99]]
        assert {tuple(r_x) for r_x in closer.tolist()} <= chosen
    assert 100 <= len(sample) <= 200 and np.array_equal(sample.r_xg, sample.r_gx.T)


def test_larger_groups_cost_more_functions() -> None:
    mol = molecule("water_04")
    orbital = basis("6-31g", mol)
    mean = []
    for edge in (1.5, 4.0, 20.0):
        settings = GridSettings(level=(20, 50), cube_edge=edge, sphere_fraction=0.4)
        mean.append(make_grid(mol, orbital, settings, CPU).mean_functions)
    assert mean == sorted(mean) and mean[0] < 0.8 * mean[-1]


def test_values_are_stored_if_it_pays_and_fits() -> None:
    assert values_limit("auto", 1000, 200, reading_is_faster=True) == 400
    assert values_limit("auto", 1000, 2000, reading_is_faster=True) == 0
    assert values_limit("auto", 1000, 200, reading_is_faster=False) == 0
    assert values_limit("recompute", 1000, 200, reading_is_faster=True) == 0
    assert values_limit("keep", 1000, 200, reading_is_faster=False) == 1000


def test_orbitals_pay_when_they_are_few() -> None:
    mol = molecule("water_02")
    orbital = basis("6-31g", mol)
    grid = make_grid(mol, orbital, GridSettings(level=(20, 50)), CPU)
    for family in ("lda", "gga", "mgga"):
        every, some = (
            PanelQuadrature(grid, orbital, CPU, family, "double", GridSettings(threshold=limit), 1 << 30)
            for limit in (1e-20, 1e-3)
        )
        assert (every.pairs >= grid.functions**2).all() and (some.pairs < every.pairs).any()
        for schedule in SCHEDULES.values():
            by_matrix, by_orbitals = schedule.products[family]
            assert 0 < by_matrix <= by_orbitals
        assert every.prefers_orbitals(1) and not every.prefers_orbitals(1000)
        limits = [max(n for n in range(1, 60) if q.prefers_orbitals(n)) for q in (every, some)]
        assert limits[0] > limits[1]
