"""Measure tuning parameters on this machine and write them to src/cuanto/tuning/<backend>.json.

    python tools/tune.py numbers --backend cpu                          # every number, one after the other: hours
    python tools/tune.py numbers grid.blocks j.threads --backend cuda   # these only
    python tools/tune.py algorithms --backend cpu [--centres 4 | --max-l 3 --max-aux 4] [--all-schedules]

`numbers`: the case of a number is timed with its current value and with that multiplied by each of --factors, each in a
separate process; the fastest value is written with machine and date if it is faster by more than --gain. Run it on an
idle machine. Kernels whose text contains a number change with it: run `python tests/support/golden.py`, then the tests.
`algorithms`: Head-Gordon-Pople and McMurchie-Davidson for every class of three- or four-centre integrals; the ratios of
their times are added to the file. All times are printed, --json keeps them as well.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "benchmarks")]

from common import geometry, last_number, machine  # noqa: E402

import cuanto  # noqa: E402
from cuanto import tuning  # noqa: E402
from cuanto.arrays import Ints  # noqa: E402
from cuanto.backends.base import Backend, Job, get_backend  # noqa: E402
from cuanto.integrals.batches import BraBatch, ket_batch  # noqa: E402
from cuanto.integrals.engine import Engine  # noqa: E402
from cuanto.integrals.pairs import RowMap, pair_batches, pair_kets  # noqa: E402
from cuanto.integrals.segments import SegmentClass  # noqa: E402
from cuanto.kernels.build import class_name, cost_of  # noqa: E402

RESULT_NUMBERS = 12_000_000
"""Approximate number of integrals computed for a class."""
PRIMITIVES = (1, 3)
"""Numbers of primitives of a shell."""
STRAIGHT_LIMIT = 9000
"""Operations above which a straight-line kernel is not tried."""
FILES = ROOT / "src" / "cuanto" / "tuning"
WARM_RUNS = 3


def energy_case(name: str, calculate: Callable[..., object] = cuanto.energy, **options: Any) -> Callable[[str], object]:
    """A whole calculation of a molecule of the test data."""
    molecule = cuanto.Molecule.from_xyz(geometry(name))
    return lambda backend: calculate(molecule, backend=backend, **options)


def integrals_case(backend: str) -> object:
    """Three-centre integrals of caffeine."""
    molecule = cuanto.Molecule.from_xyz(geometry("caffeine"))
    basis, auxiliary = (cuanto.Basis(name, molecule) for name in ("def2-svp", "def2-universal-jkfit"))
    return cuanto.integrals.eri_3c(basis, auxiliary, packed=True, backend=backend)


def atoms_case(backend: str) -> object:
    """Radon in 30 functions of each symmetry."""
    from atoms import radon

    from cuanto.atomic import ScfSettings, solve

    return solve(radon(30), ScfSettings(), get_backend(backend))


CASES: dict[str, Callable[[str], object]] = {
    "integrals": integrals_case,
    "direct": energy_case("naphthalene", method="hf", basis="def2-svp", fitting="none"),
    "dft": energy_case("caffeine", method="b3lyp", basis="def2-svp", fitting="jk"),
    "gradient": energy_case("caffeine", cuanto.gradient, method="hf", basis="def2-svp", fitting="jk"),
    "semiempirical": energy_case("water_128", method="pm6"),
    "atoms": atoms_case,
    "first_call": energy_case("water_04", method="b3lyp", basis="def2-svp"),
}
"""Calculations that are timed to tune a number; `first_call` starts from an empty kernel cache."""


def run_case(name: str, backend: str) -> None:
    """Print the seconds of a case: of the first call, or the best of several warm ones."""
    seconds = []
    for _ in range(1 if name == "first_call" else 1 + WARM_RUNS):
        start = time.perf_counter()
        CASES[name](backend)
        seconds.append(time.perf_counter() - start)
    print(min(seconds))


def case_seconds(content: dict[str, Any], case: str, backend: str) -> float:
    """Time a case in a separate process, with this content of the tuning file."""
    with tempfile.TemporaryDirectory() as folder:
        for language in tuning.LANGUAGES:
            given = content if language == backend else tuning.content(language)
            (Path(folder) / f"{language}.json").write_text(as_text(given))
        environment = {"CUANTO_TUNING": folder} | ({"CUANTO_CACHE": folder} if case == "first_call" else {})
        return last_number([sys.executable, __file__, "case", case, "--backend", backend], **environment)


def as_text(content: dict[str, Any]) -> str:
    """A tuning file with a line for every number and class."""
    parts = [f'"machine": {json.dumps(content["machine"])}']
    for part in ("numbers", "md_over_hgp"):
        lines = [f"  {json.dumps(name)}: {json.dumps(entry)}" for name, entry in content[part].items()]
        parts.append(f'"{part}": {{\n' + ",\n".join(lines) + "\n}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def tune_numbers(options: argparse.Namespace) -> None:
    """Time every number's case with other values, and write those that are faster."""
    here = machine(get_backend(options.backend))
    for name in options.names or tuning.content(options.backend)["numbers"]:
        content = json.loads((FILES / f"{options.backend}.json").read_text())
        entry = content["numbers"][name]
        usual, times = entry["value"], {}
        for factor in (1.0, *options.factors):
            entry["value"] = value = type(usual)(usual * factor)
            times[value] = case_seconds(content, entry["case"], options.backend)
            print(f"{name} = {value}: {times[value]:.3f} s", flush=True)
        best = min(times, key=lambda value: times[value])
        if times[best] < (1.0 - options.gain) * times[usual]:
            entry |= {"value": best, "machine": here.get("gpu", here["processor"]), "date": here["date"]}
            (FILES / f"{options.backend}.json").write_text(as_text(content))
            print(f"{name} = {best} is written instead of {usual}", flush=True)


def segment_class(rng: np.random.Generator, l: int, count: int, primitives: int) -> SegmentClass:
    """Shells of ordinary size at random positions."""
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

    With `begin`, only the compilation of the kernels is started, so that all classes compile concurrently.
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
    """Bra and ket angular momenta of all classes asked for."""
    sides = [(la, lb) for la in range(options.max_l + 1) for lb in range(la + 1)]
    if options.centres == 4:
        return [(bra, ket) for bra in sides for ket in sides]
    return [(bra, (lc,)) for bra in sides for lc in range(options.max_aux + 1)]


def tune_algorithms(options: argparse.Namespace) -> None:
    """Time both algorithms for every class, and write the ratios."""
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
    here = machine(next(iter(found.values())))
    if options.json:
        record = {"machine": here, "md_over_hgp": ratios, "times": rows}
        Path(options.json).write_text(json.dumps(record, indent=1) + "\n")
    if not options.all_schedules:
        shipped = FILES / f"{options.backend}.json"
        content = json.loads(shipped.read_text())
        content |= {"machine": here, "md_over_hgp": content["md_over_hgp"] | ratios}
        Path(options.table or shipped).write_text(as_text(content))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    numbers = commands.add_parser("numbers", help="tune numbers, one after the other")
    numbers.add_argument("names", nargs="*", help="names of numbers (default: all)")
    numbers.add_argument("--factors", type=float, nargs="*", default=[0.5, 2.0])
    numbers.add_argument("--gain", type=float, default=0.03, help="smallest fraction of the time that must be saved")
    case = commands.add_parser("case", help="print the seconds of one case")
    case.add_argument("case", choices=CASES)
    algorithms = commands.add_parser("algorithms", help="McMurchie-Davidson or Head-Gordon-Pople")
    algorithms.add_argument("--centres", type=int, choices=(3, 4), default=3)
    algorithms.add_argument("--max-l", type=int, default=3)
    algorithms.add_argument("--max-aux", type=int, default=4)
    algorithms.add_argument("--all-schedules", action="store_true", help="force each schedule; write no table")
    algorithms.add_argument("--json", help="keep all times here")
    algorithms.add_argument("--table", help="write the file here instead of into the package")
    for command in (numbers, case, algorithms):
        command.add_argument("--backend", choices=tuning.LANGUAGES, default="cpu")
    options = parser.parse_args()
    if options.command == "case":
        run_case(options.case, options.backend)
    else:
        {"numbers": tune_numbers, "algorithms": tune_algorithms}[options.command](options)


if __name__ == "__main__":
    main()
