"""Options that several commands share."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from inspect import Parameter, Signature, signature
from typing import Annotated, Any

import typer

from cuanto.errors import InputError
from cuanto.options import OPTIONS

Device = StrEnum("Device", ["AUTO", "CPU", "CUDA"])
"""Where a calculation runs."""
Target = StrEnum("Target", ["CPU", "CUDA"])
"""Language of a kernel."""


def complete_method(incomplete: str) -> list[str]:
    """Complete the name of a method in the shell."""
    from cuanto.functionals import functional_names
    from cuanto.methods import METHODS, SEMIEMPIRICAL

    names = (*METHODS, *SEMIEMPIRICAL, *functional_names())
    return [name for name in names if name.startswith(incomplete.lower())]


def complete_basis(incomplete: str) -> list[str]:
    """Complete the name of a basis set in the shell."""
    try:
        from basis_set_exchange import get_all_basis_names
    except ImportError:
        return []
    names = (name.lower() for name in get_all_basis_names())
    return [name for name in names if name.startswith(incomplete.lower())]


ENDINGS = (
    ".json",
    ".html",
    ".htm",
    ".molden",
    ".h5",
    ".hdf5",
    ".csv",
    ".jsonl",
    ".parquet",
    ".txt",
    ".out",
    ".log",
)
"""Suffixes of output files; other programs use -o for them."""
MOLECULE_HELP = "XYZ, QCSchema (JSON) or Molden file, - for standard input, or smiles:CCO."
PANEL = "Calculation"
METAVARS = {"text": "NAME", "basis": "BASIS", "grid": "LEVEL", "size": "SIZE"}
"""Placeholder of a value in help texts, by kind of option."""
OPTION_HELP = (
    "Setting of the SCF, such as max_iterations=50, level_shift=0.3 or damping=0.5; may be repeated. For output "
    "files see below."
)

Charge = Annotated[int | None, typer.Option("--charge", help="Total charge. \\[default: that of the file, else 0]")]
Multiplicity = Annotated[
    int | None,
    typer.Option(
        "--mult", "--multiplicity", help="Spin multiplicity 2S+1. \\[default: that of the file, else the lowest]"
    ),
]


def _log_to_stderr(wanted: bool) -> bool:
    if wanted:
        logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    return wanted


Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", callback=_log_to_stderr, help="Report progress on standard error.")
]
"""Accepted by every command and by `cuanto` itself, so that it may come before or after the name of the command."""


def _set_threads(count: int | None) -> int | None:
    if count is not None:
        os.environ["CUANTO_THREADS"] = str(count)  # read when the CPU backend starts its threads
    return count


Threads = Annotated[
    int | None,
    typer.Option(
        "--threads",
        min=1,
        callback=_set_threads,
        help="Number of CPU threads. \\[default: CUANTO_THREADS, else one per core]",
        rich_help_panel=PANEL,
    ),
]
Setting = Annotated[
    list[str] | None,
    typer.Option("--option", "-o", metavar="NAME=VALUE", help=OPTION_HELP, rich_help_panel=PANEL),
]


def flag_type(name: str) -> Any:
    """Annotation of the parameter of a command for an option."""
    option = OPTIONS[name]
    enumeration: Any = StrEnum
    value: Any = {"integer": int, "number": float, "switch": bool}.get(option.kind, str)
    if option.choices:
        value = enumeration(name, {one.upper(): one for one in option.choices})
    complete, panel = (complete_basis, None) if option.kind == "basis" else (None, PANEL)
    metavar = None if option.choices else METAVARS.get(option.kind)
    more: dict[str, Any] = {"metavar": metavar, "autocompletion": complete, "rich_help_panel": panel}
    return Annotated[value | None, typer.Option(*option.flags, help=option.help, **more)]


Auxiliary = flag_type("auxbasis")


def with_options(command: Callable[..., None], more: Mapping[str, Any] | None = None) -> Callable[..., None]:
    """Add the flags of all options and `--threads` to a command, before `--charge`; it receives them as keywords.

    Options without a flag share `--option`, which takes the place of the first of them. `more`: annotations of further
    flags by name.
    """
    names = dict.fromkeys(name if option.flag else "option" for name, option in OPTIONS.items())
    types = {name: Setting if name == "option" else flag_type(name) for name in names} | dict(more or {})
    types["threads"] = Threads
    flags = [Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=kind) for name, kind in types.items()]
    *own, _ = (one.replace(kind=flags[0].kind) for one in signature(command, eval_str=True).parameters.values())
    position = [one.name for one in own].index("charge")
    shown = [*own[:position], *flags, *own[position:]]
    command.__signature__ = Signature(shown)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in shown}
    return command


def options_given(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Checked keywords of `cuanto.energy` from the flags that `with_options` added."""
    from cuanto.interfaces.keywords import checked_keywords, parse_size

    found: dict[str, Any] = {}
    for name in flags.keys() & OPTIONS:
        value, option = flags[name], OPTIONS[name]
        if value is not None:
            found[name] = (
                parse_size(value, option.flags[0]) if option.kind == "size" else getattr(value, "value", value)
            )
    return checked_keywords(found | parse_options(flags["option"] or []), "--option")


def examples(*lines: str) -> str:
    """Examples at the end of a help text."""
    return "\n".join(["[bold]Examples[/bold]", *(f"  {line}" for line in lines)])


def parse_options(given: Iterable[str]) -> dict[str, Any]:
    """Values of `-o NAME=VALUE` by name."""
    from cuanto.interfaces.keywords import option_value

    found: dict[str, Any] = {}
    for text in given:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not (name and equals and value):
            if name.lower().endswith(ENDINGS):
                files = "--json, --molden, --report (HTML), --checkpoint (HDF5) or --out (table of many) FILE"
                raise InputError(f"--option {text}: -o sets NAME=VALUE; files are written with {files}")
            raise InputError(f"--option {text}: write NAME=VALUE, such as max_iterations=50")
        found[name.replace("-", "_")] = option_value(value)
    return found
