"""Matrix products by the host's BLAS, split into tiles for our threads."""

from __future__ import annotations

from functools import cache

from cuanto import tuning
from cuanto.kernels.abi import parse_arguments
from cuanto.kernels.text import Source, assemble

RANGE = parse_arguments("INDEX begin, INDEX end, const void* blas")
PRODUCT = RANGE + parse_arguments(
    "INDEX rows, INDEX columns, INDEX depth, INDEX tile, int lower, int transpose_a, const NUMBER* A, INDEX lda, "
    "int transpose_b, const NUMBER* B, INDEX ldb, NUMBER* C, INDEX ldc"
)
ROWS = RANGE + parse_arguments("const double* rows, INDEX naux")
KERNELS = {
    "solve": RANGE
    + parse_arguments(
        "double* rows, INDEX naux, const INDEX* one, const INDEX* other, const double* L, int triangle, double* scratch"
    ),
    "fit": ROWS + parse_arguments("const INDEX* first, const double* density, double* sums, double* out"),
    "potential": ROWS + parse_arguments("const INDEX* first, const double* fit, double* out"),
    "transform": ROWS
    + parse_arguments(
        "const INDEX* item_row, const INDEX* item_list, const int* list, const int* item_column, const int* "
        "item_columns, const INDEX* item_out, const INDEX* item_step, const double* C, INDEX columns, double* X, "
        "double* scratch"
    ),
    "squares": RANGE
    + parse_arguments(
        "INDEX naux, INDEX tile, const INDEX* item, const int* place, const double* X, INDEX n_all, double* sums, "
        "double* K"
    ),
}
"""Arguments of the steps of fitted J and K."""
SOLVED_AT_ONCE = tuning.size("cpu", "linalg.rows_solved_at_once")


@cache
def product_source(real: str = "double") -> Source:
    """op(A) op(B) by tiles."""
    return assemble("product_by_tiles", "cpu", real, PRODUCT, {"NUMBER": real}, ("blas.h", "products_cpu.h"))


@cache
def rows_kernel(name: str) -> Source:
    """Steps of fitted J and K with the rows of every function: `solve`, `fit`, `potential`, `transform`, `squares`."""
    body = ("blas.h", "fitting_rows_cpu.h")
    defines = {f"KERNEL_{name.upper()}": 1, "SOLVED_AT_ONCE": SOLVED_AT_ONCE}
    merge = "merge_squares" if name == "squares" else ""
    return assemble(f"rows_{name}", "cpu", "double", KERNELS[name], defines, body, merge=merge)
