"""The ``cuanto`` command: the list of commands, and how errors reach a person."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from cuanto import __version__
from cuanto.cli import cache, doctor, integrals, kernel
from cuanto.errors import CompilerError, CuantoError

BAD_INPUT = 2
INTERNAL_ERROR = 70  # EX_SOFTWARE of sysexits.h

app = typer.Typer(
    name="cuanto",
    help="Electronic structure with generated kernels: the same calculation on a laptop and on a GPU.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(name="doctor")(doctor.doctor)
app.command(name="integrals")(integrals.integrals)
app.command(name="kernel")(kernel.kernel)
app.command(name="cache")(cache.cache)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"cuanto {__version__}")
        raise typer.Exit()


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Say what happens while it happens.")] = False,
) -> None:
    if verbose:
        logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)


def run(arguments: Sequence[str] | None = None) -> None:
    """Entry point. Errors become one line and an exit status; CUANTO_DEBUG=1 shows the traceback instead."""
    try:
        app(args=arguments, prog_name="cuanto")
    except Exception as error:
        if os.environ.get("CUANTO_DEBUG", "0") not in ("", "0"):
            raise
        line, status = explain(error)
        _print_error(line)
        sys.exit(status)


def explain(error: Exception) -> tuple[str, int]:
    """One line for a person (a compiler's log keeps its lines), and the exit status."""
    if isinstance(error, CompilerError):
        return str(error), BAD_INPUT
    text = " ".join(str(error).split())
    if isinstance(error, CuantoError):
        return text, BAD_INPUT
    if isinstance(error, MemoryError):
        return f"not enough memory: {text or 'the machine refused the allocation'}", BAD_INPUT
    kind = type(error).__name__
    return (
        f"internal error ({kind}: {text}); please report it with the output of CUANTO_DEBUG=1",
        INTERNAL_ERROR,
    )


def _print_error(line: str) -> None:
    from rich.console import Console
    from rich.text import Text

    Console(stderr=True, soft_wrap=True, highlight=False).print(Text(f"cuanto: {line}", style="bold red"))
