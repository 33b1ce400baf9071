"""Iterations of the reference rows in two records: list the rows that take more of them than before.

    python tools/compare_diagonalisers.py --functions 130 --json AFTER.json
    python tools/compare_iterations.py benchmarks/results/scf_references_cpu.json AFTER.json
    python tools/compare_references.py --functions 80 --again --json AFTER.json
    python tools/compare_iterations.py benchmarks/results/kohn_sham_references_cpu.json AFTER.json
    python tools/compare_iterations.py BEFORE.json AFTER.json --json benchmarks/results/iterations_cpu.json

Records are those of the two tools above, of this checkout and of another commit (the stored ones, or computed in a
`git worktree`). Rows that only one of them has are counted and left out. `--json` stores the iterations of every row
before and after under the name of the first record, beside the other comparisons in the file. Exit status 1: a row
takes more iterations.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any


def iterations(path: Path) -> dict[str, tuple[int, ...]]:
    """Iterations of every row by its name: one number, or those of full diagonalisation and of rotations."""
    record: Any = json.loads(path.read_text())
    rows = record["rows"] if isinstance(record, dict) else record
    found = {}
    for row in rows:
        counts = row["iterations"]
        found[row.get("case") or row["row"]] = tuple(counts) if isinstance(counts, list) else (counts,)
    return found


def main() -> int:
    """Print the rows that take more iterations, and a summary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--json", type=Path, help="add the comparison to this record")
    given = parser.parse_args()
    before, after = iterations(given.before), iterations(given.after)
    common = [name for name in before if name in after]
    more = [name for name in common if any(b > a for a, b in zip(before[name], after[name], strict=True))]
    fewer = [name for name in common if sum(after[name]) < sum(before[name])]
    for name in more:
        print(f"{name:72} {' '.join(map(str, before[name])):>8} -> {' '.join(map(str, after[name]))}")
    sums = (sum(sum(one[name]) for name in common) for one in (before, after))
    print(
        f"{len(common)} of {len(before)} rows: {len(more)} take more iterations, {len(fewer)} fewer; "
        f"in all {' -> '.join(map(str, sums))}"
    )
    if given.json:
        rows = {name: {"before": before[name], "after": after[name]} for name in common}
        record = json.loads(given.json.read_text()) if given.json.exists() else {}
        record[given.before.stem] = {"rows_before": len(before), "rows": rows}
        given.json.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")
    return 1 if more else 0


if __name__ == "__main__":
    sys.exit(main())
