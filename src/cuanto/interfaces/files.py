"""Files that are complete or not there at all."""

from __future__ import annotations

import os
from pathlib import Path

from cuanto.errors import InputError


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Written beside the final name, then renamed."""
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        temporary.write_text(text)
        os.replace(temporary, target)
    except OSError as error:
        raise InputError(f"cannot write {target}: {error.strerror or error}") from error
    finally:
        temporary.unlink(missing_ok=True)
