"""Errors that cuanto raises on purpose.

Each message is one line: what was given, what is wrong, what would work.
"""


class CuantoError(Exception):
    """Base of every error that cuanto raises on purpose."""


class InputError(CuantoError):
    """The input makes no sense. The command line prints the message and leaves with status 2."""

    option: str | None = None
    """The one whose value is wrong, where it is one."""


def require(condition: object, message: str) -> None:
    """Raise an `InputError` unless the condition holds."""
    if not condition:
        raise InputError(message)


class CompilerError(CuantoError):
    """A kernel could not be compiled, or there is no compiler."""


class MissingDependencyError(CuantoError):
    """An optional package is needed and not installed."""
