"""The communicator of a backend: one rank by default, and sums of several where Fock matrices are made."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cuanto import Basis, Molecule
from cuanto.backends.communicator import Communicator, SingleRank
from cuanto.backends.cpu.backend import CpuBackend
from cuanto.backends.simt.backend import SimtBackend
from cuanto.coulomb.direct import DirectJK
from cuanto.coulomb.fitting import FittedJK
from cuanto.functionals import XCPotential, get_functional
from cuanto.terms.exchange_correlation import ExchangeCorrelation

HYDROGEN = Molecule(["H", "H"], [[0, 0, 0], [0, 0, 1.4]])
D_SPQ = np.array([[[0.6, 0.6], [0.6, 0.6]]])


class TwoEqualRanks(SingleRank):
    """A communicator whose sums behave as if a second rank had computed the same part."""

    size = 2

    def sum(self, array: Any) -> Any:
        return 2.0 * array


@pytest.mark.parametrize("backend", [CpuBackend(), SimtBackend()], ids=["cpu", "simt"])
def test_one_rank_by_default(backend: Any) -> None:
    communicator: Communicator = backend.communicator
    array = backend.to_device(np.arange(3.0))
    assert (communicator.rank, communicator.size) == (0, 1)
    assert communicator.sum(array) is array


def two_ranks() -> CpuBackend:
    backend = CpuBackend()
    backend.communicator = TwoEqualRanks()
    return backend


def test_coulomb_and_exchange_matrices_are_sums_over_ranks() -> None:
    basis, one, two = Basis("sto-3g", HYDROGEN), CpuBackend(), two_ranks()
    for alone, shared in zip(DirectJK(basis, backend=one)(D_SPQ), DirectJK(basis, backend=two)(D_SPQ), strict=True):
        assert np.array_equal(2.0 * alone, shared)


def test_fitted_coulomb_sums_coefficients_and_matrices() -> None:
    basis, aux = Basis("sto-3g", HYDROGEN), Basis("def2-universal-jkfit", HYDROGEN)
    (J, K), (J_two, K_two) = (FittedJK(basis, aux, backend=b)(D_SPQ) for b in (CpuBackend(), two_ranks()))
    assert J_two == pytest.approx(4.0 * J, rel=1e-12) and K_two == pytest.approx(2.0 * K, rel=1e-12)


def test_the_quadrature_is_a_sum_over_ranks() -> None:
    basis, functional = Basis("sto-3g", HYDROGEN), get_functional("pbe")
    result = []
    for backend in (CpuBackend(), two_ranks()):
        term = ExchangeCorrelation(XCPotential(functional, backend, 1), HYDROGEN, basis)
        result.append((*term.fock(D_SPQ, None), term.electrons, term.gradient(D_SPQ, None)))
    for alone, shared in zip(*result, strict=True):
        assert np.asarray(shared) == pytest.approx(2.0 * np.asarray(alone), rel=1e-12)
