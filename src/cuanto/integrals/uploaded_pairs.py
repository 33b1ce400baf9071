"""Pairs of shells on a device: selected on the host, their records made by a kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from cuanto.backends.base import Backend, Launch
from cuanto.basis import Basis
from cuanto.integrals.batches import BraBatch
from cuanto.integrals.engine import upload_groups
from cuanto.integrals.pairs import Candidates, RowMap, class_pairs, select_pairs
from cuanto.integrals.segments import SegmentClass, segments
from cuanto.kernels.abi import COULOMB_BRA
from cuanto.kernels.shell_pairs import shell_pairs_source

PAIR_THRESHOLD = 1e-18
"""Primitive pairs below this contribute nothing in double precision."""


MAX_KEPT = 2**22
"""Largest number of products of primitives whose lists of candidates are kept for later positions: 80 MB at most."""


def upload_pairs(basis: Basis, backend: Backend) -> list[BraBatch]:
    """All pairs of shells, to share them between several kinds of integrals; rows are p n + q."""
    classes, row_of = segments(basis), RowMap(basis.nbf, packed=False)
    known, chosen = basis.of_shells(_few_candidates), []
    for x, y in class_pairs(len(classes)):
        a, b = classes[x], classes[y]
        candidates = known.get((x, y)) or Candidates.of(a, b, x == y)
        chosen += [(x, y, pairs) for pairs in select_pairs(a, b, candidates, PAIR_THRESHOLD)]
    lists: list[dict[str, Any]] = [
        {"u": pairs.u, "v": pairs.v, "first": pairs.first.astype(np.int32), "shell": pairs.distances}
        for _, _, pairs in chosen
    ]
    uploaded = upload_groups(backend, [*map(_arrays, classes), *lists])
    program = backend.compile(shell_pairs_source(backend.traits.language))
    batches, launches = [], []
    for (x, y, pairs), own in zip(chosen, uploaded[len(classes) :], strict=True):
        count, columns = len(pairs.u), pairs.a.columns * pairs.b.columns
        made = {"record": backend.xp.empty((count, COULOMB_BRA)), "coefficient": backend.xp.empty((count, columns))}
        sides = {f"{side}_{name}": array for side, k in (("a", x), ("b", y)) for name, array in uploaded[k].items()}
        sides |= {"a_columns": pairs.a.columns, "b_columns": pairs.b.columns}
        launches.append(Launch(program, count, {**sides, **own, **made}))
        arrays = {name: {**own, **made}[name] for name in ("first", "record", "coefficient", "shell")}
        batches.append(
            BraBatch(
                pairs.shells,
                columns,
                **arrays,
                rows=pairs.rows(row_of),
                ill_conditioned=pairs.ill_conditioned,
                loss=pairs.loss,
                device={f"bra_{name}": array for name, array in arrays.items()},
            )
        )
    backend.launch_all(launches)
    return batches


def _few_candidates(basis: Basis) -> dict[tuple[int, int], Candidates]:
    """Candidates by the numbers of their classes, unless they are too many to be kept."""
    classes = segments(basis)
    if sum(len(one.exponents) for one in classes) ** 2 > MAX_KEPT:
        return {}
    return {(x, y): Candidates.of(classes[x], classes[y], x == y) for x, y in class_pairs(len(classes))}


def _arrays(one: SegmentClass) -> dict[str, Any]:
    """Arrays over the primitives of a class."""
    centres = np.repeat(one.centres, one.sizes, axis=0)
    return {"exponent": one.exponents, "centre": centres, "coefficient": one.coefficients}
