"""Spherically averaged atoms: restricted SCF of one atom in its own basis, with open subshells spread evenly.

Superposition of atomic densities: J. H. Van Lenthe et al., J. Comput. Chem. 27, 926 (2006), doi:10.1002/jcc.20393.
Electrons of a subshell l are spread evenly over its components, so that only radial functions are left: matrices have
one block per l, and functions of unoccupied l are not needed.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations_with_replacement
from math import gamma

import numpy as np
from numpy.typing import NDArray

from cuanto.arrays import Array
from cuanto.backends.base import get_backend
from cuanto.basis import Basis, Shell, solid_harmonic_matrix
from cuanto.basis.core_potential import CorePotential
from cuanto.errors import require
from cuanto.scf.configurations import capacity, configuration, electrons_by_momentum, outside_core
from cuanto.scf.diis import History, flatten, unflatten
from cuanto.scf.fixed_point import iterations
from cuanto.scf.radial import RadialFunctions, repulsion
from cuanto.terms.x2c import NONRELATIVISTIC, OneElectronModel

TOLERANCE = 1e-6
"""Convergence threshold, sufficient for a guess."""
MAX_ITERATIONS = 60


@dataclass(frozen=True, eq=False)
class Atom:
    """Radial orbitals [l][a, i] in the functions of momentum l, and the electrons in all 2l + 1 components of each."""

    C_lai: tuple[Array, ...]
    n_li: tuple[Array, ...]
    energy: float
    converged: bool


def atom(
    number: int,
    charge: float,
    shells: tuple[Shell, ...],
    potential: CorePotential | None = None,
    model: OneElectronModel = NONRELATIVISTIC,
) -> Atom:
    """The atom in these shells (at any position), cached by element, charge, basis, core potential and model."""
    key = tuple((s.l, s.exponents.tobytes(), s.coefficients.tobytes(), s.coefficients.shape) for s in shells)
    return _atom(number, charge, key, potential, model)


@lru_cache(maxsize=256)
def _atom(
    number: int,
    charge: float,
    key: tuple[tuple[int, bytes, bytes, tuple[int, int]], ...],
    potential: CorePotential | None,
    model: OneElectronModel,
) -> Atom:
    subshells, found = configuration(number, charge), []
    for possible in [subshells] if potential is None else outside_core(subshells, number, potential.core_electrons):
        electrons = electrons_by_momentum(possible)
        shells = [
            Shell(0, l, np.frombuffer(exponents), np.frombuffer(coefficients).reshape(shape), True)
            for l, exponents, coefficients, shape in key
            if l < len(electrons)
        ]
        found.append(solve(number, electrons, shells, potential, model))
    return min(found, key=lambda one: one.energy)


def solve(
    number: int,
    electrons: list[float],
    shells: list[Shell],
    potential: CorePotential | None = None,
    model: OneElectronModel = NONRELATIVISTIC,
) -> Atom:
    """SCF of an atom with the given electrons in l = 0, 1, ..."""
    radial = _Radial(number, shells, potential, model)
    # Angular momenta without basis functions cannot be occupied.
    fillings = [_filling(q, l, len(radial.S[l])) for l, q in enumerate(electrons) if l < len(radial.S)]
    (last,) = deque(iterations(_AtomScf(radial, fillings), radial.h, MAX_ITERATIONS), maxlen=1)
    return last


class _AtomScf:
    """The fixed-point map of an atom: from Fock matrices of every l to the next ones, by diagonalisation and DIIS."""

    def __init__(self, radial: _Radial, fillings: list[Array]) -> None:
        self.radial, self.fillings, self.history = radial, fillings, History(6, get_backend("cpu"))

    def evaluate(self, F: list[Array], iteration: int, previous: Atom | None) -> Atom:
        """Density, energy and Fock matrices of the lowest orbitals of every l."""
        radial, fillings = self.radial, self.fillings
        orbitals = [x @ np.linalg.eigh(x.T @ f @ x)[1] for x, f in zip(radial.X, F, strict=True)]
        occupied = tuple(c[:, : len(n)] for c, n in zip(orbitals, fillings, strict=True))
        D = [(c * n) @ c.T for c, n in zip(occupied, fillings, strict=True)]
        F = radial.fock(D)
        energy = float(sum(0.5 * np.sum(d * (h + f)) for d, h, f in zip(D, radial.h, F, strict=True)))
        commutators = [x.T @ (f @ d @ s - s @ d @ f) @ x for x, f, d, s in zip(radial.X, F, D, radial.S, strict=True)]
        error = float(self.history.absorb(self.history.push(flatten(F, np), flatten(commutators, np))))
        change = np.inf if previous is None else energy - previous.energy
        return Atom(occupied, tuple(fillings), energy, error < TOLERANCE and abs(change) < TOLERANCE)

    def advance(self, current: Atom) -> list[Array]:
        """Extrapolated Fock matrices."""
        return unflatten(self.history.extrapolate(), self.radial.h)


def _filling(electrons: float, l: int, functions: int) -> Array:
    """Occupations of the radial orbitals of one angular momentum: full ones, then the open one."""
    full, rest = divmod(electrons, capacity(l))
    n_i = [float(capacity(l))] * int(full) + ([rest] if rest > 1e-12 else [])
    return np.array(n_i[:functions])


class _Radial:
    """Integrals over radial functions: one-electron ones for each l, J - K/2 averaged over components for each pair."""

    def __init__(
        self, number: int, shells: list[Shell], potential: CorePotential | None, model: OneElectronModel
    ) -> None:
        momenta = sorted({shell.l for shell in shells})
        require(0 in momenta, "a basis without s functions cannot hold the superposed atoms: use guess=core")
        momenta = [l for n, l in enumerate(momenta) if l == n]  # after a gap nothing is occupied
        shells = [shell for shell in shells if shell.l in momenta]
        own = [[shell for shell in shells if shell.l == l] for l in momenta]
        functions = [RadialFunctions.of(l, shells) for l, shells in enumerate(own)]
        charge = number - (potential.core_electrons if potential else 0)
        self.S = [radial.overlap() for radial in functions]
        if model == NONRELATIVISTIC:
            self.h = [radial.kinetic() + radial.attraction(charge) for radial in functions]
        else:
            self.h = _one_electron(own, number, charge, model)
        if potential is not None:
            self.h = [h + _core_potential(potential, shells) for h, shells in zip(self.h, own, strict=True)]
        self.X = [_orthogonaliser(s) for s in self.S]
        self._G: dict[tuple[int, int], Array] = {}
        for l, k in combinations_with_replacement(momenta, 2):
            self._G[l, k] = repulsion(functions[l], functions[k])
            self._G[k, l] = self._G[l, k].transpose(2, 3, 0, 1)

    def fock(self, D: list[Array]) -> list[Array]:
        """h + J - K/2; D[l] is the density of all components together."""
        return [
            h + sum(np.einsum("abcd,cd->ab", self._G[l, k], D[k]) for k in range(len(D))) for l, h in enumerate(self.h)
        ]


def _one_electron(shells: list[list[Shell]], number: int, charge: int, model: OneElectronModel) -> list[Array]:
    """The one-electron matrix of each angular momentum, by a model with relativity or Gaussian nuclei."""
    basis, backend = Basis.from_shells([shell for own in shells for shell in own], np.zeros((1, 3))), get_backend("cpu")
    h = model.atom(basis, number, charge, backend)
    # All components of an angular momentum have the same matrix: take the first.
    first = [p_am[:, 0] for p_am in _components(basis)]
    return [h[np.ix_(p, p)] for p in first]


def _core_potential(potential: CorePotential, shells: list[Shell]) -> Array:
    """Core potential between the radial functions of one momentum l on its centre: U_L + U_l act on them alone."""
    l = shells[0].l
    terms = [*potential.local, *(potential.projected[l] if l < len(potential.projected) else ())]
    rows = []
    for bra in shells:
        row = []
        for ket in shells:
            p_kk = np.add.outer(bra.exponents, ket.exponents)
            U_kk = np.zeros_like(p_kk)
            for term in terms:  # int r^(2l + n) exp(-(p + z) r^2) dr
                m = 0.5 * (2 * l + term.power + 1)
                U_kk += term.coefficient * 0.5 * gamma(m) / (p_kk + term.exponent) ** m
            row.append(bra.coefficients.T @ U_kk @ ket.coefficients)
        rows.append(row)
    return np.block(rows)


def _components(basis: Basis) -> list[NDArray[np.int64]]:
    """[l][a, m]: indices of basis functions by angular momentum, radial function and component."""
    found: list[list[NDArray[np.int64]]] = [[] for _ in range(basis.l_max + 1)]
    for shell, offset in zip(basis.shells, basis.offsets, strict=True):
        found[shell.l].append(offset + np.arange(shell.nbf).reshape(shell.ncol, shell.ncomp))
    return [np.concatenate(parts) for parts in found]


def _orthogonaliser(S: Array) -> Array:
    s, U = np.linalg.eigh(S)
    return np.asarray(U[:, s > 1e-8] / np.sqrt(s[s > 1e-8]))


def spread_orbitals(atom: Atom, shells: tuple[Shell, ...], share: tuple[Array, ...]) -> Array:
    """C_pi in the atom's basis functions, one column per component, scaled by the square root of its electrons,
    `share`[l][i].

    In Cartesian shells pure functions are combinations of monomials.
    """
    columns, start = [], np.cumsum([0] + [shell.nbf for shell in shells])
    for l, (C_ai, n_i) in enumerate(zip(atom.C_lai, share, strict=True)):
        indices = [x for x, shell in enumerate(shells) if shell.l == l]
        for m in range(2 * l + 1):
            C_pi = np.zeros((start[-1], len(n_i)))
            first = 0
            for x in indices:
                shell = shells[x]
                rows = C_ai[first : first + shell.ncol] * np.sqrt(n_i / (2 * l + 1))
                first += shell.ncol
                part = np.eye(2 * l + 1)[m] if shell.pure or l < 2 else solid_harmonic_matrix(l)[m]
                C_pi[start[x] : start[x + 1]] = (rows[:, None, :] * part[None, :, None]).reshape(shell.nbf, len(n_i))
            columns.append(C_pi)
    return np.concatenate(columns, axis=1)
