"""Convert results to QCSchema AtomicResult (https://molssi.github.io/QCSchema), a plain dictionary.

Version 1, or version 2 if the input has that version. Values for which the schema has no field are in
`extras.cuanto`. A calculation that did not converge has `success: false`.
"""

from __future__ import annotations

import json
import math
import os
import warnings
from collections.abc import Mapping
from dataclasses import asdict
from importlib import import_module
from typing import Any

import numpy as np

from cuanto import __version__
from cuanto.errors import InputError
from cuanto.files import write_text
from cuanto.interaction import CounterpoiseResult
from cuanto.interfaces.versions import to_version_2
from cuanto.interfaces.wavefunction import wavefunction_of, wavefunction_schema
from cuanto.methods import GaussianResult, Result, SemiempiricalResult
from cuanto.methods.summary import charge_columns, property_or_none
from cuanto.system import Molecule
from cuanto.system.formats import qcschema_structure

DRIVERS = ("energy", "gradient", "hessian", "properties")
MAX_ORBITALS = 1000
"""Largest basis whose orbitals are written (20 MB of text); use a checkpoint for larger ones."""
TWO_ELECTRON = ("coulomb", "exchange", "long-range exchange", "two-electron")
TERMS = {
    "core": "scf_one_electron_energy",
    "core potentials": "scf_one_electron_energy",
    "nuclear repulsion": "nuclear_repulsion_energy",
    "core repulsion": "nuclear_repulsion_energy",
    "exchange-correlation": "scf_xc_energy",
    "dispersion": "scf_dispersion_correction_energy",
}
"""Energy term -> its name in the schema; terms of the same name are added."""


class SchemaWarning(UserWarning):
    """QCElemental does not accept a result; it is written anyway."""


def to_qcschema(result: Result, orbitals: bool = True, driver: str | None = None) -> dict[str, Any]:
    """Convert a result to plain data, checked by QCElemental if it is installed.

    `driver`: one of DRIVERS; None means the gradient if it was computed, else the energy.
    """
    if driver is None:
        driver = "gradient" if _has_gradient(result) else "energy"
    schema: dict[str, Any] = {
        "schema_name": "qcschema_output",
        "schema_version": 1,
        "molecule": molecule_schema(result.molecule),
        "driver": driver,
        "model": {"method": result.method, "basis": result.basis_name},
        "keywords": plain(result.keywords),
        "protocols": {},
        "properties": plain(_properties(result)),
        "return_result": result.energy,
        "success": result.converged,
        "provenance": {"creator": "cuanto", "version": __version__, "routine": "cuanto.energy"},
        "extras": {"cuanto": plain(_extras(result))},
    }
    if orbitals and isinstance(result, GaussianResult) and result.basis.nbf <= MAX_ORBITALS:
        schema["wavefunction"] = wavefunction_schema(wavefunction_of(result))
        schema["protocols"] = {"wavefunction": "all"}
    _set_return_result(schema, result)
    if not result.converged:
        message = f"not converged in {result.iterations} iterations, gradient {result.state.gradient:.2e}"
        schema["error"] = {"error_type": "convergence_error", "error_message": message}
    check_schema(schema, "qcelemental.models", "AtomicResult")
    return schema


def _has_gradient(result: Result) -> bool:
    """Whether the gradient was computed, with the energy or later, or was read from a file."""
    return "gradient" in vars(result) or (isinstance(result, GaussianResult) and result.gradients is not None)


def counterpoise_schema(found: CounterpoiseResult) -> dict[str, Any]:
    """The AtomicResult of a complex, with the energies of its fragments in `extras.cuanto.counterpoise`."""
    schema = to_qcschema(found.complex, driver="energy")
    schema["extras"]["cuanto"]["counterpoise"] = plain(found.to_dict())
    schema["provenance"]["routine"] = "cuanto.counterpoise"
    if found.complex.converged and not found.converged:
        message = "the calculation of a fragment did not converge"
        schema |= {"success": False, "error": {"error_type": "convergence_error", "error_message": message}}
    return schema


def _set_return_result(schema: dict[str, Any], result: Result) -> None:
    """Set `return_result` to the quantity that the driver requests."""
    if schema["driver"] == "gradient":
        schema["return_result"] = result.gradient.reshape(-1).tolist()
        schema["properties"]["return_gradient"] = schema["return_result"]
        if isinstance(result, GaussianResult) and len(on_charges := result.charges_gradient):
            schema["extras"]["cuanto"]["charges_gradient"] = on_charges.tolist()
    if schema["driver"] == "properties":
        schema["return_result"] = {
            "energy": result.energy,
            "dipole_moment": result.dipole.tolist(),
            "charges": result.charges.tolist(),
        }


def require_driver(driver: str) -> None:
    """Raise an error for an unknown driver."""
    if driver not in DRIVERS:
        raise InputError(f"driver {driver!r} is not supported: choose {', '.join(DRIVERS)}")


def write_qcschema(
    path: str | os.PathLike[str],
    result: Result,
    driver: str | None = None,
    input_schema: Mapping[str, Any] | None = None,
) -> None:
    """Write a JSON file; `input_schema`: the input if it has version 2, in which case the result has version 2 as
    well."""
    write_text(path, qcschema_text(result, driver, input_schema))


def qcschema_text(result: Result, driver: str | None = None, input_schema: Mapping[str, Any] | None = None) -> str:
    """The text of the file."""
    return schema_text(to_qcschema(result, driver=driver), input_schema)


def schema_text(schema: dict[str, Any], input_schema: Mapping[str, Any] | None = None) -> str:
    """The text of a file with this AtomicResult."""
    if input_schema is not None:
        schema = plain(to_version_2(schema, input_schema))
        check_schema(schema, "qcelemental.models.v2", "AtomicResult" if schema["success"] else "FailedOperation")
    return json.dumps(schema, indent=1, allow_nan=False) + "\n"


def molecule_schema(molecule: Molecule) -> dict[str, Any]:
    """QCSchema Molecule: coordinates in Bohr, not moved or rotated; ghost atoms are not `real`.

    Masses are written if they are not the standard ones.
    """
    ghosts, masses = molecule.nuclei.ghosts, molecule.masses
    return {
        "schema_name": "qcschema_molecule",
        "schema_version": 2,
        "symbols": list(molecule.elements),
        **({"real": (~ghosts).tolist()} if ghosts.any() else {}),
        "geometry": molecule.R_ax.reshape(-1).tolist(),
        **({} if masses is None else {"masses": masses.tolist()}),
        "molecular_charge": float(molecule.charge),
        "molecular_multiplicity": molecule.multiplicity,
        "name": molecule.name or "molecule",
        "fix_com": True,
        "fix_orientation": True,
        "provenance": {"creator": "cuanto", "version": __version__, "routine": "cuanto.interfaces.qcschema"},
    }


def read_molecule(schema: Mapping[str, Any], where: str) -> Molecule:
    """The molecule of an AtomicInput or AtomicResult."""
    found = qcschema_structure(schema, where)
    more = (found.charge or 0, found.multiplicity, found.name, found.masses or None)
    return Molecule(found.symbols, found.coordinates, *more)


def _properties(result: Result) -> dict[str, Any]:
    """QCSchema AtomicResultProperties."""
    energies, molecule = result.energies, result.molecule
    up, down, functions = molecule.n_alpha, molecule.n_beta, result.orbital_energies.shape[1]
    if isinstance(result, SemiempiricalResult):  # valence electrons only
        up, down = result.calculation.layout.electrons(molecule.charge, molecule.multiplicity)
    if isinstance(result, GaussianResult):
        functions = result.basis.nbf
    moments = property_or_none(result, "second_moments")
    return {
        "calcinfo_natom": molecule.natom,
        "calcinfo_nbasis": functions,
        "calcinfo_nmo": result.orbital_energies.shape[1],
        "calcinfo_nalpha": up,
        "calcinfo_nbeta": down,
        "return_energy": result.energy,
        **{
            key: sum(value for name, value in energies.items() if TERMS.get(name) == key)
            for key in dict.fromkeys(TERMS[name] for name in energies if name in TERMS)
        },
        "scf_two_electron_energy": sum(energies.get(name, 0.0) for name in TWO_ELECTRON),
        "scf_total_energy": result.energy,
        "scf_dipole_moment": result.dipole,
        **({} if moments is None else {"scf_quadrupole_moment": moments}),
        "scf_iterations": result.iterations,
    }


def _extras(result: Result) -> dict[str, Any]:
    """Our own values, in atomic units unless the name says otherwise."""
    found = {
        "converged": result.converged,
        "energies": dict(result.energies),
        "errors": dict(result.errors),
        "error": result.error,
        "gradient": result.state.gradient,
        "energy_change": result.state.energy_change,
        "homo": result.homo,
        "lumo": result.lumo,
        "orbital_energies": result.orbital_energies,
        "occupations": result.occupations,
        "charges": result.charges,
        "charge_kind": result.charge_kind,
        "spin_populations": result.spin_populations,
        "gap": result.gap,
        "s_squared": result.s_squared,
        "backend": result.backend_name,
        "timings": dict(result.timings.seconds),
        "history": [asdict(iteration) for iteration in result.history],
        "notes": list(result.notes),
    }
    if isinstance(result, GaussianResult):
        charges = charge_columns(result)
        found |= {
            "fitting": result.fitting,
            "auxbasis": result.keywords.get("auxbasis"),
            "mulliken_charges": result.mulliken_charges,
            "loewdin_charges": result.loewdin_charges,
            "hirshfeld_charges": charges.get("Hirshfeld"),
            "cm5_charges": charges.get("CM5"),
            "bond_orders": result.bond_orders,
        }
        if result.basis.core_summary is not None:
            found["core_electrons"] = result.basis.core_electrons
    if isinstance(result, SemiempiricalResult):
        found |= {"heat_of_formation_kcal_mol": result.heat_of_formation, "bond_orders": result.bond_orders}
    return found


def plain(value: Any) -> Any:
    """Plain data for JSON: lists instead of arrays and tuples, None for infinity and NaN."""
    if isinstance(value, dict):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def check_schema(schema: Mapping[str, Any], models: str, name: str) -> None:
    """Validate with the model `name` of QCElemental, if it is installed and has this model."""
    try:
        model = getattr(import_module(models), name)
    except ImportError:
        return
    try:
        model(**schema)
    except Exception as error:  # from pydantic and others; the result is still written
        text = " ".join(str(error).split())
        warnings.warn(f"QCElemental does not accept the result as {name}: {text:.300}", SchemaWarning, stacklevel=3)
