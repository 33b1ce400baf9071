"""Wording of messages. Nothing is imported here, because the command line needs it before anything large."""

from __future__ import annotations

WARNING, HINT = "WARNING: ", "hint: "
"""Beginnings of notes about what may be wrong with a result, and about what looks like a mistake."""


def count(number: int, what: str) -> str:
    """A number with its noun: 1 atom, 2 atoms."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def format_charge(charge: int) -> str:
    """A charge with its sign, or 0."""
    return f"{charge:+d}" if charge else "0"
