"""Orbitals of a Fock matrix: the protocol of diagonalisers, and full diagonalisation."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Protocol

from cuanto.arrays import Array
from cuanto.scf.orthogonal import Device


class Diagonaliser(Protocol):
    """Computes new orbitals from a Fock matrix in an orthonormal basis and the current orbitals (None at the start)."""

    def __call__(self, F_sjk: Any, C_sjm: Any | None, n_sm: Array, energy: float) -> tuple[Any, Any, str]:
        """Orbitals, their energies, and the name of the step."""

    def restart(self) -> None:
        """Discard the history of earlier calls."""


class Full:
    """Full diagonalisation.

    `smearing`: occupations depend on the energies, which are therefore those without the level shift.
    """

    def __init__(self, device: Device, level_shift: float = 0.0, smearing: bool = False) -> None:
        self.device, self.xp, self.level_shift, self.smearing = device, device.xp, level_shift, smearing

    def restart(self) -> None:
        """No effect: there is no history."""

    def __call__(self, F_sjk: Any, C_sjm: Any | None, n_sm: Array, energy: float) -> tuple[Any, Any, str]:
        """Eigenvectors of F with virtual orbitals raised by the level shift."""
        if not self.level_shift or C_sjm is None:
            return (*eigenvectors(F_sjk, self.device), "full")
        empty_sm = self.xp.asarray(1.0 - n_sm / n_sm.max())
        empty_sm = empty_sm if len(empty_sm) == len(C_sjm) else empty_sm.mean(axis=0, keepdims=True)
        shift_sjk = self.level_shift * (C_sjm * empty_sm[:, None, :]) @ C_sjm.transpose(0, 2, 1)
        C_sjm, eps_sm = eigenvectors(F_sjk + shift_sjk, self.device)
        if self.smearing:
            C_sjm, eps_sm = by_energy(F_sjk, C_sjm, self.xp)
        return C_sjm, eps_sm, "full"


def by_energy(F_sjk: Any, C_sjm: Any, xp: Any) -> tuple[Any, Any]:
    """Orbitals in the order of their energies C^T F C, and these energies."""
    eps_sm = (C_sjm * (F_sjk @ C_sjm)).sum(axis=1)
    orders = [xp.argsort(eps_m) for eps_m in eps_sm]
    sorted_orbitals = [C_jm[:, order] for C_jm, order in zip(C_sjm, orders, strict=True)]
    return xp.stack(sorted_orbitals), xp.stack([eps_m[order] for eps_m, order in zip(eps_sm, orders, strict=True)])


def stack(matrices: Sequence[Any], xp: Any) -> Any:
    """Stack matrices; a single one is not copied."""
    return matrices[0][None] if len(matrices) == 1 else xp.stack(matrices)


def eigenvectors(F_sjk: Any, device: Device) -> tuple[Any, Any]:
    """Orbitals and energies of each spin, one spin after the other: batched solvers of GPU libraries are slower."""
    xp, solved = device.xp, [device.linalg.eigh(F_jk) for F_jk in F_sjk]
    return xp.stack([C_jm for _, C_jm in solved]), xp.stack([eps_m for eps_m, _ in solved])


def diagonalise_blocks(F_jk: Any, C_jm: Any, edges: Sequence[int], device: Device) -> tuple[Any, list[Any]]:
    """Orbitals that diagonalise F within each block of orbitals, and their energies by block.

    The density does not change if all orbitals of a block have the same occupation.
    """
    xp, product = device.xp, device.linalg.product
    orbitals, energies, FC_jm = [], [], product(F_jk, C_jm)
    for begin, end in pairwise(edges):
        own = C_jm[:, begin:end]
        eps_m, U_mm = device.linalg.eigh(product(own.T, FC_jm[:, begin:end]))
        orbitals.append(product(own, U_mm))
        energies.append(eps_m)
    return xp.concatenate(orbitals, axis=1), energies
