"""Atoms on a real GPU: integrals, potentials and energies agree with those of the CPU."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from atomic_cases import PLANE_NAMES, planes, random_basis, random_densities, slow_planes, table_atom, table_basis
from cuanto.atomic import Atom, AtomBasis, Nucleus, Occupation, Repulsion, ScfSettings, solve, well_tempered

pytestmark = pytest.mark.gpu

AGREE = 1e-13
"""Tolerance relative to the largest element: the same sums are rounded differently."""
ENERGY_REL = 1e-12
"""Relative tolerance of energies."""


@pytest.fixture(autouse=True)
def empty_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CUANTO_CACHE", str(tmp_path))


@pytest.mark.parametrize("extreme", [False, True], ids=["usual", "extreme"])
def test_every_class(extreme: bool) -> None:
    sizes = (3, 2, 2, 2, 2, 2, 2, 2, 2)
    basis = random_basis(3, sizes, -16.0, 36.0) if extreme else random_basis(1, sizes)
    repulsion = Repulsion(basis, "cuda")
    for i in range(basis.nsym):
        for j in range(basis.nsym):
            expected, found = slow_planes(basis, i, j), planes(repulsion, i, j)
            sizes_ij = slow_planes(basis, i, j, sizes=True)
            for plane in PLANE_NAMES:
                assert (np.abs(found[plane] - expected[plane]) / sizes_ij[plane]).max() < 2e-14


@pytest.mark.parametrize("relativistic", [True, False])
def test_potentials(relativistic: bool) -> None:
    basis = table_basis("Ag")
    D_i = random_densities(basis)
    if not relativistic:
        D_i = [D[:n, :n] for D, n in zip(D_i, basis.sizes, strict=True)]
    ours, theirs = (Repulsion(basis, name, relativistic) for name in ("cuda", "cpu"))
    A_lm = np.array([[0.3, 0.1, -0.2], [0.1, 0.5, 0.4], [-0.2, 0.4, 1.0]])
    pairs = [*zip(ours.potential(D_i), theirs.potential(D_i), strict=True)]
    pairs += zip(ours.open_shell(D_i, (0, 3, 4), A_lm), theirs.open_shell(D_i, (0, 3, 4), A_lm), strict=True)
    for P, Q in pairs:
        assert np.abs(P - Q).max() < AGREE * np.abs(Q).max()


@pytest.mark.parametrize("symbol", ["He", "N", "Ne", "Cr", "Xe", "Au", "At"])
def test_energies(symbol: str) -> None:
    ours, theirs = (solve(table_atom(symbol, "gauss"), backend=name) for name in ("cuda", "cpu"))
    assert ours.converged and theirs.converged
    assert ours.energy == pytest.approx(theirs.energy, rel=ENERGY_REL)


def test_without_relativity() -> None:
    settings = ScfSettings(relativistic=False)
    ours, theirs = (solve(table_atom("Ar"), settings, name) for name in ("cuda", "cpu"))
    assert ours.converged and ours.energy == pytest.approx(theirs.energy, rel=ENERGY_REL)


@pytest.mark.parametrize("size", [10, 25])
def test_radon_as_in_the_benchmark(size: int) -> None:
    zeta = well_tempered(6.87e-2, 1.83, 3.97, 0.78, size)
    atom = Atom(Nucleus(86), AtomBasis((zeta,) * 7), Occupation((6, 5, 5, 3, 3, 1, 1)))
    ours, theirs = (solve(atom, backend=name) for name in ("cuda", "cpu"))
    assert ours.converged and ours.energy == pytest.approx(theirs.energy, rel=ENERGY_REL)
