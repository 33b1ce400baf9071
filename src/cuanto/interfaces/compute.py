"""QCEngine's way to ask: an AtomicInput in, an AtomicResult or a FailedOperation out."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from cuanto import __version__
from cuanto.api import energy
from cuanto.errors import CompilerError, CuantoError, InputError, MissingDependencyError
from cuanto.interfaces.qcschema import plain, read_molecule, require_driver, to_qcschema
from cuanto.interfaces.sources import read_model
from cuanto.interfaces.versions import as_first, as_second, failed_second, is_second
from cuanto.methods import SEMIEMPIRICAL, Result

KINDS = {InputError: "input_error", MissingDependencyError: "input_error", CompilerError: "execution_error"}
"""Of errors, by the names of QCEngine."""


def compute(atomic_input: Any, *, raise_error: bool = False, return_dict: bool | None = None) -> Any:
    """Carry out a QCSchema AtomicInput: a dictionary, or a model of QCElemental.

    Gives an AtomicResult or, where it cannot be done or did not converge, a FailedOperation; `raise_error` raises
    instead. A dictionary gives a dictionary and a model a model, unless `return_dict` says otherwise; the schema has
    the version of the input, 1 or 2. Keywords are those of `cuanto.energy`. Gradients: semiempirical methods.
    """
    given = plain(_dictionary(atomic_input))
    as_dict = isinstance(atomic_input, Mapping) if return_dict is None else return_dict
    second = is_second(given)
    try:
        answer = _answer(as_first(given, "the input"))
        answer = plain(as_second(answer, given)) if second else answer
    except Exception as error:
        if raise_error:
            raise
        answer = _failed(given, second, _kind(error), _message(error))
    if as_dict:
        return answer
    models = _models("qcelemental.models.v2" if second else "qcelemental.models")
    return (models.AtomicResult if answer["success"] else models.FailedOperation)(**answer)


def _answer(given: dict[str, Any]) -> dict[str, Any]:
    asked = read_model(given, "the input")
    if asked is None or asked.method is None:
        raise InputError("the input has no model: give an AtomicInput with model = {'method': ..., 'basis': ...}")
    require_driver(asked.driver, asked.method)
    if asked.basis is None and asked.method.lower() not in SEMIEMPIRICAL:
        raise InputError(f"{asked.method} needs a basis: name one in the model, such as def2-svp")
    result = energy(read_molecule(given, "the input"), asked.method, asked.basis, **asked.keywords)
    if not result.converged:
        raise ConvergenceError(f"not converged in {result.iterations} iterations, gradient {result.state.gradient:.2e}")
    return _completed(given, result, asked.driver)


class ConvergenceError(CuantoError):
    """The SCF ended before it converged."""


def _completed(given: dict[str, Any], result: Result, driver: str) -> dict[str, Any]:
    """Ours, with what the input had beside the calculation."""
    protocol = (given.get("protocols") or {}).get("wavefunction", "none")
    schema = to_qcschema(result, protocol not in (None, "none"), driver)
    schema["keywords"] = given.get("keywords") or {}
    schema["provenance"] = {"creator": "cuanto", "version": __version__, "routine": "cuanto.compute"}
    schema["model"] = given["model"]
    schema["extras"] = {**(given.get("extras") or {}), **schema["extras"]}
    for name in ("id", "protocols"):
        if given.get(name) is not None:
            schema[name] = given[name]
    return schema


def _failed(given: Any, second: bool, kind: str, message: str) -> dict[str, Any]:
    error, extras = {"error_type": kind, "error_message": message}, {"cuanto": {"version": __version__}}
    if second:
        return failed_second(given, error, extras)
    about = given.get("id") if isinstance(given, Mapping) else None
    return {"id": about, "input_data": given, "success": False, "error": error, "extras": extras}


def _kind(error: Exception) -> str:
    if isinstance(error, ConvergenceError):
        return "convergence_error"
    return next((kind for known, kind in KINDS.items() if isinstance(error, known)), "unknown_error")


def _message(error: Exception) -> str:
    """One line of ours; the traceback of what should not have happened."""
    if isinstance(error, CuantoError):
        return str(error)
    return "".join(traceback.format_exception(error))


def _dictionary(atomic_input: Any) -> Any:
    if isinstance(atomic_input, Mapping):
        return dict(atomic_input)
    if (dump := getattr(atomic_input, "model_dump", None) or getattr(atomic_input, "dict", None)) is not None:
        return dump()
    raise InputError(f"compute takes an AtomicInput or a dictionary, {type(atomic_input).__name__} was given")


def _models(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        message = "models of QCSchema need QCElemental: `pip install qcelemental`, or return_dict=True"
        raise MissingDependencyError(message) from None
