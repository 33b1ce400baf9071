"""Parsing of numbers and of hand-written text files, and quoting in one-line messages.

Stricter than float() and int(): Python would accept '1_0', digits of other scripts and 'infinity'.
"""

import math
import os
import re
from pathlib import Path

from cuanto.errors import InputError, require

_REAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eEdD][+-]?\d+)?", re.ASCII)
_WHOLE = re.compile(r"[+-]?\d{1,9}", re.ASCII)


def shown(path: str | os.PathLike[str]) -> str:
    """Format a path for messages: as it is if it fits on a line, else quoted."""
    text = os.fspath(path)
    return text if text.isprintable() and len(text) <= 200 else quote(text, 200)


def quote(text: object, limit: int = 40) -> str:
    """Put text in quotes, on one line, shortened to `limit` characters."""
    raw = str(text)
    return repr(raw if len(raw) <= limit else raw[: limit - 3] + "...")


def parse_real(text: str) -> float | None:
    """A real number (with an E or Fortran D exponent), or None. May be infinite by overflow."""
    if _REAL.fullmatch(text) is None:
        return None
    return float(text.translate(str.maketrans("dD", "eE")))


def parse_finite(text: str) -> float | None:
    """A real number that does not overflow, or None."""
    value = parse_real(text)
    return value if value is not None and math.isfinite(value) else None


def parse_whole(text: str) -> int | None:
    """A whole number of at most nine digits, or None."""
    return int(text) if _WHOLE.fullmatch(text) else None


def read_text(path: str | os.PathLike[str], what: str) -> str:
    """The text of a file; `what` names it in messages. Every failure is an `InputError`."""
    shown = quote(os.fspath(path), 200)
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        raise InputError(f"{what} {shown} does not exist") from None
    except IsADirectoryError:
        raise InputError(f"{what} {shown} is a directory, not a file") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(f"{what} {shown} cannot be read: {reason}") from None
    return decode(data, f"{what} {shown} is not a text file")


def decode(data: bytes, problem: str) -> str:
    """Decode UTF-8; `problem` begins the message if that fails."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{problem} (it is not UTF-8)") from None
    require("\0" not in text, f"{problem} (it has zero bytes)")
    return text


def split_lines(text: str) -> list[str]:
    """Split at any of the three usual line endings (str.splitlines also splits at unusual ones)."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
