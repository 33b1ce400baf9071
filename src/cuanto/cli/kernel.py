"""``cuanto kernel``: the generated source of a kernel on standard output, its cost on standard error."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from cuanto.cli.arguments import Target, Verbose, examples
from cuanto.errors import InputError

EXAMPLES = examples(
    "cuanto kernel 3c 1 0 1 --algorithm hgp --target cuda",
    "cuanto kernel overlap d p > overlap.cpp",
)
COULOMB = ("nuclear", "2c", "3c", "4c")


Algorithm = StrEnum("Algorithm", ["AUTO", "HGP", "MD"])


def kernel(
    integral: Annotated[str, typer.Argument(help="overlap, kinetic, nuclear, dipole, quadrupole, 2c, 3c or 4c.")],
    momenta: Annotated[
        list[str],
        typer.Argument(metavar="L...", help="Angular momenta, the auxiliary one last: 1 0 1, or p s p."),
    ],
    algorithm: Annotated[Algorithm, typer.Option(help="Recurrences of Coulomb integrals.")] = Algorithm.AUTO,
    target: Annotated[Target, typer.Option(help="Language of the source.")] = Target.CPU,
    schedule: Annotated[
        str,
        typer.Option(
            help="How work is divided among threads or lanes. cpu: lane-per-quartet, table; cuda: quartet-per-thread, "
            "group-per-quartet, block-per-integral, block-per-quartet."
        ),
    ] = "auto",
    verbose: Verbose = False,
) -> None:
    """Print the generated source of a kernel, and its cost."""
    from cuanto.kernels.describe import describe

    integral = integral.lower()
    require_choice(integral, algorithm)
    description = describe(
        integral,
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


def require_choice(integral: str, algorithm: Algorithm) -> None:
    """Refuse an algorithm for integrals that have only one."""
    from cuanto.kernels.describe import SHELL_COUNT

    if algorithm is not Algorithm.AUTO and integral in SHELL_COUNT and integral not in COULOMB:
        raise InputError(
            f"--algorithm {algorithm.value} applies to Coulomb integrals ({', '.join(COULOMB)}) only: "
            f"{integral} has one set of recurrences, leave the option out"
        )


def angular_momentum(word: str) -> int:
    """``2`` and ``d`` both mean l = 2."""
    from cuanto.kernels.spec import MAX_L

    letters = "spdfghiklmno"[: MAX_L + 1]
    known = {name: l for l, letter in enumerate(letters) for name in (letter, str(l))}
    if word.lower() in known:
        return known[word.lower()]
    raise InputError(f"{word!r} is not an angular momentum; give a number from 0 to {MAX_L} or a letter of {letters}")
