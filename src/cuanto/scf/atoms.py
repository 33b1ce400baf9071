"""Spherically averaged atoms: SCF of one atom in its own basis, with open subshells spread evenly.

Restricted atoms are the guess of molecules; unrestricted ones, with parallel spins in open subshells, divide the
densities of molecules among their atoms.

Superposition of atomic densities: J. H. Van Lenthe et al., J. Comput. Chem. 27, 926 (2006), doi:10.1002/jcc.20393.
Electrons of a subshell l are spread evenly over its components, so that only radial functions are left: matrices have
one block per l (and spin), and functions of unoccupied l are not needed. The energy of unrestricted atoms is the
average over all configurations of open subshells, so that no electron repels itself; coupling of closed and open
subshells: C. C. J. Roothaan, Rev. Mod. Phys. 32, 179 (1960), doi:10.1103/RevModPhys.32.179.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
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
from cuanto.scf.configurations import capacity, configuration, electrons_by_momentum, outside_core, spins_by_hund
from cuanto.scf.diis import History, flatten, unflatten
from cuanto.scf.fixed_point import iterations
from cuanto.scf.radial import RadialFunctions, repulsion
from cuanto.terms.x2c import NONRELATIVISTIC, OneElectronModel

TOLERANCE = 1e-6
"""Convergence threshold, sufficient for a guess."""
MAX_ITERATIONS = 60


@dataclass(frozen=True, eq=False)
class Atom:
    """Radial orbitals [l][a, i] in the functions of momentum l, and the electrons in all 2l + 1 components of each.

    Orbitals of beta spin follow those of alpha spin in an unrestricted atom.
    """

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
    unrestricted: bool = False,
) -> Atom:
    """The atom in these shells (at any position), cached by all arguments.

    `unrestricted`: with the spins of Hund's rule and different orbitals for both of them.
    """
    key = tuple((s.l, s.exponents.tobytes(), s.coefficients.tobytes(), s.coefficients.shape) for s in shells)
    return _atom(number, charge, key, potential, model, unrestricted)


@lru_cache(maxsize=256)
def _atom(
    number: int,
    charge: float,
    key: tuple[tuple[int, bytes, bytes, tuple[int, int]], ...],
    potential: CorePotential | None,
    model: OneElectronModel,
    unrestricted: bool,
) -> Atom:
    subshells, found = configuration(number, charge), []
    for possible in [subshells] if potential is None else outside_core(subshells, number, potential.core_electrons):
        electrons = electrons_by_momentum(possible)
        shells = [
            Shell(0, l, np.frombuffer(exponents), np.frombuffer(coefficients).reshape(shape), True)
            for l, exponents, coefficients, shape in key
            if l < len(electrons)
        ]
        spins = [electrons_by_momentum(spin) for spin in spins_by_hund(possible)] if unrestricted else None
        found.append(solve(number, electrons, shells, potential, model, spins))
    return min(found, key=lambda one: one.energy)


def solve(
    number: int,
    electrons: list[float],
    shells: list[Shell],
    potential: CorePotential | None = None,
    model: OneElectronModel = NONRELATIVISTIC,
    spins: list[list[float]] | None = None,
) -> Atom:
    """SCF of an atom with the given electrons in l = 0, 1, ...; unrestricted with those of both `spins`."""
    radial = _Radial(number, shells, potential, model)
    found = _converged(radial, [electrons], radial.h)
    if spins is None:
        return found
    # From bare nuclei 4f atoms do not converge with two spins.
    return _converged(radial, spins, radial.fock([_densities(found.C_lai, found.n_li)])[0])


def _converged(radial: _Radial, electrons_sl: list[list[float]], F: list[Array]) -> Atom:
    """SCF from the same Fock matrices F of all spins."""
    spins = len(electrons_sl)
    # Angular momenta without basis functions cannot be occupied.
    fillings_sl = [
        [_filling(q, capacity(l) / spins, len(radial.S[l])) for l, q in enumerate(electrons) if l < len(radial.S)]
        for electrons in electrons_sl
    ]
    (last,) = deque(iterations(_AtomScf(radial, fillings_sl), [F] * spins, MAX_ITERATIONS), maxlen=1)
    return last


class _AtomScf:
    """The fixed-point map of an atom: from Fock matrices of every spin and l to the next ones, by diagonalisation and
    DIIS."""

    def __init__(self, radial: _Radial, fillings_sl: list[list[Array]]) -> None:
        self.radial, self.fillings_sl, self.history = radial, fillings_sl, History(6, get_backend("cpu"))

    def evaluate(self, F_sl: list[list[Array]], iteration: int, previous: Atom | None) -> Atom:
        """Density, energy and Fock matrices of the lowest orbitals of every spin and l."""
        radial = self.radial
        C_sl = [radial.lowest_orbitals(F, n) for F, n in zip(F_sl, self.fillings_sl, strict=True)]
        D_sl = [_densities(C, n) for C, n in zip(C_sl, self.fillings_sl, strict=True)]
        F_sl, energy = radial.fock(D_sl), 0.0
        for F_l, D_l in zip(F_sl, D_sl, strict=True):
            energy += sum(0.5 * float(np.sum(d * (h + f))) for d, h, f in zip(D_l, radial.h, F_l, strict=True))
        if len(F_sl) == 2:
            averages = [radial.average_open(F, C, n) for F, C, n in zip(F_sl, C_sl, self.fillings_sl, strict=True)]
            F_sl, energy = [F_l for F_l, _ in averages], energy + sum(change for _, change in averages)
        commutators = [
            x.T @ (f @ d @ s - s @ d @ f) @ x
            for F_l, D_l in zip(F_sl, D_sl, strict=True)
            for x, f, d, s in zip(radial.X, F_l, D_l, radial.S, strict=True)
        ]
        F = flatten([f for F_l in F_sl for f in F_l], np)
        error = float(self.history.absorb(self.history.push(F, flatten(commutators, np))))
        change = np.inf if previous is None else energy - previous.energy
        converged = error < TOLERANCE and abs(change) < TOLERANCE
        C_lai, n_li = (
            tuple(np.concatenate(spins, axis=-1) for spins in zip(*parts, strict=True))
            for parts in (C_sl, self.fillings_sl)
        )
        return Atom(C_lai, n_li, energy, converged)

    def advance(self, current: Atom) -> list[list[Array]]:
        """Extrapolated Fock matrices."""
        h, spins = self.radial.h, len(self.fillings_sl)
        F = unflatten(self.history.extrapolate(), h * spins)
        return [F[s * len(h) : (s + 1) * len(h)] for s in range(spins)]


def _densities(C_lai: Sequence[Array], n_li: Sequence[Array]) -> list[Array]:
    """Density of all components of every l."""
    return [(C_ai * n_i) @ C_ai.T for C_ai, n_i in zip(C_lai, n_li, strict=True)]


def _filling(electrons: float, most: float, functions: int) -> Array:
    """Occupations of the radial orbitals of one angular momentum, which hold `most` electrons: full ones, then the open
    one."""
    full, rest = divmod(electrons, most)
    n_i = [most] * int(full) + ([rest] if rest > 1e-12 else [])
    return np.array(n_i[:functions])


class _Radial:
    """Integrals over radial functions: one-electron ones for each l, J and K averaged over components for each pair."""

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
        self._J: dict[tuple[int, int], Array] = {}
        # Of a spin with itself: J - K/2 for both spins together, J - K for each of them.
        self._own: dict[int, dict[tuple[int, int], Array]] = {1: {}, 2: {}}
        for l, k in combinations_with_replacement(momenta, 2):
            self._J[l, k], K = repulsion(functions[l], functions[k])
            for spins, pairs in self._own.items():
                pairs[l, k] = self._J[l, k] - 0.5 * spins * K
            for pairs in (self._J, *self._own.values()):
                pairs[k, l] = pairs[l, k].transpose(2, 3, 0, 1)

    def lowest_orbitals(self, F: list[Array], fillings: list[Array]) -> list[Array]:
        """The lowest eigenvectors of the Fock matrix of every l, as many as are occupied."""
        orbitals = [x @ np.linalg.eigh(x.T @ f @ x)[1] for x, f in zip(self.X, F, strict=True)]
        return [C_ai[:, : len(n_i)] for C_ai, n_i in zip(orbitals, fillings, strict=True)]

    def fock(self, D_sl: list[list[Array]]) -> list[list[Array]]:
        """h + J - K for each spin, h + J - K/2 for both together; D_sl is the density of all components together."""
        own = self._own[len(D_sl)]
        F_sl = [[h + _contract(own, l, D_l) for l, h in enumerate(self.h)] for D_l in D_sl]
        if len(D_sl) == 1:
            return F_sl
        others = zip(F_sl, reversed(D_sl), strict=True)
        return [[f + _contract(self._J, l, D_l) for l, f in enumerate(F_l)] for F_l, D_l in others]

    def average_open(self, F_l: list[Array], C_lai: list[Array], n_li: list[Array]) -> tuple[list[Array], float]:
        """Fock matrices of one spin, and the change of the energy, for the average over configurations of open
        subshells.

        Of all pairs of M = 2l + 1 components N electrons are in N(N - 1) / M(M - 1), fewer than the (N/M)^2 of evenly
        spread electrons.
        """
        averaged, change = list(F_l), 0.0
        for l, (C_ai, n_i) in enumerate(zip(C_lai, n_li, strict=True)):
            M, N = 2 * l + 1, n_i[-1] if len(n_i) else 0.0
            if N in (0.0, M):
                continue
            open_ab, S = np.outer(C_ai[:, -1], C_ai[:, -1]), self.S[l]
            fewer = M * max(N - 1, 0.0) / (N * (M - 1)) - 1
            G = fewer * N * np.einsum("abcd,cd->ab", self._own[2][l, l], open_ab)
            change += 0.5 * N * float(np.sum(open_ab * G))
            # F + G acts on open subshells; between them and closed ones F - (N/M)(F + G) must vanish.
            P_open, P_closed = S @ open_ab, S @ C_ai[:, :-1] @ C_ai[:, :-1].T
            half = P_open @ G @ (np.eye(len(S)) - M / (M - N) * P_closed - 0.5 * P_open).T
            averaged[l] = averaged[l] + half + half.T
        return averaged, change


def _contract(pairs: dict[tuple[int, int], Array], l: int, D_l: list[Array]) -> Array:
    return np.asarray(sum(np.einsum("abcd,cd->ab", pairs[l, k], D_ab) for k, D_ab in enumerate(D_l)))


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
