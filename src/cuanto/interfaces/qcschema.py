"""Results as QCSchema AtomicResult (https://molssi.github.io/QCSchema), version 1, as a plain dictionary.

What the schema has no field for is under `extras.cuanto`. A calculation that did not converge has `success: false`.
"""

from __future__ import annotations

import json
import math
import os
from importlib import import_module
from typing import Any

import numpy as np

from cuanto import __version__
from cuanto.interfaces.files import write_text
from cuanto.methods import Result
from cuanto.system import Molecule

TWO_ELECTRON = ("coulomb", "exchange")


def to_qcschema(result: Result) -> dict[str, Any]:
    """A dictionary that JSON can hold; checked by QCElemental where it is installed."""
    options = {name: value for name, value in vars(result.options).items() if value is not None}
    schema: dict[str, Any] = {
        "schema_name": "qcschema_output",
        "schema_version": 1,
        "molecule": molecule_schema(result.molecule),
        "driver": "energy",
        "model": {"method": result.method, "basis": result.basis.name},
        "keywords": plain({"fitting": result.fitting, **options}),
        "properties": plain(_properties(result)),
        "return_result": result.energy,
        "success": result.converged,
        "provenance": {"creator": "cuanto", "version": __version__, "routine": "cuanto.energy"},
        "extras": {"cuanto": plain(_extras(result))},
    }
    if not result.converged:
        message = f"not converged in {result.iterations} iterations, gradient {result.state.gradient:.2e}"
        schema["error"] = {"error_type": "convergence_error", "error_message": message}
    _check(schema)
    return schema


def write_qcschema(path: str | os.PathLike[str], result: Result) -> None:
    """As a JSON file."""
    write_text(path, json.dumps(to_qcschema(result), indent=1, allow_nan=False) + "\n")


def molecule_schema(molecule: Molecule) -> dict[str, Any]:
    """Coordinates in Bohr, kept where they are."""
    return {
        "schema_name": "qcschema_molecule",
        "schema_version": 2,
        "symbols": list(molecule.symbols),
        "geometry": molecule.R_ax.reshape(-1).tolist(),
        "molecular_charge": float(molecule.charge),
        "molecular_multiplicity": molecule.multiplicity,
        "name": molecule.name or "molecule",
        "fix_com": True,
        "fix_orientation": True,
        "provenance": {"creator": "cuanto", "version": __version__, "routine": "cuanto.interfaces.qcschema"},
    }


def _properties(result: Result) -> dict[str, Any]:
    """By the names of the schema."""
    energies, molecule = result.energies, result.molecule
    return {
        "calcinfo_natom": molecule.natom,
        "calcinfo_nbasis": result.basis.nbf,
        "calcinfo_nmo": result.orbital_energies.shape[1],
        "calcinfo_nalpha": molecule.n_alpha,
        "calcinfo_nbeta": molecule.n_beta,
        "nuclear_repulsion_energy": energies["nuclear repulsion"],
        "return_energy": result.energy,
        "scf_one_electron_energy": energies["core"],
        "scf_two_electron_energy": sum(energies[name] for name in TWO_ELECTRON),
        "scf_total_energy": result.energy,
        "scf_dipole_moment": result.dipole,
        "scf_iterations": result.iterations,
    }


def _extras(result: Result) -> dict[str, Any]:
    """In atomic units, as everywhere in the schema."""
    return {
        "converged": result.converged,
        "energies": dict(result.energies),
        "gradient": result.state.gradient,
        "energy_change": result.state.energy_change,
        "fitting": result.fitting,
        "auxbasis": None if result.auxbasis is None else result.auxbasis.name,
        "homo": result.homo,
        "lumo": result.lumo,
        "orbital_energies": result.orbital_energies,
        "occupations": result.occupations,
        "mulliken_charges": result.mulliken_charges,
        "loewdin_charges": result.loewdin_charges,
        "s_squared": result.s_squared,
        "backend": result.backend.name,
        "timings": dict(result.timings.seconds),
        "notes": list(result.notes),
    }


def plain(value: Any) -> Any:
    """Lists and numbers instead of arrays and tuples; None where JSON has no number."""
    if isinstance(value, dict):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _check(schema: dict[str, Any]) -> None:
    try:
        models = import_module("qcelemental.models")
    except ImportError:
        return
    models.AtomicResult(**schema)
