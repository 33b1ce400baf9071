"""Molecules, reference records and calculations that the SCF tests share."""

from __future__ import annotations

import json
import os
from functools import lru_cache
from typing import Any

import numpy as np

import cuanto
from cuanto.coulomb.base import JKBuilder
from cuanto.coulomb.builders import Builders
from cuanto.methods import Calculation, Context, GaussianResult, Request, Result
from cuanto.methods.context import core_hamiltonian, make_terms
from cuanto.scf.loop import Problem
from cuanto.scf.state import Orbitals, State
from paths import DATA

N2_STRETCHED = "2\n\nN 0 0 0\nN 0 0 3.0\n"
ZWITTERION = """10
glycine, NH3+ and COO-, set by hand
N  -1.246  -0.229   0.000
C   0.000   0.590   0.000
C   1.220  -0.360   0.000
O   2.310   0.240   0.000
O   0.970  -1.580   0.000
H  -1.230  -0.850   0.820
H  -1.230  -0.850  -0.820
H  -2.080   0.360   0.000
H   0.030   1.220   0.890
H   0.030   1.220  -0.890
"""
DIPOLE = 1e-5
"""Tolerance of dipole moments against another program, Debye."""
WATER = "3\n\nO 0.0 0.1 0.117\nH 0.2 0.757 -0.469\nH 0.0 -0.757 -0.469\n"


PI = "2Pi stationary point, internally unstable"
LOWER = "lower solution after following the internal instability"
"""Labels of records."""
DOWNHILL: dict[str, Any] = {
    "accelerator": "descent",
    "stability": "follow",
    "max_iterations": 800,
    "gradient_tolerance": 1e-6,
}
STAY: dict[str, Any] = {
    "atomic_charges": [2, -2],
    "atomic_spins": [0, 0],
    "accelerator": "diis",
    "gradient_tolerance": 1e-6,
}
FLAT_VALLEY: dict[str, Any] = {
    **DOWNHILL,
    "atomic_charges": [2, -2],
    "atomic_spins": [1, 0],
    "dipole_tolerance": 1e-7,  # the reference itself is 8e-6 Debye away
}
HARD: dict[tuple[str, str, bool, str | None], dict[str, Any]] = {
    ("CuO", "sto-3g", False, None): FLAT_VALLEY,
    ("CuO", "sto-3g", True, None): DOWNHILL,
    ("CuO", "6-31g**", False, None): DOWNHILL,
    ("CuO", "6-31g**", True, None): DOWNHILL,
    ("CuO", "6-31g**", False, PI): STAY,
    ("CuO", "6-31g**", True, PI): STAY,
    ("NO2", "cc-pvdz", False, LOWER): {"stability": "follow"},
}
"""Options for records (molecule, basis, cartesian, label) that the default guess and accelerator do not reach."""


def options_for(given: dict[str, Any]) -> dict[str, Any]:
    """Options that lead to a record."""
    if given["basis"] == "sto-3g" and given.get("label") == PI:
        form = "cartesian" if given["cartesian"] else "pure"
        return {"guess": stored_orbitals(form), "gradient_tolerance": 1e-6}
    return HARD.get((given["molecule"], given["basis"], given["cartesian"], given.get("label")), {})


def options_for_counting(given: dict[str, Any]) -> dict[str, Any]:
    """Options for counting iterations; in a flat valley their number depends on rounding."""
    options = options_for(given)
    if options is not FLAT_VALLEY:
        return options
    return {
        **options,
        "guess": stored_orbitals("lowest"),
        "accelerator": "auto",
        "atomic_charges": None,
        "atomic_spins": None,
    }


def stored_orbitals(state: str) -> Orbitals:
    """Orbitals of CuO rounded to a few digits: of stationary points that no guess leads to, and of the lowest state."""
    stored = json.loads((DATA / "cuo_orbitals.json").read_text())[state]
    cartesian = state == "cartesian"
    C_spm = np.stack([np.array(stored["alpha"]), np.pad(np.array(stored["beta"]), ((0, 0), (0, 1)))])
    occupied = np.array([np.ones(19), [1.0] * 18 + [0.0]])
    return Orbitals(basis("sto-3g", molecule("CuO"), spherical=not cartesian), C_spm, occupied)


def molecule(name: str) -> cuanto.Molecule:
    return cuanto.Molecule.from_xyz(DATA / "geometries" / f"{name}.xyz")


def basis(name: str | dict[str, str], of: cuanto.Molecule, spherical: bool | None = None) -> cuanto.Basis:
    """A basis from the files of the tests, contracted as in the reference; from the usual sources if they lack it."""
    before = os.environ.get("CUANTO_BASIS_PATH")
    os.environ["CUANTO_BASIS_PATH"] = os.pathsep.join([str(DATA / "basis"), *filter(None, [before])])
    try:
        return cuanto.Basis(name, of, spherical=spherical)
    finally:
        if before is None:
            del os.environ["CUANTO_BASIS_PATH"]
        else:
            os.environ["CUANTO_BASIS_PATH"] = before


@lru_cache
def records(file: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((DATA / f"{file}.json").read_text())
    return found


def record(file: str, **wanted: Any) -> dict[str, Any]:
    """The only record with these entries."""
    (found,) = [r for r in records(file) if all(r.get(key) == value for key, value in wanted.items())]
    return found


def run_record(given: dict[str, Any], **options: Any) -> Result:
    """The calculation of a record, or one with another `method` or `auxbasis`."""
    mol = molecule(given["molecule"])
    orbital = basis(given["basis"], mol, spherical=not given["cartesian"])
    kind = {"none (exact four-centre J and K)": "none", "RI-J and RI-K": "jk", "RI-J, exact K": "j"}
    fitting = kind.get(given["fitting"], given["fitting"])
    settings: dict[str, Any] = {"method": given["method"].lower(), "backend": "cpu", "fitting": fitting}
    settings |= {"search": "none", **options}
    name = settings.pop("auxbasis", given["auxbasis"])
    aux = basis(name, mol, spherical=orbital.spherical) if name else None
    return cuanto.energy(mol, basis=orbital, auxbasis=aux, **settings)


class InCore(JKBuilder):
    """J and K from four-centre integrals in memory: hard cases need many builds."""

    def __init__(self, orbital: cuanto.Basis) -> None:
        n = orbital.nbf
        I_pqrt = np.asarray(cuanto.integrals.eri_4c(orbital, backend="cpu"))
        self.J_matrix = I_pqrt.reshape(n * n, n * n)
        self.K_matrix = np.ascontiguousarray(I_pqrt.transpose(0, 2, 1, 3)).reshape(n * n, n * n)

    def __call__(self, D_spq: Any, C_spi: Any, want_j: bool, want_k: bool) -> tuple[Any, Any]:
        flat = D_spq.reshape(len(D_spq), -1)
        result = [(flat @ M).reshape(D_spq.shape) for M in (self.J_matrix, self.K_matrix)]
        return result[0] if want_j else None, result[1] if want_k else None


@lru_cache(maxsize=4)
def in_core(name: str, basis_name: str, cartesian: bool) -> tuple[cuanto.Molecule, cuanto.Basis, InCore]:
    mol = molecule(name)
    orbital = basis(basis_name, mol, spherical=not cartesian)
    return mol, orbital, InCore(orbital)


def run_in_core(
    given: dict[str, Any], guess: str | Orbitals = "sad", method: str = "", **options: Any
) -> tuple[GaussianResult, list[State]]:
    """The calculation of a record without fitting, and all its iterations."""
    mol, orbital, builder = in_core(given["molecule"], given["basis"], given["cartesian"])
    calculation = calculation_with(builder, mol, method or given["method"].lower(), orbital, **options)
    states, context = list(calculation.states(guess)), calculation.context
    common = {"molecule": mol, "method": context.model.name, "state": states[-1], "backend": context.backend}
    return GaussianResult(**common, options=context.request.scf, timings=context.timings, basis=orbital), states


def calculation_with(
    builder: Any, mol: cuanto.Molecule, method: str, orbital: cuanto.Basis, **options: Any
) -> Calculation:
    """A calculation whose J and K come from `builder`, on the CPU."""
    options = {"backend": "cpu", "fitting": "none", "search": "none", **options}
    context = Context.of(Request.of(mol, method, orbital, **options))
    core = core_hamiltonian(context)
    return Calculation(context, core, make_terms(context, core, Builders(builder, builder, builder)))


def problem_in_core(given: dict[str, Any], method: str) -> Problem:
    """The SCF problem that `run_in_core` solves."""
    mol, orbital, builder = in_core(given["molecule"], given["basis"], given["cartesian"])
    return calculation_with(builder, mol, method, orbital).problem()


def water(spherical: bool = True, name: str = "cc-pvdz") -> tuple[cuanto.Molecule, cuanto.Basis]:
    mol = cuanto.Molecule.from_string(WATER)
    return mol, basis(name, mol, spherical)


def rotated(mol: cuanto.Molecule, seed: int) -> cuanto.Molecule:
    """The molecule rotated and translated."""
    rng = np.random.default_rng(seed)
    Q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    Q = Q * np.linalg.det(Q)
    return cuanto.Molecule(mol.symbols, mol.R_ax @ Q + rng.normal(size=3), mol.charge, mol.multiplicity)


def oracle(mol: cuanto.Molecule, orbital: cuanto.Basis) -> Any:
    """The same molecule and shells in PySCF."""
    from pyscf import gto

    from cuanto.basis.shell import tabulated_coefficients

    labels = [symbol.replace("Gh-", "GHOST-") for symbol in mol.symbols]
    shells: dict[str, Any] = {}
    for shell in orbital.shells:
        label = labels[shell.atom]
        if labels.index(label) == shell.atom:
            rows = zip(shell.exponents, tabulated_coefficients(shell), strict=True)
            entry = [shell.l, *([float(a), *map(float, row)] for a, row in rows)]
            shells.setdefault(label, []).append(entry)
    atoms = [(label, tuple(R)) for label, R in zip(labels, mol.R_ax.tolist(), strict=True)]
    unpaired = mol.with_core_electrons(orbital.core_electrons).valence_multiplicity - 1
    about = {"charge": mol.charge, "spin": unpaired, "ecp": _oracle_potentials(orbital), "cart": not orbital.spherical}
    return gto.M(atom=atoms, unit="Bohr", basis=shells, verbose=0, **about)


def with_all_projections(mole: Any) -> Any:
    """The same functions in PySCF, in a form that keeps it from neglecting projected parts of core potentials.

    For two shells that hardly overlap near a potential it leaves out the projected parts, too, which need not be small:
    -3e-5 Hartree for f functions (cc-pVTZ) of the two fluorine atoms of XeF2. With a diffuse primitive in every shell,
    whose coefficient is zero, it computes them.
    """
    every = mole.copy()
    every.basis = {
        symbol: [[l, *primitives, [0.01] + [0.0] * (len(primitives[0]) - 1)] for l, *primitives in shells]
        for symbol, shells in mole._basis.items()
    }
    every.build(False, False)
    return every


def exact_core_hamiltonian(mole: Any, orbital: cuanto.Basis) -> Any:
    """PySCF's one-electron Hamiltonian with the r^0 terms of local core potentials as overlaps of three Gaussians.

    Its own quadrature of these terms (`ECPscalar`) is not converged for tight functions away from a diffuse potential:
    3e-4 for the 1s function of oxygen at 1.55 Angstrom from iodine in LANL2DZ.
    """
    from pyscf import df, gto

    rest = mole.copy()
    rest.ecp = {
        symbol: [n, [[l, [[] if l < 0 and power == 2 else x for power, x in enumerate(terms)]] for l, terms in parts]]
        for symbol, (n, parts) in mole._ecp.items()
    }
    rest.build(False, False)
    h_pq = rest.intor("int1e_kin") + rest.intor("int1e_nuc") + rest.intor("ECPscalar")
    for R_x, potential in zip(orbital.R_ax, orbital.core_potentials, strict=True):
        terms = [] if potential is None else [term for term in potential.local if term.power == 2]
        if terms:
            shells = {"He": [[0, [term.exponent, 1.0]] for term in terms]}
            points = gto.M(atom=[("He", tuple(R_x))], unit="Bohr", basis=shells, cart=mole.cart, verbose=0)
            norms = [(2 * term.exponent / np.pi) ** 0.75 for term in terms]
            factors = np.array([term.coefficient / norm for term, norm in zip(terms, norms, strict=True)])
            h_pq = h_pq + df.incore.aux_e2(mole, points, intor="int3c1e") @ factors
    return h_pq


def _oracle_potentials(orbital: cuanto.Basis) -> dict[str, Any]:
    """Core potentials in the form of PySCF: for each part the terms of every power of r."""
    found: dict[str, Any] = {}
    for symbol, potential in zip(orbital.symbols, orbital.core_potentials, strict=True):
        if potential is not None:
            parts = []
            for l, terms in enumerate((potential.local, *potential.projected), start=-1):
                powers: list[list[list[float]]] = [[] for _ in range(7)]
                for term in terms:
                    powers[term.power].append([term.exponent, term.coefficient])
                parts.append([l, powers])
            found[symbol] = [potential.core_electrons, parts]
    return found
