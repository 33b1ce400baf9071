"""``cuanto kernel``: the generated source of one class on standard output, its cost on standard error."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

SHELL_LETTERS = "spdfghiklm"


class Algorithm(StrEnum):
    AUTO = "auto"
    HGP = "hgp"
    MD = "md"


class Target(StrEnum):
    CPU = "cpu"
    CUDA = "cuda"


def kernel(
    integral: Annotated[str, typer.Argument(help="overlap, kinetic, nuclear, dipole, 2c or 3c.")],
    momenta: Annotated[
        list[str],
        typer.Argument(metavar="L...", help="Angular momenta, the auxiliary one last: 1 0 1, or p s p."),
    ],
    algorithm: Annotated[Algorithm, typer.Option(help="Recurrences.")] = Algorithm.AUTO,
    target: Annotated[Target, typer.Option(help="Language of the source.")] = Target.CPU,
    schedule: Annotated[str, typer.Option(help="Which thread or lane does what.")] = "auto",
) -> None:
    """Print the generated source of one kernel, and what it costs."""
    from rich.console import Console
    from rich.table import Table

    from cuanto.kernels.describe import describe

    description = describe(
        integral.lower(),
        tuple(angular_momentum(word) for word in momenta),
        algorithm.value,
        target.value,
        schedule,
    )
    table = Table(title=f"{integral} {' '.join(momenta)}", show_header=False)
    for name, value in description.summary():
        table.add_row(name, value)
    Console(stderr=True).print(table)
    print(description.text)


def angular_momentum(word: str) -> int:
    """``2`` and ``d`` both mean l = 2."""
    from cuanto.errors import InputError

    if word.isascii() and word.isdigit():
        return int(word)
    if len(word) == 1 and word.lower() in SHELL_LETTERS:
        return SHELL_LETTERS.index(word.lower())
    raise InputError(f"{word!r} is no angular momentum; give a number such as 2 or a letter of {SHELL_LETTERS}")
