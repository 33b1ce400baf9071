"""Reading and writing of orbitals in a QCSchema result (its `wavefunction` field).

Functions are in the order of the Common Component Architecture, as the schema requires: shells atom by atom, Cartesian
components by their exponents, pure ones by m = -l .. l. Ours differ in two ways: p functions are x, y, z, which the
schema calls Cartesian, and in the schema all Cartesian functions of a shell have the factor that normalises x^l.
J. P. Kenny et al., J. Comput. Chem. 29, 562 (2008), doi:10.1002/jcc.20815.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto.arrays import Array
from cuanto.basis import Basis, Shell
from cuanto.basis.potential_formats import potential_entry, potential_from_exchange
from cuanto.basis.shell import tabulated_coefficients
from cuanto.errors import InputError
from cuanto.methods import GaussianResult, Result, SemiempiricalResult
from cuanto.system import Molecule

DIGITS = 12
"""Decimals of orbital coefficients in a file: more than a plot or a restart needs."""
MAX_L = 12
SPINS = ("a", "b")


@dataclass(frozen=True, eq=False)
class Wavefunction:
    """Orbitals of a result: C_spm, eps_sm, n_sm (up to 2 where there is one spin)."""

    basis: Basis
    C_spm: Array
    eps_sm: Array
    n_sm: Array


def wavefunction_of(result: Result) -> Wavefunction:
    """Orbitals of a result, for each spin; their energies are NaN for a checkpoint, which does not have them."""
    if isinstance(result, SemiempiricalResult):
        raise InputError("semiempirical orbitals belong to a minimal set of Slater functions; they are not drawn")
    if not isinstance(result, GaussianResult):
        raise InputError("this result has no orbitals in it")
    n_sm, C_spm = result.occupations, result.coefficients
    eps_sm = np.full(n_sm.shape, np.nan) if result.state.eps_sm is None else result.orbital_energies
    C_spm = np.broadcast_to(C_spm, (len(n_sm), *C_spm.shape[1:]))
    return Wavefunction(result.basis, C_spm, np.broadcast_to(eps_sm, n_sm.shape), n_sm)


def wavefunction_schema(wave: Wavefunction) -> dict[str, Any]:
    """QCSchema WavefunctionProperties: basis, orbitals, their energies and occupations."""
    order, factor = _schema_order(wave.basis)
    restricted = len(wave.n_sm) == 1
    schema: dict[str, Any] = {"basis": basis_schema(wave.basis), "restricted": restricted}
    for s, spin in zip(range(len(wave.n_sm)), SPINS, strict=False):
        C_pm = (wave.C_spm[s] * factor[:, None])[order]
        schema[f"scf_orbitals_{spin}"] = np.round(C_pm, DIGITS).reshape(-1).tolist()
        schema[f"scf_eigenvalues_{spin}"] = wave.eps_sm[s].tolist()
        schema[f"scf_occupations_{spin}"] = (wave.n_sm[s] / (2 if restricted else 1)).tolist()
        for name in ("orbitals", "eigenvalues", "occupations"):
            schema[f"{name}_{spin}"] = f"scf_{name}_{spin}"
    return schema


def basis_schema(basis: Basis) -> dict[str, Any]:
    """QCSchema BasisSet; atoms with the same shells share one entry."""
    centres: dict[str, dict[str, Any]] = {}
    atom_map = []
    for symbol, shells, potential in zip(basis.symbols, shells_by_atom(basis), basis.core_potentials, strict=True):
        described: dict[str, Any] = {
            "electron_shells": [contraction for i in shells for contraction in _shell_schema(basis.shells[i])],
            **({} if potential is None else potential_entry(potential)),
        }
        alike = [name for name, known in centres.items() if name.split("_")[0] == symbol and known == described]
        if not alike:
            alike = [f"{symbol}_{sum(name.split('_')[0] == symbol for name in centres) + 1}"]
            centres[alike[0]] = described
        atom_map.append(alike[0])
    return {
        "schema_name": "qcschema_basis",
        "schema_version": 1,
        "name": basis.name,
        "center_data": centres,
        "atom_map": atom_map,
        "nbf": basis.nbf,
    }


def read_wavefunction(schema: Mapping[str, Any], molecule: Molecule) -> Wavefunction:
    """Read the wavefunction of a result, ours or of another program, with functions in our order."""
    try:
        basis = _read_basis(schema["basis"], molecule)
        spins = SPINS[:1] if schema["restricted"] else SPINS
        parts = [_read_spin(schema, spin, basis.nbf) for spin in spins]
        if not basis.nbf or len({len(eps_m) for _, eps_m, _ in parts}) != 1:
            raise ValueError("no functions, or different numbers of orbitals of the two spins")
    except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
        raise InputError(f"the wavefunction of the result cannot be read: {type(error).__name__} {error}") from None
    order, factor = _schema_order(basis)
    C_spm = np.empty((len(parts), basis.nbf, len(parts[0][1])))
    C_spm[:, order] = np.array([C_pm for C_pm, _, _ in parts])
    C_spm /= factor[:, None]
    n_sm = np.array([n_m for _, _, n_m in parts]) * (2 if len(parts) == 1 else 1)
    return Wavefunction(basis, C_spm, np.array([eps_m for _, eps_m, _ in parts]), n_sm)


def _read_spin(schema: Mapping[str, Any], spin: str, nbf: int) -> tuple[Array, Array, Array]:
    C_pm = np.array(schema[f"scf_orbitals_{spin}"], dtype=float).reshape(nbf, -1)
    eps_m, n_m = (np.array(schema[f"scf_{name}_{spin}"], dtype=float) for name in ("eigenvalues", "occupations"))
    if not C_pm.shape[1:] == eps_m.shape == n_m.shape:
        raise ValueError(f"{C_pm.shape[1]} orbitals, {eps_m.size} eigenvalues, {n_m.size} occupations")
    if not all(np.isfinite(array).all() for array in (C_pm, eps_m, n_m)):
        raise ValueError("numbers that are not finite")
    return C_pm, eps_m, n_m


def _read_basis(schema: Mapping[str, Any], molecule: Molecule) -> Basis:
    shells = []
    if len(schema["atom_map"]) != molecule.natom:
        raise ValueError(f"a basis for {len(schema['atom_map'])} atoms, the molecule has {molecule.natom}")
    potentials = []
    for a, (symbol, centre) in enumerate(zip(molecule.elements, schema["atom_map"], strict=True)):
        potentials.append(potential_from_exchange(symbol, schema["center_data"][centre]))
        for shell in schema["center_data"][centre]["electron_shells"]:
            for l, rows in _columns(shell):
                pure = shell["harmonic_type"] == "spherical"
                if pure and l == 1:
                    raise ValueError("p functions in the order m = -1, 0, 1; only x, y, z can be read")
                shells.append(Shell.from_table(a, l, shell["exponents"], np.array(rows, dtype=float).T, pure or l < 2))
    elements, name = molecule.elements, str(schema["name"])
    return Basis.from_shells(shells, molecule.R_ax, symbols=elements, name=name, core_potentials=potentials)


def _columns(shell: Mapping[str, Any]) -> list[tuple[int, Any]]:
    """Angular momenta and their contractions; an SP shell has one contraction for each."""
    momenta, rows = [int(l) for l in shell["angular_momentum"]], shell["coefficients"]
    if not momenta or not all(0 <= l <= MAX_L for l in momenta):
        raise ValueError(f"angular momenta {momenta}")
    if len(momenta) == 1:
        return [(momenta[0], rows)]
    return [(l, [row]) for l, row in zip(momenta, rows, strict=True)]


def shells_by_atom(basis: Basis) -> list[list[int]]:
    """Indices of the shells of every atom."""
    shells: list[list[int]] = [[] for _ in basis.R_ax]
    for i, shell in enumerate(basis.shells):
        shells[shell.atom].append(i)
    return shells


def _shell_schema(shell: Shell) -> list[dict[str, Any]]:
    """One shell for each contraction: QCElemental counts the functions of a shell once."""
    about = {
        "harmonic_type": "spherical" if shell.pure and shell.l != 1 else "cartesian",
        "angular_momentum": [shell.l],
    }
    described = []
    for column in tabulated_coefficients(shell).T:
        used = np.flatnonzero(column)
        described.append(
            {**about, "exponents": shell.exponents[used].tolist(), "coefficients": [column[used].tolist()]}
        )
    return described


def _schema_order(basis: Basis) -> tuple[NDArray[np.int64], Array]:
    """Index of our function at each position of the schema, and the factor of each of our coefficients."""
    positions = [
        np.arange(basis.offsets[i], basis.offsets[i] + basis.shells[i].nbf)
        for atom in shells_by_atom(basis)
        for i in atom
    ]
    factors = [
        np.full(shell.nbf, np.sqrt(4 * np.pi / (2 * shell.l + 1)) if shell.l >= 2 and not shell.pure else 1.0)
        for shell in basis.shells
    ]
    return np.concatenate(positions).astype(np.int64), np.concatenate(factors)
