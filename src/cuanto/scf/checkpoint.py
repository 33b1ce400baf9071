"""Checkpoints: the state of an SCF in an HDF5 file, to continue a calculation that was interrupted.

Every iteration is written to a new file, which replaces the last one when it is complete, so that an interruption
(SIGKILL, a full disk) leaves the previous iteration. The file contains the basis itself, not its name, and can be used
as a guess for other bases and geometries. A digest follows the HDF5 data, because the HDF5 library may crash on damaged
files.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cuanto.backends.base import Backend
from cuanto.basis import Basis, Shell
from cuanto.basis.potential_formats import potential_entry, potential_from_exchange
from cuanto.errors import InputError, import_optional
from cuanto.files import replacing
from cuanto.scf.state import Orbitals, State
from cuanto.system import Molecule

FORMAT = "cuanto checkpoint"
VERSION = 2
SIGNATURE, SEAL = b"\x89HDF\r\n\x1a\n", b"\ncuanto sha256 "
CHUNK_BYTES = 2**20
"""Bytes read at a time."""


@dataclass(frozen=True, eq=False)
class Restart:
    """Content of a checkpoint; `orbitals` are a guess for `cuanto.energy`."""

    molecule: Molecule
    method: str
    orbitals: Orbitals
    iteration: int
    energy: float
    gradient: float
    converged: bool


def _h5py() -> Any:
    return import_optional("h5py", "checkpoints need h5py: `pip install 'cuanto[hdf5]'`")


class Checkpoint:
    """Writes every state to a file: an `on_iteration` of `cuanto.energy`."""

    def __init__(
        self, path: str | os.PathLike[str], molecule: Molecule, basis: Basis, method: str, backend: Backend
    ) -> None:
        self.path, self.backend = Path(path), backend
        self._h5py = _h5py()  # raises an error before the calculation if missing
        self._attributes = {"format": FORMAT, "version": VERSION, "method": method, "basis": basis.name}
        self._molecule, self._basis = molecule, basis

    def __call__(self, state: State) -> None:
        """Replace the file."""
        content = io.BytesIO()  # the HDF5 library crashes after a failure to write, as on a full disk
        with self._h5py.File(content, "w") as file:
            self._fill(file, state)
        with replacing(self.path, "the checkpoint ") as draft, draft.open("wb") as written:
            written.write(content.getbuffer())
            written.write(SEAL + hashlib.sha256(content.getbuffer()).digest())
            written.flush()
            os.fsync(written.fileno())

    def _fill(self, file: Any, state: State) -> None:
        numbers = {"iteration": state.iteration, "energy": state.energy, "gradient": state.gradient}
        file.attrs.update({**self._attributes, **numbers, "converged": state.converged})
        molecule, basis = self._molecule, self._basis
        file["molecule/symbols"] = list(molecule.symbols)
        file["molecule/R_ax"] = molecule.R_ax
        file["molecule"].attrs.update(
            {"charge": molecule.charge, "multiplicity": molecule.multiplicity, "name": molecule.name}
        )
        if molecule.masses is not None:
            file["molecule/masses"] = molecule.masses
        occupied = np.flatnonzero(state.n_sm.max(axis=0) > 0.0)
        C_spm = self.backend.to_host(state.C_spm)
        file["orbitals/C_spm"], file["orbitals/n_sm"] = C_spm[:, :, occupied], state.n_sm[:, occupied]
        file["basis/R_ax"], file["basis/symbols"] = basis.R_ax, list(basis.symbols)
        shells = basis.shells
        file["basis/shells"] = np.array([[s.atom, s.l, int(s.pure), *s.coefficients.shape] for s in shells])
        file["basis/exponents"] = np.concatenate([s.exponents for s in shells])
        file["basis/coefficients"] = np.concatenate([s.coefficients.reshape(-1) for s in shells])
        if basis.core_summary is not None:
            file["basis/core_potentials"] = [
                json.dumps(None if potential is None else potential_entry(potential))
                for potential in basis.core_potentials
            ]


def read_checkpoint(path: str | os.PathLike[str]) -> Restart:
    """Read a file written by `Checkpoint`."""
    h5py = _h5py()
    if not Path(path).is_file():
        raise InputError(f"there is no checkpoint {path}")
    try:
        _check_seal(Path(path))
        with h5py.File(path, "r") as file:
            if file.attrs.get("format") != FORMAT or file.attrs["version"] > VERSION:
                raise InputError(f"{path} is not a checkpoint of this version of cuanto")
            return _checked(_read(file))
    except MemoryError:
        raise InputError(
            f"cannot read the checkpoint {path}: it claims to have more data than fit into the memory"
        ) from None
    except (OSError, KeyError, ValueError, TypeError, AttributeError, IndexError, OverflowError) as error:
        raise InputError(f"cannot read the checkpoint {path}: {' '.join(str(error).split())}") from error


def _checked(found: Restart) -> Restart:
    """Refuse numbers that no calculation writes, before integrals are computed from them."""
    basis, C_spm, n_sm = found.orbitals.basis, found.orbitals.C_spm, found.orbitals.n_sm
    finite = all(np.isfinite(x).all() for x in (C_spm, n_sm, basis.R_ax, found.energy, found.gradient))
    shapes = C_spm.ndim == 3 and n_sm.ndim == 2 and C_spm.shape[1:] == (basis.nbf, n_sm.shape[1])
    spins = C_spm.ndim == 3 and len(C_spm) in (1, len(n_sm)) and len(n_sm) in (1, 2)
    atoms = basis.R_ax.shape == (len(basis.symbols), 3)
    positive = all((shell.exponents > 0).all() and np.isfinite(shell.coefficients).all() for shell in basis.shells)
    if (
        not (finite and shapes and spins and atoms and positive)
        or n_sm.min(initial=0.0) < 0
        or n_sm.max(initial=0.0) > 2
    ):
        raise ValueError("orbitals and basis do not match: start without it")
    return found


def _check_seal(path: Path) -> None:
    """Raise unless the file is complete and unchanged, before HDF5 reads it."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        if file.read(len(SIGNATURE)) != SIGNATURE:
            raise OSError("it is not an HDF5 file")
        left = file.seek(0, os.SEEK_END) - len(SEAL) - digest.digest_size
        file.seek(0)
        while left > 0 and (piece := file.read(min(left, CHUNK_BYTES))):
            digest.update(piece)
            left -= len(piece)
        seal = file.read()
    if seal != SEAL + digest.digest():
        raise InputError(f"{path} is not a checkpoint of this version of cuanto, or it is damaged: start without it")


def _read(file: Any) -> Restart:
    group, attributes = file["molecule"], file.attrs
    atoms = (group["symbols"].asstr()[:].tolist(), group["R_ax"][:])
    charge, multiplicity = (int(group.attrs[name]) for name in ("charge", "multiplicity"))
    masses = group["masses"][:] if "masses" in group else None
    molecule = Molecule(*atoms, charge, multiplicity, str(group.attrs["name"]), masses)
    basis = _read_basis(file["basis"], str(attributes["basis"]))
    molecule = molecule.with_core_electrons(basis.core_electrons)
    orbitals = Orbitals(basis, file["orbitals/C_spm"][:], file["orbitals/n_sm"][:])
    energy, gradient = (float(attributes[name]) for name in ("energy", "gradient"))
    progress = (int(attributes["iteration"]), energy, gradient, bool(attributes["converged"]))
    return Restart(molecule, str(attributes["method"]), orbitals, *progress)


def _read_basis(group: Any, name: str) -> Basis:
    exponents, coefficients = group["exponents"][:], group["coefficients"][:]
    shells, e, c = [], 0, 0
    for atom, l, pure, primitives, columns in group["shells"][:].tolist():
        block = coefficients[c : c + primitives * columns].reshape(primitives, columns)
        shells.append(Shell(atom, l, exponents[e : e + primitives], block, bool(pure)))
        e, c = e + primitives, c + primitives * columns
    symbols, potentials = group["symbols"].asstr()[:].tolist(), None
    if "core_potentials" in group:
        entries = [json.loads(text) for text in group["core_potentials"].asstr()[:]]
        potentials = [potential_from_exchange(s, entry or {}) for s, entry in zip(symbols, entries, strict=True)]
    return Basis.from_shells(shells, group["R_ax"][:], symbols=symbols, name=name, core_potentials=potentials)
