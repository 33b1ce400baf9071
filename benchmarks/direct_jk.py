"""Direct J and K of converged densities, warm: J by the J engine, K by quartets, both, and both in one pass.

    python benchmarks/direct_jk.py --json benchmarks/results/direct_jk_cpu.json      # with PySCF in the same run
    python benchmarks/direct_jk.py --backend cuda --json benchmarks/results/direct_jk_cuda.json
    python benchmarks/direct_jk.py --first                                           # also: from an empty cache

The density is that of RHF, converged here (largest element of the commutator below 1e-6) by the same code; with
--densities FOLDER it is kept there as an .npz file. Seconds are the best of the warm runs, on the host and the device
together, the density and the results on the device. `setup`: pairs, bounds and choice of kernels, once per geometry.
The peer is PySCF's direct `get_jk` with direct_scf_tol = threshold, the same density, the same contraction coefficients
and number of threads; its setup (Schwarz bounds) is not included, nor is ours. On a GPU, published times of GPU4PySCF
1.9 on an H200 are shown for comparison; they are not from the same run. `load` is the load average at the beginning:
run this on an idle machine.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from common import ROOT, geometry, last_number, machine, pyscf_mole, save
from densities import converged_density

import cuanto
from cuanto.backends.base import get_backend
from cuanto.coulomb import DirectJK


@dataclass(frozen=True)
class System:
    """A calculation; `target`: desired seconds of J and of J + K on an H200, `literature`: published ones of GPU4PySCF
    1.9."""

    name: str
    file: Path
    basis: str
    on_cpu: bool = True
    target: tuple[float, float] | None = None
    literature: tuple[float, float] | None = None


TAXOL = ROOT / "benchmarks" / "data" / "taxol.xyz"
SYSTEMS = [
    System("benzene", geometry("benzene"), "6-31g**"),
    System("naphthalene", geometry("naphthalene"), "6-31g**", True, (0.02, 0.05), (0.062, 0.053)),
    System("octadecane", geometry("alkane_18"), "cc-pvdz", True, (0.04, 0.09), (0.085, 0.094)),
    System("taxol", TAXOL, "6-31g*", False, (0.2, 1.0), (0.35, 1.18)),
]
TARGET_RATIO = 0.5
"""Target time relative to PySCF, on the CPU."""
TARGET_FIRST = {"cpu": 20.0, "cuda": 15.0}
FIRST = """
import sys, time
import numpy as np
start = time.perf_counter()
import cuanto
from cuanto.coulomb import DirectJK
molecule = cuanto.Molecule.from_xyz(sys.argv[1])
direct = DirectJK(cuanto.Basis("6-31g**", molecule, spherical=True), backend=sys.argv[2], threshold=1e-11)
J, K = direct(direct.backend.to_device(np.eye(direct.basis.nbf)))
direct.backend.to_host(K)
print(time.perf_counter() - start)
"""


def best(call: Any, backend: Any, repeats: int) -> float:
    """Seconds of the fastest run, all of the device's work included."""
    seconds = []
    for _ in range(repeats):
        backend.synchronize()
        start = time.perf_counter()
        result = call()
        backend.synchronize()
        seconds.append(time.perf_counter() - start)
        del result
    return min(seconds)


def measure(basis: cuanto.Basis, D_pq: Any, precision: str, options: argparse.Namespace, backend: Any) -> Any:
    """Setup and warm times of one precision, and J and K themselves."""
    settings = {"backend": backend, "threshold": options.threshold, "precision": precision}
    found: dict[str, Any] = {}
    result: dict[str, DirectJK] = {}
    for name, one_pass in (("jk", False), ("one_pass", True)):
        start = time.perf_counter()
        direct = result[name] = DirectJK(basis, one_pass=one_pass, **settings)
        if not one_pass:
            assert direct.j_engine is not None and direct.quartets is not None  # created on first access
            backend.synchronize()
            found["setup"] = time.perf_counter() - start
        direct(D_pq)
    backend.finish_compiling()
    for direct in result.values():
        direct.finish_compiling()
        direct(D_pq)
    calls = {
        "j": lambda: result["jk"].j(D_pq),
        "k": lambda: result["jk"].k(D_pq),
        "jk": lambda: result["jk"](D_pq),
        "one_pass": lambda: result["one_pass"](D_pq),
    }
    for name, call in calls.items():
        found[name] = best(call, backend, options.repeats)
    J, K = (backend.to_host(M) for M in result["jk"](D_pq))
    statistics = result["jk"].statistics
    found["quartets"] = statistics.quartets.quartets if statistics.quartets else 0
    found["interactions"] = statistics.coulomb.interactions if statistics.coulomb else 0
    return found, J, K


def peer(molecule: cuanto.Molecule, basis: cuanto.Basis, D_pq: Any, options: argparse.Namespace, threads: int) -> Any:
    """PySCF's J, and J and K; their seconds, and its number of threads."""
    from pyscf import lib, scf

    lib.num_threads(threads)
    mol = pyscf_mole(molecule, basis)
    method = scf.hf.SCF(mol)
    method.direct_scf_tol = options.threshold
    screening = method.init_direct_scf(mol)

    def call(with_k: bool) -> Any:
        return scf.hf.get_jk(mol, D_pq, hermi=1, vhfopt=screening, with_k=with_k)

    J, K = call(True)
    repeats = min(options.repeats, options.peer_repeats)
    found = {"j": best(lambda: call(False), None, repeats), "jk": best(lambda: call(True), None, repeats)}
    return found | {"threads": lib.num_threads()}, J, K


def largest_difference(pairs: list[tuple[Any, Any]]) -> float:
    """Largest difference over J and K."""
    return float(max(np.abs(M - N).max() for M, N in pairs))


def run_system(system: System, options: argparse.Namespace, backend: Any) -> dict[str, Any]:
    """Measure one system."""
    molecule = cuanto.Molecule.from_xyz(system.file)
    basis = cuanto.Basis(system.basis, molecule, spherical=True)
    print(f"{system.name} {system.basis}: {basis.nbf} functions, {len(basis.shells)} shells", flush=True)
    stem = f"{system.name}_{system.basis.replace('*', 's')}.npz"
    cache = Path(options.densities) / stem if options.densities else None
    D_pq, energy, iterations = converged_density(molecule, basis, backend, options.threshold, cache)
    row: dict[str, Any] = {
        "system": f"{system.name}/{system.basis}",
        "functions": basis.nbf,
        "shells": len(basis.shells),
        "energy": energy,
        "scf_iterations": iterations,
    }
    row["double"], J, K = measure(basis, D_pq, "double", options, backend)
    show("double", row["double"])
    if not options.no_mixed:
        row["mixed"], J_mixed, K_mixed = measure(basis, D_pq, "mixed", options, backend)
        row["mixed"]["difference_to_double"] = largest_difference([(J, J_mixed), (K, K_mixed)])
        show("mixed", row["mixed"], f"differs by {row['mixed']['difference_to_double']:.1e}")
    if options.peer:
        row["pyscf"], J_peer, K_peer = peer(molecule, basis, backend.to_host(D_pq), options, backend.threads)
        row["difference_to_pyscf"] = largest_difference([(J, J_peer), (K, K_peer)])
        row["ratio_to_pyscf"] = {name: row["double"][name] / row["pyscf"][name] for name in ("j", "jk")}
        show("PySCF", row["pyscf"], f"differs by {row['difference_to_pyscf']:.1e}")
        ratios = ", ".join(f"{name.upper()} {ratio:.3f}" for name, ratio in row["ratio_to_pyscf"].items())
        print(f"  cuanto / PySCF: {ratios} (target: {TARGET_RATIO})", flush=True)
    if backend.name == "cuda" and system.target and system.literature:
        for label, key, pair in (
            ("target", "target", system.target),
            ("GPU4PySCF 1.9", "gpu4pyscf", system.literature),
        ):
            row[key] = dict(zip(("j", "jk"), pair, strict=True))
            show(label, row[key])
    return row


COLUMNS = {"setup": "setup", "j": "J", "k": "K", "jk": "J+K", "one_pass": "one pass"}


def show(label: str, found: dict[str, Any], remark: str = "") -> None:
    """Print one line of times."""
    figures = "".join(f" {title} {found[key]:8.4f}" for key, title in COLUMNS.items() if key in found)
    print(f"  {label:14s}{figures}  {remark}".rstrip(), flush=True)


def first_call(backend: str) -> float:
    """Seconds of the first direct J and K of benzene/6-31G**, import included, nothing compiled before."""
    with tempfile.TemporaryDirectory() as cache:
        variables = {"CUANTO_CACHE": cache, "PYTHONPATH": str(ROOT / "src")}
        return last_number([sys.executable, "-c", FIRST, str(geometry("benzene")), backend], **variables)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--only", nargs="*", help="names of systems; none: only the other measurements")
    parser.add_argument("--threshold", type=float, default=1e-11)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--peer-repeats", type=int, default=2, help="runs of PySCF after a first one")
    parser.add_argument("--no-peer", action="store_true", help="leave PySCF out")
    parser.add_argument("--no-mixed", action="store_true", help="double precision only")
    parser.add_argument("--densities", help="folder of converged densities, read and written")
    parser.add_argument("--first", action="store_true", help="time the first call from an empty cache as well")
    parser.add_argument("--json", help="write the result here")
    options = parser.parse_args()
    options.peer = options.backend == "cpu" and not options.no_peer
    if options.peer and find_spec("pyscf") is None:
        print("PySCF is not installed, so this run has no peer: pip install pyscf")
        options.peer = False
    known = [system.name for system in SYSTEMS]
    wrong = [name for name in options.only or [] if name not in known]
    if wrong:
        parser.error(f"unknown system {wrong[0]!r}: choose {', '.join(known)}")
    return options


def main() -> None:
    options = arguments()
    backend = get_backend(options.backend)
    load = os.getloadavg()[0]
    print(f"{backend.name}, threshold {options.threshold:g}, load average {load:.1f}")
    record: dict[str, Any] = {"benchmark": "direct_jk", "machine": machine(backend), "load": load}
    record["threshold"] = options.threshold
    if options.first:
        record["first_seconds"] = first_call(options.backend)
        target = TARGET_FIRST[options.backend]
        print(f"first J and K of benzene/6-31g**, empty cache: {record['first_seconds']:.1f} s (target: {target:.0f})")
    wanted = options.only
    if wanted is None:
        wanted = [system.name for system in SYSTEMS if system.on_cpu or backend.name == "cuda"]
    record["systems"] = [run_system(system, options, backend) for system in SYSTEMS if system.name in wanted]
    save(options.json, record)


if __name__ == "__main__":
    main()
