"""The calling convention of kernels on the CPU: a range of items, and all other arguments packed in words of 8 bytes.

Arguments named in `POOL_ARGUMENTS` come from the thread pool (`pool.h`): the range of items, scratch memory of the
thread, and the sums of the chunk. All others are the same for every item of a launch.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from cuanto.kernels.abi import Arguments
from cuanto.kernels.text import Source

POOL_ARGUMENTS = ("begin", "end", "scratch", "sums")
REALS = ("REAL", "double", "float")


def items_entry(source: Source) -> str:
    """Name of the entry point that the pool calls."""
    return f"{source.entry}_items"


def merge_entry(source: Source) -> str:
    """Name of the entry point that adds the sums of a chunk to the results, for sources that define one."""
    return f"{source.entry}_merge"


@cache
def native_text(source: Source) -> str:
    """The text with the entry points that the pool calls; a text without a range of items is left as it is."""
    if "begin" not in (name for _, name in source.arguments):
        return source.text
    word = "union CuantoWord { void* pointer; long long whole; double real; };"
    entries = _wrapper(items_entry(source), source.entry, source.arguments)
    if source.merge:
        entries += _wrapper(merge_entry(source), source.merge, source.arguments)
    return f"{source.text}\n{word}{entries}"


def _wrapper(name: str, function: str, arguments: Arguments) -> str:
    return f"""
extern "C" void {name}(const void* packed, long long begin, long long end, void* own_scratch, void* own_sums) {{
    const CuantoWord* word = (const CuantoWord*)packed;
    {function}({", ".join(_argument_expressions(arguments))});
}}
"""


def _argument_expressions(arguments: Arguments) -> list[str]:
    """Expressions for the arguments of the kernel's function: from the pool or from packed words."""
    given, words = [], 0
    for kind, name in arguments:
        if name in POOL_ARGUMENTS:
            given.append(f"({kind}){name if name in POOL_ARGUMENTS[:2] else f'own_{name}'}")
            continue
        member = "pointer" if "*" in kind else "real" if kind in REALS else "whole"
        given.append(f"({kind})word[{words}].{member}")
        words += 1
    return given


class Packing:
    """Packs the arguments of a source by their names."""

    def __init__(self, arguments: Arguments) -> None:
        packed = [(kind, name) for kind, name in arguments if name not in POOL_ARGUMENTS]
        self.names = [name for _, name in packed]
        self._struct = struct.Struct("".join("d" if kind in REALS else "q" for kind, _ in packed))

    def __call__(self, values: Mapping[str, Any]) -> bytes:
        """Pack values; arrays become addresses, None a null pointer."""
        return self._struct.pack(*[word_value(values[name]) for name in self.names])


def word_value(value: Any) -> Any:
    """Convert an argument to the value of a word: arrays to addresses, None to 0."""
    if isinstance(value, np.ndarray):
        return address(value)
    return 0 if value is None else value


def address(array: Any) -> int:
    """Address of the first element."""
    if array.dtype.names is not None:  # records: the interface would describe all of their fields
        return int(array.ctypes.data)
    found: int = array.__array_interface__["data"][0]  # takes a third of the time of `ctypes.data`
    return found
