"""Kernels that are written once for all devices, in the words of templates/words_cpu.h and words_cuda.cuh."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cuanto.kernels.abi import Arguments, parameters
from cuanto.kernels.build import Source, template
from cuanto.kernels.emit.cpp import CPP
from cuanto.kernels.emit.cuda import CUDA

VOCABULARY = {"cpu": (CPP.prelude, "words_cpu.h"), "cuda": (CUDA.prelude, "words_cuda.cuh")}
SUMS: dict[str, Arguments] = {"cpu": (("double*", "sums"),), "cuda": ()}
"""Where SUMS(array) of a text is: sums of a chunk on a CPU; on a GPU the array itself."""


def written_source(
    target: str,
    entry: str,
    arguments: Arguments,
    defines: Mapping[str, object],
    parts: Sequence[str],
    threads: int,
    per_block: int,
) -> Source:
    """The parts of a kernel in double precision behind the vocabulary of the target."""
    lines = {"REAL": "double", **defines, "THREADS": threads, "ENTRY": entry, "PARAMETERS": parameters(arguments)}
    head = [f"#define {name} {value}" for name, value in lines.items()]
    words = [template(name) for name in VOCABULARY[target]]
    text = "\n".join([*head, "typedef long long INDEX;", *words, *parts])
    return Source(text, entry, target, arguments, threads, per_block)
