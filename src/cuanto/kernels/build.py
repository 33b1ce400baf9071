"""KernelSpec -> Source: the text of a kernel, its entry point, its cost; and the index tables of a class."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache

from cuanto import tuning
from cuanto.kernels import abi, md_blocks
from cuanto.kernels.cost import Cost, cost
from cuanto.kernels.ir import Graph, Integrals, Kind, Stage, Sweep
from cuanto.kernels.layout import SIDES, TABLES
from cuanto.kernels.recurrences import head_gordon_pople, mcmurchie_davidson, one_electron
from cuanto.kernels.schedule.straight import contracted_function, primitive_function
from cuanto.kernels.schedule.table import Program, Shape, by_levels, depth_first
from cuanto.kernels.spec import BLOCK_SCHEDULES, COULOMB, KernelSpec, Shells
from cuanto.kernels.text import SYNTAX, Source, assemble


def make_integrals(operator: str, bra: Shells, ket: Shells, algorithm: str) -> Integrals:
    """The expression graphs of a class, made anew."""
    if operator not in COULOMB:
        return one_electron.integrals(operator, bra, ket)
    if algorithm == "hgp":
        return head_gordon_pople.integrals(bra, ket, attenuated=operator == "coulomb_erf")
    return mcmurchie_davidson.integrals(bra, ket)


@cache
def integrals_of(operator: str, bra: Shells, ket: Shells, algorithm: str) -> Integrals:
    """The expression graphs of a class."""
    return make_integrals(operator, bra, ket, algorithm)


@cache
def cost_of(operator: str, bra: Shells, ket: Shells, algorithm: str) -> Cost:
    """The cost of a class."""
    return cost(integrals_of(operator, bra, ket, algorithm))


Programs = tuple[Program, Program, Program]
"""Index tables of the primitive stage, of the sweep over the ket (empty when there is none), of the final sweep."""


@cache
def programs_of(operator: str, bra: Shells, ket: Shells, algorithm: str, levels: bool) -> Programs:
    """Index tables of a class."""
    return make_programs(integrals_of(operator, bra, ket, algorithm), operator, ket, levels)


def make_programs(integrals: Integrals, operator: str, ket: Shells, levels: bool) -> Programs:
    """Index tables, made anew: depth first for one core, by `levels` for a group of threads."""
    assemble = by_levels if levels else depth_first
    primitive = assemble(integrals.primitive, Shape(abi.bra_fields(operator), abi.ket_fields(ket)))
    sweeps = []
    for sweep in integrals.sweeps:
        records = [label[0] for kind, label in _nodes(sweep.stage.graph) if kind is Kind.INPUT]
        values, shell = records.count("acc"), records.count("ket_shell")
        shape = Shape(abi.SHELL_FIELDS, values + shell, sweep, integrals.ket_functions, values)
        sweeps.append(assemble(sweep.stage, shape))
    if len(sweeps) == 1:
        nothing = Sweep(Stage(Graph(), ()), repeat=0, outer=0, inner=0)
        sweeps.insert(0, assemble(nothing.stage, Shape(abi.SHELL_FIELDS, 1, nothing)))
    return primitive, sweeps[0], sweeps[1]


def _nodes(graph: Graph) -> Iterator[tuple[Kind, tuple[str, int]]]:
    return zip(graph.kind, graph.label, strict=True)


UNROLL_LIMIT = tuning.sizes("integrals.unroll_operations")
MD_GAIN = {target: tuning.number(target, "integrals.md_gain") for target in tuning.LANGUAGES}
RECORDS = (SIDES.text, TABLES.text)
STRAIGHT_SKELETONS = {
    "cpu": (*RECORDS, "batch_cpu.h", "lane_sums.h", "lane_cpu.h"),
    "cuda": (*RECORDS, "thread_sums.cuh", "thread.cuh"),
}
TABLE_SKELETONS = {
    "cpu": (*RECORDS, "batch_cpu.h", "program.h", "md_loops_cpu.h", "table_cpu.h", "table_batch.h"),
    "cuda": (*RECORDS, "program.h", "group.cuh", "group_batch.cuh"),
}
TABLE_ENTRIES = {"cpu": "table_kernel", "cuda": "group_kernel"}
TABLE_EXTRAS: dict[str, abi.Arguments] = {
    "cpu": (("int", "vectors"),),
    "cuda": (("int", "lanes"), ("int", "slots"), ("REAL*", "scratch"), ("INDEX", "scratch_stride")),
}


def integral_source(
    entry: str, target: str, real: str, arguments: abi.Arguments, body: Iterable[str], **defines: object
) -> Source:
    """A kernel of integrals or around them: what all of these need, and `body` with its own macros."""
    common = {"BLOCK": abi.BLOCK, "SHELL_FIELDS": abi.SHELL_FIELDS, "SIZE": abi.SIZE, "SCREENED": 0, "CUTOFF": 0}
    return assemble(entry, target, real, arguments, common | defines, ("boys.h", *body))


@cache
def straight_source(spec: KernelSpec) -> Source:
    """Straight-line kernel of one class: schedule `lane` (CPU) or `thread` (CUDA)."""
    return straight_text(spec, STRAIGHT_SKELETONS[spec.target], abi.BATCH)


def straight_text(spec: KernelSpec, skeleton: tuple[str, ...], arguments: abi.Arguments, **extra: object) -> Source:
    """The generated functions of a class in a skeleton of loops; `extra` macros for the skeleton."""
    integrals = integrals_of(spec.operator, spec.bra, spec.ket, spec.algorithm)
    syntax = SYNTAX[spec.target]
    defines: dict[str, object] = {
        "WIDTH": integrals.width,
        "BRA_FIELDS": abi.bra_fields(spec.operator),
        "KET_FIELDS": abi.ket_fields(spec.ket),
        "BRA_FUNCTIONS": integrals.bra_functions,
        "KET_FUNCTIONS": integrals.ket_functions,
        "COLUMNS": spec.columns,
        **extra,
    }
    functions = primitive_function(integrals, syntax) + contracted_function(integrals, syntax)
    return integral_source(spec.name, spec.target, spec.real, arguments, (functions, *skeleton), **defines)


@cache
def table_source(target: str, real: str) -> Source:
    """The general kernel: any class from its index tables (`table` on the CPU, `group` on CUDA)."""
    arguments = abi.BATCH + abi.TABLES + TABLE_EXTRAS[target]
    return integral_source(TABLE_ENTRIES[target], target, real, arguments, TABLE_SKELETONS[target])


@cache
def block_source(schedule: str, real: str) -> Source:
    """A block of threads for an integral or for a quartet of shells: one text for all classes."""
    per_integral = int(schedule == "integral_block")
    arguments, body = md_blocks.ARGUMENTS, ("md_blocks.cuh",)
    return integral_source(f"{schedule}_kernel", "cuda", real, arguments, body, PER_INTEGRAL=per_integral)


def source_of(spec: KernelSpec) -> Source:
    """The text for any schedule."""
    if spec.schedule in ("lane", "thread"):
        return straight_source(spec)
    if spec.schedule in BLOCK_SCHEDULES:
        return block_source(spec.schedule, spec.real)
    return table_source(spec.target, spec.real)


def unrolled(target: str, class_cost: Cost) -> bool:
    """Whether straight-line code is the choice for this cost."""
    return class_cost.text_operations <= UNROLL_LIMIT[target]


def class_name(bra: Shells, ket: Shells) -> str:
    """A class as the tuning files name it: (dp|f)."""
    return f"({bra}|{ket})"


def choose_algorithm(target: str, operator: str, bra: Shells, ket: Shells, primitives: float) -> str:
    """`hgp` or `md`, the faster one for this number of primitive quartets per contracted one.

    HGP has fewer operations in every class, so it is the choice where nothing was measured.
    """
    if operator not in COULOMB:
        return "os"
    measured = tuning.md_over_hgp(target, class_name(bra, ket))
    if not measured:
        return "hgp"
    _, ratio = min(measured, key=lambda row: abs(row[0] - primitives))
    return "md" if ratio < MD_GAIN[target] else "hgp"
