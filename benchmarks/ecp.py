"""Seconds of the matrix and gradient of core potentials, compared with PySCF in the same run, or a GPU with the CPU.

    python benchmarks/ecp.py --peer --json benchmarks/results/ecp_cpu.json
    python benchmarks/ecp.py --backend cuda --json benchmarks/results/ecp_cuda.json

Warm: the best of `--repeat` calls after a first one, each with everything that depends on the geometry. The gradient is
that of sum_pq D_pq V_pq for a fixed random symmetric D. PySCF computes `ECPscalar`, and for the gradient
`ECPscalar_iprinv` of every atom with a potential, with the same functions and number of threads. On a GPU results are
compared with those of the CPU; a difference above 1e-9 (relative to the largest element) ends in exit status 1.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from common import machine, pyscf_mole, save

import cuanto
from cuanto import core_potentials
from cuanto.backends import blas
from cuanto.backends.base import get_backend

OWN = Path(__file__).parent / "data"
CASES = [("ru_bpy3", 2, "def2-tzvp")]
"""Geometry, charge and basis."""
MAX_DIFFERENCE = 1e-9
TARGETS = {"matrix": 0.1, "gradient": 0.3}
"""Target times on an H200, seconds."""


def timed(call: Callable[[], Any], repeat: int, backend: Any) -> tuple[float, float, Any]:
    """Seconds of the first call and of the best of the others, and the result."""
    seconds, found = [], None
    for _ in range(repeat + 1):
        start = time.perf_counter()
        found = call()
        backend.synchronize()
        seconds.append(time.perf_counter() - start)
    return seconds[0], min(seconds[1:]), found


def peer(molecule: Any, basis: Any, D_pq: Any, threads: int) -> dict[str, Any]:
    """Seconds and results of PySCF."""
    from pyscf import lib

    lib.num_threads(threads)
    mole, ecp = pyscf_mole(molecule, basis), {}
    for a, potential in enumerate(basis.core_potentials):
        if potential is not None:
            parts = [(-1, potential.local), *enumerate(potential.projected)]
            radial = [
                [l, [[[t.exponent, t.coefficient] for t in terms if t.power == n] for n in range(5)]]
                for l, terms in parts
            ]
            ecp[f"{molecule.symbols[a]}{a}"] = [potential.core_electrons, radial]
    mole.ecp, mole.charge = ecp, molecule.charge
    mole.build(False, False)
    start = time.perf_counter()
    V_pq = mole.intor("ECPscalar")
    middle = time.perf_counter()
    gradient, functions = np.zeros((mole.natm, 3)), mole.aoslice_by_atom()[:, 2:]
    for a, potential in enumerate(basis.core_potentials):
        if potential is not None:
            with mole.with_rinv_at_nucleus(a):
                slope_xpq = mole.intor("ECPscalar_iprinv")
            for b, (p, q) in enumerate(functions):
                force = -2 * np.einsum("xpq,pq->x", slope_xpq[:, p:q], D_pq[p:q])
                gradient[b] += force
                gradient[a] -= force
    end = time.perf_counter()
    return {"matrix": (middle - start, V_pq), "gradient": (end - middle, gradient)}


def run_case(case: tuple[str, int, str], options: argparse.Namespace, backend: Any) -> dict[str, Any]:
    """All figures of a case."""
    name, charge, basis_name = case
    molecule = cuanto.Molecule.from_xyz(OWN / f"{name}.xyz", charge=charge)
    basis = cuanto.Basis(basis_name, molecule)
    A = np.random.default_rng(1).normal(size=(basis.nbf, basis.nbf))
    D_pq = 0.5 * (A + A.T)
    D = backend.to_device(D_pq)
    calls = {
        "matrix": lambda: core_potentials.matrix(basis, backend=backend),
        "gradient": lambda: core_potentials.gradient(basis, D, backend=backend),
    }
    reference = peer(molecule, basis, D_pq, backend.threads) if options.peer else {}
    if backend.name == "cuda":
        cpu = get_backend("cpu")
        own = core_potentials.matrix(basis, backend=cpu), core_potentials.gradient(basis, D_pq, backend=cpu)
        reference = {what: (None, found) for what, found in zip(calls, own, strict=True)}
    row: dict[str, Any] = {"case": name, "basis": basis_name, "atoms": molecule.natom, "functions": basis.nbf}
    for what, call in calls.items():
        first, best, found = timed(call, options.repeat, backend)
        row[what] = {"first": first, "best": best}
        line = f"{name} {basis_name} {what:8s} {best:8.4f} s (first {first:.2f})"
        if what in reference:
            seconds, expected = reference[what]
            row[what]["difference"] = float(np.abs(backend.to_host(found) - expected).max() / np.abs(expected).max())
            line += f", relative difference {row[what]['difference']:.1e}"
            if seconds:
                row[what] |= {"pyscf": seconds, "ratio": best / seconds}
                line += f", PySCF {seconds:.2f} s, ratio {best / seconds:.3f}"
        if backend.name == "cuda":
            row[what]["asked"] = TARGETS[what]
        print(line, flush=True)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--peer", action="store_true", help="PySCF in the same run")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", help="write the result here")
    options = parser.parse_args()
    backend = get_backend(options.backend)
    record: dict[str, Any] = {"benchmark": "ecp", "machine": machine(backend), "cases": []}
    with blas.threads(1):  # as in a calculation: products run in our own threads
        for case in CASES:
            record["cases"].append(run_case(case, options, backend))
            save(options.json, record)
    parts = [row[what] for row in record["cases"] for what in TARGETS]
    if any(part.get("difference", 0.0) > MAX_DIFFERENCE for part in parts if "pyscf" not in part):
        sys.exit("results differ from those of the CPU")


if __name__ == "__main__":
    main()
