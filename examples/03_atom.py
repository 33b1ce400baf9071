"""A four-component atom, an optimised well-tempered basis for it, and its use in a molecule.

    python examples/03_atom.py [ELEMENT]

Some functions are removed from a basis of the table of D. Hennessey (thesis, Alberta 2018), its four parameters are
optimised for the remaining ones, and the result is written in NWChem's format, which `cuanto energy` reads.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import cuanto
from cuanto.atomic.export import basis_text, contracted_table
from cuanto.atomic.input import TrustRegion
from cuanto.atomic.job import AtomEnergy, element_job, run_energy
from cuanto.atomic.optimise import optimise_basis
from cuanto.atomic.report import parameter_texts
from cuanto.atomic.steps import stretch
from cuanto.atomic.wtbs import WellTempered, table_set

REMOVED = 8  # functions of every angular momentum that are left out


def shortened_set(symbol: str) -> WellTempered:
    """The table's set with fewer functions over the same range."""
    found = table_set(symbol)
    last = found.ranges[0][1]
    ranges = tuple((a, max(b - REMOVED, a + 3)) for a, b in found.ranges)
    return WellTempered(stretch(found.parameters, last, ranges[0][1]), ranges)


def main(symbol: str = "He") -> tuple[float, float]:
    """Non-relativistic energies from the atomic program, and from the molecular one in the exported basis."""
    result = run_energy(element_job(symbol))
    print(f"{symbol} in the set of the table: {result.energy:.10f} Hartree, virial ratio {result.virial:.8f}")
    for spinor in result.spinors:
        print(f"  {spinor.label:<4} {spinor.occupation:4g} {spinor.energy:14.8f}  <r> = {spinor.r:.6f} Bohr")

    job = element_job(symbol, shortened_set(symbol), nucleus="point")
    start = job.basis
    assert isinstance(start, WellTempered)
    found = optimise_basis(start, AtomEnergy(job), TrustRegion(rhoend=1e-3))
    print(f"optimised {start.range_text()} with {found.method}: {found.energy:.10f} Hartree")
    print(f"  {', '.join(parameter_texts(found.basis))} after {len(found.evaluations)} energies")

    nonrelativistic = run_energy(element_job(symbol, found.basis, nucleus="point", settings={"relativistic": False}))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "optimised.nw"
        table = contracted_table(symbol, nonrelativistic)
        path.write_text(basis_text(path, [table], "optimised", "made by an example"))
        atom = cuanto.Molecule.from_string(f"1\n\n{symbol} 0 0 0\n")
        molecular = cuanto.energy(atom, "rhf", str(path), fitting="none", backend="cpu")
    energy = nonrelativistic.energy
    print(f"non-relativistic: {energy:.9f} as an atom, {molecular.energy:.9f} as a one-atom molecule")
    print("converged" if nonrelativistic.converged and molecular.converged else "not converged")
    return energy, molecular.energy


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A four-component atom and a basis optimised for it.")
    parser.add_argument("element", nargs="?", default="He", help="with closed shells, He to Rn (default: He)")
    try:
        main(parser.parse_args().element)
    except cuanto.errors.CuantoError as error:
        parser.exit(2, f"{error}\n")
