"""Write the basis sets of all reference rows to files, for a machine without basis-set-exchange.

    python tools/export_bases.py [FOLDER]       # default: build/basis, where tools/gpu_check.sh looks

Sets in tests/data/basis or in the package are left out.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path
from unittest import mock

import basis_set_exchange

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "support")]

import gradient_cases  # noqa: E402
import x2c_cases  # noqa: E402
from cuanto.basis import exchange  # noqa: E402
from cuanto.basis.library import file_name  # noqa: E402
from cuanto.basis.table import ElementTable  # noqa: E402
from cuanto.system.elements import ATOMIC_NUMBERS  # noqa: E402


def sets_of_rows() -> dict[str, set[str]]:
    """Symbols of the elements for which the rows take each set from the Basis Set Exchange."""
    found: dict[str, set[str]] = defaultdict(set)
    table = exchange.exchange_table

    def record(name: str, symbol: str) -> ElementTable:
        found[name].add(symbol)
        return table(name, symbol)

    with mock.patch.object(exchange, "exchange_table", record):
        for kind in gradient_cases.FILES:
            for row in gradient_cases.references(kind):
                gradient_cases.bases(row, gradient_cases.molecule_of(row))
        for row in x2c_cases.references():
            x2c_cases.bases(row, x2c_cases.molecule_of(row))
    return found


def main() -> int:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "basis"
    folder.mkdir(parents=True, exist_ok=True)
    for name, symbols in sorted(sets_of_rows().items()):
        numbers = sorted(ATOMIC_NUMBERS[symbol] for symbol in symbols)
        text = basis_set_exchange.get_basis(name, elements=numbers, fmt="json")
        (folder / f"{file_name(name)}.json").write_text(text)
        print(f"{name}: {', '.join(sorted(symbols))}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
