"""Pairs of shells whose records are made on a device, against those of the host."""

from __future__ import annotations

import numpy as np
import pytest

from cuanto import Molecule
from cuanto.backends.base import get_backend
from cuanto.basis import Basis, Shell
from cuanto.integrals.api import basis_pairs
from cuanto.integrals.attenuation import attenuate
from cuanto.integrals.pairs import RowMap
from cuanto.integrals.uploaded_pairs import PAIR_THRESHOLD, upload_pairs

ROUNDING = 4e-15
"""Relative: a kernel may contract products and sums, and has an exponential function of its own."""


def _bases() -> list[Basis]:
    """Contracted shells, and a tight p next to a diffuse one, whose pairs are ill-conditioned."""
    water = Basis("def2-svp", Molecule(["O", "H", "H"], [[0.0, 0.1, 0.2], [0.0, 1.4, 1.1], [0.3, -1.4, 1.1]]))
    shells = [Shell.from_table(a, l, [e], [[1.0]], True) for a, l, e in ((0, 2, 0.05), (1, 1, 800.0), (1, 0, 0.3))]
    return [water, Basis.from_shells(shells, [[0.0, 0.0, 0.0], [0.4, 1.0, 2.5]])]


@pytest.mark.parametrize("name", ["cpu", "simt", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("omega", [None, 0.4])
def test_records_are_those_of_the_host(name: str, omega: float | None) -> None:
    backend = get_backend(name)
    for basis in _bases():
        expected = basis_pairs(basis, RowMap(basis.nbf, packed=False), PAIR_THRESHOLD)
        found = upload_pairs(basis, backend)
        for mine, host in zip(found, expected, strict=True):
            mine, host = attenuate(mine, omega), attenuate(host, omega)
            assert (mine.shells, mine.columns, mine.count) == (host.shells, host.columns, host.count)
            assert (mine.ill_conditioned, mine.loss, mine.attenuated) == (
                host.ill_conditioned,
                host.loss,
                host.attenuated,
            )
            np.testing.assert_array_equal(mine.rows, host.rows)
            first, shell, record, coefficient = (
                backend.to_host(array) for array in (mine.first, mine.shell, mine.record, mine.coefficient)
            )
            np.testing.assert_array_equal(first, host.first)
            np.testing.assert_array_equal(shell, host.shell)
            np.testing.assert_allclose(coefficient, host.coefficient, rtol=20 * ROUNDING)
            np.testing.assert_allclose(record[:, :11], host.record[:, :11], rtol=ROUNDING, atol=ROUNDING)
            # The centre and its rounding error together have twice the precision.
            centre, host_centre = (r[:, 1:4].astype(np.longdouble) + r[:, 11:14] for r in (record, host.record))
            np.testing.assert_allclose(np.float64(centre - host_centre), 0.0, atol=ROUNDING)
            assert mine.device is not None and mine.device["bra_record"] is mine.record
