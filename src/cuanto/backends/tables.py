"""Index tables of many classes, made by parallel processes and stored in the cache on the disk.

Making the tables of a class with g functions takes seconds in Python, where threads do not help. `expect` makes those
of smaller classes as well, while the calculation goes on; tables that are not ready in time are made where they are
needed.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from cuanto.backends import cache as disk
from cuanto.backends.base import Class, class_from_json, class_to_json
from cuanto.backends.programs import class_cost, class_tables, is_cached, tables_path
from cuanto.processes import ProcessRunner
from cuanto.workers import usable_cores

LARGE = 8
"""Sum of the angular momenta of the smallest classes whose tables take longer than a tenth of a second."""
MEDIUM = 4
"""Sum of the angular momenta of the smallest classes whose tables are made while the calculation goes on."""
MIN_CLASSES = 8
"""Smallest number of classes for which new processes, which take half a second to start, are worthwhile."""


def expect(classes: Iterable[Class], levels: bool) -> None:
    """Start making the tables of classes that will be needed soon and are not in the cache."""
    share = usable_cores() // 2  # the others compile
    missing = [c for c in classes if _momentum(c) >= MEDIUM and not is_cached(*c, levels)]
    if share > 1 and len(missing) >= MIN_CLASSES:
        threading.Thread(target=_make, args=(missing, levels, share), name="cuanto-tables", daemon=True).start()


def make_tables(classes: Iterable[Class], levels: bool) -> None:
    """Make the tables of the large classes that are not in the cache, if there are many."""
    missing = [c for c in dict.fromkeys(classes) if _momentum(c) >= LARGE and not tables_path(*c, levels).exists()]
    if usable_cores() > 1 and len(missing) >= MIN_CLASSES:
        _make(missing, levels, usable_cores())


def _make(classes: list[Class], levels: bool, workers: int) -> None:
    with suppress(OSError), ProcessRunner(min(workers, len(classes))) as runner:
        for one in sorted(classes, key=_momentum, reverse=True):
            runner.submit("class", make_class, {"class": class_to_json(one), "levels": levels})
        for _ in classes:
            runner.next()


def make_class(task: dict[str, Any]) -> dict[str, Any]:
    """Make the tables of one class in this process, and store them."""
    class_ = class_from_json(task["class"])
    class_tables(*class_, task["levels"])
    class_cost(*class_)
    disk.flush()
    return {}


def _momentum(given: Class) -> int:
    return sum(given[1].l) + sum(given[2].l)
