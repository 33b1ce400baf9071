"""Initial spinors in orthonormal functions: those of the bare nucleus or of another calculation."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from cuanto.arrays import Array
from cuanto.atomic.atom import Atom, AtomBasis, AtomResult, ScfSettings
from cuanto.atomic.one_electron import Core, balance, overlap
from cuanto.atomic.species import SPECIES
from cuanto.errors import InputError
from cuanto.files import save_npz


@dataclass(frozen=True, eq=False)
class SavedSpinors:
    """Occupied spinors of a calculation, from which another one can start; can be saved to a file."""

    basis: AtomBasis
    coefficients: tuple[Array, ...]
    relativistic: bool

    @classmethod
    def of(cls, result: AtomResult) -> SavedSpinors:
        """The spinors of a result."""
        return cls(result.atom.basis, result.coefficients, result.settings.relativistic)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write an .npz file, complete or not at all."""
        arrays = {f"exponents_{i}": z for i, z in enumerate(self.basis.exponents)}
        arrays |= {f"coefficients_{i}": C for i, C in enumerate(self.coefficients)}
        save_npz(path, arrays | {"relativistic": np.array(self.relativistic)})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> SavedSpinors:
        """Read a file written by `save`."""
        try:
            if not Path(path).is_file():  # opening a pipe would wait
                raise FileNotFoundError("there is no such file")
            with Path(path).open("rb") as file, np.load(file) as data:
                count = sum(name.startswith("exponents_") for name in data.files)
                basis = AtomBasis(tuple(data[f"exponents_{i}"] for i in range(count)))
                coefficients = tuple(data[f"coefficients_{i}"] for i in range(count))
                relativistic = bool(data["relativistic"])
        except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
            raise InputError(
                f"{os.fspath(path)} does not contain the spinors of an atom ({error}): give a file saved by cuanto"
            ) from None
        for z, C in zip(basis.exponents, coefficients, strict=True):
            if C.ndim != 2 or len(C) != len(z) * (2 if relativistic else 1) or not np.isfinite(C).all():
                raise InputError(f"{os.fspath(path)} is damaged: its spinors do not match its exponents")
        return cls(basis, coefficients, relativistic)


def guess(
    atom: Atom, settings: ScfSettings, cores: Sequence[Core], start: AtomResult | SavedSpinors | None
) -> list[Array]:
    """Occupied spinors of every symmetry, closed ones first."""
    if isinstance(start, AtomResult):
        start = SavedSpinors.of(start)
    found = []
    for i, one in enumerate(cores):
        count = atom.occupation.shells(i)
        U = None if start is None else _project(atom, settings, one, i, start)
        if U is None or U.shape[1] < count:
            _, vectors = np.linalg.eigh(one.X.T @ one.h @ one.X)
            U = vectors[:, one.negative :]
        found.append(np.ascontiguousarray(U[:, :count]))
    return found


def _project(atom: Atom, settings: ScfSettings, one: Core, i: int, start: SavedSpinors) -> Array | None:
    """Project spinors onto the new functions; a missing small component follows from kinetic balance, p/2c."""
    if i >= start.basis.nsym:
        return None
    species, z_p, y_p = SPECIES[i], atom.basis.exponents[i], start.basis.exponents[i]
    C, m = start.coefficients[i], len(y_p)
    LL, SS = overlap(species, z_p, y_p)
    projected = LL @ C[:m]
    if settings.relativistic:
        small = C[m:] if start.relativistic else C[:m] * (balance(species, y_p) / (2.0 * settings.c))[:, None]
        projected = np.concatenate([projected, SS @ small])
    U = one.X.T @ projected
    if U.shape[1] == 0 or U.shape[1] > U.shape[0]:
        return None
    # Gram-Schmidt in this order does not change the space of the closed spinors
    return np.asarray(np.linalg.qr(U)[0])
