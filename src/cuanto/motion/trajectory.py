"""Trajectories as extended XYZ files: positions in Angstrom, energies in eV, forces in eV/Angstrom, as ASE reads them.

Each frame is written in one piece and flushed to disk; a frame truncated by a crash is removed before the next.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from cuanto.arrays import Array
from cuanto.claims import claim
from cuanto.errors import InputError
from cuanto.system import Molecule
from cuanto.units import BOHR_IN_ANGSTROM, HARTREE_IN_EV

COLUMNS = {"forces": HARTREE_IN_EV / BOHR_IN_ANGSTROM, "velocities": BOHR_IN_ANGSTROM}
"""Columns of three numbers after the positions, with their factors from atomic units (velocities: Bohr per fs)."""

OTHER_FORMATS = (".dcd", ".gro", ".h5", ".hdf5", ".json", ".nc", ".pdb", ".traj", ".trr", ".xtc")
"""Suffixes of files that other programs would not read as extended XYZ."""


def frame_text(molecule: Molecule, energy: float, columns: dict[str, Array], **info: Any) -> str:
    """One frame; `energy` in Hartree, `columns` by name in atomic units, `info` for the comment line."""
    masses = molecule.masses
    of_masses = "" if masses is None else ":masses:R:1"
    properties = "species:S:1:pos:R:3" + "".join(f":{name}:R:3" for name in columns) + of_masses
    known = {"energy": repr(energy * HARTREE_IN_EV), "charge": molecule.charge, "multiplicity": molecule.multiplicity}
    comment = " ".join(f"{key}={_value(value)}" for key, value in {**known, **info}.items())
    numbers = np.hstack([molecule.R_ax * BOHR_IN_ANGSTROM, *(COLUMNS[name] * a for name, a in columns.items())])
    if masses is not None:
        numbers = np.column_stack([numbers, masses])
    lines = [
        f"{symbol:4s}" + " ".join(f"{x:18.12f}" for x in row)
        for symbol, row in zip(molecule.symbols, numbers, strict=True)
    ]
    return "\n".join([str(molecule.natom), f'Properties={properties} {comment} pbc="F F F"', *lines, ""])


def _value(value: Any) -> str:
    text = str(value)
    return f'"{text}"' if " " in text or not text else text


class Trajectory:
    """An extended XYZ file that grows by one frame at a time; other processes cannot write it meanwhile."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if self.path.suffix.lower() in OTHER_FORMATS:
            raise InputError(f"{path}: trajectories are extended XYZ files: give a name that ends in .xyz")
        self._claim = claim(path)

    def append(self, text: str) -> None:
        """Add a frame; it is on the disk on return."""
        try:
            with open(self.path, "ab") as file:
                file.write(text.encode())
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise InputError(f"cannot write {self.path}: {error.strerror or error}") from None

    def keep(self, frames: int) -> None:
        """Remove everything after the first `frames` frames, such as one truncated by a crash."""
        if not self.path.exists():
            return
        size = 0
        for number, frame in enumerate(self.frames()):
            if number == frames:
                break
            size += len(frame.encode())
        with open(self.path, "r+b") as file:
            file.truncate(size)

    def frames(self) -> Iterator[str]:
        """The text of every complete frame."""
        if not self.path.exists():
            return
        lines = self.path.read_bytes().decode(errors="replace").splitlines(keepends=True)
        begin = 0
        while begin < len(lines) and lines[begin].strip().isdigit():
            end = begin + 2 + int(lines[begin])
            if end > len(lines) or not lines[end - 1].endswith("\n"):
                return
            yield "".join(lines[begin:end])
            begin = end
