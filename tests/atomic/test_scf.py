"""The SCF of atoms: stationarity, restarts, accelerators, its reports, and the GPU code path on the simulated GPU."""

from __future__ import annotations

import importlib
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from atomic_cases import TIGHT, Array, occupation, random_basis, random_densities, table_atom
from cuanto.atomic import (
    SPECIES,
    Atom,
    AtomBasis,
    AtomIteration,
    AtomResult,
    Nucleus,
    Occupation,
    Repulsion,
    SavedSpinors,
    ScfSettings,
    even_tempered,
    solve,
)
from cuanto.atomic.job import element_job, run_energy
from cuanto.atomic.one_electron import core, overlap
from cuanto.atomic.rotate import SpinorRotations
from cuanto.atomic.solve import diis_error, effective_fock
from cuanto.errors import CuantoError, InputError

solver = importlib.import_module("cuanto.atomic.solve")
SAME = 1e-12
"""Relative tolerance of converged energies of one atom."""
DAMPED = 2e-11
"""Relative tolerance with damping, which converges slowly: default thresholds leave errors of a few 1e-10 Hartree."""


def small_atom() -> Atom:
    """1s2 2s1 2p2: three open symmetries, a closed shell below one of them."""
    basis = AtomBasis.by_momentum([even_tempered(0.08, 3.0, 9), even_tempered(0.07, 3.0, 6)])
    return Atom(Nucleus(5, "gaussian"), basis, occupation("1s2 2s1 2p2", basis))


def energy_of(atom: Atom, repulsion: Repulsion, C_i: list[Array], c: float) -> float:
    """E[C] by definition: sum tr(h D) + 1/2 tr(P D) - 1/2 tr(Q D_open)."""
    means = dict(zip(atom.occupation.open_symmetries, atom.occupation.mean_occupations, strict=True))
    D_i, D_open = [], []
    for i, C in enumerate(C_i):
        closed = atom.occupation.closed[i]
        opened = means.get(i, 0.0) * np.outer(C[:, closed], C[:, closed]) if i in means else np.zeros((len(C),) * 2)
        D_open.append(opened)
        D_i.append(SPECIES[i].capacity * C[:, :closed] @ C[:, :closed].T + opened)
    total = 0.0
    for i, z in enumerate(atom.basis.exponents):
        total += float(np.sum(core(SPECIES[i], z, atom.nucleus, c, True).h * D_i[i]))
    for P, D in zip(repulsion.potential(D_i), D_i, strict=True):
        total += 0.5 * float(np.sum(P * D))
    chosen = atom.occupation.open_symmetries
    if chosen:
        for i, Q in zip(chosen, repulsion.open_shell(D_open, chosen, atom.occupation.coupling()), strict=True):
            total -= 0.5 * float(np.sum(Q * D_open[i]))
    return total


def _overlap(atom: Atom, i: int) -> Array:
    return core(SPECIES[i], atom.basis.exponents[i], atom.nucleus, 1.0, True).S


def complete(atom: Atom, result: AtomResult, i: int) -> Array:
    """Occupied spinors, completed to an orthonormal set."""
    S = _overlap(atom, i)
    L = np.linalg.cholesky(S)
    U = np.linalg.qr(np.concatenate([L.T @ result.coefficients[i], np.eye(len(S))], axis=1))[0][:, : len(S)]
    return np.asarray(np.linalg.solve(L.T, U))


def test_the_energy_is_stationary() -> None:
    """No small rotation of a spinor changes the energy to first order, not even one that mixes closed and open
    spinors."""
    atom = small_atom()
    result = solve(atom, TIGHT, "cpu")
    assert result.converged
    repulsion = Repulsion(atom.basis, "cpu")
    C_i = [C.copy() for C in result.coefficients]
    assert energy_of(atom, repulsion, C_i, TIGHT.c) == pytest.approx(result.energy, rel=1e-13)
    rng = np.random.default_rng(2)
    for i in range(3):
        whole, occupied = complete(atom, result, i), atom.occupation.shells(i)
        whole[:, :occupied] = result.coefficients[i]
        empty = whole[:, occupied:] @ rng.normal(size=whole.shape[1] - occupied)
        whole[:, occupied] = empty / np.linalg.norm(np.linalg.cholesky(_overlap(atom, i)).T @ empty)
        # mix every occupied spinor with a combination of all empty ones, and the closed 1s with the open 2s
        for m, k in combinations(range(occupied + 1), 2):
            energies = []
            for angle in (-1e-4, 1e-4):
                rotated = whole.copy()
                rotated[:, m] = np.cos(angle) * whole[:, m] + np.sin(angle) * whole[:, k]
                rotated[:, k] = np.cos(angle) * whole[:, k] - np.sin(angle) * whole[:, m]
                energies.append(energy_of(atom, repulsion, [*C_i[:i], rotated[:, :occupied], *C_i[i + 1 :]], TIGHT.c))
            assert abs(energies[1] - energies[0]) / 2e-4 < 1e-6


def test_the_fock_matrix_is_the_derivative_of_the_energy() -> None:
    """P is linear and symmetric: tr(P[D] E) = tr(P[E] D); hence d/dD of tr(P[D] D)/2 is P."""
    basis = random_basis(4, (3, 2, 3, 2, 1))
    repulsion = Repulsion(basis, "cpu")
    D_i, E_i = random_densities(basis, 1), random_densities(basis, 2)
    P_i, R_i = repulsion.potential(D_i), repulsion.potential(E_i)
    forward = sum(float(np.sum(P * E)) for P, E in zip(P_i, E_i, strict=True))
    backward = sum(float(np.sum(R * D)) for R, D in zip(R_i, D_i, strict=True))
    assert forward == pytest.approx(backward, rel=1e-12)
    moved = repulsion.potential([D + 0.5 * E for D, E in zip(D_i, E_i, strict=True)])
    for P, R, M in zip(P_i, R_i, moved, strict=True):
        assert np.abs(M - P - 0.5 * R).max() < 1e-12 * np.abs(M).max()


def test_effective_matrix_has_the_blocks_it_should() -> None:
    rng = np.random.default_rng(0)
    C = np.linalg.qr(rng.normal(size=(9, 9)))[0]
    A, Q = (one + one.T for one in rng.normal(size=(2, 9, 9)))
    filling, c, o, r = 0.3, slice(0, 3), slice(3, 4), slice(4, 9)
    M = C.T @ effective_fock(A, Q, C[:, c], C[:, o], filling) @ C
    closed, opened = C.T @ A @ C, C.T @ (A - Q) @ C
    for block in ((c, c), (r, r), (c, r)):
        assert M[block] == pytest.approx(closed[block], abs=1e-12)
    for block in ((o, o), (o, r), (r, o)):
        assert M[block] == pytest.approx(opened[block], abs=1e-12)
    assert M[c, o] == pytest.approx((closed[c, o] - filling * opened[c, o]) / (1 - filling), abs=1e-12)
    e = C.T @ diis_error(C @ M @ C.T, C[:, c], C[:, o]) @ C
    assert np.abs(e + e.T).max() < 1e-12 and np.abs(e[r, r]).max() < 1e-12
    assert np.abs(e[r, c]) == pytest.approx(np.abs(M[r, c]), abs=1e-12)


@pytest.mark.parametrize(
    "settings",
    [
        ScfSettings(accelerator="damping"),
        ScfSettings(accelerator="damping", damping=0.5),
        ScfSettings(level_shift=0.5),
        ScfSettings(history=4),
    ],
    ids=["damping", "strong", "shift", "short"],
)
@pytest.mark.parametrize("symbol", ["Ne", "Ar", "N"])
def test_all_settings_lead_to_the_same_energy(symbol: str, settings: ScfSettings) -> None:
    atom = table_atom(symbol)
    expected = solve(atom, TIGHT, "cpu")
    result = solve(atom, settings, "cpu")
    damped = settings.accelerator == "damping"
    assert result.converged and result.energy == pytest.approx(expected.energy, rel=DAMPED if damped else SAME)
    if damped and settings.damping == 0.3:
        assert 10 <= result.iterations <= 25
    if settings.level_shift:  # the shift is removed near convergence
        assert result.iterations <= expected.iterations + 3


@pytest.mark.parametrize("relativistic", [True, False])
@pytest.mark.parametrize("symbol", ["He", "N", "Ar", "Cr", "Au"])
def test_rotated_spinors_have_the_same_energy(symbol: str, relativistic: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Closed and open shells; in nearly as many iterations, most of them without eigenvectors."""
    atom, settings = table_atom(symbol), replace(TIGHT, relativistic=relativistic)
    expected = solve(atom, settings, "cpu")
    found: list[dict[int, SpinorRotations]] = []
    plain = solver._Scf._lowest

    def watched(self: Any, *given: Any) -> bool:
        found.append(self.rotations)
        return bool(plain(self, *given))

    monkeypatch.setattr(solver._Scf, "_lowest", watched)
    result = solve(atom, replace(settings, diagonaliser="pseudo"), "cpu")
    assert result.converged and result.energy == pytest.approx(expected.energy, rel=1e-13)
    assert result.iterations <= 1.3 * expected.iterations
    steps = [one.steps for one in found[-1].values()]
    assert min(steps) >= 0.5 * result.iterations


def test_rotated_spinors_that_are_not_the_lowest() -> None:
    """Rotations do not reorder levels, so that a wrong occupation is detected at the end."""
    F = np.diag([-9.0, -2.0, -1.0, 3.0]) + 0.01
    rotated = SpinorRotations(lambda F: solver.lowest_eigenvectors(F, 1, 1, 2.0, "S+", rest=True), 1, 1, 1)
    U = rotated(F)
    assert rotated(F + 1e-3 * np.eye(4)[::-1]).shape == U.shape and rotated.steps == 1
    assert rotated.check(F, U)
    other = solver.lowest_eigenvectors(F, 1, 2, 2.0, "S+", rest=True)[:, 1:2]
    assert not rotated.check(F, other)
    rotated(F)
    assert rotated.steps == 1  # one step by full diagonalisation, because the spinors are not the lowest
    crossed = np.diag([-9.0, -1.0, -2.0, 3.0]) + 0.01
    assert abs(rotated(crossed)[2, 0]) > 0.99 and rotated.steps == 1


def test_restarts() -> None:
    """Starts from the same atom, other exponents, another nucleus or c, no relativity and fewer symmetries all work."""
    atom = table_atom("Ne")
    first = solve(atom, backend="cpu")
    scratch = first.iterations
    again = solve(atom, start=first, backend="cpu")
    assert again.iterations <= 3 and again.energy == pytest.approx(first.energy, rel=SAME)
    moved = Atom(
        Nucleus(10, "gaussian"), AtomBasis(tuple(1.02 * z[:-1] for z in atom.basis.exponents)), atom.occupation
    )
    near = solve(moved, start=first, backend="cpu")
    assert near.converged and near.iterations < scratch
    assert near.energy == pytest.approx(solve(moved, backend="cpu").energy, rel=SAME)
    plain = solve(atom, ScfSettings(relativistic=False), start=first, backend="cpu")
    assert plain.converged and plain.iterations < scratch
    back = solve(atom, start=plain, backend="cpu")
    assert back.iterations < scratch and back.energy == pytest.approx(first.energy, rel=SAME)
    from_helium = solve(atom, start=solve(table_atom("He"), backend="cpu"), backend="cpu")
    assert from_helium.converged and from_helium.energy == pytest.approx(first.energy, rel=SAME)
    assert solve(atom, ScfSettings(c=1000.0), start=first, backend="cpu").iterations < scratch


def test_restarts_from_a_file(tmp_path: Path) -> None:
    atom, path = table_atom("B"), tmp_path / "boron.npz"
    first = solve(atom, backend="cpu")
    SavedSpinors.of(first).save(path)
    assert [file.name for file in tmp_path.iterdir()] == ["boron.npz"]
    again = solve(atom, start=SavedSpinors.load(path), backend="cpu")
    assert again.iterations <= 3 and again.energy == pytest.approx(first.energy, rel=SAME)
    path.write_bytes(path.read_bytes()[:200])
    for wrong in (path, tmp_path / "missing.npz", Path(__file__)):
        with pytest.raises(InputError, match="does not contain the spinors"):
            SavedSpinors.load(wrong)
    np.savez(path, relativistic=np.array(True), exponents_0=np.ones(1), coefficients_0=np.ones((3, 1)))
    with pytest.raises(InputError, match="do not match"):
        SavedSpinors.load(path)


def test_integrals_are_reused(monkeypatch: pytest.MonkeyPatch) -> None:
    atom = table_atom("Be")
    repulsion = Repulsion(atom.basis, "cpu")

    def never(*_: object, **__: object) -> None:
        raise AssertionError("integrals were made again")

    monkeypatch.setattr(Repulsion, "__init__", never)
    energies = {
        solve(Atom(nucleus, atom.basis, atom.occupation), ScfSettings(c=c), repulsion=repulsion).energy
        for nucleus in (Nucleus(4), Nucleus(4, "gaussian"), Nucleus(4, "sphere", 1e-3))
        for c in (100.0, 137.0)
    }
    assert len(energies) == 6
    with pytest.raises(InputError, match="other exponents"):
        solve(table_atom("Li"), repulsion=repulsion)
    with pytest.raises(InputError, match="disagree about relativity"):
        solve(atom, ScfSettings(relativistic=False), repulsion=repulsion)


def test_failure_to_converge_is_reported() -> None:
    result = solve(table_atom("Ar"), ScfSettings(max_iterations=4), "cpu")
    assert not result.converged and result.iterations == 4 and len(result.history) == 4


def test_reported_values() -> None:
    seen: list[AtomIteration] = []
    atom = table_atom("Cr")
    result = solve(atom, TIGHT, "cpu", on_iteration=seen.append)
    assert tuple(seen) == result.history
    assert [one.iteration for one in seen] == list(range(1, result.iterations + 1))
    assert seen[-1].energy == result.energy and seen[-1].change_SS < TIGHT.threshold_SS
    assert sum(one.occupation for one in result.spinors) == pytest.approx(24.0, abs=1e-12)
    assert [one.label for one in result.spinors] == [
        *("1s", "2s", "3s", "4s", "2p-", "3p-", "2p+", "3p+", "3d-", "3d+"),
    ]
    assert {one.label for one in result.spinors if not one.closed} == {"4s", "3d-", "3d+"}
    assert set(result.timings) >= {"integrals", "P and Q", "linear algebra"}
    for one in result.spinors:
        z = atom.basis.exponents[SPECIES.index(one.species)]
        S_LL, S_SS = overlap(one.species, z)
        assert one.P_p @ S_LL @ one.P_p + one.Q_p @ S_SS @ one.Q_p == pytest.approx(1.0, abs=1e-12)
        assert one.r_inverse * one.r >= 1.0 and one.r_squared >= one.r**2
    # virial theorem: the energy equals the rest-mass part at the basis limit of a point nucleus
    assert result.parts["rest_mass"] == pytest.approx(result.energy, rel=1e-6)


def test_functions_that_depend_on_each_other() -> None:
    """If two exponents agree to nine digits, a direction is left out and the energy does not change."""
    z = even_tempered(0.1, 2.2, 14)
    atom = Atom(Nucleus(2), AtomBasis((z,)), Occupation((1,)))
    nearly_dependent = replace(atom, basis=AtomBasis((np.sort(np.append(z, z[5] * (1 + 1e-9))),)))
    one, other = (solve(x, backend="cpu") for x in (atom, nearly_dependent))
    assert one.converged and other.converged and other.energy == pytest.approx(one.energy, rel=1e-8)


@pytest.mark.slow
def test_rounding_errors_of_the_density_do_not_prevent_convergence() -> None:
    """The functions of francium with a point nucleus are nearly dependent: its density keeps noise of 1e-7."""
    job = element_job("Fr", nucleus="point")
    result = run_energy(job, "cpu")
    assert result.converged and result.iterations < job.settings.max_iterations
    assert job.settings.threshold_LL < result.history[-1].change_LL < solver.NOISE * job.settings.threshold_LL
    energies = [step.energy for step in result.history[-solver.SETTLED :]]
    assert max(energies) - min(energies) < 1e-13 * abs(result.energy)


def test_negative_energies_are_recognised() -> None:
    """A matrix without the gap between both continua."""
    F = np.diag([-5.0, -4.0, -3.0, 1.0])
    with pytest.raises(CuantoError, match="cannot be told apart"):
        solver.lowest_eigenvectors(F, 2, 1, 1.0, "S+")
    U = solver.lowest_eigenvectors(np.diag([-5.0, -4.0, -0.5, 1.0]), 2, 1, 1.0, "S+")
    assert np.abs(U[:, 0]) == pytest.approx([0, 0, 1, 0])


def test_too_large_for_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    from cuanto.backends.cpu.backend import CpuBackend

    monkeypatch.setattr(CpuBackend, "memory", lambda self: (1000, 1000))
    with pytest.raises(InputError):
        Repulsion(random_basis(0, (6, 5)), "cpu")


@pytest.mark.parametrize("relativistic", [True, False])
def test_the_gpu_code_path(relativistic: bool) -> None:
    """The CUDA kernels, executed thread by thread on the CPU, give the same energy."""
    settings = ScfSettings(relativistic=relativistic)
    ours, theirs = (solve(small_atom(), settings, name) for name in ("cpu", "simt"))
    assert theirs.converged and theirs.energy == pytest.approx(ours.energy, rel=SAME)


def test_g_shells() -> None:
    """An ion with a g shell, on both paths; the thesis stops at f."""
    sets = [(8.0, 5.0, 6), (9.0, 5.0, 5), (9.0, 4.0, 4), (9.0, 4.0, 3), (9.0, 3.0, 3)]
    basis = AtomBasis.by_momentum([even_tempered(*one) for one in sets])
    atom = Atom(Nucleus(100), basis, occupation("1s2 2s2 2p6 3s2 3p6 3d10 4s2 4p6 4d10 4f14 5g18", basis))
    ours, theirs = (solve(atom, backend=name) for name in ("cpu", "simt"))
    assert ours.converged and theirs.energy == pytest.approx(ours.energy, rel=SAME)
    assert [one.label for one in ours.spinors[-2:]] == ["5g-", "5g+"]


def test_one_electron_does_not_repel_itself() -> None:
    """Hydrogen as an open shell: the Dirac energy, and Q takes all of P away."""
    c = 137.03599976
    atom = Atom(Nucleus(1), AtomBasis((even_tempered(0.01, 1.8, 32),)), Occupation((0,), (True,), ((1.0,),)))
    result = solve(atom, TIGHT, "cpu")
    assert result.converged and abs(result.parts["electron_repulsion"]) < 1e-12
    assert result.energy == pytest.approx(c * c * (np.sqrt(1 - 1 / c**2) - 1), abs=2e-9)
    assert result.spinors[0].energy == pytest.approx(result.energy, abs=1e-9)
    assert result.spinors[0].r == pytest.approx(1.5, abs=1e-4)


def test_symmetries_without_functions_or_electrons() -> None:
    """A species P- without functions, and one P+ without electrons, change nothing."""
    z = even_tempered(0.1, 2.2, 14)
    alone = solve(Atom(Nucleus(2), AtomBasis((z,)), Occupation((1,))), backend="cpu")
    among = Atom(Nucleus(2), AtomBasis((z, np.array([]), z[:5])), Occupation((1, 0, 0)))
    for name in ("cpu", "simt"):
        assert solve(among, backend=name).energy == pytest.approx(alone.energy, rel=SAME)
