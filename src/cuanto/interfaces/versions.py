"""Conversion between versions 1 and 2 of QCSchema; the rest of cuanto reads and writes version 1.

In version 2 an input has its settings in a `specification`, a result contains its input, and a failed calculation is
never an AtomicResult (https://github.com/MolSSI/QCElemental, `qcelemental.models.v2`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cuanto import __version__
from cuanto.errors import InputError

INPUT, RESULT, FAILED = "qcschema_atomic_input", "qcschema_atomic_result", "qcschema_failed_operation"
SPECIFICATION_KEYS = ("driver", "model", "keywords", "protocols")
INPUT_KEYS = ("id", "schema_name", "schema_version", "molecule", "specification", "provenance")
SPECIFICATION_FIELDS = ("schema_name", "program", *SPECIFICATION_KEYS, "extras")
"""Fields that QCElemental allows in an AtomicInput (`INPUT_KEYS`) and in its specification."""
OTHER_SCHEMAS = ("qcschema_optimization", "qcschema_torsion_drive", "qcschema_many_body")
MOLECULE_VERSION, BASIS_VERSION = 3, 2


def is_version_2(schema: Any) -> bool:
    """Whether a schema is an AtomicInput or AtomicResult of version 2."""
    if not isinstance(schema, Mapping):
        return False
    return schema.get("schema_name") in (INPUT, RESULT) or "specification" in schema or _is_result(schema)


def _is_result(schema: Mapping[str, Any]) -> bool:
    given = schema.get("input_data")
    return "return_result" in schema and isinstance(given, Mapping) and "specification" in given


def to_version_1(schema: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Convert to version 1; a schema of version 1 is returned as it is."""
    name = str(schema.get("schema_name", ""))
    if name.startswith(OTHER_SCHEMAS):
        raise InputError(f"{where} is a {name}: give the input or the result of one calculation of one molecule")
    if not is_version_2(schema):
        return dict(schema)
    finished = name == RESULT or _is_result(schema)
    input_schema = schema.get("input_data") if finished else schema
    specification = input_schema.get("specification") if isinstance(input_schema, Mapping) else None
    if not isinstance(specification, Mapping):
        raise InputError(f"{where}: QCSchema 2 without a specification; give driver, model and keywords in one")
    found = {key: value for key, value in schema.items() if key not in ("specification", "input_data")}
    found |= {key: specification[key] for key in SPECIFICATION_KEYS if specification.get(key) is not None}
    extras = [one for one in (specification.get("extras"), schema.get("extras")) if isinstance(one, Mapping)]
    found["extras"] = {key: value for one in extras for key, value in one.items()}
    return {**found, "schema_name": "qcschema_output" if finished else "qcschema_input", "schema_version": 1}


def version_2_input(schema: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The AtomicInput of version 2 in `schema`; None if the schema is of version 1."""
    if not is_version_2(schema):
        return None
    given = schema.get("input_data")
    return given if isinstance(given, Mapping) else schema


def to_version_2(result: Mapping[str, Any], input_schema: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a result of version 1 to version 2, as the answer to the input `input_schema`."""
    if not result["success"]:
        return {**failed_operation(input_schema, result["error"]), "extras": dict(result["extras"])}
    molecule = {**result["molecule"], "schema_version": MOLECULE_VERSION}
    # The command line may have overridden the input.
    computed = {key: result[key] for key in ("driver", "model", "keywords")}
    specification = {**_select(SPECIFICATION_FIELDS, input_schema.get("specification") or {}), **computed}
    given = {"molecule": _input_molecule(input_schema, molecule), "specification": specification}
    found: dict[str, Any] = {
        "schema_name": RESULT,
        "schema_version": 2,
        "id": input_schema.get("id"),
        "input_data": {**_select(INPUT_KEYS, input_schema), **given},
        "molecule": molecule,
        "properties": dict(result["properties"]),
        "return_result": result["return_result"],
        "success": True,
        "provenance": result["provenance"],
        "extras": dict(result["extras"]),
    }
    wave = result.get("wavefunction")
    if wave is not None and _keeps_orbitals(input_schema):
        basis = {**wave["basis"], "schema_name": "qcschema_basis_set", "schema_version": BASIS_VERSION}
        found["wavefunction"] = {**wave, "basis": basis}
    return found


def _select(names: tuple[str, ...], given: Mapping[str, Any]) -> dict[str, Any]:
    """Select the fields of the schema, dropping anything else in the file, such as comments."""
    return {name: given[name] for name in names if name in given}


def _input_molecule(input_schema: Mapping[str, Any], molecule: dict[str, Any]) -> Any:
    """The molecule of the input, unless it was computed with another charge or multiplicity."""
    given = input_schema.get("molecule")
    charge, spin = "molecular_charge", "molecular_multiplicity"
    if not isinstance(given, Mapping) or given.get(charge, 0) != molecule[charge]:
        return molecule
    return given if given.get(spin, molecule[spin]) == molecule[spin] else molecule


def failed_operation(input_schema: Any, error: Mapping[str, Any]) -> dict[str, Any]:
    """FailedOperation in the version of the input `input_schema`."""
    found = {
        "id": input_schema.get("id") if isinstance(input_schema, Mapping) else None,
        "input_data": input_schema,
        "success": False,
        "error": dict(error),
        "extras": {"cuanto": {"version": __version__}},
    }
    return {"schema_name": FAILED, "schema_version": 2, **found} if is_version_2(input_schema) else found


def _keeps_orbitals(input_schema: Mapping[str, Any]) -> bool:
    """Whether the protocols of the input allow orbitals in the result."""
    protocols = (input_schema.get("specification") or {}).get("protocols")
    protocol = protocols.get("wavefunction", "none") if isinstance(protocols, Mapping) else "none"
    return str(getattr(protocol, "value", protocol)) != "none"
