"""Gaussian cube files: orbitals, densities or the potential on a regular grid, for Avogadro, Jmol, VMD and others.

Format: https://gaussian.com/cubegen; lengths in Bohr, orbitals in Bohr^-3/2, densities in Bohr^-3, potentials in
Hartree/e.
"""

from __future__ import annotations

import io
import os
import re

import numpy as np

from cuanto import __version__
from cuanto.arrays import Array
from cuanto.backends.base import Backend
from cuanto.backends.blas import one_thread
from cuanto.errors import InputError
from cuanto.files import write_text
from cuanto.integrals.engine import resolve
from cuanto.interfaces.wavefunction import Wavefunction
from cuanto.properties.potential import potential_on_grid
from cuanto.properties.volume import Box, density_on_grid, orbital_on_grid
from cuanto.scf.occupations import occupied
from cuanto.system import Molecule

FRONTIER = re.compile(r"(?P<name>homo|lumo)(?P<shift>[+-]\d{1,6})?", re.IGNORECASE)
PER_LINE = 6
SPIN_SIGNS = (1.0, -1.0)
POTENTIAL_SPACING = 0.4
"""Bohr; wider than for densities, because the potential is smooth between atoms and expensive to compute."""
MAX_POTENTIAL = 1e4
"""Hartree/e; larger values occur at nuclei only."""


def write_orbital(
    path: str | os.PathLike[str],
    molecule: Molecule,
    wave: Wavefunction,
    orbital: str | int = "homo",
    spin: int = 0,
    box: Box | None = None,
) -> None:
    """Write an orbital: `homo`, `lumo`, `homo-1`, `lumo+2`, or its number, counted from 1 in order of energy."""
    m = orbital_number(wave, orbital, spin)
    box = box or Box.around(molecule.R_ax)
    title = f"orbital {m + 1}, spin {spin + 1}, {wave.eps_sm[spin][m]:.6f} Hartree, {wave.n_sm[spin][m]:g} electrons"
    write_cube(path, molecule, box, orbital_on_grid(wave.basis, wave.C_spm[spin][:, m], box), title)


def write_density(path: str | os.PathLike[str], molecule: Molecule, wave: Wavefunction, box: Box | None = None) -> None:
    """Write the electron density."""
    box = box or Box.around(molecule.R_ax)
    write_cube(path, molecule, box, density_on_grid(wave.basis, wave.C_spm, wave.n_sm, box), "electron density")


def write_spin_density(
    path: str | os.PathLike[str], molecule: Molecule, wave: Wavefunction, box: Box | None = None
) -> None:
    """Write the density of alpha electrons minus that of beta electrons."""
    box = box or Box.around(molecule.R_ax)
    write_cube(path, molecule, box, spin_density(wave, box), "spin density, alpha minus beta")


def spin_density(wave: Wavefunction, box: Box) -> Array:
    """Alpha minus beta density, values [x, y, z]."""
    if len(wave.n_sm) < 2:
        raise InputError("a closed shell has no spin density: choose the density or an orbital")
    return density_on_grid(wave.basis, wave.C_spm, wave.n_sm, box, SPIN_SIGNS)


def write_potential(
    path: str | os.PathLike[str],
    molecule: Molecule,
    wave: Wavefunction,
    box: Box | None = None,
    backend: str | Backend = "auto",
) -> None:
    """Write the electrostatic potential of nuclei and electrons; at a nucleus it is cut off at MAX_POTENTIAL."""
    box = box or Box.around(molecule.R_ax, POTENTIAL_SPACING)
    device = resolve(backend)
    D_pq = sum((C_pm * n_m) @ C_pm.T for C_pm, n_m in zip(wave.C_spm, wave.n_sm, strict=True))
    with one_thread:
        values = potential_on_grid(molecule, wave.basis, device.to_device(np.asarray(D_pq)), box, device)
    write_cube(path, molecule, box, np.minimum(values, MAX_POTENTIAL), "electrostatic potential, Hartree/e")


def write_cube(path: str | os.PathLike[str], molecule: Molecule, box: Box, values: Array, title: str) -> None:
    """Write values [x, y, z] on a box."""
    write_text(path, cube_text(molecule, box, values, title))


def cube_text(molecule: Molecule, box: Box, values: Array, title: str) -> str:
    """The text of the file."""
    if values.shape != box.shape:
        raise InputError(f"values of shape {values.shape} do not match a box of {box.shape} points")
    name = " ".join(molecule.name.split()) or "molecule"
    lines = [f"{name}: {title}"[:200], f"cuanto {__version__}; z runs fastest; Bohr"]
    lines.append(f"{molecule.natom:5d}" + "".join(f"{x:12.6f}" for x in box.origin))
    for x, n in enumerate(box.shape):
        lines.append(f"{n:5d}" + "".join(f"{box.spacing if i == x else 0.0:12.6f}" for i in range(3)))
    nuclei = molecule.nuclei
    for number, Z, R_x in zip(nuclei.protons, nuclei.charges, molecule.R_ax.tolist(), strict=True):
        lines.append(f"{number:5d}{float(Z):12.6f}" + "".join(f"{x:12.6f}" for x in R_x))
    return "\n".join(lines) + "\n" + _numbers(values)


def _numbers(values: Array) -> str:
    """Format values six to a line; every row along z begins a new line."""
    nz = values.shape[2]
    row = " ".join(["%12.5E"] * PER_LINE)
    rest = " ".join(["%12.5E"] * (nz % PER_LINE))
    pattern = "\n".join([row] * (nz // PER_LINE) + ([rest] if rest else [])) + "\n"
    out = io.StringIO()
    for plane in np.where(np.abs(values) < 1e-99, 0.0, values):  # a three-digit exponent would not fit the column
        out.write((pattern * len(plane)) % tuple(plane.reshape(-1).tolist()))
    return out.getvalue()


def is_orbital(text: str) -> bool:
    """Whether a text names an orbital (homo, lumo+1) or is the number of one."""
    plain = text.strip()
    return FRONTIER.fullmatch(plain) is not None or (plain.isascii() and plain.isdigit())


def orbital_number(wave: Wavefunction, orbital: str | int, spin: int = 0) -> int:
    """Index of an orbital given by name or by its number from 1."""
    if not 0 <= spin < len(wave.n_sm):
        raise InputError(f"there is no spin {spin + 1}: the result has {len(wave.n_sm)} set(s) of orbitals")
    order = np.argsort(wave.eps_sm[spin], kind="stable")
    found = FRONTIER.fullmatch(str(orbital).strip())
    if found:
        filled = np.flatnonzero(occupied(wave.n_sm)[spin][order])
        last = filled[-1] if len(filled) else -1
        position = last + (found["name"].lower() == "lumo") + int(found["shift"] or 0)
    elif is_orbital(str(orbital)):
        position = int(orbital) - 1
    else:
        raise InputError(f"orbital {str(orbital)[:40]!r}: give homo, lumo, homo-1, lumo+2 or a number from 1")
    if not 0 <= position < len(order):
        raise InputError(f"there is no orbital {orbital}: the result has {len(order)} orbitals of this spin")
    return int(order[position])
