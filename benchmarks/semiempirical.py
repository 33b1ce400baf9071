"""Semiempirical energies: whole PM6 calculations compared with MOPAC, d functions, and a thousand conformers at once.

    python benchmarks/semiempirical.py --mopac --batch 1000 --json benchmarks/results/semiempirical_cpu.json
    python benchmarks/semiempirical.py --backend cuda --batch 1000 --json benchmarks/results/semiempirical_h200.json
    python benchmarks/semiempirical.py --metal --json benchmarks/results/semiempirical_metal_cpu.json

MOPAC is the library of `mopactools` (PyPI), run from an input file in a process of its own with the same number of
threads, its start excluded (`PM6 1SCF NOMM`). Our time is one call of `cuanto.energy` without compilation of kernels,
with our default criteria, which are tighter. Runs alternate, and the best of `--repeat`
counts for both; seconds of the processors (all threads) and MOPAC's version are recorded as well. Heats of formation
that differ by more than 0.05 kcal/mol per thousand atoms (MOPAC's truncated series and looser convergence), and runs
that did not converge, end in exit status 1. `--metal`: clusters of TiCl4, all of whose atoms have d functions, and
polyethylene of as many orbitals, whose atoms have none. `--xyz`: energy and gradient of geometries from files, to
compare two revisions (`PYTHONPATH=OTHER/src`).
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from common import machine, save

import cuanto
from cuanto import energies
from cuanto.backends.base import get_backend
from cuanto.units import BOHR_IN_ANGSTROM

TARGET_RATIO, TARGET_RATE = 0.7, 50.0
"""Targets on two cores: time relative to MOPAC, and molecules per second."""
DIFFERENCE = 5e-5
"""Largest difference of heats of formation, kcal/mol per atom."""
CAFFEINE = """O 0.4700 2.5688 0.0006;O -3.1271 -0.4436 -0.0003;N -0.9686 -1.3125 0.0000;N 2.2182 0.1412 -0.0003
N -1.3477 1.0797 -0.0001;N 1.4119 -1.9372 0.0002;C 0.8579 0.2592 -0.0008;C 0.3897 -1.0264 -0.0004
C 0.0307 1.4220 -0.0006;C -1.9061 -0.2495 -0.0004;C 2.5032 -1.1998 0.0003;C -1.4276 -2.6960 0.0008
C 3.1926 1.2061 0.0003;C -2.2969 2.1881 0.0007;H 3.5163 -1.5787 0.0008;H -1.0451 -3.1973 -0.8937
H -2.5186 -2.7596 0.0011;H -1.0447 -3.1963 0.8957;H 4.1992 0.7801 0.0002;H 3.0468 1.8092 -0.8992
H 3.0466 1.8083 0.9004;H -1.8087 3.1651 -0.0003;H -2.9322 2.1027 0.8881;H -2.9346 2.1021 -0.8849"""
MOPAC = """
import os, sys, time
os.chdir(sys.argv[1])
from mopactools import api
start, busy = time.perf_counter(), time.process_time()
api.from_file("input.mop")
print(time.perf_counter() - start, time.process_time() - busy)
"""


def water(count: int, seed: int = 1) -> cuanto.Molecule:
    """Molecules (O-H 0.9578 A, 104.5 degrees) in random orientations on a cubic lattice of 3.104 A."""
    rng, side = np.random.default_rng(seed), int(np.ceil(count ** (1 / 3)))
    half = np.deg2rad(104.5) / 2
    shape = 0.9578 * np.array([[0.0, 0.0, 0.0], [np.sin(half), 0.0, np.cos(half)], [-np.sin(half), 0.0, np.cos(half)]])
    lattice = np.stack(np.meshgrid(*[np.arange(side)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)[:count]
    rotations = [np.linalg.qr(rng.normal(size=(3, 3)))[0] for _ in range(count)]
    R_ax = np.concatenate([shape @ Q + 3.104 * offset for Q, offset in zip(rotations, lattice, strict=True)])
    return cuanto.Molecule(["O", "H", "H"] * count, R_ax / BOHR_IN_ANGSTROM, name=f"water_{count}")


def polyethylene(carbons: int) -> cuanto.Molecule:
    """All-anti C_n H_(2n+2): C-C 1.528, C-H 1.095 A, C-C-C 112.8, H-C-H 107 degrees."""
    half, tilt = np.deg2rad(112.8) / 2, np.deg2rad(107.0) / 2
    k = np.arange(carbons)
    out = np.where(k % 2 == 0, -1.0, 1.0)
    C = 1.528 * np.stack([k * np.sin(half), (k % 2) * np.cos(half), 0 * k], axis=1)
    across, along = 1.095 * np.cos(tilt) * out, 1.095 * np.sin(tilt) * np.ones(carbons)
    H = [C + np.stack([0 * across, across, sign * along], axis=1) for sign in (1.0, -1.0)]
    ends = [C[0] + 1.095 * np.array([-np.sin(half), np.cos(half), 0.0])]
    ends.append(C[-1] + 1.095 * np.array([np.sin(half), -out[-1] * np.cos(half), 0.0]))
    R_ax = np.concatenate([C, *H, ends]) / BOHR_IN_ANGSTROM
    return cuanto.Molecule(["C"] * carbons + ["H"] * (2 * carbons + 2), R_ax, name=f"polyethylene_C{carbons}")


def with_orbitals(kind: str, orbitals: int) -> cuanto.Molecule:
    """Make a system with about this many orbitals: six per water and per CH2."""
    return water(round(orbitals / 6)) if kind == "water" else polyethylene(round((orbitals - 2) / 6))


def caffeine(count: int) -> list[cuanto.Molecule]:
    """Conformers of caffeine: all atoms displaced randomly by 0.03 A."""
    atoms = [line.split() for line in CAFFEINE.replace(";", "\n").splitlines()]
    R_ax, rng = np.array([[float(x) for x in atom[1:]] for atom in atoms]), np.random.default_rng(0)
    displaced = [R_ax + rng.normal(scale=0.03, size=R_ax.shape) for _ in range(count)]
    return [cuanto.Molecule([atom[0] for atom in atoms], one / BOHR_IN_ANGSTROM) for one in displaced]


def titanium(count: int) -> cuanto.Molecule:
    """Tetrahedra of TiCl4 (2.17 A) in random orientations on a cubic lattice of 6.5 A."""
    rng, side = np.random.default_rng(2), int(np.ceil(count ** (1 / 3)))
    corners = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]])
    shape = 2.17 / np.sqrt(3.0) * np.concatenate([[[0, 0, 0]], corners])
    lattice = np.stack(np.meshgrid(*[np.arange(side)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)[:count]
    rotations = [np.linalg.qr(rng.normal(size=(3, 3)))[0] for _ in range(count)]
    R_ax = np.concatenate([shape @ Q + 6.5 * offset for Q, offset in zip(rotations, lattice, strict=True)])
    return cuanto.Molecule(["Ti", *["Cl"] * 4] * count, R_ax / BOHR_IN_ANGSTROM, name=f"TiCl4_{count}")


def with_d_functions(orbitals: int, backend: Any, repeat: int) -> dict[str, Any]:
    """Seconds of two molecules with this number of orbitals: in total, per iteration, and for a gradient."""
    both = (polyethylene(round((orbitals - 2) / 6)), titanium(round(orbitals / 45)))
    return {molecule.name: energy_and_gradient(molecule, backend, repeat) for molecule in both}


def energy_and_gradient(molecule: cuanto.Molecule, backend: Any, repeat: int) -> dict[str, Any]:
    """Best of several runs: seconds, and processor seconds."""
    cuanto.energy(molecule, "pm6", backend=backend).gradient  # noqa: B018  # compiles; needs a converged SCF
    clocks = (time.perf_counter, time.process_time)
    taken = []
    for _ in range(repeat):
        times = [[clock() for clock in clocks]]
        result = cuanto.energy(molecule, "pm6", backend=backend)
        times.append([clock() for clock in clocks])
        largest = float(np.abs(result.gradient).max())
        times.append([clock() for clock in clocks])
        taken.append(np.diff(times, axis=0))
    (seconds, busy), (slope, slope_busy) = np.min(taken, axis=0).tolist()
    row = {
        "molecule": molecule.name,
        "orbitals": result.calculation.layout.orbitals,
        "seconds": seconds,
        "processor_seconds": busy,
        "iterations": result.iterations,
        "per_iteration": seconds / result.iterations,
        "gradient_seconds": slope,
        "gradient_processor_seconds": slope_busy,
        "largest_slope": largest,
        "heat": result.heat_of_formation,
        "converged": result.converged,
    }
    print({name: f"{x:.4g}" if isinstance(x, float) else x for name, x in row.items()}, flush=True)
    return row | {"steps": {name: round(t, 3) for name, t in result.timings.seconds.items() if t > 1e-3}}


def run_mopac(molecule: cuanto.Molecule, threads: int) -> tuple[float, float, float, str]:
    """Wall-clock seconds, processor seconds, heat of formation, and the version of MOPAC."""
    with tempfile.TemporaryDirectory() as folder:
        rows = zip(molecule.symbols, molecule.R_ax * BOHR_IN_ANGSTROM, strict=True)
        lines = [f"{symbol} {x:.10f} {y:.10f} {z:.10f}" for symbol, (x, y, z) in rows]
        text = f"PM6 1SCF NOMM GEO-OK THREADS={threads}\n\n\n" + "\n".join(lines) + "\n"
        (Path(folder) / "input.mop").write_text(text)
        counts = {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
        command = [sys.executable, "-c", MOPAC, folder]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **counts}, check=True)
        output = (Path(folder) / "input.out").read_text()
        (line,) = [line for line in output.splitlines() if "FINAL HEAT OF FORMATION" in line]
        seconds, busy = (float(word) for word in done.stdout.split()[-2:])
        (version,) = set(re.findall(r"MOPAC v(\d[\w.]*)", output))
        return seconds, busy, float(line.split("=")[1].split()[0]), version


def compare_with_mopac(kind: str, orbitals: int, backend: Any, repeat: int) -> dict[str, Any]:
    """Measure one system with cuanto and MOPAC."""
    molecule = with_orbitals(kind, orbitals)
    cuanto.energy(molecule, "pm6", backend=backend, max_iterations=1)  # compiles
    ours, theirs = [], []
    for _ in range(repeat):
        start, busy = time.perf_counter(), time.process_time()
        result = cuanto.energy(molecule, "pm6", backend=backend)
        ours.append((time.perf_counter() - start, time.process_time() - busy))
        *taken, heat, version = run_mopac(molecule, getattr(backend, "threads", 1))
        theirs.append(taken)
    row = {
        "molecule": molecule.name,
        "mopac_version": version,
        "orbitals": result.calculation.layout.orbitals,
        "seconds": min(one[0] for one in ours),
        "processor_seconds": min(one[1] for one in ours),
        "iterations": result.iterations,
        "converged": result.converged,
        "mopac_seconds": min(one[0] for one in theirs),
        "mopac_processor_seconds": min(one[1] for one in theirs),
        "heat": result.heat_of_formation,
        "mopac_heat": heat,
        "steps": {name: round(t, 3) for name, t in result.timings.seconds.items() if t > 1e-3},
    }
    row["ratio"] = row["seconds"] / row["mopac_seconds"]
    row["processor_ratio"] = row["processor_seconds"] / row["mopac_processor_seconds"]
    row["same"] = result.converged and abs(row["heat"] - heat) < DIFFERENCE * molecule.natom
    print(
        f"{molecule.name:20} n = {row['orbitals']:5}: {row['seconds']:7.2f} s, MOPAC {row['mopac_seconds']:7.2f} s, "
        f"ratio {row['ratio']:.2f} (target: {TARGET_RATIO}), of processors {row['processor_ratio']:.2f}, "
        f"heats {heat:.4f} and {row['heat']:.4f}",
        flush=True,
    )
    return row


def conformers(count: int, backend: Any, repeat: int) -> dict[str, Any]:
    """Measure molecules per second."""
    molecules = caffeine(count)
    energies(molecules[:2], "pm6", backend=backend, gradient=True, workers=0)  # compiles
    best: dict[str, Any] = {"molecules": count, "converged": True}
    for gradient in (False, True):
        seconds = []
        for _ in range(repeat):
            start = time.perf_counter()
            found = energies(molecules, "pm6", backend=backend, gradient=gradient, workers=0)
            seconds.append(time.perf_counter() - start)
        name = "with_gradients" if gradient else "energies"
        best[f"{name}_per_second"] = count / min(seconds)
        best["converged"] &= all(row.converged for row in found)
        print(f"caffeine, {name}: {count / min(seconds):.1f} molecules per second (target: {TARGET_RATE})", flush=True)
    return best


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--mopac", action="store_true", help="compare whole calculations with MOPAC")
    parser.add_argument("--orbitals", type=int, nargs="*", default=[1000, 2000])
    parser.add_argument("--xyz", nargs="*", default=[], help="energies and gradients of these geometries")
    parser.add_argument("--metal", action="store_true", help="compare atoms with and without d functions")
    parser.add_argument("--batch", type=int, default=0, help="conformers of caffeine")
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--json")
    given = parser.parse_args()
    backend = get_backend(given.backend)
    record: dict[str, Any] = {"machine": machine(backend)}
    if given.mopac:
        kinds = ("polyethylene", "water")
        record["mopac"] = [compare_with_mopac(k, n, backend, given.repeat) for n in given.orbitals for k in kinds]
    if given.xyz:
        molecules = [cuanto.Molecule.from_xyz(path) for path in given.xyz]
        record["geometries"] = [energy_and_gradient(one, backend, given.repeat) for one in molecules]
    if given.metal:
        record["metal"] = [with_d_functions(n, backend, given.repeat) for n in given.orbitals]
    if given.batch:
        record["caffeine"] = conformers(given.batch, backend, given.repeat)
    save(given.json, record)
    sound = all(row["same"] for row in record.get("mopac", [])) and record.get("caffeine", {}).get("converged", True)
    sys.exit(0 if sound else 1)


if __name__ == "__main__":
    main()
