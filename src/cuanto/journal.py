"""A file of JSON objects, one in a line, to which several processes may append and which a crash does not spoil."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cuanto.errors import InputError


class JsonLines:
    """A file to which lines are appended, each one JSON object."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def read(self) -> Iterator[dict[str, Any]]:
        """All whole lines."""
        try:
            text = self.path.read_bytes()
        except FileNotFoundError:
            return
        except OSError as error:
            raise InputError(f"cannot read {self.path}: {error.strerror or error}") from None
        for line in text.split(b"\n")[:-1]:
            try:
                value = json.loads(line)
            except ValueError:
                continue
            if isinstance(value, dict):
                yield value

    def append(self, values: dict[str, Any], safely: bool = False) -> None:
        """In one write: several processes may append to the same file. `safely`: it is on the disk on return."""
        line = json.dumps(values, allow_nan=False).encode() + b"\n"
        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
            try:
                size = os.fstat(descriptor).st_size
                if size and os.pread(descriptor, 1, size - 1) != b"\n":
                    line = b"\n" + line  # behind what a crash left
                while line:  # a disk that fills takes part of it, and says so at the next attempt
                    line = line[os.write(descriptor, line) :]
                if safely:
                    os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise InputError(f"cannot write {self.path}: {error.strerror or error}") from None

    def broken_off(self, beginning: str) -> bool:
        """Whether there is no more than part of a first line that begins so: the file of a crash at the very start."""
        content = self.path.read_bytes() if self.path.exists() else b""
        size = min(len(content), len(beginning))
        return b"\n" not in content and content[:size] == beginning.encode()[:size]
