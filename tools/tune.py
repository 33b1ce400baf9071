"""Time both algorithms for every class of three- or four-centre integrals and write the table of their ratios.

    python tools/tune.py --backend cpu  [--centres 4 | --max-l 3 --max-aux 4] [--all-schedules]

The ratios are added to src/cuanto/kernels/tuning/<backend>.json; all times are printed, --json keeps them as well.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "benchmarks")]

from common import machine  # noqa: E402

from cuanto.arrays import Ints  # noqa: E402
from cuanto.backends.base import Backend, Job  # noqa: E402
from cuanto.integrals.batches import BraBatch, ket_batch  # noqa: E402
from cuanto.integrals.engine import Engine  # noqa: E402
from cuanto.integrals.pairs import RowMap, pair_batches, pair_kets  # noqa: E402
from cuanto.integrals.segments import SegmentClass  # noqa: E402
from cuanto.kernels.build import cost_of  # noqa: E402
from cuanto.kernels.tuning import class_name  # noqa: E402

RESULT_NUMBERS = 12_000_000
PRIMITIVES = (1, 3)
STRAIGHT_LIMIT = 9000


def segment_class(rng: np.random.Generator, l: int, count: int, primitives: int) -> SegmentClass:
    """Shells of ordinary size at random places."""
    exponents = np.exp(rng.uniform(np.log(0.2), np.log(5.0), count * primitives))
    first, ao = np.arange(count + 1) * primitives, np.arange(count)[:, None] * (2 * l + 1)
    coefficients = rng.uniform(0.2, 1.0, (count * primitives, 1))
    return SegmentClass(l, True, first, exponents, coefficients, rng.normal(size=(count, 3)), ao)


def backends(name: str, all_schedules: bool) -> dict[str, Backend]:
    """The backend by schedule."""
    if name == "cpu":
        from cuanto.backends.cpu.backend import CpuBackend

        return {s: CpuBackend(schedule=s) for s in ("lane", "table")} if all_schedules else {"auto": CpuBackend()}
    from cuanto.backends.cuda.backend import CudaBackend

    return {s: CudaBackend(schedule=s) for s in ("thread", "group")} if all_schedules else {"auto": CudaBackend()}


def seconds(backend: Backend, jobs: list[Job]) -> float:
    """Best of eight warm runs."""
    best = float("inf")
    for k in range(9):
        start = time.perf_counter()
        backend.run([jobs])
        backend.synchronize()
        if k == 0:
            backend.finish_compiling()
        else:
            best = min(best, time.perf_counter() - start)
    return best


class Rows(RowMap):
    """Row of a pair in a rectangle."""

    def __call__(self, i: Ints, j: Ints) -> Ints:
        return i * self.nbf + j


def pairs(rng: np.random.Generator, momenta: tuple[int, int], count: int, primitives: int) -> tuple[BraBatch, int]:
    """count x count pairs of one class, and how many rows they have."""
    a, b = (segment_class(rng, l, count, primitives) for l in momenta)
    size = count * (2 * max(momenta) + 1)
    return pair_batches(a, b, False, Rows(size, packed=False), 1e-30, split=False)[0], size * size


def measure(
    found: dict[str, Backend], bra_l: tuple[int, int], ket_l: tuple[int, ...], primitives: int, begin: bool = False
) -> list[dict[str, Any]]:
    """All algorithms and schedules of one class; kets of one shell are not contracted.

    With `begin` only the compilation of the kernels is started, so that those of all classes go on side by side.
    """
    rng = np.random.default_rng(7)
    functions = prod(2 * l + 1 for l in (*bra_l, *ket_l))
    if len(ket_l) == 1:
        ket, columns = ket_batch(segment_class(rng, ket_l[0], 128, 1), coulomb=True), 128 * (2 * ket_l[0] + 1)
    else:
        as_bra, columns = pairs(rng, (ket_l[0], ket_l[1]), 12, primitives)
        ket = pair_kets(as_bra)
    count = int(np.clip(np.sqrt(RESULT_NUMBERS / (functions * ket.count)), 6, 64))
    bra, size = pairs(rng, bra_l, count, primitives)
    rows = []
    for schedule, backend in found.items():
        out = backend.zeros((size, columns), np.float64)
        engine = Engine(backend, out, row_stride=out.shape[1])
        for algorithm in ("hgp", "md"):
            operations = cost_of("coulomb", bra.shells, ket.shells, algorithm).text_operations
            if schedule in ("lane", "thread") and operations > STRAIGHT_LIMIT:
                continue
            job = engine.job("coulomb", bra, ket, algorithm, {**engine.bras([bra])[0], **engine.kets([ket])[0]})
            if begin:
                backend.run([[job]])
                continue
            best = seconds(backend, [job])
            rows.append(
                {
                    "class": class_name(bra.shells, ket.shells),
                    "primitives": job.primitives,
                    "algorithm": algorithm,
                    "schedule": schedule,
                    "operations": operations,
                    "ns_per_quartet": best * 1e9 / (job.bras * job.kets),
                }
            )
            print(rows[-1], flush=True)
    return rows


def classes(options: argparse.Namespace) -> list[tuple[tuple[int, int], tuple[int, ...]]]:
    """Bra and ket momenta of all classes asked for."""
    sides = [(la, lb) for la in range(options.max_l + 1) for lb in range(la + 1)]
    if options.centres == 4:
        return [(bra, ket) for bra in sides for ket in sides]
    return [(bra, (lc,)) for bra in sides for lc in range(options.max_aux + 1)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--centres", type=int, choices=(3, 4), default=3)
    parser.add_argument("--max-l", type=int, default=3)
    parser.add_argument("--max-aux", type=int, default=4)
    parser.add_argument("--all-schedules", action="store_true", help="force each schedule; write no table")
    parser.add_argument("--json", help="keep all times here")
    parser.add_argument("--table", help="write the ratios here instead of into the package")
    options = parser.parse_args()
    found = backends(options.backend, options.all_schedules)
    rows: list[dict[str, Any]] = []
    ratios: dict[str, list[tuple[float, float]]] = {}
    for bra_l, ket_l in classes(options):
        measure(found, bra_l, ket_l, PRIMITIVES[0], begin=True)
    for backend in found.values():
        backend.finish_compiling()
    for bra_l, ket_l in classes(options):
        for primitives in PRIMITIVES:
            mine = measure(found, bra_l, ket_l, primitives)
            rows += mine
            if not options.all_schedules:
                hgp, md = mine
                ratio = round(md["ns_per_quartet"] / hgp["ns_per_quartet"], 2)
                ratios.setdefault(hgp["class"], []).append((round(hgp["primitives"], 1), ratio))
    record = {"machine": machine(next(iter(found.values()))), "md_over_hgp": ratios}
    if options.json:
        Path(options.json).write_text(json.dumps({**record, "times": rows}, indent=1) + "\n")
    if not options.all_schedules:
        shipped = ROOT / "src" / "cuanto" / "kernels" / "tuning" / f"{options.backend}.json"
        known = json.loads(shipped.read_text())["md_over_hgp"] if shipped.exists() else {}
        target = Path(options.table or shipped)
        target.write_text(json.dumps({**record, "md_over_hgp": known | ratios}) + "\n")


if __name__ == "__main__":
    main()
