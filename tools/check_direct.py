"""Compare direct J and K with all stored values, including those of high momenta that the test suite leaves out.

This takes minutes.

    python tools/check_direct.py [--backend cuda] [--only cc-pv5z]

Prints the largest error of every system; exit status 1 when one of them is above 1e-10.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "support")]
os.environ["CUANTO_BASIS_PATH"] = str(ROOT / "tests" / "data" / "basis")

from direct_reference import EXACT, SYSTEMS, fingerprint_errors, four_centre, stored_errors, title  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--only", default="", help="part of the name of a system")
    options = parser.parse_args()
    checks: dict[str, Callable[[], dict[str, float]]] = {
        title(record): partial(fingerprint_errors, record, options.backend) for record in four_centre()
    }
    checks |= {f"{system} (direct_jk.json)": partial(stored_errors, system, options.backend) for system in SYSTEMS}
    wrong = 0
    for name, check in checks.items():
        if options.only in name:
            start = time.perf_counter()
            errors = check()
            worst = max(errors, key=lambda key: errors[key])
            wrong += errors[worst] >= EXACT
            print(f"{name:40s} {errors[worst]:9.1e} ({worst}) {time.perf_counter() - start:8.1f} s", flush=True)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
