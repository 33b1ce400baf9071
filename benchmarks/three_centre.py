"""All three-centre integrals (mu nu|P) of a molecule, beside PySCF's int3c2e on the same cores in the same run.

    python benchmarks/three_centre.py                      # octadecane, cc-pVDZ / cc-pVDZ-JKFIT, this CPU
    python benchmarks/three_centre.py --backend cuda --classes --json benchmarks/results/three_centre_h200.json

Printed: seconds (best and median of the warm runs, and the first run), integrals per second, fraction of the
arithmetic limit, peak memory against the size of the result; with --classes the same per class and algorithm.
The arithmetic limit is the processor's peak rate of fused multiply-adds in double precision.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from common import geometry, machine, save

import cuanto
from cuanto import integrals
from cuanto.backends.base import get_backend
from cuanto.integrals.api import basis_kets, basis_pairs
from cuanto.integrals.engine import Engine
from cuanto.integrals.pairs import RowMap
from cuanto.kernels.build import cost_of


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--molecule", default="alkane_18")
    parser.add_argument("--basis", default="cc-pvdz")
    parser.add_argument("--aux", default="cc-pvdz-jkfit")
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--classes", action="store_true", help="time every class and both algorithms")
    parser.add_argument("--no-peer", action="store_true", help="leave PySCF out")
    parser.add_argument("--json", help="write the result here")
    parser.add_argument("--memory-only", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def timed(call: Any, repeats: int) -> list[float]:
    """Seconds of each run; the result is dropped before the next one."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = call()
        seconds.append(time.perf_counter() - start)
        del result
    return seconds


def arithmetic_limit(backend: Any) -> float:
    """Peak double-precision operations per second (FMA = 2)."""
    if backend.name == "cuda":
        import cupy

        properties = cupy.cuda.runtime.getDeviceProperties(0)
        lanes = {80: 32, 90: 64, 100: 64}.get(10 * properties["major"] + properties["minor"], 2)
        clock = cupy.cuda.runtime.deviceGetAttribute(13, 0) * 1e3  # cudaDevAttrClockRate, kHz
        return float(properties["multiProcessorCount"] * lanes * 2 * clock)
    import numpy as np

    a = np.random.default_rng(1).normal(size=(2000, 2000))
    best = min(timed(lambda: a @ a, 5))
    return 2 * 2000.0**3 / best  # what the same cores reach in a matrix product


def pyscf_call(molecule: cuanto.Molecule, basis: cuanto.Basis, aux: cuanto.Basis) -> Any:
    """PySCF's int3c2e over the same functions, lower triangle of pairs."""
    from pyscf import df, gto
    from pyscf.gto.mole import gto_norm

    def mole(b: cuanto.Basis) -> Any:
        shells: dict[str, list[Any]] = {}
        for shell in b.shells:
            rows = [
                [e, *(row / gto_norm(shell.l, e))] for e, row in zip(shell.exponents, shell.coefficients, strict=True)
            ]
            shells.setdefault(f"{molecule.symbols[shell.atom]}{shell.atom}", []).append([shell.l, *rows])
        atoms = [(f"{s}{i}", tuple(x)) for i, (s, x) in enumerate(zip(molecule.symbols, molecule.R_ax, strict=True))]
        return gto.M(atom=atoms, unit="Bohr", basis=shells, cart=not b.spherical, spin=None, verbose=0)

    mol, auxmol = mole(basis), mole(aux)
    return lambda: df.incore.aux_e2(mol, auxmol, "int3c2e", aosym="s2ij")


def by_class(backend: Any, basis: cuanto.Basis, aux: cuanto.Basis, limit: float) -> list[dict[str, Any]]:
    """Every class by both algorithms."""
    import numpy as np

    n, naux = basis.nbf, aux.nbf
    out = backend.zeros((n * (n + 1) // 2, naux), np.float64)
    engine = Engine(backend, out, row_stride=naux)
    bras, kets = list(basis_pairs(basis, RowMap(n, True), 1e-18)), basis_kets(aux, coulomb=True)
    rows = []
    classes = sorted({(b.shells, k.shells) for b in bras for k in kets}, key=lambda pair: (pair[0].l, pair[1].l))
    for bra, ket in classes:
        mine = [b for b in bras if b.shells == bra], [k for k in kets if k.shells == ket]
        for algorithm in ("hgp", "md"):
            jobs = [
                [engine.job("coulomb", b, k, algorithm, {**engine.bra(b), **engine.ket(k)}) for k in mine[1]]
                for b in mine[0]
            ]
            cost = cost_of("coulomb", bra, ket, algorithm)
            flat = [job for group in jobs for job in group]
            operations = sum(j.bras * j.kets * cost.total(j.primitives, j.columns) for j in flat)
            count = sum(j.bras * j.columns * j.kets for j in flat) * cost.bytes_written // 8
            seconds = device_seconds(backend, jobs)
            rows.append(
                {
                    "class": f"({bra}|{ket})",
                    "algorithm": algorithm,
                    "integrals": count,
                    "operations": operations,
                    "seconds": seconds,
                    "limit_fraction": operations / seconds / limit,
                }
            )
            print(
                f"  ({bra}|{ket}) {algorithm:4s} {count / 1e6:9.2f} M integrals {seconds * 1e3:9.3f} ms "
                f"{count / seconds / 1e9:7.3f} G/s {100 * operations / seconds / limit:5.1f} % of the limit",
                flush=True,
            )
    return rows


def device_seconds(backend: Any, jobs: list[Any]) -> float:
    """Best of three warm runs."""
    backend.run(jobs)
    backend.finish_compiling()
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        backend.run(jobs)
        best = min(best, time.perf_counter() - start)
    return best


def peak_memory(options: argparse.Namespace, result_bytes: int) -> dict[str, float]:
    """Peak of one call beyond what was there before it, in a process of its own."""
    command = [sys.executable, __file__, "--memory-only", "--backend", options.backend, "--molecule", options.molecule]
    command += ["--basis", options.basis, "--aux", options.aux]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=dict(os.environ))
    peak = float(done.stdout.split()[-1])
    return {"peak_bytes": peak, "result_bytes": result_bytes, "ratio": peak / result_bytes}


def resident_peak() -> int:
    """Largest resident size of this process so far, in bytes (Linux)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def measure_memory(options: argparse.Namespace) -> None:
    """Printed: bytes in use at the peak of a warm call, less those before it."""
    backend = get_backend(options.backend)
    small = cuanto.Molecule.from_xyz(geometry("alkane_01"))
    integrals.eri_3c(cuanto.Basis(options.basis, small), cuanto.Basis(options.aux, small), backend=backend)
    molecule = cuanto.Molecule.from_xyz(geometry(options.molecule))
    basis, aux = cuanto.Basis(options.basis, molecule), cuanto.Basis(options.aux, molecule)
    if backend.name == "cuda":
        pool = backend.xp.get_default_memory_pool()
        pool.free_all_blocks()
        before = pool.total_bytes()
        result = integrals.eri_3c(basis, aux, packed=True, backend=backend)
        print(pool.total_bytes() - before)
    else:
        before = resident_peak()
        result = integrals.eri_3c(basis, aux, packed=True, backend=backend)
        print(resident_peak() - before)
    del result


def main() -> None:
    options = arguments()
    if options.memory_only:
        measure_memory(options)
        return
    backend = get_backend(options.backend)
    molecule = cuanto.Molecule.from_xyz(geometry(options.molecule))
    basis, aux = cuanto.Basis(options.basis, molecule), cuanto.Basis(options.aux, molecule)
    count = basis.nbf * (basis.nbf + 1) // 2 * aux.nbf
    print(f"{options.molecule} {options.basis} / {options.aux}: {basis.nbf} x {aux.nbf} functions, {count / 1e6:.1f} M")

    def ours() -> Any:
        return integrals.eri_3c(basis, aux, packed=True, backend=backend)

    first = timed(ours, 1)[0]
    backend.finish_compiling()
    timed(ours, 1)
    warm = timed(ours, options.repeats)
    limit = arithmetic_limit(backend)
    record: dict[str, Any] = {
        "benchmark": "three_centre",
        "system": {"molecule": options.molecule, "basis": options.basis, "aux": options.aux},
        "functions": [basis.nbf, aux.nbf],
        "machine": machine(backend),
        "first_seconds": first,
        "warm_seconds": warm,
        "best_seconds": min(warm),
        "integrals_per_second": count / min(warm),
        "arithmetic_limit": limit,
    }
    print(
        f"cuanto {backend.name}: first {first:.3f} s, warm best {min(warm):.4f} median {statistics.median(warm):.4f} s"
    )
    print(f"  {count / min(warm) / 1e9:.2f} G integrals/s")
    record["memory"] = peak_memory(options, 8 * count)
    print(f"  peak memory {record['memory']['ratio']:.3f} x the result")
    if options.backend == "cpu" and not options.no_peer:
        theirs = timed(pyscf_call(molecule, basis, aux), 3)
        record |= {"pyscf_seconds": theirs, "ratio_to_pyscf": min(warm) / min(theirs)}
        print(f"PySCF int3c2e: best {min(theirs):.3f} s; cuanto / PySCF = {record['ratio_to_pyscf']:.3f}")
    if options.classes:
        record["classes"] = by_class(backend, basis, aux, limit)
        total = sum(row["operations"] for row in record["classes"] if row["algorithm"] == "hgp")
        record["limit_fraction"] = total / min(warm) / limit
        print(f"whole run: {100 * record['limit_fraction']:.1f} % of the limit (operations of hgp)")
    save(options.json, record)


if __name__ == "__main__":
    main()
