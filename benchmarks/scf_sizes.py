"""Cost of RI-RHF/cc-pVDZ against the size of the molecule: `scf.py --scan`."""

from __future__ import annotations

import argparse
import math
from typing import Any

import numpy as np
from common import geometry
from scf_systems import calculation, timed

import cuanto

ALKANES = [f"alkane_{n:02d}" for n in range(1, 19)]
WATERS = [f"water_{n:02d}" for n in (1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 32, 64, 128)]
STEEPEST = 4.0
"""Exponent with which the next point is foretold: that of fitted exchange."""
SHORT = 0.1
"""Share of the limit: what takes longer is run once more at most."""
LARGE = 0.4
"""Points with at least this share of the most functions make the exponent: smaller ones are overhead."""


def scan(options: argparse.Namespace, backend: Any) -> dict[str, Any]:
    """Times of growing molecules, as far as the limit allows, and their exponent."""
    points: list[dict[str, Any]] = []
    for name in ALKANES if options.scan == "alkanes" else WATERS:
        molecule = cuanto.Molecule.from_xyz(geometry(name))
        basis, aux = cuanto.Basis("cc-pvdz", molecule), cuanto.Basis("cc-pvdz-jkfit", molecule)
        if points:
            last = points[-1]
            expected = last["seconds"] * (basis.nbf / last["functions"]) ** STEEPEST
            if expected > options.limit:
                print(f"{name} and larger ones left out: {expected:.0f} s expected, the limit is {options.limit:.0f}")
                break
        points.append(point(name, calculation(molecule, basis, aux, backend), options, backend))
        points[-1] |= {"atoms": len(molecule.symbols), "functions": basis.nbf, "auxiliary": aux.nbf}
        show(points[-1])
    found = {"scan": options.scan, "method": "RI-RHF/cc-pVDZ", "exponent": exponent(points), "points": points}
    if found["exponent"] is not None:
        print(f"seconds grow as functions^{found['exponent']:.2f} (the larger ones)")
    return found


def point(name: str, call: Any, options: argparse.Namespace, backend: Any) -> dict[str, Any]:
    """Best of the runs after the first one; a long calculation is not repeated for its own sake."""
    first, result = timed(call)
    backend.finish_compiling()
    warm: list[float] = []
    while len(warm) < options.repeat and (not warm or warm[-1] < SHORT * options.limit):
        seconds, result = timed(call)
        warm.append(seconds)
    return {
        "molecule": name,
        "first": first,
        "warm": warm,
        "seconds": min(warm),
        "energy": result.energy,
        "iterations": result.iterations,
        "converged": result.converged,
        "notes": list(result.notes),
        "troubles": [] if result.converged else ["did not converge"],
    }


def exponent(points: list[dict[str, Any]]) -> float | None:
    """Slope of log(seconds) over log(functions); None from fewer than three points."""
    largest = max(point["functions"] for point in points)
    chosen = [p for p in points if p["functions"] >= LARGE * largest]
    if len(chosen) < 3:
        return None
    x, y = ([math.log(p[key]) for p in chosen] for key in ("functions", "seconds"))
    return float(np.polyfit(x, y, 1)[0])


def show(found: dict[str, Any]) -> None:
    """One line of a point."""
    state = "" if found["converged"] else "  *** did not converge ***"
    print(
        f"{found['molecule']:10s} {found['functions']:5d} functions {found['seconds']:9.4f} s "
        f"{found['iterations']:3d} iterations {found['energy']:18.9f}{state}",
        flush=True,
    )
