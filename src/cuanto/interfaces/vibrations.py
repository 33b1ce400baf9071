"""Vibrations in files: QCSchema with the driver `hessian`, and normal modes in Molden files.

A Hessian file is a QCSchema AtomicResult without orbitals: molecule, model, keywords and provenance, the Hessian as
`return_result` (Hartree/Bohr^2, rows of 3N numbers one after the other), and in `extras.cuanto.vibrations` everything
else, dipole derivatives included. It can be analysed again with other isotopes or at another temperature.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from cuanto import __version__
from cuanto.errors import InputError
from cuanto.files import write_text
from cuanto.interfaces import qcschema
from cuanto.interfaces.molden import atom_lines, molden_text
from cuanto.interfaces.qcschema import check_schema, plain, read_molecule
from cuanto.interfaces.versions import to_version_1
from cuanto.methods import GaussianResult
from cuanto.motion.hessian import Hessian
from cuanto.motion.thermochemistry import Conditions, Thermochemistry
from cuanto.motion.vibrations import Vibrations, analyse
from cuanto.system.formats import parse_json
from cuanto.system.text import read_text

DRIVER = "hessian"


def to_qcschema(vibrations: Vibrations, orbitals: bool = True) -> dict[str, Any]:
    """Convert vibrations to a QCSchema AtomicResult, checked by QCElemental if it is installed."""
    if vibrations.result is None:
        raise InputError(
            "vibrations from a file lack the result at the reference geometry: compute them with cuanto.frequencies"
        )
    schema = qcschema.to_qcschema(vibrations.result, orbitals, driver="energy")
    hessian = plain(vibrations.hessian.reshape(-1))
    schema |= {"driver": DRIVER, "return_result": hessian}
    schema["properties"]["return_hessian"] = hessian
    schema["properties"]["return_gradient"] = plain(vibrations.second_derivatives.gradient.reshape(-1))
    schema["provenance"]["routine"] = "cuanto.frequencies"
    schema["extras"]["cuanto"]["vibrations"] = plain(_extras(vibrations))
    check_schema(schema, "qcelemental.models", "AtomicResult")
    return schema


def _extras(vibrations: Vibrations) -> dict[str, Any]:
    second, (group, number) = vibrations.second_derivatives, vibrations.symmetry
    return {
        "wavenumbers_per_cm": vibrations.wavenumbers,
        "intensities_km_mol": vibrations.intensities,
        "reduced_masses_u": vibrations.reduced_masses,
        "modes": vibrations.modes,
        "masses_u": vibrations.masses,
        "dipole_derivatives": second.dipole_derivatives,
        "step": second.step,
        "displacements": second.displacements,
        "asymmetry": second.asymmetry,
        "hessian_notes": list(second.notes),
        "point_group": group,
        "symmetry_number": number,
        "conditions": asdict(vibrations.conditions),
        "thermochemistry": thermochemistry_schema(vibrations.thermochemistry),
        "notes": list(vibrations.notes),
    }


def thermochemistry_schema(thermochemistry: Thermochemistry) -> dict[str, Any]:
    """Thermochemistry as plain data: Hartree, Hartree/K, K, atm."""
    return {
        **asdict(thermochemistry.conditions),
        "electronic_energy": thermochemistry.electronic_energy,
        "zero_point_energy": thermochemistry.zero_point_energy,
        "energy": thermochemistry.energy,
        "enthalpy": thermochemistry.enthalpy,
        "entropy": thermochemistry.entropy,
        "entropy_term": thermochemistry.entropy_term,
        "heat_capacity_v": thermochemistry.heat_capacity_v,
        "heat_capacity_p": thermochemistry.heat_capacity_p,
        "gibbs_energy": thermochemistry.gibbs_energy,
        "energies": dict(thermochemistry.energies),
        "entropies": dict(thermochemistry.entropies),
    }


def schema_text(vibrations: Vibrations, input_schema: Mapping[str, Any] | None = None) -> str:
    """The text of a QCSchema file; in version 2 if `input_schema` has that version."""
    return qcschema.schema_text(to_qcschema(vibrations), input_schema)


def hessian_text(vibrations: Vibrations) -> str:
    """The text of a Hessian file."""
    return json.dumps(to_qcschema(vibrations, orbitals=False), indent=1, allow_nan=False) + "\n"


def write_hessian(path: str | os.PathLike[str], vibrations: Vibrations) -> None:
    """Write a Hessian file."""
    write_text(path, hessian_text(vibrations))


def read_hessian(source: str | os.PathLike[str] | Mapping[str, Any]) -> Vibrations:
    """Read a QCSchema AtomicResult with the driver `hessian`, ours or another program's, and analyse it."""
    where = "the result" if isinstance(source, Mapping) else str(source)
    given = source if isinstance(source, Mapping) else parse_json(read_text(source, "Hessian"), where)
    schema = to_version_1(given, where)
    if schema.get("driver") != DRIVER or schema.get("return_result") is None:
        raise InputError(f"{where} has no Hessian: give the file of `cuanto frequencies --hessian` or --json")
    try:
        return _vibrations(schema, where)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        text = " ".join(f"{type(error).__name__} {error}".split())
        raise InputError(f"{where} is not a complete QCSchema AtomicResult with a Hessian: {text}") from None


def is_hessian(schema: Mapping[str, Any]) -> bool:
    """Whether plain data represent a result with a Hessian."""
    return schema.get("driver") == DRIVER and schema.get("return_result") is not None


def _vibrations(schema: Mapping[str, Any], where: str) -> Vibrations:
    molecule = read_molecule(schema, where)
    n, properties, model = molecule.natom, schema.get("properties") or {}, schema["model"]
    extras = ((schema.get("extras") or {}).get("cuanto") or {}).get("vibrations") or {}
    matrix = np.array(schema["return_result"], dtype=float).reshape(3 * n, 3 * n)
    gradient = properties.get("return_gradient") or np.zeros(3 * n)
    dipoles = extras.get("dipole_derivatives") or np.zeros((3 * n, 3))
    provenance = schema.get("provenance") or {}
    hessian = Hessian(
        molecule=molecule,
        method=str(model["method"]),
        basis=model.get("basis") or None,
        keywords=dict(schema.get("keywords") or {}),
        energy=float(properties["return_energy"]),
        gradient=np.array(gradient, dtype=float).reshape(n, 3),
        matrix=0.5 * (matrix + matrix.T),
        dipole_derivatives=np.array(dipoles, dtype=float).reshape(3 * n, 3),
        step=float(extras.get("step", 0.0)),
        displacements=int(extras.get("displacements", 0)),
        asymmetry=float(extras.get("asymmetry", 0.0)),
        program=" ".join(str(provenance[key]) for key in ("creator", "version") if provenance.get(key)),
        notes=tuple(str(note) for note in extras.get("hessian_notes") or ()),
    )
    masses: dict[int | str, str | float] = {
        a: float(mass) for a, mass in enumerate(extras.get("masses_u") or (), start=1)
    }
    return analyse(hessian, masses, Conditions(**(extras.get("conditions") or {})))


def modes_molden(vibrations: Vibrations) -> str:
    """A Molden file with normal modes, and with the orbitals of a Gaussian basis.

    Imaginary wavenumbers are negative; the sections are FREQ, FR-COORD (Bohr), FR-NORM-COORD and INT (km/mol).
    """
    result, molecule = vibrations.result, vibrations.molecule
    if isinstance(result, GaussianResult):
        lines = [molden_text(result).rstrip("\n")]
    else:
        title = f" {molecule.name} {vibrations.level_of_theory}, cuanto {__version__}"
        lines = ["[Molden Format]", "[Title]", title, *atom_lines(molecule)]
    lines += ["[FREQ]", *(f"{nu:12.4f}" for nu in vibrations.wavenumbers), "[FR-COORD]"]
    for symbol, R_x in zip(molecule.symbols, molecule.R_ax, strict=True):
        lines.append(f"{symbol:2s} " + " ".join(f"{x:16.10f}" for x in R_x))
    lines.append("[FR-NORM-COORD]")
    for number, mode_ax in enumerate(vibrations.modes, start=1):
        lines.append(f"vibration {number:5d}")
        lines += [" ".join(f"{x:14.8f}" for x in row) for row in mode_ax]
    lines += ["[INT]", *(f"{value:12.4f}" for value in vibrations.intensities)]
    return "\n".join(lines) + "\n"
