"""Whole Kohn-Sham energies: one call of `cuanto.energy`, including everything except reading the basis sets.

    python benchmarks/dft.py --peer --cold --json benchmarks/results/dft_cpu.json    # with PySCF in the same run
    python benchmarks/dft.py --backend cuda --cold --json benchmarks/results/dft_cuda.json
    python benchmarks/dft.py --only water_04 --peer                                 # a small one, for a quick test

`first`, `warm`, `cold` and the steps are defined as in `scf.py`; processor seconds of all threads, which are less
sensitive to other load, are given as well. The peer is PySCF with the same contraction coefficients,
fitting basis, grid (points, pruning, cells), threads and criteria. On a GPU, published times of GPU4PySCF 1.9 on an
H200 are shown for comparison; they are not from the same run. In addition, the steps of one pass over the grid are
timed separately: seconds of density, functional and matrix, and the rate of the two large steps relative to a large
FP64 matrix product.
Energies that differ by more than 1e-6 Hartree from a reference or the peer, and runs that did not converge, end in exit
status 1. On a CPU with --peer, every energy is compared with PySCF's in the same run. On a GPU there is no peer, and
only water_24-lda has a stored PySCF energy on the same grid (tests/data/lda_dzvp_water.json); energies of fitted
systems are not compared there. RI-J means that J is fitted, RI that J and K are.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from common import DATA, ROOT, geometry, last_number, machine, pyscf_mole, save
from dft_steps import Density, Pass, product_rate, show
from scf_systems import OWN, compare, timed

import cuanto
from cuanto.backends.base import get_backend
from cuanto.functionals import get_functional
from cuanto.grid import GridSettings
from cuanto.options import ScfOptions

SAME_ENERGY = 1e-6
"""Tolerance of energies, Hartree."""
TARGET_RATIO = 0.4
"""Target time relative to PySCF, on the CPU."""
ENOUGH = 10.0
"""Seconds after which a warm run is not repeated."""
PEER_MEMORY = 8000
"""Memory limit of PySCF, MB."""
AUX = "def2-universal-jkfit"
PYSCF = {"lda": "lda,vwn"}
"""PySCF's names of functionals where they differ from ours."""
COLD = """
import sys, time
start = time.perf_counter()
import cuanto
file, method, basis, aux, spherical, fitting, grid, backend = sys.argv[1:]
molecule = cuanto.Molecule.from_xyz(file)
orbital = cuanto.Basis(basis, molecule, spherical=spherical == "True")
auxbasis = cuanto.Basis(aux, molecule) if aux else None
result = cuanto.energy(molecule, method, orbital, backend=backend, fitting=fitting, auxbasis=auxbasis, grid=grid)
assert result.converged, "not converged"
print(time.perf_counter() - start)
"""


@dataclass(frozen=True)
class System:
    """A calculation; `target`: desired seconds of the whole SCF on an H200, `literature`: published ones of GPU4PySCF
    1.9; `on`: backends."""

    name: str
    file: Path
    functional: str
    basis: str
    fitting: str
    on: tuple[str, ...]
    grid: str = "fine"
    spherical: bool = True
    target: float | None = None
    literature: float | None = None

    @property
    def aux(self) -> str | None:
        """The fitting basis."""
        return None if self.fitting == "none" else AUX

    @property
    def title(self) -> str:
        """Molecule, method and basis in the usual notation."""
        fit = {"none": "", "j": "RI-J-", "jk": "RI-"}[self.fitting]
        name = self.basis.replace("svp", "SVP").replace("tzvp", "TZVP").replace("dgauss-dzvp", "DZVP")
        return f"{fit}{self.functional.upper()}/{name}"


CPU, CUDA = ("cpu",), ("cuda",)
SYSTEMS = [
    System("water_04", geometry("water_04"), "pbe", "def2-svp", "j", ()),
    System("caffeine", geometry("caffeine"), "pbe", "def2-svp", "j", CPU),
    System("caffeine-b3lyp", geometry("caffeine"), "b3lyp", "def2-svp", "jk", CPU),
    System("water_16", geometry("water_16"), "pbe", "def2-svp", "j", CPU),
    System("water_24-lda", geometry("water_24"), "lda", "dgauss-dzvp", "none", CUDA, "75,302", False, 1.5, 4.16),
    System("ribavirin", geometry("ribavirin"), "pbe", "def2-tzvp", "j", CUDA, target=1.0, literature=2.00),
    System("water_24", geometry("water_24"), "pbe", "def2-tzvp", "j", CUDA, target=1.8, literature=3.00),
    System("ribavirin-b3lyp", geometry("ribavirin"), "b3lyp", "def2-tzvp", "jk", CUDA, target=1.0, literature=1.82),
    System("water_128", geometry("water_128"), "pbe", "def2-svp", "j", CUDA, target=12.0, literature=20.6),
    System("taxol", OWN / "taxol.xyz", "b3lyp", "def2-tzvp", "jk", CUDA, target=25.0, literature=33.8),
]


def cold_call(system: System, backend: str) -> float:
    """Seconds of import and energy with empty kernel caches."""
    with tempfile.TemporaryDirectory() as cache:
        variables = {"CUANTO_CACHE": cache, "CUPY_CACHE_DIR": f"{cache}/cupy", "PYTHONPATH": str(ROOT / "src")}
        given = [str(system.file), system.functional, system.basis, system.aux or "", str(system.spherical)]
        return last_number([sys.executable, "-c", COLD, *given, system.fitting, system.grid, backend], **variables)


def reference_energy(system: System) -> float | None:
    """PySCF's energy on the same grid from the test data, or None."""
    settings = GridSettings.of(system.grid)
    for record in json.loads((DATA / "lda_dzvp_water.json").read_text()):
        same = record["molecule"] == system.file.stem and record["basis"] == system.basis
        if same and settings.level == (record["grid"]["radial"], record["grid"]["lebedev"]):
            return float(record["energy"])
    return None


def peer(system: System, molecule: cuanto.Molecule, basis: cuanto.Basis, aux: Any, threads: int, runs: int) -> Any:
    """Seconds, energy and cycles of PySCF with the same fit and grid."""
    from pyscf import dft, lib

    lib.num_threads(threads)
    mol, settings, grid = pyscf_mole(molecule, basis), ScfOptions(), GridSettings.of(system.grid)
    auxiliary = None if aux is None else pyscf_mole(molecule, aux).basis

    def make() -> Any:
        method = dft.RKS(mol, xc=PYSCF.get(system.functional, system.functional))
        if auxiliary is not None:
            method = method.density_fit(auxbasis=auxiliary)
        # In this molecule every atom has its own label, and grids are keyed by label.
        labels = [mol.atom_symbol(i) for i in range(mol.natm)]
        method.grids.atom_grid = {name: grid.numbers(int(Z)) for name, Z in zip(labels, molecule.numbers, strict=True)}
        method.grids.prune = dft.gen_grid.nwchem_prune if grid.pruned else None
        method.max_memory, method.chkfile = PEER_MEMORY, None
        method.conv_tol, method.conv_tol_grad = settings.energy_tolerance, settings.gradient_tolerance / 2**0.5
        return method

    seconds, start = [], time.process_time()
    for _ in range(runs):
        method = make()
        seconds.append(timed(method.kernel)[0])
    return {
        "seconds": seconds,
        "best": min(seconds),
        "cpu_seconds": (time.process_time() - start) / runs,
        "energy": float(method.e_tot),
        "cycles": int(method.cycles),
        "points": len(method.grids.weights),
        "converged": bool(method.converged),
        "threads": lib.num_threads(),
    }


def warm_runs(row: dict[str, Any], call: Any, options: argparse.Namespace, backend: Any) -> Any:
    """Time the first call, later calls, and one that waits after each step; returns the result of the last but one."""
    row["first"], _ = timed(call)
    backend.finish_compiling()
    if row["first"] < ENOUGH:
        call()
        backend.finish_compiling()
    start = time.process_time()
    runs = [timed(call)]
    while len(runs) < options.repeat and sum(seconds for seconds, _ in runs) < ENOUGH:
        runs.append(timed(call))
    row["warm"] = [seconds for seconds, _ in runs]
    row["cpu_seconds"] = (time.process_time() - start) / len(runs)
    row["best"] = min(row["warm"])
    result = runs[-1][1]
    row |= {"energy": result.energy, "iterations": result.iterations, "converged": result.converged}
    row["notes"] = list(result.notes)
    row["troubles"] = [] if result.converged else ["did not converge"]
    seconds, profiled = timed(lambda: call(profile=True))
    row["steps"] = dict(profiled.timings.seconds)
    # "grid: weights" is a part of "grid"
    row["steps"]["elsewhere"] = seconds - sum(s for name, s in row["steps"].items() if ": " not in name)
    print(f"  first {row['first']:.3f} s, warm {row['best']:.4f} s, {result.iterations} iterations", flush=True)
    print("  " + ", ".join(f"{name} {s:.4f}" for name, s in row["steps"].items() if s >= 5e-4), flush=True)
    print("  " + "; ".join(row["notes"]), flush=True)
    return result


def run_system(system: System, options: argparse.Namespace, backend: Any, rate: float) -> dict[str, Any]:
    """Measure one system."""
    molecule = cuanto.Molecule.from_xyz(system.file)
    basis = cuanto.Basis(system.basis, molecule, spherical=system.spherical)
    aux = cuanto.Basis(system.aux, molecule) if system.aux else None
    row: dict[str, Any] = {"system": system.name, "method": system.title, "atoms": len(molecule.symbols)}
    row |= {"functions": basis.nbf, "auxiliary": aux.nbf if aux else 0, "grid": system.grid}
    print(f"{system.name} {system.title}: {basis.nbf} functions, {row['auxiliary']} for the fit", flush=True)
    if options.cold:
        row["cold"] = cold_call(system, options.backend)
        print(f"  cold, with import: {row['cold']:.2f} s", flush=True)

    def call(**more: Any) -> Any:
        given: dict[str, Any] = {"fitting": system.fitting, "auxbasis": aux, "backend": backend, "grid": system.grid}
        result = cuanto.energy(molecule, system.functional, basis, **given, **more)
        backend.synchronize()
        return result

    result = warm_runs(row, call, options, backend)
    compare(row, "the reference", reference_energy(system), SAME_ENERGY)
    if not options.no_steps:
        functional, settings = get_functional(system.functional), GridSettings.of(system.grid)
        row["pass"] = Pass(molecule, basis, functional, settings, backend).measure(Density.of(result))
        show(row["pass"], rate)
    if options.peer:
        row["pyscf"] = peer(system, molecule, basis, aux, backend.threads, options.peer_repeat)
        found = row["pyscf"]
        row["ratio_to_pyscf"] = row["best"] / found["best"]
        print(f"  PySCF: {found['best']:.3f} s, {found['cycles']} cycles, {found['points']} points", flush=True)
        row["cpu_ratio_to_pyscf"] = row["cpu_seconds"] / found["cpu_seconds"]
        ratios = f"{row['ratio_to_pyscf']:.3f}, of processor seconds {row['cpu_ratio_to_pyscf']:.3f}"
        print(f"  cuanto / PySCF = {ratios}, target: {TARGET_RATIO}", flush=True)
        compare(row, "PySCF", found["energy"], SAME_ENERGY)
        if not found["converged"]:
            row["troubles"].append("PySCF did not converge")
    if backend.name == "cuda":
        row |= {"asked": system.target, "gpu4pyscf": system.literature}
        print(f"  target: {system.target} s, GPU4PySCF 1.9: {system.literature} s", flush=True)
    for trouble in row["troubles"]:
        print(f"  *** {system.name}: {trouble} ***", flush=True)
    return row


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--only", nargs="*", help="names of systems (default: those of the backend)")
    parser.add_argument("--repeat", type=int, default=3, help="warm runs at most")
    parser.add_argument("--peer", action="store_true", help="PySCF in the same run (CPU)")
    parser.add_argument("--peer-repeat", type=int, default=1, help="runs of PySCF")
    parser.add_argument("--cold", action="store_true", help="also time a separate process with empty kernel caches")
    parser.add_argument("--no-steps", action="store_true", help="do not time the steps of one pass")
    parser.add_argument("--json", help="write the result here, after each system")
    options = parser.parse_args()
    options.peer = options.peer and options.backend == "cpu"
    if options.peer and find_spec("pyscf") is None:
        parser.error("PySCF is not installed, so there is no peer: pip install pyscf, or leave out --peer")
    known = [system.name for system in SYSTEMS]
    for name in options.only or []:
        if name not in known:
            parser.error(f"unknown system {name!r}: choose {', '.join(known)}")
    return options


def main() -> int:
    options = arguments()
    backend: Any = get_backend(options.backend)
    settings, load = ScfOptions(), os.getloadavg()[0]
    print(f"{backend.name}, energy to {settings.energy_tolerance:g}, gradient to {settings.gradient_tolerance:g}")
    print(f"load average {load:.1f}: for times to mean anything the machine must be idle", flush=True)
    rate = product_rate(backend)
    record: dict[str, Any] = {"benchmark": "dft", "machine": machine(backend), "load": load, "cores": os.cpu_count()}
    record |= {name: getattr(settings, name) for name in ("energy_tolerance", "gradient_tolerance")}
    record |= {"fp64_product_rate": rate, "systems": []}
    for system in SYSTEMS:
        if options.backend in system.on if options.only is None else system.name in options.only:
            record["systems"].append(run_system(system, options, backend, rate))
            save(options.json, record)
    return 1 if any(row["troubles"] for row in record["systems"]) else 0


if __name__ == "__main__":
    sys.exit(main())
