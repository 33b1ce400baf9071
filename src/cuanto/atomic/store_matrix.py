"""Supermatrices on a GPU as whole matrices over the pairs of all symmetries, so that P is a matrix times a vector.

Both triangles are kept: twice the memory of one, but rows are read in order, nobody searches for a row and a column in
a packed index, and sums need no atomic operations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto.atomic.pairs import Pairs
from cuanto.atomic.species import exchange_factors
from cuanto.kernels.atomic import CONTRACT_THREADS, THREADS, ClassTables, class_tables, contract_source, integral_source
from cuanto.kernels.text import Source

Array = NDArray[np.float64]


class MatrixStore:
    """What `Repulsion` keeps on a GPU: LL, SS, direct LS and SL, and K (exchange LS, both orders of a pair)."""

    def __init__(self, pairs: Sequence[Pairs], backend: Any, relativistic: bool) -> None:
        self.pairs, self.backend, self.relativistic = pairs, backend, relativistic
        counts = [one.count for one in pairs]
        self.first = np.concatenate([[0], np.cumsum(counts)]).tolist()
        self.total = n = self.first[-1]
        xp = backend.xp
        self.LL = xp.empty((n, n))
        rest = n if relativistic else 0
        self.SS, self.LS, self.SL = (xp.empty((rest, rest)) for _ in range(3))
        self.K = xp.empty((2 * rest, 2 * rest))
        self._contract = contract_source("cuda", relativistic)
        self._whole = self._constants([0, n], np.ones((1, 1)))
        filled = [i for i, one in enumerate(pairs) if one.count]
        classes = {(i, j): self._class(i, j) for i in filled for j in filled}
        for source in {self._contract, *(source for source, _ in classes.values())}:
            backend.ready(source)  # all of them are compiled beside each other
        backend.finish_compiling()
        tables = self._put_tables([tables for _, tables in classes.values()])
        records = [(backend.to_device(one.row_record), backend.to_device(one.column_record)) for one in pairs]
        for ((i, j), (source, _)), table in zip(classes.items(), tables, strict=True):
            self._launch(i, j, source, records[i][0], records[j][1], table)
        backend.synchronize()

    @staticmethod
    def bytes_needed(pairs: Sequence[Pairs], relativistic: bool) -> int:
        """Memory of all matrices."""
        n = sum(one.count for one in pairs)
        return 8 * n * n * (8 if relativistic else 1)

    def _class(self, i: int, j: int) -> tuple[Source, ClassTables]:
        one, other = self.pairs[i].species, self.pairs[j].species
        factors = tuple(exchange_factors(one, other).items())
        source = integral_source("cuda", one.kappa, other.kappa, self.relativistic)
        return source, class_tables(one.kappa, other.kappa, factors)

    def _put_tables(self, tables: Sequence[ClassTables]) -> list[tuple[Any, Any]]:
        """All tables in two copies: a small one each would wait for the device a hundred times."""
        joined = [np.concatenate(parts) for parts in ([t.shape for t in tables], [t.values for t in tables])]
        shapes, values = (self.backend.to_device(one) for one in joined)
        ends = np.cumsum([len(t.values) for t in tables]).tolist()
        length = len(tables[0].shape)
        return [
            (shapes[k * length : (k + 1) * length], values[end - len(t.values) : end])
            for k, (t, end) in enumerate(zip(tables, ends, strict=True))
        ]

    def _launch(self, i: int, j: int, source: Source, rows: Any, columns: Any, table: tuple[Any, Any]) -> None:
        row, column = self.pairs[i], self.pairs[j]
        blocks = -(-column.count // THREADS)
        values = {
            "row_begin": 0,
            "row_end": row.count,
            "rows": row.count,
            "columns": column.count,
            "row_record": rows,
            "column_record": columns,
            "shape": table[0],
            "table": table[1],
            "row_offset": self.first[i],
            "column_offset": self.first[j],
            "stride": self.total,
            "out_LL": self.LL,
            "out_SS": self.SS,
            "out_LS": self.LS,
            "out_SL": self.SL,
            "out_K": self.K,
        }
        self.backend.launch(source, row.count * blocks, THREADS, 0, values)

    def contract(self, D_i: Sequence[Array]) -> Callable[[], list[Array]]:
        """All symmetries at once: one long row each."""
        return self._begin(D_i, self._whole, range(len(self.pairs)))

    def contract_weighted(self, D_i: Sequence[Array], chosen: Sequence[int], A_lm: Array) -> Callable[[], list[Array]]:
        """Only blocks of the chosen symmetries are read."""
        weight = np.zeros((len(self.pairs), len(self.pairs)))
        weight[np.ix_(chosen, chosen)] = A_lm
        return self._begin(D_i, self._constants(self.first, weight), chosen)

    def _constants(self, first: Sequence[int], weight: Array) -> dict[str, Any]:
        starts, weights = (self.backend.to_device(one) for one in (np.array(first, dtype=np.int64), weight))
        return {"symmetries": len(weight), "first": starts, "weight": weights}

    def _begin(
        self, D_i: Sequence[Array], constants: dict[str, Any], chosen: Sequence[int]
    ) -> Callable[[], list[Array]]:
        D = self._put(D_i)
        P = self.backend.xp.empty_like(D)
        matrices = {name: getattr(self, name) for name in ("LL", "SS", "LS", "SL", "K")}
        values = {"pairs": self.total, **constants, **matrices, "D": D, "P": P}
        self.backend.launch(self._contract, P.size, CONTRACT_THREADS, 0, values)

        def wait() -> list[Array]:
            (host,) = self.backend.download([P])
            return [host[:, self.first[i] : self.first[i + 1]] for i in chosen]

        return wait

    def _put(self, D_i: Sequence[Array]) -> Any:
        joined = [D[:, : one.count] for one, D in zip(self.pairs, D_i, strict=True)]
        return self.backend.to_device(np.concatenate(joined, axis=1))
