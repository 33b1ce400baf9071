"""Convert optimisations to QCSchema OptimizationResult (https://molssi.github.io/QCSchema), a plain dictionary.

Every step is an AtomicResult with its gradient; values for which the schema has no field are in `extras.cuanto`.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from cuanto import __version__
from cuanto.interfaces.qcschema import check_schema, molecule_schema, plain

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
    check_schema(schema, "qcelemental.models", "OptimizationResult")
    return schema


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
