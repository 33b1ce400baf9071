"""Cost of RHF/cc-pVDZ, fitted or direct, against the size of the molecule: `scf.py --scan`."""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from common import geometry, save
from scf_systems import calculation, timed

import cuanto

ALKANES = [f"alkane_{n:02d}" for n in range(1, 19)]
WATERS = [f"water_{n:02d}" for n in (1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 32, 64, 128)]
STEEPEST, STEEPEST_DIRECT = 4.0, 2.5
"""Exponents used to predict the time of the next point: of fitted exchange, and of direct integrals."""
SHORT = 0.1
"""Fraction of the time limit above which a calculation is run only once."""
LARGE = 0.4
"""The exponent is fitted to points with at least this fraction of the largest number of functions, and at least to the
last three."""


def scan(options: argparse.Namespace, backend: Any, record: dict[str, Any]) -> None:
    """Time molecules of increasing size within the limit, and fit the exponent; the file is written after each."""
    points = earlier(options)
    method, steepest = ("direct", STEEPEST_DIRECT) if options.direct else ("RI", STEEPEST)
    record |= {"scan": options.scan, "method": f"{method}-RHF/cc-pVDZ", "exponent": None, "points": points}
    for name in (ALKANES if options.scan == "alkanes" else WATERS)[len(points) :]:
        molecule = cuanto.Molecule.from_xyz(geometry(name))
        basis = cuanto.Basis("cc-pvdz", molecule)
        aux = None if options.direct else cuanto.Basis("cc-pvdz-jkfit", molecule)
        expected = 0.0
        if points:
            last = points[-1]
            expected = last["seconds"] * (basis.nbf / last["functions"]) ** steepest
            if expected > options.limit:
                print(f"{name} and larger ones left out: {expected:.0f} s expected, the limit is {options.limit:.0f}")
                break
        once = expected > SHORT * options.limit
        points.append(point(name, calculation(molecule, basis, aux, backend), options, backend, once))
        points[-1] |= {
            "atoms": len(molecule.symbols),
            "functions": basis.nbf,
            "auxiliary": 0 if aux is None else aux.nbf,
        }
        show(points[-1])
        record["exponent"] = exponent(points)
        save(options.json, record)  # an interruption keeps the results so far
    if record["exponent"] is not None:
        print(f"seconds grow as functions^{record['exponent']:.2f} (the larger ones)")


def earlier(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Points of a file that is continued."""
    if not (options.resume and options.json and Path(options.json).exists()):
        return []
    found: list[dict[str, Any]] = json.loads(Path(options.json).read_text())["points"]
    return found


def point(name: str, call: Any, options: argparse.Namespace, backend: Any, once: bool) -> dict[str, Any]:
    """Best of the runs after the first; `once`: only one run, for long calculations with compiled kernels."""
    first, result = timed(call)
    backend.finish_compiling()
    warm = [first] if once else []
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
    if len(points) < 3:
        return None
    chosen = [p for n, p in enumerate(points) if p["functions"] >= LARGE * largest or n >= len(points) - 3]
    x, y = ([math.log(p[key]) for p in chosen] for key in ("functions", "seconds"))
    return float(np.polyfit(x, y, 1)[0])


def show(found: dict[str, Any]) -> None:
    """Print one line about a point."""
    state = "" if found["converged"] else "  *** did not converge ***"
    print(
        f"{found['molecule']:10s} {found['functions']:5d} functions {found['seconds']:9.4f} s "
        f"{found['iterations']:3d} iterations {found['energy']:18.9f}{state}",
        flush=True,
    )
