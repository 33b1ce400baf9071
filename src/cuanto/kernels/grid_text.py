"""What the kernels of the quadrature share: the text around a template."""

from __future__ import annotations

from collections.abc import Mapping

from cuanto.kernels.abi import Arguments, parameters
from cuanto.kernels.build import Source, template
from cuanto.kernels.emit.cpp import CPP
from cuanto.kernels.emit.cuda import CUDA
from cuanto.kernels.emit.syntax import Syntax


def syntax_of(target: str) -> Syntax:
    """Spellings of a target."""
    return CPP if target == "cpu" else CUDA


def kernel_text(
    target: str,
    entry: str,
    real: str,
    arguments: Arguments,
    defines: Mapping[str, object],
    files: tuple[str, ...],
    generated: str = "",
    threads: int = 0,
    per_block: int = 1,
) -> Source:
    """Macros, prelude, generated functions, templates; `threads` and `per_block` as in `Source`."""
    lines = {"REAL": real, "ENTRY": entry, "PARAMETERS": parameters(arguments), **defines}
    head = [f"#define {name} {value}" for name, value in lines.items()]
    parts = [*head, "typedef long long INDEX;", template(syntax_of(target).prelude), generated]
    text = "\n".join([*parts, *(template(name) for name in files)])
    return Source(text, entry, target, arguments, threads, per_block)
