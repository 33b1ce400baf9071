"""Initial guesses of the SCF: superposed atoms, the core Hamiltonian, or orbitals of another calculation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cuanto import integrals
from cuanto.arrays import Array
from cuanto.backends.base import Backend, get_backend
from cuanto.basis import Basis
from cuanto.errors import InputError
from cuanto.kernels.build import general_source
from cuanto.scf.atoms import Atom, atom, spread_orbitals
from cuanto.scf.loop import Density, Problem
from cuanto.scf.orthogonal import Frame
from cuanto.scf.state import Orbitals
from cuanto.system import Molecule
from cuanto.system.text import quote
from cuanto.terms.x2c import NONRELATIVISTIC, OneElectronModel

SMALLEST_NORM = 1e-6
"""Smallest squared norm of projected orbitals that are orthonormalised."""
SUFFICIENT_NORM = 0.5
"""Smallest squared norm with which orbitals that are projected from the old positions are taken at once."""
GUESSES = ("sad", "core")


def begin(model: OneElectronModel) -> None:
    """Start to compile the host kernel that atoms need if they have relativity or Gaussian nuclei."""
    if model != NONRELATIVISTIC:
        get_backend("cpu").compile(general_source("table", "double"))


def superposed_atoms(
    molecule: Molecule,
    basis: Basis,
    spins: int,
    backend: Backend,
    charges: Sequence[float] | None = None,
    unpaired: Sequence[float] | None = None,
    model: OneElectronModel = NONRELATIVISTIC,
) -> Density:
    """Sum of the densities of spherical atoms, with `charges` and `unpaired` electrons of each atom if given.

    `model`: relativity and nuclei of the atoms. Without `unpaired`, each of two spins has the same fraction of the
    electrons on every atom.
    """
    charge_a = _per_atom(charges, molecule, "atomic_charges")
    charge_a = charge_a + molecule.numbers - molecule.nuclei.protons  # a ghost has basis functions but no electrons
    unpaired_a = _per_atom(unpaired, molecule, "atomic_spins")
    if spins == 2 and unpaired is None:
        shares = np.array([[molecule.n_alpha, molecule.n_beta]]) / molecule.nelectron
        unpaired_a = np.full(molecule.natom, np.nan)
    blocks: list[list[Array]] = [[] for _ in range(spins)]
    cached: dict[tuple[object, ...], list[Array]] = {}
    for a, (shells, potential) in enumerate(zip(basis.shells_of_atoms, basis.core_potentials, strict=True)):
        electrons = (int(molecule.numbers[a]), charge_a[a], float(np.nan_to_num(unpaired_a[a], nan=1e9)))
        key = (*electrons, potential, *(shell.key for shell in shells))
        if key not in cached:
            found = atom(int(molecule.numbers[a]), charge_a[a], shells, potential, model)
            if spins == 1:
                cached[key] = [spread_orbitals(found, shells, found.n_li)]
            elif unpaired is None:
                whole = spread_orbitals(found, shells, found.n_li)
                cached[key] = [whole * np.sqrt(share) for share in shares[0]]
            else:
                cached[key] = [spread_orbitals(found, shells, part) for part in _polarise(found, unpaired_a[a])]
        for s, C_pi in enumerate(cached[key]):
            blocks[s].append(C_pi)
    C_spi = backend.to_device(np.stack([_block_diagonal(own) for own in blocks]))
    return Density.of(C_spi, backend)


def _per_atom(given: Sequence[float] | None, molecule: Molecule, name: str) -> Array:
    try:
        numbers = np.zeros(molecule.natom) if given is None else np.array(given, dtype=float)
    except (TypeError, ValueError):
        numbers = np.zeros(0)
    if numbers.shape != (molecule.natom,) or not np.isfinite(numbers).all():
        raise InputError(f"{name} must be one number for each of the {molecule.natom} atoms, {given!r} was given")
    if name == "atomic_charges" and (numbers > molecule.nuclei.charges).any():
        raise InputError("atomic_charges: an atom cannot lose more electrons than it has")
    return numbers


def _polarise(atom: Atom, unpaired: float) -> list[tuple[Array, ...]]:
    """Occupations of both spins: open subshells are polarised, up to `unpaired` electrons."""
    left, up = abs(unpaired), []
    for l, n_i in enumerate(atom.n_li):
        largest = np.minimum(n_i, 2.0 * (2 * l + 1) - n_i)
        difference = np.zeros_like(n_i)
        for i in range(len(n_i)):
            difference[i] = min(left, largest[i])
            left -= difference[i]
        up.append(0.5 * (n_i + difference))
    parts = [tuple(up), tuple(n - u for n, u in zip(atom.n_li, up, strict=True))]
    return parts if unpaired >= 0 else parts[::-1]


def _block_diagonal(blocks: list[Array]) -> Array:
    """A matrix with these blocks on its diagonal."""
    rows, columns = (np.cumsum([0] + [block.shape[x] for block in blocks]) for x in (0, 1))
    whole = np.zeros((rows[-1], columns[-1]))
    for k, block in enumerate(blocks):
        whole[rows[k] : rows[k + 1], columns[k] : columns[k + 1]] = block
    return whole


def bare_nuclei(h_pq: Any, frame: Frame, sets: int) -> tuple[Any, Any]:
    """Orbitals of the core Hamiltonian and their energies, repeated for `sets` of orbitals."""
    eps_m, C_jm = frame.linalg.eigh(frame.matrix(h_pq[None])[0])
    return frame.xp.stack([C_jm] * sets), frame.xp.stack([eps_m] * sets)


def require_same_atoms(given: Basis, basis: Basis) -> None:
    """Refuse orbitals in a basis of another molecule, or of a calculation with other core electrons."""
    pairs = zip(given.symbols, basis.symbols, strict=False)
    other = any(a != b and "X" not in (a, b) for a, b in pairs)  # X: unknown, of a basis made from shells
    if other or len(given.symbols) != len(basis.symbols):
        atoms, own = (quote(" ".join(one.symbols), 60) for one in (given, basis))
        raise InputError(f"the guess belongs to another molecule, with atoms {atoms} instead of {own}: leave it out")
    theirs, ours = int(given.core_electrons.sum()), int(basis.core_electrons.sum())
    if theirs != ours:
        raise InputError(
            f"the guess has {theirs} electrons in core potentials, but basis {basis.name} has {ours}: leave it out, or "
            "choose a basis with the same core potentials"
        )


def project_density(orbitals: Orbitals, basis: Basis, spins: int, backend: Backend) -> Density:
    """Project occupied orbitals of another basis or geometry onto this basis, and return their density."""
    columns = []
    for s, n_m in enumerate(orbitals.n_sm):
        C_pi = orbitals.C_spm[min(s, len(orbitals.C_spm) - 1)][:, n_m > 0]
        columns.append(_project(C_pi, orbitals.basis, basis, backend) * np.sqrt(n_m[n_m > 0]))
    C_spi = backend.to_device(_with_spins(columns, spins))
    return Density.of(C_spi, backend)


def same_shells(orbitals: Orbitals, basis: Basis, problem: Problem, S_pq: Any) -> tuple[Any, Any] | None:
    """Orbitals of a restricted open shell with the same occupations, projected onto this basis; None otherwise. The
    density alone is not enough, because the mean Fock matrix does not distinguish closed from open orbitals.
    """
    frame, n_m = problem.frame, orbitals.n_sm.sum(axis=0)
    ours_m = problem.orbital_occupations(problem.occupations(np.zeros((1, frame.size)))[0])[0]
    kept = np.argsort(-n_m, kind="stable")[: np.count_nonzero(n_m > 0)]
    if len(orbitals.n_sm) != 2 or len(orbitals.C_spm) != 1 or not np.array_equal(n_m[kept], ours_m[ours_m > 0]):
        return None
    C_pi = _project(orbitals.C_spm[0][:, kept], orbitals.basis, basis, frame.backend)
    C_ji = frame.to_host(frame.coefficients(frame.backend.to_device(C_pi), S_pq))
    U, _, V = np.linalg.svd(C_ji, full_matrices=True)
    C_jm = np.concatenate([U[:, : len(kept)] @ V, U[:, len(kept) :]], axis=1)  # orthonormalised, and virtual ones
    return frame.xp.asarray(C_jm[None]), frame.xp.zeros((1, frame.size))


def same_functions(orbitals: Orbitals, basis: Basis, problem: Problem, S_pq: Any) -> tuple[Any, Any] | None:
    """Orbitals in this very basis with the same integer occupations, orthonormalised; None for others.

    An SCF from them does not need the Fock matrix of their density before its first iteration.
    """
    frame = problem.frame
    if orbitals.basis is not basis or not problem.occupations.integer:
        return None
    counts = (problem.occupations(None)[0] > 0).sum(axis=1)
    if len(orbitals.C_spm) != len(counts) or not np.array_equal((orbitals.n_sm > 0).sum(axis=1), counts):
        return None
    spins = []
    for C_pm, n_m in zip(orbitals.C_spm, orbitals.n_sm, strict=True):
        C_ji = frame.coefficients(frame.backend.to_device(np.ascontiguousarray(C_pm[:, n_m > 0])), S_pq)
        spins.append(frame.xp.linalg.qr(C_ji, mode="complete")[0])
    return frame.xp.stack(spins), frame.xp.zeros((len(spins), frame.size))


def _project(C_pi: Array, origin: Basis, basis: Basis, backend: Backend) -> Array:
    """Project orbitals of another basis or geometry onto this basis, and orthonormalise them.

    They are projected from where the atoms were; if too little is left of one of them, also with its functions moved
    along with the atoms, and the better projection is used.
    """
    best, smallest = C_pi, SMALLEST_NORM
    for source in (origin, origin.moved_to(basis.R_ax)):
        C, S = _projection(C_pi, source, basis, backend)
        values, U = np.linalg.eigh(C.T @ S @ C)
        least = float(values.min(initial=1.0))
        if least > smallest:
            best, smallest = C @ (U / np.sqrt(values)) @ U.T, least
        if smallest > SUFFICIENT_NORM:
            break
    if smallest == SMALLEST_NORM:
        raise InputError("the orbitals of the guess cannot be represented in this basis: leave out the guess")
    return np.asarray(best)


def _projection(C_pi: Array, origin: Basis, basis: Basis, backend: Backend) -> tuple[Array, Array]:
    """C = S^-1 S_12 C_2, or the orbitals themselves if the bases are the same, and S."""
    if origin is basis:
        return C_pi, backend.to_host(integrals.overlap(basis, backend=backend))
    S, n = backend.to_host(integrals.overlap(_join(basis, origin), backend=backend)), basis.nbf
    s_m, U_pm = np.linalg.eigh(S[:n, :n])
    U_pm = U_pm[:, s_m > 1e-10 * s_m[-1]] / np.sqrt(s_m[s_m > 1e-10 * s_m[-1]])
    return U_pm @ (U_pm.T @ (S[:n, n:] @ C_pi)), S[:n, :n]


def _with_spins(columns: list[Array], spins: int) -> Array:
    """Orbitals for this number of spins: one spin is halved, two are joined; padded to one width."""
    if len(columns) == 1 and spins == 2:
        columns = [columns[0] * np.sqrt(0.5)] * 2
    elif len(columns) == 2 and spins == 1:
        columns = [np.concatenate(columns, axis=1)]
    width = max(C_pi.shape[1] for C_pi in columns)
    return np.stack([np.pad(C_pi, ((0, 0), (0, width - C_pi.shape[1]))) for C_pi in columns])


def _join(basis: Basis, other: Basis) -> Basis:
    atoms = len(basis.R_ax)
    moved = [shell.on(shell.atom + atoms) for shell in other.shells]
    return Basis.from_shells([*basis.shells, *moved], np.concatenate([basis.R_ax, other.R_ax]))
