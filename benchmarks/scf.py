"""Whole Hartree-Fock energies: one call of `cuanto.energy`, including everything except reading the basis sets.

    python benchmarks/scf.py --peer --cold --json benchmarks/results/scf_cpu.json     # with PySCF in the same run
    python benchmarks/scf.py --backend cuda --cold --json benchmarks/results/scf_cuda.json
    python benchmarks/scf.py --scan alkanes --json benchmarks/results/scf_alkanes_cpu.json    # cost against size
    python benchmarks/scf.py --thesis --json benchmarks/results/scf_thesis_cpu.json   # 22 molecules, profile of J

`first` is the first call in this process; `warm` the best of the later ones; `cold`, with --cold, import and energy in
a process of its own with empty kernel caches. Steps come from a further run that waits for the device after each;
`elsewhere` is the time outside all of them.
The peer is PySCF with the same contraction coefficients, fitting basis, number of threads and criteria: its gradient
norm is ours divided by sqrt(2), and its final check, one more Fock matrix, is included. Without fitting, both programs
store the four-centre integrals if they fit: `best` is our time and `pyscf_stored` the peer's. With integrals recomputed
in every iteration, `direct` is our time and `pyscf` the peer's. On a GPU, published times of GPU4PySCF 1.9 on an H200
are shown for comparison; they are not from the same run. Energies that differ by more than 1e-8 Hartree from the
reference or the peer, and runs that did not converge, end in exit status 1.
`scf_tables.py` and `plot_scf.py` write the results to the documentation.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from importlib.util import find_spec
from typing import Any

from common import ROOT, last_number, machine, pyscf_mole, save
from scf_sizes import scan
from scf_systems import SYSTEMS, System, calculation, compare, reference_energy, timed
from scf_thesis import run_thesis

import cuanto
from cuanto.backends.base import get_backend
from cuanto.options import CalculationOptions, ScfOptions

TARGET_RATIO = 0.4
"""Target time relative to PySCF, on the CPU."""
ENOUGH = 10.0
"""Seconds after which a warm run is not repeated."""
PEER_MEMORY = 8000
"""Memory limit of PySCF, MB: enough for everything it stores by default."""
COLD = """
import sys, time
start = time.perf_counter()
import cuanto
file, basis, aux, spherical, backend = sys.argv[1:]
molecule = cuanto.Molecule.from_xyz(file)
orbital = cuanto.Basis(basis, molecule, spherical=spherical == "True")
fitting = {"fitting": "jk", "auxbasis": cuanto.Basis(aux, molecule)} if aux else {"fitting": "none"}
result = cuanto.energy(molecule, "rhf", orbital, backend=backend, **fitting)
assert result.converged, "not converged"
print(time.perf_counter() - start)
"""


def cold_call(system: System, backend: str) -> float:
    """Seconds of import and energy with empty kernel caches."""
    with tempfile.TemporaryDirectory() as cache:
        variables = {"CUANTO_CACHE": cache, "CUPY_CACHE_DIR": f"{cache}/cupy", "PYTHONPATH": str(ROOT / "src")}
        given = [str(system.file), system.basis, system.aux or "", str(system.spherical), backend]
        return last_number([sys.executable, "-c", COLD, *given], **variables)


def peer(molecule: cuanto.Molecule, basis: cuanto.Basis, aux: cuanto.Basis | None, threads: int, runs: int) -> Any:
    """Seconds, energy and cycles of PySCF; also with stored four-centre integrals if it would store them by default."""
    from pyscf import lib, scf

    lib.num_threads(threads)
    mol, settings = pyscf_mole(molecule, basis), ScfOptions()
    auxiliary = None if aux is None else pyscf_mole(molecule, aux).basis

    def make(stored: bool) -> Any:
        method = scf.RHF(mol) if auxiliary is None else scf.RHF(mol).density_fit(auxbasis=auxiliary)
        method.max_memory, method.chkfile = PEER_MEMORY, None
        method.conv_tol, method.conv_tol_grad = settings.energy_tolerance, settings.gradient_tolerance / 2**0.5
        method.direct_scf_tol = CalculationOptions().screening
        if auxiliary is None and not stored:
            method._is_mem_enough = lambda: False
        return method

    def measure(stored: bool) -> dict[str, Any]:
        seconds = []
        for _ in range(runs):
            method = make(stored)
            seconds.append(timed(method.kernel)[0])
        return {
            "seconds": seconds,
            "best": min(seconds),
            "energy": float(method.e_tot),
            "cycles": int(method.cycles),
            "converged": bool(method.converged),
            "threads": lib.num_threads(),
        }

    found = {"pyscf": measure(stored=False)}
    if auxiliary is None and make(stored=True)._is_mem_enough():
        found["pyscf_stored"] = measure(stored=True)
    return found


def run_system(system: System, options: argparse.Namespace, backend: Any) -> dict[str, Any]:
    """Measure one system."""
    molecule = cuanto.Molecule.from_xyz(system.file)
    basis = cuanto.Basis(system.basis, molecule, spherical=system.spherical)
    aux = cuanto.Basis(system.aux, molecule) if system.aux else None
    row: dict[str, Any] = {"system": system.name, "method": system.title, "atoms": len(molecule.symbols)}
    row |= {"functions": basis.nbf, "auxiliary": aux.nbf if aux else 0}
    print(f"{system.name} {system.title}: {basis.nbf} functions, {row['auxiliary']} for the fit", flush=True)
    if options.cold:
        row["cold"] = cold_call(system, options.backend)
        print(f"  cold, with import: {row['cold']:.2f} s", flush=True)
    call = calculation(molecule, basis, aux, backend)
    row["first"], _ = timed(call)
    backend.finish_compiling()
    call()
    backend.finish_compiling()
    runs = [timed(call)]
    while len(runs) < options.repeat and sum(seconds for seconds, _ in runs) < ENOUGH:
        runs.append(timed(call))
    row["warm"] = [seconds for seconds, _ in runs]
    row["best"] = min(row["warm"])
    result = runs[-1][1]
    row |= {"energy": result.energy, "iterations": result.iterations, "converged": result.converged}
    row["notes"] = list(result.notes)
    profiled, result = timed(lambda: call(profile=True))
    row["steps"] = dict(result.timings.seconds)
    row["steps"]["elsewhere"] = profiled - sum(row["steps"].values())
    print(f"  first {row['first']:.3f} s, warm {row['best']:.4f} s, {result.iterations} iterations", flush=True)
    print("  " + ", ".join(f"{name} {s:.4f}" for name, s in row["steps"].items() if s >= 5e-5), flush=True)
    row["troubles"] = [] if result.converged else ["did not converge"]
    compare(row, "the reference", reference_energy(system))
    if options.peer and aux is None:
        row["direct"], _ = timed(lambda: call(storage="direct"))
        print(f"  direct {row['direct']:.3f} s; PySCF, direct and stored ...", flush=True)
    if options.peer:
        row |= peer(molecule, basis, aux, backend.threads, options.peer_repeat)
        show_peer(row)
    if backend.name == "cuda":
        row |= {"asked": system.target, "gpu4pyscf": system.literature}
        literature = f", GPU4PySCF 1.9: {system.literature} s" if system.literature else ""
        print(f"  target: {system.target} s{literature}", flush=True)
    for trouble in row["troubles"]:
        print(f"  *** {system.name}: {trouble} ***", flush=True)
    return row


def show_peer(row: dict[str, Any]) -> None:
    """Print the ratio of comparable times; energies must agree."""
    peers = [(key, title) for key, title in (("pyscf", "PySCF"), ("pyscf_stored", "PySCF, stored")) if key in row]
    row["ratio_to_pyscf"] = row["best"] / row[peers[-1][0]]["best"]
    for key, title in peers:
        found = row[key]
        ratio = (row["direct"] if key == "pyscf" and "direct" in row else row["best"]) / found["best"]
        print(f"  {title}: {found['best']:.3f} s, {found['cycles']} cycles; cuanto / PySCF = {ratio:.3f}")
        compare(row, title, found["energy"])
        if not found["converged"]:
            row["troubles"].append(f"{title} did not converge")
    print(f"  target: {TARGET_RATIO}", flush=True)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--systems", nargs="*", help="names of systems (default: those for the backend)")
    parser.add_argument("--repeat", type=int, default=3, help="warm runs at most")
    parser.add_argument("--peer", action="store_true", help="PySCF in the same run (CPU)")
    parser.add_argument("--peer-repeat", type=int, default=2, help="runs of PySCF")
    parser.add_argument("--cold", action="store_true", help="also time a separate process with empty kernel caches")
    parser.add_argument("--scan", choices=("alkanes", "waters"), help="cost against size instead")
    parser.add_argument("--direct", action="store_true", help="with --scan: four-centre integrals instead of fitting")
    parser.add_argument("--resume", action="store_true", help="with --scan: after the last point of the file")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds a point of a scan may be expected to take")
    parser.add_argument("--thesis", action="store_true", help="22 molecules and the profile of J instead")
    parser.add_argument("--no-profile", action="store_true", help="with --thesis: energies only")
    parser.add_argument("--json", help="write the result here")
    options = parser.parse_args()
    options.peer = options.peer and options.backend == "cpu"
    if options.peer and find_spec("pyscf") is None:
        parser.error("PySCF is not installed, so there is no peer: pip install pyscf, or leave out --peer")
    known = [system.name for system in SYSTEMS]
    for name in options.systems or []:
        if name not in known:
            parser.error(f"unknown system {name!r}: choose {', '.join(known)}")
    return options


def main() -> int:
    options = arguments()
    backend = get_backend(options.backend)
    settings, load = ScfOptions(), os.getloadavg()[0]
    print(f"{backend.name}, energy to {settings.energy_tolerance:g}, gradient to {settings.gradient_tolerance:g}")
    print(f"load average {load:.1f}: for times to mean anything the machine must be idle", flush=True)
    record: dict[str, Any] = {"benchmark": "scf", "machine": machine(backend), "load": load}
    record["cores"] = os.cpu_count()
    record |= {name: getattr(settings, name) for name in ("energy_tolerance", "gradient_tolerance", "screening")}
    if options.scan:
        scan(options, backend, record)
    elif options.thesis:
        record |= run_thesis(options, backend)
    else:
        wanted = options.systems
        if wanted is None:
            wanted = [system.name for system in SYSTEMS if system.on_cpu or backend.name == "cuda"]
        record["systems"] = []
        for system in SYSTEMS:
            if system.name in wanted:
                record["systems"].append(run_system(system, options, backend))
                save(options.json, record)  # an interruption keeps the results so far
    if options.thesis:
        save(options.json, record)
    rows = [row for rows in record.values() if isinstance(rows, list) for row in rows]
    return 1 if any(row["troubles"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
