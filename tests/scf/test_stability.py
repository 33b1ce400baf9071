"""Curvatures of functionals, the stability of states against PySCF, and following that never ends higher."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cuanto
import scf_cases
from cuanto.backends.base import get_backend
from cuanto.methods import Calculation, Request
from cuanto.scf import rotations
from cuanto.scf.hessian import Hessian, Subspace
from cuanto.scf.loop import Density, fock
from cuanto.scf.stability import stability_note
from cuanto.scf.state import State
from cuanto.terms import ExchangeCorrelation
from cuanto.units import BOHR_IN_ANGSTROM

HOST = get_backend("cpu")
DIRECT: dict[str, Any] = {"fitting": "none", "backend": "cpu", "search": "none"}
OH = "2\n\nO 0 0 0\nH 0 0 0.97\n"
H2_STRETCHED = "2\n\nH 0 0 0\nH 0 0 2.0\n"
IRIDIUM = (
    ["Ir", "H", "H", "H", "C", "O"],
    [(0, 0, 0), (1.6, 0, 0), (-1.6, 0, 0), (0, 1.6, 0), (0, -1.85, 0), (0, -3, 0)],
)
"""Square-planar IrH3(CO), Angstrom."""
B2 = "2\n\nB 0 0 0\nB 0 0 1.59\n"


def problem_of(molecule: cuanto.Molecule, method: str, name: str) -> Any:
    return Calculation.of(Request.of(molecule, method, name, **DIRECT)).problem()


@pytest.mark.parametrize("method", ["lda", "pbe", "b3lyp", "r2scan"])
@pytest.mark.parametrize("multiplicity", [1, 2])
def test_curvature_of_a_functional_is_the_second_derivative(method: str, multiplicity: int) -> None:
    """Along a rotation of a converged state, by differences of energies; products are symmetric."""
    text = OH if multiplicity == 2 else "2\n\nH 0 0 0\nF 0 0 0.92\n"
    mol = cuanto.Molecule.from_string(text, multiplicity=multiplicity)
    found = cuanto.energy(mol, method, "sto-3g", **DIRECT, grid="medium", dipole_tolerance=1e-7)
    problem = Calculation.of(Request.of(mol, method, "sto-3g", **DIRECT, grid="medium")).problem()
    hessian = Hessian(problem, found.state)
    rng = np.random.default_rng(2)
    x, y = (vector / np.linalg.norm(vector) for vector in rng.normal(size=(2, len(hessian.diagonal))))
    n_km = problem.orbital_occupations(found.occupations)

    def energy(t: float) -> float:
        C = rotations.rotate_spins(found.coefficients, n_km, rotations.split_angles(t * x, n_km), np, HOST.linalg)
        return float(sum(fock(problem, Density((C * found.occupations[:, None, :]) @ C.transpose(0, 2, 1), None))[0]))

    h, product = 0.02, hessian(x)
    second = (-energy(2 * h) + 16 * energy(h) - 30 * energy(0) + 16 * energy(-h) - energy(-2 * h)) / (12 * h * h)
    assert second == pytest.approx(2 * hessian.capacity * (x @ product), rel=2e-3)
    assert y @ product == pytest.approx(x @ hessian(y), abs=1e-5)


def test_a_rotation_of_the_whole_radical_is_not_an_instability() -> None:
    """The hole of OH may point along x or y: a curvature of zero."""
    mol = cuanto.Molecule.from_string(OH, multiplicity=2)
    for method in ("uhf", "upbe"):
        found = cuanto.energy(mol, method, "sto-3g", **DIRECT, stability="check")
        assert found.state.curvature is not None and abs(found.state.curvature) < 5e-4
        assert "internal stability: stable" in " ".join(found.notes)


@pytest.mark.parametrize(
    ("text", "multiplicity", "method"), [(H2_STRETCHED, 1, "ub3lyp"), (B2, 3, "uhf"), (OH, 2, "upbe")]
)
def test_lowest_curvatures_are_those_of_pyscf(text: str, multiplicity: int, method: str) -> None:
    """A sample of benchmarks/stability.py: all eigenvalues of PySCF's Hessian for the same orbitals."""
    pytest.importorskip("pyscf")
    from pyscf import dft, scf
    from pyscf.soscf import newton_ah

    from scf_cases import oracle

    mol = cuanto.Molecule.from_string(text, multiplicity=multiplicity)
    found = cuanto.energy(mol, method, "sto-3g", **DIRECT, stability="check")
    mole = oracle(mol, found.basis)
    mole.spin = multiplicity - 1
    mole.build(dump_input=False)
    field = scf.UHF(mole) if method == "uhf" else dft.UKS(mole, xc=method[1:])
    _, hop, diagonal = newton_ah.gen_g_hop_uhf(field, found.coefficients, found.occupations)
    H = np.array([hop(row) for row in np.eye(len(diagonal))])
    assert found.state.curvature == pytest.approx(np.linalg.eigvalsh(H)[0], abs=2e-3)


@pytest.mark.parametrize("method", ["uhf", "ub3lyp"])
def test_following_ends_lower_and_is_finite(method: str) -> None:
    mol = cuanto.Molecule.from_string(H2_STRETCHED)
    saddle = cuanto.energy(mol, method, "sto-3g", **DIRECT, stability="check")
    states: list[State] = []
    lower = cuanto.energy(mol, method, "sto-3g", **DIRECT, stability="follow", on_iteration=states.append)
    assert saddle.converged and "NOT a minimum" in " ".join(saddle.notes)
    assert lower.converged and lower.energy < saddle.energy - 1e-3 and lower.s_squared > 0.1
    assert states[-1].converged and all(np.isfinite(state.energy_change) for state in states[1:])
    assert not any(state.converged for state in states[:-1])


def test_following_from_a_minimum_gains_nothing_and_stops() -> None:
    mol = cuanto.Molecule.from_string(OH, multiplicity=2)
    first = cuanto.energy(mol, "ub3lyp", "sto-3g", **DIRECT)
    again = cuanto.energy(mol, "ub3lyp", "sto-3g", **DIRECT, stability="follow", guess=first)
    assert again.converged and again.iterations <= 5 and again.energy <= first.energy + 1e-9


@pytest.mark.parametrize("shift", [0.0, 0.02])
def test_closed_shells_of_metals_do_not_end_at_a_saddle_point(shift: float) -> None:
    """RHF of square-planar IrH3(CO), exact and displaced; PySCF 2.14 finds the lower state, too."""
    places = np.array(IRIDIUM[1]) + shift * np.sin(1.0 + 2.3 * np.arange(18)).reshape(6, 3)
    mol = cuanto.Molecule(IRIDIUM[0], places / BOHR_IN_ANGSTROM)
    basis = scf_cases.basis("def2-svp", mol)
    options: dict[str, Any] = {"fitting": "none", "backend": "cpu"}
    saddle, found = (cuanto.energy(mol, "rhf", basis, **options, stability=how) for how in ("none", "auto"))
    assert saddle.converged and found.converged and found.energy < saddle.energy - 0.015
    assert found.energy == pytest.approx({0.0: -217.6838848, 0.02: -217.6860902}[shift], abs=1e-6)
    assert "internal stability: stable" in " ".join(found.notes)


@pytest.mark.parametrize(
    ("symbols", "distance", "charge", "method"),
    [("FF", 1.33, 1, "pbe"), ("NO", 1.15, 0, "b3lyp"), ("OO", 1.12, 1, "bp86")],
)
def test_radicals_in_any_direction_converge_tightly(symbols: str, distance: float, charge: int, method: str) -> None:
    """The hole of a Pi state turns about the axis in a valley that is flat but for the quadrature, whose error is about
    1e-6 Hartree: where in the valley a loose calculation ends depends on rounding."""
    end = np.array([-0.5977, 0.8016, -0.0123]) * distance / BOHR_IN_ANGSTROM
    mol = cuanto.Molecule(list(symbols), [np.zeros(3), end], charge, 2)
    options: dict[str, Any] = {"basis": "def2-svp", "backend": "cpu"}
    loose, tight = (cuanto.energy(mol, method, **options, gradient_tolerance=limit) for limit in (1e-5, 1e-7))
    assert loose.converged and tight.converged and -1e-9 < loose.energy - tight.energy < 1e-6
    assert tight.iterations < 70 and tight.state.gradient < 1e-5


def test_following_without_iterations_left_keeps_the_converged_state() -> None:
    mol = cuanto.Molecule.from_string(H2_STRETCHED)
    saddle = cuanto.energy(mol, "uhf", "sto-3g", **DIRECT)
    enough = saddle.iterations + 1
    found = cuanto.energy(mol, "uhf", "sto-3g", **DIRECT, stability="follow", max_iterations=enough)
    assert found.converged and found.energy <= saddle.energy + 1e-9
    assert "WARNING: iterations ran out on the way to a lower state: raise max_iterations" in found.notes


def test_notes_name_the_error_of_the_grid() -> None:
    grid = [ExchangeCorrelation.__new__(ExchangeCorrelation)]
    assert "NOT a minimum" in stability_note(-1e-3, grid) and "NOT a minimum" in stability_note(-1e-4, ())
    assert "zero within the error of the grid" in stability_note(-1e-4, grid)
    assert "the energy surface is flat there" in stability_note(-7e-5, ())
    assert stability_note(0.1, grid) == "internal stability: stable, lowest curvature 0.1 Hartree"
    assert stability_note(0.1, grid, True) == "internal stability: stable, lowest curvature at most 0.1 Hartree"


def test_a_subspace_does_not_grow_by_vectors_that_it_contains() -> None:
    mol = cuanto.Molecule.from_string("2\n\nH 0 0 0\nH 0 0 0.74\n")
    found = cuanto.energy(mol, "rhf", "6-31g", **DIRECT)
    space = Subspace(Hessian(problem_of(mol, "rhf", "6-31g"), found.state))
    space.add_trials(2)
    before = len(space)
    assert before == 2 and not space.add(space.V.sum(axis=0)) and len(space) == before
    assert np.allclose(space.V @ space.V.T, np.eye(before)) and np.abs(space.outside(space.V[0])).max() < 1e-14


@pytest.mark.parametrize("method", [("pm6",), ("hf", "sto-3g")])
def test_a_check_does_not_leave_the_state(method: tuple[str, ...]) -> None:
    """Newton steps that make the energy and the dipole moment exact are taken near a minimum, not at a saddle point."""
    boron, fluorine = [0.0, 0.0, 0.0], 1.31 * np.array([[0, 1, 0], [0.75**0.5, -0.5, 0], [-(0.75**0.5), -0.5, 0]])
    cation = cuanto.Molecule(["B", "F", "F", "F"], np.vstack([boron, fluorine]) / BOHR_IN_ANGSTROM, 1, 2)
    none, check, follow = (
        cuanto.energy(cation, *method, backend="cpu", stability=how) for how in ("none", "check", "follow")
    )
    assert abs(check.energy - none.energy) < 1e-9 and follow.energy < none.energy - 0.01
    assert any("NOT a minimum" in note for note in check.notes)
