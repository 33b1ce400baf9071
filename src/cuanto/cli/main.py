"""The ``cuanto`` command: the list of commands, and how errors are printed."""

from __future__ import annotations

import errno
import io
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated, NoReturn

import typer

from cuanto import __version__
from cuanto.cli import (
    atom,
    basis_search,
    cache,
    doctor,
    energy,
    frequencies,
    functionals,
    integrals,
    kernel,
    md,
    optimize,
    report,
    selftest,
)
from cuanto.cli import run as job
from cuanto.cli.arguments import Verbose, examples
from cuanto.cli.calculate import BAD_INPUT, NOT_CONVERGED
from cuanto.cli.lines import print_error, printed_warnings, separate_command
from cuanto.cli.usage import usage_line
from cuanto.errors import CompilerError, ConvergenceError, CuantoError, describe_error
from cuanto.limits import require_memory

INTERNAL_ERROR = 70  # EX_SOFTWARE of sysexits.h
INTERRUPTED = 130  # 128 + SIGINT, as in shells
NO_READER = 141  # 128 + SIGPIPE: `cuanto ... | head`

MACHINE_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO)
"""Errors of the machine, such as a full disk."""

CALCULATIONS, KERNELS, MACHINE = "Calculations", "Kernels and integrals", "This machine"
EXAMPLES = examples(
    "cuanto energy water.xyz -m b3lyp -b def2-svp",
    "cuanto energy smiles:CCO -m pm6",
    "cuanto atom --element Rn",
    "cuanto COMMAND --help    explains a command",
)
ATOM = examples(
    "cuanto atom --element Rn --json rn.json",
    "cuanto atom --element Cr --config '\\[Ar] 3d5 4s1' --nucleus point",
    "cuanto atom ne.inp --optimise --log ne.log",
)
SEARCH = examples("cuanto basis-search --elements He-Ne --json sets.json")
FUNCTIONALS = examples("cuanto functionals", "cuanto functionals b3lyp", "cuanto functionals pbe --source cuda")

app = typer.Typer(
    name="cuanto",
    help="Hartree-Fock, density functionals, semiempirical methods and relativistic atoms, on a laptop or a GPU.",
    epilog=EXAMPLES,
    invoke_without_command=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(name="energy", epilog=energy.EXAMPLES, rich_help_panel=CALCULATIONS)(energy.energy)
app.command(name="gradient", epilog=energy.GRADIENT_EXAMPLES, rich_help_panel=CALCULATIONS)(energy.gradient)
app.command(name="optimize", epilog=optimize.EXAMPLES, rich_help_panel=CALCULATIONS)(optimize.optimize)
for alias in ("optimise", "opt"):
    shown = optimize.EXAMPLES.replace("cuanto optimize", f"cuanto {alias}")
    app.command(name=alias, epilog=shown, hidden=True)(optimize.optimize)
app.command(name="frequencies", epilog=frequencies.EXAMPLES, rich_help_panel=CALCULATIONS)(frequencies.frequencies)
shown = frequencies.EXAMPLES.replace("cuanto frequencies", "cuanto freq")
app.command(name="freq", epilog=shown, hidden=True)(frequencies.frequencies)
app.command(name="md", epilog=md.EXAMPLES, rich_help_panel=CALCULATIONS)(md.md)
app.command(name="ipi", epilog=md.IPI_EXAMPLES, rich_help_panel=CALCULATIONS)(md.ipi)
app.command(name="run", epilog=job.EXAMPLES, rich_help_panel=CALCULATIONS)(job.run)
app.command(name="atom", epilog=ATOM, rich_help_panel=CALCULATIONS)(atom.atom)
app.command(name="basis-search", epilog=SEARCH, rich_help_panel=CALCULATIONS)(basis_search.basis_search)
app.command(name="report", epilog=report.EXAMPLES, rich_help_panel=CALCULATIONS)(report.report)
app.command(name="cube", epilog=report.CUBE_EXAMPLES, rich_help_panel=CALCULATIONS)(report.cube)
app.command(name="functionals", epilog=FUNCTIONALS, rich_help_panel=KERNELS)(functionals.functionals)
app.command(name="integrals", epilog=integrals.EXAMPLES, rich_help_panel=KERNELS)(integrals.integrals)
app.command(name="kernel", epilog=kernel.EXAMPLES, rich_help_panel=KERNELS)(kernel.kernel)
app.command(name="doctor", epilog=doctor.EXAMPLES, rich_help_panel=MACHINE)(doctor.doctor)
app.command(name="selftest", epilog=selftest.EXAMPLES, rich_help_panel=MACHINE)(selftest.selftest)
app.command(name="cache", epilog=cache.EXAMPLES, rich_help_panel=MACHINE)(cache.cache)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"cuanto {__version__}")
        raise typer.Exit()


@app.callback()
def options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    verbose: Verbose = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@separate_command()
def run(arguments: Sequence[str] | None = None) -> NoReturn:
    """Entry point. Errors become one line and an exit status; CUANTO_DEBUG=1 shows the traceback as well."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal may lack some letters of molecule names
    try:
        require_memory()
        with printed_warnings():
            status = app(args=arguments, prog_name="cuanto", standalone_mode=False)
        sys.stdout.flush()
    except (KeyboardInterrupt, typer.Abort):
        status = INTERRUPTED
    except BrokenPipeError:
        status = _leave_pipe()
    except SystemExit as leaving:  # rich and click raise it for a broken pipe
        if not isinstance(leaving.__context__, BrokenPipeError):
            raise
        status = _leave_pipe()
    except Exception as error:
        debug = os.environ.get("CUANTO_DEBUG", "0") not in ("", "0")
        if debug and usage_line(error) is None:
            traceback.print_exc()
        line, status = explain(error)
        print_error(line)
    if status == INTERRUPTED:
        print_error("interrupted")
    sys.exit(status)


def _leave_pipe() -> int:
    """Discard buffered output after the reader has closed the pipe."""
    out = sys.__stdout__
    if out is not None and out is sys.stdout:
        os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())
    return NO_READER


def explain(error: Exception) -> tuple[str, int]:
    """One line that explains an error (a compiler's log keeps its lines), and the exit status."""
    if (usage := usage_line(error)) is not None:
        return usage, BAD_INPUT
    if isinstance(error, CompilerError):
        return str(error), BAD_INPUT
    text = describe_error(error)
    if isinstance(error, ConvergenceError):
        return text, NOT_CONVERGED
    if isinstance(error, CuantoError):
        return text, BAD_INPUT
    if isinstance(error, MemoryError):
        return f"{text}; a smaller basis, --max-memory or --backend cpu may help", BAD_INPUT
    if isinstance(error, OSError) and error.errno in MACHINE_ERRORS:
        return f"cannot write {error.filename or 'the output'}: {error.strerror}", BAD_INPUT
    return f"{text}; please report it with the output of CUANTO_DEBUG=1", INTERNAL_ERROR
