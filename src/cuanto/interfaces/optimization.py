"""Convert optimisations to QCSchema OptimizationResult (https://molssi.github.io/QCSchema), a plain dictionary.

Every step is an AtomicResult with its gradient, the last one with its orbitals; values for which the schema has no
field are in `extras.cuanto`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from cuanto import __version__
from cuanto.errors import InputError
from cuanto.interfaces.qcschema import MAX_ORBITALS, check_schema, molecule_schema, plain
from cuanto.interfaces.wavefunction import wavefunction_of, wavefunction_schema
from cuanto.methods import GaussianResult, Result

if TYPE_CHECKING:
    from cuanto.motion.optimize import OptimizationResult, Step

NAME = "qcschema_optimization_output"


def to_qcschema(optimization: OptimizationResult) -> dict[str, Any]:
    """Convert an optimisation to plain data, checked by QCElemental if it is installed."""
    accepted = [step for step in optimization.steps if step.accepted]
    provenance = {"creator": "cuanto", "version": __version__, "routine": "cuanto.optimize"}
    model = {"method": optimization.result.method, "basis": optimization.result.basis_name}
    specification = {"driver": "gradient", "model": model, "keywords": plain(optimization.result.keywords)}
    schema: dict[str, Any] = {
        "schema_name": NAME,
        "schema_version": 1,
        "input_specification": {"schema_name": "qcschema_input", "schema_version": 1, **specification},
        "keywords": {"program": "cuanto", **plain(optimization.settings.plain())},
        "initial_molecule": molecule_schema(optimization.initial),
        "final_molecule": molecule_schema(optimization.molecule),
        "trajectory": [_atomic_result(step, specification, provenance) for step in accepted],
        "energies": [step.energy for step in accepted],
        "success": optimization.converged,
        "provenance": provenance,
        "extras": {"cuanto": plain(_extras(optimization))},
    }
    if not optimization.converged:
        message = f"not converged in {optimization.iterations} steps"
        schema["error"] = {"error_type": "convergence_error", "error_message": message}
    _add_orbitals(schema["trajectory"][-1], accepted[-1], optimization.result)
    check_schema(schema, "qcelemental.models", "OptimizationResult")
    return schema


def last_result(schema: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """The AtomicResult of the last step of an optimisation; other schemas as they are."""
    if schema.get("schema_name") != NAME:
        return schema
    trajectory = schema.get("trajectory")
    if not isinstance(trajectory, list) or not trajectory or not isinstance(trajectory[-1], Mapping):
        raise InputError(f"{where} is an optimisation without the results of its steps: optimise the molecule again")
    last: Mapping[str, Any] = trajectory[-1]
    return last


def energy_input(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The AtomicInput of an energy of the optimised molecule; other schemas as they are."""
    if schema.get("schema_name") != NAME:
        return schema
    given = schema.get("input_specification")
    specification = given if isinstance(given, Mapping) else {}
    model = {key: specification[key] for key in ("model", "keywords") if key in specification}
    return {"schema_name": "qcschema_input", "molecule": schema.get("final_molecule"), "driver": "energy", **model}


def optimization_text(optimization: OptimizationResult) -> str:
    """The text of a JSON file."""
    return json.dumps(to_qcschema(optimization), indent=1, allow_nan=False) + "\n"


def _atomic_result(step: Step, specification: dict[str, Any], provenance: dict[str, str]) -> dict[str, Any]:
    gradient = step.gradient.reshape(-1).tolist()
    properties = {"calcinfo_natom": step.molecule.natom, "return_energy": step.energy, "return_gradient": gradient}
    return {
        "schema_name": "qcschema_output",
        "schema_version": 1,
        **specification,
        "molecule": molecule_schema(step.molecule),
        "properties": properties,
        "return_result": gradient,
        "success": True,
        "provenance": provenance,
    }


def _add_orbitals(schema: dict[str, Any], step: Step, result: Result) -> None:
    """Add the orbitals of a result to the AtomicResult of the same geometry."""
    if not isinstance(result, GaussianResult) or result.basis.nbf > MAX_ORBITALS:
        return
    if np.array_equal(step.molecule.R_ax, result.molecule.R_ax):
        schema["wavefunction"] = wavefunction_schema(wavefunction_of(result))
        schema["protocols"] = {"wavefunction": "all"}


def _extras(optimization: OptimizationResult) -> dict[str, Any]:
    steps = [
        {
            "number": step.number,
            "stage": step.stage,
            "energy": step.energy,
            "change": step.change,
            "accepted": step.accepted,
            "met": step.met,
            **asdict(step.measures),
        }
        for step in optimization.steps
    ]
    points = [
        {
            "coordinate": point.coordinate,
            "energy": point.energy,
            "converged": point.converged,
            "geometry": point.molecule.R_ax.reshape(-1),
            "constraints": [f"{one} {one.shown}" for one in point.constraints],
        }
        for point in optimization.points
    ]
    criteria = asdict(optimization.settings.criteria)
    return {"converged": optimization.converged, "steps": steps, "points": points, "criteria": criteria}
