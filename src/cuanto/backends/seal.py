"""Seals of cached files: a digest of name and content, appended to the file.

Loaders ignore bytes after the end of a library, so a sealed library can be loaded as it is. The module is also a script
that needs nothing but the standard library: ``python seal.py DRAFT FINAL`` seals a draft and gives it its final name.
"""

from __future__ import annotations

import hashlib
import os
import sys

MARK = b"cuanto seal 1\n\0\0"
LENGTH = len(MARK) + 32


def seal(name: str, content: bytes) -> bytes:
    """The seal to append to a file with this name and content."""
    return MARK + hashlib.sha256(name.encode() + b"\0" + content).digest()


def remove_seal(name: str, content: bytes) -> bytes | None:
    """Content without its seal; None if the seal is missing, damaged, or of a file with another name."""
    found, rest = content[-LENGTH:], content[:-LENGTH]
    return rest if found == seal(name, rest) else None


def publish(draft: str, final: str) -> None:
    """Seal a draft and rename it, in an order that survives a power failure; a folder of that name is moved aside."""
    with open(draft, "rb+") as file:
        file.write(seal(os.path.basename(final), file.read()))
        file.flush()
        # Linkers replace the draft by a file with other permissions.
        os.fchmod(file.fileno(), os.fstat(file.fileno()).st_mode & ~0o022)
        os.fsync(file.fileno())
    if os.path.isdir(final) and not os.path.islink(final):
        import tempfile  # importing it takes as long as all the rest of this script

        os.rename(final, tempfile.mkdtemp(prefix=".misplaced-", dir=os.path.dirname(final)))
    os.replace(draft, final)
    folder = os.open(os.path.dirname(final), os.O_RDONLY)
    try:
        os.fsync(folder)
    except OSError:  # some file systems cannot do this
        pass
    finally:
        os.close(folder)


if __name__ == "__main__":
    publish(*sys.argv[1:])
