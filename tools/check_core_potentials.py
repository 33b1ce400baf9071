"""Compare integrals of core potentials with PySCF: model potentials, and one element of every basis set.

    python tools/check_core_potentials.py --json benchmarks/results/ecp_integrals.json

Models: functions from s to g, projectors from s to h, powers r^-2 to r^0, tight and diffuse, at distances from 0 to 8
Bohr. Three centres: the same potentials, and such functions at two other atoms in nearly perpendicular directions.
Sets: every set of the Basis Set Exchange with core potentials, an element drawn at random (fixed seed) beside hydrogen.
Differences are relative to the largest element of a block of two shells, or to 1; above 1e-10 the exit status is 1.
PySCF is kept from neglecting projected parts. Local terms of the power r^0 are three-centre overlaps of libcint in
place of its quadrature, which is not converged for tight functions at a distance; models with tight functions at a
distance have no other local terms.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "support"), str(ROOT / "benchmarks")]

from common import machine, save  # noqa: E402

import cuanto  # noqa: E402
from cuanto import core_potentials  # noqa: E402
from cuanto.backends.base import get_backend  # noqa: E402
from cuanto.basis import Shell  # noqa: E402
from cuanto.basis.core_potential import CorePotential, RadialTerm  # noqa: E402
from scf_cases import exact_core_hamiltonian, oracle, with_all_projections  # noqa: E402

LARGEST_DIFFERENCE = 1e-10
DISTANCES, EXPONENTS, POWERS = (0.0, 0.05, 0.7, 2.0, 4.0, 8.0), (0.3, 2.0, 15.0, 200.0), (0, 1, 2)
HERE = [(l, a) for l in range(5) for a in (0.05, 0.6, 8.0)]
THERE = [(l, a) for l in range(5) for a in (0.08, 1.1)]
TIGHT = [(0, 3000.0), (1, 30.0)]
"""Angular momenta and exponents of functions at the potential, at another centre, and of tight ones."""
DIRECTION, OTHER_DIRECTION = np.array([0.3, 0.5, 0.812403840463596]), np.array([0.48, -0.8, 0.36])
PAIRS = ((0.05, 4.0), (0.7, 1.4), (2.0, 3.0), (4.0, 2.0), (8.0, 4.0))
"""Distances of two atoms from the potential."""
FURTHER = [(l, a) for l in range(5) for a in (0.15, 0.7)]
"""Angular momenta and exponents of functions at the second of them."""
Row = dict[str, Any]


def difference(molecule: cuanto.Molecule, basis: cuanto.Basis) -> float:
    """Largest difference from PySCF, at the positions of the basis."""
    mole = oracle(molecule, basis)
    mole.set_geom_(basis.R_ax, unit="Bohr")
    every = with_all_projections(mole)
    expected = exact_core_hamiltonian(every, basis) - mole.intor("int1e_kin") - mole.intor("int1e_nuc")
    found = core_potentials.matrix(basis, backend="cpu")
    first = mole.ao_loc_nr()[:-1]

    def largest(A: Any) -> Any:
        return np.maximum.reduceat(np.maximum.reduceat(abs(A), first, axis=0), first, axis=1)

    return float((largest(found - expected) / np.maximum(1.0, largest(expected))).max())


def models() -> Iterator[Row]:
    """A potential at iodine, functions there and at hydrogen, which may be at the same place."""
    molecule = cuanto.Molecule(["I", "H"], [[0, 0, 0], [0, 0, 3]])
    for tight, distance, exponent, power in product((False, True), DISTANCES, EXPONENTS, POWERS):
        places = HERE, sorted(THERE + TIGHT if tight else THERE)
        shells = [Shell.from_table(a, l, [z], [[1.0]], True) for a, own in enumerate(places) for l, z in own]
        term = (RadialTerm(power, exponent, 1.0),)
        potential = CorePotential(28, () if tight and power < 2 else term, (term,) * 6)
        R_ax = [[0, 0, 0], distance * DIRECTION]
        basis = cuanto.Basis.from_shells(shells, R_ax, symbols=["I", "H"], core_potentials=[potential, None])
        row = {"tight": tight, "distance": distance, "exponent": exponent, "power": power}
        yield {**row, "difference": difference(molecule, basis)}


def three_centres() -> Iterator[Row]:
    """A potential at iodine, which has an s function, and functions at two other atoms."""
    molecule = cuanto.Molecule(["I", "H", "He"], [[0, 0, 0], [0, 0, 3], [0, 3, 0]])
    places = [(0, 0.6)], THERE, FURTHER
    shells = [Shell.from_table(a, l, [z], [[1.0]], True) for a, own in enumerate(places) for l, z in own]
    for (near, far), exponent, power in product(PAIRS, EXPONENTS, POWERS):
        term = (RadialTerm(power, exponent, 1.0),)
        potentials = [CorePotential(28, term, (term,) * 6), None, None]
        R_ax = [[0, 0, 0], near * DIRECTION, far * OTHER_DIRECTION]
        basis = cuanto.Basis.from_shells(shells, R_ax, symbols=molecule.symbols, core_potentials=potentials)
        row = {"distances": [near, far], "exponent": exponent, "power": power}
        yield {**row, "difference": difference(molecule, basis)}


def sets() -> Iterator[Row]:
    """Sets of the Basis Set Exchange, with an element beside hydrogen."""
    import basis_set_exchange as bse

    draw = random.Random(3)
    for name, about in sorted(bse.get_metadata().items()):
        if "scalar_ecp" not in about["function_types"]:
            continue
        elements = bse.get_basis(name)["elements"]
        heavy = [z for z, e in elements.items() if "ecp_potentials" in e and e.get("electron_shells")]
        if heavy:
            z = draw.choice(heavy)
            symbol = bse.lut.element_sym_from_Z(int(z), normalize=True)
            molecule = cuanto.Molecule([symbol, "H"], [[0, 0, 0], [0.7, 1.1, 2.2]], 0, 2 - int(z) % 2)
            basis = cuanto.Basis({symbol: name, "H": "6-31g"}, molecule)
            (potential,) = filter(None, basis.core_potentials)
            row = {"set": name, "element": symbol, "functions": basis.nbf, "projectors": len(potential.projected)}
            yield {**row, "difference": difference(molecule, basis)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", help="write the result here")
    options = parser.parse_args()
    record: Row = {"check": "core potentials", "machine": machine(get_backend("cpu"))}
    for kind, rows in (("models", models()), ("three centres", three_centres()), ("sets", sets())):
        record[kind] = []
        for row in rows:
            record[kind].append(row)
            print(*(f"{value:.1e}" if name == "difference" else value for name, value in row.items()), flush=True)
        worst = max(row["difference"] for row in record[kind])
        print(f"{kind}: {len(record[kind])} cases, largest difference {worst:.1e}")
        save(options.json, record)
    compared = (*record["models"], *record["three centres"], *record["sets"])
    if any(row["difference"] > LARGEST_DIFFERENCE for row in compared):
        sys.exit("integrals differ from PySCF's")


if __name__ == "__main__":
    main()
