"""Whether a basis describes the core electrons of an element, and whether its contraction fits X2C.

Both are judged by the energy of one electron in the field of the bare nucleus, where formulas for s and p functions
are short. The limits separate the sets of the Basis Set Exchange:

- Sets of all electrons have at least 0.53 of the energy of 1s (0.53 for relativistic contractions of actinides) and
  0.84 of that of 2p (Z > 10); sets without the core potential that they were made for mostly have less than half.
- A contraction raises the lowest energy of the s functions by a fraction. Nonrelativistic contractions raise that of
  X2C more than that of Schroedinger's equation, by 0.04 % (K) to 13 % (Lr); relativistic ones raise it less.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import gamma

import numpy as np

from cuanto.arrays import Array
from cuanto.backends.base import get_backend
from cuanto.basis import Basis
from cuanto.basis.shell import Shell, tabulated_coefficients
from cuanto.system import Molecule
from cuanto.system.elements import ATOMIC_NUMBERS
from cuanto.terms.decoupling import Decoupling

SMALLEST_SHARE = (0.5, 0.8)
"""Smallest fraction of the energy of 1s and 2p that sets of all electrons have."""
FIRST_CORES = (3, 11)
"""First elements with 1s and 2p in the core."""
FIRST_CONTRACTED = 19
"""First element, potassium, for which the contraction is judged; the error grows as Z squared."""
LARGEST_LOSS = 3e-4
"""Largest fraction of the energy of 1s that a contraction may lose with X2C."""
DEPENDENCE = 1e-9
"""Combinations of functions with an eigenvalue of the overlap matrix below this are left out."""


def elements_without_core(molecule: Molecule, basis: Basis) -> list[str]:
    """Elements of which all electrons are described, in functions that are for the outer ones only."""
    return [symbol for symbol, shells in _all_electron_elements(molecule, basis) if lacks_core(symbol, shells)]


def elements_contracted_without_relativity(molecule: Molecule, basis: Basis, c: float) -> list[str]:
    """Elements whose functions were contracted without relativity, although X2C is used."""
    return [
        s for s, shells in _all_electron_elements(molecule, basis) if is_contracted_without_relativity(s, shells, c)
    ]


def _all_electron_elements(molecule: Molecule, basis: Basis) -> Iterator[tuple[str, tuple[Shell, ...]]]:
    """Elements of atoms without core potentials, with the shells of the first such atom."""
    nuclei, found = molecule.nuclei, set()
    for atom, symbol in enumerate(molecule.elements):
        if symbol not in found and not nuclei.ghosts[atom] and not nuclei.core_electrons[atom]:
            found.add(symbol)
            yield symbol, basis.shells_of_atoms[atom]


def lacks_core(symbol: str, shells: Sequence[Shell]) -> bool:
    """Whether 1s or 2p of an element, if they are in its core, cannot be expanded in the shells."""
    Z = ATOMIC_NUMBERS[symbol]
    for l, (first, smallest) in enumerate(zip(FIRST_CORES, SMALLEST_SHARE, strict=True)):
        exact = -0.5 * (Z / (l + 1)) ** 2
        if first <= Z and _lowest_energy(l, shells, Z) > smallest * exact:
            return True
    return False


def is_contracted_without_relativity(symbol: str, shells: Sequence[Shell], c: float) -> bool:
    """Whether the contraction of the s functions loses more energy with X2C than without, and too much."""
    Z, s_shells = ATOMIC_NUMBERS[symbol], [shell for shell in shells if shell.l == 0]
    if Z < FIRST_CONTRACTED or not s_shells:
        return False
    a_k, C_kq = _primitives(s_shells)
    S_kl, T_kl, V_kl = _matrices(0, a_k, Z)
    # <grad a|V|grad b> of s functions: their derivatives are -2 a r times the functions
    W_kl = V_kl * 4.0 * np.outer(a_k, a_k) / np.add.outer(a_k, a_k)
    relativistic = Decoupling(S_kl, T_kl, V_kl, W_kl, c, get_backend("cpu")).contracted(np.eye(len(a_k)))
    without, with_x2c = (
        1.0 - _lowest(C_kq.T @ h_kl @ C_kq, C_kq.T @ S_kl @ C_kq) / _lowest(h_kl, S_kl)
        for h_kl in (T_kl + V_kl, np.asarray(relativistic))
    )
    return bool(with_x2c > max(without, LARGEST_LOSS))


def _lowest_energy(l: int, shells: Iterable[Shell], Z: int) -> float:
    """Lowest energy of one electron with angular momentum l in the contracted functions; 0 without functions."""
    own = [shell for shell in shells if shell.l == l]
    if not own:
        return 0.0
    a_k, C_kq = _primitives(own)
    S_kl, T_kl, V_kl = _matrices(l, a_k, Z)
    return _lowest(C_kq.T @ (T_kl + V_kl) @ C_kq, C_kq.T @ S_kl @ C_kq)


def _primitives(shells: Sequence[Shell]) -> tuple[Array, Array]:
    """Distinct exponents of shells of one angular momentum, and the contraction of normalised primitives."""
    a_k = np.unique(np.concatenate([shell.exponents for shell in shells]))
    blocks = []
    for shell in shells:
        blocks.append(np.zeros((len(a_k), shell.ncol)))
        np.add.at(blocks[-1], np.searchsorted(a_k, shell.exponents), tabulated_coefficients(shell))
    return a_k, np.concatenate(blocks, axis=1)


def _matrices(l: int, a_k: Array, Z: int) -> tuple[Array, Array, Array]:
    """Overlap, kinetic energy and attraction to the nucleus of normalised primitives r^l exp(-a r^2)."""
    a_kl, p_kl = np.outer(a_k, a_k), np.add.outer(a_k, a_k)
    S_kl = (2.0 * np.sqrt(a_kl) / p_kl) ** (l + 1.5)
    T_kl = S_kl * (2 * l + 3) * a_kl / p_kl
    V_kl = -Z * S_kl * np.sqrt(p_kl) * gamma(l + 1) / gamma(l + 1.5)
    return S_kl, T_kl, V_kl


def _lowest(h_pq: Array, S_pq: Array) -> float:
    """Lowest eigenvalue of h in the metric S."""
    scale_p = 1.0 / np.sqrt(np.diag(S_pq))
    s_m, U_pm = np.linalg.eigh(S_pq * np.outer(scale_p, scale_p))
    X_pm = scale_p[:, None] * U_pm[:, s_m > DEPENDENCE] / np.sqrt(s_m[s_m > DEPENDENCE])
    return float(np.linalg.eigvalsh(X_pm.T @ h_pq @ X_pm)[0])
