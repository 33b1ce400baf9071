"""Texts of integral kernels, cost and index tables of a class of integrals, and the choice of its algorithm."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from cuanto import tuning
from cuanto.errors import InputError
from cuanto.kernels import abi, md_blocks, md_list
from cuanto.kernels.abi import Arguments, parse_arguments
from cuanto.kernels.cost import Cost, cost
from cuanto.kernels.ir import Graph, Integrals, Kind, Stage, Sweep
from cuanto.kernels.layout import SIDES, TABLES
from cuanto.kernels.recurrences import head_gordon_pople, mcmurchie_davidson, one_electron
from cuanto.kernels.schedule.loops import by_loops
from cuanto.kernels.schedule.straight import contracted_function, primitive_function
from cuanto.kernels.schedule.table import Program, Shape, by_levels, depth_first
from cuanto.kernels.spec import BLOCK_SCHEDULES, COULOMB, SCHEDULES, KernelSpec, Shells
from cuanto.kernels.text import Source, assemble


def make_integrals(operator: str, bra: Shells, ket: Shells, algorithm: str) -> Integrals:
    """Build the expression graphs of a class."""
    if operator not in COULOMB:
        return one_electron.integrals(operator, bra, ket)
    if algorithm == "hgp":
        return head_gordon_pople.integrals(bra, ket, attenuated=operator == "coulomb_erf")
    return mcmurchie_davidson.integrals(bra, ket)


@cache
def integrals_of(operator: str, bra: Shells, ket: Shells, algorithm: str) -> Integrals:
    """The expression graphs of a class, cached."""
    return make_integrals(operator, bra, ket, algorithm)


@cache
def cost_of(operator: str, bra: Shells, ket: Shells, algorithm: str) -> Cost:
    """The cost of a class, cached."""
    return cost(integrals_of(operator, bra, ket, algorithm))


Programs = tuple[Program, Program, Program]
"""Index tables of the primitive stage, of the sweep over the ket (empty when there is none), of the final sweep."""


@cache
def programs_of(operator: str, bra: Shells, ket: Shells, algorithm: str, levels: bool) -> Programs:
    """Index tables of a class, cached."""
    return make_programs(integrals_of(operator, bra, ket, algorithm), operator, ket, levels)


def make_programs(integrals: Integrals, operator: str, ket: Shells, levels: bool) -> Programs:
    """Build index tables: depth first for one core, by `levels` for a group of threads."""
    make_program = by_levels if levels else depth_first
    primitive = make_program(integrals.primitive, Shape(abi.bra_fields(operator), abi.ket_fields(ket)))
    sweeps = []
    for sweep in integrals.sweeps:
        nodes = list(_nodes(sweep.stage.graph))
        assert all(kind is not Kind.CALL for kind, _ in nodes), "functions belong to the primitive stage (group.cuh)"
        records = [label[0] for kind, label in nodes if kind is Kind.INPUT]
        values, shell = records.count("acc"), records.count("ket_shell")
        shape = Shape(abi.SHELL_FIELDS, values + shell, sweep, integrals.ket_functions, values)
        sweeps.append(make_program(sweep.stage, shape))
    if len(sweeps) == 1:
        empty = Sweep(Stage(Graph(), ()), repeat=0, outer=0, inner=0)
        sweeps.insert(0, make_program(empty.stage, Shape(abi.SHELL_FIELDS, 1, empty)))
    return primitive, sweeps[0], sweeps[1]


def _nodes(graph: Graph) -> Iterator[tuple[Kind, tuple[str, int]]]:
    return zip(graph.kind, graph.label, strict=True)


UNROLL_LIMIT = tuning.sizes("integrals.unroll_operations")
MD_GAIN = {target: tuning.number(target, "integrals.md_gain") for target in tuning.LANGUAGES}
RECORDS = (SIDES.text, TABLES.text)
CPU_LIST = parse_arguments("const void* sides, const void* tables, const int* list, INDEX count, REAL* out")
CUDA_LIST = parse_arguments(
    "const int* bra_first, const REAL* bra_record, const REAL* bra_coefficient, int columns, const REAL* bra_shell, "
    "const int* ket_first, const REAL* ket_record, const REAL* ket_shell, const REAL* boys_table, double cutoff, "
    "const int* list, const int* count, REAL* out, INDEX stride"
)
GROUP = abi.TABLES + parse_arguments("int lanes, int slots, REAL* scratch, INDEX scratch_stride")


@dataclass(frozen=True)
class Skeleton:
    """Templates around the functions or index tables of a class, arguments, threads of a block and items of a block."""

    parts: tuple[str, ...]
    arguments: Arguments
    threads: int = 1
    per_block: int = 1


TABLE_PARTS = (*RECORDS, "batch_cpu.h", "program.h")
LOOP_PARTS = (*TABLE_PARTS, "hermite_expansion_cpu.h", "md_loops_cpu.h", "table_cpu.h")
TABLE_STORE = abi.BATCH + abi.TABLES + parse_arguments("int vectors")
GROUP_PARTS = (*RECORDS, "program.h", "group.cuh")
THREADS = tuning.size("cuda", "integrals.threads")
GROUP_THREADS = tuning.size("cuda", "integrals.group_threads")
LIST_THREADS = tuning.size("cuda", "direct.list_threads")
SKELETONS = {
    ("lane", "store"): Skeleton((*RECORDS, "batch_cpu.h", "straight.h", "straight_store.h"), abi.BATCH),
    ("lane", "list"): Skeleton((*RECORDS, "batch_cpu.h", "straight.h", "straight_list.h"), CPU_LIST),
    ("thread", "store"): Skeleton((*RECORDS, "straight.h", "straight_store.h"), abi.BATCH, THREADS, THREADS),
    ("thread", "list"): Skeleton((*RECORDS, "straight.h", "straight_list.h"), CUDA_LIST, LIST_THREADS),
    ("table", "store"): Skeleton((*TABLE_PARTS, "no_loops_cpu.h", "table_cpu.h", "table_store_cpu.h"), TABLE_STORE),
    ("table", "list"): Skeleton((*LOOP_PARTS, "table_list_cpu.h"), CPU_LIST),
    ("group", "store"): Skeleton((*GROUP_PARTS, "bra_rows.cuh", "group_store.cuh"), abi.BATCH + GROUP, GROUP_THREADS),
    ("group", "list"): Skeleton((*GROUP_PARTS, "group_list.cuh"), CUDA_LIST + GROUP, GROUP_THREADS),
    **{
        (schedule, "store"): Skeleton(
            ("md_recursion.cuh", "bra_rows.cuh", "md_blocks.cuh"), md_blocks.ARGUMENTS, md_blocks.MAX_THREADS
        )
        for schedule in BLOCK_SCHEDULES
    },
    ("quartet_block", "list"): Skeleton(
        ("md_recursion.cuh", "md_list.cuh"), CUDA_LIST + md_list.ARGUMENTS, md_list.MAX_THREADS
    ),
}
"""All kernels of integrals, by schedule and consumer."""
LOOPS_STORE = Skeleton((*LOOP_PARTS, "table_store_cpu.h"), TABLE_STORE)
"""As (`table`, `store`), also for classes whose primitive stage is done by loops."""


def integral_source(
    entry: str, target: str, real: str, skeleton: Skeleton, defines: Mapping[str, object], functions: str = ""
) -> Source:
    """Assemble a kernel that evaluates or consumes integrals."""
    arguments, threads, per_block = skeleton.arguments, skeleton.threads, skeleton.per_block
    macros: dict[str, object] = {"BLOCK": abi.BLOCK, "SHELL_FIELDS": abi.SHELL_FIELDS, "SIZE": abi.SIZE}
    macros |= {"THREADS": threads, **defines}
    macros |= {layout.name.upper(): layout.expression(arguments) for layout in (SIDES, TABLES)}
    body = ("boys.h", functions, *skeleton.parts)
    return assemble(entry, target, real, arguments, macros, body, threads=threads, per_block=per_block)


def source_of(spec: KernelSpec) -> Source:
    """Return the text of a kernel; an error for a schedule, consumer and derivative order that no kernel combines."""
    if spec.derivative or (spec.schedule, spec.consumer) not in SKELETONS:
        kind = f"schedule {spec.schedule!r}, consumer {spec.consumer!r} and derivative order {spec.derivative}"
        raise InputError(f"there is no kernel of integrals with {kind}")
    if spec.schedule in ("lane", "thread"):
        return _straight_source(spec)
    table = (spec.schedule, spec.consumer) == ("table", "store")
    loops = table and by_loops(spec.operator, spec.bra, spec.ket, spec.algorithm)
    return general_source(spec.schedule, spec.real, spec.consumer, loops)


@cache
def _straight_source(spec: KernelSpec) -> Source:
    """The generated functions of a class in a skeleton of loops."""
    integrals = integrals_of(spec.operator, spec.bra, spec.ket, spec.algorithm)
    defines: dict[str, object] = {
        "WIDTH": integrals.width,
        "BRA_FIELDS": abi.bra_fields(spec.operator),
        "KET_FIELDS": abi.ket_fields(spec.ket),
        "BRA_FUNCTIONS": integrals.bra_functions,
        "KET_FUNCTIONS": integrals.ket_functions,
        "COLUMNS": spec.columns,
        "SCREENED": int(spec.consumer == "list"),
    }
    functions = primitive_function(integrals) + contracted_function(integrals, spec.target)
    skeleton = SKELETONS[spec.schedule, spec.consumer]
    return integral_source(spec.name, spec.target, spec.real, skeleton, defines, functions)


@cache
def general_source(schedule: str, real: str, consumer: str = "store", loops: bool = False) -> Source:
    """A kernel of any class: from index tables (`table`, `group`), or a block of threads for an integral or quartet.

    `loops`: the `table` kernel that stores integrals of classes `by_loops`; the usual one is compiled in half the time.
    """
    target = next(target for target, names in SCHEDULES.items() if schedule in names.values())
    defines = {"SCREENED": int(consumer == "list"), "PER_INTEGRAL": int(schedule == "integral_block")}
    entry = f"{'loops' if loops else schedule}_{'kernel' if consumer == 'store' else consumer}"
    skeleton = LOOPS_STORE if loops else SKELETONS[schedule, consumer]
    return integral_source(entry, target, real, skeleton, defines)


def unrolled(target: str, class_cost: Cost) -> bool:
    """Whether straight-line code is used for this cost."""
    return class_cost.text_operations <= UNROLL_LIMIT[target]


def class_name(bra: Shells, ket: Shells) -> str:
    """A class as the tuning files name it: (dp|f)."""
    return f"({bra}|{ket})"


def choose_algorithm(target: str, operator: str, bra: Shells, ket: Shells, primitives: float) -> str:
    """`hgp` or `md`, the faster one for this number of primitive quartets per contracted one.

    HGP has fewer operations in every class, so it is used where nothing was measured.
    """
    if operator not in COULOMB:
        return "os"
    measured = tuning.md_over_hgp(target, class_name(bra, ket))
    if not measured:
        return "hgp"
    _, ratio = min(measured, key=lambda row: abs(row[0] - primitives))
    return "md" if ratio < MD_GAIN[target] else "hgp"
