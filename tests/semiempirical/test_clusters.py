"""Large NDDO calculations: the guess from molecules, DIIS of rotations, and sums without rounding errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cuanto import Molecule
from cuanto.backends.base import get_backend
from cuanto.memory import Budget
from cuanto.methods.semiempirical import Semiempirical
from cuanto.options import ScfOptions
from cuanto.scf.convergence import Criteria
from cuanto.scf.loop import Problem, Scf
from cuanto.scf.occupations import Aufbau
from cuanto.scf.pseudodiagonalise import Pseudo
from cuanto.semiempirical.constants import BOHR
from cuanto.semiempirical.engine import PairEngine
from cuanto.semiempirical.fock import Fock
from cuanto.semiempirical.guess import find_molecules, fragment_orbitals
from cuanto.semiempirical.rotation_steps import RotationStep, projectors, rotations_suffice
from cuanto.semiempirical.terms import Core, DipoleMoment, Repulsion, orthonormal_frame
from cuanto.units import BOHR_IN_ANGSTROM
from nddo_cases import TIGHT, layout_of, molecule, molecule_of, polyethylene, reference, run, water_cluster

SAME = 1e-9
SMALL_MOLECULES = {
    "hydrogen chloride": (["Cl", "H"], [[0, 0, 0], [1.28, 0, 0]]),
    "ammonia": (["N", "H", "H", "H"], [[0, 0, 0], [0.94, 0, 0.38], [-0.47, 0.81, 0.38], [-0.47, -0.81, 0.38]]),
    "hydrogen sulphide": (["S", "H", "H"], [[0, 0, 0], [0.96, 0.93, 0], [-0.96, 0.93, 0]]),
}


def mixed_cluster(count: int) -> Molecule:
    """Molecules with and without d functions, in random orientations on a lattice of 4.2 A."""
    rng, kinds = np.random.default_rng(3), list(SMALL_MOLECULES.values())
    symbols: list[str] = []
    R_ax = []
    for k in range(count):
        names, shape = kinds[k % 3]
        symbols += names
        R_ax.append(
            np.array(shape) @ np.linalg.qr(rng.normal(size=(3, 3)))[0] + 4.2 * np.array([k % 4, k // 4 % 4, k // 16])
        )
    return Molecule(symbols, np.concatenate(R_ax) / BOHR_IN_ANGSTROM)


def test_molecules_of_a_cluster() -> None:
    mol = mixed_cluster(7)
    parts = find_molecules(mol.symbols, mol.R_ax * BOHR_IN_ANGSTROM)
    assert [len(part) for part in parts] == [2, 4, 3, 2, 4, 3, 2]
    assert np.concatenate(parts).tolist() == list(range(mol.natom))
    whole = molecule("ribavirin")
    assert len(find_molecules(whole.symbols, whole.R_ax * BOHR_IN_ANGSTROM)) == 1


def test_orbitals_of_molecules() -> None:
    """Orthonormal, occupied ones first, and each of one molecule; the order of the atoms does not matter."""
    backend, mol = get_backend("cpu"), mixed_cluster(8)
    order = np.random.default_rng(0).permutation(mol.natom)
    shuffled = Molecule([mol.symbols[a] for a in order], mol.R_ax[order])
    traces = []
    for one in (mol, shuffled):
        layout, R_bax = layout_of(one, "PM6")
        found = fragment_orbitals(layout, R_bax[0], Budget(backend))
        assert found is not None
        C, eps = found
        o = int(layout.core_charges.sum()) // 2
        assert np.abs(C.T @ C - np.eye(len(C))).max() < 1e-12
        assert eps[:o].max() < -0.2 < eps[o:].min()
        molecule_of_atom = np.zeros(one.natom, dtype=int)
        for k, atoms in enumerate(find_molecules(one.symbols, R_bax[0] * BOHR)):
            molecule_of_atom[atoms] = k
        molecules = [set(molecule_of_atom[layout.atom_of_orbital[np.abs(column) > 1e-12]]) for column in C.T]
        assert all(len(found) == 1 for found in molecules)
        traces.append(np.sort(eps))
    assert np.abs(traces[0] - traces[1]).max() < 1e-4  # converged only loosely


@pytest.mark.parametrize(
    "mol", [molecule("ribavirin"), molecule("CH3"), polyethylene(83)], ids=["one", "radical", "large"]
)
def test_where_molecules_are_no_guess(mol: Molecule) -> None:
    layout, R_bax = layout_of(mol, "PM6")
    assert fragment_orbitals(layout, R_bax[0], Budget(get_backend("cpu"))) is None


@pytest.mark.parametrize("method", ["pm6", "upm6"])
def test_rotations_of_a_cluster(method: str) -> None:
    """Molecules with d functions; one density or two. No diagonalisation, and the energy of the usual SCF."""
    mol = mixed_cluster(33)
    states: list[Any] = []
    found = run(mol, method, on_iteration=states.append)
    full = run(mol, method, diagonaliser="full")
    assert found.calculation.layout.orbitals >= 300
    assert found.converged and abs(found.energy - full.energy) < SAME
    assert found.iterations <= 1.3 * full.iterations
    assert all(state.step.endswith("block") for state in states[1:])
    assert states[0].energy - found.energy < 0.1  # the guess is the energy of separate molecules
    assert sum(found.energies.values()) == pytest.approx(found.energy, abs=1e-9)
    eps, C = found.orbital_energies[0], found.coefficients[0]
    assert np.abs(C.T @ np.asarray(found.state.F_spq[0]) @ C - np.diag(eps)).max() < 1e-5
    assert np.abs(found.dipole_debye - full.dipole_debye).max() < 2e-5


def test_unsafe_rotations_use_the_common_loop() -> None:
    """Two electrons too many: levels cross, and eigenvectors are needed."""
    waters = water_cluster(51)
    mol = Molecule(waters.symbols, waters.R_ax, charge=-2)
    states: list[Any] = []
    found, full = run(mol, "pm6", on_iteration=states.append), run(mol, "pm6", diagonaliser="full")
    assert found.converged and abs(found.energy - full.energy) < SAME
    assert any(state.step.endswith("full") for state in states)
    assert [state.iteration for state in states] == list(range(1, found.iterations + 1))
    few = run(mol, "pm6", max_iterations=3)
    assert few.iterations == 3 and not few.converged


def slab(side: int, layers: int, distance: float) -> Molecule:
    """Waters with parallel dipole moments, each rotated about its own axis: a capacitor."""
    rng, half = np.random.default_rng(0), np.deg2rad(104.5) / 2
    shape = 0.9578 * np.array([[0.0, 0.0, 0.0], [np.sin(half), 0.0, np.cos(half)], [-np.sin(half), 0.0, np.cos(half)]])
    R_ax = []
    for k in range(side * side * layers):
        offset = np.array([distance * (k % side), distance * (k // side % side), 2.9 * (k // side**2)])
        c, s = np.cos(angle := rng.uniform(0, 2 * np.pi)), np.sin(angle)
        R_ax.append(shape @ np.array([[c, s, 0], [-s, c, 0], [0, 0, 1.0]]) + offset)
    return Molecule(["O", "H", "H"] * len(R_ax), np.concatenate(R_ax) / BOHR_IN_ANGSTROM)


def test_permanent_level_crossings() -> None:
    """Levels cross across the slab: no state of separate molecules is aufbau; full diagonalisation finds the one that
    is."""
    mol = slab(4, 5, 2.3)
    states: list[Any] = []
    found, full = run(mol, "pm6", on_iteration=states.append), run(mol, "pm6", diagonaliser="full")
    assert found.converged and full.converged and abs(found.energy - full.energy) < SAME
    assert {state.step.split()[-1] for state in states} == {"guess", "block", "full"}
    assert max(found.homo) < min(found.lumo)


def test_rotations_do_not_end_in_a_state_that_is_not_aufbau(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stretched HF, begun in its lowest state, and in a stationary one that rotations would not call safe."""
    mol, backend = molecule_of(reference()["scf_stress_cases"][0]), get_backend("cpu")
    monkeypatch.setattr(Pseudo, "safe", lambda self, numbers: True)
    for n_m, sound in (([2, 2, 2, 2, 0], True), ([2, 2, 2, 0, 2], False)):
        there = run(mol, "pm6", occupations=[n_m], **TIGHT)
        order = np.argsort(-there.occupations[0], kind="stable")
        calculation = there.calculation
        problem = Problem(
            [Core(calculation.fock), Repulsion(calculation.fock)], orthonormal_frame(5, backend), Aufbau((8,), 2, 5)
        )
        moment = DipoleMoment(calculation.layout, layout_of(mol, "PM6")[1][0], backend)
        step = RotationStep(problem, Pseudo(backend, "economical"), moment, 8)
        scf = Scf(problem, step, Criteria(1e-8, 1e-5, 1e-4, float))
        start = there.coefficients[:, :, order], there.orbital_energies[:, order]
        *_, state = scf.states(*start, 9)
        assert there.converged and state.iteration < 9 and state.gradient < 1e-5
        assert np.abs(state.D_spq - there.density).max() < 1e-6 and state.converged == sound


def test_levels_of_distant_molecules_may_cross_at_first() -> None:
    """The order of two uncoupled levels says nothing about rotations, until all others have settled."""
    n, o = 20, 8
    levels = np.r_[np.linspace(-2.0, -1.0, o), np.linspace(0.5, 2.0, n - o)]
    levels[o - 1], levels[o] = 0.1, 0.0
    n_sm = np.where(np.arange(n) < o, 2.0, 0.0)[None]
    for coupling, distant, step in ((0.05, True, "block"), (0.001, True, "full"), (0.05, False, "full")):
        F = np.diag(levels)
        F[2, o + 3] = F[o + 3, 2] = coupling
        pseudo = Pseudo(get_backend("cpu"), "economical")
        pseudo.begin(np.eye(n)[None], levels[None], distant)
        assert pseudo(F[None], np.eye(n)[None], n_sm, 0.0)[2] == step


def test_options_of_the_rotations() -> None:
    backend = get_backend("cpu")

    def problem(electrons: int, size: int = 384) -> Problem:
        return Problem([], orthonormal_frame(size, backend), Aufbau((electrons,), 2, size))

    assert rotations_suffice(ScfOptions(), problem(512))
    assert not rotations_suffice(ScfOptions(), problem(512, 290)) and not rotations_suffice(ScfOptions(), problem(768))
    for given in ({"damping": 0.3}, {"level_shift": 0.2}, {"accelerator": "adiis"}, {"guess_mixing": 0.1}):
        assert not rotations_suffice(ScfOptions(**given), problem(512))
    mol = water_cluster(51)
    shifted = run(mol, "pm6", level_shift=0.1)
    assert shifted.converged and abs(shifted.energy - run(mol, "pm6").energy) < SAME


def test_densities_by_the_smaller_block() -> None:
    C = np.linalg.qr(np.random.default_rng(0).normal(size=(2, 30, 30)))[0]
    for filled in ([8, 9], [22, 27]):
        D = projectors(C, filled, 2.0, get_backend("cpu"))
        for s, o in enumerate(filled):
            assert np.abs(D[s] - 2.0 * C[s][:, :o] @ C[s][:, :o].T).max() < 1e-13


def test_moments_without_matrices() -> None:
    layout, R_bax = layout_of(molecule("H3PO4"), "PM6")
    moment, rng = DipoleMoment(layout, R_bax[0], get_backend("cpu")), np.random.default_rng(0)
    A, B = rng.normal(size=(2, 2, layout.orbitals, 5))
    change = A @ B.transpose(0, 2, 1)
    change = change + change.transpose(0, 2, 1)
    assert moment.of_change(list(zip(A, B, strict=True))) == pytest.approx(moment(change), rel=1e-12)


def test_rounding_does_not_reach_the_energy() -> None:
    """128 waters: electrons and cores attract each other by 6e4 Hartree. Reordering the atoms changes the order of all
    sums; the total stays the same, while the conventional parts differ much more."""
    mol, backend = water_cluster(128), get_backend("cpu")
    layout, R_bax = layout_of(mol, "PM6")
    found = fragment_orbitals(layout, R_bax[0], Budget(backend))
    assert found is not None
    D = projectors(found[0][None], [4 * 128], 2.0, get_backend("cpu"))[0]
    orders = [np.arange(mol.natom), np.arange(mol.natom)[::-1]]
    energies = []
    for atoms in orders:
        one, _ = layout_of(Molecule([mol.symbols[a] for a in atoms], mol.R_ax[atoms]), "PM6")
        orbitals = np.concatenate([np.arange(layout.first[a], layout.first[a + 1]) for a in atoms])
        D_bspq = np.ascontiguousarray(D[np.ix_(orbitals, orbitals)])[None, None]
        fock = Fock(PairEngine(one, R_bax[:, atoms], backend))
        core = float(np.sum(D_bspq[0, 0] * fock.H_bpq[0]))
        energies.append(float(fock.two_electron(D_bspq)[0][0]) + core + float(fock.screened_b[0]))
        assert float(fock.core_repulsion_b[0]) > 3e4 and float(fock.attraction(D_bspq)[0]) < -6e4
        assert abs(float(fock.screened_b[0])) < 100.0
    assert abs(energies[0] - energies[1]) < 2e-11


def test_a_start_from_another_result() -> None:
    mol = water_cluster(51)
    first = run(mol, "pm6")
    again = run(mol, "pm6", guess=first)
    assert again.converged and again.iterations <= 4 and abs(again.energy - first.energy) < SAME
    calculation = Semiempirical(mol, "pm6", get_backend("cpu"))
    assert sum(1 for _ in calculation.states()) == first.iterations


def test_molecules_with_small_gaps_are_a_guess_too() -> None:
    """Distorted benzenes: with loose criteria it would not be certain that their lowest orbitals are filled."""
    benzene, rng = molecule("benzene"), np.random.default_rng(1)
    R_ax = [benzene.R_ax + 0.08 * rng.normal(size=benzene.R_ax.shape) + [0.0, 0.0, 12.0 * k] for k in range(6)]
    layout, R_bax = layout_of(Molecule(benzene.symbols * 6, np.concatenate(R_ax)), "PM6")
    found = fragment_orbitals(layout, R_bax[0], Budget(get_backend("cpu")))
    assert found is not None and len(find_molecules(layout.symbols, R_bax[0] * BOHR)) == 6
