"""Open shells of a guess: which orbitals are filled does not depend on rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cuanto
from cuanto.backends.base import get_backend
from cuanto.scf.degeneracy import order_degenerate
from cuanto.scf.orthogonal import make_frame
from cuanto.scf.state import State
from sample import EVERY_CASE

ATOMS = {"Sc": 2, "Ti": 3, "V": 4, "Cr": 7, "Mn": 6, "Fe": 5, "Co": 4, "Ni": 3, "Cu": 2}
HARD = [("Sc", "pbe"), ("V", "hf")]
"""A sample of benchmarks/hard_atoms.py."""
CASES = [(name, method) for name in ATOMS for method in ("hf", "pbe", "b3lyp", "pbe0", "r2scan")]


def test_rotated_shells_give_the_same_occupied_orbitals() -> None:
    """Two of five degenerate orbitals are occupied; the choice does not depend on how the five are rotated."""
    rng, frame = np.random.default_rng(1), make_frame(np.eye(8), 1e-7, get_backend("cpu"))
    eps_m = np.array([-1.0, -0.5, -0.5, -0.5, -0.5, -0.5, 0.3, 0.4])
    n_m = np.array([[1.0] * 3 + [0.0] * 5])
    densities = []
    for _ in range(3):
        C_jm = np.eye(8)
        C_jm[1:6, 1:6] = np.linalg.qr(rng.normal(size=(5, 5)))[0]
        chosen = order_degenerate(frame, C_jm[None], eps_m[None] + 1e-12 * rng.normal(size=8), n_m)[0]
        assert np.allclose(chosen.T @ chosen, np.eye(8), atol=1e-12)
        densities.append(chosen[:, :3] @ chosen[:, :3].T)
    assert np.ptp(densities, axis=0).max() < 1e-12
    full = np.array([[1.0] * 6 + [0.0] * 2])  # all degenerate orbitals are occupied
    assert np.array_equal(order_degenerate(frame, np.eye(8)[None], eps_m[None], full)[0], np.eye(8))


@pytest.mark.parametrize(("symbol", "method"), CASES if EVERY_CASE else HARD)
def test_atoms_with_open_d_shells_converge_to_one_energy(symbol: str, method: str) -> None:
    mol = cuanto.Molecule.from_string(f"1\n\n{symbol} 0 0 0\n", multiplicity=ATOMS[symbol])
    energies: list[float] = []
    for _ in range(2):
        states: list[State] = []
        given: dict[str, Any] = {"backend": "cpu", "on_iteration": states.append}
        found = cuanto.energy(mol, method, "def2-svp", **given)
        assert found.converged and found.state.curvature is not None and found.state.curvature > -5e-4
        energies.append(found.energy)
    assert energies[0] == pytest.approx(energies[1], abs=1e-10)
    broken = [note for note in found.notes if note.startswith("symmetry-broken occupations")]
    assert bool(broken) == (symbol not in ("Cr", "Mn", "Cu"))
