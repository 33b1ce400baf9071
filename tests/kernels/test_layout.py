"""Records shared by host and kernels: the compiler and NumPy agree on the offset of every field."""

from __future__ import annotations

import numpy as np
import pytest

from cuanto.backends.cpu.backend import CpuBackend
from cuanto.kernels import layout
from cuanto.kernels.build import Source
from cuanto.kernels.layout import Layout, Records

LAYOUTS = [value for value in vars(layout).values() if isinstance(value, Layout)]
HEAD = "typedef long long INDEX;\ntypedef double REAL;\ntypedef void (*Kernel)(const void*);\n"


@pytest.mark.parametrize("given", LAYOUTS, ids=lambda given: given.name)
def test_the_compiler_agrees(given: Layout) -> None:
    """A kernel reads all fields of the second of two records by their names."""
    reads = "\n".join(f"    out[{i}] = (double)((INDEX)x.{name});" for i, (_, name) in enumerate(given.fields))
    text = f"""{HEAD}{given.text}
extern "C" void read_fields(INDEX begin, INDEX end, const void* records, double* out) {{
    const {given.name}& x = ((const {given.name}*)records)[1];
{reads}
}}"""
    arguments = (("INDEX", "begin"), ("INDEX", "end"), ("const void*", "records"), ("double*", "out"))
    backend, out = CpuBackend(threads=1), np.zeros(len(given.fields))
    rows = [{name: 100 * r + i for i, (_, name) in enumerate(given.fields)} for r in range(2)]
    records = Records(given, rows, backend.address)
    program = backend.compile(Source(text, "read_fields", "cpu", arguments))
    backend.launch(program, 1, {"records": records.array, "out": out})
    assert out.tolist() == [100.0 + i for i in range(len(given.fields))]
    assert given.dtype.itemsize == 8 * len(given.fields)


def test_pointers() -> None:
    """Pointers to arrays and other records, null pointers, and given addresses."""
    backend, array = CpuBackend(threads=1), np.arange(3)
    inner = Records(Layout("Inner", "Something.", "INDEX x;"), [{"x": 7}], backend.address)
    outer = Layout("Outer", "Points to it.", "const INDEX* a;\nconst Inner* b;\nvoid* c;\nvoid* d;")
    found = Records(outer, [{"a": array, "b": inner, "c": None, "d": 42}], backend.address)
    assert found.array[0].tolist() == (backend.address(array), backend.address(inner.array), 0, 42)
    assert found["d"][0] == 42


def test_fields_are_those_of_the_text() -> None:
    result = Layout("A", "About.", "\n    INDEX x, y;\n    double z;  // why; and how\n    int* p;\n")
    assert result.fields == (("INDEX", "x"), ("INDEX", "y"), ("double", "z"), ("int*", "p"))
    assert result.text == "// About.\nstruct A {\n    INDEX x, y;\n    double z;  // why; and how\n    int* p;\n};\n"
