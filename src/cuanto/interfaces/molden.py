"""Orbitals as a Molden file (G. Schaftenaar, J. H. Noordik, doi:10.1023/A:1008193805436).

Atoms have their atomic numbers; electrons that core potentials replace are counted in the section [Core]. Coefficients
refer to functions of unit norm, contraction coefficients to normalised primitives. The format has
functions up to g; those of one angular momentum are either all Cartesian or all pure. Ghost atoms have the atomic
number 0 and labels such as Ghost-O, which PySCF reads as well.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from cuanto import __version__, integrals
from cuanto.arrays import Array
from cuanto.basis import Basis
from cuanto.basis.shell import tabulated_coefficients
from cuanto.basis.solid_harmonics import cartesian_powers
from cuanto.errors import InputError
from cuanto.files import write_text
from cuanto.interfaces.wavefunction import shells_by_atom
from cuanto.methods import GaussianResult
from cuanto.system import Molecule
from cuanto.system.nuclei import element_of

CARTESIAN_ORDER = {
    0: [""],
    1: ["x", "y", "z"],
    2: ["xx", "yy", "zz", "xy", "xz", "yz"],
    3: ["xxx", "yyy", "zzz", "xyy", "xxy", "xxz", "xzz", "yzz", "yyz", "xyz"],
    4: ["xxxx", "yyyy", "zzzz", "xxxy", "xxxz", "xyyy", "yyyz", "xzzz", "yzzz",
        "xxyy", "xxzz", "yyzz", "xxyz", "xyyz", "xyzz"],
}  # fmt: skip
MAX_L = 4


def write_molden(path: str | os.PathLike[str], result: GaussianResult) -> None:
    """Write all orbitals of a result."""
    write_text(path, molden_text(result))


def molden_text(result: GaussianResult) -> str:
    """The text of the file."""
    basis, molecule = result.basis, result.molecule
    kinds = supported_kinds(basis)
    lines = ["[Molden Format]", "[Title]", f" {molecule.name} {result.method}/{basis.name}, cuanto {__version__}"]
    lines += [*atom_lines(molecule), *_core_lines(molecule)]
    order = _order(basis)
    lines += ["[GTO]", *_shell_lines(basis), *_flags(kinds), "[MO]"]
    S_pq = result.backend.to_host(integrals.overlap(basis, backend=result.backend))
    norms = np.sqrt(np.diag(S_pq))
    for spin, eps_m, n_m, C_pm in _orbital_sets(result):
        scaled = (C_pm * norms[:, None])[order]
        for m in range(len(eps_m)):
            lines += [" Sym= A", f" Ene= {eps_m[m]:.12f}", f" Spin= {spin}", f" Occup= {n_m[m]:.8f}"]
            lines += [f"{p:5d} {value:22.14e}" for p, value in enumerate(scaled[:, m], 1)]
    return "\n".join(lines) + "\n"


def atom_lines(molecule: Molecule) -> list[str]:
    """The section of atoms, Bohr."""
    lines = ["[Atoms] AU"]
    protons = molecule.nuclei.protons
    for a, (symbol, Z, R_x) in enumerate(zip(molecule.symbols, protons, molecule.R_ax, strict=True), 1):
        label = symbol if Z else f"Ghost-{element_of(symbol)}"
        lines.append(f"{label:2s} {a:5d} {Z:4d} " + " ".join(f"{x:20.12f}" for x in R_x))
    return lines


def _core_lines(molecule: Molecule) -> list[str]:
    """The section of core electrons; none without core potentials."""
    counts = [f"{a} : {n}" for a, n in enumerate(molecule.nuclei.core_electrons, 1) if n]
    return ["[Core]", *counts] if counts else []


def _orbital_sets(result: GaussianResult) -> Iterator[tuple[str, Array, Array, Array]]:
    """Spin, energies, occupations and coefficients; restricted orbitals are written as doubly occupied alpha
    orbitals."""
    eps_sm, n_sm, C_spm = result.orbital_energies, result.occupations, result.coefficients
    if len(C_spm) == 1:
        yield "Alpha", eps_sm[0], n_sm.sum(axis=0), C_spm[0]
        return
    for spin, s in (("Alpha", 0), ("Beta", 1)):
        yield spin, eps_sm[s], n_sm[s], C_spm[s]


def supported_kinds(basis: Basis) -> dict[int, bool]:
    """Angular momenta from d on, with True for pure functions and False for Cartesian ones; refuses a basis that the
    format cannot hold."""
    kinds: dict[int, bool] = {}
    for shell in basis.shells:
        if shell.l > MAX_L:
            raise InputError(f"Molden files have functions up to g; basis {basis.name} has l = {shell.l}")
        if shell.l >= 2 and kinds.setdefault(shell.l, shell.pure) != shell.pure:
            raise InputError(
                f"Molden files cannot mix Cartesian and pure functions of l = {shell.l}, as {basis.name} does"
            )
    return kinds


def _flags(kinds: dict[int, bool]) -> list[str]:
    d, f, g = (kinds.get(l) for l in (2, 3, 4))
    flags = []
    if d:
        flags.append("[5D10F]" if f is False else "[5D]")
    elif f:
        flags.append("[7F]")
    if g:
        flags.append("[9G]")
    return flags


def _shell_lines(basis: Basis) -> list[str]:
    lines = []
    for a, shells in enumerate(shells_by_atom(basis), 1):
        lines.append(f"{a:4d} 0")
        for shell in (basis.shells[i] for i in shells):
            for column in tabulated_coefficients(shell).T:
                used = np.flatnonzero(column)
                lines.append(f" {shell.letter} {len(used):4d} 1.00")
                lines += [f"{shell.exponents[k]:22.12e} {column[k]:22.12e}" for k in used]
        lines.append("")
    return lines


def _order(basis: Basis) -> NDArray[np.int64]:
    """Index of our function at each position of the file."""
    positions = []
    for i in (i for shells in shells_by_atom(basis) for i in shells):
        components = _components(basis.shells[i].l, basis.shells[i].pure)
        for column in range(basis.shells[i].ncol):
            positions += [int(basis.offsets[i]) + column * len(components) + c for c in components]
    return np.array(positions, dtype=np.int64)


def _components(l: int, pure: bool) -> list[int]:
    """Index of our component at each position of a shell: m = 0, +1, -1, +2, ... or Molden's Cartesian order."""
    if l >= 2 and pure:
        return [l, *(l + sign * m for m in range(1, l + 1) for sign in (1, -1))]
    ours = ["x" * a + "y" * b + "z" * c for a, b, c in cartesian_powers(l)]
    return [ours.index(name) for name in CARTESIAN_ORDER[l]]
