"""Noble gases by X2C and with four components: the same exponents, nucleus and speed of light.

    python benchmarks/x2c_atoms.py --json benchmarks/results/x2c_atoms.json

Spin-free X2C-Hartree-Fock energies against Dirac-Hartree-Fock with the Dirac-Coulomb Hamiltonian, and both against the
energy without relativity: well-tempered sets of `cuanto atom`, uncontracted, Gaussian nuclei. The SCF of atoms solves
Hartree-Fock with the X2C Hamiltonian of every angular momentum in place of T + V, also with one-electron spin-orbit
coupling; up to `--largest` the program for molecules computes the same (`cuanto.energy`, no fitting).
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from importlib import import_module
from typing import Any
from unittest.mock import patch

import numpy as np
from common import machine, save

import cuanto
from cuanto.atomic.export import uncontracted_table
from cuanto.atomic.job import element_job, run_energy
from cuanto.atomic.one_electron import Core, attraction, balance, core
from cuanto.atomic.species import SPECIES, Species
from cuanto.backends.base import get_backend
from cuanto.system.elements import ATOMIC_NUMBERS
from cuanto.terms.decoupling import Decoupling

ATOMS = ("He", "Ne", "Ar", "Kr", "Xe", "Rn")
CPU = get_backend("cpu")


def spin_free(species: Species, z_p: Any, nucleus: Any, c: float, relativistic: bool) -> Core:
    """X2C matrices of an angular momentum; W is the average over j of sigma.p V sigma.p."""
    return x2c_core([one for one in SPECIES if one.l == species.l], z_p, nucleus, c)


def with_spin_orbit(species: Species, z_p: Any, nucleus: Any, c: float, relativistic: bool) -> Core:
    """X2C matrices of a symmetry, with spin-orbit coupling."""
    return x2c_core([species], z_p, nucleus, c)


def x2c_core(both: list[Species], z_p: Any, nucleus: Any, c: float) -> Core:
    """X2C matrices with W averaged over these symmetries of one angular momentum."""
    plain = core(both[0], z_p, nucleus, c, False)
    b_p, n = balance(both[0], z_p), len(z_p)
    total = sum(abs(one.kappa) for one in both)
    V_SS = sum(abs(one.kappa) / total * attraction(one, z_p, nucleus)[1] for one in both)
    W = np.outer(b_p, b_p) * V_SS
    h = Decoupling(plain.S, plain.T, plain.V, W, c, CPU).contracted(np.eye(n))
    return replace(plain, h=h, T=h - plain.V)


def measure(symbol: str, largest: int) -> dict[str, Any]:
    """Energies of an atom, Hartree."""
    job = element_job(symbol)
    without = replace(job, settings=replace(job.settings, relativistic=False))
    four, plain = run_energy(job, "cpu"), run_energy(without, "cpu")
    found = []
    for matrices in (spin_free, with_spin_orbit):
        with patch.object(import_module("cuanto.atomic.solve"), "core", matrices):
            found.append(run_energy(without, "cpu"))
    scalar, coupled = found
    row = {
        "atom": symbol,
        "four_components": four.energy,
        "x2c": scalar.energy,
        "x2c_with_spin_orbit": coupled.energy,
        "without_relativity": plain.energy,
        "four_component_energies": {spinor.label: spinor.energy for spinor in four.spinors},
        "x2c_energies": {spinor.label: spinor.energy for spinor in scalar.spinors if spinor.species.kappa < 0},
        "converged": bool(four.converged and plain.converged and scalar.converged and coupled.converged),
    }
    if ATOMIC_NUMBERS[symbol] <= largest:
        row["x2c_molecule"] = molecular(symbol, job)
    return row


def molecular(symbol: str, job: Any) -> float:
    """The same energy by `cuanto.energy`, without fitting."""
    atom = cuanto.Molecule([symbol], [[0.0, 0.0, 0.0]])
    basis = cuanto.Basis.from_tables("wtbs", {symbol: uncontracted_table(symbol, job.atom().basis)}, atom)
    options: dict[str, Any] = {"relativity": "x2c", "nuclear_model": "gaussian", "speed_of_light": job.settings.c}
    return float(cuanto.energy(atom, "hf", basis, fitting="none", backend="cpu", **options).energy)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=list(ATOMS))
    parser.add_argument("--largest", type=int, default=18, help="atomic number up to which molecules are compared")
    parser.add_argument("--json")
    options = parser.parse_args()
    rows = []
    for symbol in options.only:
        rows.append(row := measure(symbol, options.largest))
        relativity, difference = (row["four_components"] - row[k] for k in ("without_relativity", "x2c"))
        coupling = row["x2c_with_spin_orbit"] - row["x2c"]
        print(
            f"{symbol:3} {row['four_components']:.6f} (4c) {row['x2c']:.6f} (X2C) {row.get('x2c_molecule', 0.0):.6f} "
            f"(molecule), relativity {relativity:.6f}, 4c - X2C {difference:.6f}, "
            f"of which spin-orbit {coupling:.6f}, converged {row['converged']}",
            flush=True,
        )
        save(options.json, {"benchmark": "x2c_atoms", "machine": machine(CPU), "rows": rows})


if __name__ == "__main__":
    main()
