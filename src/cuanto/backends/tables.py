"""Index tables of many classes, made by parallel processes and stored in the cache on the disk.

Making the tables of a class with g functions takes seconds in Python, where threads do not help. `expect` makes those
of smaller classes as well, while the calculation goes on; tables that are not ready in time are made where they are
needed.
"""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
from collections.abc import Iterable

from cuanto.backends import cache as disk
from cuanto.backends.base import Class
from cuanto.backends.programs import class_cost, class_tables, is_cached, tables_path
from cuanto.kernels.spec import Shells
from cuanto.workers import python_environment, usable_cores

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
    left: queue.SimpleQueue[Class] = queue.SimpleQueue()
    for one in sorted(classes, key=_momentum, reverse=True):
        left.put(one)
    count = min(workers, len(classes))
    threads = [threading.Thread(target=_feed, args=(left, levels), daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _momentum(given: Class) -> int:
    return sum(given[1].l) + sum(given[2].l)


def _feed(left: queue.SimpleQueue[Class], levels: bool) -> None:
    """Give classes to a process, one after the other."""
    try:
        worker = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=python_environment(),
        )
    except OSError:
        return
    with worker:
        assert worker.stdin is not None and worker.stdout is not None
        try:
            while worker.poll() is None:
                operator, bra, ket, algorithm = left.get_nowait()
                sides = [[side.l, side.pure, side.hermite] for side in (bra, ket)]
                worker.stdin.write(json.dumps([operator, *sides, algorithm, levels]).encode() + b"\n")
                worker.stdin.flush()
                if not worker.stdout.readline():
                    return
        except (queue.Empty, OSError):
            return


def main() -> None:
    """Run a process that makes tables: it reads a line of JSON for each class, and answers with an empty line."""
    for line in sys.stdin:
        operator, bra, ket, algorithm, levels = json.loads(line)
        first, second = (Shells(tuple(l), tuple(pure), hermite) for l, pure, hermite in (bra, ket))
        class_tables(operator, first, second, algorithm, levels)
        class_cost(operator, first, second, algorithm)
        disk.flush()
        print(flush=True)


if __name__ == "__main__":
    main()
