"""Write energies and gradients by PySCF's sfx2c1e to tests/data/x2c_references.json.

    python tools/make_x2c_references.py              # rows that are not there yet
    python tools/make_x2c_references.py --again      # all of them
    python tools/make_x2c_references.py --again --only "hydrogen bromide rhf"

One closed-shell ion of every element from H to Rn, molecules, and a few other methods. PySCF gets exactly our shells
and decontracts them (its default); its speed of light is `x2c_cases.SPEED_OF_LIGHT`, Gaussian nuclei have our
exponents. Gradients with Gaussian nuclei are differences of energies: those of PySCF 2.14 do not add up to zero,
because in one of two terms of the attraction to a nucleus it takes this to be a point. With that corrected, they agree
with the differences within 2e-8 Hartree/Bohr for HBr.
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
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "support"), str(ROOT / "tools")]

from make_gradient_references import mean_field  # noqa: E402

from cuanto import Molecule  # noqa: E402
from cuanto.system.elements import SYMBOLS  # noqa: E402
from cuanto.terms.x2c import OneElectronModel  # noqa: E402
from scf_cases import oracle  # noqa: E402
from x2c_cases import FILE, SPEED_OF_LIGHT, Row, bases, key, molecule_of  # noqa: E402

CLOSED_SHELLS = (86, 78, 68, 54, 46, 36, 28, 18, 10, 2)
"""Numbers of electrons in closed shells; each element gets the largest that its nuclear charge allows."""
PALLADIUM_LIKE = range(61, 71)
"""Lanthanides whose ions with 54 electrons have 4f orbitals among the occupied ones; they get 46 electrons."""
LARGEST = 1e-6
"""Norm of the orbital gradient that is accepted: the error of the energy is about its square."""
BASIS = "x2c-svpall"
JKFIT = "def2-universal-jkfit"
GRID = (50, 194)
STEP = 1e-2
"""Displacement for differences of energies at four points, Bohr."""
GAUSSIAN = ("He", "Ne", "Kr", "Xe", "Au", "Hg", "Rn")
MOLECULES: dict[str, tuple[str, int, int]] = {
    "water": ("O 0 0 0.1; H 0.3 0.7 -0.5; H 0 -0.8 -0.4", 0, 1),
    "water cation": ("O 0 0 0.1; H 0.3 0.7 -0.5; H 0 -0.8 -0.4", 1, 2),
    "hydrogen chloride": ("Cl 0 0 0; H 0.3 0.4 1.2", 0, 1),
    "copper hydride": ("Cu 0 0 0; H 0.3 0.4 1.45", 0, 1),
    "hydrogen bromide": ("Br 0 0 0; H 0.3 0.4 1.35", 0, 1),
    "hydrogen bromide cation": ("Br 0 0 0; H 0.3 0.4 1.35", 1, 2),
    "silver hydride": ("Ag 0 0 0; H 0.3 0.4 1.55", 0, 1),
    "gold hydride": ("Au 0 0 0; H 0.3 0.4 1.45", 0, 1),
    "mercury hydride": ("Hg 0 0 0; H 0.3 0.4 1.65", 0, 2),
    "hydrogen iodide": ("I 0 0 0; H 0.3 0.4 1.55", 0, 1),
    "calcium dication": ("Ca 0 0 0", 2, 1),
}
"""Angstrom, charge, multiplicity."""
# Molecule, method, basis, fitting, nuclear model; * in the sample of the tests.
TABLE = f"""
    water / rhf / {BASIS} / none / point *
    water / rhf / cc-pvdz / none / gaussian *
    water / rhf / cc-pvtz-dk / none / point
    water / rhf / {BASIS} / jk / point *
    water / b3lyp / {BASIS} / none / point
    water cation / uhf / {BASIS} / none / point *
    water cation / rohf / {BASIS} / jk / point
    water cation / upbe / {BASIS} / j / point *
    hydrogen chloride / rhf / {BASIS} / none / point
    copper hydride / rhf / {BASIS} / jk / point
    copper hydride / pbe / {BASIS} / j / point
    hydrogen bromide / rhf / {BASIS} / none / point
    hydrogen bromide / rhf / {BASIS} / none / gaussian
    hydrogen bromide cation / uhf / {BASIS} / none / point
    silver hydride / rhf / {BASIS} / none / point
    hydrogen iodide / rhf / {BASIS} / none / point
    hydrogen iodide / rhf / {BASIS} / none / gaussian
    gold hydride / rhf / {BASIS} / jk / point
    gold hydride / rhf / {BASIS} / none / point
    mercury hydride / uhf / {BASIS} / jk / point
    calcium dication / rhf / cc-pvdz-x2c / none / point
"""
ATOMS_IN_SAMPLE = ("Ne", "Kr")


def ion(symbol: str, number: int, model: str) -> Row:
    """The row of an atom or ion with closed shells, which has a charge of up to 24."""
    electrons = 2 if number == 1 else next(n for n in CLOSED_SHELLS if n <= number)
    electrons = 46 if number in PALLADIUM_LIKE else electrons
    charge = number - electrons
    name = symbol if charge == 0 else f"{symbol} {charge:+d}"
    return case(f"{symbol} 0 0 0", name, charge, 1, "rhf", BASIS, "none", model, symbol in ATOMS_IN_SAMPLE)


def case(
    geometry: str,
    name: str,
    charge: int,
    multiplicity: int,
    method: str,
    basis: str,
    fitting: str,
    model: str,
    sample: bool,
) -> Row:
    """A row without results."""
    return {
        "molecule": name,
        "geometry": geometry,
        "charge": charge,
        "multiplicity": multiplicity,
        "method": method,
        "basis": basis,
        "fitting": fitting,
        "auxbasis": None if fitting == "none" else JKFIT,
        "grid": None if method in ("rhf", "uhf", "rohf") else list(GRID),
        "nuclear_model": model,
        "sample": sample,
    }


def cases() -> list[Row]:
    """All rows, without results."""
    rows = []
    for line in TABLE.strip().splitlines():
        name, method, basis, fitting, model = (part.strip() for part in line.rstrip(" *").split("/"))
        rows.append(case(*_molecule(name), method, basis, fitting, model, line.endswith("*")))
    elements = list(enumerate(SYMBOLS[:86], start=1))
    rows += [ion(symbol, number, "point") for number, symbol in elements]
    return rows + [ion(symbol, number, "gaussian") for number, symbol in elements if symbol in GAUSSIAN]


def _molecule(name: str) -> tuple[str, str, int, int]:
    """Geometry, name, charge and multiplicity."""
    geometry, charge, multiplicity = MOLECULES[name]
    return geometry, name, charge, multiplicity


def converge(method: Any, density: Any = None) -> float:
    """Converge a method, from a density if given; returns the norm of the orbital gradient."""
    method.conv_tol, method.conv_tol_grad, method.max_cycle, method.chkfile = 1e-11, 1e-7, 25, None
    method.kernel(dm0=density)  # rounding keeps energies of heavy atoms from converging that far; the gradient decides
    norm = float(np.linalg.norm(method.get_grad(method.mo_coeff, method.mo_occ)))
    if norm > LARGEST:
        second = method.newton()
        second.conv_tol, second.conv_tol_grad, second.max_cycle = 1e-9, 1e-7, 40
        second.kernel(method.mo_coeff, method.mo_occ)
        for name in ("mo_coeff", "mo_occ", "mo_energy", "e_tot"):
            setattr(method, name, getattr(second, name))
        norm = float(np.linalg.norm(method.get_grad(method.mo_coeff, method.mo_occ)))
    if norm > LARGEST:
        raise RuntimeError(f"PySCF does not converge: the orbital gradient is {norm:.1e}")
    return norm


def calculate(row: Row) -> Row:
    """Energy and gradient of a row by PySCF."""
    import pyscf
    from pyscf.lib import param

    assert param.LIGHT_SPEED == SPEED_OF_LIGHT
    mol = molecule_of(row)
    method = _method(row, mol)
    norm = converge(method)
    found = {"program": f"PySCF {pyscf.__version__}", "energy": float(method.e_tot), "orbital_gradient": norm}
    if mol.natom == 1:
        return row | found | {"gradient": None}
    gaussian = row["nuclear_model"] == "gaussian"
    return row | found | {"gradient": _differences(row, mol, method) if gaussian else _gradient(method, row)}


def _method(row: Row, mol: Molecule) -> Any:
    """PySCF's method, not converged."""
    orbital, aux = bases(row, mol)
    theirs = oracle(mol, orbital)
    exponents = OneElectronModel(gaussian_nuclei=row["nuclear_model"] == "gaussian").exponents(mol.nuclei.protons)
    for atom, exponent in enumerate([] if exponents is None else exponents):
        theirs.set_nuc_mod(atom, exponent)
    method = mean_field(row, theirs).sfx2c1e()
    if aux is None:
        return method
    return method.density_fit(auxbasis=oracle(mol, aux)._basis, only_dfj=row["fitting"] == "j")


def _differences(row: Row, mol: Molecule, method: Any) -> list[list[float]]:
    """Gradient from differences of energies at four points."""
    gradient, density = np.zeros((mol.natom, 3)), method.make_rdm1()
    for a, x in np.ndindex(gradient.shape):
        for steps, weight in ((1, 8), (-1, -8), (2, -1), (-2, 1)):
            R_ax = mol.R_ax.copy()
            R_ax[a, x] += steps * STEP
            moved = _method(row, Molecule(mol.symbols, R_ax, mol.charge, mol.multiplicity))
            converge(moved, density)
            gradient[a, x] += weight * moved.e_tot / (12.0 * STEP)
    return [[round(value, 9) for value in place] for place in gradient.tolist()]


def _gradient(method: Any, row: Row) -> list[list[float]]:
    slope = method.nuc_grad_method()
    slope.verbose = 0
    slope.grid_response, slope.auxbasis_response = row["grid"] is not None, row["fitting"] != "none"
    return [[round(x, 11) for x in place] for place in np.asarray(slope.kernel()).tolist()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--again", action="store_true", help="compute rows of the file again")
    parser.add_argument("--only", default="", help="part of the names of rows to compute again")
    options = parser.parse_args()
    stored = json.loads(FILE.read_text()) if FILE.exists() else []
    kept = {key(row): row for row in stored if not (options.again and options.only in key(row))}
    done = []
    for row in cases():
        start = time.perf_counter()
        there = kept.get(key(row))
        done.append(there | row if there else calculate(row))
        if there is None:
            print(f"{key(row):56} {done[-1]['energy']:.9f}, {time.perf_counter() - start:.1f} s", flush=True)
            rest = [one for name, one in kept.items() if name not in {key(made) for made in done}]
            FILE.write_text(_text(done + rest))
    FILE.write_text(_text(done))


def _text(rows: list[Row]) -> str:
    """The rows as JSON, one in each line."""
    return "[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n"


if __name__ == "__main__":
    main()
