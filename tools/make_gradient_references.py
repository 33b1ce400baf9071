"""Gradients by PySCF of small molecules, to tests/data/gradient_references.json.

    python tools/make_gradient_references.py              # rows that are not there yet
    python tools/make_gradient_references.py --again      # all of them

PySCF gets exactly our shells (orbital and fitting functions), grids without pruning, and converges to 1e-12 Hartree and
a norm of the orbital gradient of 1e-9 (4e-9 where rounding does not allow more; rows say which). Gradients of
functionals include the response of the grid, fitted ones that of the fitting functions. Each row has all that is needed
to repeat it (`tests/support/gradient_cases.py`); molecules are distorted, so that no element of a gradient vanishes.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "support")]

from functional_cases import LIBXC  # noqa: E402
from gradient_cases import FILE, Row, bases, key, molecule_of  # noqa: E402
from scf_cases import oracle  # noqa: E402

ENERGY, ORBITALS, LARGEST = 1e-12, 1e-9, 4e-9
"""Convergence criteria: change of the energy, and norm of the orbital gradient, desired and accepted."""
JKFIT = "def2-universal-jkfit"
MOLECULES: dict[str, tuple[str, int, int]] = {
    "water": ("O 0 0 0.1; H 0.3 0.7 -0.5; H 0 -0.8 -0.4", 0, 1),
    "water cation": ("O 0 0 0.1; H 0.3 0.7 -0.5; H 0 -0.8 -0.4", 1, 2),
    "hydroxide": ("O 0 0.1 0; H 0.5 0.2 0.8", -1, 1),
    "ammonium": ("N 0 0 0.05; H 0.6 0.6 0.6; H -0.55 -0.6 0.6; H -0.6 0.6 -0.65; H 0.6 -0.62 -0.6", 1, 1),
    "hydrogen fluoride": ("F 0 0 0; H 0.4 0.2 0.85", 0, 1),
    "hydroxyl": ("O 0 0 0; H 0.4 0.2 0.85", 0, 2),
    "hydrogen cyanide": ("C 0 0 0; N 0.1 0 1.15; H 0 0.1 -1.08", 0, 1),
    "hydrogen sulfide": ("S 0 0 0.1; H 0.2 0.98 -0.8; H 0 -1.0 -0.9", 0, 1),
    "lithium fluoride": ("Li 0.1 0 0; F 0.3 0.4 1.5", 0, 1),
    "methyl": ("C 0 0 0.1; H 1.0 0.1 0; H -0.5 0.9 0; H -0.55 -0.95 0", 0, 2),
    "oxygen": ("O 0 0 0; O 0.3 0.4 1.1", 0, 3),
    "hydroperoxyl": ("O 0 0 0; O 0.2 0.3 1.28; H 0.9 -0.3 -0.2", 0, 2),
    "copper hydride": ("Cu 0 0 0; H 0.3 0.4 1.45", 0, 1),
    "zinc hydride": ("Zn 0 0 0; H 0.3 0.4 1.5", 0, 2),
    "scandium fluoride cation": ("Sc 0 0 0; F 0.3 0.4 1.7", 2, 1),
}
"""Angstrom, charge, multiplicity."""

# Molecule, method, basis (with "cartesian": in Cartesian functions), fitting; a star marks rows that tests run.
HARTREE_FOCK = """
    water / rhf / sto-3g / none *
    water / rhf / 6-31g* cartesian / none
    water / rhf / def2-tzvp / none
    ammonium / rhf / cc-pvdz / none
    hydroxide / rhf / def2-svp / none *
    hydrogen fluoride / rhf / cc-pvqz / none
    hydrogen cyanide / rhf / cc-pvtz / none
    hydrogen sulfide / rhf / def2-svp / none
    copper hydride / rhf / def2-svp / none
    scandium fluoride cation / rhf / def2-svp / none
    water / rhf / def2-tzvp / jk
    water / rhf / def2-svp / j *
    ammonium / rhf / def2-svp / jk *
    hydroxide / rhf / def2-svp / jk
    hydrogen fluoride / rhf / cc-pvqz / jk *
    lithium fluoride / rhf / def2-svp / jk
    copper hydride / rhf / def2-svp / jk
    scandium fluoride cation / rhf / def2-tzvp / jk
    methyl / uhf / 6-31g* / none *
    oxygen / uhf / def2-svp / none
    water cation / uhf / cc-pvdz / none
    hydroxyl / uhf / cc-pvqz / none
    zinc hydride / uhf / def2-svp / none
    methyl / uhf / def2-tzvp / jk
    oxygen / uhf / def2-svp / jk *
    water cation / uhf / def2-svp / jk
    hydroperoxyl / uhf / def2-svp / jk
    zinc hydride / uhf / def2-svp / jk *
    methyl / rohf / def2-svp / none
    oxygen / rohf / cc-pvdz / none *
    water cation / rohf / def2-tzvp / none
    methyl / rohf / def2-svp / jk *
    oxygen / rohf / def2-tzvp / jk
    zinc hydride / rohf / def2-svp / jk
"""
FUNCTIONALS = """
    water / svwn5 / 6-31g* / none *
    hydroxide / svwn5 / def2-svp / j
    copper hydride / svwn5 / def2-svp / j
    methyl / usvwn5 / def2-svp / none
    water cation / uspw92 / def2-tzvp / j
    water / pbe / def2-tzvp / none
    ammonium / blyp / def2-svp / j
    oxygen / upbe / def2-svp / j *
    copper hydride / bp86 / def2-svp / j
    zinc hydride / upbe / def2-svp / j
    hydrogen fluoride / pbe / cc-pvqz / j
    water / tpss / def2-svp / none
    ammonium / r2scan / def2-svp / j *
    methyl / utpss / def2-svp / none
    oxygen / ur2scan / def2-tzvp / j
    hydrogen sulfide / m06-l / def2-svp / j
    copper hydride / r2scan / def2-svp / j
    water / b3lyp / def2-svp / none
    hydroxide / b3lyp / def2-svp / jk *
    hydroperoxyl / upbe0 / def2-svp / jk
    zinc hydride / ub3lyp / def2-svp / jk
    hydrogen cyanide / m06-2x / def2-svp / none
    hydrogen cyanide / tpssh / def2-svp / jk
    hydrogen fluoride / b3lyp / cc-pvqz / none
    water / wb97x / def2-svp / none
    water / cam-b3lyp / def2-tzvp / jk
    water cation / uwb97x / def2-svp / none
    methyl / ucam-b3lyp / def2-svp / jk *
    copper hydride / wb97x / def2-svp / jk
"""
GRID = (50, 194)
"""Radial shells and points per shell: both programs use the same grid, which need not be fine."""


def cases() -> list[Row]:
    """The table as rows without results."""
    rows = []
    for lines, grid in ((HARTREE_FOCK, None), (FUNCTIONALS, list(GRID))):
        for line in lines.strip().splitlines():
            name, method, basis, fitting = (part.strip() for part in line.rstrip(" *").split("/"))
            atoms, charge, multiplicity = MOLECULES[name]
            rows.append(
                {
                    "molecule": name,
                    "geometry": atoms,
                    "charge": charge,
                    "multiplicity": multiplicity,
                    "method": method,
                    "basis": basis.split()[0],
                    "cartesian": basis.endswith("cartesian"),
                    "fitting": fitting,
                    "auxbasis": None if fitting == "none" else JKFIT,
                    "grid": grid,
                    "sample": line.endswith("*"),
                }
            )
    return rows


def mean_field(row: Row, mol: Any) -> Any:
    """PySCF's method, not converged."""
    from pyscf import dft, scf

    name = row["method"]
    if row["grid"] is None:
        return {"rhf": scf.RHF, "uhf": scf.UHF, "rohf": scf.ROHF}[name](mol)
    restricted = name in LIBXC
    result = (dft.RKS if restricted else dft.UKS)(mol, xc=LIBXC[name if restricted else name[1:]])
    result.grids.atom_grid, result.grids.prune = tuple(row["grid"]), None
    return result


def converge(method: Any, density: Any = None, orbitals: float = ORBITALS) -> float:
    """Converge a method by restarted DIIS, then by second-order steps; returns the norm of the orbital gradient."""
    method.conv_tol, method.conv_tol_grad, method.max_cycle, method.chkfile = ENERGY, orbitals, 40, None
    method.kernel(dm0=density)
    for _ in range(4):
        if _norm(method) > orbitals:
            method.kernel(dm0=method.make_rdm1())
    largest = max(LARGEST, orbitals)
    if _norm(method) > largest:
        second = method.newton()
        second.conv_tol, second.conv_tol_grad, second.max_cycle = ENERGY, orbitals, 30
        second.kernel(method.mo_coeff, method.mo_occ)
        for name in ("mo_coeff", "mo_occ", "mo_energy", "e_tot"):
            setattr(method, name, getattr(second, name))
    if _norm(method) > largest:
        raise RuntimeError(f"PySCF does not converge: the orbital gradient is {_norm(method):.1e}")
    return _norm(method)


def _norm(method: Any) -> float:
    return float(np.linalg.norm(method.get_grad(method.mo_coeff, method.mo_occ)))


def calculate(row: Row) -> Row:
    """Energy and gradient of a row by PySCF."""
    import pyscf

    mol = molecule_of(row)
    orbital, aux = bases(row, mol)
    theirs = oracle(mol, orbital)
    if row["cartesian"]:
        theirs.cart = True
        theirs.build(False, False)
    method = mean_field(row, theirs)
    if aux is not None:
        method = method.density_fit(auxbasis=oracle(mol, aux)._basis, only_dfj=row["fitting"] == "j")
    norm = converge(method)
    slope = method.nuc_grad_method()
    slope.verbose = 0
    if row["grid"] is not None:
        slope.grid_response = True
    if aux is not None:
        slope.auxbasis_response = True
    gradient = np.asarray(slope.kernel())
    found = {"program": f"PySCF {pyscf.__version__}", "energy": float(method.e_tot), "orbital_gradient": norm}
    return row | found | {"gradient": [[round(x, 11) for x in row_x] for row_x in gradient.tolist()]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--again", action="store_true", help="compute rows of the file again")
    options = parser.parse_args()
    kept = {} if options.again or not FILE.exists() else {key(row): row for row in json.loads(FILE.read_text())}
    done = []
    for row in cases():
        start = time.perf_counter()
        there = kept.get(key(row))
        done.append(there | row if there else calculate(row))
        if there is None:
            print(f"{key(row):60} {done[-1]['energy']:.9f}, {time.perf_counter() - start:.1f} s", flush=True)
        text = ",\n ".join(json.dumps(one) for one in done)
        FILE.write_text(f"[{text}]\n")


if __name__ == "__main__":
    main()
