"""A sample of long lists of test cases, so that the suite stays short; CUANTO_EVERY_CASE=1 runs all of them."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from typing import TypeVar

Case = TypeVar("Case")
EVERY_CASE = bool(os.environ.get("CUANTO_EVERY_CASE"))


def sample(cases: Sequence[Case], step: int, always: Collection[Case] = ()) -> list[Case]:
    """Every `step`-th case, the last one, and those in `always`, in the order given."""
    if EVERY_CASE:
        return list(cases)
    return [one for k, one in enumerate(cases) if k % step == 0 or k == len(cases) - 1 or one in always]
