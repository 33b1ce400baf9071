"""Compile the CUDA text of every class of integrals with NVRTC, for several architectures, without a GPU.

    python tools/check_cuda.py [--max-l 3] [--max-aux 4] [--max-four 2] [--arch sm_80 ...] [--jobs 2]

Straight-line kernels for the classes below the unrolling limit: one to three centres, and (ab|cd) to d, pure and
Cartesian. The general kernel and the kernels with a block of threads per integral or per quartet have one text for all
classes; each is compiled once for double and once for single precision. When a kernel fails, the log is printed and the
exit status is 1.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import product

from cuanto.backends.base import Job
from cuanto.backends.cuda.nvrtc import compile_nvrtc
from cuanto.backends.kinds import kind_of
from cuanto.errors import CompilerError
from cuanto.kernels.build import cost_of, source_of, unrolled
from cuanto.kernels.spec import BLOCK_SCHEDULES, KernelSpec, Shells

Class = tuple[str, Shells, Shells, str]
MANY_COLUMNS = 99


def classes(max_l: int, max_aux: int) -> Iterator[Class]:
    """Operator, bra, ket, algorithm. Two shells have the larger angular momentum first, on one side or on both."""
    orbital, aux = range(max_l + 1), range(max_aux + 1)
    for operator, a in product(("overlap", "kinetic", "dipole"), orbital):
        for b in range(a + 1):
            yield operator, Shells((a,)), Shells((b,)), "os"
    # Pairs with an s ket are used for nuclear attraction as well.
    bras = [Shells((a,)) for a in aux] + [Shells((a, b)) for a in orbital for b in range(a + 1)]
    for bra, c, algorithm in product(bras, aux, ("hgp", "md")):
        if len(bra.l) == 2 or bra.l[0] >= c:
            yield "coulomb", bra, Shells((c,)), algorithm


def four_centre_classes(max_l: int) -> Iterator[Class]:
    """(ab|cd) as used by `eri_4c`: the pair of higher angular momenta is the ket; pure and Cartesian."""
    pairs = [(a, b) for a in range(max_l + 1) for b in range(a + 1)]
    for i, bra in enumerate(pairs):
        for ket, pure, algorithm in product(pairs[i:], (True, False), ("hgp", "md")):
            if pure or max(bra + ket) > 1:
                yield "coulomb", Shells(bra, (pure, pure)), Shells(ket, (pure, pure)), algorithm


def specs(max_l: int, max_aux: int, max_four: int = 2) -> list[KernelSpec]:
    """Every distinct kernel: with one contraction column and with the largest number that its threads process; large
    ones first."""
    straight = []
    for kind in dict.fromkeys((*classes(max_l, max_aux), *four_centre_classes(max_four))):
        if unrolled("cuda", cost_of(*kind)):
            job = Job(*kind, columns=MANY_COLUMNS, bras=1, kets=1, primitives=1.0, arguments={})
            most = kind_of(job).at_once
            straight += [KernelSpec(*kind, "thread", columns=columns) for columns in sorted({1, most})]
    straight.sort(key=lambda s: -cost_of(s.operator, s.bra, s.ket, s.algorithm).text_operations)
    any_class = next(classes(0, 0))
    general = ("group", *BLOCK_SCHEDULES)
    return straight + [KernelSpec(*any_class, schedule, real) for schedule in general for real in ("double", "float")]


def compile_spec(spec: KernelSpec, architecture: str) -> tuple[float, str]:
    """Seconds, and the log when compilation failed."""
    text = source_of(spec).text
    start = time.perf_counter()
    try:
        compile_nvrtc(text, arch=architecture)
    except CompilerError as error:
        return time.perf_counter() - start, str(error)
    return time.perf_counter() - start, ""


def title(spec: KernelSpec) -> str:
    """Name of a kernel; general kernels do not belong to a class."""
    return spec.name if spec.schedule == "thread" else f"{spec.schedule}_kernel_{spec.real}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--max-l", type=int, default=3)
    parser.add_argument("--max-aux", type=int, default=4)
    parser.add_argument("--max-four", type=int, default=2, help="momenta of four-centre integrals")
    parser.add_argument("--arch", nargs="+", default=["sm_80", "sm_90", "sm_100"])
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()

    kernels = specs(options.max_l, options.max_aux, options.max_four)
    count = len({*classes(options.max_l, options.max_aux), *four_centre_classes(options.max_four)})
    print(f"{count} classes, {len(kernels)} distinct kernels, for {', '.join(options.arch)}", flush=True)
    start, failures = time.perf_counter(), 0
    seconds: dict[str, list[tuple[float, str]]] = {arch: [] for arch in options.arch}
    with ProcessPoolExecutor(options.jobs) as pool:
        jobs = {pool.submit(compile_spec, spec, arch): (spec, arch) for spec in kernels for arch in options.arch}
        for job in as_completed(jobs):
            spec, arch = jobs[job]
            elapsed, log = job.result()
            seconds[arch].append((elapsed, title(spec)))
            if log:
                failures += 1
                print(f"FAILED {arch}: {title(spec)}\n{log}", flush=True)
    for arch, measured in seconds.items():
        slowest, name = max(measured)
        total = sum(elapsed for elapsed, _ in measured)
        print(f"{arch}: {len(measured)} compiled in {total:.0f} s of work, slowest {slowest:.1f} s ({name})")
    print(f"{failures} failures" if failures else f"all compiled, {time.perf_counter() - start:.0f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
