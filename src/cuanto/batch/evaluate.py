"""The work of a worker process.

Input and output are plain data, so that it can run on any machine. If a molecule fails, the error is its result.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import Any

from cuanto.api import energy, gradient, tight_keywords
from cuanto.errors import CuantoError, describe_error, without_convergence_warnings
from cuanto.integrals.engine import resolve
from cuanto.interfaces.qcschema import plain
from cuanto.interfaces.sources import HESSIAN, OPTIMIZE
from cuanto.log import logger
from cuanto.methods import SEMIEMPIRICAL, Result
from cuanto.methods.semiempirical_batch import BATCH_OPTIONS, semiempirical_energies
from cuanto.motion.frequencies import frequencies
from cuanto.motion.optimize import optimize
from cuanto.motion.settings import Settings
from cuanto.motion.tasks import read_molecule
from cuanto.system import Molecule
from cuanto.wording import HINT, WARNING

BATCH_KEYWORDS = {"backend", *BATCH_OPTIONS}
"""Keywords with which molecules can be computed together; with others they are computed one by one."""


def evaluate(task: dict[str, Any]) -> dict[str, Any]:
    """Compute the rows of a task.

    A task has molecules (plain data or objects), method, basis, keywords, gradient, driver and settings.
    """
    given, separate = task["molecules"], task.get("driver") in (HESSIAN, OPTIMIZE)
    molecules = [one if isinstance(one, Molecule) else read_molecule(one) for one in given]
    combined = task["method"].lower() in SEMIEMPIRICAL and set(task["keywords"]) <= BATCH_KEYWORDS and not separate
    if len(molecules) > 1 and combined:
        try:
            return {"rows": _joint_rows(molecules, task)}
        except Exception as error:  # one by one, to find the molecule that fails
            logger.info("%d molecules together: %s; computing them one by one", len(molecules), describe_error(error))
    return {"rows": [_single_row(molecule, task) for molecule in molecules]}


def _joint_rows(molecules: Sequence[Molecule], task: Mapping[str, Any]) -> list[dict[str, Any]]:
    options, begin = dict(task["keywords"]), time.perf_counter()
    if task["gradient"]:
        options = tight_keywords(options)
    backend = resolve(options.pop("backend", "auto"))
    results = semiempirical_energies(molecules, task["method"], backend, task["gradient"], **options)
    rows = [plain(_row(result, task["gradient"])) for result in results]
    seconds = (time.perf_counter() - begin) / len(molecules)
    return [{**row, "seconds": seconds} for row in rows]


def _single_row(molecule: Molecule, task: Mapping[str, Any]) -> dict[str, Any]:
    begin = time.perf_counter()
    basis = {} if task["basis"] is None else {"basis": task["basis"]}
    try:
        if task.get("driver") == OPTIMIZE:
            row = _optimise(molecule, basis.get("basis"), task)
        elif task.get("driver") == HESSIAN:
            row = _vibrations_row(molecule, task, basis)
        else:
            compute = gradient if task["gradient"] else energy
            with without_convergence_warnings():  # the table has a column for it
                row = _row(compute(molecule, task["method"], **basis, **task["keywords"]), task["gradient"])
    except Exception as error:
        row = {"error": describe_error(error)}
    return {**plain(row), "seconds": time.perf_counter() - begin}


def _vibrations_row(molecule: Molecule, task: Mapping[str, Any], basis: Mapping[str, Any]) -> dict[str, Any]:
    found = frequencies(molecule, task["method"], **basis, **task["keywords"], **task["settings"], workers=0)
    assert found.result is not None
    thermal = found.thermochemistry
    return {
        **_row(found.result, True, found.notes),
        "positions": found.molecule.R_ax,
        "wavenumbers": found.wavenumbers,
        "intensities": found.intensities,
        "zero_point_energy": thermal.zero_point_energy,
        "enthalpy": thermal.enthalpy,
        "entropy_term": thermal.entropy_term,
        "gibbs_energy": thermal.gibbs_energy,
    }


def _optimise(molecule: Molecule, basis: str | None, task: Mapping[str, Any]) -> dict[str, Any]:
    found = optimize(molecule, task["method"], basis, settings=Settings.of(**task["settings"]), **task["keywords"])
    moved = {"converged": found.converged, "steps": found.iterations, "positions": found.molecule.R_ax}
    return {**_row(found.result, True), **moved}


def _error(result: Result) -> float | None:
    """The estimated error of the energy; None without estimates."""
    return float(result.error) if math.isfinite(result.error) else None


def _row(result: Result, with_gradient: bool, more_notes: Sequence[str] = ()) -> dict[str, Any]:
    if not math.isfinite(result.energy):
        raise CuantoError("the energy is not a number; check the geometry, or try another guess")
    return {
        "energy": result.energy,
        "energy_error": _error(result),
        "converged": result.converged,
        "iterations": result.iterations,
        "homo": max(result.homo),
        "lumo": min(result.lumo),
        "dipole": result.dipole,
        "charges": result.charges,
        "heat_of_formation": getattr(result, "heat_of_formation", None),
        "gradient": result.gradient if with_gradient else None,
        "warnings": "; ".join(
            note.removeprefix(WARNING)
            for note in dict.fromkeys((*result.notes, *more_notes))
            if note.startswith((WARNING, HINT))
        ),
    }
