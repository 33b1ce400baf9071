"""The smallest basis set of helium for a given accuracy, written to a file and used in a molecule.

    python examples/12_helium_basis.py [THRESHOLD]

Four parameters determine the exponents of a well-tempered set. The search optimises them for fewer and fewer functions
and keeps the smallest set whose four-component energy is within the threshold of the limit (relative; default 1e-4).
On the command line, also for many elements on a cluster: `cuanto basis-search --elements He-Ne --threshold 5e-9`.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import cuanto
from cuanto.atomic.export import basis_text, contracted_table
from cuanto.atomic.input import TrustRegion
from cuanto.atomic.job import element_job, run_energy
from cuanto.atomic.search import SearchSettings, search
from cuanto.workers import SerialRunner


def main(threshold: float = 1e-4) -> tuple[int, float, float]:
    """Number of functions, relative error of the atom, binding energy of He2+ in kcal/mol."""
    trust = TrustRegion(rhobeg=0.1, rhoend=5e-3, maxfun=60)
    settings = SearchSettings(threshold=threshold, size=8, scan="bisect", trust=trust, backend="cpu")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found = search(["He"], settings, SerialRunner(), folder / "state")["He"]
        if isinstance(found, Exception):
            raise found
        for step in found.steps:
            tried = ", ".join(f"{text} {error:.0e}" for text, error in step.tried if error is not None)
            print(f"{step.name}: {tried}; chosen {step.chosen}")
        size = found.ranges["s"][1] - found.ranges["s"][0] + 1
        above = f"{found.error:.1e} (relative) above the limit of {found.reference:.8f}"
        print(f"{size} functions: {found.energy:.8f} Hartree, {above}")

        # Contracted to the non-relativistic orbital of the atom, plus the two most diffuse functions.
        atom = run_energy(element_job("He", found.basis, nucleus="point", settings={"relativistic": False}))
        path = folder / "he.nw"
        path.write_text(basis_text(path, [contracted_table("He", atom, diffuse=2)], "he", "made by an example"))
        print(path.read_text())

        common = {"basis": path, "fitting": "none"}
        pair = cuanto.Molecule.from_string("2\n\nHe 0 0 0\nHe 0 0 1.08\n", charge=1)
        alone = cuanto.Molecule.from_string("1\n\nHe 0 0 0\n")
        ion = cuanto.Molecule.from_string("1\n\nHe 0 0 0\n", charge=1)
        results = [cuanto.energy(molecule, "hf", **common) for molecule in (pair, alone, ion)]
    bound = (results[1].energy + results[2].energy - results[0].energy) * 627.509474
    verdict = "all converged" if all(result.converged for result in results) else "NOT converged"
    print(f"He2+ -> He + He+ in this set: {bound:.1f} kcal/mol, {verdict}")
    return size, found.error, bound


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A basis set for helium.")
    parser.add_argument("threshold", nargs="?", type=float, default=1e-4, help="relative error (default: 1e-4)")
    try:
        main(parser.parse_args().threshold)
    except cuanto.errors.CuantoError as error:
        parser.exit(2, f"{error}\n")
