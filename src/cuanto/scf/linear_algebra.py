"""Small pieces of the SCF's linear algebra: eigenvectors, stacks, diagonals."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from cuanto.scf.orthogonal import Place


def stack(matrices: Sequence[Any], xp: Any) -> Any:
    """A stack of matrices; of a single one, without a copy."""
    return matrices[0][None] if len(matrices) == 1 else xp.stack(matrices)


def add_to_diagonal(A: Any, value: Any) -> None:
    """Add a number to the diagonals of contiguous square matrices, in place."""
    A.reshape(*A.shape[:-2], -1)[..., :: A.shape[-1] + 1] += value


def eigenvectors(F_sjk: Any, xp: Any) -> tuple[Any, Any]:
    """Orbitals and energies of every spin, one after the other: GPU libraries do batches by slow Jacobi sweeps."""
    solved = [xp.linalg.eigh(F_jk) for F_jk in F_sjk]
    return xp.stack([C_jm for _, C_jm in solved]), xp.stack([eps_m for eps_m, _ in solved])


def diagonalise_blocks(F_jk: Any, C_jm: Any, edges: Sequence[int], place: Place) -> tuple[Any, list[Any]]:
    """Orbitals that diagonalise F among those of each block, which leaves the density as it is where blocks have equal
    occupations; and the energies of each."""
    xp, product = place.xp, place.linalg.product
    orbitals, energies, FC_jm = [], [], product(F_jk, C_jm)
    for begin, end in pairwise(edges):
        own = C_jm[:, begin:end]
        eps_m, U_mm = xp.linalg.eigh(product(own.T, FC_jm[:, begin:end]))
        orbitals.append(product(own, U_mm))
        energies.append(eps_m)
    return xp.concatenate(orbitals, axis=1), energies
