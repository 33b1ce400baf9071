"""A basis set on the atoms of a molecule: shells in AO order.

Order of the functions: atoms as in the molecule; on each atom s, p, d, ..., within one momentum as in the
source; in a shell contraction outer, component inner. docs/reference/conventions.md has the rest.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cuanto.basis import exchange
from cuanto.basis.library import BasisChoice, element_tables, sources_by_element
from cuanto.basis.shell import Shell
from cuanto.basis.solid_harmonics import cartesian_powers
from cuanto.basis.table import ElementTable
from cuanto.errors import InputError
from cuanto.system.molecule import Molecule
from cuanto.system.text import quoted

Array = NDArray[np.float64]


@dataclass(frozen=True, init=False, eq=False)
class Basis:
    """Contracted Gaussians of every atom.

    `name` is a name of the Basis Set Exchange, a file, or a mapping of elements to these (key "default" for
    the rest). `spherical` overrides what the basis says about d, f, ... functions. Where a set mixes both
    kinds (6-31G* has Cartesian d and pure f functions on 3d metals) every shell is what the set says, and the
    attribute `spherical` is False.
    """

    name: str
    shells: tuple[Shell, ...]
    R_ax: Array
    symbols: tuple[str, ...]
    spherical: bool
    sources: Mapping[str, str]
    offsets: NDArray[np.int64]
    nbf: int

    def __init__(self, name: BasisChoice, molecule: Molecule, *, spherical: bool | None = None) -> None:
        chosen = sources_by_element(name, dict.fromkeys(molecule.elements))
        tables: dict[str, ElementTable] = {}
        for source in dict.fromkeys(chosen.values()):
            tables |= element_tables(source, [symbol for symbol, s in chosen.items() if s == source])
        self._assemble(_title(chosen), {s: os.fspath(p) for s, p in chosen.items()}, tables, molecule, spherical)

    @classmethod
    def from_tables(
        cls,
        name: str,
        tables: Mapping[str, ElementTable],
        molecule: Molecule,
        *,
        spherical: bool | None = None,
    ) -> "Basis":
        """Basis from tables that are already at hand, one for each element of the molecule."""
        basis = cls.__new__(cls)
        basis._assemble(name, {s: t.source for s, t in tables.items()}, tables, molecule, spherical)
        return basis

    @classmethod
    def from_shells(
        cls,
        shells: Sequence[Shell],
        R_ax: ArrayLike,
        *,
        symbols: Sequence[str] | None = None,
        name: str = "shells",
    ) -> "Basis":
        """Basis from ready shells, kept in their order; `shell.atom` is a row of `R_ax` (Bohr)."""
        basis = cls.__new__(cls)
        positions = np.array(R_ax, dtype=float).reshape(-1, 3)
        if shells and not 0 <= min(s.atom for s in shells) <= max(s.atom for s in shells) < len(positions):
            raise InputError(f"a shell is on an atom that is not one of the {len(positions)} given")
        basis._set(name, tuple(shells), positions, tuple(symbols or ["X"] * len(positions)), {})
        return basis

    def _assemble(
        self,
        name: str,
        sources: Mapping[str, str],
        tables: Mapping[str, ElementTable],
        molecule: Molecule,
        spherical: bool | None,
    ) -> None:
        used = {symbol: tables[symbol] for symbol in dict.fromkeys(molecule.elements)}
        for table in used.values():
            _check_table(table, name)
        said = [shell.pure for table in used.values() for shell in table.shells if shell.l >= 2]
        overall = False not in said if spherical is None else spherical
        templates = {symbol: _shells_of(table, spherical, overall) for symbol, table in used.items()}
        shells = tuple(
            Shell(atom, shell.l, shell.exponents, shell.coefficients, shell.pure)
            for atom, symbol in enumerate(molecule.elements)
            for shell in templates[symbol]
        )
        self._set(name, shells, molecule.R_ax, molecule.elements, sources)

    def _set(
        self,
        name: str,
        shells: tuple[Shell, ...],
        R_ax: Array,
        symbols: tuple[str, ...],
        sources: Mapping[str, str],
    ) -> None:
        ends = np.cumsum([0] + [shell.nbf for shell in shells], dtype=np.int64)
        offsets = ends[:-1]
        highest = max((shell.l for shell in shells), default=0)
        for array in (R_ax, offsets):
            array.setflags(write=False)
        fields = {
            "name": name,
            "shells": shells,
            "R_ax": R_ax,
            "symbols": symbols,
            "spherical": all(shell.pure for shell in shells if shell.l == highest or shell.l >= 2),
            "sources": dict(sources),
            "offsets": offsets,
            "nbf": int(ends[-1]),
        }
        for field, value in fields.items():
            object.__setattr__(self, field, value)

    @property
    def l_max(self) -> int:
        """Highest angular momentum."""
        return max(shell.l for shell in self.shells)

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


def component_labels(l: int, pure: bool) -> list[str]:
    """Names of the components of a shell, in AO order."""
    if l >= 2 and pure:
        return ["xy", "yz", "z^2", "xz", "x2-y2"] if l == 2 else [f"{m:+d}" for m in range(-l, l + 1)]
    return ["x" * a + "y" * b + "z" * c for a, b, c in cartesian_powers(l)]


def _title(chosen: Mapping[str, str | os.PathLike[str]]) -> str:
    names = {symbol: os.fspath(source) for symbol, source in chosen.items()}
    if len(set(names.values())) == 1:
        return next(iter(names.values()))
    return ", ".join(f"{symbol}: {name}" for symbol, name in names.items())


def _check_table(table: ElementTable, name: str) -> None:
    if table.has_ecp:
        others = exchange.sets_with([table.symbol], exchange.ALL_ELECTRON)
        hint = f"use an all-electron set such as {' or '.join(others[:3])}" if others else "use an all-electron set"
        raise InputError(
            f"basis {quoted(name)} has an effective core potential for {table.symbol}, which is not supported: {hint}"
        )
    if not table.shells:
        raise InputError(f"basis {quoted(name)} has no shells for {table.symbol}")


def _shells_of(table: ElementTable, spherical: bool | None, overall: bool) -> list[Shell]:
    """Normalised shells of one element (atom 0), sorted by momentum, otherwise in the order of the source.

    s and p functions are the same in both kinds and carry the flag of the whole basis, `overall`.
    """
    shells = []
    for shell in sorted(table.shells, key=lambda shell: shell.l):
        pure = overall
        if shell.l >= 2 and spherical is None:
            pure = shell.pure is not False
        try:
            shells.append(Shell.from_table(0, shell.l, shell.exponents, shell.coefficients, pure))
        except InputError as error:
            raise InputError(f"{table.source}, {table.symbol}: {error}") from None
    return shells
