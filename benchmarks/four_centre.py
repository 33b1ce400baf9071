"""All four-centre integrals (pq|rs) of the molecules of Tables II and III of the Hiroshima/Fujitsu paper.

    python benchmarks/four_centre.py                      # this CPU, with PySCF's int2e in the same run
    python benchmarks/four_centre.py --backend cuda --json benchmarks/results/four_centre_h200.json

The result is packed by pairs (4-fold symmetry), on the device. Columns: functions, shells, unique integrals, seconds
(best of the warm runs) by HGP, by MD and by the choice of `auto`.
"""

from __future__ import annotations

import argparse
from typing import Any

from common import geometry, machine, pyscf_mole, save
from three_centre import timed

import cuanto
from cuanto import integrals
from cuanto.backends.base import get_backend

SYSTEMS = [
    *(("H", basis, None) for basis in ("cc-pvdz", "cc-pvtz", "cc-pvqz", "cc-pv5z", "cc-pv6z")),
    *((name, basis, False) for name in ("benzene", "naphthalene", "CuO") for basis in ("sto-3g", "6-31gss")),
]


def system(name: str, basis: str, spherical: bool | None) -> tuple[cuanto.Molecule, cuanto.Basis]:
    """Molecule and basis; the hydrogen atom is at the origin, and 6-31G** has cartesian d functions."""
    if name == "H":
        molecule = cuanto.Molecule.from_string("1\n\nH 0 0 0\n")
    else:
        molecule = cuanto.Molecule.from_xyz(geometry(name))
    return molecule, cuanto.Basis(basis, molecule, spherical=spherical)


def peer(molecule: cuanto.Molecule, basis: cuanto.Basis) -> Any:
    """PySCF's int2e over the same functions, with the same packing."""
    mol = pyscf_mole(molecule, basis)
    return lambda: mol.intor("int2e", aosym="s4")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--only", nargs="+", help="molecule/basis, e.g. benzene/6-31gss")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", help="write the result here")
    options = parser.parse_args()
    backend = get_backend(options.backend)
    rows: list[dict[str, Any]] = []
    for name, basis_name, spherical in SYSTEMS:
        if options.only and f"{name}/{basis_name}" not in options.only:
            continue
        molecule, basis = system(name, basis_name, spherical)
        pairs = basis.nbf * (basis.nbf + 1) // 2
        row: dict[str, Any] = {
            "system": f"{name}/{basis_name}",
            "functions": basis.nbf,
            "shells": len(basis.shells),
            "unique": pairs * (pairs + 1) // 2,
        }
        for algorithm in ("hgp", "md", "auto"):

            def call(algorithm: str = algorithm, basis: cuanto.Basis = basis) -> Any:
                return integrals.eri_4c(basis, packed=True, algorithm=algorithm, backend=backend)

            timed(call, 1)
            backend.finish_compiling()
            timed(call, 1)
            row[algorithm] = min(timed(call, options.repeats))
        if options.backend == "cpu":
            row["pyscf"] = min(timed(peer(molecule, basis), options.repeats))
        rows.append(row)
        print(row, flush=True)
    save(options.json, {"benchmark": "four_centre", "machine": machine(backend), "systems": rows})


if __name__ == "__main__":
    main()
