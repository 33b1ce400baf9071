"""Straight-line placement: the whole graph in one lane (CPU) or thread (CUDA); sweeps are loops around their text."""

from __future__ import annotations

from cuanto import tuning
from cuanto.kernels.emit import function, straight_line
from cuanto.kernels.ir import Integrals, Sweep

REGISTER_VALUES = tuning.sizes("integrals.register_values")


def primitive_function(integrals: Integrals) -> str:
    """`primitive(bra, ket, boys_table, value)`: all accumulated values of one primitive quartet."""

    def read(record: str, index: int) -> str:
        return f"bra[{index}]" if record == "bra" else f"vload(ket + {index} * BLOCK)"

    lines = straight_line(integrals.primitive, read, lambda k, name: f"value[{k}] = {name};")
    head = "FN void primitive(const REAL* bra, const REAL* ket, const REAL* boys_table, VEC* value)"
    return function(head, lines)


def contracted_function(integrals: Integrals, target: str) -> str:
    """`contracted(bra_shell, ket_shell, acc, store)`: hands each final integral to `store`."""
    lines = [f"VEC middle[{integrals.middle}];"] if integrals.middle else []
    source = "acc"
    for sweep in integrals.sweeps:
        # Unrolled loops index the values with constants, so that they can stay in registers.
        loop = "UNROLL for" if integrals.width <= REGISTER_VALUES[target] else "NO_UNROLL for"
        lines.append(f"{loop} (int i = 0; i < {sweep.repeat}; ++i) {{")
        lines += ["    " + line for line in _sweep_lines(sweep, source, integrals.ket_functions)]
        lines.append("}")
        source = "middle"
    head = "template <class S> FN void contracted("
    head += "const REAL* bra_shell, const REAL* ket_shell, const VEC* acc, const S& store)"
    return function(head, lines)


def _sweep_lines(sweep: Sweep, source: str, ket_functions: int) -> list[str]:
    count = len(sweep.stage.outputs)

    def read(record: str, index: int) -> str:
        if record == "bra_shell":
            return f"bra_shell[{index}]"
        if record == "ket_shell":
            return f"vload(ket_shell + {index} * BLOCK)"
        return f"{source}[i * {sweep.outer} + {index * sweep.inner}]"

    def write(k: int, name: str) -> str:
        if not sweep.final:
            return f"middle[i * {count} + {k}] = {name};"
        bra, ket = sweep.block(k, ket_functions)
        return f"store(i, {bra}, {ket}, {name});" if sweep.per_component else f"store(0, {bra}, i, {name});"

    return straight_line(sweep.stage, read, write)
