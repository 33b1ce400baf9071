"""The assembler: builds the text of a kernel from macros, a prelude, templates and generated functions."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources

from cuanto.kernels.abi import Arguments

PRELUDES = {"cpu": "prelude_cpu.h", "cuda": "prelude_cuda.cuh"}
"""Vocabulary of each target."""
SUMS: Arguments = (("double*", "sums"),)
"""Argument to which SUMS(array) refers: the sums of a chunk on a CPU, `Sums` of the prelude on a GPU. They are added to
the array afterwards, in a fixed order or exactly: results have the same digits every time."""
SUMS_THREADS = 256
"""Threads of a block of `add_sums`."""


@dataclass(frozen=True)
class Source:
    """A complete kernel text; on a GPU a block of `threads` threads processes `per_block` items.

    `merge`: function of the text, with the kernel's parameters, that adds the sums of a chunk of items to the results.
    """

    text: str
    entry: str
    target: str
    arguments: Arguments
    threads: int = 0
    per_block: int = 1
    merge: str = ""

    @cached_property
    def hash(self) -> str:
        """Identity of the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()


@cache
def template(name: str) -> str:
    """A file of `templates/`."""
    return (resources.files("cuanto.kernels") / "templates" / name).read_text()


def assemble(
    entry: str,
    target: str,
    real: str,
    arguments: Arguments,
    defines: Mapping[str, object],
    body: Iterable[str],
    before: str = "",
    threads: int = 0,
    per_block: int = 1,
    merge: str = "",
) -> Source:
    """Build a kernel text.

    `body` lists names of templates (`boys.h`) and generated texts in order; the line `before` precedes the prelude
    and may define a macro that configures it. Templates declare the kernel as `ENTRY(PARAMETERS)`; the names of the
    parameters alone are `ARGUMENTS`. `threads`, `per_block` and `merge` as in `Source`.
    """
    macros = {
        "REAL": real,
        "ENTRY": entry,
        "PARAMETERS": ", ".join(f"{kind} {name}" for kind, name in arguments),
        "ARGUMENTS": ", ".join(name for _, name in arguments),
        **defines,
    }
    head = [f"#define {name} {value}" for name, value in macros.items()]
    parts = [template(part) if part.endswith((".h", ".cuh")) else part for part in (PRELUDES[target], *body)]
    text = "\n".join([*head, *filter(None, (before,)), *parts])
    return Source(text, entry, target, arguments, threads, per_block, merge)


@cache
def add_sums_source() -> Source:
    """The GPU's kernel that adds `Sums` to an array of numbers."""
    arguments = (("INDEX", "begin"), ("INDEX", "end"), ("const double*", "sums"), ("double*", "target"))
    n = SUMS_THREADS
    return assemble("add_sums", "cuda", "double", arguments, {"THREADS": n}, ("add_sums.cuh",), threads=n, per_block=n)
