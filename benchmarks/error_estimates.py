"""Estimated errors of energies compared with the actual errors, for molecules up to krypton.

    python benchmarks/error_estimates.py --json benchmarks/results/error_estimates.json
    python benchmarks/error_estimates.py --set diffuse --json benchmarks/results/error_estimates_diffuse.json
    python benchmarks/error_estimates.py --set calibration --only CO2 CuH --json RECORD.json

The estimators were developed, and their few factors chosen, with the molecules of --set calibration. Those of --set
validation (the default) were not used for that: organic molecules from SMILES (RDKit), and molecules of the
semiempirical references (tests/data/nddo_elements.json). Methods and bases alternate. Those of --set diffuse have
diffuse functions, which are nearly dependent in the larger molecules; one constant was chosen with them.

Actual errors are those of the energy of the converged density, which is stationary: J and K from four-centre integrals,
and the functional on 120 radial shells of 974 points without pruning. The processor time of all estimates is compared
with that of the calculation. A molecule that is in the record is not computed again; molecules whose SCF does not
converge are listed and left out.
"""

from __future__ import annotations

import argparse
import json
import time
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
from common import DATA, machine, save

METHODS = ("pbe", "b3lyp", "hf", "r2scan", "pbe0", "blyp", "wb97x")
BASES = ("def2-svp", "def2-tzvp", "def2-svp", "def2-svp", "def2-tzvp")
LARGE_BASIS_ELEMENTS = {"H", "C", "N", "O", "F"}
VALIDATION = (
    *("MnO4-", "VF4_radical", "MnCl2_sextet", "SiF5-", "FeCl2_quintet", "CoCl2_quartet", "CuCl2_radical", "AlCl3"),
    *("ScCl2CH3", "CuSeH", "PCl3_rm1", "VF5", "CrO2Cl2", "AsF5", "GaCl3", "TiCl4", "GeCl4"),
)
"""Names in tests/data/nddo_elements.json."""
SMILES = (
    *("CC", "CCC", "CC=C", "C1CC1", "CN", "CF", "CCl", "CC=O", "CC#N", "COC", "NN", "N=N", "NC=O", "C=C=O", "C=C=C"),
    *("ClC(Cl)Cl", "FCF", "ClCCl", "O=C=S", "N#CC#N", "C[N+](=O)[O-]", "ON=O", "CSC", "CP", "C[SiH3]"),
    *("F[Si](F)(F)F", "FP(F)F", "FN(F)F", "ClF", "BrF", "ClBr", "OBr", "C=CF", "C=CCl", "FC(F)=C(F)F", "c1ccoc1"),
    *("C1CO1", "NC(N)=O", "C[NH3+]", "C[O-]", "[C-]#N", "FSF", "FOF", "OC#N", "S=C=C", "BrCF"),
)
DIFFUSE_METHODS, DIFFUSE_BASES = ("hf", "b3lyp", "pbe"), ("aug-cc-pvdz", "aug-cc-pvdz", "def2-svpd", "6-31+g*")
DIFFUSE = (
    *("O", "CC", "C=C", "CO", "C#N", "C[O-]", "CCl", "NC=O", "C1CC1", "FC(F)=C(F)F", "c1ccoc1", "CS(C)=O"),
    *("c1ccccc1", "NCC(=O)O", "C12C3C4C1C5C4C3C25", "c1ccc2ccccc2c1"),
)
HEAVIEST, MOST_ATOMS = 36, 7
FACTOR = 5.0
SMALL = {
    "HF": "H 0 0 0; F 0 0 0.917",
    "NH3": "N 0 0 0.117; H 0 0.940 -0.272; H 0.814 -0.470 -0.272; H -0.814 -0.470 -0.272",
    "CH4": "C 0 0 0; H 0.629 0.629 0.629; H -0.629 -0.629 0.629; H -0.629 0.629 -0.629; H 0.629 -0.629 -0.629",
    "CO": "C 0 0 0; O 0 0 1.128",
    "CO2": "C 0 0 0; O 0 0 1.162; O 0 0 -1.162",
    "HCN": "H 0 0 -1.065; C 0 0 0; N 0 0 1.153",
    "F2": "F 0 0 0; F 0 0 1.412",
    "Cl2": "Cl 0 0 0; Cl 0 0 1.988",
    "H2O2": "O 0 0.734 -0.053; O 0 -0.734 -0.053; H 0.839 0.880 0.422; H -0.839 -0.880 0.422",
    "PH3": "P 0 0 0.127; H 0 1.192 -0.637; H 1.032 -0.596 -0.637; H -1.032 -0.596 -0.637",
    "H2S": "S 0 0 0.103; H 0 0.962 -0.824; H 0 -0.962 -0.824",
    "SO2": "S 0 0 0.363; O 0 1.238 -0.363; O 0 -1.238 -0.363",
    "O3": "O 0 0 0.444; O 0 1.089 -0.222; O 0 -1.089 -0.222",
    "C2H4": "C 0 0 0.667; C 0 0 -0.667; H 0 0.923 1.238; H 0 -0.923 1.238; H 0 0.923 -1.238; H 0 -0.923 -1.238",
    "CH2O": "C 0 0 -0.527; O 0 0 0.677; H 0 0.939 -1.119; H 0 -0.939 -1.119",
    "HCOOH": "C -0.134 0.401 0; O -1.134 -0.264 0; O 1.116 -0.090 0; H -0.107 1.495 0; H 1.037 -1.060 0",
    "N2O": "N 0 0 -1.199; N 0 0 -0.071; O 0 0 1.113",
    "CS2": "C 0 0 0; S 0 0 1.553; S 0 0 -1.553",
    "HOCl": "H -0.951 0.182 0; O 0 0 0; Cl 0.385 1.645 0",
    "SiO": "Si 0 0 0; O 0 0 1.510",
    "C2H2F2": "C 0 0 -1.1; C 0 0 0.22; H 0 0.93 -1.65; H 0 -0.93 -1.65; F 0 1.08 0.99; F 0 -1.08 0.99",
    "OH-": "O 0 0 0; H 0 0 0.964",
    "NH4+": "N 0 0 0; H 0.59 0.59 0.59; H -0.59 -0.59 0.59; H -0.59 0.59 -0.59; H 0.59 -0.59 -0.59",
}


def all_molecules(validation: bool) -> dict[str, Any]:
    """Molecules of a set, those with few electrons first."""
    import cuanto
    from cuanto.system.elements import ATOMIC_NUMBERS

    found = {}
    for name, known in json.loads((DATA / "nddo_elements.json").read_text())["molecules"].items():
        symbols = known["symbols"]
        small = len(symbols) <= MOST_ATOMS and max(ATOMIC_NUMBERS[s] for s in symbols) <= HEAVIEST
        lines = [f"{s} {x} {y} {z}" for s, (x, y, z) in zip(symbols, known["coordinates_angstrom"], strict=True)]
        if small and (name in VALIDATION) == validation:
            text = "\n".join([str(len(lines)), "", *lines])
            found[name] = cuanto.Molecule.from_string(text, known["charge"], known["multiplicity"])
    if validation:
        found |= {text: cuanto.Molecule.of(f"smiles:{text}") for text in SMILES}
    for name, text in {} if validation else SMALL.items():
        lines = [line.strip() for line in text.split(";")]
        charge = name.endswith("+") - name.endswith("-")
        found[name] = cuanto.Molecule.from_string("\n".join([str(len(lines)), "", *lines]), charge)
    return dict(sorted(found.items(), key=lambda one: one[1].nelectron))


def cases(chosen: str) -> dict[str, tuple[Any, str, str]]:
    """Molecule, method and basis by name, for a set of molecules."""
    import cuanto

    if chosen == "diffuse":
        molecules = {text: cuanto.Molecule.of(f"smiles:{text}") for text in DIFFUSE}
        chain = "".join(f"H 0 0 {0.75 * k}\n" for k in range(8))
        molecules["H8"] = cuanto.Molecule.from_string(f"8\n\n{chain}")
        pairs = zip(molecules.items(), cycle(DIFFUSE_METHODS), cycle(DIFFUSE_BASES))
        return {name: (molecule, method, basis) for (name, molecule), method, basis in pairs}
    found = {}
    pairs = zip(all_molecules(chosen == "validation").items(), cycle(METHODS), cycle(BASES))
    for (name, molecule), method, basis in pairs:
        light = set(molecule.elements) <= LARGE_BASIS_ELEMENTS
        found[name] = (molecule, method, basis if light else BASES[0])
    return found


def actual_errors(result: Any) -> dict[str, float]:
    """Errors of the energy of the converged density, Hartree."""
    from cuanto.coulomb.direct import DirectJK, IncrementalJK
    from cuanto.coulomb.fitting import FittedJK
    from cuanto.functionals import XCPotential
    from cuanto.grid import GridSettings
    from cuanto.methods.model import Model
    from cuanto.terms import Coulomb, Exchange, ExchangeCorrelation

    model, D_spq, backend = Model.of(result.method, result.molecule), result.state.D_spq, result.backend
    fitted = FittedJK(result.basis, result.auxbasis, backend=backend, kind=result.fitting)
    exact = IncrementalJK(DirectJK(result.basis, backend=backend, threshold=1e-14))

    def repulsion(builder: Any) -> float:
        energy = float(Coulomb(builder).fock(D_spq, None)[0])
        if model.functional.exact_exchange:
            energy += float(Exchange(builder, model.functional.exact_exchange).fock(D_spq, None)[0])
        return energy

    errors = {"fitting": repulsion(fitted) - repulsion(exact)}
    if (separation := model.functional.range_separation) is not None:
        far = {"omega": separation.omega, "backend": backend}
        long_range = IncrementalJK(DirectJK(result.basis, threshold=1e-14, **far))
        builders = FittedJK(result.basis, result.auxbasis, **far), long_range
        approximate, exactly = (float(Exchange(one, separation.beta).fock(D_spq, None)[0]) for one in builders)
        errors["fitting"] += approximate - exactly
    if model.has_functional:
        potential = XCPotential(model.functional, backend, len(D_spq))
        fine = GridSettings(level=(120, 974), threshold=1e-14)
        term = ExchangeCorrelation(potential, result.molecule, result.basis, fine)
        errors["grid"] = result.energies["exchange-correlation"] - term.energy(D_spq)
    return errors


def examine(
    molecule: Any, method: str, basis: str, backend: Any, known: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Estimated and actual errors of a case, those of a `known` row if it has the same fitting basis; the time of the
    estimates."""
    import cuanto

    start = time.process_time()
    result = cuanto.energy(molecule, method, basis, backend=backend)
    seconds = time.process_time() - start
    row: dict[str, Any] = {"method": method, "basis": basis, "converged": result.converged}
    row["geometry"] = molecule.to_xyz().splitlines()[2:]
    if not result.converged:
        return row
    start = time.process_time()
    estimated, total = dict(result.errors), result.error
    row |= {"seconds": seconds, "estimate_seconds": time.process_time() - start}
    row["auxbasis"] = result.auxbasis.name
    same = known is not None and known.get("auxbasis") == row["auxbasis"]
    actual = known["actual"] if known is not None and same else actual_errors(result)
    row |= {"estimated": estimated, "actual": actual}
    row |= {"estimated_total": total, "actual_total": abs(sum(actual.values()))}
    return row


def show(rows: dict[str, Any]) -> None:
    """Print how many estimates are within the factor, and their share of the time."""
    good = {name: row for name, row in rows.items() if row["converged"]}
    print(f"{len(good)} molecules; not converged: {', '.join(set(rows) - set(good)) or 'none'}")
    for source in ("total", "fitting", "grid"):
        pairs: dict[str, tuple[float, float]] = {}
        for name, row in good.items():
            if source == "total":
                pairs[name] = (row["estimated_total"], row["actual_total"])
            elif source in row["actual"]:
                pairs[name] = (abs(row["estimated"][source]), abs(row["actual"][source]))
        if not pairs:
            continue
        ratio = {name: estimated / max(actual, 1e-300) for name, (estimated, actual) in pairs.items()}
        inside = [name for name, r in ratio.items() if 1 / FACTOR <= r <= FACTOR]
        outside = ", ".join(f"{n} {pairs[n][0]:.0e}/{pairs[n][1]:.0e}" for n in ratio if n not in inside)
        middle = float(np.median(list(ratio.values())))
        print(
            f"{source:8s} within {FACTOR:g}: {len(inside)} of {len(ratio)}, median ratio {middle:.2f}; not: {outside}"
        )
    shares = [row["estimate_seconds"] / row["seconds"] for row in good.values()]
    total = sum(row["estimate_seconds"] for row in good.values()) / sum(row["seconds"] for row in good.values())
    print(f"time of the estimates: {100 * total:.1f} % of all, median {100 * float(np.median(shares)):.1f} %")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--only", nargs="+", help="these molecules")
    parser.add_argument("--set", default="validation", choices=("validation", "calibration", "diffuse"))
    parser.add_argument("--again", action="store_true", help="estimate again; actual errors are those of the record")
    parser.add_argument("--json", help="record, which is continued")
    given = parser.parse_args()
    from cuanto.backends.base import get_backend

    backend = get_backend(given.backend)
    path = Path(given.json) if given.json else None
    rows = json.loads(path.read_text())["molecules"] if path and path.exists() else {}
    for name, case in cases(given.set).items():
        if (name not in rows or given.again) and (given.only is None or name in given.only):
            rows[name] = examine(*case, backend, rows.get(name))
            print(f"{name:14s}{json.dumps(rows[name])}", flush=True)
            save(given.json, {"benchmark": "error_estimates", "machine": machine(backend), "molecules": rows})
    show(rows)


if __name__ == "__main__":
    main()
