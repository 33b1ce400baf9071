"""Errors of cuanto.

Each message is one line: what was given, what is wrong, what would work.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

REMARKS = ("hint", "WARNING")
"""First words of notes in a result that ask for attention."""


class CuantoError(Exception):
    """Base class of all errors of cuanto."""


class InputError(CuantoError):
    """The input is wrong. The command line prints the message and exits with status 2."""

    option: str | None = None
    """The option whose value is wrong, if it is one."""


def require(condition: object, message: str) -> None:
    """Raise an `InputError` unless the condition holds."""
    if not condition:
        raise InputError(message)


class ConvergenceError(CuantoError):
    """An SCF did not converge, but a converged one is needed."""


class ConvergenceWarning(UserWarning):
    """The SCF of a result did not converge; its `converged` is False."""


class InputWarning(UserWarning):
    """The input may mean something else than what was read. The command line prints the message."""


@contextmanager
def without_convergence_warnings() -> Iterator[None]:
    """Suppress the warning about a result that did not converge; the caller reports it in another way."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


class CompilerError(CuantoError):
    """A kernel could not be compiled, or there is no compiler."""


class MissingDependencyError(CuantoError):
    """An optional package is needed and not installed."""


def import_optional(name: str, message: str) -> Any:
    """Import a module of an optional package; the message says how to install it."""
    try:
        return import_module(name)
    except ImportError:
        raise MissingDependencyError(message) from None


def describe_error(error: BaseException) -> str:
    """Describe an error in one line for the user."""
    text = " ".join(str(error).split())
    if isinstance(error, CuantoError):
        return text
    if isinstance(error, MemoryError):
        return f"not enough memory: {text or 'the machine refused the allocation'}"
    return f"internal error ({type(error).__name__}: {text})"
