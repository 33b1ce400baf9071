"""Linear algebra by CUDA's libraries that CuPy's arrays lack, or have only with slow imports, and separate streams.

Functions of `cupy.linalg` import `cupyx`, and with it SciPy, which takes 0.3 s in every process. The factorisations
that every calculation needs are therefore called directly, with the same routines. Operators of a CuPy array with a
number on their right import it as well (`A * 2.0`, but not `2.0 * A` nor `xp.multiply(A, 2.0)`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np


class CudaLibrary:
    """cuBLAS and streams of the current device; `cupy`: the module."""

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy

    def add_products(self, A: Any, B_k: Any, C_k: Any) -> None:
        """C_k += A B_k of stacks; A and B are contiguous, C has contiguous rows."""
        from cupy_backends.cuda.libs import cublas

        one, handle = np.ones(1), self._cupy.cuda.device.get_cublas_handle()
        (count, inner, columns), (stack, row, _) = B_k.shape, (stride // C_k.itemsize for stride in C_k.strides)
        # C_k^T += B_k^T A^T: CUDA stores columns, CuPy rows
        sizes = (cublas.CUBLAS_OP_N, cublas.CUBLAS_OP_N, columns, len(A), inner)
        factors = (B_k.data.ptr, columns, inner * columns, A.data.ptr, inner, 0)
        scale = one.ctypes.data
        cublas.dgemmStridedBatched(handle, *sizes, scale, *factors, scale, C_k.data.ptr, row, stack, count)

    def lower_gram(self, A: Any) -> Any:
        """A A^T, its lower triangle only."""
        from cupy import cublas

        G = self._cupy.empty((len(A), len(A)), dtype=A.dtype)
        return cublas.syrk("N", A, out=G, lower=True)

    def cholesky(self, A: Any) -> Any:
        """Lower Cholesky factor; elements above the diagonal are undefined."""
        cupy = self._cupy
        if A.ndim != 2 or A.dtype != np.float64 or not A.size:
            return cupy.linalg.cholesky(A)
        from cupy_backends.cuda.libs import cublas, cusolver

        L, n, handle = A.astype(A.dtype, order="C", copy=True), len(A), cupy.cuda.device.get_cusolver_handle()
        upper = cublas.CUBLAS_FILL_MODE_UPPER  # the lower triangle here: CUDA stores columns, CuPy rows
        size = cusolver.dpotrf_bufferSize(handle, upper, n, L.data.ptr, n)
        work, status = cupy.empty(size), cupy.empty(1, dtype=np.int32)
        cusolver.dpotrf(handle, upper, n, L.data.ptr, n, work.data.ptr, size, status.data.ptr)
        return L

    def inverses(self, A: Any) -> Any:
        """Inverses of a stack of matrices."""
        cupy = self._cupy
        if A.ndim != 3 or A.dtype != np.float64 or not A.size:
            return cupy.linalg.inv(A)
        from cupy_backends.cuda.libs import cublas

        A, handle = A.astype(A.dtype, order="C", copy=True), cupy.cuda.device.get_cublas_handle()
        inverse, (count, n, _) = cupy.empty_like(A), A.shape
        pivots, status = cupy.empty((count, n), dtype=np.int32), cupy.empty(count, dtype=np.int32)
        given, found = (
            cupy.asarray(array.data.ptr + np.arange(count, dtype=np.uintp) * (n * n * A.itemsize))
            for array in (A, inverse)
        )
        cublas.dgetrfBatched(handle, n, given.data.ptr, n, pivots.data.ptr, status.data.ptr, count)
        cublas.dgetriBatched(handle, n, given.data.ptr, n, pivots.data.ptr, found.data.ptr, n, status.data.ptr, count)
        return inverse

    def eigh(self, A: Any) -> tuple[Any, Any]:
        """Eigenvalues, ascending, and eigenvectors of a symmetric matrix, or of a stack of them."""
        cupy = self._cupy
        if A.ndim != 2 or A.dtype != np.float64 or not A.size:
            values, vectors = cupy.linalg.eigh(A)
            return values, vectors
        from cupy_backends.cuda.libs import cublas, cusolver

        vectors, n, handle = A.astype(A.dtype, order="F", copy=True), len(A), cupy.cuda.device.get_cusolver_handle()
        values, status = cupy.empty(n), cupy.empty(1, dtype=np.int32)
        real = cupy.cuda.runtime.CUDA_R_64F
        matrix = (cusolver.CUSOLVER_EIG_MODE_VECTOR, cublas.CUBLAS_FILL_MODE_LOWER, n, real, vectors.data.ptr, n)
        arguments = (*matrix, real, values.data.ptr, real)
        parameters = cusolver.createParams()
        try:
            on_device, on_host = cusolver.xsyevd_bufferSize(handle, parameters, *arguments)
            work, host = cupy.empty(on_device, dtype=np.int8), np.empty(on_host, dtype=np.int8)
            buffers = (work.data.ptr, on_device, host.ctypes.data, on_host)
            cusolver.xsyevd(handle, parameters, *arguments, *buffers, status.data.ptr)
        finally:
            cusolver.destroyParams(parameters)
        return values, vectors

    def inverse(self, L: Any) -> Any:
        """Inverse of a lower triangle."""
        cupy, n = self._cupy, len(L)
        inverse = cupy.eye(n, dtype=L.dtype)
        if L.dtype != np.float64 or not n:
            from cupyx.scipy.linalg import solve_triangular

            return solve_triangular(L, inverse, lower=True, check_finite=False)
        from cupy_backends.cuda.libs import cublas

        L, one, handle = cupy.ascontiguousarray(L), np.ones(1), cupy.cuda.device.get_cublas_handle()
        # X^T L^T = 1: CUDA stores columns, CuPy rows
        triangle = (cublas.CUBLAS_SIDE_RIGHT, cublas.CUBLAS_FILL_MODE_UPPER, cublas.CUBLAS_OP_N)
        matrices = (one.ctypes.data, L.data.ptr, n, inverse.data.ptr, n)
        cublas.dtrsm(handle, *triangle, cublas.CUBLAS_DIAG_NON_UNIT, n, n, *matrices)
        return inverse

    def concurrently(self, call: Callable[[Any], Any], given: Sequence[Any]) -> Iterator[Any]:
        """Run each call on a separate stream; the current stream waits for it when its result is used."""
        now, found = self._cupy.cuda.get_current_stream(), []
        begin = now.record()
        for A, stream in zip(given, self._streams, strict=True):
            stream.wait_event(begin)
            with stream:
                found.append((call(A), stream.record(), A))  # A must not be freed before the call is done

        def results() -> Iterator[Any]:
            for result, done, _ in found:
                now.wait_event(done)
                yield result

        return results()

    @cached_property
    def _streams(self) -> list[Any]:
        """Two streams of high priority; cached, because memory allocated on a stream returns to it."""
        return [self._cupy.cuda.Stream(non_blocking=True, priority=-1) for _ in range(2)]
