"""Options that several commands share."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from functools import partial
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any

import typer

from cuanto.errors import InputError, require
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
"""Suffixes of output files, to recognise users who expect `-o FILE` as in other programs."""
MOLECULE_HELP = "XYZ, QCSchema (JSON) or Molden file, - for standard input, 'H 0 0 0; H 0 0 0.74' or smiles:CCO."
METHOD_HELP = (
    "hf, rhf, uhf, rohf; a functional (`cuanto functionals` lists them) such as pbe, b3lyp or pbe0-d4, unrestricted as "
    "ub3lyp; mndo, am1, pm3, pm6, rm1, unrestricted as upm6. \\[default: hf]"
)
BASIS_HELP = (
    'Basis Set Exchange name or basis file, or several by element, such as "I=cc-pvdz-pp,cc-pvdz". '
    "\\[default: def2-svp]"
)
OUT_HELP = (
    "Write a table of many molecules: .csv, .jsonl or .parquet. After an interruption the same command continues it."
)
PANEL, FILES, MANY = "Calculation", "Files", "Many molecules"
METAVARS = {"text": "NAME", "basis": "BASIS", "grid": "LEVEL", "size": "SIZE"}
"""Placeholder of a value in help texts, by kind of option."""
OPTION_HELP = (
    "Any further option, such as max_iterations=50, stability=follow or field=0,0,0.001, also as --max-iterations 50; "
    "may be repeated. (-o is not for output files.)"
)

Molecules = Annotated[list[str], typer.Argument(metavar="MOLECULE", help=MOLECULE_HELP, show_default=False)]
Method = Annotated[
    str | None, typer.Option("--method", "-m", metavar="NAME", help=METHOD_HELP, autocompletion=complete_method)
]
BasisName = Annotated[
    str | None, typer.Option("--basis", "-b", metavar="NAME", help=BASIS_HELP, autocompletion=complete_basis)
]
Charge = Annotated[int | None, typer.Option("--charge", help="Total charge. \\[default: that of the file, else 0]")]
Multiplicity = Annotated[
    int | None,
    typer.Option(
        "--mult", "--multiplicity", help="Spin multiplicity 2S+1. \\[default: that of the file, else the lowest]"
    ),
]


QUIET_HELP = "Print the energies only; warnings and hints go to standard error."
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help=QUIET_HELP)]


def file_flag(help: str) -> Any:
    """Annotation of an output file."""
    return Annotated[str | None, typer.Option(metavar="FILE", help=help, rich_help_panel=FILES)]


def table_flags(workers: str, scheduler: str) -> dict[str, Any]:
    """Annotations of the flags for many molecules; `workers` and `scheduler` are the help texts of those flags."""

    def flag(type_: Any, **more: Any) -> Any:
        return Annotated[type_ | None, typer.Option(rich_help_panel=MANY, **more)]

    return {
        "out": flag(Path, metavar="FILE", help=OUT_HELP),
        "workers": flag(int, min=0, help=workers),
        "scheduler": flag(str, metavar="ADDRESS", help=scheduler),
    }


TABLE = table_flags(
    "With --out: number of processes; 0: compute in this process. \\[default: one per core; 0 on a GPU and "
    "for few molecules]",
    "With --out: Dask scheduler, such as tcp://HOST:8786.",
)


def _log_to_stderr(wanted: bool) -> bool:
    if wanted:
        from cuanto.cli.lines import LogHandler

        logging.basicConfig(level=logging.INFO, format="%(message)s", handlers=[LogHandler()])
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
    """Type annotation of a command's parameter that sets an option; help texts leave out those without `flags`."""
    option = OPTIONS[name]
    if not option.flags:
        kind = bool if option.kind == "switch" else str
        return Annotated[kind | None, typer.Option(f"--{name.replace('_', '-')}", hidden=True)]
    enumeration: Any = StrEnum
    value: Any = {"integer": int, "number": float, "switch": bool}.get(option.kind, str)
    if option.choices:
        value = enumeration(name, {one.upper(): one for one in option.choices})
    complete, panel = (complete_basis, None) if option.kind == "basis" else (None, PANEL)
    metavar = None if option.choices else METAVARS.get(option.kind)
    more: dict[str, Any] = {"metavar": metavar, "autocompletion": complete, "rich_help_panel": panel}
    more["case_sensitive"] = not option.choices
    return Annotated[value | None, typer.Option(*option.flags, help=option.help, **more)]


Auxiliary = flag_type("auxbasis")


def with_options(
    command: Callable[..., None] | None = None,
    more: Mapping[str, Any] | None = None,
    last: Mapping[str, Any] | None = None,
) -> Callable[..., Any]:
    """Add the flags that commands share to a command: method and basis, all options, charge and multiplicity.

    The command receives them as keywords. Help texts list `--option` in place of options without `flags`, where the
    first of them would be. `more`: annotations of further flags by name, after the options; `last`: others at the end.
    """
    if command is None:
        return partial(with_options, more=more, last=last)
    names = dict.fromkeys(name if option.flag else "option" for name, option in OPTIONS.items())
    types = {"method": Method, "basis": BasisName}
    types |= {name: Setting if name == "option" else flag_type(name) for name in names}
    types |= {**(more or {}), "threads": Threads, "charge": Charge, "multiplicity": Multiplicity}
    first, *own, _ = signature(command, eval_str=True).parameters.values()
    types |= {name: flag_type(name) for name in OPTIONS if name not in {**types, **(last or {})}}
    shown = [first, *_parameters(types), *own, *_parameters(last or {}), *_parameters({"verbose": Verbose}, False)]
    command.__signature__ = Signature([one.replace(kind=Parameter.KEYWORD_ONLY) for one in shown])  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in shown}
    return command


def _parameters(types: Mapping[str, Any], default: object = None) -> list[Parameter]:
    return [Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=one) for name, one in types.items()]


def given(flags: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Values of those flags among `names` that the user gave, as plain data."""
    found = {name: flags[name] for name in names}
    return {name: getattr(value, "value", value) for name, value in found.items() if value is not None}


def options_given(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Checked keywords of `cuanto.energy` from the flags that `with_options` added."""
    from cuanto.interfaces.keywords import checked_keywords, option_value
    from cuanto.system.text import parse_size

    found = given(flags, flags.keys() & OPTIONS)
    for name, value in found.items():
        if OPTIONS[name].kind == "size":
            found[name] = parse_size(value, OPTIONS[name].flags[0])
        elif isinstance(value, str) and not OPTIONS[name].flags:
            found[name] = option_value(value)
    settings = parse_options(flags["option"] or [])
    for name in settings.keys() & found.keys():
        flag = (OPTIONS[name].flags or (f"--{name.replace('_', '-')}",))[0]
        require(settings[name] == found[name], f"{flag} and -o {name} have different values: leave out one of them")
    return checked_keywords(found | settings, "--option")


def examples(*lines: str) -> str:
    """Text of examples for the end of a help text."""
    return "\n".join(["[bold]Examples[/bold]", *(f"  {line}" for line in lines)])


def parse_options(given: Iterable[str]) -> dict[str, Any]:
    """Values of `-o NAME=VALUE` by name."""
    from cuanto.interfaces.keywords import option_value

    found: dict[str, Any] = {}
    for text in given:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not (name and equals and value):
            if name.lower().endswith(ENDINGS):
                files = "--json, --molden, --report (HTML), --checkpoint (HDF5) or --out (table of many molecules) FILE"
                raise InputError(f"--option {text}: -o sets NAME=VALUE; files are written with {files}")
            raise InputError(f"--option {text}: write NAME=VALUE, such as max_iterations=50")
        found[name.replace("-", "_")] = option_value(value)
    return found
