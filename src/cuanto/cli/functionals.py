"""``cuanto functionals``: list of the density functionals with citations, or details of one of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from cuanto.cli.arguments import Target, Verbose
from cuanto.cli.lines import print_text
from cuanto.errors import InputError

if TYPE_CHECKING:
    from cuanto.functionals import Functional


def functionals(
    name: Annotated[str | None, typer.Argument(help="Show only this functional, with its parts.")] = None,
    source: Annotated[Target | None, typer.Option(help="Print its kernel in this language instead.")] = None,
    spins: Annotated[
        int, typer.Option(min=1, max=2, help="With --source: kernel for closed shells (1) or two spins (2).")
    ] = 1,
    verbose: Verbose = False,
) -> None:
    """List the density functionals with their citations."""
    from cuanto.functionals import functional_names, get_functional

    if name is None and source is not None:
        raise InputError(
            "--source prints one kernel: name a functional, such as `cuanto functionals pbe --source cuda`"
        )
    console = Console(highlight=False)
    if name is not None:
        functional = get_functional(name)
        if source is not None:
            print(functional.source(source.value, spins).text)
            return
        print_text(console, "\n".join([heading(functional), *citations(functional), *details(functional)]))
        return
    for known in functional_names():
        functional = get_functional(known)
        print_text(console, "\n".join([heading(functional), *citations(functional)]))
    print_text(console, "Append -d3bj or -d4 for dispersion. Combine parts by their Libxc labels: gga_x_pbe+gga_c_pbe.")


def heading(functional: Functional) -> str:
    """Name, family, exact exchange and note."""
    kind = {"lda": "LDA", "gga": "GGA", "mgga": "meta-GGA"}[functional.family]
    words = [kind]
    if separation := functional.range_separation:
        near, far = 100 * separation.alpha, 100 * (separation.alpha + separation.beta)
        words = [f"range-separated {kind}", f"exact exchange {near:g} % at short range, {far:g} % at long range"]
        words.append(f"omega {separation.omega:g}")
    elif functional.exact_exchange:
        words = [f"hybrid {kind}", f"exact exchange {100 * functional.exact_exchange:g} %"]
    if functional.note:
        words.append(functional.note)
    return f"{functional.name:<11}{'; '.join(words)}"


def citations(functional: Functional) -> Iterator[str]:
    """One line for each citation."""
    for citation in functional.citations:
        yield f"    {citation}"


def details(functional: Functional) -> Iterator[str]:
    """Other names, parts, and the size of the kernels."""
    from cuanto.functionals.registry import aliases
    from cuanto.kernels.cost import stage_cost

    if others := aliases(functional.name):
        yield f"  also called: {', '.join(others)}"
    for part in functional.parts:
        omega = "" if part.omega is None else f" (omega {part.omega:g})"
        yield f"  {part.factor:6.2f}  {part.label}{omega}"
    for spins, words in ((1, "closed shells"), (2, "two spins")):
        cost = stage_cost(functional.expressions(spins))
        yield f"  {words}: {cost.operations} operations, {cost.calls} functions and divisions per point"
