"""All three-centre integrals (mu nu|P) of a molecule, compared with PySCF's int3c2e on the same cores in the same run.

    python benchmarks/three_centre.py                      # octadecane, cc-pVDZ / cc-pVDZ-JKFIT, this CPU
    python benchmarks/three_centre.py --backend cuda --classes --json benchmarks/results/three_centre_h200.json

Printed: seconds (the first run, best and median of the warm ones), integrals per second, fraction of the arithmetic
limit, ratio of peak memory to the size of the result; with --classes also time, rate and fraction of every class and
algorithm.
The arithmetic limit, in double precision: on a GPU the peak rate of its fused multiply-adds, on the CPU the rate of a
matrix product on the same cores, measured in the same run. The operation count is that of the Head-Gordon-Pople
recurrences, whichever algorithm was used.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from common import geometry, last_number, machine, pyscf_mole, save

import cuanto
from cuanto import integrals
from cuanto.backends.base import get_backend
from cuanto.integrals.api import PAIR_THRESHOLD, basis_kets, basis_pairs
from cuanto.integrals.engine import Engine
from cuanto.integrals.pairs import RowMap
from cuanto.kernels.build import cost_of


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--molecule", default="alkane_18")
    parser.add_argument("--basis", default="cc-pvdz")
    parser.add_argument("--aux", default="cc-pvdz-jkfit")
    parser.add_argument("--backend", default="cpu", choices=("auto", "cpu", "cuda"))
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
    """Double-precision operations per second (FMA = 2): the GPU's peak, or a matrix product on these cores."""
    if backend.name == "cuda":
        import cupy

        properties = cupy.cuda.runtime.getDeviceProperties(0)
        lanes = {80: 32, 90: 64, 100: 64}.get(10 * properties["major"] + properties["minor"], 2)
        clock = cupy.cuda.runtime.deviceGetAttribute(13, 0) * 1e3  # cudaDevAttrClockRate, kHz
        return float(properties["multiProcessorCount"] * lanes * 2 * clock)
    import numpy as np

    a = np.random.default_rng(1).normal(size=(2000, 2000))
    best = min(timed(lambda: a @ a, 5))
    return 2 * 2000.0**3 / best


def count_operations(basis: cuanto.Basis, aux: cuanto.Basis) -> float:
    """Count the operations of all classes if computed by the recurrences of Head-Gordon and Pople."""
    kets = basis_kets(aux, coulomb=True)
    total = 0.0
    for bra in basis_pairs(basis, RowMap(basis.nbf, packed=True), PAIR_THRESHOLD):
        for ket in kets:
            cost = cost_of("coulomb", bra.shells, ket.shells, "hgp")
            primitives = len(bra.record) / bra.count * ket.primitives
            total += bra.count * ket.count * cost.total(primitives, bra.columns)
    return total


def with_peer(options: argparse.Namespace, backend: Any) -> bool:
    """Whether PySCF is measured as well; a message is printed at the start if it is not installed."""
    if options.no_peer or backend.name != "cpu":
        return False
    if find_spec("pyscf") is None:
        print("PySCF is not installed and is left out: pip install pyscf")
        return False
    return True


def pyscf_call(molecule: cuanto.Molecule, basis: cuanto.Basis, aux: cuanto.Basis) -> Any:
    """PySCF's int3c2e over the same functions, lower triangle of pairs."""
    from pyscf import df

    mol, auxmol = pyscf_mole(molecule, basis), pyscf_mole(molecule, aux)
    return lambda: df.incore.aux_e2(mol, auxmol, "int3c2e", aosym="s2ij")


def by_class(backend: Any, basis: cuanto.Basis, aux: cuanto.Basis, limit: float) -> list[dict[str, Any]]:
    """Measure every class with both algorithms."""
    import numpy as np

    n, naux = basis.nbf, aux.nbf
    out = backend.zeros((n * (n + 1) // 2, naux), np.float64)
    engine = Engine(backend, out, row_stride=naux)
    bras, kets = list(basis_pairs(basis, RowMap(n, packed=True), PAIR_THRESHOLD)), basis_kets(aux, coulomb=True)
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
    """Seconds of the best of three warm runs."""
    backend.run(jobs)
    backend.finish_compiling()
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        backend.run(jobs)
        best = min(best, time.perf_counter() - start)
    return best


def peak_memory(options: argparse.Namespace, result_bytes: int) -> dict[str, float]:
    """By how much one call raises the peak memory, measured in a separate process."""
    command = [sys.executable, __file__, "--memory-only", "--backend", options.backend, "--molecule", options.molecule]
    command += ["--basis", options.basis, "--aux", options.aux]
    peak = last_number(command)
    return {"peak_bytes": peak, "result_bytes": result_bytes, "ratio": peak / result_bytes}


def resident_peak() -> int:
    """Largest resident size of this process so far, in bytes (Linux)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def measure_memory(options: argparse.Namespace) -> None:
    """Print by how many bytes a warm call raises the resident peak, or on a GPU the size of the memory pool."""
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
    peer = with_peer(options, backend)
    count = basis.nbf * (basis.nbf + 1) // 2 * aux.nbf
    sizes = f"{basis.nbf} x {aux.nbf} functions, {count / 1e6:.1f} M integrals"
    print(f"{options.molecule} {options.basis} / {options.aux}: {sizes}")

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
        "limit_fraction": count_operations(basis, aux) / min(warm) / limit,
    }
    print(
        f"cuanto {backend.name}: first {first:.3f} s, warm best {min(warm):.4f} median {statistics.median(warm):.4f} s"
    )
    print(f"  {count / min(warm) / 1e9:.2f} G integrals/s")
    print(f"  {100 * record['limit_fraction']:.1f} % of the arithmetic limit, {limit / 1e9:.0f} G operations/s")
    record["memory"] = peak_memory(options, 8 * count)
    print(f"  peak memory {record['memory']['ratio']:.3f} x the result")
    if peer:
        theirs = timed(pyscf_call(molecule, basis, aux), 3)
        record |= {"pyscf_seconds": theirs, "ratio_to_pyscf": min(warm) / min(theirs)}
        print(f"PySCF int3c2e: best {min(theirs):.3f} s; cuanto / PySCF = {record['ratio_to_pyscf']:.3f}")
    if options.classes:
        record["classes"] = by_class(backend, basis, aux, limit)
    save(options.json, record)


if __name__ == "__main__":
    main()
