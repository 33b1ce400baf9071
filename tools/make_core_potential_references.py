"""Energies and gradients by PySCF of molecules with core potentials, to tests/data/core_potential_references.json.

    python tools/make_core_potential_references.py                    # rows that are not there yet
    python tools/make_core_potential_references.py --only "WF6"       # some of them
    python tools/make_core_potential_references.py --again            # all of them
    python tools/make_core_potential_references.py --only "CeF4" --start cuanto

PySCF gets exactly our shells, fitting functions and core potentials, grids without pruning, and converges to 1e-12
Hartree and a norm of the orbital gradient of 1e-9 (4e-9 where rounding does not allow more; rows say which). It starts
from its own guess, or, where that fails or leads to a higher energy, from our density (`start` of a row). It is kept
from neglecting projected parts of core potentials: that changes XeF2 by up to 3e-8 Hartree and 8e-6 Hartree/Bohr. In
LANL2DZ the local potentials are integrated exactly, because PySCF's quadrature of them is not converged for functions
of light neighbours; gradients are then differences of energies, for molecules of at most 60 functions. Other molecules
have gradients if they have at most 120 functions up to f, or up to g with fitting; with fitted Hartree-Fock at most
250. Geometries are idealised: bond lengths and angles of the literature, rounded, with every atom displaced by up to
0.02 Angstrom in each direction, so that no element of a gradient vanishes.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from math import cos, pi, sin, sqrt
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "support"), str(ROOT / "tools")]

from make_gradient_references import converge, mean_field  # noqa: E402

from cuanto import Basis, Molecule  # noqa: E402
from gradient_cases import FILES, Row, bases, basis_name, calculate, key, molecule_of  # noqa: E402
from scf_cases import exact_core_hamiltonian, oracle, with_all_projections  # noqa: E402

FILE = FILES["core_potential"]
JKFIT = "def2-universal-jkfit"
GRID = (50, 194)
RULES = {"radial": "treutler-plain", "partition": "becke-plain"}
"""Rules without parameters of elements: those of PySCF differ from ours beyond Kr, and its gradient takes the radii of
the wrong elements for cells of atoms with core potentials."""
EXACT = "lanl2dz"
"""The basis whose local potentials PySCF does not integrate to convergence."""
STEP = 1e-3
"""Displacement for differences of energies, Bohr."""
POTENTIAL_STEP = 5e-3
"""Displacement for differences of integrals of core potentials, Bohr."""
MAX_DIFFERENCES = 60
"""Largest number of functions of a molecule whose gradient is computed from differences of energies."""
MAX_FUNCTIONS = 120
"""The same for analytic gradients."""
MAX_FITTED = 250
"""The same for fitted Hartree-Fock."""
MAX_MOMENTUM = 3
"""Largest angular momentum of its functions, if neither J nor K is fitted."""
ORBITALS = 1e-6
"""Norm of the orbital gradient where only an energy is needed: the error of the energy is about its square."""
SHIFT = 0.02
"""Largest displacement of an atom in each direction, Angstrom."""
Atoms = list[tuple[str, tuple[float, float, float]]]


def linear(*symbols_and_places: Any) -> Atoms:
    """Atoms on the z axis: symbol, place, symbol, place, ..."""
    pairs = zip(symbols_and_places[::2], symbols_and_places[1::2], strict=True)
    return [(symbol, (0.0, 0.0, z)) for symbol, z in pairs]


def diatomic(first: str, second: str, length: float) -> Atoms:
    return linear(first, 0.0, second, length)


def octahedral(centre: str, ligand: str, length: float) -> Atoms:
    axes = [tuple(sign * length * (x == k) for x in range(3)) for k in range(3) for sign in (1, -1)]
    return [(centre, (0.0, 0.0, 0.0)), *((ligand, place) for place in axes)]


def tetrahedral(centre: str, ligand: str, length: float) -> Atoms:
    s = length / sqrt(3.0)
    positions = [(s, s, s), (-s, -s, s), (-s, s, -s), (s, -s, -s)]
    return [(centre, (0.0, 0.0, 0.0)), *((ligand, position) for position in positions)]


def trigonal(centre: str, ligand: str, length: float, angle: float = 120.0) -> Atoms:
    """Three bonds with equal angles between them; with 120 degrees the molecule is planar."""
    radius = 2.0 * length * sin(angle * pi / 360.0) / sqrt(3.0)
    height = -sqrt(max(length**2 - radius**2, 0.0))
    positions = [(radius * cos(2 * pi * k / 3), radius * sin(2 * pi * k / 3), height) for k in range(3)]
    return [(centre, (0.0, 0.0, 0.0)), *((ligand, position) for position in positions)]


def bent(centre: str, ligand: str, length: float, angle: float) -> Atoms:
    half = angle * pi / 360.0
    positions = [(sign * length * sin(half), 0.0, length * cos(half)) for sign in (1, -1)]
    return [(centre, (0.0, 0.0, 0.0)), *((ligand, position) for position in positions)]


def square(centre: str, ligand: str, length: float) -> Atoms:
    return octahedral(centre, ligand, length)[:5]


def ammines(centre: str, length: float, number: int) -> Atoms:
    """Ammonia on the first `number` corners of an octahedron: N-H 1.03 Angstrom, tetrahedral angles."""
    atoms: Atoms = [(centre, (0.0, 0.0, 0.0))]
    for _, place in octahedral(centre, "N", length)[1 : 1 + number]:
        axis = np.array(place) / length
        first = np.roll(axis, 1)
        second = np.cross(axis, first)
        atoms.append(("N", place))
        for k in range(3):
            around = cos(2 * pi * k / 3) * first + sin(2 * pi * k / 3) * second
            hydrogen = np.array(place) + 1.03 * (axis / 3.0 + around * sqrt(8.0) / 3.0)
            atoms.append(("H", tuple(hydrogen.tolist())))
    return atoms


def metallocene(centre: str, to_carbon: float) -> Atoms:
    """Two eclipsed rings: C-C 1.43, C-H 1.09 Angstrom."""
    ring = 1.43 / (2.0 * sin(pi / 5.0))
    height = sqrt(to_carbon**2 - ring**2)
    atoms: Atoms = [(centre, (0.0, 0.0, 0.0))]
    for symbol, radius in (("C", ring), ("H", ring + 1.09)):
        for z in (height, -height):
            atoms += [(symbol, (radius * cos(0.4 * pi * k), radius * sin(0.4 * pi * k), z)) for k in range(5)]
    return atoms


def cisplatin() -> Atoms:
    chlorides, amines = square("Pt", "Cl", 2.33), ammines("Pt", 2.05, 4)
    return [chlorides[0], chlorides[1], chlorides[3], *amines[5:9], *amines[13:17]]


def pentacarbonyl(centre: str) -> Atoms:
    atoms: Atoms = [(centre, (0.0, 0.0, 0.0))]
    directions = [(0.0, 0.0, 1.0), (0.0, 0.0, -1.0)] + [
        (cos(2 * pi * k / 3), sin(2 * pi * k / 3), 0.0) for k in range(3)
    ]
    for symbol, length in (("C", 1.82), ("O", 2.97)):
        atoms += [(symbol, (length * x, length * y, length * z)) for x, y, z in directions]
    return atoms


def dicarbonyl(centre: str) -> Atoms:
    """Square planar, chlorine atoms beside each other."""
    place = [(1.0, 0.0), (0.0, 1.0)]
    atoms: Atoms = [(centre, (0.0, 0.0, 0.0)), *(("Cl", (2.36 * x, 2.36 * y, 0.0)) for x, y in place)]
    for symbol, length in (("C", 1.85), ("O", 3.00)):
        atoms += [(symbol, (-length * x, -length * y, 0.0)) for x, y in place]
    return atoms


def bipyridines(centre: str, number: int) -> Atoms:
    """Atoms of the centre and of the first bipyridine molecules of tris(bipyridine)ruthenium (benchmarks/data)."""
    lines = (ROOT / "benchmarks" / "data" / "ru_bpy3.xyz").read_text().splitlines()[3 : 3 + 20 * number]
    atoms: Atoms = [(centre, (0.0, 0.0, 0.0))]
    for symbol, *place in (line.split() for line in lines):
        x, y, z = map(float, place)
        atoms.append((symbol, (x, y, z)))
    return atoms


def dichloride(centre: str, length: float) -> Atoms:
    """Two bipyridine molecules, and chlorine atoms where a third one would have its nitrogen atoms."""
    third = [np.array(place) for symbol, place in bipyridines(centre, 3)[41:] if symbol == "N"]
    chlorides: Atoms = [("Cl", tuple((length * r / np.linalg.norm(r)).tolist())) for r in third]
    return bipyridines(centre, 2) + chlorides


MOLECULES: dict[str, tuple[Atoms, int, int]] = {
    "KH": (diatomic("K", "H", 2.24), 0, 1),
    "CaF": (diatomic("Ca", "F", 1.97), 0, 2),
    "TiCl4": (tetrahedral("Ti", "Cl", 2.17), 0, 1),
    "Fe(CO)5": (pentacarbonyl("Fe"), 0, 1),
    "CuH": (diatomic("Cu", "H", 1.46), 0, 1),
    "ZnCl2": (linear("Zn", 0.0, "Cl", 2.07, "Cl", -2.07), 0, 1),
    "GaH": (diatomic("Ga", "H", 1.66), 0, 1),
    "Br2": (diatomic("Br", "Br", 2.28), 0, 1),
    "KrF2": (linear("Kr", 0.0, "F", 1.88, "F", -1.88), 0, 1),
    "RbF": (diatomic("Rb", "F", 2.27), 0, 1),
    "SrO": (diatomic("Sr", "O", 1.92), 0, 1),
    "YF3": (trigonal("Y", "F", 2.02), 0, 1),
    "ZrCl4": (tetrahedral("Zr", "Cl", 2.32), 0, 1),
    "NbO": (diatomic("Nb", "O", 1.69), 0, 4),
    "MoF6": (octahedral("Mo", "F", 1.82), 0, 1),
    "TcO4-": (tetrahedral("Tc", "O", 1.71), -1, 1),
    "RuO4": (tetrahedral("Ru", "O", 1.71), 0, 1),
    "Ru(NH3)6 2+": (ammines("Ru", 2.14, 6), 2, 1),
    "Ru(C5H5)2": (metallocene("Ru", 2.20), 0, 1),
    "Ru(bpy)3 2+": (bipyridines("Ru", 3), 2, 1),
    "RhH": (diatomic("Rh", "H", 1.54), 0, 3),
    "PdCO": (linear("Pd", 0.0, "C", 1.84, "O", 2.98), 0, 1),
    "AgH": (diatomic("Ag", "H", 1.62), 0, 1),
    "CdH": (diatomic("Cd", "H", 1.76), 0, 2),
    "InCl": (diatomic("In", "Cl", 2.40), 0, 1),
    "SnH4": (tetrahedral("Sn", "H", 1.71), 0, 1),
    "SbH3": (trigonal("Sb", "H", 1.70, 91.6), 0, 1),
    "TeH2": (bent("Te", "H", 1.66, 90.3), 0, 1),
    "HI": (diatomic("I", "H", 1.61), 0, 1),
    "HI-": (diatomic("I", "H", 1.61), -1, 2),
    "IO": (diatomic("I", "O", 1.87), 0, 2),
    "XeF2": (linear("Xe", 0.0, "F", 1.98, "F", -1.98), 0, 1),
    "CsI": (diatomic("Cs", "I", 3.32), 0, 1),
    "BaO": (diatomic("Ba", "O", 1.94), 0, 1),
    "LaF3": (trigonal("La", "F", 2.08), 0, 1),
    "CeF4": (tetrahedral("Ce", "F", 2.04), 0, 1),
    "GdF3": (trigonal("Gd", "F", 2.03), 0, 8),
    "TbF2": (bent("Tb", "F", 2.10, 120.0), 0, 2),
    "LuF3": (trigonal("Lu", "F", 1.96), 0, 1),
    "HfCl4": (tetrahedral("Hf", "Cl", 2.32), 0, 1),
    "TaF5": ([*octahedral("Ta", "F", 1.86)[:6]], 0, 1),
    "WF6": (octahedral("W", "F", 1.83), 0, 1),
    "ReO4-": (tetrahedral("Re", "O", 1.72), -1, 1),
    "OsO4": (tetrahedral("Os", "O", 1.71), 0, 1),
    "IrCl2(CO)2-": (dicarbonyl("Ir"), -1, 1),
    "PtCl4 2-": (square("Pt", "Cl", 2.33), -2, 1),
    "cisplatin": (cisplatin(), 0, 1),
    "Pt(NH3)6 4+": (ammines("Pt", 2.07, 6), 4, 1),
    "Pt(bpy)2Cl2 2+": (dichloride("Pt", 2.32), 2, 1),
    "AuCl": (diatomic("Au", "Cl", 2.20), 0, 1),
    "AuH": (diatomic("Au", "H", 1.52), 0, 1),
    "HgCl2": (linear("Hg", 0.0, "Cl", 2.25, "Cl", -2.25), 0, 1),
    "HgH": (diatomic("Hg", "H", 1.77), 0, 2),
    "TlF": (diatomic("Tl", "F", 2.08), 0, 1),
    "PbH4": (tetrahedral("Pb", "H", 1.75), 0, 1),
    "BiH3": (trigonal("Bi", "H", 1.78, 90.5), 0, 1),
    "PoH2": (bent("Po", "H", 1.75, 90.0), 0, 1),
    "HAt": (diatomic("At", "H", 1.74), 0, 1),
    "RnF2": (linear("Rn", 0.0, "F", 2.08, "F", -2.08), 0, 1),
}
"""Atoms in Angstrom, charge, multiplicity. Bond lengths of diatomic molecules: K. P. Huber, G. Herzberg, Constants of
Diatomic Molecules (1979), and the CRC Handbook of Chemistry and Physics for the others; those of lanthanide fluorides,
carbonyls, ammines and of astatine, polonium and radon are estimates."""

# Molecule, method, basis, fitting; * marks rows that the tests compute. A basis after a + is that of light elements.
CASES = """
    KH / rhf / lanl2dz / none
    CaF / uhf / lanl2dz / none
    TiCl4 / rhf / lanl2dz / jk
    Fe(CO)5 / pbe / lanl2dz / j
    CuH / rhf / cc-pvtz-pp+cc-pvtz / none
    ZnCl2 / rhf / lanl2dz / none
    GaH / rhf / lanl2dz / none
    Br2 / rhf / lanl2dz / none
    KrF2 / rhf / cc-pvdz-pp+cc-pvdz / none
    RbF / rhf / def2-svp / none
    SrO / rhf / def2-svp / jk
    YF3 / pbe / def2-svp / none
    ZrCl4 / rhf / def2-svp / jk
    NbO / uhf / def2-svp / none
    MoF6 / b3lyp / def2-svp / jk
    TcO4- / rhf / def2-svp / none
    RuO4 / pbe / def2-tzvp / j
    Ru(NH3)6 2+ / rhf / def2-svp / jk
    Ru(C5H5)2 / rhf / def2-svp / jk
    Ru(bpy)3 2+ / rhf / def2-svp / jk
    Ru(bpy)3 2+ / pbe / def2-svp / j
    RhH / uhf / def2-tzvp / none
    PdCO / b3lyp / def2-svp / none
    PdCO / rhf / cc-pvtz-pp+cc-pvtz / jk
    AgH / rhf / cc-pvtz-pp+cc-pvtz / none
    AgH / rhf / def2-svp / jk
    AgH / rhf / def2-tzvp / none
    CdH / upbe / def2-svp / none
    CdH / uhf / lanl2dz / none
    InCl / rhf / def2-tzvp / none
    SnH4 / rhf / lanl2dz / none
    SbH3 / pbe / cc-pvtz-pp+cc-pvtz / none
    TeH2 / rhf / cc-pvtz-pp+cc-pvtz / none
    HI / rhf / def2-svp / none
    HI / b3lyp / def2-tzvp / jk
    HI / rhf / lanl2dz / none
    HI / rhf / lanl2dz+sto-3g / none *
    HI / rhf / lanl2dz+sto-3g / jk *
    HI / pbe / lanl2dz+sto-3g / j *
    HI- / uhf / lanl2dz+sto-3g / none *
    HI- / upbe / lanl2dz+sto-3g / none *
    IO / uhf / def2-svp / none
    XeF2 / b3lyp / def2-svp / none
    XeF2 / rhf / cc-pvtz-pp+cc-pvtz / jk
    CsI / rhf / def2-svp / none
    BaO / rhf / def2-svp / jk
    LaF3 / rhf / def2-svp / none
    CeF4 / rhf / def2-svp / none
    GdF3 / uhf / def2-svp / none
    TbF2 / uhf / lcecp-1-svp+def2-svp / none
    LuF3 / pbe / def2-svp / none
    LuF3 / rhf / def2-svp / jk
    HfCl4 / rhf / lanl2dz / jk
    TaF5 / pbe / def2-svp / j
    WF6 / rhf / def2-svp / none
    WF6 / pbe / def2-svp / j
    ReO4- / rhf / def2-svp / jk
    OsO4 / b3lyp / def2-svp / none
    IrCl2(CO)2- / rhf / def2-svp / none
    PtCl4 2- / rhf / lanl2dz / none
    cisplatin / b3lyp / def2-svp / jk
    Pt(NH3)6 4+ / rhf / def2-svp / jk
    Pt(bpy)2Cl2 2+ / rhf / def2-svp / jk
    Pt(bpy)2Cl2 2+ / pbe / def2-svp / j
    AuCl / rhf / def2-svp / none
    AuCl / pbe / def2-svp / j
    AuH / rhf / cc-pvtz-pp+cc-pvtz / none
    AuH / uhf / stuttgart rsc 1997+6-31g / none
    HgCl2 / pbe / def2-tzvp / none
    HgCl2 / rhf / cc-pvtz-pp+cc-pvtz / jk
    HgH / uhf / def2-svp / none
    HgH / rohf / def2-svp / none
    TlF / rhf / def2-tzvp / none
    PbH4 / b3lyp / def2-svp / jk
    BiH3 / rhf / lanl2dz / none
    PoH2 / pbe / def2-svp / none
    HAt / rhf / def2-tzvp / none
    RnF2 / rhf / def2-svp / jk
"""


def displaced_geometry(atoms: Atoms) -> str:
    """The geometry as text, with the atoms slightly displaced by a fixed rule."""
    lines = []
    for a, (symbol, place) in enumerate(atoms):
        moved = [x + SHIFT * sin(1.0 + 2.3 * (3 * a + k)) for k, x in enumerate(place)]
        lines.append(f"{symbol} " + " ".join(f"{x:.6f}" for x in moved))
    return "; ".join(lines)


def cases() -> list[Row]:
    """The table as rows without results."""
    rows = []
    for line in CASES.strip().splitlines():
        name, method, basis, fitting = (part.strip() for part in line.rstrip(" *").split("/"))
        atoms, charge, multiplicity = MOLECULES[name]
        heavy, plus, light = basis.partition("+")
        functional = method not in ("rhf", "uhf", "rohf")
        rows.append(
            {
                "molecule": name,
                "geometry": displaced_geometry(atoms),
                "charge": charge,
                "multiplicity": multiplicity,
                "method": method,
                "basis": {atoms[0][0]: heavy, "default": light} if plus else basis,
                "cartesian": False,
                "fitting": fitting,
                "auxbasis": None if fitting == "none" else JKFIT,
                "grid": list(GRID) if functional else None,
                "rules": RULES if functional else {},
                "sample": line.endswith("*"),
            }
        )
    return rows


def reference(row: Row, start: str) -> Row:
    """Energy and, of a small molecule, gradient of a row by PySCF."""
    import pyscf
    from pyscf.dft import radi

    radi.ATOM_SPECIFIC_TREUTLER_GRIDS = False
    mol = molecule_of(row)
    orbital, aux = bases(row, mol)
    density = None
    if start == "cuanto":
        D_spq = calculate(row | {"gradient": None}).density
        density = D_spq if len(D_spq) == 2 else D_spq[0]
    method = _method(row, mol, orbital, aux)
    limit = MAX_FITTED if row["fitting"] == "jk" and row["grid"] is None else MAX_FUNCTIONS
    limit = MAX_DIFFERENCES if EXACT in basis_name(row) else limit
    small = orbital.nbf <= limit and (aux is not None or orbital.l_max <= MAX_MOMENTUM)
    norm = converge(method, density) if small else converge(method, density, ORBITALS)
    found = {"program": f"PySCF {pyscf.__version__}", "start": start, "energy": float(method.e_tot)}
    found |= {"orbital_gradient": norm, "gradient": None}
    if small and EXACT in basis_name(row):
        found["gradient"] = _differences(row, mol, orbital, aux, method.make_rdm1())
    elif small:
        found["gradient"] = _gradient(row, method)
    return row | found


def _method(row: Row, mol: Molecule, orbital: Basis, aux: Basis | None) -> Any:
    """PySCF's method, not converged."""
    from pyscf.scf import hf

    method = mean_field(row, oracle(mol, orbital))
    if aux is not None:
        method = method.density_fit(auxbasis=oracle(mol, aux)._basis, only_dfj=row["fitting"] == "j")
    if row["grid"] is not None:
        method.grids.radii_adjust = None
    every = with_all_projections(method.mol)
    h_pq = exact_core_hamiltonian(every, orbital) if EXACT in basis_name(row) else hf.get_hcore(every)
    method.get_hcore = lambda *_: h_pq
    return method


def _gradient(row: Row, method: Any) -> list[list[float]]:
    """Analytic gradient, with derivatives of the core potentials from differences of their integrals."""
    slope = method.nuc_grad_method()
    slope.verbose = 0
    slope.grid_response, slope.auxbasis_response = row["grid"] is not None, row["fitting"] != "none"
    every = with_all_projections(method.mol)
    without = method.mol.copy()
    without._ecpbas = []  # the charges of the nuclei stay those outside of the cores
    rest = slope.hcore_generator(without)
    slope.hcore_generator = lambda *_: lambda a: rest(a) + _potential_derivatives(every, a)
    return [[round(x, 11) for x in place] for place in np.asarray(slope.kernel()).tolist()]


def _potential_derivatives(mole: Any, a: int) -> Any:
    """Derivatives of the integrals of core potentials by the position of an atom, [axis, p, q], from four points."""
    found, moved = [], mole.copy()
    for x in range(3):
        found.append(0.0)
        for steps, weight in ((1, 8), (-1, -8), (2, -1), (-2, 1)):
            R_ax = mole.atom_coords()
            R_ax[a, x] += steps * POTENTIAL_STEP
            moved.set_geom_(R_ax, unit="Bohr")
            found[x] += weight / (12.0 * POTENTIAL_STEP) * moved.intor("ECPscalar")
    return np.array(found)


def _differences(row: Row, mol: Molecule, orbital: Basis, aux: Basis | None, density: Any) -> list[list[float]]:
    """Gradient from central differences of energies."""
    gradient = np.zeros((mol.natom, 3))
    for a, x in np.ndindex(gradient.shape):
        for sign in (1.0, -1.0):
            R_ax = mol.R_ax.copy()
            R_ax[a, x] += sign * STEP
            moved = Molecule(mol.symbols, R_ax, mol.charge, mol.multiplicity)
            fitting = None if aux is None else aux.moved_to(R_ax)
            method = _method(row, moved, orbital.moved_to(R_ax), fitting)
            converge(method, density, ORBITALS)
            gradient[a, x] += sign * method.e_tot / (2.0 * STEP)
    return [[round(value, 9) for value in place] for place in gradient.tolist()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--again", action="store_true", help="compute rows of the file again")
    parser.add_argument("--only", default="", help="part of a row's name")
    parser.add_argument("--start", choices=("PySCF", "cuanto"), default="PySCF", help="guess of the SCF")
    options = parser.parse_args()
    for row in sorted(cases(), key=lambda row: len(row["geometry"])):
        start = time.perf_counter()
        there = stored().get(key(row))
        if options.only not in key(row) or (there and there["geometry"] == row["geometry"] and not options.again):
            continue
        try:
            found = reference(row, options.start)
        except (RuntimeError, np.linalg.LinAlgError) as error:
            print(f"{key(row):60} {error}: try --start cuanto", flush=True)
            continue
        print(f"{key(row):60} {found['energy']:.9f}, {time.perf_counter() - start:.1f} s", flush=True)
        kept = stored() | {key(row): found}  # another process may have added rows
        text = ",\n ".join(json.dumps(kept[key(one)] | one) for one in cases() if key(one) in kept)
        FILE.write_text(f"[{text}]\n")


def stored() -> dict[str, Row]:
    """The rows of the file by name."""
    return {key(row): row for row in json.loads(FILE.read_text())} if FILE.exists() else {}


if __name__ == "__main__":
    main()
