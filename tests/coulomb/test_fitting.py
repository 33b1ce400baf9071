"""Fitted J and K: against their definition, stored energies and PySCF; on every backend; with and without orbitals."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import cuanto
from cuanto import Basis, Molecule, integrals
from cuanto.backends import Backend, device_linalg, get_backend
from cuanto.backends.cpu.backend import CpuBackend
from cuanto.backends.cuda.nvrtc import compile_nvrtc
from cuanto.coulomb import fitting, j_steps
from cuanto.coulomb.fitted_tensor import ThreeCentre, Workspace, portions
from cuanto.coulomb.fitting import FittedJK, recomputed_sizes, row_sizes
from cuanto.coulomb.fitting_blocks import BlockTensor, aux_slices
from cuanto.coulomb.fitting_direct import DirectFit
from cuanto.coulomb.fitting_layout import THRESHOLD, make_layout
from cuanto.coulomb.fitting_packed import PackedRows, cut_pairs
from cuanto.coulomb.fitting_rows import PAIR_BOUND, GroupedRows, NativeRows, find_partners, large_pairs, separate_parts
from cuanto.coulomb.hermite_pairs import primitives, single_blocks
from cuanto.coulomb.metric import MAX_PERTURBATION, FittingMetric, modified_cholesky
from cuanto.errors import InputError
from cuanto.kernels.hermite_build import straight_source
from fitting_cases import (
    DATA,
    Device,
    budget_of,
    fitted_jk,
    molecule,
    random_orbitals,
    smallest_budget,
)
from tolerances import CPU_CUDA, ENERGY

ROUNDING = 1e-11
"""Tolerance of J and K of densities of order one, relative to their largest element."""
DEVICES = ["cpu", "device", pytest.param("cuda", marks=pytest.mark.gpu)]
ENERGIES: list[dict[str, Any]] = json.loads((DATA / "rhf_ccpvdz.json").read_text())


@pytest.fixture(autouse=True)
def basis_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUANTO_BASIS_PATH", str(DATA / "basis"))


def backend(name: str) -> Backend:
    return Device() if name == "device" else get_backend(name)


def bases(name: str, **options: Any) -> tuple[Basis, Basis]:
    mol = molecule(name)
    return Basis("cc-pvdz", mol, **options), Basis("cc-pvdz-jkfit", mol, **options)


def close(mine: Any, expected: Any, fit: FittedJK, tolerance: float = ROUNDING) -> None:
    difference = np.abs(fit.backend.to_host(mine) - expected).max()
    assert difference <= tolerance * max(1.0, np.abs(expected).max()), difference


# ------------------------------------------------------------------------------------------------- definition


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["water_01", "alkane_03"])
@pytest.mark.parametrize("spherical", [True, False], ids=["pure", "cartesian"])
def test_the_definition(name: str, spherical: bool, device: str) -> None:
    basis, aux = bases(name, spherical=spherical)
    C_spi, D_spq = random_orbitals(basis.nbf, 6, spins=2)
    fit = FittedJK(basis, aux, backend=backend(device))
    put = fit.backend.to_device
    J, K = fit(put(D_spq), put(C_spi))
    for s in range(2):
        expected = fitted_jk(basis, aux, D_spq[s], D_spq[s])
        close(J[s], expected[0], fit)
        close(K[s], expected[1], fit)
    only = FittedJK(basis, aux, backend=backend(device), kind="j")
    close(only(put(D_spq), None, True, False)[0], fit.backend.to_host(J), only)


def test_gpu_kernels_on_simt() -> None:
    hydrogen = Molecule(["H", "H"], [[0, 0, 0], [0, 0, 1.4]])
    basis, aux = Basis("cc-pvdz", hydrogen), Basis("cc-pvdz-jkfit", hydrogen)
    C_spi, D_spq = random_orbitals(basis.nbf, 2)
    fit = FittedJK(basis, aux, backend="simt")
    for mine, expected in zip(fit(D_spq, C_spi), fitted_jk(basis, aux, D_spq[0], D_spq[0]), strict=True):
        close(mine[0], expected, fit)


@pytest.mark.parametrize("device", DEVICES)
def test_densities_without_orbitals(device: str) -> None:
    """Any symmetric density is accepted, even with negative eigenvalues."""
    basis, aux = bases("water_02")
    A = np.random.default_rng(5).normal(size=(2, basis.nbf, basis.nbf)) / basis.nbf
    D_spq = A + A.transpose(0, 2, 1)
    fit = FittedJK(basis, aux, backend=backend(device))
    J, K = fit(fit.backend.to_device(D_spq))
    for s in range(2):
        expected = fitted_jk(basis, aux, D_spq[s], D_spq[s])
        close(J[s], expected[0], fit)
        close(K[s], expected[1], fit)


def test_only_wanted_matrices_are_computed() -> None:
    basis, aux = bases("water_01")
    C_spi, D_spq = random_orbitals(basis.nbf, 5)
    fit = FittedJK(basis, aux, backend="cpu")
    both = fit(D_spq, C_spi)
    J, nothing = fit(D_spq, None, True, False)
    assert nothing is None and np.array_equal(J, both[0])
    nothing, K = fit(D_spq, C_spi, False, True)
    assert nothing is None and np.array_equal(K, both[1])
    padded = np.concatenate([C_spi, np.zeros((1, basis.nbf, 3))], axis=2)  # a spin with fewer electrons
    close(fit(D_spq, padded)[1], both[1], fit)
    assert np.abs(fit(0.0 * D_spq)[1]).max() == 0.0


def test_fitting_approaches_exact_integrals() -> None:
    """The fit with a large set agrees with four-centre integrals, which are computed independently."""
    water = molecule("water_01")
    result = cuanto.energy(water, "rhf", "cc-pvdz", fitting="none", backend="cpu")
    basis, aux = result.basis, Basis("cc-pvdz-jkfit", water)
    D_spq, C_spi = result.density, np.sqrt(2.0) * result.coefficients[:, :, :5]
    eri = integrals.eri_4c(basis, backend="cpu")
    J_exact = np.einsum("pqrt,rt->pq", eri, D_spq[0])
    K_exact = np.einsum("prqt,rt->pq", eri, D_spq[0])
    J, K = FittedJK(basis, aux, backend="cpu")(D_spq, C_spi)
    assert 1e-6 < np.abs(J[0] - J_exact).max() < 2e-3
    assert 1e-6 < np.abs(K[0] - K_exact).max() < 2e-3
    # The Coulomb energy of a robust fit is a lower bound (Dunlap).
    assert np.sum(J[0] * D_spq[0]) < np.sum(J_exact * D_spq[0])


# ------------------------------------------------------------------------------------------------- J engine

SOME = ("water_01", "benzene", "alkane_04")
DIRECT = 1e-10
"""Tolerance of J from the J engine against J from three-centre integrals, for densities of order one."""


@pytest.mark.parametrize(
    ("name", "device"),
    [
        ("water_01", "device"),  # simulated GPU, which is slow
        *((name, "cpu") for name in SOME),
        *(pytest.param(name, "cuda", marks=pytest.mark.gpu) for name in SOME),
    ],
)
def test_j_engine_equals_integrals_in_memory(name: str, device: str) -> None:
    basis, aux = bases(name)
    _, D_spq = random_orbitals(basis.nbf, 20, spins=3)
    fit = FittedJK(basis, aux, backend=backend(device), kind="j")
    assert fit.plan.mode == "in-core"
    D = fit.backend.to_device(D_spq)
    expected = fit.backend.to_host(fit(D, None, True, False)[0])
    direct = DirectFit(basis, aux, fit.backend)
    metric = ThreeCentre(basis, aux, fit.backend).metric()
    J = fit.backend.to_host(direct.potential(metric.solve(direct.fit(D))))
    assert np.abs(J - expected).max() < DIRECT
    for done in direct.statistics:
        assert done.interactions > 0.9 * done.possible  # little is negligible in a small molecule
        assert done.error < 1e-11


@pytest.mark.parametrize("spherical", [True, False], ids=["pure", "cartesian"])
def test_both_sums_of_the_j_engine(spherical: bool) -> None:
    """Against integrals; the fitting set is contracted, with functions that share exponents."""
    basis, _ = bases("water_01", spherical=spherical)
    aux = Basis("6-31g**", molecule("water_01"), spherical=spherical)
    I_pqP = integrals.eri_3c(basis, aux, backend="cpu")
    _, D_spq = random_orbitals(basis.nbf, 5)
    direct = DirectFit(basis, aux, get_backend("cpu"))
    x = np.einsum("pqP,spq->sP", I_pqP, D_spq)
    np.testing.assert_allclose(direct.fit(D_spq), x, rtol=0, atol=ROUNDING * np.abs(x).max())
    c = np.random.default_rng(2).normal(size=(1, aux.nbf))
    J = np.einsum("pqP,sP->spq", I_pqP, c)
    np.testing.assert_allclose(direct.potential(c), J, rtol=0, atol=ROUNDING * np.abs(J).max())


@pytest.mark.parametrize("worth_compiling", [0.0, float("inf")], ids=["straight", "general"])
def test_gpu_j_engine_on_simt(worth_compiling: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(j_steps, "WORTH_COMPILING", {"cpu": worth_compiling, "cuda": worth_compiling})
    hydrogen = Molecule(["H", "H"], [[0, 0, 0], [0, 0, 1.4]])
    basis, aux = Basis("sto-3g", hydrogen), Basis("cc-pvdz", hydrogen)  # s and p: few kernels
    _, D_spq = random_orbitals(basis.nbf, 1, spins=2)
    simt = get_backend("simt")
    direct, put, get = DirectFit(basis, aux, simt), simt.to_device, simt.to_host
    x = np.einsum("pqP,spq->sP", integrals.eri_3c(basis, aux, backend="cpu"), D_spq)
    np.testing.assert_allclose(get(direct.fit(put(D_spq))), x, rtol=0, atol=ROUNDING)
    J = np.einsum("pqP,sP->spq", integrals.eri_3c(basis, aux, backend="cpu"), x)
    np.testing.assert_allclose(get(direct.potential(put(x))), J, rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("orders", [(3, 1), (1, 3)])
def test_the_cuda_text_of_unequal_sides_compiles(orders: tuple[int, int]) -> None:
    """Fitting functions against pairs, and pairs against fitting functions."""
    assert compile_nvrtc(straight_source("cuda", *orders, 1, "double").text, "sm_90")[0][:4] == b"\x7fELF"


@pytest.mark.parametrize("kind", ["j", "jk"])
def test_the_smallest_budget_stores_nothing(kind: str) -> None:
    """With the smallest budget one orbital is transformed at a time; with less, the fit is refused."""
    basis, aux = bases("water_01")
    C_spi, D_spq = random_orbitals(basis.nbf, 3)
    kept, budget = FittedJK(basis, aux, backend="cpu", kind=kind), smallest_budget(basis, aux, kind)
    with pytest.raises(InputError, match="density fitting needs"):
        FittedJK(basis, aux, backend="cpu", kind=kind, budget=budget_of(budget.limit - 1))
    fit = FittedJK(basis, aux, backend="cpu", kind=kind, budget=budget)
    assert kept.plan.mode == "in-core" and str(fit.plan).startswith("direct: J engine, ")
    assert budget.available() == 0 and set(budget.reserved) == {"fitted integrals"}
    for mine, theirs in zip(fit(D_spq, C_spi, True, kind == "jk"), kept(D_spq, C_spi, True, kind == "jk"), strict=True):
        if theirs is not None:
            close(mine, theirs, fit)


def test_a_fitting_function_is_a_pair_with_one() -> None:
    _, aux = bases("water_01")
    groups, contraction = primitives(aux)
    blocks = single_blocks(groups, get_backend("cpu"))
    assert sum(block.count * block.functions for block in blocks) == contraction.shape[1]
    largest = np.sqrt(np.diag(integrals.eri_2c(aux, backend="cpu"))).max()
    assert blocks[0].arrays.bound.max() == pytest.approx(largest, rel=1e-6)
    assert [block.order for block in blocks] == [max(l for l, _ in group.kind) for group in groups]


# ------------------------------------------------------------------------------------------------- energies

SMALL = [r for r in ENERGIES if r["molecule"] in ("alkane_01", "alkane_02", "benzene")]
FITTED = {"RI-J and RI-K": "jk", "RI-J, exact K": "j"}
CASES = [r for r in SMALL if r["fitting"] in FITTED and r["auxbasis"] == "cc-pvdz-jkfit"]


def title(record: dict[str, Any]) -> str:
    return f"{record['molecule']}-{FITTED[record['fitting']]}"


@pytest.mark.parametrize("record", CASES, ids=title)
def test_energies_of_the_reference(record: dict[str, Any]) -> None:
    result = cuanto.energy(
        molecule(record["molecule"]), "rhf", "cc-pvdz", fitting=FITTED[record["fitting"]],
        auxbasis="cc-pvdz-jkfit", backend="cpu", energy_tolerance=1e-10,
    )  # fmt: skip
    assert result.converged
    assert result.energy == pytest.approx(record["energy"], abs=ENERGY)


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["alkane_01", "benzene", "ribavirin", "alkane_18"])
def test_gpu_energies_equal_those_of_the_reference(name: str) -> None:
    record = next(r for r in ENERGIES if r["molecule"] == name and r["fitting"] == "RI-J and RI-K")
    options = {"fitting": "jk", "auxbasis": record["auxbasis"], "energy_tolerance": 1e-10}
    result = cuanto.energy(molecule(name), "rhf", "cc-pvdz", backend="cuda", **options)
    assert result.energy == pytest.approx(record["energy"], abs=CPU_CUDA)


# ------------------------------------------------------------------------------------------------- blocks


def far_apart() -> Molecule:
    """Three water molecules in a row, 60 Bohr apart, with their atoms interleaved."""
    water = molecule("water_01")
    order = [(atom, part) for atom in range(3) for part in (2, 0, 1)]
    R_ax = [water.R_ax[atom] + [60.0 * part, 0.0, 0.0] for atom, part in order]
    return Molecule([water.symbols[atom] for atom, _ in order], R_ax)


@pytest.mark.parametrize("kind", ["jk", "j"])
@pytest.mark.parametrize("device", ["cpu", "device"])
def test_distant_pairs_have_no_rows(kind: str, device: str) -> None:
    waters = far_apart()
    basis, aux = Basis("cc-pvdz", waters), Basis("cc-pvdz-jkfit", waters)
    layout = make_layout(basis, triangle=kind == "j")
    assert layout.starts[-1] == 3 * 24**2  # only pairs inside a molecule
    C_spi, D_spq = random_orbitals(basis.nbf, 8)
    fit = FittedJK(basis, aux, backend=backend(device), kind=kind)
    J, K = fit(D_spq, C_spi, True, kind == "jk")
    expected = fitted_jk(basis, aux, D_spq[0], D_spq[0])
    close(J[0], expected[0], fit)
    if kind == "jk":
        close(K[0], expected[1], fit)


@pytest.mark.parametrize("triangle", [False, True])
def test_layout_has_every_significant_pair(triangle: bool) -> None:
    basis, _ = bases("alkane_18")
    layout = make_layout(basis, triangle)
    table = layout.row_table()
    there = table >= 0
    assert sorted(layout.order) == list(range(basis.nbf))
    assert np.array_equal(there, there.T) and there.diagonal().all()
    assert np.count_nonzero(there) < 0.9 * basis.nbf**2  # the ends of the chain do not overlap
    S = np.abs(integrals.overlap(basis, backend="cpu"))
    assert S[~there].max() < 10 * THRESHOLD
    if triangle:
        assert np.array_equal(table, table.T)
        used = table[np.tril(there)]
        assert len(np.unique(used)) == len(used) and used.max() < layout.starts[-1]
    else:
        assert np.array_equal(np.sort(table[there]), np.arange(layout.starts[-1]))  # each row once
        for block, start in zip(layout.blocks, layout.starts, strict=False):
            rows = table[np.ix_(layout.order[block.first : block.last], layout.order[block.q])].T
            assert np.array_equal(rows.ravel(), start + np.arange(block.rows))


def test_partners_of_functions() -> None:
    """Partners are symmetric, lower ones first; neglected pairs are small, and fewer remain than in blocks."""
    basis, _ = bases("alkane_18")
    partners = find_partners(basis)
    table = partners.row_table()
    there = table >= 0
    assert np.array_equal(there, there.T) and there.diagonal().all()
    assert np.array_equal(np.sort(table[there]), np.arange(partners.rows))
    assert np.array_equal(partners.lower, np.tril(there).sum(axis=1))
    S = np.abs(integrals.overlap(basis, backend="cpu"))
    assert S[~there].max() < 10 * PAIR_BOUND
    assert partners.rows < 0.8 * make_layout(basis, triangle=False).starts[-1]
    rows = np.unique(np.concatenate([pair.rows.reshape(-1) for pair in large_pairs(basis)]))
    assert np.array_equal(rows, np.flatnonzero(np.tril(there)))


@pytest.mark.parametrize("mixed", [False, True], ids=["in order", "mixed"])
def test_orbitals_of_atoms(mixed: bool) -> None:
    """Orbitals on single atoms, as in superposed atomic densities, are split by atom; rotated ones have the same K."""
    basis, aux = bases("alkane_03")
    rng = np.random.default_rng(4)
    if mixed:
        basis = Basis.from_shells([basis.shells[k] for k in rng.permutation(len(basis.shells))], basis.R_ax)
    atom_p = np.repeat([shell.atom for shell in basis.shells], [shell.nbf for shell in basis.shells])
    atom_i = rng.permutation(np.repeat(np.arange(len(basis.R_ax)), 3))
    C_pi = np.where(atom_p[:, None] == atom_i, rng.normal(size=(basis.nbf, len(atom_i))), 0.0)
    C_pi[:, 5] = 0.0  # a spin with fewer electrons
    rotated = C_pi @ np.linalg.qr(rng.normal(size=2 * (len(atom_i),)))[0]
    assert len(separate_parts(C_pi)) == len(basis.R_ax) and not separate_parts(rotated)
    fit = FittedJK(basis, aux, backend="cpu")
    D_pq = C_pi @ C_pi.T
    expected = fit(D_pq[None], rotated[None], False, True)[1]
    close(fit(D_pq[None], C_pi[None], False, True)[1], expected, fit)
    if not mixed:  # fewer orbitals at a time than threads
        assert isinstance(fit.tensor, NativeRows)
        fit.tensor.columns, fit.tensor._X = 1, Workspace(fit.backend)
        close(fit(D_pq[None], C_pi[None], False, True)[1], expected, fit)
        assert 0 < fit.tensor._X._array.size <= basis.nbf * aux.nbf
        nothing = fit(0.0 * D_pq[None], C_pi[None, :, :0], False, True)[1]
        assert not separate_parts(C_pi[:, :0]) and not nothing.any()


@pytest.mark.parametrize("omega", [0.1, 0.05])
def test_strongly_perturbed_metric_leaves_functions_out(omega: float) -> None:
    """Functions are left out rather than changing the metric too much."""
    V_PQ = integrals.eri_2c(bases("water_01")[1], backend="cpu", omega=omega)  # nearly singular
    scale_P = 1.0 / np.sqrt(np.diag(V_PQ))
    assert modified_cholesky(V_PQ * scale_P * scale_P[:, None]).report.perturbation > MAX_PERTURBATION
    metric = FittingMetric(V_PQ, get_backend("cpu"))
    assert metric.report.method == "pivoted cholesky" and "left out" in str(metric.report)
    x_nP = np.random.default_rng(0).normal(size=(3, len(V_PQ))) @ V_PQ
    assert np.abs(metric.solve(x_nP) @ V_PQ - x_nP).max() < 1e-11 * np.abs(x_nP).max()


def test_shells_in_any_order() -> None:
    """Rows and columns of J and K follow the functions."""
    basis, aux = bases("water_02")
    rng = np.random.default_rng(11)
    order = rng.permutation(len(basis.shells))
    mixed = Basis.from_shells([basis.shells[k] for k in order], basis.R_ax)
    functions = np.concatenate([np.arange(basis.offsets[k], basis.offsets[k] + basis.shells[k].nbf) for k in order])
    C_spi, D_spq = random_orbitals(basis.nbf, 5)
    fit, other = FittedJK(basis, aux, backend="cpu"), FittedJK(mixed, aux, backend="cpu")
    both = zip(fit(D_spq, C_spi), other(D_spq[:, functions][:, :, functions], C_spi[:, functions]), strict=True)
    for expected, mine in both:
        close(mine[0], expected[0][np.ix_(functions, functions)], fit)


def test_atoms_without_functions() -> None:
    basis, aux = bases("water_01")
    ghost = np.concatenate([basis.R_ax, [[0.0, 0.0, 9.0]]])
    moved = Basis.from_shells(basis.shells, ghost)
    C_spi, D_spq = random_orbitals(basis.nbf, 5)
    expected = FittedJK(basis, aux, backend="cpu")(D_spq, C_spi)
    fit = FittedJK(moved, aux, backend="cpu")
    for mine, theirs in zip(fit(D_spq, C_spi), expected, strict=True):
        close(mine, theirs, fit)


@pytest.mark.parametrize("at_once", [1, 7, 30, 10_000])
def test_slices_of_a_fitting_basis(at_once: int) -> None:
    _, aux = bases("water_01")
    slices = aux_slices(aux, at_once)
    assert [index for part, _ in slices for index in range(part.start, part.stop)] == list(range(aux.nbf))
    assert sum(ket.count for _, kets in slices for ket in kets) == len(aux.shells)
    largest = max(shell.nbf for shell in aux.shells)
    assert all(part.stop - part.start <= max(at_once, largest) for part, _ in slices)


# ------------------------------------------------------------------------------------------------- input


def test_nonsense_is_refused() -> None:
    basis, aux = bases("water_01")
    with pytest.raises(InputError, match="unknown kind of fitting 'k': choose jk, j"):
        FittedJK(basis, aux, backend="cpu", kind="k")
    with pytest.raises(InputError, match=r"aux must be a cuanto\.Basis, str was given"):
        FittedJK(basis, "cc-pvdz-jkfit", backend="cpu")  # type: ignore[arg-type]
    fit = FittedJK(basis, aux, backend="cpu", kind="j")
    with pytest.raises(InputError, match=r"for J only: use FittedJK"):
        fit(np.zeros((1, basis.nbf, basis.nbf)))
    with pytest.raises(InputError, match=r"densities are \[s, 24, 24\] here"):
        fit(np.zeros((24, 24)), None, True, False)


@pytest.mark.parametrize("name", DEVICES[1:])
def test_rows_of_functions_where_blocks_do_not_fit_on_a_device(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A chain, in which few pairs of functions matter: less memory, the same J and K, in parts as memory allows."""
    monkeypatch.setattr(device_linalg, "COPIED_ROWS", 64)
    monkeypatch.setattr(device_linalg.DeviceLinalg, "copied_rows", 3 * 64)
    monkeypatch.setattr(device_linalg, "SUMMED_AT_ONCE", 1000)
    orbital, aux = bases("alkane_06")
    C_spi, D_spq = (backend(name).to_device(x) for x in random_orbitals(orbital.nbf, 40, spins=2))
    blocks = FittedJK(orbital, aux, backend=backend(name))
    partners = find_partners(orbital)
    sizes = row_sizes(ThreeCentre(orbital, aux, blocks.backend), partners)
    needed = sizes.stored(sizes.columns)
    assert partners.rows < orbital.nbf**2 and needed < blocks.plan.in_core
    rows = FittedJK(orbital, aux, backend=backend(name), budget=budget_of(needed, blocks.backend))
    assert isinstance(blocks.tensor, BlockTensor)
    assert rows.plan.mode == "in-core" and isinstance(rows.tensor, GroupedRows)
    for mine, expected in zip(rows(D_spq, C_spi), blocks(D_spq, C_spi), strict=True):
        close(mine, rows.backend.to_host(expected), rows, 1e-9)


# ------------------------------------------------------------------------------------------------- the protocol


@pytest.mark.parametrize("device", ["cpu", "device", "direct", "packed", "recomputed"])
def test_every_tensor_has_the_same_sums(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """J = B B D, X = B C and K = X X^T, with (pq|rt) = B B^T; X in portions, in the order of `order`."""
    basis, aux = bases("water_01")
    C_spi, D_spq = random_orbitals(basis.nbf, 5)
    budget = smallest_budget(basis, aux, "jk") if device == "direct" else None
    packed, on_device = device in ("packed", "recomputed"), device not in ("cpu", "direct")
    if packed:  # small molecules are not packed by default
        monkeypatch.setitem(fitting.SCHEDULES, "cuda", replace(fitting.SCHEDULES["cuda"], storages=("packed",)))
    if device == "recomputed":
        parts = cut_pairs(basis, find_partners(basis), fitting.FUNCTIONS["cuda"], aux.nbf)
        three_centre = ThreeCentre(basis, aux, Device())
        sizes = recomputed_sizes(three_centre, parts)
        budget = budget_of(replace(sizes, engine=fitting.engine_bytes(three_centre, True)).minimum, Device())
    fitted = FittedJK(basis, aux, backend=Device() if on_device else "cpu", budget=budget)
    assert isinstance(fitted.tensor, PackedRows) == packed and (fitted.plan.mode == "in-core") == (budget is None)
    metric, put, get = (
        ThreeCentre(basis, aux, fitted.backend).metric(),
        fitted.backend.to_device,
        fitted.backend.to_host,
    )
    B_pqP = integrals.eri_3c(basis, aux, backend="cpu") @ get(metric.inverse).T
    x_sP = np.einsum("pqP,spq->sP", B_pqP, D_spq)
    found = fitted.tensor.fit(put(D_spq))
    close(fitted.tensor.coefficients(found), x_sP @ get(metric.inverse), fitted, DIRECT)
    close(fitted.tensor.potential(found), np.einsum("pqP,sP->spq", B_pqP, x_sP), fitted, DIRECT)
    fitted.tensor.columns = 2
    portion_X = [get(X_ipP).copy() for X_ipP in fitted.tensor.half_transform(put(C_spi[0]))]
    assert [len(X_ipP) for X_ipP in portion_X] == [2, 2, 1]
    X_ipP = np.einsum("pqP,qi->ipP", B_pqP, C_spi[0])
    close(np.concatenate(portion_X), X_ipP[:, fitted.tensor.order], fitted)
    close(fitted.tensor.exchange(put(C_spi[0])), np.einsum("ipP,iqP->pq", X_ipP, X_ipP), fitted)


@pytest.mark.parametrize("kind", ["jk", "j"])
def test_same_bits_with_other_threads(kind: str) -> None:
    basis, aux = bases("alkane_03")
    C_spi, D_spq = random_orbitals(basis.nbf, 9)
    fits = [FittedJK(basis, aux, backend=CpuBackend(threads, "table"), kind=kind) for threads in (1, 3)]
    for M, other in zip(*(fit(D_spq, C_spi, True, kind == "jk") for fit in fits), strict=True):
        assert np.array_equal(M, other)


def test_portions() -> None:
    """Portions are nearly equal, none is too large, and together they are complete."""
    assert [(some.start, some.stop) for some in portions(10, 4)] == [(0, 4), (4, 8), (8, 10)]
    assert [(some.start, some.stop) for some in portions(9, 8)] == [(0, 5), (5, 9)]
    assert list(portions(0, 3)) == []
