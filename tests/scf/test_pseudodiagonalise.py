"""Pseudodiagonalisation: the same energies as full diagonalisation, exact orthonormality, and when it is not used."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cuanto
from cuanto.backends.base import get_backend
from cuanto.errors import InputError
from cuanto.scf import rotations
from cuanto.scf.pseudodiagonalise import Pseudo
from cuanto.scf.state import State
from scf_cases import PI, basis, molecule, options_for_counting, record, run_in_core, run_record, water

HOST = get_backend("cpu")
VARIANTS = ["refined", "block", "two-kernel", "jacobi"]


def nearly_diagonal(size: float, n: int = 12, o: int = 5) -> tuple[Any, Any]:
    """A Fock matrix with a gap, whose F_ov is of the given size, and its occupations."""
    rng = np.random.default_rng(11)
    F = np.diag(np.concatenate([np.linspace(-2.0, -0.5, o), np.linspace(0.3, 2.0, n - o)]))
    V = rng.normal(size=(n, n)) * size
    occupations = np.where(np.arange(n) < o, 2.0, 0.0)
    return (F + V + V.T)[None], occupations[None]


def coupling(F: Any, C: Any, o: int = 5) -> float:
    return float(np.abs((C[0].T @ F[0] @ C[0])[:o, o:]).max())


@pytest.mark.parametrize("variant", VARIANTS)
def test_rotations_remove_the_coupling_and_keep_orthonormality(variant: str) -> None:
    F, n = nearly_diagonal(0.0)
    change, _ = nearly_diagonal(1e-3)
    pseudo = Pseudo(HOST, variant)
    C, _, first = pseudo(F, None, n, 0.0)
    before = coupling(change, C)
    C, eps, second = pseudo(change, C, n, 0.0)
    assert (first, second) == ("full", "pseudo") and eps.shape == (1, 12)
    assert np.abs(C[0].T @ C[0] - np.eye(12)).max() < 1e-13
    assert coupling(change, C) < {"refined": 1e-4, "block": 2e-2, "two-kernel": 2e-2, "jacobi": 6e-2}[variant] * before


def test_large_rotations_stay_orthonormal() -> None:
    rng = np.random.default_rng(2)
    C, _ = np.linalg.qr(rng.normal(size=(20, 20)))
    X = rng.uniform(-0.29, 0.29, size=(8, 12))
    D = C[:, :8] + C[:, 8:] @ X.T
    D = D @ np.linalg.solve(D.T @ D, D.T)
    nearest = rotations.rotate_nearest(C, X, float(np.linalg.norm(X)), np, HOST.linalg)
    for whole in (nearest, rotations.rotate_by_factors(C, X, np, HOST.linalg)):
        assert np.abs(whole.T @ whole - np.eye(20)).max() < 1e-13
        assert np.abs(whole[:, :8] @ whole[:, :8].T - D).max() < 1e-13
    slight = rotations.rotate_slightly(C, 1e-4 * X, np)
    assert np.abs(slight - rotations.rotate_nearest(C, 1e-4 * X, 2e-3, np, HOST.linalg)).max() < 1e-13


def test_without_orthonormalisation_the_orbitals_overlap() -> None:
    """In the published scheme the error is of second order, but not negligible."""
    rng = np.random.default_rng(2)
    C, _ = np.linalg.qr(rng.normal(size=(20, 20)))
    X = rng.uniform(-0.1, 0.1, size=(8, 12))
    rotated = rotations.rotate(C, X, np)
    C_o, C_v = rotated[:, :8], rotated[:, 8:]
    assert np.abs(C_o.T @ C_v).max() < 1e-14
    assert np.abs(C_o.T @ C_o - np.eye(8)).max() > 1e-2


def test_a_stack_of_matrices_is_rotated_like_each_of_them() -> None:
    rng = np.random.default_rng(3)
    C = np.linalg.qr(rng.normal(size=(4, 90, 90)))[0]
    F = rng.normal(size=(4, 90, 90)) * 0.02 + np.diag(np.linspace(-2.0, 2.0, 90))
    F = F + F.transpose(0, 2, 1)
    F = C @ F @ C.transpose(0, 2, 1)
    FC, F_ov, eps = rotations.couple(F, C, 40)
    gap = np.minimum(rotations.gaps(eps, 40), -0.5)
    X = rotations.refine(F_ov / gap, C, FC, gap, 1)
    rotated = rotations.rotate_by_factors(C, X, np, HOST.linalg)
    slight = rotations.rotate_slightly(C, X, np)
    numbers = rotations.measure(F_ov, eps, X, np)
    for k in range(4):
        FC_k, *coupled = rotations.couple(F[k], C[k], 40)
        X_k = rotations.refine(coupled[0] / gap[k], C[k], FC_k, gap[k], 1)
        assert np.abs(X[k] - X_k).max() < 1e-14
        assert np.abs(numbers[k] - rotations.measure(*coupled, X_k, np)).max() < 1e-13
        assert np.abs(rotated[k] - rotations.rotate_by_factors(C[k], X_k, np, HOST.linalg)).max() < 1e-13
        assert np.abs(slight[k] - rotations.rotate_slightly(C[k], X_k, np)).max() < 1e-13


def test_limits_of_rotations() -> None:
    limits = rotations.Limits()
    fine = np.array([0.1, 0.5, 0.2, 1.0])
    assert limits.allow(fine)
    for k, bad in ((0, 0.3), (1, 0.001), (2, 0.4), (3, 3.0), (0, np.nan), (1, np.nan), (2, np.inf)):
        numbers = np.stack([fine, fine])
        numbers[1, k] = bad
        assert limits.allow(numbers).tolist() == [True, False]


def test_refined_angles_decouple_exactly_in_the_limit() -> None:
    F, _ = nearly_diagonal(1e-2)
    o, eps = 5, F[0].diagonal()
    gap = rotations.gaps(eps, o)
    X = rotations.refine(F[0][:o, o:] / gap, np.eye(12), F[0], gap, sweeps=60)
    C = rotations.rotate_nearest(np.eye(12), X, float(np.linalg.norm(X)), np, HOST.linalg)
    assert coupling(F, C[None]) < 1e-13


@pytest.mark.parametrize("reason", ["large", "crossing", "rise", "stalled"])
def test_full_diagonalisation_where_rotations_are_not_safe(reason: str) -> None:
    F, n = nearly_diagonal(0.0)
    small, _ = nearly_diagonal(1e-3)
    pseudo = Pseudo(HOST)
    C, _, _ = pseudo(F, None, n, 0.0)
    assert pseudo(small, C, n, 0.0)[2] == "pseudo"
    if reason == "large":
        assert pseudo(nearly_diagonal(0.2)[0], C, n, 0.0)[2] == "full"
    elif reason == "crossing":
        crossed = small.copy()
        crossed[0, 4, 4] = 0.295
        assert pseudo(crossed, C, n, 0.0)[2] == "full"
    elif reason == "rise":
        assert pseudo(small, C, n, 0.01)[2] == "full"
    else:
        assert "full" in [pseudo(small, C, n, 0.0)[2] for _ in range(6)]


def test_closed_open_and_empty_orbitals_are_separated() -> None:
    """Restricted open shells: one matrix, three occupations."""
    F, _ = nearly_diagonal(0.0)
    change, _ = nearly_diagonal(1e-3)
    n_sm = np.array([[1.0] * 5 + [0.0] * 7, [1.0] * 3 + [0.0] * 9])
    pseudo = Pseudo(HOST)
    C, _, _ = pseudo(F, None, n_sm, 0.0)
    C, eps, step = pseudo(change, C, n_sm, 0.0)
    F_mm = C[0].T @ change[0] @ C[0]
    assert step == "pseudo" and eps.shape == (1, 12)
    assert np.abs(C[0].T @ C[0] - np.eye(12)).max() < 1e-13
    assert max(np.abs(F_mm[:5, 5:]).max(), np.abs(F_mm[:3, 3:5]).max()) < 1e-6


OPEN: dict[str, Any] = {"method": "UHF", "basis": "cc-pvdz", "label": None}
JKFIT: dict[str, Any] = {"fitting": "jk", "auxbasis": "def2-universal-jkfit"}
CASES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("rhf_ccpvdz", {"molecule": "alkane_01", "fitting": "RI-J and RI-K", "auxbasis": "cc-pvdz-jkfit"}, {}),
    ("rhf_ccpvdz", {"molecule": "alkane_04", "fitting": "RI-J and RI-K", "auxbasis": "cc-pvdz-jkfit"}, {}),
    ("rhf_sto3g_631gss", {"molecule": "benzene", "basis": "sto-3g"}, {}),
    ("rhf_sto3g_631gss", {"molecule": "naphthalene", "basis": "sto-3g"}, {}),
    ("open_shell", {"molecule": "CH3", **OPEN}, {}),
    ("open_shell", {"molecule": "CH3", **OPEN}, JKFIT),
    ("open_shell", {"molecule": "CH3", **OPEN}, {"method": "rohf"}),
    ("open_shell", {"molecule": "O2", **OPEN}, {}),
    ("open_shell", {"molecule": "O2", **OPEN}, {"method": "rohf", **JKFIT}),
    ("open_shell", {"molecule": "O2", **OPEN}, {"level_shift": 0.2}),
    ("open_shell", {"molecule": "NO2", **OPEN}, {}),
    ("open_shell", {"molecule": "NO2", **OPEN}, {"method": "rohf", "level_shift": 0.2}),
]
"""Records of small molecules; `tools/compare_diagonalisers.py` compares all."""


def case_title(case: Any) -> str:
    return case["molecule"] if isinstance(case, dict) and "molecule" in case else str(case)


@pytest.mark.parametrize(("file", "wanted", "options"), CASES, ids=case_title)
def test_pseudo_and_full_agree(file: str, wanted: dict[str, Any], options: dict[str, Any]) -> None:
    given = record(file, **wanted)
    full = run_record(given, diagonaliser="full", **options)
    steps: list[str] = []

    def note(state: State) -> None:
        steps.append(state.step)

    pseudo = run_record(given, diagonaliser="pseudo", on_iteration=note, **options)
    assert full.converged and pseudo.converged and abs(pseudo.energy - full.energy) < 1e-9
    assert pseudo.iterations <= 1.3 * full.iterations
    assert sum("pseudo" in step for step in steps) >= len(steps) - 3
    assert np.abs(pseudo.orbital_energies - full.orbital_energies).max() < 1e-5


@pytest.mark.parametrize(("name", "functional"), [("CH3", "b3lyp"), ("O2", "upbe"), ("NO2", "tpss")])
def test_pseudo_and_full_agree_in_unrestricted_kohn_sham(name: str, functional: str) -> None:
    mol = molecule(name)
    orbital, aux = basis("def2-svp", mol), basis("def2-universal-jkfit", mol)
    common: dict[str, Any] = {"auxbasis": aux, "backend": "cpu", "grid": "coarse"}
    full = cuanto.energy(mol, functional, orbital, **common, diagonaliser="full")
    taken: list[State] = []
    pseudo = cuanto.energy(mol, functional, orbital, **common, diagonaliser="pseudo", on_iteration=taken.append)
    assert len(pseudo.orbital_energies) == 2 and pseudo.s_squared > 0.7
    assert full.converged and pseudo.converged and abs(pseudo.energy - full.energy) < 1e-9
    assert pseudo.iterations <= 1.3 * full.iterations
    assert sum("pseudo" in state.step for state in taken) >= len(taken) - 2
    assert np.abs(pseudo.orbital_energies - full.orbital_energies).max() < 1e-5


@pytest.mark.parametrize(("basis_name", "cartesian"), [("sto-3g", False), ("sto-3g", True), ("6-31g**", False)])
def test_both_diagonalisers_find_the_same_of_several_states(basis_name: str, cartesian: bool) -> None:
    given = record("cuo_uhf", basis=basis_name, cartesian=cartesian, label=None if basis_name == "sto-3g" else PI)
    full, pseudo = (
        run_in_core(given, **options_for_counting(given), diagonaliser=way)[0] for way in ("full", "pseudo")
    )
    assert full.converged and pseudo.converged and abs(pseudo.energy - full.energy) < 1e-9
    assert pseudo.iterations <= 1.3 * full.iterations


@pytest.mark.parametrize("variant", VARIANTS[1:])
def test_every_variant_converges_to_the_same_energy(variant: str) -> None:
    mol, orbital = water()
    full = cuanto.energy(mol, "hf", orbital, fitting="none", backend="cpu", diagonaliser="full")
    other = cuanto.energy(mol, "hf", orbital, fitting="none", backend="cpu", diagonaliser="pseudo", variant=variant)
    assert other.converged and abs(other.energy - full.energy) < 1e-9


def test_pseudo_needs_aufbau_occupations() -> None:
    mol, orbital = water()
    with pytest.raises(InputError, match="needs aufbau occupations"):
        cuanto.energy(mol, "hf", orbital, diagonaliser="pseudo", smearing=0.01)
