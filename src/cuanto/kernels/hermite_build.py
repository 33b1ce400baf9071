"""Texts of the J engine's kernels: a straight-line one per class of Hermite orders, and a general one per target."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from cuanto import tuning
from cuanto.kernels.abi import SCRATCH, Arguments, parse_arguments
from cuanto.kernels.cost import BOYS_OPERATIONS
from cuanto.kernels.emit import function, straight_line
from cuanto.kernels.recurrences.boys import MAX_ORDER
from cuanto.kernels.recurrences.components import cheapest_axis, shift_power
from cuanto.kernels.recurrences.hermite_coulomb import GEOMETRY, hermite_count, interaction
from cuanto.kernels.recurrences.mcmurchie_davidson import hermite_tuples
from cuanto.kernels.text import SUMS, Source, assemble

KETS = 16
"""Kets in a block of the CPU's records: one or two vectors of either number type."""
CHUNK = 64
"""Blocks of kets after which sums in single precision are added up in double."""
THREADS = tuning.size("cuda", "j.threads")
TILE = tuning.size("cuda", "j.tile_kets")


@dataclass(frozen=True)
class Grouping:
    """How bras and kets are grouped for a target: number of `bras` that share a range of kets, `kets` interleaved in a
    record, desired `blocks` of threads per multiprocessor (0: the kets of a job stay together), `shared` bytes of fast
    memory for a block of the general kernel; `bra_major`: the potentials of a bra are contiguous.
    """

    bras: int
    kets: int
    blocks: int
    shared: int
    bra_major: bool


BLOCKS = tuning.size("cuda", "j.blocks_per_processor")
GENERAL_SHARED = tuning.size("cuda", "j.general_shared_bytes")
GROUPINGS = {"cpu": Grouping(1, KETS, 0, 0, True), "cuda": Grouping(THREADS, 1, BLOCKS, GENERAL_SHARED, False)}
GENERAL_LANES = tuning.size("cuda", "j.general_lanes")
UNROLL_LIMIT = tuning.sizes("j.unroll_operations")

SIZES = {"cpu": {"KETS": KETS, "CHUNK": CHUNK}, "cuda": {"KETS": 1, "THREADS": THREADS, "TILE": TILE}}
"""Macros of a target."""
WIDER = {("cpu", "float"): "#ifdef __AVX512F__\n#define LANES 16\n#endif"}
"""Vectors of 16 numbers, twice as long as elsewhere: records come in blocks of KETS."""
STRAIGHT_SKELETONS = {"cpu": "j_lane_cpu.h", "cuda": "j_thread.cuh"}
GENERAL_SKELETONS = {"cpu": ("batch_cpu.h", "j_base.h", "j_general_cpu.h"), "cuda": ("j_base.h", "j_general.cuh")}

RANGE = {"cpu": parse_arguments("INDEX begin, INDEX end"), "cuda": parse_arguments("INDEX bras, INDEX chunks")}
BATCH = parse_arguments(
    "const REAL* bra_record, const int* ket_begin, const int* ket_end, const REAL* ket_record, const REAL* boys_table, "
    "double* out"
)
CLASS = parse_arguments("int bra_order, int ket_order, int densities, const int* tuples")
GENERAL = {"cpu": CLASS, "cuda": CLASS + parse_arguments("int lanes")}
STEP_THREADS = tuning.size("cuda", "j.step_threads")
SPARSE = parse_arguments(
    "INDEX rows, INDEX columns, const int* start, const int* index, const double* value, double scale, "
    "const double* in, double* out"
)
"""Products with a sparse matrix."""
FUNCTIONS = parse_arguments("INDEX first, int rows, int columns, int tuples, const int* table")
"""Pairs of primitives with `rows` and `columns` functions, the first one, Hermite tuples, and `tuple_table`."""
PAIRS = parse_arguments("const INDEX* u, const INDEX* v") + FUNCTIONS
CENTRES = parse_arguments(
    "const double* a_exponent, const double* a_centre, const double* b_exponent, const double* b_centre"
)
CLASSES = parse_arguments("const INDEX* classes")
"""Table of the classes of pairs (templates/j_classes.h)."""
PRIMITIVES = CENTRES + parse_arguments(
    "int la, const int* a_start, const int* a_power, const double* a_value, int lb, const int* b_start, "
    "const int* b_power, const double* b_value"
)
"""Both kinds of primitives: exponents, centres, highest angular momentum, polynomials (templates/j_pair.h)."""
DENSITY_OFFSETS = parse_arguments("INDEX origin, INDEX row, INDEX size")
"""Offsets of the densities of the functions of a block of pairs; `size`: numbers of one density."""
ATOMS = parse_arguments("const INDEX* a_atom, const INDEX* b_atom")
POTENTIAL = parse_arguments(
    "INDEX bra_stride, INDEX value_stride, const INDEX* rank, const double* factor, const double* V"
)
"""Potentials of the pairs of a class."""
STEPS: dict[str, Arguments] = {
    "j_select": CENTRES
    + parse_arguments(
        "int la, int lb, const double* a_size, const double* b_size, INDEX count, INDEX skip, INDEX place, int same, "
        "double threshold, bool* keep"
    ),
    "j_expand": FUNCTIONS
    + PRIMITIVES
    + parse_arguments(
        "const INDEX* numbers, INDEX from, INDEX base, INDEX count, INDEX* u, INDEX* v, const double* a_scale, "
        "const double* b_scale, double weight, int same, const double* W, double* E, double* geometry, "
        "double* factor, double* bound, INDEX* along"
    ),
    "j_transform": SPARSE,
    "j_product": SPARSE,
    "j_density": PAIRS
    + DENSITY_OFFSETS
    + parse_arguments(
        "INDEX start, INDEX number, int densities, const double* X, const double* E, const double* geometry, "
        "const double* factor, const double* W, const INDEX* along, double* H, double* bound, INDEX* key"
    ),
    "j_keys": CLASSES
    + parse_arguments(
        "int higher, const double* geometry, const double* bound, const INDEX* along, double* raised, INDEX* key"
    ),
    "j_bras": CLASSES
    + parse_arguments(
        "double smearing, const INDEX* order, const double* geometry, const double* raised, INDEX* rank, "
        "double* record, double* largest"
    ),
    "j_reach": CLASSES
    + parse_arguments(
        "INDEX groups, const double* rest, const double* bounds, double limit, double single_limit, int* split, "
        "int* last"
    ),
    "j_record": parse_arguments(
        "INDEX first, INDEX kets, int densities, int tuples, const int* table, const INDEX* order, "
        "const REAL* geometry, const double* H, const double* factor, REAL* record"
    ),
    "j_sum": parse_arguments("INDEX parts, INDEX plus, INDEX size, const double* potentials, double* V"),
    "j_collect": PAIRS + DENSITY_OFFSETS + POTENTIAL + parse_arguments("int densities, const double* E, double* J"),
    "j_force": PAIRS
    + PRIMITIVES
    + DENSITY_OFFSETS
    + ATOMS
    + POTENTIAL
    + parse_arguments("const double* X, double* gradient"),
    "j_overlap": PAIRS
    + PRIMITIVES
    + DENSITY_OFFSETS
    + ATOMS
    + parse_arguments("double kinetic, const double* X, double* gradient"),
}
"""Arguments of the steps around the interactions (templates/j_density.h, ...), without the range of items."""
HEADERS: dict[str, tuple[str, ...]] = dict.fromkeys(("j_keys", "j_bras", "j_reach"), ("j_classes.h",))
HEADERS |= dict.fromkeys(("j_select", "j_expand", "j_collect", "j_force", "j_overlap"), ("j_pair.h",))
HEADERS["j_density"] = ("j_pair.h", "j_classes.h")
"""Templates that the steps include."""
TEAM_STEPS = ("j_expand", "j_transform", "j_density", "j_bras", "j_force", "j_overlap")
"""Steps in which a team of threads shares an item."""
FORCE_STEPS = ("j_force", "j_overlap")
"""Steps that add to forces."""


@cache
def operations(bra_order: int, ket_order: int, densities: int) -> int:
    """Multiply-adds of one interaction."""
    order = bra_order + ket_order
    recurrence = (order + 1) * (order + 2) * (order + 3) * (order + 4) // 24
    products = hermite_count(bra_order) * hermite_count(ket_order)
    return BOYS_OPERATIONS // 2 + 2 * order + recurrence + densities * products


def unrolled(target: str, bra_order: int, ket_order: int, densities: int) -> bool:
    """Whether straight-line code is used for this class."""
    return operations(bra_order, ket_order, densities) <= UNROLL_LIMIT[target]


@cache
def tuple_table() -> NDArray[np.int32]:
    """Table of all tuples up to the highest order for the general kernels, by rising degree.

    Rows (t, u, v, axis to lower, remaining power, number of the tuple lowered once, and twice, 0).
    """
    tuples = hermite_tuples(MAX_ORDER)
    number = {t: i for i, t in enumerate(tuples)}
    rows = [(0,) * 8]
    for t in tuples[1:]:
        axis = cheapest_axis(t)
        once = shift_power(t, axis, -1)
        rows.append((*t, axis, once[axis], number[once], number.get(shift_power(once, axis, -1), 0), 0))
    table = np.array(rows, dtype=np.int32)
    table.setflags(write=False)
    return table


def _source(
    entry: str,
    target: str,
    real: str,
    arguments: Arguments,
    defines: Mapping[str, int],
    body: Iterable[str],
    threads: int = THREADS,
    per_block: int = 1,
) -> Source:
    macros = {"GEOMETRY": GEOMETRY[real], **defines}
    before = WIDER.get((target, real), "")
    return assemble(entry, target, real, arguments, macros, body, before, threads, per_block)


def _interact(bra_order: int, ket_order: int, densities: int, real: str) -> str:
    """`interact(bra, ket, boys_table, acc)`: adds the contribution of one ket (a vector of kets) to the bra's
    potential."""
    kernel = interaction(bra_order, ket_order)
    fields = GEOMETRY[real]

    def read(record: str, index: int) -> str:
        return f"{record}[{index}]"

    def write(k: int, name: str) -> str:
        return " ".join(
            f"acc[{d * kernel.bra_count + t}] = "
            f"vfma(vload(ket + {fields + d * kernel.ket_count + s} * KETS), {name}, acc[{d * kernel.bra_count + t}]);"
            for d in range(densities)
            for t, s in kernel.uses[k]
        )

    lines = straight_line(kernel.stage, read, write)
    order = bra_order + ket_order
    head = "FN void interact(const REAL* bra, const REAL* ket, const REAL* boys_table, VEC* acc)"
    first = [f"VEC X[3], base[{order + 1}];", f"j_base<{order}>(bra, ket, boys_table, X, base);"]
    return function(head, [*first, *lines])


@cache
def straight_source(target: str, bra_order: int, ket_order: int, densities: int, real: str) -> Source:
    """Straight-line kernel of one class for a number of densities."""
    fields = GEOMETRY[real] + densities * hermite_count(ket_order)
    defines = {"WIDTH": densities * hermite_count(bra_order), "FIELDS": fields, **SIZES[target]}
    interact = _interact(bra_order, ket_order, densities, real)
    entry = f"j_{bra_order}_{ket_order}_{densities}_{real}"
    body = ("boys.h", "j_base.h", interact, STRAIGHT_SKELETONS[target])
    return _source(entry, target, real, RANGE[target] + BATCH, defines, body, per_block=GROUPINGS[target].bras)


@cache
def general_source(target: str, real: str) -> Source:
    """General kernel: orders and number of densities are arguments."""
    arguments = RANGE[target] + BATCH + GENERAL[target]
    return _source("j_general", target, real, arguments, SIZES[target], ("boys.h", *GENERAL_SKELETONS[target]))


@cache
def step_source(target: str, step: str, real: str = "double") -> Source:
    """Kernel of a step before or after the interactions."""
    shared = step in TEAM_STEPS
    arguments = RANGE["cpu"] + STEPS[step] + (SCRATCH[target] if shared else ())
    arguments += SUMS if step in FORCE_STEPS else ()
    defines = {"BRAS": GROUPINGS[target].bras, "KETS": GROUPINGS[target].kets, "THREADS": STEP_THREADS}
    body = (*HEADERS.get(step, ()), f"{step}.h")
    per_block = 1 if shared else STEP_THREADS
    return _source(step, target, real, arguments, defines, body, STEP_THREADS, per_block)


def expansion_memory(la: int, lb: int, step: str = "j_expand") -> int:
    """Bytes of fast memory for a pair in a step that expands it (`templates/j_pair.h`)."""
    numbers = {
        "j_expand": 3 * (la + 1) * (lb + 1) * (la + lb + 1) + hermite_count(la + lb),
        "j_force": 3 * (la + 2) * (lb + 1) * (la + lb + 2),
        "j_overlap": 3 * (la + 2) * (lb + 3),
    }
    return 8 * numbers[step]


def general_memory(target: str, orders: tuple[int, int], densities: int, real: str) -> tuple[int, int]:
    """Kets per pass and bytes of shared memory of the general kernel.

    Shared memory holds sums, Boys function, P - Q, densities, R of two orders.
    """
    limit = GROUPINGS[target].shared
    numbers = MAX_ORDER + 1 + 3 + densities * hermite_count(orders[1]) + 2 * hermite_count(sum(orders))
    size = 8 * densities * hermite_count(orders[0]) + (8 if real == "double" else 4) * numbers
    lanes = GENERAL_LANES
    while lanes > 1 and lanes * size > limit:
        lanes //= 2
    return lanes, lanes * size if limit else 0
