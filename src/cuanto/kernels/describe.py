"""Source and cost of a kernel from a short description such as `3c 1 0 1`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cuanto.errors import InputError
from cuanto.kernels import md_blocks
from cuanto.kernels.build import choose_algorithm, cost_of, programs_of, source_of, unrolled
from cuanto.kernels.cost import Cost, StageCost
from cuanto.kernels.recurrences.one_electron import OPERATORS as ONE_ELECTRON
from cuanto.kernels.schedule.table import Program
from cuanto.kernels.spec import BLOCK_SCHEDULES, MAX_L, KernelSpec, Shells, long_name, schedule_name
from cuanto.kernels.text import Source

SHELL_COUNT = {**dict.fromkeys(ONE_ELECTRON, 2), "nuclear": 2, "2c": 2, "3c": 3, "4c": 4}
STRAIGHT = {"cpu": "lane", "cuda": "thread"}
GENERAL = {"cpu": "table", "cuda": "group"}


@dataclass(frozen=True)
class KernelDescription:
    """Source, tables and cost of one class on one target."""

    spec: KernelSpec
    source: Source
    cost: Cost
    tables: str

    @property
    def text(self) -> str:
        """The complete kernel text, index tables included."""
        return self.source.text + self.tables

    def summary(self) -> list[tuple[str, str]]:
        """Lines of a summary: name and value."""
        return [
            ("kernel", self.spec.name),
            ("algorithm, schedule", f"{self.spec.algorithm}, {long_name(self.spec.schedule)}"),
            ("per primitive quartet", _stage(self.cost.primitive)),
            *((f"sweep, {n} passes", _stage(stage)) for n, stage in self.cost.sweeps),
            ("per contracted quartet", f"{self.cost.contracted} operations"),
            ("bytes", f"{self.cost.bytes_read} read, {self.cost.bytes_written} written"),
            ("source", f"{len(self.text.splitlines())} lines, sha256 {self.source.hash[:16]}"),
        ]


def _stage(stage: StageCost) -> str:
    shared = f" + {stage.uniform} shared" if stage.uniform else ""
    boys = f", Boys about {stage.boys}" if stage.boys else ""
    return f"{stage.operations}{shared} operations{boys}, {stage.live} live values"


def describe(
    integral: str, momenta: tuple[int, ...], algorithm: str = "auto", target: str = "cpu", schedule: str = "auto"
) -> KernelDescription:
    """The kernel of (pure) shells with these angular momenta."""
    operator, bra, ket = _sides(integral, momenta)
    if algorithm not in ("auto", "hgp", "md"):
        raise InputError(f"unknown algorithm {algorithm!r}: choose auto, hgp or md")
    schedule = schedule_name(schedule, target)
    if schedule in BLOCK_SCHEDULES:
        algorithm = _block_algorithm(operator, bra, ket, algorithm)
    elif algorithm == "auto" or operator != "coulomb":
        algorithm = choose_algorithm(target, operator, bra, ket, 1.0)
    cost = cost_of(operator, bra, ket, algorithm)
    if schedule == "auto":
        schedule = STRAIGHT[target] if unrolled(target, cost) else GENERAL[target]
    spec = KernelSpec(operator, bra, ket, algorithm, schedule)
    tables = ""
    if schedule in ("table", "group"):
        programs = programs_of(operator, bra, ket, algorithm, levels=schedule == "group")
        tables = "".join(_table_text(name, p) for name, p in zip(("primitive", "ket", "bra"), programs, strict=True))
    return KernelDescription(spec, source_of(spec), cost, tables)


def _block_algorithm(operator: str, bra: Shells, ket: Shells, algorithm: str) -> str:
    """Check that the class and algorithm fit these schedules, which implement McMurchie-Davidson only."""
    md_blocks.check(operator, bra, ket)
    if algorithm == "hgp":
        raise InputError(f"the schedules {md_blocks.NAMES} use McMurchie-Davidson only: choose --algorithm md or auto")
    return "md"


def _sides(integral: str, momenta: tuple[int, ...]) -> tuple[str, Shells, Shells]:
    if integral not in SHELL_COUNT:
        raise InputError(f"unknown integral {integral!r}: choose {', '.join(SHELL_COUNT)}")
    if len(momenta) != SHELL_COUNT[integral]:
        wanted = SHELL_COUNT[integral]
        raise InputError(f"{integral} takes {wanted} angular momenta, {len(momenta)} were given: {momenta}")
    if max(momenta) > MAX_L or min(momenta) < 0:
        raise InputError(f"angular momenta from 0 to {MAX_L} are supported, {max(momenta)} was given")
    high, low = max(momenta[:2]), min(momenta[:2])
    if integral == "3c":
        return "coulomb", Shells((high, low)), Shells(momenta[2:])
    if integral == "4c":
        return "coulomb", Shells((high, low)), Shells((max(momenta[2:]), min(momenta[2:])))
    if integral == "nuclear":
        return "coulomb", Shells((high, low)), Shells((0,))
    operator = "coulomb" if integral == "2c" else integral
    return operator, Shells(momenta[:1]), Shells(momenta[1:])


def _table_text(name: str, program: Program) -> str:
    def array(kind: str, what: str, values: NDArray[np.generic]) -> str:
        return f"static const {kind} {name}_{what}[] = {{{', '.join(repr(x.item()) for x in values)}}};\n"

    return (
        f"\n// Index tables of the stage `{name}` (see kernels/schedule/table.py)\n"
        + array("int", "program", program.table)
        + array("REAL", "numbers", program.constants)
    )
