"""Tables II and III of Fujii et al. (2024): all four-centre integrals of small systems, by the paper's two schedules.

    python benchmarks/mcmurchie_davidson.py                    # no GPU: `auto` on the CPU, the rest is counted
    python benchmarks/mcmurchie_davidson.py --backend cuda --json benchmarks/results/mcmurchie_davidson_h200.json

Functions are Cartesian, as the paper counts them. `integrals` are the unique ones, M (M + 1) (M^2 + M + 2) / 8 for M
functions; `shell_quartets` is the same formula for the primitive shells of all contracted ones. A block per integral
(1B1CI) evaluates the Boys function once for each primitive quartet of each integral, a block per quartet (1B1SP) once
for each primitive quartet of shells: `boys_*` by the paper's counting, `launched_*` what our launches evaluate (a batch
meets itself in both orders; negligible pairs are left out). Seconds are those of `eri_4c`, packed by pairs, the result
on the device, best of the warm runs. The paper's schedules are run once (warm); if that would take longer than
`--budget`, only a sample is run, the first bras of every batch, and the time is scaled by the number of Boys
evaluations (`sampled`: the fraction that ran).
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from typing import Any

import numpy as np
from common import geometry, machine, save

import cuanto
from cuanto import integrals
from cuanto.backends.base import Backend, Job, get_backend
from cuanto.backends.cpu.backend import CpuBackend
from cuanto.backends.programs import class_cost, class_tables
from cuanto.integrals.api import PAIR_THRESHOLD, basis_pairs
from cuanto.integrals.engine import Engine
from cuanto.integrals.pairs import RowMap, pair_kets
from cuanto.kernels.abi import BLOCK
from cuanto.kernels.build import unrolled
from cuanto.kernels.recurrences.components import function_count

SCHEDULES = {"1B1CI": "block-per-integral", "1B1SP": "block-per-quartet"}
PAPER = {  # seconds of 1B1CI and 1B1SP on an A100, integrals as printed
    "H/cc-pvdz": (0.001, 0.001, 120),
    "H/cc-pvtz": (0.004, 0.020, 1_035),  # as printed; the formula gives 7,260 integrals
    "H/cc-pvqz": (0.054, 0.294, 198_765),
    "H/cc-pv5z": (0.976, 3.742, 3_088_855),
    "H/cc-pv6z": (14.874, 38.545, 32_012_001),
    "benzene/sto-3g": (1.590, 1.427, 222_111),
    "benzene/6-31gss": (26.018, 22.451, 26_357_430),
    "naphthalene/sto-3g": (10.364, 9.444, 1_464_616),
    "naphthalene/6-31gss": (166.790, 145.868, 164_629_585),
    "CuO/sto-3g": (0.452, 0.395, 45_150),
    "CuO/6-31gss": (5.261, 4.732, 1_103_355),
}


def basis_of(name: str) -> cuanto.Basis:
    """Basis of a case named `molecule/basis`; the hydrogen atom is at the origin."""
    molecule_name, basis_name = name.split("/")
    if molecule_name == "H":
        molecule = cuanto.Molecule.from_string("1\n\nH 0 0 0\n")
    else:
        molecule = cuanto.Molecule.from_xyz(geometry(molecule_name))
    return cuanto.Basis(basis_name, molecule, spherical=False)


def unique(count: int) -> int:
    """Number of quartets of `count` objects with eightfold symmetry."""
    return count * (count + 1) * (count * count + count + 2) // 8


def unique_sum(sizes: Iterable[int]) -> int:
    """Sum over the unique quartets (pq|rs) of the product of four sizes."""
    pairs = [(size * size, size) for size in sizes]
    once = sum(s for _, s in pairs)
    squares = sum(s2 for s2, _ in pairs)
    pair_sum = (once * once + squares) // 2
    # Squares of the products of all pairs p >= q.
    fourth = sum(s2 * s2 for s2, _ in pairs)
    pair_squares = (squares * squares + fourth) // 2
    return (pair_sum * pair_sum + pair_squares) // 2


def counts(basis: cuanto.Basis) -> dict[str, Any]:
    """Numbers of integrals, quartets and Boys functions, counted as in the paper."""
    functions: Counter[str] = Counter()
    shells: Counter[str] = Counter()
    primitives = []
    for shell in basis.shells:
        used = np.count_nonzero(shell.coefficients, axis=0)
        letter, size = "spdfgh"[shell.l], function_count(shell.l, False)
        functions[letter] += size * shell.ncol
        shells[letter] += int(used.sum())
        primitives += [int(n) for n in used for _ in range(size)]
    return {
        "functions": dict(functions),
        "shells": dict(shells),
        "integrals": unique(sum(functions.values())),
        "shell_quartets": unique(sum(shells.values())),
        "boys_1B1CI": unique_sum(primitives),
        "boys_1B1SP": unique(sum(shells.values())),
    }


@dataclass
class Sample:
    """A backend that passes on the first `part` of the bras of every job, and counts Boys evaluations."""

    backend: Any
    per_integral: bool
    part: float = 1.0
    requested: float = 0.0
    done: float = 0.0
    name: str = field(init=False)

    def __post_init__(self) -> None:
        self.name = self.backend.name

    def __getattr__(self, name: str) -> Any:
        return getattr(self.backend, name)

    def run(self, groups: Iterable[Sequence[Job]]) -> None:
        """Reduce, count and forward the jobs."""
        self.backend.run(self.cut(groups))

    def cut(self, groups: Iterable[Sequence[Job]]) -> Iterator[list[Job]]:
        """Reduce the bras of every job."""
        for group in groups:
            mine = []
            for job in group:
                bras = max(1, round(self.part * job.bras))
                per_bra = job.kets * job.primitives * (job.columns * functions_of(job) if self.per_integral else 1)
                self.requested, self.done = self.requested + job.bras * per_bra, self.done + bras * per_bra
                mine.append(replace(job, bras=bras))
            yield mine


def functions_of(job: Job) -> int:
    """Number of integrals of a contracted quartet."""
    shells = zip(job.bra.l + job.ket.l, job.bra.pure + job.ket.pure, strict=True)
    return int(np.prod([function_count(l, pure) for l, pure in shells]))


def primitive_quartets(job: Job) -> int:
    """Number of primitive quartets, without the padding of ket blocks."""
    first, record = job.arguments["ket_first"], job.arguments["ket_record"]
    block = np.repeat(np.arange(len(first) - 1), np.diff(first))
    real = block[:, None] * BLOCK + np.arange(BLOCK) < job.kets
    return int(job.arguments["bra_first"][-1]) * int(np.count_nonzero(record[:, 4, :] * real))


class Recorder(CpuBackend):
    """Records the jobs and computes nothing."""

    def __init__(self, name: str) -> None:
        super().__init__(threads=1)
        self.name = name
        self.jobs: list[Job] = []

    def run(self, groups: Iterable[Sequence[Job]]) -> None:
        """Record the jobs."""
        self.jobs += [job for group in groups for job in group]


def prepare(class_: Any, target: str) -> None:
    """Put the index tables of a class into the cache."""
    if not unrolled(target, class_cost(*class_)):
        class_tables(*class_, levels=target == "cuda")


def recorded(basis: cuanto.Basis, target: str) -> list[Job]:
    """Jobs that `eri_4c` gives to a backend."""
    recorder = Recorder(target)
    bras = list(basis_pairs(basis, RowMap(basis.nbf, packed=True), PAIR_THRESHOLD))
    Engine(recorder, np.zeros(1), row_stride=1).run_triangle(bras, [pair_kets(bra) for bra in bras])
    return recorder.jobs


def timed(basis: cuanto.Basis, backend: Any, repeats: int) -> float:
    """Time `eri_4c`: best of the warm runs."""
    best = float("inf")
    for k in range(repeats + 1):
        start = time.perf_counter()
        integrals.eri_4c(basis, packed=True, backend=backend)
        if k == 0:
            backend.finish_compiling()
        if k > 0 or repeats == 0:
            best = min(best, time.perf_counter() - start)
    return best


def paper_schedule(basis: cuanto.Basis, backend: Any, per_integral: bool, budget: float) -> dict[str, Any]:
    """Time one warm run, of a sample if the whole would take too long."""
    for part in (0.001, 0.01, 0.1, 1.0):
        sample = Sample(backend, per_integral, part)
        seconds = min(timed(basis, sample, 0) for _ in range(2)) if part < 1.0 else timed(basis, sample, 0)
        fraction = sample.done / sample.requested
        if fraction == 1.0 or seconds * min(10.0, 1.0 / fraction) > budget:
            break
    return {"seconds": seconds / fraction, "sampled": fraction}


def measure(name: str, backend: Any, options: argparse.Namespace) -> dict[str, Any]:
    """Measure a row of the tables."""
    basis = basis_of(name)
    ci, sp, _ = PAPER[name]
    row: dict[str, Any] = {"system": name, **counts(basis), "paper": {"1B1CI": ci, "1B1SP": sp}}
    jobs = recorded(basis, backend.name)
    row["launched_1B1SP"] = sum(primitive_quartets(job) for job in jobs)
    row["launched_1B1CI"] = sum(primitive_quartets(job) * job.columns * functions_of(job) for job in jobs)
    classes = {(job.operator, job.bra, job.ket, job.algorithm) for job in jobs}
    row["classes"] = len(classes)
    start = time.perf_counter()
    if options.workers > 1:
        with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
            order = sorted(classes, key=lambda c: -sum(c[1].l + c[2].l))
            list(pool.map(prepare, order, [backend.name] * len(order), chunksize=1))
    row["tables"] = time.perf_counter() - start
    row["auto"] = timed(basis, backend, options.repeats)
    if backend.name == "cuda":
        from cuanto.backends.cuda.backend import CudaBackend

        for label, schedule in SCHEDULES.items():
            row[label] = paper_schedule(basis, CudaBackend(schedule), label == "1B1CI", options.budget)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--only", nargs="+", choices=list(PAPER), default=list(PAPER), metavar="SYSTEM")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--budget", type=float, default=10.0, help="seconds for a schedule of the paper in one system")
    parser.add_argument("--workers", type=int, default=1, help="processes that make index tables beforehand")
    parser.add_argument("--json", help="write the result here")
    options = parser.parse_args()
    backend: Backend = get_backend(options.backend)
    rows = []
    for name in options.only:
        rows.append(measure(name, backend, options))
        print(rows[-1], flush=True)
        save(options.json, {"benchmark": "mcmurchie_davidson", "machine": machine(backend), "systems": rows})


if __name__ == "__main__":
    main()
