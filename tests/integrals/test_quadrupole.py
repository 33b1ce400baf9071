"""Second moments on every backend against the NumPy reference, and the reference against libcint."""

from __future__ import annotations

import numpy as np
import pytest

from cuanto import Basis, Molecule, integrals
from cuanto.basis import Shell
from oracles.integrals import quadrupole_matrices
from tolerances import INTEGRAL_REL


def mixed_basis(pure: bool, l_max: int) -> tuple[Molecule, Basis]:
    """Shells of two atoms, far from the coordinate origin."""
    pair = Molecule(["O", "H"], [[1.3, -0.2, 2.5], [-0.4, 0.9, 1.6]], charge=-1)
    shells = [Shell.from_table(a, l, [1.5 + a, 0.4], [[0.6], [0.5]], pure) for l in range(l_max + 1) for a in (0, 1)]
    return pair, Basis.from_shells(shells, pair.R_ax, symbols=pair.symbols)


@pytest.mark.parametrize(("device", "l_max"), [("cpu", 4), ("simt", 2), pytest.param("cuda", 4, marks=pytest.mark.gpu)])
@pytest.mark.parametrize("pure", [True, False])
def test_kernels_against_the_reference(device: str, l_max: int, pure: bool) -> None:
    _, basis = mixed_basis(pure, l_max)
    found = integrals.quadrupole(basis, backend=device)
    exact = quadrupole_matrices(basis)
    values = np.asarray(found if isinstance(found, np.ndarray) else found.get())
    assert values.shape == (6, basis.nbf, basis.nbf)
    assert np.abs(values - exact).max() <= INTEGRAL_REL * np.abs(exact).max()


def test_the_reference_against_libcint() -> None:
    from pyscf import gto

    pair, basis = mixed_basis(True, 3)
    shells: dict[str, list[object]] = {}
    for shell in basis.shells:
        norm_k = gto.gto_norm(shell.l, shell.exponents)
        rows = np.column_stack([shell.exponents, shell.coefficients / norm_k[:, None]]).tolist()
        shells.setdefault(f"{pair.symbols[shell.atom]}{shell.atom}", []).append([shell.l, *rows])
    atoms = list(zip(shells, pair.R_ax.tolist(), strict=True))
    mol = gto.M(atom=atoms, unit="Bohr", basis=shells, charge=-1, verbose=0)
    ours, theirs = quadrupole_matrices(basis), mol.intor("int1e_rr")[[0, 1, 2, 4, 5, 8]]
    # The order of functions differs, norms of matrices do not.
    for x in range(6):
        assert np.linalg.norm(ours[x]) == pytest.approx(np.linalg.norm(theirs[x]), rel=1e-12)
        assert np.trace(ours[x]) == pytest.approx(np.trace(theirs[x]), rel=1e-12)
