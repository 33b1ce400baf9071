"""Options that several commands share, so that a flag means the same everywhere."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Any

import typer


class Fitting(StrEnum):
    """What is fitted."""

    AUTO = "auto"
    NONE = "none"
    J = "j"
    JK = "jk"


class Device(StrEnum):
    """Where it runs."""

    AUTO = "auto"
    CPU = "cpu"
    CUDA = "cuda"


class Precision(StrEnum):
    """Of direct J and K, and of the grid."""

    DOUBLE = "double"
    MIXED = "mixed"
    SINGLE = "single"


def complete_method(incomplete: str) -> list[str]:
    """Names of methods for the shell."""
    from cuanto.functionals import functional_names
    from cuanto.methods import METHODS, SEMIEMPIRICAL

    names = (*METHODS, *SEMIEMPIRICAL, *functional_names())
    return [name for name in names if name.startswith(incomplete.lower())]


def complete_basis(incomplete: str) -> list[str]:
    """Names of basis sets for the shell."""
    try:
        from basis_set_exchange import get_all_basis_names
    except ImportError:
        return []
    names = (name.lower() for name in get_all_basis_names())
    return [name for name in names if name.startswith(incomplete.lower())]


WRITTEN = (".json", ".html", ".htm", ".molden", ".h5", ".hdf5", ".csv", ".jsonl", ".parquet", ".txt", ".out", ".log")
"""Ends of names of files: other programs write them with -o."""
MOLECULE_HELP = "XYZ, QCSchema (JSON) or Molden file, - for standard input, or smiles:CCO."
AUX_HELP = "Fitting basis; chosen from the orbital basis when left out."

Charge = Annotated[int | None, typer.Option("--charge", help="Total charge; else the file's, else 0.")]
Multiplicity = Annotated[
    int | None, typer.Option("--mult", "--multiplicity", help="Spin multiplicity 2S+1; else the file's, else lowest.")
]
Auxiliary = Annotated[
    str | None, typer.Option("--auxbasis", "--aux", help=AUX_HELP, autocompletion=complete_basis, metavar="BASIS")
]


def examples(*lines: str) -> str:
    """The end of a help text."""
    return "\n".join(["[bold]Examples[/bold]", *(f"  {line}" for line in lines)])


def parse_options(given: Iterable[str]) -> dict[str, Any]:
    """Options of the SCF by name; numbers and true/false are recognised, the rest are words."""
    from cuanto.errors import InputError
    from cuanto.interfaces.keywords import option_value

    found: dict[str, Any] = {}
    for text in given:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not (name and equals and value):
            if name.lower().endswith(WRITTEN):
                files = "--json, --molden, --report (HTML), --checkpoint (HDF5) or --out (table of many) FILE"
                raise InputError(f"--option {text}: -o sets NAME=VALUE; files are written with {files}")
            raise InputError(f"--option {text}: write NAME=VALUE, such as max_iterations=50")
        found[name.replace("-", "_")] = option_value(value)
    return found
