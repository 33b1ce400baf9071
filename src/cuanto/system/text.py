"""Reading of text files, parsing of numbers in them, and quoting of text in one-line messages.

Parsing is stricter than float() and int(), which accept '1_0', digits of other scripts and 'infinity'.
"""

import errno
import math
import os
import re
import select
import stat
import time
from collections.abc import Sequence
from typing import Any

from cuanto.errors import InputError, require

MAX_FILE_BYTES = 256 << 20
"""Size of the largest file that is read: enough for tens of thousands of structures."""
LONGEST_WAIT = 30.0
"""Seconds to wait for data from a pipe before giving up."""

_REAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eEdD][+-]?\d+)?", re.ASCII)
_WHOLE = re.compile(r"[+-]?\d{1,9}", re.ASCII)


def format_path(path: str | os.PathLike[str]) -> str:
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


def parse_size(size: object, what: str) -> float:
    """Bytes of '4GB', '500 MiB', '1e9' or a number; units are powers of 1024."""
    text = str(size).strip().lower()
    digits = text.rstrip("b").rstrip("i").strip()
    unit = digits[-1:] if digits[-1:] in ("k", "m", "g", "t") else ""
    number = (parse_real(digits.removesuffix(unit).strip()) or 0.0) * 1024.0 ** " kmgt".index(unit or " ")
    if isinstance(size, bool) or not 0 < number < float("inf"):
        raise InputError(f"{what} {quote(size)}: give a size such as 4GB, 500MB or 2000000000")
    return number


def parse_finite(text: str) -> float | None:
    """A real number that does not overflow, or None."""
    value = parse_real(text)
    return value if value is not None and math.isfinite(value) else None


def parse_whole(text: str) -> int | None:
    """A whole number of at most nine digits, or None."""
    return int(text) if _WHOLE.fullmatch(text) else None


def parse_numbers(tokens: Sequence[str]) -> list[float]:
    """Finite real numbers; the error quotes the first token that is not one."""
    values = [parse_finite(token) for token in tokens]
    if None in values:
        raise InputError(f"expected a number, found {quote(tokens[values.index(None)])}")
    return [value for value in values if value is not None]


def parse_json_numbers(values: Any) -> list[float]:
    """Numbers of a JSON list whose entries may be strings."""
    require(isinstance(values, list), f"expected a list of numbers, found {quote(values)}")
    return parse_numbers([str(value).strip() for value in values])


def read_text(path: str | os.PathLike[str], what: str) -> str:
    """The text of a file; `what` names it in messages. Every failure is an `InputError`."""
    name = quote(os.fspath(path), 200)
    try:
        data = file_bytes(path)
    except FileNotFoundError:
        raise InputError(f"{what} {name} does not exist") from None
    except IsADirectoryError:
        raise InputError(f"{what} {name} is a directory, not a file") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(f"{what} {name} cannot be read: {reason}") from None
    return decode(data, f"{what} {name} is not a text file")


def file_bytes(path: str | os.PathLike[str]) -> bytes:
    """Content of a file, or of a pipe such as `<(command)`, in bounded time and memory."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # opening a pipe must not wait
    try:
        status = os.fstat(descriptor)
        if stat.S_ISREG(status.st_mode):
            if status.st_size > MAX_FILE_BYTES:
                raise OSError(errno.EFBIG, f"it is larger than {MAX_FILE_BYTES >> 20} MiB")
            with open(descriptor, "rb", closefd=False) as file:
                return file.read()
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError
        if not stat.S_ISFIFO(status.st_mode):
            raise OSError(errno.EINVAL, "it is a device, not a file")
        return _read_pipe(descriptor)
    finally:
        os.close(descriptor)


def _read_pipe(descriptor: int) -> bytes:
    data, end = b"", time.monotonic() + LONGEST_WAIT
    while len(data) <= MAX_FILE_BYTES:
        if not select.select([descriptor], [], [], max(0.0, end - time.monotonic()))[0]:
            raise OSError(errno.ETIMEDOUT, f"the pipe delivered no data for {LONGEST_WAIT:g} s")
        piece = os.read(descriptor, 1 << 20)
        if not piece:
            return data
        data, end = data + piece, time.monotonic() + LONGEST_WAIT
    raise OSError(errno.EFBIG, f"it is longer than {MAX_FILE_BYTES >> 20} MiB")


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
