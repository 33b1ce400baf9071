"""Printing of lines of text: broken between words on a terminal, and never broken in a file or pipe."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from textwrap import wrap
from typing import TextIO

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from cuanto.errors import InputWarning

INDENT = "   "
"""Begins the continuation of a line."""


def print_text(console: Console, text: str, style: str = "") -> None:
    """Print lines; one that is longer than the terminal is wide continues on the next, broken between words."""
    for line in text.split("\n"):
        rows = [line]
        if console.is_terminal and cell_len(line) > console.width:
            found = wrap(line, console.width, subsequent_indent=INDENT, break_long_words=False, break_on_hyphens=False)
            rows = found or rows
        for row in rows:
            console.print(Text(row, style), soft_wrap=True)


@contextmanager
def printed_warnings() -> Iterator[None]:
    """Print warnings about the input to standard error, in one line each and once, with the name of the program."""
    with warnings.catch_warnings():
        show = warnings.showwarning

        def show_line(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            if issubclass(category, InputWarning):
                print_text(Console(stderr=True, highlight=False), f"cuanto: {message}")
            else:
                show(message, category, filename, lineno, file, line)

        warnings.filterwarnings("default", category=InputWarning)
        warnings.showwarning = show_line
        yield


def print_error(text: str) -> None:
    """Print a message to standard error, in red, with the name of the program."""
    print_text(Console(stderr=True, highlight=False), f"cuanto: {text}", "bold red")
