"""Writers of basis sets in the formats of molecular programs: BSE JSON, NWChem, Gaussian94.

JSON: B. P. Pritchard et al., J. Chem. Inf. Model. 59, 4814 (2019), doi:10.1021/acs.jcim.9b00725. Coefficients refer to
normalised primitives, as in all three formats. `cuanto.Basis` reads every one of them back.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np

from cuanto.arrays import Array
from cuanto.atomic.atom import Atom, AtomBasis, AtomResult
from cuanto.atomic.species import LETTERS, SPECIES
from cuanto.basis import Shell
from cuanto.basis.formats import shell_to_exchange
from cuanto.basis.table import ElementTable, ShellTable
from cuanto.errors import InputError, require
from cuanto.scf.atoms import solve
from cuanto.system.elements import ATOMIC_NUMBERS
from cuanto.system.text import quote
from cuanto.terms.x2c import OneElectronModel

SOURCE = "cuanto"
"""Source that the tables name."""


def exponents_by_momentum(basis: AtomBasis) -> list[list[float]]:
    """Exponents of s, p, d, ..., in descending order; j = l-1/2 and j = l+1/2 are merged."""
    l_max = SPECIES[basis.nsym - 1].l
    species_exponents = list(zip(SPECIES, basis.exponents, strict=False))
    return [
        sorted({float(a) for s, z in species_exponents if s.l == l for a in z}, reverse=True) for l in range(l_max + 1)
    ]


def uncontracted_table(symbol: str, basis: AtomBasis) -> ElementTable:
    """Make a table in which every primitive is a separate shell."""
    shells = [ShellTable(l, (a,), ((1.0,),)) for l, zeta in enumerate(exponents_by_momentum(basis)) for a in zeta]
    return ElementTable(symbol, tuple(shells), SOURCE)


@dataclass(frozen=True)
class Contraction:
    """A contraction to the occupied orbitals of the atom, with scalar relativity (`x2c`) or without.

    The `diffuse` most diffuse primitives of each angular momentum are added.
    """

    diffuse: int = 1
    x2c: bool = False


def contracted_table(symbol: str, result: AtomResult, diffuse: int = 1) -> ElementTable:
    """A table of the occupied orbitals of a non-relativistic atom.

    Relativistic spinors are unsuitable for a non-relativistic molecule, because relativity contracts their inner
    shells.
    """
    if result.settings.relativistic:
        raise InputError("a contraction for molecules needs the non-relativistic orbitals of the atom")
    require(
        result.converged,
        f"the non-relativistic orbitals of {symbol} did not converge and cannot be contracted; export primitives",
    )
    zeta_l, columns_l = exponents_by_momentum(result.atom.basis), []
    for l, zeta in enumerate(zeta_l):
        own = [z for s, z in zip(SPECIES, result.atom.basis.exponents, strict=False) if s.l == l]
        if any(len(exponents) != len(zeta) for exponents in own):
            raise InputError(f"{LETTERS[l]} of {symbol}: a contraction needs equal exponents of both symmetries")
        order = np.argsort(-own[0])
        columns_l.append(np.array(_orbitals(result, l)).reshape(-1, len(zeta)).T[order])
    return _contracted(symbol, zeta_l, columns_l, diffuse)


def _orbitals(result: AtomResult, l: int) -> list[Array]:
    """Orbitals of angular momentum l by n; where spinors with j = l-1/2 and j = l+1/2 are occupied, they are equal."""
    by_n = {spinor.n: spinor.P_p for spinor in result.spinors if spinor.species.l == l}
    return [by_n[n] for n in sorted(by_n)]


def x2c_contracted_table(symbol: str, atom: Atom, c: float, diffuse: int = 1) -> ElementTable:
    """A table of the occupied orbitals of an atom with spin-free X2C, for molecules with `relativity="x2c"`.

    Electrons of a subshell are spread evenly over its components; a nucleus of finite size is a Gaussian.
    """
    zeta_l = exponents_by_momentum(atom.basis)
    shells = [Shell.from_table(0, l, [a], [[1.0]], True) for l, zeta in enumerate(zeta_l) for a in zeta]
    model = OneElectronModel(c, gaussian_nuclei=atom.nucleus.model != "point")
    electrons = _electrons_by_momentum(atom)
    found = solve(round(atom.nucleus.charge), electrons, [s for s in shells if s.l < len(electrons)], None, model)
    require(
        found.converged, f"the X2C orbitals of {symbol} did not converge and cannot be contracted; export primitives"
    )
    columns_l = list(found.C_lai) + [np.empty((len(zeta), 0)) for zeta in zeta_l[len(found.C_lai) :]]
    return _contracted(symbol, zeta_l, columns_l, diffuse)


def _electrons_by_momentum(atom: Atom) -> list[float]:
    """Electrons in s, p, d, ... shells, up to the last occupied angular momentum."""
    numbers = [0.0] * (SPECIES[atom.basis.nsym - 1].l + 1)
    for species, shells in zip(SPECIES, atom.occupation.closed, strict=False):
        numbers[species.l] += shells * species.capacity
    for i, mean in zip(atom.occupation.open_symmetries, atom.occupation.mean_occupations, strict=True):
        numbers[SPECIES[i].l] += mean
    while len(numbers) > 1 and numbers[-1] == 0.0:
        numbers.pop()
    return numbers


def _contracted(symbol: str, zeta_l: list[list[float]], columns_l: Sequence[Array], diffuse: int) -> ElementTable:
    """A table of orbitals `columns_l`[l][p, i] and of the most diffuse primitives; the largest coefficient of every
    orbital is positive."""
    shells: list[ShellTable] = []
    for l, (zeta, C_pi) in enumerate(zip(zeta_l, columns_l, strict=True)):
        if C_pi.shape[1]:
            signs = [np.sign(C_p[np.argmax(abs(C_p))]) for C_p in C_pi.T]
            shells.append(ShellTable(l, tuple(zeta), tuple(tuple(map(float, row)) for row in C_pi * signs)))
        shells += [ShellTable(l, (a,), ((1.0,),)) for a in zeta[max(0, len(zeta) - diffuse) :]]
    return ElementTable(symbol, tuple(shells), SOURCE)


def basis_json(tables: Sequence[ElementTable], name: str, description: str) -> str:
    """BSE JSON: the 'complete' schema of the Basis Set Exchange."""
    elements = {
        str(ATOMIC_NUMBERS[table.symbol]): {
            "electron_shells": [shell_to_exchange(shell, _function_type(shell), _number) for shell in table.shells],
            "references": [],
        }
        for table in tables
    }
    types = sorted({_function_type(shell) for table in tables for shell in table.shells})
    content = {
        "molssi_bse_schema": {"schema_type": "complete", "schema_version": "0.1"},
        "name": name,
        "names": [name],
        "description": description,
        "family": "well-tempered",
        "tags": [],
        "role": "orbital",
        "auxiliaries": {},
        "version": "1",
        "revision_description": "made by cuanto",
        "revision_date": date.today().isoformat(),
        "function_types": types,
        "elements": elements,
    }
    return json.dumps(content, indent=1) + "\n"


def basis_nwchem(tables: Sequence[ElementTable], name: str, description: str) -> str:
    """NWChem: one block of spherical functions."""
    lines = [f"# {name}", *(f"# {line}" for line in description.splitlines()), 'BASIS "ao basis" SPHERICAL PRINT']
    for table in tables:
        for shell in table.shells:
            lines.append(f"{table.symbol:<2}  {LETTERS[shell.l].upper()}")
            for a, row in zip(shell.exponents, shell.coefficients, strict=True):
                lines.append("  ".join([f"    {_number(a)}", *(_number(c) for c in row)]))
    return "\n".join([*lines, "END"]) + "\n"


def basis_gaussian(tables: Sequence[ElementTable], name: str, description: str) -> str:
    """Gaussian94: a shell per contraction, since the format has no general contractions."""
    lines = [f"! {name}", *(f"! {line}" for line in description.splitlines()), ""]
    for table in tables:
        lines.append(f"{table.symbol:<2}    0")
        for shell in table.shells:
            for column in zip(*shell.coefficients, strict=True):
                lines.append(f"{LETTERS[shell.l].upper()}  {len(column):3d}   1.00")
                rows = zip(shell.exponents, column, strict=True)
                lines += [f"    {_number(a)}  {_number(c)}" for a, c in rows]
        lines.append("****")
    return "\n".join(lines) + "\n"


Writer = Callable[[Sequence[ElementTable], str, str], str]
SUFFIXES: dict[str, Writer] = {".json": basis_json, ".nw": basis_nwchem, ".nwchem": basis_nwchem}
SUFFIXES |= {".gbs": basis_gaussian, ".g94": basis_gaussian}


def format_of(path: str | os.PathLike[str]) -> Writer:
    """Return the writer for the suffix of a file name."""
    found = SUFFIXES.get(Path(path).suffix.lower())
    if found is None:
        raise InputError(f"{quote(os.fspath(path), 200)}: a basis file ends in {', '.join(SUFFIXES)}")
    return found


def basis_text(path: str | os.PathLike[str], tables: Sequence[ElementTable], name: str, description: str) -> str:
    """Return the text of a file with this name."""
    return format_of(path)(tables, name, description)


def _function_type(shell: ShellTable) -> str:
    return "gto" if shell.l < 2 else "gto_spherical"


def _number(value: float) -> str:
    return f"{value:.15E}"
