"""Molecules, reference values and calculations that the NDDO tests share."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

import cuanto
from cuanto import Molecule
from cuanto.methods import SemiempiricalResult
from cuanto.semiempirical.layout import Layout, positions
from cuanto.semiempirical.parameters import parameters
from cuanto.units import BOHR_IN_ANGSTROM
from paths import DATA

Array = NDArray[np.float64]

METHODS = ("MNDO", "AM1", "PM3", "PM6")
DIFFERENCES = {4: {1: 2 / 3, 2: -1 / 12}, 8: {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}}
"""Weights of central differences by number of points, then by number of steps from the centre."""
TIGHT = {"energy_tolerance": 1e-12, "gradient_tolerance": 1e-8}
DIAGONALISERS = {
    "full": {"diagonaliser": "full"},
    "refined": {"diagonaliser": "pseudo", "variant": "refined"},
    "block": {"diagonaliser": "pseudo", "variant": "block"},
    "sp2": {"diagonaliser": "sp2"},
}
"""Options that select each diagonaliser."""


@lru_cache
def reference() -> dict[str, Any]:
    """MOPAC 23.2.5 and an independent program; see `meta` in the file."""
    data: dict[str, Any] = json.loads((DATA / "nddo_reference.json").read_text())
    return data


@lru_cache
def elements() -> dict[str, Any]:
    """Values of the same programs for molecules with all other elements, and for RM1."""
    data: dict[str, Any] = json.loads((DATA / "nddo_elements.json").read_text())
    return data


NAMES = tuple(reference()["molecules"])
ROWS = tuple((name, method) for name, record in elements()["molecules"].items() for method in record["methods"])
"""All pairs of a molecule and a method in `elements`."""


def molecule_of(record: dict[str, Any], method: str = "") -> Molecule:
    """The molecule of a record.

    With RM1 f electrons belong to the core. The record has the multiplicity of the valence electrons, while `Molecule`
    counts all electrons: their lowest multiplicity is used.
    """
    R_ax = np.array(record["coordinates_angstrom"]) / BOHR_IN_ANGSTROM
    return Molecule(record["symbols"], R_ax, record["charge"], None if method == "RM1" else record["multiplicity"])


def molecule(name: str, method: str = "") -> Molecule:
    """A molecule of either reference."""
    molecules = reference()["molecules"]
    return molecule_of(molecules[name] if name in molecules else elements()["molecules"][name], method)


def values(name: str, method: str, source: str = "independent") -> dict[str, Any]:
    known = (reference() if name in reference()["molecules"] else elements())["molecules"]
    found: dict[str, Any] = known[name]["methods"][method][source]
    return found


def timing_geometry(name: str) -> Molecule:
    """A geometry with which MOPAC was timed (`timings_mopac` of the reference)."""
    return Molecule.from_xyz(DATA / "timing_geometries" / f"{name}.xyz")


def run(mol: Molecule, method: str, backend: Any = "cpu", **options: Any) -> SemiempiricalResult:
    result = cuanto.energy(mol, method, backend=backend, **options)
    assert isinstance(result, SemiempiricalResult)
    return result


def numerical_gradient(here: SemiempiricalResult, step: float, points: int = 4, **options: Any) -> Array:
    """Differences of energies at four or eight points (Hartree/Bohr), from the density of the undisturbed molecule; the
    error is of that order in the step. The slopes of the last atom follow from translational invariance."""
    mol = here.molecule
    slopes = np.zeros_like(mol.R_ax)
    for a, x in np.ndindex(mol.natom - 1, 3):
        for steps, weight in DIFFERENCES[points].items():
            for sign in (1, -1):
                R_ax = mol.R_ax.copy()
                R_ax[a, x] += sign * steps * step
                there = Molecule(mol.symbols, R_ax, mol.charge, mol.multiplicity)
                found = run(there, here.method, here.backend, guess=here, stability="none", **options)
                assert found.converged
                slopes[a, x] += sign * weight * found.energy / step
    slopes[-1] = -slopes.sum(axis=0)
    return slopes


def layout_of(mol: Molecule, method: str) -> tuple[Layout, Array]:
    """Layout of a molecule, and its positions with a leading batch axis."""
    return Layout(parameters(method.lower()), mol.symbols), positions([mol])


def moved(mol: Molecule, seed: int) -> Molecule:
    """The molecule rotated and translated."""
    rng = np.random.default_rng(seed)
    Q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    Q = Q * np.linalg.det(Q)
    return Molecule(mol.symbols, mol.R_ax @ Q + rng.normal(size=3), mol.charge, mol.multiplicity)


def water_cluster(count: int, seed: int = 1) -> Molecule:
    """Molecules (O-H 0.9578 A, 104.5 degrees) in random orientations on a cubic lattice of 3.104 A."""
    rng, side = np.random.default_rng(seed), int(np.ceil(count ** (1 / 3)))
    half = np.deg2rad(104.5) / 2
    shape = 0.9578 * np.array([[0.0, 0.0, 0.0], [np.sin(half), 0.0, np.cos(half)], [-np.sin(half), 0.0, np.cos(half)]])
    lattice = np.array([(x, y, z) for x in range(side) for y in range(side) for z in range(side)][:count])
    rotations = [np.linalg.qr(rng.normal(size=(3, 3)))[0] for _ in range(count)]
    R_ax = np.concatenate([shape @ Q + 3.104 * offset for Q, offset in zip(rotations, lattice, strict=True)])
    return Molecule(["O", "H", "H"] * count, R_ax / BOHR_IN_ANGSTROM)


def polyethylene(carbons: int) -> Molecule:
    """All-anti C_n H_(2n+2): C-C 1.528, C-H 1.095 A, C-C-C 112.8 degrees."""
    half = np.deg2rad(112.8) / 2
    step, rise = 1.528 * np.sin(half), 1.528 * np.cos(half)
    C = np.array([(k * step, (k % 2) * rise, 0.0) for k in range(carbons)])
    out = np.where(np.arange(carbons) % 2 == 0, -1.0, 1.0)
    tilt, spread = 1.095 * np.cos(np.deg2rad(53.5)), 1.095 * np.sin(np.deg2rad(53.5))
    H = [C[k] + (0.0, out[k] * tilt, sign * spread) for k in range(carbons) for sign in (1.0, -1.0)]
    ends = [C[0] + 1.095 * np.array([-np.sin(half), np.cos(half), 0.0])]
    ends.append(C[-1] + 1.095 * np.array([np.sin(half), -out[-1] * np.cos(half), 0.0]))
    return Molecule(["C"] * carbons + ["H"] * (2 * carbons + 2), np.array([*C, *H, *ends]) / BOHR_IN_ANGSTROM)
