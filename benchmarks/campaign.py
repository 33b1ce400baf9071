"""Run long benchmarks of moving atoms as parallel processes: Baker's set, S22 dimers, frequencies of functionals.

    python benchmarks/campaign.py --work WORK --results benchmarks/results --seconds 400
    python benchmarks/campaign.py --work WORK --results RESULTS --backend cpu --only water "Water_dimer" oxygen:pbe

Each molecule is computed by a process that runs its benchmark, with a record in the folder of --work; all records of a
benchmark are then merged into one in the folder of --results. Processes with the GPU share it; the others have one
thread each. The longest start first. When the time is over, the processes are stopped. The same command continues: it
skips finished molecules and uses the journals of unfinished ones. With --keep there is no time limit.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import save
from frequencies import METHODS, MOLECULES
from optimization import baker_set, totals
from s22_frequencies import dimers

from cuanto.workers import ONE_THREAD

HERE = Path(__file__).parent
LANES = ("s22", "baker", "peer", "frequencies")


@dataclass(frozen=True)
class Task:
    """A process: its name, its lane (a benchmark with its own number of slots), record, arguments and expected cost."""

    name: str
    lane: str
    record: Path
    arguments: tuple[str, ...]
    cost: float

    def start(self, log: Path) -> subprocess.Popen[bytes]:
        """Start the process."""
        environment = {**os.environ, **ONE_THREAD, "PYSCF_MAX_MEMORY": "10000"}
        if self.lane in ("baker", "peer"):  # 6-31G** with six d functions, which the test data do not have
            environment["CUANTO_BASIS_PATH"] = ""
        script = str(HERE / self.arguments[0])
        command = [sys.executable, script, *self.arguments[1:], "--json", str(self.record)]
        with log.open("ab") as file:
            return subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, env=environment)


def tasks_of(options: argparse.Namespace) -> list[Task]:
    """All processes of the campaign that are not finished."""
    work, gpu = Path(options.work), options.backend == "cuda"
    found: list[Task] = []

    def add(name: str, lane: str, cost: float, *arguments: str) -> None:
        if options.only is None or name.split(" ", 1)[1] in options.only:
            record = work / lane / (name.replace(" ", "_").replace(":", "_") + ".json")
            if not record.with_suffix(".done").exists():
                found.append(Task(name, lane, record, arguments, cost))

    for name, molecule in dimers().items():
        more = ("--memory", "10") if gpu else ()
        place = ("--backend", options.backend, "--work", str(work / "s22"), "--workers", "0", *more)
        add(f"s22 {name}", "s22", molecule.natom**3, "s22_frequencies.py", "--only", name, *place)
    for name, about in baker_set()[1].items():
        script = ("optimization.py", "--only", name)
        add(f"baker {name}", "baker", about["atoms"] ** 3, *script, "--check", "--backend", options.backend)
        add(f"peer {name}", "peer", about["atoms"] ** 3, *script, "--peer-only")
    known = {(row["molecule"], row["method"]) for row in known_cases(options)}
    order = {"r2scan": 4.0, "b3lyp": 2.0, "pbe": 1.5, "hf": 0.1}
    for name, (text, multiplicity) in MOLECULES.items():
        for method in METHODS:
            cost = 2e4 * order[method] * (text.count(";") + 1) ** 2 * (1 if multiplicity == 1 else 2)
            script = ("frequencies.py", "--only", name, "--methods", method, "--differences")
            if (name, method) not in known:
                add(f"frequencies {name}:{method}", "frequencies", cost, *script)
    return sorted(found, key=lambda one: -one.cost)


def known_cases(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Cases of the given record of frequencies that are within the limits."""
    rows = json.loads(Path(options.known).read_text())["cases"] if options.known else []
    return [row for row in rows if row["within"]]


def run(tasks: list[Task], options: argparse.Namespace) -> None:
    """Run processes until all are finished or the time is over."""
    slots = {"s22": options.dimers, "baker": options.molecules, "peer": options.peers, "frequencies": options.cases}
    end, work = time.monotonic() + options.seconds, Path(options.work)
    running: list[tuple[Task, subprocess.Popen[bytes], float]] = []
    waiting = list(tasks)
    while (waiting or running) and (options.keep or time.monotonic() < end):
        for task in list(waiting):
            if sum(one.lane == task.lane for one, _, _ in running) < slots[task.lane]:
                waiting.remove(task)
                task.record.parent.mkdir(parents=True, exist_ok=True)
                running.append((task, task.start(task.record.with_suffix(".log")), time.monotonic()))
        time.sleep(0.2)
        for entry in list(running):
            task, process, begin = entry
            if process.poll() is not None:
                running.remove(entry)
                if process.returncode in (0, 1) and task.record.exists():
                    task.record.with_suffix(".done").touch()
                seconds = time.monotonic() - begin
                print(f"{task.name:40s} status {process.returncode}, {seconds:6.1f} s", flush=True)
        if not any(one.lane == "baker" for one in [*waiting, *(one for one, _, _ in running)]):
            slots["s22"] = options.dimers + options.molecules
    for task, process, begin in running:
        process.terminate()
        process.wait()
        print(f"{task.name:40s} ended after {time.monotonic() - begin:6.1f} s", flush=True)
    for task in waiting:
        print(f"{task.name:40s} not started", flush=True)
    (work / "left.txt").write_text("".join(f"{task.name}\n" for task in [*waiting, *(one for one, _, _ in running)]))


def merge(options: argparse.Namespace) -> None:
    """Merge the records of the processes into one for each benchmark."""
    work = Path(options.work)
    place = "h200" if options.backend == "cuda" else "cpu"
    parts = {lane: [json.loads(path.read_text()) for path in sorted((work / lane).glob("*.json"))] for lane in LANES}
    if parts["baker"] or parts["peer"]:
        rows: dict[str, dict[str, Any]] = {}
        for row in (row for part in [*parts["baker"], *parts["peer"]] for row in part["cases"]):
            rows[row["molecule"]] = rows.get(row["molecule"], {}) | row
        cases = sorted(rows.values(), key=lambda row: (row["atoms"], row["molecule"]))
        about = {name: value for name, value in (parts["baker"] or parts["peer"])[0].items() if name != "cases"}
        save(f"{options.results}/optimization_baker_{place}.json", about | totals(cases) | {"cases": cases})
    for lane, key, file in (("s22", "dimers", f"s22_frequencies_{place}"), ("frequencies", "cases", "frequencies_cpu")):
        if parts[lane]:
            about = {name: value for name, value in parts[lane][0].items() if name != key}
            joined = [row for part in parts[lane] for row in part[key]]
            joined += known_cases(options) if lane == "frequencies" else []
            save(f"{options.results}/{file}.json", about | {key: joined})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", required=True, help="folder of the processes' records, journals and output")
    parser.add_argument("--results", required=True, help="folder of the merged records")
    parser.add_argument(
        "--backend", default="cuda", choices=["cpu", "cuda"], help="backend of Baker's set and of the dimers"
    )
    parser.add_argument("--only", nargs="+", help="some molecules, dimers, or frequencies as molecule:method")
    parser.add_argument("--lanes", nargs="+", choices=LANES, default=LANES)
    parser.add_argument("--seconds", type=float, default=400.0)
    parser.add_argument("--keep", action="store_true", help="no time limit")
    parser.add_argument("--dimers", type=int, default=6, help="processes of S22")
    parser.add_argument("--molecules", type=int, default=5, help="processes of Baker's set")
    parser.add_argument("--peers", type=int, default=6, help="processes of geomeTRIC with PySCF")
    parser.add_argument("--cases", type=int, default=5, help="processes of frequencies")
    parser.add_argument("--known", help="a record of frequencies whose cases are kept")
    options = parser.parse_args()
    run([task for task in tasks_of(options) if task.lane in options.lanes], options)
    merge(options)


if __name__ == "__main__":
    main()
