"""Time that NVRTC needs for the kernels of a calculation, without a GPU: by option, by threads, by phase.

    python benchmarks/first_minute.py caffeine --sources kernels.json.gz    # on a machine with a GPU
    python benchmarks/compilers.py kernels.json.gz [--threads 1 2 16] [--tiers full mid] [--processes]

Every text is compiled with NVRTC's own cache off. `--phases` lists each kernel's front end, optimiser and assembler.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import time
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import common  # noqa: F401  (finds cuanto)

from cuanto.backends.cuda.nvrtc import compile_nvrtc, nvrtc_version

TIERS = {
    "full": [],
    "mid": ["--Ofast-compile=mid"],
    "min": ["--Ofast-compile=min"],
    "max": ["--Ofast-compile=max"],
    "split": ["--split-compile=0"],
}
PHASE = re.compile(r"kernel\.cu, ([^,]+), ([\d.]+), ms")


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
    parser.add_argument("sources", type=Path)
    parser.add_argument("--kinds", nargs="*", default=["nvrtc", "cupy"])
    parser.add_argument("--threads", nargs="*", type=int, default=[1])
    parser.add_argument("--tiers", nargs="*", default=["full", "mid"], choices=TIERS)
    parser.add_argument("--processes", action="store_true", help="also time a pool of processes")
    parser.add_argument("--phases", action="store_true", help="list each kernel")
    parser.add_argument("--skip", default=" ", help="leave out kernels whose names begin with this")
    parser.add_argument("--arch", default="sm_90")
    options = parser.parse_args()
    everything = json.loads(gzip.decompress(options.sources.read_bytes())).values()
    print("NVRTC {}.{}".format(*nvrtc_version()))
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
            if options.phases:
                for kernel, f in sorted(zip(kernels, found, strict=True), key=lambda x: -x[1]["seconds"]):
                    print(f"  {f['seconds']:.3f} {kernel['name']} {f}")


if __name__ == "__main__":
    main()
