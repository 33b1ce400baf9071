"""Stability of SCF states: lowest curvatures against PySCF's for the same orbitals, and what following them gains.

    python benchmarks/stability.py --json benchmarks/results/stability_cpu.json
    python benchmarks/stability.py --only OH

Every case is converged without fitting and its stability tested (`stability=check`); PySCF analyses the same orbitals
on a grid of its own. PySCF starts its search from the gradient, which is zero but for rounding, and may miss a mode of
another symmetry: where both disagree, energies of orbitals rotated along our mode show who is right, and so does
`stability=follow`, because a saddle point has a lower state beside it. Rows are written one by one: an interrupted run
continues.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from common import machine, pyscf_mole, save

import cuanto
from cuanto.backends.base import get_backend
from cuanto.scf import converge
from cuanto.scf.loop import Density, Problem, fock, occupied, scale_orbitals
from cuanto.scf.rotations import rotate_spins, split_angles
from cuanto.scf.stability import Mode
from cuanto.scf.state import State
from cuanto.terms.exchange_correlation import GRID_CURVATURE

BASIS = "def2-svp"
CASES: tuple[tuple[str, str, int, str], ...] = (
    ("H2O", "O 0 0 0.117; H 0 0.757 -0.469; H 0 -0.757 -0.469", 1, "rhf pbe"),
    ("HF", "H 0 0 0; F 0 0 0.917", 1, "rhf r2scan"),
    ("LiH", "Li 0 0 0; H 0 0 1.595", 1, "rhf"),
    ("CO", "C 0 0 0; O 0 0 1.128", 1, "b3lyp"),
    ("F2", "F 0 0 0; F 0 0 1.412", 1, "uhf"),
    ("H2 stretched", "H 0 0 0; H 0 0 2.0", 1, "uhf ub3lyp"),
    ("N2 stretched", "N 0 0 0; N 0 0 1.7", 1, "uhf"),
    ("C2", "C 0 0 0; C 0 0 1.243", 1, "rhf uhf"),
    ("O2 singlet", "O 0 0 0; O 0 0 1.208", 1, "uhf"),
    ("O2", "O 0 0 0; O 0 0 1.208", 3, "uhf upbe"),
    ("B2", "B 0 0 0; B 0 0 1.59", 3, "uhf ub3lyp"),
    ("OH", "O 0 0 0; H 0 0 0.97", 2, "uhf ub3lyp upbe"),
    ("NO", "N 0 0 0; O 0 0 1.151", 2, "uhf ub3lyp"),
    ("CN", "C 0 0 0; N 0 0 1.172", 2, "uhf upbe0"),
    ("BO", "B 0 0 0; O 0 0 1.205", 2, "uhf"),
    ("BeH", "Be 0 0 0; H 0 0 1.343", 2, "ub3lyp"),
    ("CO+", "C 0 0 0; O 0 0 1.115", 2, "uhf"),
    ("N2+", "N 0 0 0; N 0 0 1.116", 2, "ub3lyp"),
    ("CH2 singlet", "C 0 0 0; H 0 0.862 0.698; H 0 -0.862 0.698", 1, "uhf ur2scan"),
    ("CH3", "C 0 0 0; H 0 1.079 0; H 0.934 -0.5395 0; H -0.934 -0.5395 0", 2, "uhf ur2scan"),
    ("O3", "O 0 0 0; O 0 1.087 0.665; O 0 -1.087 0.665", 1, "uhf"),
    ("NO2", "N 0 0 0; O 0 1.099 0.466; O 0 -1.099 0.466", 2, "uhf"),
    ("ScO", "Sc 0 0 0; O 0 0 1.668", 2, "upbe"),
    ("CuH", "Cu 0 0 0; H 0 0 1.463", 1, "ub3lyp"),
    ("CuO", "Cu 0 0 0; O 0 0 1.724", 2, "uhf ub3lyp"),
    ("TiO", "Ti 0 0 0; O 0 0 1.620", 3, "uhf"),
    ("VO", "V 0 0 0; O 0 0 1.589", 4, "uhf"),
    ("CrO", "Cr 0 0 0; O 0 0 1.615", 5, "uhf"),
    ("MnO", "Mn 0 0 0; O 0 0 1.646", 6, "uhf"),
    ("FeO", "Fe 0 0 0; O 0 0 1.616", 5, "uhf"),
    ("CoO", "Co 0 0 0; O 0 0 1.629", 4, "uhf"),
    ("NiO", "Ni 0 0 0; O 0 0 1.627", 3, "uhf"),
)
SAME = 2e-3
"""Curvatures that differ less (Hartree) are the same: Davidson's method and both grids have errors of this size."""
MIN_GAIN = 1e-6
"""Smallest energy, in Hartree, gained by leaving a saddle point."""
ANGLE = 0.05
"""Norm of the rotations along a mode in both directions."""


def molecule(atoms: str, charge: int, multiplicity: int) -> cuanto.Molecule:
    """A molecule from atoms separated by semicolons, in Angstrom."""
    lines = [atom.strip() for atom in atoms.split(";")]
    text = "\n".join([str(len(lines)), "", *lines])
    return cuanto.Molecule.from_string(text, charge=charge, multiplicity=multiplicity)


def pyscf_curvature(found: Any) -> float:
    """PySCF's lowest eigenvalue for the orbitals of a result, in our units (Hartree)."""
    from pyscf import dft, lib, scf
    from pyscf.scf import stability

    mol, unrestricted = found.molecule, len(found.occupations) == 2
    mole = pyscf_mole(mol, found.basis)
    mole.charge, mole.spin = mol.charge, mol.multiplicity - 1
    mole.build(dump_input=False)
    name = found.method.lower().removeprefix("u")
    if name in ("hf", "rhf"):
        field = scf.UHF(mole) if unrestricted else scf.RHF(mole)
    else:
        field = dft.UKS(mole) if unrestricted else dft.RKS(mole)
        field.xc, field.grids.level = name, 4
    pick = (lambda array: np.array(array)) if unrestricted else (lambda array: np.array(array[0]))
    field.mo_coeff, field.mo_occ, field.mo_energy = (
        pick(array) for array in (found.coefficients, found.occupations, found.orbital_energies)
    )
    field.converged, lowest = True, []
    original = lib.davidson

    def recorded(*given: Any, **options: Any) -> Any:
        values, vectors = original(*given, **options)
        lowest.append(float(np.min(values)))
        return values, vectors

    with patch.object(stability.lib, "davidson", recorded):
        stability.uhf_internal(field, verbose=0) if unrestricted else stability.rhf_internal(field, verbose=0)
    return lowest[0] / (2.0 if unrestricted else 4.0)


def energies_along_mode(problem: Problem, state: State, mode: Mode) -> list[float]:
    """Energies of orbitals rotated by -ANGLE and +ANGLE along a mode, relative to that of the state (Hartree)."""
    backend, n_km = problem.frame.backend, problem.orbital_occupations(state.n_sm)
    energies = []
    for angle in (0.0, -ANGLE, ANGLE):
        angles = split_angles(angle * mode.direction, n_km)
        C_spm = rotate_spins(state.C_spm, n_km, angles, backend.xp, backend.linalg)
        C_spi = scale_orbitals(C_spm, np.sqrt(occupied(state.n_sm)), backend.xp)
        energies.append(sum(float(energy) for energy in fock(problem, Density.of(C_spi, backend))[0]))
    return [energy - energies[0] for energy in energies[1:]]


def tested_energy(mol: cuanto.Molecule, method: str) -> tuple[cuanto.Result, list[float]]:
    """A calculation without a search whose stability is tested, and the energies along its lowest mode."""
    along: list[float] = []
    original = converge.lowest_mode

    def recorded(problem: Problem, state: State, *rest: Any) -> Mode | None:
        if (mode := original(problem, state, *rest)) is not None:
            along[:] = energies_along_mode(problem, state, mode)
        return mode

    with patch.object(converge, "lowest_mode", recorded):
        found = cuanto.energy(mol, method, BASIS, fitting="none", backend="cpu", stability="check", search="none")
    return found, along


def measure(name: str, atoms: str, multiplicity: int, method: str) -> dict[str, Any]:
    """Curvatures of one case, and the gain of following."""
    mol = molecule(atoms, 1 if name.endswith("+") else 0, multiplicity)
    states: list[Any] = []
    found, along = tested_energy(mol, method)
    row: dict[str, Any] = {"case": f"{name} {method}", "energy": found.energy, "converged": found.converged}
    row |= {"curvature": found.state.curvature, "pyscf": pyscf_curvature(found), "energy_along_mode": along}
    lower = cuanto.energy(
        mol, method, BASIS, fitting="none", backend="cpu", stability="follow", guess=found, on_iteration=states.append
    )
    row |= {"gain": found.energy - lower.energy, "followed": lower.converged, "after": lower.state.curvature}
    row["finite"] = bool(np.isfinite([state.energy_change for state in states[1:]]).all())
    return row | {"verdict": verdict(row)}


def verdict(row: dict[str, Any]) -> str:
    """Which program is right about a case, if they disagree."""
    limit = -GRID_CURVATURE if "hf" not in row["case"] else -5e-6
    if abs(row["curvature"] - row["pyscf"]) < SAME:
        return "same"
    if row["curvature"] > limit and row["pyscf"] > limit:
        return "both stable"
    saddle = row["gain"] > MIN_GAIN
    ours, theirs = row["curvature"] < limit, row["pyscf"] < limit
    if saddle == ours and saddle != theirs:
        return "ours"
    return "both unstable" if saddle and ours and theirs else "PySCF"


def show(row: dict[str, Any]) -> None:
    """Print a row."""
    numbers = f"{row['curvature']:10.5f} {row['pyscf']:10.5f} {row['gain']:12.2e}"
    print(f"{row['case']:22} {numbers}  {row['verdict']}", flush=True)


def main() -> None:
    """Run the cases that are missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    known: list[dict[str, Any]] = []
    if options.json and options.json.exists():
        known = json.loads(options.json.read_text())["rows"]
    print(f"{'case':22} {'ours':>10} {'PySCF':>10} {'gain':>12}  who is right (energies in Hartree)")
    for name, atoms, multiplicity, methods in CASES:
        for method in methods.split():
            if options.only not in f"{name} {method}" or any(row["case"] == f"{name} {method}" for row in known):
                continue
            known.append(measure(name, atoms, multiplicity, method))
            show(known[-1])
            if options.json:
                save(options.json, {"benchmark": "stability", "machine": machine(get_backend("cpu")), "rows": known})
    names = ("same", "both stable", "both unstable", "ours", "PySCF")
    counts = {name: sum(row["verdict"] == name for row in known) for name in names}
    print(", ".join(f"{name}: {count}" for name, count in counts.items()))


if __name__ == "__main__":
    main()
