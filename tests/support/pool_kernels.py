"""Small kernels for tests of the native threads."""

from __future__ import annotations

from cuanto.kernels.text import Source

RANGE = (("INDEX", "begin"), ("INDEX", "end"))


def kernel(body: str, *arguments: tuple[str, str], merge: str = "") -> Source:
    """A kernel for a range of items; `merge`: body of a function that adds its sums to the result."""
    every = (*arguments, *RANGE)
    parameters = ", ".join(f"{kind} {name}" for kind, name in every)
    text = "".join(f"#include <{name}.h>\n" for name in ("pthread", "signal", "string", "unistd"))
    text += "typedef long long INDEX;\n"
    text += f'extern "C" void kernel({parameters}) {{ {body} }}\n'
    if merge:
        text += f"static void merge({parameters}) {{ {merge} }}\n"
    return Source(text, "kernel", "cpu", every, merge="merge" if merge else "")


COUNT = kernel("for (INDEX i = begin; i < end; ++i) ++count[i];", ("INDEX*", "count"))

SLOW = kernel(
    "for (INDEX i = begin; i < end; ++i) usleep(1000 * milliseconds), out[i] = (INDEX)pthread_self();",
    ("INDEX", "milliseconds"),
    ("INDEX*", "out"),
)
"""Sleeps, and stores which thread ran each item."""

FILL = kernel("memset(scratch, 1, size);", ("INDEX", "size"), ("char*", "scratch"))

_ADD = """
for (INDEX i = begin; i < end; ++i)
    for (INDEX k = 0; k < width; ++k) sums[k] += values[i * width + k];
if (delay) usleep(begin * 7919 % 5 * delay);
"""
_ADD_ARGUMENTS = (
    ("const double*", "values"),
    ("INDEX", "width"),
    ("INDEX", "delay"),
    ("double*", "out"),
    ("double*", "sums"),
)
ADD = kernel(_ADD, *_ADD_ARGUMENTS)
"""Adds rows; delays make chunks end in a different order from that in which they begin."""
ADD_MERGED = kernel(
    f"memset(sums, 0, width * sizeof(double));{_ADD}",
    *_ADD_ARGUMENTS,
    merge="for (INDEX k = 0; k < width; ++k) out[k] += sums[k];",
)
"""Like ADD, with its own `merge`; such a kernel clears its sums itself."""
