"""Operations that CuPy's arrays lack: symmetric products, inverses of triangles, and calls on separate streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any


class CudaLibrary:
    """cuBLAS and streams of the current device; `cupy`: the module."""

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy

    def lower_gram(self, A: Any) -> Any:
        """A A^T, its lower triangle only."""
        from cupy import cublas

        G = self._cupy.empty((len(A), len(A)), dtype=A.dtype)
        return cublas.syrk("N", A, out=G, lower=True)

    def inverse(self, L: Any) -> Any:
        """Inverse of a lower triangle."""
        from cupyx.scipy.linalg import solve_triangular

        return solve_triangular(L, self._cupy.eye(len(L), dtype=L.dtype), lower=True, check_finite=False)

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
