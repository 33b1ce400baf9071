"""KernelSpec -> Source: the text of a kernel, its entry point, its cost; and the index tables of a class."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources

from cuanto.kernels import abi
from cuanto.kernels.cost import Cost, cost
from cuanto.kernels.emit.cpp import CPP
from cuanto.kernels.emit.cuda import CUDA
from cuanto.kernels.ir import Integrals
from cuanto.kernels.passes import UNROLL_LIMIT
from cuanto.kernels.recurrences import head_gordon_pople, mcmurchie_davidson, one_electron
from cuanto.kernels.schedule.straight import contracted_function, primitive_function
from cuanto.kernels.schedule.table import Program, assemble
from cuanto.kernels.spec import KernelSpec, Shells


@dataclass(frozen=True)
class Source:
    """A complete, self-contained kernel text."""

    text: str
    entry: str
    target: str
    arguments: abi.Arguments

    @cached_property
    def hash(self) -> str:
        """Identity of the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()


@cache
def integrals_of(operator: str, bra: Shells, ket: Shells, algorithm: str) -> Integrals:
    """The expression graphs of a class."""
    if operator != "coulomb":
        return one_electron.integrals(operator, bra, ket)
    recurrence = head_gordon_pople.integrals if algorithm == "hgp" else mcmurchie_davidson.integrals
    return recurrence(bra, ket)


@cache
def cost_of(operator: str, bra: Shells, ket: Shells, algorithm: str) -> Cost:
    """The cost of a class."""
    return cost(integrals_of(operator, bra, ket, algorithm))


@cache
def programs_of(operator: str, bra: Shells, ket: Shells, algorithm: str, by_levels: bool) -> tuple[Program, Program]:
    """Index tables of both stages."""
    integrals = integrals_of(operator, bra, ket, algorithm)
    primitive = assemble(integrals.primitive, abi.BRA_FIELDS[operator], abi.KET_FIELDS, by_levels)
    block = (integrals.bra_functions, integrals.ket_functions)
    return primitive, assemble(integrals.contracted, abi.SHELL_FIELDS, integrals.width, by_levels, block)


@cache
def template(name: str) -> str:
    """A file of `templates/`."""
    return (resources.files("cuanto.kernels") / "templates" / name).read_text()


def _head(target: str, real: str, arguments: abi.Arguments, defines: dict[str, object]) -> str:
    defines = {
        "REAL": real,
        "KET_FIELDS": abi.KET_FIELDS,
        "SHELL_FIELDS": abi.SHELL_FIELDS,
        "PARAMETERS": abi.parameters(arguments),
        "ARGUMENTS": ", ".join(name for _, name in arguments),
        **defines,
    }
    lines = [f"#define {name} {value}" for name, value in defines.items()]
    syntax = CPP if target == "cpu" else CUDA
    return "\n".join([*lines, "typedef long long INDEX;", template(syntax.prelude), template("boys.h")])


@cache
def straight_source(spec: KernelSpec) -> Source:
    """Straight-line kernel of one class: schedule `lane` (CPU) or `thread` (CUDA)."""
    target = "cpu" if spec.schedule == "lane" else "cuda"
    integrals = integrals_of(spec.operator, spec.bra, spec.ket, spec.algorithm)
    syntax = CPP if target == "cpu" else CUDA
    entry = spec.name
    defines: dict[str, object] = {
        "ENTRY": entry,
        "WIDTH": integrals.width,
        "BRA_FIELDS": abi.BRA_FIELDS[spec.operator],
        "BRA_FUNCTIONS": integrals.bra_functions,
        "COLUMNS": spec.columns,
    }
    skeleton = template("batch_cpu.h") + template("lane_cpu.h") if target == "cpu" else template("thread.cuh")
    body = primitive_function(integrals, syntax) + contracted_function(integrals, syntax)
    text = "\n".join([_head(target, spec.real, abi.BATCH, defines), body, skeleton])
    return Source(text, entry, target, abi.BATCH)


@cache
def table_source(target: str, real: str) -> Source:
    """The general kernel: any class from its index tables (`table` on the CPU, `group` on CUDA)."""
    arguments = abi.BATCH + abi.TABLES
    entry = "table_kernel" if target == "cpu" else "group_kernel"
    skeleton = template("batch_cpu.h") + template("table_cpu.h") if target == "cpu" else template("group.cuh")
    text = "\n".join([_head(target, real, arguments, {"ENTRY": entry}), skeleton])
    extra: abi.Arguments = (("int", "vectors"),)
    if target == "cuda":
        extra = (("int", "lanes"), ("REAL*", "scratch"), ("INDEX", "scratch_stride"))
    return Source(text, entry, target, arguments + extra)


def source_of(spec: KernelSpec) -> Source:
    """The text for any schedule."""
    if spec.schedule in ("lane", "thread"):
        return straight_source(spec)
    return table_source("cpu" if spec.schedule == "table" else "cuda", spec.real)


def unrolled(target: str, class_cost: Cost) -> bool:
    """Is straight-line code right for this cost?"""
    return class_cost.operations <= UNROLL_LIMIT[target]
