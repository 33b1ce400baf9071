"""Files of JSON lines to which several processes can append, and which survive crashes."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cuanto.errors import InputError
from cuanto.files import replacing


class JsonLines:
    """A file with one JSON object per line."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def read(self) -> Iterator[dict[str, Any]]:
        """All complete lines."""
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
        """Append a line in one write, so that processes can share the file; `safely`: wait until it is on disk."""
        line = json.dumps(values, allow_nan=False).encode() + b"\n"
        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
            try:
                size = os.fstat(descriptor).st_size
                if size and os.pread(descriptor, 1, size - 1) != b"\n":
                    line = b"\n" + line  # a crash has left an incomplete line
                while line:  # a full disk may accept a part; the next attempt raises
                    line = line[os.write(descriptor, line) :]
                if safely:
                    os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise InputError(f"cannot write {self.path}: {error.strerror or error}") from None

    def replace(self, *lines: dict[str, Any]) -> None:
        """Make these the only lines of the file, completely or not at all."""
        with replacing(self.path) as draft:
            draft.write_bytes(b"".join(json.dumps(line, allow_nan=False).encode() + b"\n" for line in lines))

    def is_truncated(self, beginning: str) -> bool:
        """Whether the file has only part of a first line that begins like this, as after a crash at the start."""
        content = self.path.read_bytes() if self.path.exists() else b""
        size = min(len(content), len(beginning))
        return b"\n" not in content and content[:size] == beginning.encode()[:size]
