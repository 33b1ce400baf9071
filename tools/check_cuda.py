"""Compile the CUDA text of every class of integrals with NVRTC, for several architectures, without a GPU.

    python tools/check_cuda.py [--max-l 3] [--max-aux 4] [--arch sm_80 ...] [--jobs 2]

Classes that share one text (table-driven kernels) are compiled once per architecture. When a kernel fails,
the log is printed and the exit status is 1.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import product

from cuanto.backends.cuda.nvrtc import compile_nvrtc
from cuanto.errors import CompilerError
from cuanto.kernels.describe import describe

Case = tuple[str, tuple[int, ...], str]


def cases(max_l: int, max_aux: int) -> Iterator[Case]:
    """Integral, angular momenta, algorithm: each pair of orbital shells once, larger momentum first."""
    pairs = [(a, b) for a in range(max_l + 1) for b in range(a + 1)]
    for integral, pair in product(("overlap", "kinetic", "dipole", "nuclear"), pairs):
        yield integral, pair, "auto"
    for a in range(max_aux + 1):
        for b in range(a + 1):
            yield "2c", (a, b), "auto"
    for pair, aux, algorithm in product(pairs, range(max_aux + 1), ("hgp", "md")):
        yield "3c", (*pair, aux), algorithm


def compile_text(text: str, architecture: str) -> tuple[float, str]:
    """Seconds, and the log when compilation failed."""
    start = time.perf_counter()
    try:
        compile_nvrtc(text, arch=architecture)
    except CompilerError as error:
        return time.perf_counter() - start, str(error)
    return time.perf_counter() - start, ""


def distinct_texts(max_l: int, max_aux: int) -> dict[str, list[str]]:
    """Text -> the names of the classes that it serves."""
    texts: dict[str, list[str]] = {}
    for integral, momenta, algorithm in cases(max_l, max_aux):
        text = describe(integral, momenta, algorithm, "cuda", "auto").source.text
        name = f"{integral} {' '.join(map(str, momenta))} {algorithm}"
        texts.setdefault(text, []).append(name)
    return texts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--max-l", type=int, default=3)
    parser.add_argument("--max-aux", type=int, default=4)
    parser.add_argument("--arch", nargs="+", default=["sm_80", "sm_90", "sm_100"])
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()

    texts = distinct_texts(options.max_l, options.max_aux)
    classes = sum(map(len, texts.values()))
    print(f"{classes} classes, {len(texts)} distinct kernels, for {', '.join(options.arch)}", flush=True)
    failures, seconds = 0, {arch: [] for arch in options.arch}
    with ProcessPoolExecutor(options.jobs) as pool:
        jobs = {pool.submit(compile_text, text, arch): (text, arch) for arch in options.arch for text in texts}
        for job in as_completed(jobs):
            text, arch = jobs[job]
            elapsed, log = job.result()
            seconds[arch].append((elapsed, texts[text][0]))
            if log:
                failures += 1
                print(f"FAILED {arch}: {', '.join(texts[text])}\n{log}", flush=True)
    for arch, measured in seconds.items():
        slowest, name = max(measured)
        print(f"{arch}: {len(measured)} compiled, slowest {slowest:.1f} s ({name})")
    print(f"{failures} failures" if failures else "all compiled")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
