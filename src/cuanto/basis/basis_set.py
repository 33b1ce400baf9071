"""A basis set on the atoms of a molecule: shells in AO order.

Order of the functions: atoms as in the molecule; on each atom s, p, d, ..., within one angular momentum as in the
source; in a shell the contraction is the outer index, the component the inner one. docs/reference/conventions.md has
the rest.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from math import pi, prod, sqrt
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cuanto.arrays import Array
from cuanto.basis.core_potential import CorePotential
from cuanto.basis.library import BasisChoice, element_tables, sources_by_element
from cuanto.basis.shell import Shell
from cuanto.basis.solid_harmonics import cartesian_powers
from cuanto.basis.table import ElementTable
from cuanto.errors import InputError, require
from cuanto.system.molecule import Molecule
from cuanto.system.text import quote

T = TypeVar("T")


@dataclass(frozen=True, init=False, eq=False)
class Basis:
    """Contracted Gaussians of every atom.

    `name` is a name of the Basis Set Exchange, a file, or a mapping of elements to these (key "default" for
    the rest). `spherical` overrides what the basis says about d, f, ... functions. Where a set mixes both
    kinds (6-31G* has Cartesian d and pure f functions on 3d metals) every shell is what the set says, and the
    attribute `spherical` is False. `core_potentials` has one entry for each atom, None where all electrons are
    described by the basis, and for ghost atoms. `relativistic`: if the set lacks an element, suggest sets for X2C.
    """

    name: str
    shells: tuple[Shell, ...]
    R_ax: Array
    symbols: tuple[str, ...]
    sources: Mapping[str, str]
    core_potentials: tuple[CorePotential | None, ...]

    def __init__(
        self, name: BasisChoice, molecule: Molecule, *, spherical: bool | None = None, relativistic: bool = False
    ) -> None:
        if not isinstance(molecule, Molecule):
            raise InputError(f"a basis needs a cuanto.Molecule, not {quote(molecule)}: make one with Molecule.of")
        chosen = sources_by_element(name, dict.fromkeys(molecule.elements))
        tables: dict[str, ElementTable] = {}
        for source in dict.fromkeys(chosen.values()):
            tables |= element_tables(source, [symbol for symbol, s in chosen.items() if s == source], relativistic)
        names = {symbol: os.fspath(source) for symbol, source in chosen.items()}
        self._set(*_from_tables(join_names(names), tables, molecule, spherical, names))

    @classmethod
    def from_tables(
        cls, name: str, tables: Mapping[str, ElementTable], molecule: Molecule, *, spherical: bool | None = None
    ) -> "Basis":
        """Basis from tables, one for each element of the molecule."""
        basis = cls.__new__(cls)
        basis._set(*_from_tables(name, tables, molecule, spherical, {s: t.source for s, t in tables.items()}))
        return basis

    @classmethod
    def from_shells(
        cls,
        shells: Sequence[Shell],
        R_ax: ArrayLike,
        *,
        symbols: Sequence[str] | None = None,
        name: str = "shells",
        core_potentials: Sequence[CorePotential | None] | None = None,
    ) -> "Basis":
        """Basis from shells, kept in their order; `shell.atom` is a row of `R_ax` (Bohr)."""
        basis = cls.__new__(cls)
        positions = np.array(R_ax, dtype=float).reshape(-1, 3)
        if shells and not 0 <= min(s.atom for s in shells) <= max(s.atom for s in shells) < len(positions):
            raise InputError(f"a shell is on an atom that is not one of the {len(positions)} given")
        potentials = tuple([None] * len(positions) if core_potentials is None else core_potentials)
        require(len(potentials) == len(positions), f"{len(positions)} atoms need a core potential or None for each")
        positions.setflags(write=False)
        basis._set(name, tuple(shells), positions, tuple(symbols or ["X"] * len(positions)), {}, potentials)
        return basis

    def moved_to(self, R_ax: Array) -> "Basis":
        """The same shells with their atoms at other positions (Bohr)."""
        basis = type(self).__new__(type(self))
        basis._set(self.name, self.shells, R_ax, self.symbols, self.sources, self.core_potentials)
        basis.__dict__["_known"] = self._known
        return basis

    def _set(self, *values: object) -> None:
        for field, value in zip(fields(self), values, strict=True):
            object.__setattr__(self, field.name, value)

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self._set(*(state[field.name] for field in fields(self)))

    def of_shells(self, make: Callable[["Basis"], T]) -> T:
        """The result of `make` for this basis, which must not depend on positions: it is computed once for all
        bases that `moved_to` makes from one basis (the same shells at other positions)."""
        if make not in self._known:
            self._known[make] = make(self)
        found: T = self._known[make]
        return found

    @cached_property
    def _known(self) -> dict[Callable[["Basis"], Any], Any]:
        """Results of `of_shells` so far, shared by all bases with these shells."""
        return {}

    @cached_property
    def spherical(self) -> bool:
        """Whether all d, f, ... functions are pure; in a basis of s and p functions those of the highest l count."""
        highest = max((shell.l for shell in self.shells), default=0)
        return all(shell.pure for shell in self.shells if shell.l == highest or shell.l >= 2)

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """First function of every shell."""
        return self.of_shells(_offsets)[:-1]

    @cached_property
    def nbf(self) -> int:
        """Number of basis functions."""
        return int(self.of_shells(_offsets)[-1])

    @cached_property
    def function_atoms(self) -> NDArray[np.int64]:
        """Atom of every function."""
        return self.of_shells(_function_atoms)

    @cached_property
    def shells_of_atoms(self) -> tuple[tuple[Shell, ...], ...]:
        """The shells of every atom."""
        return self.of_shells(_shells_of_atoms)

    @property
    def l_max(self) -> int:
        """Highest angular momentum."""
        return max(shell.l for shell in self.shells)

    @cached_property
    def core_electrons(self) -> NDArray[np.int64]:
        """Number of electrons of every atom that its core potential replaces."""
        counts = [0 if potential is None else potential.core_electrons for potential in self.core_potentials]
        return np.array(counts, dtype=np.int64)

    @property
    def core_summary(self) -> str | None:
        """A line for output, such as 'core potentials (def2-svp): Au 60, I 28 core electrons'; None without them."""
        counts = {
            symbol: potential.core_electrons
            for symbol, potential in zip(self.symbols, self.core_potentials, strict=True)
            if potential is not None
        }
        names = dict.fromkeys(self.sources.get(symbol, self.name) for symbol in counts)
        listed = ", ".join(f"{symbol} {count}" for symbol, count in counts.items())
        return f"core potentials ({', '.join(names)}): {listed} core electrons" if counts else None

    def ao_labels(self) -> list[str]:
        """One label per function: '0 C 2px', '0 C 3dx2-y2', '1 O 4f-3', counted by atom and l."""
        labels = []
        counts: dict[tuple[int, int], int] = {}
        for shell in self.shells:
            for _ in range(shell.ncol):
                n = counts[shell.atom, shell.l] = counts.get((shell.atom, shell.l), shell.l) + 1
                head = f"{shell.atom} {self.symbols[shell.atom]} {n}{shell.letter}"
                labels += [head + component for component in component_labels(shell.l, shell.pure)]
        return labels


def _offsets(basis: Basis) -> NDArray[np.int64]:
    """First function of every shell, and the number of functions."""
    offsets = np.cumsum([0] + [shell.nbf for shell in basis.shells], dtype=np.int64)
    offsets.setflags(write=False)
    return offsets


def _function_atoms(basis: Basis) -> NDArray[np.int64]:
    atoms = np.array([shell.atom for shell in basis.shells], dtype=np.int64)
    return np.repeat(atoms, np.diff(basis.of_shells(_offsets)))


def _shells_of_atoms(basis: Basis) -> tuple[tuple[Shell, ...], ...]:
    found: list[list[Shell]] = [[] for _ in basis.R_ax]
    for shell in basis.shells:
        found[shell.atom].append(shell)
    return tuple(tuple(shells) for shells in found)


def component_labels(l: int, pure: bool) -> list[str]:
    """Names of the components of a shell, in AO order."""
    if l >= 2 and pure:
        return ["xy", "yz", "z^2", "xz", "x2-y2"] if l == 2 else [f"{m:+d}" for m in range(-l, l + 1)]
    return ["x" * a + "y" * b + "z" * c for a, b, c in cartesian_powers(l)]


def unit_norm_factors(basis: Basis) -> Array:
    """Factors (nbf,) that scale every function to unit norm; all are 1 in a spherical basis.

    The normalisation is that of libcint: spherical functions and Cartesian s and p functions have unit norm, Cartesian
    functions of l >= 2 share one radial factor for each shell.
    """
    return np.concatenate([np.tile(_component_factors(shell), shell.ncol) for shell in basis.shells])


def _component_factors(shell: Shell) -> Array:
    if shell.pure or shell.l < 2:
        return np.ones(shell.ncomp)

    def double_factorial(n: int) -> int:
        return prod(range(n, 0, -2))

    # int x^2a y^2b z^2c over the unit sphere = 4 pi (2a-1)!! (2b-1)!! (2c-1)!! / (2l+1)!!
    whole = 4 * pi / double_factorial(2 * shell.l + 1)
    norms = [whole * prod(double_factorial(2 * n - 1) for n in powers) for powers in cartesian_powers(shell.l)]
    return np.array([1 / sqrt(norm) for norm in norms])


def join_names(names: Mapping[str, str]) -> str:
    """The name of a basis from those of its elements."""
    if len(set(names.values())) == 1:
        return next(iter(names.values()))
    return ", ".join(f"{symbol}: {name}" for symbol, name in names.items())


def _from_tables(
    name: str,
    tables: Mapping[str, ElementTable],
    molecule: Molecule,
    spherical: bool | None,
    sources: Mapping[str, str],
) -> tuple[object, ...]:
    """The fields of a basis."""
    shells = _make_shells(name, tables, molecule, spherical)
    atoms = zip(molecule.elements, molecule.nuclei.ghosts, strict=True)
    potentials = tuple(None if ghost else tables[symbol].core_potential for symbol, ghost in atoms)
    return name, shells, molecule.R_ax, molecule.elements, sources, potentials


def _make_shells(
    name: str, tables: Mapping[str, ElementTable], molecule: Molecule, spherical: bool | None
) -> tuple[Shell, ...]:
    used = {symbol: tables[symbol] for symbol in dict.fromkeys(molecule.elements)}
    for table in used.values():
        _check_table(table, name)
    stated = [shell.pure for table in used.values() for shell in table.shells if shell.l >= 2]
    overall = False not in stated if spherical is None else spherical
    templates = {symbol: _shells_of(table, spherical, overall) for symbol, table in used.items()}
    return tuple(shell.on(atom) for atom, symbol in enumerate(molecule.elements) for shell in templates[symbol])


def _check_table(table: ElementTable, name: str) -> None:
    only = "only a core potential, no shells," if table.core_potential else "no shells"
    require(table.shells, f"basis {quote(name)} has {only} for {table.symbol}: choose a set with orbital functions")


@lru_cache(maxsize=256)
def _shells_of(table: ElementTable, spherical: bool | None, overall: bool) -> tuple[Shell, ...]:
    """Normalised shells of one element (atom 0), sorted by angular momentum, otherwise in the order of the source.

    s and p functions are the same in both kinds and carry the flag of the whole basis, `overall`.
    """
    shells = []
    for shell in sorted(table.shells, key=lambda shell: shell.l):
        pure = shell.pure is not False if shell.l >= 2 and spherical is None else overall
        try:
            shells.append(Shell.from_table(0, shell.l, shell.exponents, shell.coefficients, pure))
        except InputError as error:
            raise InputError(f"{table.source}, {table.symbol}: {error}") from None
    return tuple(shells)
