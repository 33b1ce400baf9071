"""Texts of the J engine's kernels: a straight-line one per class of Hermite orders, and a general one per target."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from cuanto.kernels.abi import Arguments, parameters
from cuanto.kernels.build import Source, template
from cuanto.kernels.cost import BOYS_OPERATIONS
from cuanto.kernels.emit.cpp import CPP
from cuanto.kernels.emit.cuda import CUDA
from cuanto.kernels.emit.syntax import straight_line
from cuanto.kernels.recurrences.boys import MAX_ORDER
from cuanto.kernels.recurrences.components import cheapest_axis, raised
from cuanto.kernels.recurrences.hermite_coulomb import GEOMETRY, hermite_count, interaction
from cuanto.kernels.recurrences.mcmurchie_davidson import hermite_tuples

KETS = 16
"""Kets in a block of the CPU's records: one or two vectors, whatever the number type."""
CHUNK = 64
"""Blocks of kets after which sums in single precision are added up in double."""
THREADS = 128
"""Bras of a block of threads: not many, since all of them go as far as the one with the largest bound."""
TILE = 32
"""Kets in shared memory at a time."""
UNROLL_LIMIT = {"cpu": 3000, "cuda": 10000}
"""Multiply-adds of an interaction from which the general kernel serves. Straight-line code is faster by 3 at orders
(4|4) and by 2 at (5|5) on the CPU, on an H200 by 10 at (4|4) and by 2.4 at (6|6)."""

CPU_RANGE: Arguments = (("INDEX", "begin"), ("INDEX", "end"))
CUDA_RANGE: Arguments = (("INDEX", "bras"), ("INDEX", "chunks"))
BATCH: Arguments = (
    ("const REAL*", "bra_record"),
    ("const int*", "ket_begin"),
    ("const int*", "ket_end"),
    ("const REAL*", "ket_record"),
    ("const REAL*", "boys_table"),
    ("double*", "out"),
)
GENERAL: Arguments = (
    ("int", "bra_order"),
    ("int", "ket_order"),
    ("int", "densities"),
    ("const int*", "tuples"),
)
STEP_THREADS = 64
"""Threads of a block of the steps around the interactions."""
STEPS: dict[str, Arguments] = {
    "j_density": (
        ("INDEX", "first"),
        ("int", "densities"),
        ("int", "functions"),
        ("int", "tuples"),
        ("const INDEX*", "places"),
        ("const double*", "X"),
        ("INDEX", "size"),
        ("const double*", "E"),
        ("const double*", "factor"),
        ("const double*", "W"),
        ("const INDEX*", "curve"),
        ("INDEX", "count"),
        ("double*", "H"),
        ("double*", "bound"),
        ("INDEX*", "key"),
    ),
    "j_reach": (
        ("INDEX", "groups"),
        ("INDEX", "kets"),
        ("const double*", "rest"),
        ("const double*", "bounds"),
        ("double", "limit"),
        ("double", "single_limit"),
        ("int*", "split"),
        ("int*", "end"),
    ),
    "j_record": (
        ("INDEX", "kets"),
        ("int", "densities"),
        ("int", "tuples"),
        ("const INDEX*", "order"),
        ("const REAL*", "geometry"),
        ("const double*", "H"),
        ("const double*", "factor"),
        ("REAL*", "record"),
    ),
    "j_collect": (
        ("INDEX", "pairs"),
        ("INDEX", "first"),
        ("int", "densities"),
        ("int", "functions"),
        ("int", "tuples"),
        ("INDEX", "bras"),
        ("const INDEX*", "places"),
        ("const double*", "E"),
        ("const INDEX*", "rank"),
        ("const double*", "factor"),
        ("const double*", "V"),
        ("double*", "J"),
        ("INDEX", "size"),
    ),
}
"""Argument lists of the steps around the interactions on a GPU (templates/j_density.cuh, ...)."""


def operations(bra_order: int, ket_order: int, densities: int) -> int:
    """Multiply-adds of one interaction."""
    order = bra_order + ket_order
    recurrence = (order + 1) * (order + 2) * (order + 3) * (order + 4) // 24
    products = hermite_count(bra_order) * hermite_count(ket_order)
    return BOYS_OPERATIONS // 2 + 2 * order + recurrence + densities * products


def unrolled(target: str, bra_order: int, ket_order: int, densities: int) -> bool:
    """Is straight-line code right for this class?"""
    return operations(bra_order, ket_order, densities) <= UNROLL_LIMIT[target]


@cache
def tuple_table() -> NDArray[np.int32]:
    """What general kernels know of every tuple up to the highest order, by rising degree.

    Rows (t, u, v, axis to lower, power left, number of the tuple lowered once, and twice, 0).
    """
    tuples = hermite_tuples(MAX_ORDER)
    number = {t: i for i, t in enumerate(tuples)}
    rows = [(0,) * 8]
    for t in tuples[1:]:
        axis = cheapest_axis(t)
        once = raised(t, axis, -1)
        rows.append((*t, axis, once[axis], number[once], number.get(raised(once, axis, -1), 0), 0))
    table = np.array(rows, dtype=np.int32)
    table.setflags(write=False)
    return table


def _text(
    target: str,
    real: str,
    entry: str,
    arguments: Arguments,
    defines: dict[str, int],
    body: list[str],
    boys: bool = True,
) -> Source:
    syntax = CPP if target == "cpu" else CUDA
    lines = {"REAL": real, "ENTRY": entry, "PARAMETERS": parameters(arguments), "GEOMETRY": GEOMETRY[real], **defines}
    head = [f"#define {name} {value}" for name, value in lines.items()]
    if target == "cpu" and real == "float":
        head.append("#ifdef __AVX512F__\n#define LANES 16\n#endif")
    tools = [template("boys.h")] if boys else []
    parts = [*head, "typedef long long INDEX;", template(syntax.prelude), *tools, *body]
    return Source("\n".join(parts), entry, target, arguments)


def _interact(target: str, bra_order: int, ket_order: int, densities: int, real: str) -> str:
    """`interact(bra, ket, boys_table, acc)`: adds what one ket (a vector of kets) does to the bra's potential."""
    syntax = CPP if target == "cpu" else CUDA
    kernel = interaction(bra_order, ket_order)
    fields, step = GEOMETRY[real], " * KETS" if target == "cpu" else ""

    def read(record: str, index: int) -> str:
        return f"{record}[{index}]"

    def write(k: int, name: str) -> str:
        return " ".join(
            f"acc[{d * kernel.bra_count + t}] = "
            f"vfma(vload(ket + {fields + d * kernel.ket_count + s}{step}), {name}, acc[{d * kernel.bra_count + t}]);"
            for d in range(densities)
            for t, s in kernel.uses[k]
        )

    lines = straight_line(kernel.stage, range(len(kernel.uses)), syntax, read, write)
    order = bra_order + ket_order
    head = "FN void interact(const REAL* bra, const REAL* ket, const REAL* boys_table, VEC* acc) {"
    lines = [f"VEC X[3], base[{order + 1}];", f"j_base<{order}>(bra, ket, boys_table, X, base);", *lines]
    return "\n".join([head, *("    " + line for line in lines), "}", ""])


@cache
def straight_source(target: str, bra_order: int, ket_order: int, densities: int, real: str) -> Source:
    """The kernel of one class for so many densities."""
    width = densities * hermite_count(bra_order)
    defines = {
        "WIDTH": width,
        "FIELDS": GEOMETRY[real] + densities * hermite_count(ket_order),
        **({"KETS": KETS, "CHUNK": CHUNK} if target == "cpu" else {"KETS": 1, "THREADS": THREADS, "TILE": TILE}),
    }
    body = [template("j_base.h"), _interact(target, bra_order, ket_order, densities, real)]
    body.append(template("j_lane_cpu.h" if target == "cpu" else "j_thread.cuh"))
    entry = f"j_{bra_order}_{ket_order}_{densities}_{real}"
    arguments = (CPU_RANGE if target == "cpu" else CUDA_RANGE) + BATCH
    return _text(target, real, entry, arguments, defines, body)


@cache
def general_source(target: str, real: str) -> Source:
    """The kernel of all classes: orders and number of densities are arguments."""
    if target == "cpu":
        files, defines, arguments = ["batch_cpu.h", "j_base.h", "j_general_cpu.h"], {"KETS": KETS}, CPU_RANGE
        arguments += BATCH + GENERAL
    else:
        files, defines = ["j_base.h", "j_general.cuh"], {"KETS": 1, "THREADS": THREADS}
        arguments = CUDA_RANGE + BATCH + GENERAL + (("int", "lanes"),)
    return _text(target, real, "j_general", arguments, defines, [template(name) for name in files])


@cache
def step_source(step: str, real: str = "double") -> Source:
    """A step around the interactions, on CUDA."""
    defines = {"KETS": 1, "THREADS": STEP_THREADS}
    return _text("cuda", real, step, STEPS[step], defines, [template(f"{step}.cuh")], boys=False)
