"""Clusters of molecules with transition metals, whose stability is tested with few products of the Hessian."""

from __future__ import annotations

import numpy as np
import pytest

from cuanto import Molecule
from cuanto.scf.hessian import Hessian
from cuanto.scf.pseudodiagonalise import MANY_ORBITALS
from cuanto.scf.stability import MAX_DOUBT, MAX_VECTORS
from cuanto.semiempirical import rotation_steps
from cuanto.units import BOHR_IN_ANGSTROM
from nddo_cases import molecule, moved, run

SPACING = 7.0 / BOHR_IN_ANGSTROM
H2 = Molecule(["H", "H"], np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 1.35 / BOHR_IN_ANGSTROM]]))
"""Slightly longer than the bond at which restricted orbitals cease to be the lowest unrestricted ones."""


def cluster(count: int, *others: Molecule) -> Molecule:
    """TiCl4 in random orientations, and other molecules, in a row."""
    parts = [moved(molecule("TiCl4"), seed) for seed in range(count)] + list(others)
    R_ax = [part.R_ax - part.R_ax[0] + [SPACING * k, 0.0, 0.0] for k, part in enumerate(parts)]
    return Molecule([symbol for part in parts for symbol in part.symbols], np.concatenate(R_ax))


@pytest.mark.parametrize("backend", ["cpu", "simt"])
def test_one_unstable_molecule_among_many_is_found(backend: str) -> None:
    mol = cluster(4, H2)
    plain, found = run(mol, "upm6", backend, stability="none"), run(mol, "upm6", backend)
    assert plain.converged and plain.s_squared < 1e-6
    assert found.converged and found.s_squared > 0.2 and found.energy < plain.energy - 1e-3
    assert [entry.iteration for entry in found.history] == list(range(1, found.iterations + 1))
    assert all(np.isfinite(entry.energy_change) for entry in found.history[1:])
    alone = run(H2, "upm6", stability="follow")
    assert found.s_squared == pytest.approx(alone.s_squared, abs=2e-3)


@pytest.mark.parametrize("method", ["pm6", "upm6"])
def test_the_quick_test_needs_few_products(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It yields an upper bound on the lowest curvature, and does not depend on the number of molecules."""
    products, original = [0], Hessian.__call__

    def counted(hessian: Hessian, x: np.ndarray) -> np.ndarray:
        products[0] += 1
        return original(hessian, x)

    monkeypatch.setattr(Hessian, "__call__", counted)
    mol = cluster(5)
    quick, used = run(mol, method), products[0]
    lowest, searched = run(mol, method, stability="check"), products[0] - used
    assert quick.converged and abs(quick.energy - lowest.energy) < 1e-8
    assert quick.state.curvature is not None and lowest.state.curvature is not None
    assert lowest.state.curvature - 1e-3 < quick.state.curvature < 1.2 * lowest.state.curvature
    assert any("stable, lowest curvature at most" in note for note in quick.notes)
    assert any("stable, lowest curvature 0" in note for note in lowest.notes)
    assert used <= 13 and used < searched <= MAX_VECTORS and MAX_DOUBT < 0.05


def test_rotations_end_in_a_tested_state() -> None:
    """The state that rotations reach is tested without further iterations."""
    mol = cluster(7)
    plain, found = run(mol, "pm6", stability="none"), run(mol, "pm6")
    assert found.calculation.layout.orbitals >= MANY_ORBITALS
    assert plain.converged and found.converged and found.iterations == plain.iterations
    assert found.energy == plain.energy and found.state.step == plain.state.step
    last = run(mol, "pm6", max_iterations=plain.iterations)  # also if they converge in the last iteration
    assert last.converged and last.iterations == plain.iterations
    for result in (found, last):
        assert any("internal stability: stable" in note for note in result.notes)


def test_no_more_iterations_than_requested(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rotations converge in the last iteration to a state that is not a minimum."""
    monkeypatch.setattr(rotation_steps, "MANY_ORBITALS", 2)
    positions = np.concatenate([H2.R_ax, 0.55 * H2.R_ax + [[SPACING, 0.0, 0.0]]])
    mol = Molecule(["H"] * 4, positions)
    plain = run(mol, "upm6", stability="none")
    found = run(mol, "upm6", stability="follow", max_iterations=plain.iterations)
    assert plain.converged and found.converged and found.iterations == plain.iterations == len(found.history)
    assert any("NOT a minimum" in note for note in found.notes)
