"""The interface of QCEngine: converts an AtomicInput to an AtomicResult or a FailedOperation."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from typing import Any

from cuanto import __version__
from cuanto.api import energy, gradient
from cuanto.errors import (
    CompilerError,
    ConvergenceError,
    CuantoError,
    InputError,
    MissingDependencyError,
    import_optional,
    without_convergence_warnings,
)
from cuanto.interfaces.qcschema import plain, read_molecule, require_driver, to_qcschema
from cuanto.interfaces.sources import HESSIAN, Model, confined_basis, read_model
from cuanto.interfaces.versions import failed_operation, is_version_2, to_version_1, to_version_2
from cuanto.interfaces.vibrations import to_qcschema as hessian_schema
from cuanto.methods import SEMIEMPIRICAL, Result
from cuanto.motion.frequencies import frequencies
from cuanto.system.text import quote

KINDS = {InputError: "input_error", MissingDependencyError: "input_error", CompilerError: "execution_error"}
"""QCEngine's names for our errors."""


def compute(atomic_input: Any, *, raise_error: bool = False, return_dict: bool | None = None) -> Any:
    """Compute a QCSchema AtomicInput, a dictionary or a model of QCElemental.

    Returns an AtomicResult or, if the calculation fails or does not converge, a FailedOperation; with `raise_error` it
    raises instead. The result is a dictionary if the input is one, and a model otherwise, unless `return_dict` says
    otherwise; it has the schema version (1 or 2) of the input. Keywords are those of `cuanto.energy`. Drivers are
    energy, gradient, hessian and properties.
    """
    given = plain(_dictionary(atomic_input))
    as_dict = isinstance(atomic_input, Mapping) if return_dict is None else return_dict
    second = is_version_2(given)
    try:
        answer = _answer(to_version_1(given, "the input"))
        answer = plain(to_version_2(answer, given)) if second else answer
    except Exception as error:
        if raise_error:
            raise
        answer = failed_operation(given, {"error_type": _kind(error), "error_message": _message(error)})
    if as_dict:
        return answer
    message = "QCSchema models need QCElemental: `pip install qcelemental`, or use return_dict=True"
    models = import_optional("qcelemental.models.v2" if second else "qcelemental.models", message)
    return (models.AtomicResult if answer["success"] else models.FailedOperation)(**answer)


def _answer(given: dict[str, Any]) -> dict[str, Any]:
    model = read_model(given, "the input")
    if model is None or model.method is None:
        raise InputError("the input has no model: give an AtomicInput with model = {'method': ..., 'basis': ...}")
    require_driver(model.driver)
    for key in ("protocols", "extras"):
        if not isinstance(given.get(key) or {}, Mapping):
            raise InputError(f"{key} must be an object, such as {{}}, not {quote(given[key])}")
    for key, name in (("basis", model.basis), ("auxbasis", model.keywords.get("auxbasis"))):
        if isinstance(name, str):
            confined_basis(name, key)
    if model.basis is None and model.method.lower() not in SEMIEMPIRICAL:
        raise InputError(f"{model.method} needs a basis: name one in the model, such as def2-svp")
    if model.driver == HESSIAN:
        return _vibrations(given, model)
    compute_it = gradient if model.gradient else energy
    with without_convergence_warnings():
        result = compute_it(read_molecule(given, "the input"), model.method, model.basis, **model.keywords)
    if not result.converged:
        raise ConvergenceError(f"not converged in {result.iterations} iterations, gradient {result.state.gradient:.2e}")
    return _complete_result(given, result, model.driver)


def _vibrations(given: dict[str, Any], model: Model) -> dict[str, Any]:
    assert model.method is not None
    found = frequencies(read_molecule(given, "the input"), model.method, model.basis, **model.keywords)
    return _as_answer(given, hessian_schema(found, _wants_orbitals(given)))


def _complete_result(given: dict[str, Any], result: Result, driver: str) -> dict[str, Any]:
    """Add the model, keywords, extras and protocols of the input to our AtomicResult."""
    return _as_answer(given, to_qcschema(result, _wants_orbitals(given), driver))


def _wants_orbitals(given: dict[str, Any]) -> bool:
    return (given.get("protocols") or {}).get("wavefunction", "none") not in (None, "none")


def _as_answer(given: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    schema["keywords"] = given.get("keywords") or {}
    schema["provenance"] = {"creator": "cuanto", "version": __version__, "routine": "cuanto.compute"}
    schema["model"] = given["model"]
    schema["extras"] = {**(given.get("extras") or {}), **schema["extras"]}
    for name in ("id", "protocols"):
        if given.get(name) is not None:
            schema[name] = given[name]
    return schema


def _kind(error: Exception) -> str:
    if isinstance(error, ConvergenceError):
        return "convergence_error"
    return next((kind for known, kind in KINDS.items() if isinstance(error, known)), "unknown_error")


def _message(error: Exception) -> str:
    """The message of one of our errors; the traceback of an internal error."""
    if isinstance(error, CuantoError):
        return str(error)
    return "".join(traceback.format_exception(error))


def _dictionary(atomic_input: Any) -> Any:
    if isinstance(atomic_input, Mapping):
        return dict(atomic_input)
    if (dump := getattr(atomic_input, "model_dump", None) or getattr(atomic_input, "dict", None)) is not None:
        return dump()
    raise InputError(f"compute takes an AtomicInput or a dictionary, not {type(atomic_input).__name__}")
