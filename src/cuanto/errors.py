"""Errors that cuanto raises on purpose.

Each message is one line: what was given, what is wrong, what would work.
"""


class CuantoError(Exception):
    """Base of every error that cuanto raises on purpose."""


class InputError(CuantoError):
    """The input is wrong. The command line prints the message and exits with status 2."""

    option: str | None = None
    """The option whose value is wrong, if it is one."""


class CompilerError(CuantoError):
    """A kernel could not be compiled, or there is no compiler."""


class MissingDependencyError(CuantoError):
    """An optional package is needed and not installed."""


def describe_error(error: BaseException) -> str:
    """An error in one line, for people."""
    text = " ".join(str(error).split())
    if isinstance(error, CuantoError):
        return text
    if isinstance(error, MemoryError):
        return f"not enough memory: {text or 'the machine refused the allocation'}"
    return f"internal error ({type(error).__name__}: {text})"
