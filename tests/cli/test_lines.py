"""Lines are broken between words on a terminal, and not at all in a file."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

import cuanto
from cuanto import Molecule
from cuanto.cli.lines import print_text
from cuanto.cli.show import print_heading, print_summary
from cuanto.methods import Result

WATER = "3\nname=water\nO 0 0 0.117\nH 0 0.757 -0.469\nH 0 -0.757 -0.469\n"


def shown(width: int, terminal: bool, *lines: str) -> str:
    console = Console(file=io.StringIO(), width=width, force_terminal=terminal, color_system=None)
    for line in lines:
        print_text(console, line)
    return str(console.file.getvalue())  # type: ignore[attr-defined]


def test_a_long_line() -> None:
    line = " hint: the ground state of this molecule has multiplicity-three, [not] one"
    rows = shown(30, True, line).splitlines()
    assert len(rows) == 4 and max(map(len, rows)) <= 30 and " ".join(" ".join(rows).split()) == line.strip()
    assert all(row.startswith("   ") for row in rows[1:])
    assert shown(30, False, line) == f"{line}\n" and shown(100, True, line) == f"{line}\n"


def test_a_word_that_is_too_long_and_several_lines() -> None:
    assert shown(10, True, "a" * 25, "", "one\ntwo") == f"{'a' * 25}\n\none\ntwo\n"


@pytest.fixture(scope="module")
def cation() -> Result:
    return cuanto.energy(Molecule.from_string(WATER, charge=1), "b3lyp", "sto-3g", backend="cpu")


@pytest.mark.parametrize("width", [40, 60, 80])
def test_no_line_of_a_result_is_broken_inside_a_word(width: int, cation: Result) -> None:
    """Every word of the full text is a word of the narrow one."""
    texts = []
    for columns in (400, width):
        console = Console(file=io.StringIO(), width=columns, force_terminal=True, color_system=None)
        print_heading(console, cation.molecule, "ub3lyp", "/sto-3g, 7 functions, spherical")
        print_summary(console, cation)
        texts.append(re.sub(r"\x1b\[[0-9;]*m", "", console.file.getvalue()))  # type: ignore[attr-defined]
    assert texts[1].split() == texts[0].split()
    assert max(map(len, texts[1].splitlines())) <= width
