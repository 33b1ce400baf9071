"""Hirshfeld charges against sums over a regular grid, Mayer bond orders against loops over atoms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cuanto
from cuanto import Molecule
from cuanto.arrays import Array
from cuanto.backends.base import get_backend
from cuanto.methods import GaussianResult
from cuanto.properties import atoms_in_molecules, hirshfeld, second_moments
from cuanto.properties.volume import Box, density_at, density_on_grid

WATER = "3\n\nO 0 0 0.117\nH 0 0.757 -0.469\nH 0 -0.757 -0.469\n"


def compute(molecule: Molecule, method: str = "hf", basis: str = "sto-3g", **options: Any) -> GaussianResult:
    found = cuanto.energy(molecule, method, basis, backend="cpu", **options)
    assert isinstance(found, GaussianResult)
    return found


def regular_hirshfeld(found: GaussianResult, basis: str) -> Array:
    """Hirshfeld populations on a regular grid, with the UHF densities of single atoms; core electrons are sampled
    badly."""
    box = Box.around(found.molecule.R_ax, spacing=0.12, margin=6.0)
    rho = density_on_grid(found.basis, found.coefficients, found.occupations, box).reshape(-1)
    R_gx = np.stack(np.meshgrid(*box.axes, indexing="ij"), axis=-1).reshape(-1, 3)
    free = []
    for symbol, R_x in zip(found.molecule.symbols, found.molecule.R_ax, strict=True):
        one = compute(Molecule([symbol], R_x[None]), "uhf", basis)
        parts = [density_at(one.basis, one.density, part).sum(axis=0) for part in np.array_split(R_gx, 50)]
        free.append(np.concatenate(parts))
    shares = np.array(free) / np.maximum(np.sum(free, axis=0), 1e-30)
    return np.asarray((shares * rho).sum(axis=1) * box.spacing**3)


@pytest.mark.parametrize(("atoms", "charge", "distance"), [("HH", 0, 1.4), ("HeH", 1, 1.46), ("LiH", 0, 3.0)])
def test_hirshfeld_charges_of_two_atoms(atoms: str, charge: int, distance: float) -> None:
    """Atoms with s electrons only, whose UHF densities are spherical."""
    symbols = [atoms[:-1], atoms[-1]]
    found = compute(Molecule(symbols, [[0, 0, 0], [0, 0, distance]], charge=charge), "hf", "6-31g")
    charges = found.hirshfeld_charges
    assert charges.sum() == pytest.approx(charge, abs=1e-3)
    expected = found.molecule.nuclei.charges - regular_hirshfeld(found, "6-31g")
    np.testing.assert_allclose(charges, expected, rtol=0, atol=3e-3)


def test_hirshfeld_charges_of_water() -> None:
    """Oxygen is negative, and the sum is the charge of the molecule."""
    found = compute(Molecule.from_string(WATER), "hf", "def2-svp")
    charges = found.hirshfeld_charges
    assert charges.sum() == pytest.approx(0.0, abs=2e-3)
    assert charges[0] == pytest.approx(-0.33, abs=0.01) and charges[1] == pytest.approx(charges[2], abs=1e-6)


@pytest.mark.parametrize("molecule", [WATER, "2\n\nLi 0 0 0\nH 0 0 1.6\n"])
def test_small_and_large_molecules_are_integrated_alike(molecule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small molecules on atomic points with NumPy, large ones on the grid with kernels; finer grids agree."""
    found = compute(Molecule.from_string(molecule), "hf", "def2-svp")
    small = found.hirshfeld_charges
    electrons = []
    for level in ("medium", "ultrafine"):
        monkeypatch.setattr(atoms_in_molecules, "SMALL", 0.0)
        monkeypatch.setattr(atoms_in_molecules, "GRID", level)
        electrons.append(hirshfeld(found.molecule, found.basis, found.density, found.backend))
    charges = found.molecule.nuclei.charges - np.array(electrons)
    np.testing.assert_allclose(charges[0], charges[1], rtol=0, atol=2e-4)
    np.testing.assert_allclose(small, charges[1], rtol=0, atol=2e-4)


def test_ghosts_have_no_share() -> None:
    found = compute(Molecule(["He", "Gh-He"], [[0, 0, 0], [0, 0, 2.0]]))
    np.testing.assert_allclose(found.hirshfeld_charges, 0.0, rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    ("text", "order"), [(WATER, 1.0), ("2\n\nN 0 0 0\nN 0 0 1.1\n", 3.0), ("2\nmult=3\nO 0 0 0\nO 0 0 1.2\n", 2.0)]
)
def test_mayer_bond_orders(text: str, order: float) -> None:
    """In a minimal basis they are close to the integers of a structural formula."""
    found = compute(Molecule.from_string(text))
    B_ab = found.bond_orders
    assert B_ab[0, 1] == pytest.approx(order, abs=0.06)
    np.testing.assert_allclose(B_ab, B_ab.T, rtol=0, atol=1e-12)
    D_spq = found.density if len(found.density) == 2 else np.repeat(found.density / 2, 2, axis=0)
    S_pq = found.overlap
    atoms = np.repeat([shell.atom for shell in found.basis.shells], [shell.nbf for shell in found.basis.shells])
    expected = 0.0
    for p in np.flatnonzero(atoms == 0):
        for q in np.flatnonzero(atoms == 1):
            expected += sum(2 * (D @ S_pq)[p, q] * (D @ S_pq)[q, p] for D in D_spq)
    assert B_ab[0, 1] == pytest.approx(expected, abs=1e-12)
    assert B_ab[0, 0] == pytest.approx(B_ab[0, 1:].sum(), abs=1e-12)


@pytest.mark.parametrize("device", ["simt", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_hirshfeld_charges_on_a_device(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(atoms_in_molecules, "SMALL", 0.0)
    found = compute(Molecule(["He", "H"], [[0, 0, 0], [0, 0, 1.46]], charge=1), fitting="none")
    backend = get_backend(device)
    electrons = hirshfeld(found.molecule, found.basis, backend.to_device(found.density), backend)
    np.testing.assert_allclose(found.molecule.nuclei.charges - electrons, found.hirshfeld_charges, rtol=0, atol=1e-9)


@pytest.mark.parametrize("device", ["simt", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_second_moments_on_a_device(device: str) -> None:
    found = compute(Molecule(["He", "H"], [[0, 0, 0], [0, 0, 1.46]], charge=1), fitting="none")
    backend = get_backend(device)
    moments = second_moments(found.molecule, found.basis, backend.to_device(found.density), backend)
    np.testing.assert_allclose(moments, found.second_moments, rtol=0, atol=1e-12)
