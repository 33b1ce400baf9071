"""Gradients alone, after a converged SCF: seconds by term, compared with PySCF in the same run or published times of
GPU4PySCF.

    python benchmarks/gradient.py --peer --json benchmarks/results/gradient_cpu.json
    python benchmarks/gradient.py --backend cuda --json benchmarks/results/gradient_cuda.json
    python benchmarks/gradient.py --only octadecane naphthalene

Warm: the best of `--repeat` gradients after a first one; integrals that the SCF keeps in memory are reused. The peer
uses the same functions, fitting basis, density and number of threads, with the response of its grid. Times of GPU4PySCF
1.9 on an H200 are taken from the literature. The exit status is 1 if a gradient differs from the peer's by more than
1e-6 Hartree/Bohr.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from common import DATA, geometry, machine, pyscf_mole, save
from scf_systems import OWN

import cuanto
from cuanto.backends.base import get_backend
from cuanto.methods import Calculation, Request

MAX_DIFFERENCE = 1e-6
"""Largest difference from PySCF's gradient, Hartree/Bohr."""
TIGHT = {"gradient_tolerance": 1e-8, "energy_tolerance": 1e-11}


@dataclass(frozen=True)
class Case:
    """A gradient; `target`: desired seconds on an H200, `literature`: those of GPU4PySCF; `large`: too large for a few
    cores."""

    name: str
    molecule: str
    method: str
    basis: str
    fitting: str = "jk"
    aux: str | None = "def2-universal-jkfit"
    target: float | None = None
    literature: float | None = None
    large: bool = False

    @property
    def path(self) -> Path:
        """Path of the geometry, in the test data or in the benchmarks."""
        found = geometry(self.molecule)
        return found if found.exists() else OWN / found.name


CASES = [
    Case("octadecane", "alkane_18", "hf", "cc-pvdz", aux="cc-pvdz-jkfit", target=0.06, literature=0.18),
    Case("ribavirin", "ribavirin", "hf", "cc-pvdz", aux="cc-pvdz-jkfit", target=0.04, literature=0.13),
    Case("naphthalene", "naphthalene", "hf", "6-31g**", "none", None, 0.05, 0.17),
    Case("taxol", "taxol", "hf", "6-31g*", "none", None, 0.9, 2.6, large=True),
    Case("valinomycin", "valinomycin", "hf", "6-31g*", "none", None, 1.2, 3.4, large=True),
    Case("water_24-lda", "water_24", "lda", "dgauss-dzvp", "none", None, 0.3, 1.5),
    Case("ribavirin-pbe", "ribavirin", "pbe", "def2-tzvp", "j", target=0.18, literature=0.55),
    Case("ribavirin-b3lyp", "ribavirin", "b3lyp", "def2-tzvp", target=0.2, literature=0.61),
    Case("taxol-b3lyp", "taxol", "b3lyp", "def2-tzvp", target=2.0, literature=6.0, large=True),
    Case("taxol-b3lyp-svp", "taxol", "b3lyp", "def2-svp", target=0.8, literature=2.3, large=True),
    Case("caffeine-pbe", "caffeine", "pbe", "def2-svp", "j"),
    Case("caffeine-b3lyp", "caffeine", "b3lyp", "def2-svp"),
    Case("caffeine-wb97x", "caffeine", "wb97x", "def2-svp"),
]


def peer_gradient(case: Case, molecule: Any, basis: Any, aux: Any, density: Any, threads: int) -> tuple[float, Any]:
    """Seconds and gradient of PySCF, from our density."""
    from pyscf import dft, lib, scf

    lib.num_threads(threads)
    mol = pyscf_mole(molecule, basis)
    method = scf.RHF(mol) if case.method == "hf" else dft.RKS(mol, xc=case.method)
    if aux is not None:
        only_j = {} if case.fitting == "jk" else {"only_dfj": True}
        method = method.density_fit(auxbasis=pyscf_mole(molecule, aux).basis, **only_j)
    method.chkfile = None
    method.max_cycle = 2
    method.kernel(dm0=density)
    slope = method.nuc_grad_method()
    slope.verbose = 0
    if case.method != "hf":
        slope.grid_response = True
    if aux is not None:
        slope.auxbasis_response = True
    start = time.perf_counter()
    found = slope.kernel()
    return time.perf_counter() - start, found


def run_case(case: Case, options: argparse.Namespace, backend: Any) -> dict[str, Any]:
    """Measure one case."""
    molecule = cuanto.Molecule.from_xyz(case.path)
    basis = cuanto.Basis(case.basis, molecule)
    aux = None if case.aux is None else cuanto.Basis(case.aux, molecule)
    request = Request.of(molecule, case.method, basis, fitting=case.fitting, auxbasis=aux, backend=backend, **TIGHT)
    calculation = Calculation.of(request)
    *_, state = calculation.states()
    seconds, first = [], 0.0
    for run in range(options.repeat + 1):
        calculation.context.timings.seconds.clear()
        start = time.perf_counter()
        gradient, _ = calculation.gradient(state)
        seconds.append(time.perf_counter() - start)
        if run == 0:
            first = seconds.pop()
            backend.finish_compiling()
    steps = {name: round(value, 4) for name, value in calculation.context.timings.seconds.items()}
    row: dict[str, Any] = {"case": case.name, "functions": basis.nbf, "converged": state.converged}
    row |= {"first": first, "best": min(seconds), "steps": steps, "sum": float(np.abs(gradient.sum(axis=0)).max())}
    row |= {"asked": case.target, "gpu4pyscf": case.literature} if backend.name == "cuda" else {}
    line = f"{case.name:18s} {basis.nbf:5d} functions {row['best']:8.3f} s (first {first:.2f})"
    if options.peer:
        density = backend.to_host(state.D_spq).sum(axis=0)
        row["pyscf"], theirs = peer_gradient(case, molecule, basis, aux, density, backend.threads)
        row["ratio"], row["difference"] = row["best"] / row["pyscf"], float(np.abs(gradient - theirs).max())
        line += f", PySCF {row['pyscf']:.2f} s, ratio {row['ratio']:.3f}, difference {row['difference']:.1e}"
    print(line, flush=True)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--only", nargs="+", choices=[case.name for case in CASES])
    parser.add_argument("--peer", action="store_true", help="PySCF in the same run")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", help="write the result here")
    options = parser.parse_args()
    backend = get_backend(options.backend)
    record: dict[str, Any] = {"benchmark": "gradient", "machine": machine(backend), "cases": []}
    for case in CASES:
        wanted = case.name in options.only if options.only else options.backend == "cuda" or not case.large
        if wanted and case.path.exists() and DATA.exists():
            record["cases"].append(run_case(case, options, backend))
            save(options.json, record)
    if any(row.get("difference", 0.0) > MAX_DIFFERENCE for row in record["cases"]):
        sys.exit("gradients differ from the peer's")


if __name__ == "__main__":
    main()
