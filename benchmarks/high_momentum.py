"""Hartree-Fock without fitting in large basis sets, and integrals by class to h, compared with PySCF in the same run.

    python benchmarks/high_momentum.py --json benchmarks/results/high_momentum_cpu.json
    python benchmarks/high_momentum.py --classes --json benchmarks/results/integral_classes_cpu.json --plot classes.svg
    python benchmarks/high_momentum.py --only sulfur-dioxide --repeats 1
    taskset -c 0,1 python benchmarks/high_momentum.py --only glycine --builds

Calculations: one call of `cuanto.energy` and one of PySCF in turn, `--repeats` times after a first one that is not
counted, with the same functions, threads and criteria; both programs store integrals where they fit into memory.
The best seconds and the best processor seconds are recorded; other programs on the machine affect the latter less.
Energies must agree to 1e-8 Hartree. PySCF does one SCF; ours also searches for lower states of molecules with open d
shells, such as CuO, which `--search none` leaves out.
`--builds` times one direct J and K of PySCF's starting density by both programs instead, for molecules whose whole
calculation would take half an hour.

Classes: (ab|cd) of shells to h with one primitive each, on different centres, on one thread. Ours by the
kernels that J and K use, libcint's by `mol.intor("int2e", shls_slice=...)`; nanoseconds of processor time per integral.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import sys
import time
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from math import prod
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from common import BASIS_PATH, ROOT, geometry, machine, pyscf_mole, save

import cuanto
from cuanto.backends.cpu.backend import CpuBackend
from cuanto.basis import Basis, Shell
from cuanto.coulomb import DirectJK
from cuanto.coulomb.digest_cpu import CpuDigest
from cuanto.coulomb.pair_classes import PairClass, pair_classes
from cuanto.memory import Budget
from cuanto.options import CalculationOptions, ScfOptions

os.environ["CUANTO_BASIS_PATH"] = BASIS_PATH
DATA = ROOT / "benchmarks" / "data"
ENERGY_TOLERANCE = 1e-8
TARGET_RATIO = 0.4
PEER_MEMORY = 8000
"""Memory limit of PySCF, MB."""
LETTERS = "spdfgh"


@dataclass(frozen=True)
class System:
    """A molecule in a basis; `file` None: a single atom of the element `name`."""

    name: str
    file: Path | None
    basis: str


SYSTEMS = {
    "sulfur-dioxide": System("sulfur dioxide", DATA / "sulfur_dioxide.xyz", "cc-pvqz"),
    "bromomethane": System("bromomethane", DATA / "bromomethane.xyz", "cc-pvqz"),
    "neon": System("Ne", None, "cc-pv5z"),
    "water": System("water", geometry("water_01"), "cc-pv5z"),
    "copper-oxide": System("CuO", geometry("CuO"), "6-31g**"),
    "copper-oxide-qz": System("CuO", geometry("CuO"), "def2-qzvp"),
    "glycine": System("glycine", geometry("glycine"), "def2-qzvp"),
}


@dataclass
class Clock:
    """Best seconds and processor seconds of repeated calls."""

    seconds: float = np.inf
    processor: float = np.inf

    def __call__(self, work: Any) -> Any:
        start, cpu = time.perf_counter(), time.process_time()
        result = work()
        self.processor = min(self.processor, time.process_time() - cpu)
        self.seconds = min(self.seconds, time.perf_counter() - start)
        return result

    def record(self) -> dict[str, float]:
        """Rounded values."""
        return {"best": round(self.seconds, 4), "processor": round(self.processor, 4)}


def molecule_of(system: System) -> cuanto.Molecule:
    """The molecule of a system."""
    if system.file is not None:
        return cuanto.Molecule.from_xyz(system.file)
    return cuanto.Molecule([system.name], [[0.0, 0.0, 0.0]])


def peer_calculation(mol: Any, multiplicity: int, D_spq: Any | None = None) -> Any:
    """Run PySCF from its own guess or from a density, and return its SCF object."""
    from pyscf import scf

    settings = ScfOptions()
    method = (scf.RHF if multiplicity == 1 else scf.UHF)(mol)
    method.max_memory, method.chkfile, method.max_cycle = PEER_MEMORY, None, 100
    method.conv_tol, method.conv_tol_grad = settings.energy_tolerance, settings.gradient_tolerance / 2**0.5
    method.direct_scf_tol = CalculationOptions().screening
    method.kernel(D_spq)
    return method


def measure(key: str, backend: Any, repeats: int, search: str) -> dict[str, Any]:
    """Time a calculation with both programs in turn; `search` for lower states in ours."""
    system = SYSTEMS[key]
    molecule = molecule_of(system)
    basis = cuanto.Basis(system.basis, molecule, spherical=True)
    mol = pyscf_mole(molecule, basis)
    mol.spin = molecule.multiplicity - 1
    ours, theirs = Clock(), Clock()

    def run() -> Any:
        return cuanto.energy(molecule, "hf", basis, backend=backend, fitting="none", search=search)

    run()
    backend.finish_compiling()
    run()
    for _ in range(repeats):
        result = ours(run)
        peer = theirs(lambda: peer_calculation(mol, molecule.multiplicity))
    difference = abs(result.energy - float(peer.e_tot))
    if difference > ENERGY_TOLERANCE:  # PySCF found another state, as for CuO: start it from our density
        again = peer_calculation(mol, molecule.multiplicity, result.density)
        difference = abs(result.energy - float(again.e_tot))
    row = {
        "name": system.name,
        "basis": system.basis,
        "functions": basis.nbf,
        "search": search,
        "iterations": result.iterations,
        "converged": result.converged,
        "energy": result.energy,
        "cuanto": ours.record(),
        "pyscf": theirs.record() | {"energy": float(peer.e_tot), "cycles": int(getattr(peer, "cycles", 0) or 0)},
        "ratio": round(ours.seconds / theirs.seconds, 3),
        "processor_ratio": round(ours.processor / theirs.processor, 3),
        "difference": difference,
    }
    print(
        f"{system.name}/{system.basis}: {basis.nbf} functions, cuanto {ours.seconds:.2f} s "
        f"(processor {ours.processor:.2f}), PySCF {theirs.seconds:.2f} s ({theirs.processor:.2f}), "
        f"ratio {row['ratio']:.2f} ({row['processor_ratio']:.2f}),"
        f" energies differ by {difference:.1e}",
        flush=True,
    )
    return row


def measure_build(key: str, backend: Any) -> dict[str, Any]:
    """One direct J and K by both programs; ours is the second, when all kernels are compiled."""
    from pyscf import scf

    system = SYSTEMS[key]
    molecule = molecule_of(system)
    basis = cuanto.Basis(system.basis, molecule, spherical=True)
    mol = pyscf_mole(molecule, basis)
    mol.spin = molecule.multiplicity - 1
    D_pq = scf.hf.init_guess_by_minao(mol)
    ours, theirs = Clock(), Clock()
    direct = DirectJK(basis, backend=backend, threshold=CalculationOptions().screening)
    direct(D_pq)
    backend.finish_compiling()
    direct.finish_compiling()
    J_pq, K_pq = ours(lambda: direct(D_pq))
    print(f"{system.name}/{system.basis}: {basis.nbf} functions, cuanto {ours.seconds:.2f} s", flush=True)
    method = scf.hf.SCF(mol)
    method.direct_scf_tol = CalculationOptions().screening
    screening = method.init_direct_scf(mol)
    J_peer, K_peer = theirs(lambda: scf.hf.get_jk(mol, D_pq, hermi=1, vhfopt=screening))
    difference = float(max(np.abs(J_pq - J_peer).max(), np.abs(K_pq - K_peer).max()))
    row = {
        "name": system.name,
        "basis": system.basis,
        "functions": basis.nbf,
        "cuanto": ours.record(),
        "pyscf": theirs.record(),
        "ratio": round(ours.seconds / theirs.seconds, 3),
        "processor_ratio": round(ours.processor / theirs.processor, 3),
        "difference": difference,
    }
    print(
        f"    PySCF {theirs.seconds:.2f} s, ratio {row['ratio']:.2f}, matrices differ by {difference:.1e}", flush=True
    )
    return row


# ------------------------------------------------------------------------------------------------ classes

Pair = tuple[int, int]
INTEGRALS = 3e5
"""Approximate number of integrals evaluated for a class."""
LIST = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_longlong, ctypes.c_void_p)


def shells_of(l: int, count: int, seed: int) -> Basis:
    """Shells with one primitive, each on a centre of its own."""
    random = np.random.default_rng(seed)
    shells = [Shell.from_table(k, l, [0.4 + 0.8 * random.random()], [[1.0]], True) for k in range(count)]
    return Basis.from_shells(shells, random.normal(size=(count, 3)))


def join(first: Basis, second: Basis) -> Basis:
    """Make a basis of all shells of two bases."""
    moved = [Shell(s.atom + len(first.R_ax), s.l, s.exponents, s.coefficients, s.pure) for s in second.shells]
    return Basis.from_shells([*first.shells, *moved], np.concatenate([first.R_ax, second.R_ax]))


def pairs_of(momenta: Pair, count: int, seed: int) -> PairClass:
    """The pairs of a class between different shells."""
    basis = join(shells_of(momenta[0], count, seed), shells_of(momenta[1], count, seed + 50))
    return next(pairs for pairs in pair_classes(basis, 0.0) if pairs.bra.shells.l == momenta)


def our_nanoseconds(bra: Pair, ket: Pair, count: int, backend: CpuBackend) -> tuple[float, bool]:
    """Processor time per integral by the kernel that J and K use, and whether that is straight-line code."""
    digest = CpuDigest(Budget(backend), [pairs_of(ket, count, 2)], "auto", np.float64, 0.0, [pairs_of(bra, count, 1)])
    backend.finish_compiling()
    record = next(iter(digest.bras()))[0]
    kernel, bras, lanes = LIST(int(record["kernel"])), int(record["bras"]), 8
    size = prod(2 * l + 1 for l in (*bra, *ket))
    at_once = max(1, min(bras, 49152 // (lanes * size)))
    out = np.zeros(at_once * size * lanes + 8)
    address = out.ctypes.data + -out.ctypes.data % 64
    kets = digest.pairs[0].ket.count // lanes * lanes
    best = np.inf
    for _ in range(3):
        start = time.thread_time()
        for first in range(0, kets, lanes):
            for b in range(0, bras, at_once):
                numbers = np.arange(b, min(b + at_once, bras), dtype=np.int32)
                items = np.stack([numbers, np.full_like(numbers, first)], axis=1)
                kernel(int(record["sides"]), int(record["tables"]), items.ctypes.data, len(items), address)
        best = min(best, time.thread_time() - start)
    return 1e9 * best / (bras * kets * size), not record["tables"]


def peer_nanoseconds(bra: Pair, ket: Pair, count: int) -> float:
    """Processor time per integral of libcint."""
    groups = [shells_of(l, count, seed) for l, seed in zip((*bra, *ket), (1, 51, 2, 52), strict=True)]
    whole = join(join(groups[0], groups[1]), join(groups[2], groups[3]))
    mol = pyscf_mole(SimpleNamespace(symbols=["H"] * len(whole.R_ax), R_ax=whole.R_ax), whole)
    limits = [edge for k in range(4) for edge in (k * count, (k + 1) * count)]
    best = np.inf
    for _ in range(3):
        start = time.process_time()
        found = mol.intor("int2e", shls_slice=limits)
        best = min(best, time.process_time() - start)
    return 1e9 * best / found.size


def classes(threads_backend: CpuBackend, highest: int) -> list[dict[str, Any]]:
    """All classes up to an angular momentum, bras at least as high as kets."""
    threads_backend.traits = replace(threads_backend.traits, worth_compiling=0.0)
    pairs = [(b, a) for a, b in combinations_with_replacement(range(highest + 1), 2)]
    pairs.sort(key=lambda pair: (sum(pair), pair))
    rows = []
    for n, bra in enumerate(pairs):
        for ket in pairs[: n + 1]:
            size = prod(2 * l + 1 for l in (*bra, *ket))
            count = max(3, min(12, int((INTEGRALS / size) ** 0.25)))
            mine, straight = our_nanoseconds(bra, ket, count, threads_backend)
            theirs = peer_nanoseconds(bra, ket, count)
            name = f"({''.join(LETTERS[l] for l in bra)}|{''.join(LETTERS[l] for l in ket)})"
            row = {
                "class": name,
                "momentum": sum(bra) + sum(ket),
                "cuanto": round(mine, 3),
                "libcint": round(theirs, 3),
            }
            rows.append(row | {"straight": bool(straight), "ratio": round(mine / theirs, 3)})
            print(f"{name:8} {mine:8.2f} ns, libcint {theirs:8.2f} ns, ratio {mine / theirs:.2f}", flush=True)
    worst = max(rows, key=lambda row: row["ratio"])
    print(f"{len(rows)} classes, largest ratio {worst['ratio']:.2f} for {worst['class']}")
    return rows


def plot(rows: list[dict[str, Any]], path: str) -> None:
    """Nanoseconds per integral against the sum of the angular momenta."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4))
    for key, offset, colour in (("libcint", 0.12, "tab:gray"), ("cuanto", -0.12, "tab:blue")):
        x = [row["momentum"] + offset for row in rows]
        axes.semilogy(x, [row[key] for row in rows], "o", ms=3, color=colour, label=key)
    axes.set_xlabel("sum of the four angular momenta")
    axes.set_ylabel("nanoseconds per integral, one core")
    axes.legend()
    figure.tight_layout()
    figure.savefig(path)
    print(f"written: {path}")


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=SYSTEMS, nargs="*", default=list(SYSTEMS))
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json")
    parser.add_argument("--search", choices=("auto", "none"), default="auto", help="search for lower states in ours")
    parser.add_argument("--builds", action="store_true", help="time one direct J and K instead of calculations")
    parser.add_argument("--classes", action="store_true", help="time classes of integrals on one thread instead")
    parser.add_argument("--highest", type=int, default=5, help="highest angular momentum of the classes")
    parser.add_argument("--plot", help="file for a plot of the classes")
    options = parser.parse_args()
    from pyscf import lib

    threads = 1 if options.classes else options.threads
    backend = CpuBackend(threads=threads)
    lib.num_threads(threads)
    if options.classes:
        rows = classes(backend, options.highest)
        save(options.json, {"machine": machine(backend), "classes": rows})
        if options.plot:
            plot(rows, options.plot)
        return
    if options.builds:
        save(options.json, {"machine": machine(backend), "builds": [measure_build(k, backend) for k in options.only]})
        return
    rows = [measure(key, backend, options.repeats, options.search) for key in options.only]
    save(options.json, {"machine": machine(backend), "calculations": rows})
    bad = [row for row in rows if row["difference"] > ENERGY_TOLERANCE]
    sys.exit(f"energies differ: {bad}" if bad else 0)


if __name__ == "__main__":
    main()
