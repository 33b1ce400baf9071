"""Wavenumbers of ten small molecules compared with PySCF's analytic Hessians in the same run.

    python benchmarks/frequencies.py --json benchmarks/results/frequencies_cpu.json
    python benchmarks/frequencies.py --only water methyl --methods hf pbe

def2-SVP, no density fitting, (99, 590) points without pruning in both programs, masses of the elements. Limits: 0.5
cm^-1 without a functional, 1 cm^-1 with one, 3 cm^-1 below 200 cm^-1, because PySCF's Hessians lack the response of the
weights. With --differences, a case beyond them is compared with central differences of PySCF's gradients as well, which
have that response, and must be within 1 cm^-1 of those. Any other difference ends in exit status 1. Cases that the
record has already are not computed again.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from common import machine, pyscf_mole, save

import cuanto
from cuanto.backends.base import get_backend
from cuanto.motion.displacements import DisplacementPlan
from cuanto.system.symmetry import find_operations

BASIS = "def2-svp"
SHIFT = 0.005
"""Displacement of the atoms for differences of PySCF's gradients, Bohr."""
LARGEST_DIFFERENCE = 1.0
"""Largest difference from wavenumbers of such differences, cm^-1."""
GRID = (99, 590)
METHODS = ("hf", "b3lyp", "pbe", "r2scan")
MOLECULES = {
    "water": ("O 0 0 0.1173; H 0 0.7572 -0.4692; H 0 -0.7572 -0.4692", 1),
    "ammonia": ("N 0 0 0.1165; H 0 0.9397 -0.2718; H 0.8138 -0.46985 -0.2718; H -0.8138 -0.46985 -0.2718", 1),
    "hydrogen cyanide": ("C 0 0 0; H 0 0 -1.0686; N 0 0 1.1559", 1),
    "formaldehyde": ("C 0 0 -0.5297; O 0 0 0.6777; H 0 0.9366 -1.1242; H 0 -0.9366 -1.1242", 1),
    "acetylene": ("C 0 0 0.6026; C 0 0 -0.6026; H 0 0 1.6691; H 0 0 -1.6691", 1),
    "methane": (
        "C 0 0 0; H 0.6287 0.6287 0.6287; H -0.6287 -0.6287 0.6287; H -0.6287 0.6287 -0.6287; H 0.6287 -0.6287 -0.6287",
        1,
    ),
    "methyl": ("C 0 0 0; H 0 1.0846 0; H 0.93929 -0.5423 0; H -0.93929 -0.5423 0", 2),
    "amidogen": ("N 0 0 0.1420; H 0 0.8035 -0.4968; H 0 -0.8035 -0.4968", 2),
    "oxygen": ("O 0 0 0.6037; O 0 0 -0.6037", 3),
    "hydroperoxyl": ("O 0.0553 -0.6108 0; O 0.0553 0.7193 0; H -0.8847 -0.8680 0", 2),
}
"""Geometries near the minima (Angstrom) and multiplicities."""


def molecule_of(name: str) -> cuanto.Molecule:
    """Make one of the molecules."""
    text, multiplicity = MOLECULES[name]
    rows = text.split("; ")
    return cuanto.Molecule.from_string("\n".join([str(len(rows)), name, *rows]), multiplicity=multiplicity)


def peer_wavenumbers(molecule: cuanto.Molecule, method: str) -> tuple[Any, float]:
    """Wavenumbers of PySCF and their seconds."""
    peer, begin = peer_method(molecule, method), time.perf_counter()
    peer.kernel()
    hessian = peer.Hessian()
    hessian.verbose = 0
    return peer_analysis(peer.mol, hessian.kernel()), time.perf_counter() - begin


def peer_differences(molecule: cuanto.Molecule, method: str) -> Any:
    """Wavenumbers of central differences of PySCF's gradients with the response of the weights.

    Equivalent displacements are computed once; no state of these molecules has less symmetry than its nuclei.
    """
    plan = DisplacementPlan(molecule.natom, find_operations(molecule.symbols, molecule.R_ax), SHIFT)
    density: Any = None

    def gradient(R_ax: Any) -> Any:
        nonlocal density
        place = molecule.moved_to(R_ax)
        peer = peer_method(place, method)
        peer.kernel(dm0=density)
        density, slope = peer.make_rdm1(), peer.nuc_grad_method()
        slope.grid_response, slope.verbose = True, 0
        return slope.kernel()

    n = molecule.natom
    H_aaxy = plan.hessian(molecule.R_ax, gradient).reshape(n, 3, n, 3).transpose(0, 2, 1, 3)
    return peer_analysis(peer_method(molecule, method).mol, H_aaxy)


def peer_method(molecule: cuanto.Molecule, method: str) -> Any:
    """PySCF's SCF with our functions, grid and convergence."""
    from pyscf import dft, scf

    mol = pyscf_mole(molecule, cuanto.Basis(BASIS, molecule))
    mol.spin = molecule.multiplicity - 1
    mol.build()
    closed = molecule.multiplicity == 1
    if method == "hf":
        peer = scf.RHF(mol) if closed else scf.UHF(mol)
    else:
        peer = (dft.RKS if closed else dft.UKS)(mol, xc=method)
        peer.grids.atom_grid, peer.grids.prune = GRID, None
    peer.conv_tol, peer.conv_tol_grad, peer.chkfile = 1e-12, 1e-8, None
    return peer


def peer_analysis(mol: Any, H_aaxy: Any) -> Any:
    """Wavenumbers of PySCF's harmonic analysis in ascending order, imaginary ones negative."""
    from pyscf.hessian import thermo

    found = thermo.harmonic_analysis(mol, H_aaxy)["freq_wavenumber"]
    return np.sort(np.where(np.imag(found) != 0, -np.imag(found), np.real(found)))


def allowed(wavenumbers: Any, method: str) -> Any:
    """Largest differences, cm^-1."""
    return np.where(np.abs(wavenumbers) < 200.0, 3.0, 0.5 if method == "hf" else 1.0)


def run_case(name: str, method: str) -> dict[str, Any]:
    """Measure one case."""
    molecule = molecule_of(name)
    options = {} if method == "hf" else {"grid": GRID}
    begin = time.perf_counter()
    ours = cuanto.frequencies(molecule, method, BASIS, fitting="none", backend="cpu", **options)
    seconds = time.perf_counter() - begin
    theirs, peer_seconds = peer_wavenumbers(molecule, method)
    difference = np.abs(ours.wavenumbers - theirs)
    row = {"molecule": name, "method": method, "multiplicity": molecule.multiplicity}
    row |= {"wavenumbers": ours.wavenumbers.round(3).tolist(), "pyscf": theirs.round(3).tolist()}
    row |= {"intensities": ours.intensities.round(3).tolist(), "largest": float(difference.max())}
    row |= {"within": bool((difference <= allowed(theirs, method)).all())}
    row |= {"displacements": ours.second_derivatives.displacements, "asymmetry": ours.second_derivatives.asymmetry}
    row |= {"seconds": round(seconds, 2), "pyscf_seconds": round(peer_seconds, 2)}
    print(f"{name:18s} {method:8s} largest difference {row['largest']:.3f} cm^-1, {seconds:.1f} s", flush=True)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(MOLECULES))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--differences", action="store_true", help="differences of PySCF's gradients where needed")
    parser.add_argument("--json", help="write the result here")
    options = parser.parse_args()
    record: dict[str, Any] = {"benchmark": "frequencies", "machine": machine(get_backend("cpu")), "cases": []}
    record |= {"basis": BASIS, "grid": list(GRID)}
    if options.json and Path(options.json).exists():
        record["cases"] = json.loads(Path(options.json).read_text())["cases"]
    known = {(row["molecule"], row["method"]) for row in record["cases"]}
    for name in options.only or MOLECULES:
        for method in options.methods:
            if (name, method) not in known:
                record["cases"].append(run_case(name, method))
                save(options.json, record)
    for row in record["cases"]:
        if options.differences and not row["within"] and "pyscf_differences" not in row:
            theirs = peer_differences(molecule_of(row["molecule"]), row["method"])
            largest = float(np.abs(row["wavenumbers"] - theirs).max())
            row |= {"pyscf_differences": theirs.round(3).tolist(), "largest_of_differences": largest}
            print(f"{row['molecule']:18s} {row['method']:8s} {largest:.3f} cm^-1 from PySCF's differences", flush=True)
            save(options.json, record)
    wrong = [
        f"{row['molecule']} {row['method']}"
        for row in record["cases"]
        if not row["within"] and not row.get("largest_of_differences", np.inf) <= LARGEST_DIFFERENCE
    ]
    if wrong:
        sys.exit(f"beyond the limits: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
