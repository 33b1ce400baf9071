"""Printing of lines of text: broken between words on a terminal, and never broken in a file or pipe.

Messages name options as in Python and in job files, `relativity='x2c'`; on the command line they are printed as flags.
"""

from __future__ import annotations

import logging
import re
import shlex
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from textwrap import wrap
from typing import TextIO

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from cuanto.errors import REMARKS, InputWarning
from cuanto.options import OPTIONS

INDENT = "   "
"""Begins the continuation of a line, after the spaces with which the line begins."""
FLAGS = {
    "method": "-m",
    "basis": "-b",
    "charge": "--charge",
    "multiplicity": "--multiplicity",
    "workers": "--workers",
    "max_steps": "--max-steps",
    "follow_imaginary": "--follow-imaginary",
}
"""Flags of arguments that are not options of a calculation."""
in_a_job: ContextVar[bool] = ContextVar("in_a_job", default=False)
"""Whether options come from a job file, where they are written as in the messages."""
_VALUE = r"'[^']*'|\[.*\]|[\w+-]+(?:\.\w+)*"
_QUOTED = r"(?<![\w=])(?:'[^']*'|\"[^\"]*\")(?!\w)"
"""Text that was given, or an example of it; an apostrophe inside a word begins none."""
_OPTION = re.compile(rf"{_QUOTED}|(?<![\w'-])(?<!-o )(?<!--option )({'|'.join((*FLAGS, *OPTIONS))})=({_VALUE})")


@contextmanager
def separate_command() -> Iterator[None]:
    """Context of a command: messages name options as flags, unless the command itself reads a job file."""
    token = in_a_job.set(False)
    try:
        yield
    finally:
        in_a_job.reset(token)


def as_flags(text: str) -> str:
    """The text with options as flags: `--relativity x2c` for relativity='x2c', `--max-memory 4GB` for max_memory=4e9;
    quoted text is unchanged, and all text if a job file is read."""

    def flag(found: re.Match[str]) -> str:
        if found[1] is None:
            return found[0]
        name, value = found[1], found[2].strip("'")
        if name in OPTIONS and OPTIONS[name].kind == "size" and value.endswith("e9"):
            value = f"{value.removesuffix('e9')}GB"
        known = FLAGS.get(name) or next(iter(OPTIONS[name].flags), None)
        if known is None:
            return f"-o {shlex.quote(f'{name}={value}')}"
        return known if value == "True" else f"{known} {shlex.quote(value)}"

    return text if in_a_job.get() else _OPTION.sub(flag, text)


def print_text(console: Console, text: str, style: str = "") -> None:
    """Print lines; one that is longer than the terminal is wide continues on the next, broken between words."""
    for row in _rows(console, text):
        console.print(Text(row, style), soft_wrap=True)


def _rows(console: Console, text: str) -> Iterator[str]:
    """Lines of a text that fit on a terminal; other outputs have no width."""
    for line in text.split("\n"):
        rows = [line]
        if console.is_terminal and cell_len(line) > console.width:
            indent = line[: len(line) - len(line.lstrip())] + INDENT
            found = wrap(line, console.width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
            rows = found or rows
        yield from rows


class LogHandler(logging.Handler):
    """Prints the log to standard error: on a terminal above a live table or a progress bar, if there is one, which
    replaces `sys.stderr` while it is shown."""

    def __init__(self) -> None:
        super().__init__()
        self._stream, self._console = sys.stderr, Console(stderr=True, highlight=False)

    def emit(self, record: logging.LogRecord) -> None:
        """Print one message."""
        try:
            for row in _rows(self._console, self.format(record)):
                print(row, file=sys.stderr if self._console.is_terminal else self._stream)
        except Exception:  # as in every handler: a message must not end a calculation
            self.handleError(record)


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
    print_text(Console(stderr=True, highlight=False), f"cuanto: {as_flags(text)}", "bold red")


def print_notes(console: Console, notes: Iterable[str]) -> None:
    """Print notes below a result."""
    for note in notes:
        print_text(console, f" {as_flags(note)}", "dim")


def print_remarks(label: str, notes: Iterable[str]) -> None:
    """Print those notes about a molecule that ask for attention to standard error."""
    console = Console(stderr=True, highlight=False)
    for note in dict.fromkeys(note for note in notes if note.startswith(REMARKS)):
        print_text(console, f"cuanto: {label}: {as_flags(note)}")
