"""Write tests/data/blocks.npz: values of every class of integrals by other programs (see tests/data/README.md).

    python tools/make_reference_blocks.py

libcint's values are stored where they agree with the NumPy reference, those of forty digits (mpmath) where they do not.
Takes some minutes.
"""

from __future__ import annotations

import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "support")]

from bundle import CANCELLATION  # noqa: E402
from cuanto.basis import Shell  # noqa: E402
from cuanto.integrals.pairs import RowMap, pair_batches  # noqa: E402
from cuanto.integrals.segments import segments  # noqa: E402
from oracle import Array, mp_block, pyscf_block, reference_block  # noqa: E402
from stored_blocks import (  # noqa: E402
    AUX_MAX,
    FILE,
    FORMS,
    ILL_CONDITIONED,
    L_MAX,
    OPERATORS,
    SETTINGS,
    block_of,
    classes,
    scene_of,
    weighted_sum,
)
from tolerances import INTEGRAL_REL, SMALLEST  # noqa: E402

ELEMENTS = 10
"""Number of stored elements of a block, the largest one among them."""
PRIMITIVES = 2
AGREEMENT = 0.3
"""Fraction of the test tolerance within which libcint and the reference must agree."""
SETS = (L_MAX, L_MAX, AUX_MAX, AUX_MAX)
RANGES = {  # exponents of both orbital and of both auxiliary sets, and the spread of their centres in Bohr
    "near": ([(0.6, 1.1), (0.6, 1.1), (0.5, 2.0), (0.5, 2.0)], 0.8),
    "shared centre": ([(1e-3, 1e6), (1e-3, 1e6), (0.1, 10.0), (0.1, 10.0)], 2.0),
    "tight first": ([(1e4, 1e6), (1e-3, 1e-1), (1e-3, 1e-1), (1e-3, 1e6)], 6.0),
    "tight second": ([(1e-3, 1e-1), (1e4, 1e6), (1e4, 1e6), (1e-3, 1e6)], 6.0),
}


def shells(rng: np.random.Generator) -> dict[str, Any]:
    """Exponents, coefficients and centres of all settings, and point charges."""
    found: dict[str, list[Any]] = {"exponents": [], "coefficients": [], "centres": [], "positions": []}
    for setting in SETTINGS:
        ranges, spread = RANGES[setting]
        limits = [(l, *np.log(limit)) for l_max, limit in zip(SETS, ranges, strict=True) for l in range(l_max + 1)]
        result = [
            Shell.from_table(
                0, l, np.exp(rng.uniform(low, high, PRIMITIVES)), rng.uniform(0.3, 1, (PRIMITIVES, 1)), True
            )
            for l, low, high in limits
        ]
        centres = spread * rng.normal(size=(len(result), 3))
        if setting == "shared centre":
            centres[: 2 * (L_MAX + 1)] = centres[0]
        found["exponents"].append([shell.exponents for shell in result])
        found["coefficients"].append([shell.coefficients[:, 0] for shell in result])
        found["centres"].append(centres)
        # One charge on a shell's centre, one near it, one far away.
        found["positions"].append(centres[0] + np.array([[0, 0, 0], [0.2, -0.4, 0.3], [4.0, 7.0, -5.0]]))
    return {name: np.array(values) for name, values in found.items()} | {"charges": np.array([1.0, 8.0, -0.5])}


def check_ill_conditioned(stored: dict[str, Any]) -> None:
    """Check that only one setting has ill-conditioned pairs, which always use McMurchie-Davidson."""
    for setting in SETTINGS:
        here = scene_of(stored, setting, "pure")
        rows = RowMap(here.second.nbf, packed=False)
        pairs = [(a, b) for a in segments(here.first) for b in segments(here.second) if a.l >= b.l]
        flags = {batch.ill_conditioned for a, b in pairs for batch in pair_batches(a, b, False, rows, 0.0)}
        assert (True in flags) == (setting == ILL_CONDITIONED), f"{setting}: ill-conditioned pairs {flags}"


@dataclass(frozen=True, eq=False)
class Case:
    """One block of integrals, as described to the oracles."""

    operator: str
    shells: list[Shell]
    centres: list[Array]
    extra: dict[str, Any]


def natural_scale(case: Case) -> float:
    """Size of the numbers that are added up to a block, as `natural_scale` of tests/support/bundle.py defines it."""
    shells = [replace(shell, pure=False) for shell in case.shells]
    magnitudes = case.extra | {name: np.abs(case.extra[name]) for name in case.extra if name == "charges"}
    scale = np.abs(reference_block(case.operator, shells, case.centres, **magnitudes)).max()
    if case.operator == "kinetic":
        overlap = np.abs(reference_block("overlap", shells, case.centres)).max()
        scale += overlap * min(shell.exponents.max() for shell in shells)
    return float(scale)


def choose_block(case: Case) -> tuple[Array, float, bool]:
    """Values of a block, its natural scale, and whether they are libcint's; mpmath's where libcint loses digits."""
    given = (case.operator, case.shells, case.centres)
    exact, other = reference_block(*given, **case.extra), pyscf_block(*given, **case.extra)
    scale = natural_scale(case)
    allowed = INTEGRAL_REL * np.abs(exact).max() + CANCELLATION * scale + SMALLEST
    agree = bool(np.abs(exact - other).max() <= AGREEMENT * allowed)
    return (other if agree else mp_block(*given, **case.extra)), scale, agree


def cases(stored: dict[str, Any], operator: str) -> list[Case]:
    """All classes of an operator, in the order of the file."""
    found = []
    for setting, form, momenta in product(SETTINGS, FORMS, classes(operator)):
        here = scene_of(stored, setting, form)
        shells, centres, _ = block_of(here.sides(operator), momenta)
        found.append(Case(operator, shells, centres, here.extra(operator)))
    return found


def main() -> None:
    """Write the blocks of all settings, forms, operators and classes."""
    rng = np.random.default_rng(11)
    stored = shells(rng)
    check_ill_conditioned(stored)
    with ProcessPoolExecutor() as pool:
        for operator in OPERATORS:
            sizes, positions, values, theirs = [], [], [], 0
            for block, scale, agree in pool.map(choose_block, cases(stored, operator), chunksize=4):
                flat = block.reshape(-1)
                chosen = np.append(rng.integers(flat.size, size=ELEMENTS - 1), np.abs(flat).argmax())
                sizes.append((np.abs(flat).max(), scale, weighted_sum(block)))
                positions.append(chosen)
                values.append(flat[chosen])
                theirs += agree
            shape = (len(SETTINGS), len(FORMS), len(classes(operator)), -1)
            stored[f"{operator} sizes"] = np.reshape(sizes, shape)
            stored[f"{operator} positions"] = np.reshape(positions, shape).astype(np.uint16)
            stored[f"{operator} values"] = np.reshape(values, shape)
            print(f"{operator}: {theirs} of {len(sizes)} blocks from libcint", flush=True)
    np.savez_compressed(FILE, **stored)
    print(f"{FILE.name}: {FILE.stat().st_size} bytes")


if __name__ == "__main__":
    main()
