"""Where the time of a first calculation goes: in a process that starts with empty caches, and in one with full caches.

    python benchmarks/first_minute.py [CASE ...] [--backend cuda] [--json FILE]

Each case runs in three processes: the first starts with empty caches (cuanto's, CuPy's, NVRTC's and the driver's), the
second fills them and times warm calculations, and the third starts with full caches. The time of the main thread is
attributed to steps by sampling its stack every ten milliseconds; compilations are also listed one by one. `--sources
FILE` keeps the texts of all kernels, which `benchmarks/compilers.py` compiles again without a GPU, with other options.
"""

from __future__ import annotations

import argparse
import compileall
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cold_profile import STEPS, Profile
from common import BASIS_PATH, ROOT, geometry, machine, save

OWN = ROOT / "benchmarks" / "data"


@dataclass(frozen=True)
class Case:
    """A calculation, and target times on an H200: `cold` with empty caches, `full` in a new process with full ones."""

    molecule: str
    method: str
    basis: str
    aux: str | None = None
    fitting: str = "none"
    gradient: bool = False
    cold: float | None = None
    full: float | None = None


CASES = {
    "methane": Case("alkane_01", "hf", "cc-pvdz", "cc-pvdz-jkfit", "jk", cold=3.0, full=1.2),
    "caffeine": Case("caffeine", "b3lyp", "def2-svp", "def2-universal-jkfit", "jk", cold=4.0),
    "ribavirin": Case("ribavirin", "pbe", "def2-tzvp", "def2-universal-jkfit", "j", cold=5.0, full=2.0),
    "naphthalene": Case("naphthalene", "hf", "6-31g**", cold=5.0),
    "taxol": Case("taxol", "b3lyp", "def2-tzvp", "def2-universal-jkfit", "jk"),
    "bromomethane": Case("bromomethane", "hf", "cc-pvqz", cold=12.0),
    "gradient": Case("water_01", "b3lyp", "def2-svp", "def2-universal-jkfit", "jk", gradient=True, cold=10.0),
    "sulfur-dioxide": Case("sulfur_dioxide", "hf", "cc-pvqz"),
}


def calculate(case: Case, backend: str) -> float:
    """Run a calculation once; returns its energy."""
    import cuanto

    file = geometry(case.molecule)
    molecule = cuanto.Molecule.from_xyz(str(file if file.exists() else OWN / file.name))
    run = cuanto.gradient if case.gradient else cuanto.energy
    aux: dict[str, Any] = {"auxbasis": case.aux} if case.aux else {}
    return float(run(molecule, case.method, case.basis, fitting=case.fitting, backend=backend, **aux).energy)


def child(name: str, backend: str, sampled: bool, repeat: int) -> None:
    """Work of a child process: print a record of the first calculation and the times of further ones."""
    started = float(os.environ["FIRST_MINUTE_STARTED"])
    profile = Profile(started, sampled)
    with profile:
        energy = calculate(CASES[name], backend)
    record = {"seconds": time.time() - started, "energy": energy, **profile.record()}
    again = []
    for _ in range(repeat):
        begin = time.perf_counter()
        calculate(CASES[name], backend)
        again.append(time.perf_counter() - begin)
    print(json.dumps(record | {"again": again, "sources": profile.sources}), flush=True)
    if repeat:  # fill the caches for the next process
        from cuanto.backends.base import get_backend

        get_backend(backend).finish_compiling()


BARE = """
import time
t = [time.perf_counter()]
import cupy; t.append(time.perf_counter())
cupy.cuda.runtime.free(0); t.append(time.perf_counter())
A = cupy.asarray([[2.0, 1.0], [1.0, 3.0]]); (A @ A).get(); t.append(time.perf_counter())
cupy.linalg.eigh(A)[0].get(); t.append(time.perf_counter())
print([b - a for a, b in zip(t, t[1:])])
"""
"""Program that prints the times any use of CuPy takes in a new process: import, context, first product, eigenvalues."""


def environment(folder: Path) -> dict[str, str]:
    """Environment variables that put all caches into a folder and name the basis files of tests and benchmarks."""
    paths = {"CUANTO_CACHE": "cuanto", "CUPY_CACHE_DIR": "cupy", "CUDA_CACHE_PATH": "driver"}
    made = {name: str(folder / place) for name, place in paths.items()}
    return {**os.environ, **made, "PYTHONPATH": str(ROOT / "src"), "CUANTO_BASIS_PATH": BASIS_PATH}


def run(name: str, backend: str, folder: Path, sampled: bool, repeat: int = 0) -> dict[str, Any]:
    """Run a child process; returns its record, with the seconds until it ended."""
    command = [sys.executable, __file__, "--child", name, "--backend", backend, "--repeat", str(repeat)]
    start = time.time()
    given = {**environment(folder), "FIRST_MINUTE_STARTED": str(start)}
    done = subprocess.run([*command, *([] if sampled else ["--plain"])], capture_output=True, text=True, env=given)
    if done.returncode != 0:
        return {"error": done.stderr.strip()[-2000:]}
    record: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return record | {"process_seconds": time.time() - start}


def bare(folder: Path) -> list[float]:
    """Seconds of import, context, product and eigenvalues without cuanto; the second run, with full caches."""
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", BARE], capture_output=True, text=True, env=environment(folder))
    return [float(x) for x in json.loads(done.stdout)] if done.returncode == 0 else []


def measure(name: str, options: Any, sources: dict[str, Any]) -> dict[str, Any]:
    """Measure a case: records with empty and with full caches, and warm times."""
    # cuanto's helper process, which compiles kernels for later calculations, may still write to the folder at the end
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        cold = run(name, options.backend, Path(folder), not options.plain)
        again = options.repeat and name not in options.first_only and "error" not in cold
        warm = run(name, options.backend, Path(folder), False, options.repeat) if again else {}
        full = run(name, options.backend, Path(folder), not options.plain) if again else {}
    for record in (cold, warm, full):
        sources |= record.pop("sources", {})
    cold["again"] = warm.get("again", [])
    show(name, cold, full)
    return {"case": asdict(CASES[name]), "cold": cold, "full": full}


def show(name: str, *records: dict[str, Any]) -> None:
    """Print times, steps, compilations and longest calls."""
    for title, record in zip(("empty caches", "full caches"), records, strict=True):
        if "error" in record:
            print(f"{name}, {title}: {record['error']}")
        if "seconds" not in record:
            continue
        warm = f", warm {min(record['again']):.2f} s" if record["again"] else ""
        print(f"{name}, {title}: {record['process_seconds']:.2f} s, energy {record['energy']:.9f}{warm}")
        for step, seconds in sorted(record["main_thread"].items(), key=lambda x: -x[1]):
            if seconds > 0.02:
                print(f"    {seconds:7.3f} s  {STEPS.get(step, step)}")
        for kind in ("nvrtc", "cupy", "compiler"):
            found = [c for c in record["compilations"] if c["kind"] == kind]
            if found:
                busy = sum(c["seconds"] for c in found)
                longest = max(found, key=lambda c: c["seconds"])
                print(
                    f"    {kind}: {len(found)} kernels, {busy:.2f} s in all, from {found[0]['at']:.2f} s to "
                    f"{max(c['at'] + c['seconds'] for c in found):.2f} s; longest {longest['name']} "
                    f"{longest['seconds']:.2f} s"
                )
        missed = [c for c in record["compilations"] if c["kind"] == "cupy" and c["thread"] == "MainThread"]
        if missed:
            print("    in the main thread: " + ", ".join(f"{c['name']} ({c['line']})" for c in missed))
        calls = Counter(record["calls"]).most_common(12)
        print("    longest calls: " + ", ".join(f"{call} {seconds:.2f}" for call, seconds in calls))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"{', '.join(CASES)}; by default all but taxol")
    parser.add_argument("--backend", default="cuda", choices=("cpu", "cuda"))
    parser.add_argument(
        "--repeat", type=int, default=1, help="number of warm calculations; 0: run only the first process"
    )
    parser.add_argument("--first-only", nargs="+", default=[], metavar="CASE", help="of these, only the first process")
    parser.add_argument("--plain", action="store_true", help="without samples of the stack")
    parser.add_argument("--json", help="write the result here")
    parser.add_argument("--sources", help="write the texts of all kernels here (json.gz)")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child, options.backend, not options.plain, options.repeat)
        return
    compileall.compile_dir(ROOT / "src", quiet=1)  # as in an installed package
    from cuanto.backends.base import get_backend

    record: dict[str, Any] = {"benchmark": "first_minute", "machine": machine(get_backend(options.backend))}
    if options.backend == "cuda":
        with tempfile.TemporaryDirectory() as folder:
            record["bare"] = bare(Path(folder))
        print(f"import, context, product, eigenvalues without cuanto: {record['bare']}")
    sources: dict[str, Any] = {}
    record["cases"] = {}
    for name in [*options.cases, *options.first_only] or [name for name in CASES if name != "taxol"]:
        record["cases"][name] = measure(name, options, sources)
        save(options.json, record)
    if options.sources:
        Path(options.sources).write_bytes(gzip.compress(json.dumps(sources).encode()))


if __name__ == "__main__":
    main()
