"""``cuanto cache``: folder, number and size of compiled kernels; ``--clear`` removes them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from cuanto.cli.arguments import Verbose, examples

EXAMPLES = examples("cuanto cache", "cuanto cache --clear")


def cache(
    clear: Annotated[bool, typer.Option("--clear", help="Remove every compiled kernel.")] = False,
    verbose: Verbose = False,
) -> None:
    """Show or clear the folder of compiled kernels."""
    from cuanto.backends import cache as kernels

    if clear:
        count, size = kernels.clear()
        print(f"{kernels.cache_folder()}: removed {count} files, {readable_size(size)}")
    else:
        print(f"{kernels.cache_folder()}: {contents(kernels.files())}")


def contents(files: Iterable[Path]) -> str:
    """Number and total size of files; one that another process has just removed does not count."""
    sizes = []
    for path in files:
        try:
            sizes.append(path.stat().st_size)
        except FileNotFoundError:
            continue
    return f"{len(sizes)} files, {readable_size(sum(sizes))}"


def readable_size(size: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"
