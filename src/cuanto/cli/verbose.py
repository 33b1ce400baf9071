"""``--verbose``, which every command takes as well as ``cuanto`` itself: nobody remembers on which side it belongs."""

from __future__ import annotations

import logging
import sys
from typing import Annotated

import typer


def _listen(wanted: bool) -> bool:
    if wanted:
        logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    return wanted


Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", callback=_listen, help="Say what happens while it happens, on stderr.")
]
