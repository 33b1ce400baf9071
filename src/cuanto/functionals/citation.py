"""Where a formula comes from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Citation:
    """A publication."""

    text: str
    doi: str

    def __str__(self) -> str:
        return f"{self.text}, doi:{self.doi}"
