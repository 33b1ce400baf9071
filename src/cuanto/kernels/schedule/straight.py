"""Straight-line placement: the whole graph in one lane (CPU) or thread (CUDA)."""

from __future__ import annotations

from cuanto.kernels.emit.syntax import Syntax, straight_line
from cuanto.kernels.ir import Integrals
from cuanto.kernels.schedule.table import leaving_order


def primitive_function(integrals: Integrals, syntax: Syntax) -> str:
    """`primitive(bra, ket, ket_stride, boys_table, value)`: all accumulated values of one primitive quartet."""

    def read(record: str, index: int) -> str:
        return f"bra[{index}]" if record == "bra" else f"vload(ket + {index} * ket_stride)"

    order = list(range(integrals.width))
    lines = straight_line(integrals.primitive, order, syntax, read, lambda k, name: f"value[{k}] = {name};")
    head = "FN void primitive(const REAL* bra, const REAL* ket, INDEX ket_stride, const REAL* boys_table, VEC* value)"
    return _function(head, lines)


def contracted_function(integrals: Integrals, syntax: Syntax) -> str:
    """`contracted(shell, acc, store)`: hands each final integral to `store`."""

    def read(record: str, index: int) -> str:
        return f"shell[{index}]" if record == "shell" else f"acc[{index}]"

    nb, nk = integrals.bra_functions, integrals.ket_functions

    def write(k: int, name: str) -> str:
        return f"store({k // (nb * nk)}, {k // nk % nb}, {k % nk}, {name});"

    order = leaving_order(len(integrals.contracted.outputs), (nb, nk))
    lines = straight_line(integrals.contracted, order, syntax, read, write)
    head = "template <class S> FN void contracted(const REAL* shell, const VEC* acc, const S& store)"
    return _function(head, lines)


def _function(head: str, lines: list[str]) -> str:
    return "\n".join([head + " {", *("    " + line for line in lines), "}", ""])
