"""Random calculations compared with PySCF: energy and levels of the same density, dipole moments and gradients.

    python benchmarks/differential.py --seed 1 --count 60 --json build/differential.json
    python benchmarks/differential.py --seed 1 --only 17          # one case again

Every case draws a small molecule of tests/data/nddo_elements.json (H to Bi), distorts, rotates and perhaps ionises it,
and chooses basis set, method, density fitting, relativity, grid, storage of integrals, a field, point charges and a
ghost atom. PySCF evaluates its energy functional and Fock matrix with our density, so that no SCF can end elsewhere.
Gradients are compared with PySCF's analytic ones or, where it has none for such a case, with differences of our own
energies. Exit status 1 if a difference is above LIMITS or a calculation fails; its case is printed.

PySCF leaves out parts of some core potentials and combinations of nearly dependent fitting functions; both are avoided
or listed as not comparable (`skipped`).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import traceback
import warnings
from random import Random
from typing import Any

import numpy as np
from common import DATA, ROOT, machine, save

sys.path[:0] = [str(ROOT / "tests" / "support")]

import cuanto  # noqa: E402
from cuanto.backends.base import get_backend  # noqa: E402
from cuanto.errors import CuantoError, InputError  # noqa: E402
from cuanto.grid.rules import radial_rule  # noqa: E402
from cuanto.system import ATOMIC_NUMBERS  # noqa: E402
from cuanto.units import BOHR_IN_ANGSTROM  # noqa: E402
from scf_cases import exact_core_hamiltonian, oracle, rotated, with_all_projections  # noqa: E402

LIMITS = {"energy": 1e-8, "energy_grid": 1e-6, "levels": 1e-7, "levels_grid": 2e-6, "dipole": 1e-6, "gradient": 1e-6}
"""Atomic units."""
MAX_FUNCTIONS, MAX_ATOMS = 80, 8
FUNCTIONALS = {
    "svwn5": "lda_x,lda_c_vwn",
    "blyp": "gga_x_b88,gga_c_lyp",
    "bp86": "gga_x_b88,gga_c_p86",
    "pbe": "gga_x_pbe,gga_c_pbe",
    "revpbe": "gga_x_pbe_r,gga_c_pbe",
    "tpss": "mgga_x_tpss,mgga_c_tpss",
    "r2scan": "mgga_x_r2scan,mgga_c_r2scan",
    "m06-l": "mgga_x_m06_l,mgga_c_m06_l",
    "b3lyp": "hyb_gga_xc_b3lyp",
    "pbe0": "hyb_gga_xc_pbeh",
    "tpssh": "hyb_mgga_xc_tpssh",
    "m06-2x": "hyb_mgga_x_m06_2x,mgga_c_m06_2x",
    "cam-b3lyp": "hyb_gga_xc_cam_b3lyp",
    "wb97x": "hyb_gga_xc_wb97x",
}
"""Names in PySCF, without its own defaults."""
JUMPS = {"bp86"}
"""Functionals whose energies jump: their correlation of Perdew and Zunger by 1e-8 Hartree where a point of the grid
crosses r_s = 1. Gradients are not compared with differences."""
WITH_EXCHANGE = {"b3lyp", "pbe0", "tpssh", "m06-2x", "cam-b3lyp", "wb97x"}
BASES = (
    *("sto-3g", "3-21g", "6-31g", "6-31g*", "6-31+g*", "6-311++g**", "cc-pvdz", "aug-cc-pvdz", "cc-pvdz-pp"),
    *("def2-svp", "def2-svpd", "def2-tzvp", "pcseg-1", "lanl2dz", "stuttgart rsc 1997", "crenbl", "dgauss-dzvp"),
)
ALL_ELECTRON = ("x2c-svpall", "cc-pvdz-dk", "jorge-dzp-dkh", "6-31g*", "sto-3g", "3-21g")
SPEED_OF_LIGHT = 137.03599967994
"""That of PySCF."""


def draw(seed: int, number: int) -> dict[str, Any]:
    """Choose a calculation; the same for the same numbers."""
    random = Random(f"{seed} {number}")
    rng = np.random.default_rng(random.randrange(2**31))
    name, entry = random.choice(sorted(MOLECULES.items()))
    charge, multiplicity = entry["charge"], entry["multiplicity"]
    if random.random() < 0.25:
        charge += random.choice((1, 1, -1))
        multiplicity = random.choice((multiplicity + 1, max(multiplicity - 1, 1))) if multiplicity > 1 else 2
    relativity = random.choices(("none", "x2c"), (5, 1))[0]
    method = random.choice(("rhf", "uhf", "rohf", *FUNCTIONALS) if random.random() < 0.6 else ("rhf", "uhf"))
    if method == "rhf" and multiplicity > 1:
        method = "uhf"
    R_ax = np.array(entry["coordinates_angstrom"]) / BOHR_IN_ANGSTROM
    R_ax = R_ax + rng.normal(scale=random.choice((0.0, 0.02, 0.1)), size=R_ax.shape)
    case: dict[str, Any] = {
        "number": number,
        "name": name,
        "symbols": entry["symbols"],
        "R_ax": R_ax.tolist(),
        "charge": charge,
        "multiplicity": multiplicity,
        "method": method,
        "bases": random.sample(ALL_ELECTRON if relativity == "x2c" else BASES, k=4),
        "spherical": random.choice((None, None, True, False)),
        "relativity": relativity,
        "fitting": random.choice(("none", "none", "j", "jk", "jk")),
        "storage": random.choice(("auto", "direct")),
        "gradient": random.random() < 0.4,
    }
    if method in FUNCTIONALS:
        case["grid"] = random.choice(((30, 110), (40, 194), (50, 302)))
    if random.random() < 0.15:
        case["field"] = rng.normal(scale=0.01, size=3).tolist()
    if random.random() < 0.15:
        away = rng.normal(size=(2, 3))
        positions = R_ax[0] + 5.0 * away / np.linalg.norm(away, axis=1)[:, None]
        case["point_charges"] = [rng.normal(size=2).tolist(), positions.tolist()]
    if random.random() < 0.15:
        case["ghost"] = [random.choice(("H", "O")), (R_ax[-1] + [0.3, 3.5, 0.2]).tolist()]
    return case


def _is_possible(entry: dict[str, Any]) -> bool:
    """Whether the multiplicity is one of all electrons: that of lanthanides in RM1 leaves out the f shell."""
    electrons = sum(ATOMIC_NUMBERS[symbol] for symbol in entry["symbols"]) - entry["charge"]
    return bool((electrons + entry["multiplicity"]) % 2)


MOLECULES: dict[str, Any] = {
    name: entry
    for name, entry in json.loads((DATA / "nddo_elements.json").read_text())["molecules"].items()
    if len(entry["symbols"]) <= MAX_ATOMS and _is_possible(entry)
}


def molecule_of(case: dict[str, Any]) -> cuanto.Molecule:
    """The rotated molecule, with its ghost atom."""
    symbols, R_ax = list(case["symbols"]), list(case["R_ax"])
    if "ghost" in case:
        symbols.append(f"Gh-{case['ghost'][0]}")
        R_ax.append(case["ghost"][1])
    return rotated(cuanto.Molecule(symbols, R_ax, case["charge"], case["multiplicity"]), case["number"])


def basis_of(case: dict[str, Any], molecule: cuanto.Molecule) -> cuanto.Basis | None:
    """The first basis of the case that has functions for all atoms and is small enough."""
    for name in case["bases"]:
        try:
            x2c = case["relativity"] == "x2c"
            basis = cuanto.Basis(name, molecule, spherical=case["spherical"], relativistic=x2c)
        except InputError:
            continue
        if basis.nbf <= MAX_FUNCTIONS and not (x2c and basis.core_electrons.any()):
            return basis
    return None


def settings(case: dict[str, Any]) -> dict[str, Any]:
    """Keywords of `cuanto.energy`."""
    keywords = ("fitting", "storage", "relativity", "field", "point_charges")
    found = {name: case[name] for name in keywords if name in case}
    found |= {"backend": "cpu", "gradient_tolerance": 1e-8, "energy_tolerance": 1e-11, "max_iterations": 100}
    if case["relativity"] == "x2c":
        found["speed_of_light"] = SPEED_OF_LIGHT
    if "grid" in case:
        found["grid"] = {"level": case["grid"], "pruning": "none"}
    return found


def peer(case: dict[str, Any], result: Any, mole: Any) -> tuple[Any, bool]:
    """PySCF's mean field with our fitting functions, and whether its Hamiltonian is its own."""
    from pyscf import dft, scf

    method = case["method"]
    if method in FUNCTIONALS:
        field = dft.RKS(mole) if len(result.density) == 1 else dft.UKS(mole)
        field.xc = FUNCTIONALS[method]
        field.grids.atom_grid, field.grids.prune = case["grid"], None
        field.grids.radi_method = _radial_rule
    else:
        field = {"rhf": scf.RHF, "uhf": scf.UHF, "rohf": scf.ROHF}[method](mole)
    if case["relativity"] == "x2c":
        field = field.sfx2c1e()
    if case["fitting"] != "none":
        fitting = oracle(result.molecule, result.auxbasis)._basis
        field = field.density_fit(auxbasis=fitting, only_dfj=case["fitting"] == "j")
    h_pq, nuclear = np.asarray(field.get_hcore()), mole.energy_nuc()
    if mole.has_ecp():
        h_pq = exact_core_hamiltonian(with_all_projections(mole), result.basis)
    Z_a, R_ax = mole.atom_charges(), mole.atom_coords()
    if "field" in case:
        h_pq = h_pq + np.einsum("x,xpq", case["field"], mole.intor("int1e_r"))
        nuclear -= float(case["field"] @ (Z_a @ R_ax))
    for charge, position in zip(*case.get("point_charges", ((), ())), strict=True):
        with mole.with_rinv_origin(position):
            h_pq = h_pq - charge * mole.intor("int1e_rinv")
        nuclear += charge * float(sum(z / np.linalg.norm(R - position) for z, R in zip(Z_a, R_ax, strict=True) if z))
    field.get_hcore = lambda *_: h_pq
    field.energy_nuc = lambda *_: nuclear
    return field, not ({"field", "point_charges"} & case.keys() or case["relativity"] == "x2c")


def _radial_rule(count: int, number: int, *_: Any, **__: Any) -> Any:
    """Our radial points for elements beyond krypton, for which PySCF has no scale."""
    from pyscf.dft import radi

    if number <= 36:
        return radi.treutler_ahlrichs(count, number)
    r, weight = radial_rule("treutler", count, number)
    return r, weight / r**2


def differences(case: dict[str, Any]) -> dict[str, Any]:
    """Differences of one calculation from PySCF, by the names of LIMITS; `skipped` if they cannot be compared."""
    molecule = molecule_of(case)
    basis = basis_of(case, molecule)
    if basis is None:
        return {"skipped": "no basis of this size"}
    case["basis"] = basis.name
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = cuanto.energy(molecule, case["method"], basis, **settings(case))
    if not result.converged:
        return {"skipped": "not converged"}
    if any(text.startswith("fitting metric") for text in result.notes) or result.coefficients.shape[-1] < basis.nbf:
        return {"skipped": "nearly dependent functions"}
    mole = oracle(result.molecule, basis)
    fitting = () if result.auxbasis is None else result.auxbasis.shells
    if any(shell.l >= 2 and shell.pure == mole.cart for shell in fitting):
        return {"skipped": "PySCF's fitting functions are of the kind of the orbitals"}
    field, own_gradient = peer(case, result, mole)
    D_spq, suffix = np.asarray(result.density), "_grid" if "grid" in case else ""
    density = D_spq[0] if len(D_spq) == 1 else D_spq
    potential = field.get_veff(mole, density)
    energy = float(field.energy_tot(density, field.get_hcore(), potential))
    found: dict[str, Any] = {f"energy{suffix}": abs(result.energy - energy)}
    if case["method"] != "rohf":
        F_spq = np.asarray(field.get_fock(field.get_hcore(), mole.intor("int1e_ovlp"), potential, density))
        found[f"levels{suffix}"] = _largest_difference_of_levels(F_spq.reshape(D_spq.shape), mole, result, density)
    found["dipole"] = float(np.abs(_dipole(mole, D_spq, result.molecule) - result.dipole).max())
    if case["gradient"]:
        difference = _gradient_difference(case, result, field, own_gradient)
        found |= {} if difference is None else {"gradient": difference}
    return found


def _largest_difference_of_levels(F_spq: Any, mole: Any, result: Any, density: Any) -> float:
    """Without spins that have no electrons: their potentials depend on how densities near zero are treated."""
    from scipy.linalg import eigh

    S_pq = mole.intor("int1e_ovlp")
    pairs = zip(F_spq, result.orbital_energies, np.atleast_3d(np.asarray(density)).reshape(F_spq.shape), strict=True)
    return max(float(np.abs(eigh(F, S_pq)[0] - np.sort(eps)).max()) for F, eps, D in pairs if np.abs(D).max() > 0)


def _dipole(mole: Any, D_spq: Any, molecule: cuanto.Molecule) -> Any:
    """The dipole moment; that of an ion about the centre of mass."""
    Z_a, R_ax, masses = mole.atom_charges(), mole.atom_coords(), molecule.nuclei.masses
    electrons = np.einsum("xpq,spq->x", mole.intor("int1e_r"), D_spq)
    return Z_a @ R_ax - electrons - molecule.charge * (masses @ R_ax) / masses.sum()


def _gradient_difference(case: dict[str, Any], result: Any, field: Any, own_gradient: bool) -> float | None:
    """Largest difference from PySCF's gradient or, where it has none for such a case, of the slope along a random
    direction from differences of energies; None for functionals whose energies jump.

    PySCF's gradient of fitted J with exact K, and of core potentials, is not that of its energy.
    """
    partly_fitted = case["fitting"] == "j" and case["method"] not in FUNCTIONALS.keys() - WITH_EXCHANGE
    if own_gradient and not partly_fitted and not field.mol.has_ecp():
        del field.get_hcore, field.energy_nuc
        field.conv_tol, field.conv_tol_grad = 1e-12, 1e-8
        density = result.density[0] if len(result.density) == 1 else np.asarray(result.density)
        energy = field.kernel(dm0=density)
        if field.converged and abs(energy - result.energy) < 1e-8:
            method = field.nuc_grad_method()
            if "grid" in case:
                method.grid_response = True
            return float(np.abs(method.kernel() - result.gradient).max())
    return None if case["method"] in JUMPS else _directional_difference(case, result)


def _directional_difference(case: dict[str, Any], result: Any, step: float = 4e-3) -> float:
    """g d minus the fourth-order difference of our own energies along a direction d."""
    rng = np.random.default_rng(case["number"])
    d_ax = rng.normal(size=result.molecule.R_ax.shape)
    d_ax /= np.linalg.norm(d_ax)
    energies = {}
    for k in (-2, -1, 1, 2):
        R_ax = result.molecule.R_ax + k * step * d_ax
        molecule = cuanto.Molecule(result.molecule.symbols, R_ax, result.molecule.charge, result.molecule.multiplicity)
        more: dict[str, Any] = {"search": "none", "stability": "none", "guess": result}
        if result.auxbasis is not None:
            more["auxbasis"] = result.auxbasis.moved_to(R_ax)
        moved = cuanto.energy(molecule, case["method"], result.basis.moved_to(R_ax), **(settings(case) | more))
        energies[k] = moved.energy
    slope = (8 * (energies[1] - energies[-1]) - (energies[2] - energies[-2])) / (12 * step)
    return abs(slope - float((result.gradient * d_ax).sum()))


def run_case(seed: int, number: int) -> dict[str, Any]:
    """A summary of the case, its differences and those that are too large, and seconds."""
    start, case = time.perf_counter(), draw(seed, number)
    try:
        found = differences(case)
    except CuantoError as error:
        found = {"failed": f"{type(error).__name__}: {error}"}
    except Exception as error:
        if "pyscf" not in traceback.extract_tb(error.__traceback__)[-1].filename:
            raise
        found = {"skipped": f"PySCF: {type(error).__name__}: {error}"}
    summary = {name: case[name] for name in ("number", "name", "charge", "multiplicity", "method", "fitting")}
    summary |= {name: case[name] for name in ("basis", "relativity", "field", "point_charges", "ghost") if name in case}
    wrong = [name for name, limit in LIMITS.items() if found.get(name, 0.0) > limit]
    return summary | {"found": found, "wrong": wrong, "seconds": round(time.perf_counter() - start, 1)}


def describe(row: dict[str, Any]) -> str:
    """A line about a case."""
    values = " ".join(f"{k} {v:.1e}" if isinstance(v, float) else f"{k}: {v}" for k, v in row["found"].items())
    kind = f"{row['name']} {row['method']}/{row.get('basis', '-')} fitting {row['fitting']}"
    verdict = f"  DIFFERENT: {', '.join(row['wrong'])}" if row["wrong"] else ""
    return f"{row['number']:4d} {kind:48s} {values}{verdict}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--only", type=int, nargs="*", help="numbers of cases")
    parser.add_argument("--json", metavar="FILE")
    arguments = parser.parse_args()
    rows = []
    for number in arguments.only or range(arguments.count):
        rows.append(run_case(arguments.seed, number))
        print(describe(rows[-1]), flush=True)
    compared = [row for row in rows if not {"skipped", "failed"} & row["found"].keys()]
    bad = [row for row in rows if row["wrong"] or "failed" in row["found"]]
    largest = {name: max((row["found"].get(name, 0.0) for row in compared), default=0.0) for name in LIMITS}
    print(f"{len(compared)} compared, {len(rows) - len(compared)} not, {len(bad)} different or failed; largest:")
    print(", ".join(f"{name} {value:.1e}" for name, value in largest.items()))
    record = {"benchmark": "differential", "machine": machine(get_backend("cpu")), "seed": arguments.seed}
    save(arguments.json, record | {"compared": len(compared), "largest": largest, "cases": rows})
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
