"""Time that NVRTC needs for the kernels of a calculation, without a GPU: by option, by threads, by phase.

    python benchmarks/compilers.py --phases --json FILE
    python benchmarks/first_minute.py caffeine --sources kernels.json.gz    # on a machine with a GPU
    python benchmarks/compilers.py kernels.json.gz [--threads 1 2 16] [--tiers full mid] [--processes]

Without a file: the general kernels of first calculations, RI-B3LYP and direct HF of water/def2-SVP. Every text is
compiled with NVRTC's own cache off. `--phases` lists each kernel's front end, optimiser and assembler.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import time
from collections.abc import Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from common import geometry, machine, save

import cuanto
from cuanto.backends.base import Launch, get_backend
from cuanto.backends.cuda.nvrtc import compile_nvrtc, nvrtc_version
from cuanto.backends.simt.backend import SimtBackend, SimtProgram
from cuanto.kernels.build import general_source
from cuanto.kernels.text import Source

TIERS = {
    "full": [],
    "mid": ["--Ofast-compile=mid"],
    "min": ["--Ofast-compile=min"],
    "max": ["--Ofast-compile=max"],
    "split": ["--split-compile=0"],
}
PHASE = re.compile(r"kernel\.cu, ([^,]+), ([\d.]+), ms")


class FirstLaunch(Exception):
    """The calculation has requested its kernels and launches the first one."""


class Requests(SimtBackend):
    """Keeps the texts that a calculation requests, and stops it at its first launch."""

    def __init__(self) -> None:
        super().__init__()
        self.sources: dict[str, Source] = {}

    def compile(self, source: Source, later: bool = False) -> SimtProgram:
        self.sources[source.hash] = source
        return super().compile(source, later)

    def launch_all(self, launches: Sequence[Launch]) -> None:
        raise FirstLaunch

    def run(self, groups: Any) -> None:
        raise FirstLaunch


def first_kernels() -> list[dict[str, Any]]:
    """The general kernels of first calculations."""
    backend, water = Requests(), cuanto.Molecule.from_xyz(geometry("water_01"))
    for method, fitting in (("b3lyp", "jk"), ("hf", "none")):
        with suppress(FirstLaunch):
            cuanto.energy(water, method, "def2-svp", fitting=fitting, backend=backend)
    sources = [general_source("group", "double"), *backend.sources.values()]
    return [{"kind": "nvrtc", "name": source.entry, "text": source.text, "options": []} for source in sources]


def compile_one(kernel: dict[str, Any], arch: str, tier: str) -> dict[str, float]:
    """Seconds, CPU seconds and seconds by phase of a kernel, and the size of its code."""
    extra = [*kernel["options"], "--device-as-default-execution-space"] if kernel["kind"] == "cupy" else []
    options = ["--fmad=true", *extra, *TIERS[tier], "--no-cache", "--time=-"]
    start, cpu = time.perf_counter(), time.thread_time()
    code, log = compile_nvrtc(kernel["text"], arch, [x for x in options if "std=" not in x])
    found = {"seconds": time.perf_counter() - start, "cpu": time.thread_time() - cpu, "bytes": len(code)}
    return found | {phase: float(ms) / 1000 for phase, ms in PHASE.findall(log)}


def compile_all(kernels: list[dict[str, Any]], arch: str, tier: str, pool: Executor) -> tuple[float, list[Any]]:
    """Seconds until all kernels are compiled by the workers of a pool, and the figures of each."""
    for warm in [pool.submit(compile_one, min(kernels, key=lambda k: len(k["text"])), arch, tier) for _ in range(32)]:
        warm.result()
    start = time.perf_counter()
    futures = [pool.submit(compile_one, kernel, arch, tier) for kernel in kernels]
    found = [future.result() for future in futures]
    return time.perf_counter() - start, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", type=Path, nargs="?")
    parser.add_argument("--kinds", nargs="*", default=["nvrtc", "cupy"])
    parser.add_argument("--threads", nargs="*", type=int, default=[1])
    parser.add_argument("--tiers", nargs="*", default=["full", "mid"], choices=TIERS)
    parser.add_argument("--processes", action="store_true", help="also time a pool of processes")
    parser.add_argument("--phases", action="store_true", help="list each kernel")
    parser.add_argument("--skip", default=" ", help="leave out kernels whose names begin with this")
    parser.add_argument("--arch", default="sm_90")
    parser.add_argument("--json", help="write the figures of each kernel here")
    options = parser.parse_args()
    if options.sources is None:
        everything = first_kernels()
    else:
        everything = list(json.loads(gzip.decompress(options.sources.read_bytes())).values())
    version = "{}.{}".format(*nvrtc_version())
    print(f"NVRTC {version}")
    record = {"benchmark": "compilers", "machine": machine(get_backend("cpu")), "nvrtc": version, "rows": []}
    for kind in options.kinds:
        kernels = [k for k in everything if k["kind"] == kind and not k["name"].startswith(options.skip)]
        kernels = list({k["text"]: k for k in kernels}.values())
        for tier in options.tiers if kernels else ():
            for threads in options.threads:
                pools = [ThreadPoolExecutor, *([ProcessPoolExecutor] if options.processes else [])]
                for make in pools:
                    with make(threads) as pool:
                        seconds, found = compile_all(kernels, options.arch, tier, pool)
                    total = {k: sum(f.get(k, 0.0) for f in found) for k in found[0]}
                    figures = ", ".join(f"{k} {v:.2f}" for k, v in total.items() if k != "bytes")
                    print(
                        f"{kind} {tier}: {len(kernels)} kernels, {threads} {make.__name__[:7]}: {seconds:.2f} s; "
                        f"in all {figures}, {total['bytes'] / 1e6:.1f} MB"
                    )
            rows = sorted(zip(kernels, found, strict=True), key=lambda row: -row[1]["seconds"])
            record["rows"] += [{"kernel": kernel["name"], "tier": tier, **figures} for kernel, figures in rows]
            if options.phases:
                for kernel, of_kernel in rows:
                    print(f"  {of_kernel['seconds']:.3f} {kernel['name']} {of_kernel}")
    save(options.json, record)


if __name__ == "__main__":
    main()
