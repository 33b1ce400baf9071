"""Cost of scalar relativity: the one-electron Hamiltonian and its gradient, with and without X2C.

    python benchmarks/x2c.py --peer --json benchmarks/results/x2c_cost_cpu.json
    python benchmarks/x2c.py --backend cuda --json benchmarks/results/x2c_cost_cuda.json

Warm: the best of `--repeat` runs after a first one. `scf`: a whole RI-JK Hartree-Fock energy with X2C. The peer is
PySCF's sfx2c1e with the same functions and number of threads.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

from common import geometry, machine, pyscf_mole, save

import cuanto
from cuanto.backends.base import get_backend
from cuanto.basis.decontract import decontract
from cuanto.terms import CoreHamiltonian, Surroundings
from cuanto.terms.x2c import OneElectronModel
from cuanto.units import SPEED_OF_LIGHT

CASES = {"caffeine": False, "ribavirin": False, "alkane_18": False, "water_24": False, "water_64": True}
"""Molecules, and whether they are large: for a GPU or many cores."""
BASIS, AUX = "cc-pvdz", "cc-pvdz-jkfit"


def best(work: Callable[[], Any], repeat: int, synchronize: Callable[[], None]) -> tuple[float, Any]:
    """Seconds of the fastest run after a first one, and its result."""
    found, seconds = work(), []
    for _ in range(repeat):
        synchronize()
        start = time.perf_counter()
        found = work()
        synchronize()
        seconds.append(time.perf_counter() - start)
    return min(seconds), found


def measure(name: str, backend: Any, repeat: int, peer: bool) -> dict[str, Any]:
    """The row of a molecule."""
    molecule = cuanto.Molecule.from_file(geometry(name))
    basis = cuanto.Basis(BASIS, molecule)
    row: dict[str, Any] = {"molecule": name, "functions": basis.nbf, "primitives": decontract(basis)[0].nbf}
    options: dict[str, Any] = {"auxbasis": AUX, "relativity": "x2c", "backend": backend}
    result = cuanto.energy(molecule, "hf", basis, **options)
    D_spq = result.state.D_spq  # on the device
    for label, model in (("plain", OneElectronModel()), ("x2c", OneElectronModel(SPEED_OF_LIGHT))):

        def hamiltonian(model: OneElectronModel = model) -> CoreHamiltonian:
            return CoreHamiltonian(molecule, basis, Surroundings(), backend, None, model)

        seconds, core = best(hamiltonian, repeat, backend.synchronize)
        row[f"{label}_hamiltonian_seconds"] = seconds
        row[f"{label}_gradient_seconds"], _ = best(
            lambda core=core: core.gradient(D_spq, None), repeat, backend.synchronize
        )
    row["scf_seconds"], _ = best(lambda: cuanto.energy(molecule, "hf", basis, **options), 1, backend.synchronize)
    if peer:
        row["peer_hamiltonian_seconds"] = peer_seconds(molecule, basis, backend.traits.workers, repeat)
    return row


def peer_seconds(molecule: Any, basis: Any, threads: int, repeat: int) -> float:
    """Seconds of PySCF's Hamiltonian."""
    from pyscf import lib, scf

    lib.num_threads(threads)
    mol = pyscf_mole(molecule, basis)
    return best(lambda: scf.RHF(mol).sfx2c1e().get_hcore(), repeat, lambda: None)[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--peer", action="store_true", help="PySCF in the same run")
    parser.add_argument("--large", action="store_true", help="large molecules as well")
    parser.add_argument("--only", nargs="*", default=list(CASES))
    parser.add_argument("--json")
    options = parser.parse_args()
    backend, rows = get_backend(options.backend), []
    for name in options.only:
        if CASES[name] and not options.large:
            continue
        rows.append(measure(name, backend, options.repeat, options.peer))
        print(
            " ".join(
                f"{key}={value:.3g}" if isinstance(value, float) else f"{value}" for key, value in rows[-1].items()
            )
        )
        save(options.json, {"benchmark": "x2c", "basis": BASIS, "machine": machine(backend), "rows": rows})


if __name__ == "__main__":
    main()
