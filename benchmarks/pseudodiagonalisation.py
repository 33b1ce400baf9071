"""Full diagonalisation, rotations and purification in a PM6 SCF: times of one step and of the whole SCF.

    python benchmarks/pseudodiagonalisation.py --orbitals 500 1000 2000 4000 8000 \\
        --json benchmarks/results/pseudodiagonalisation_cpu.json
    python benchmarks/pseudodiagonalisation.py --backend cuda --orbitals 2000 4000 8000 11600 \\
        --json benchmarks/results/pseudodiagonalisation_h200.json
    python benchmarks/pseudodiagonalisation.py --orbitals --xyz tests/data/timing_geometries/*.xyz --modes full block \\
        --repeat 0 --json benchmarks/results/pseudodiagonalisation_nine_cpu.json

Steps are timed on the Fock matrix and the orbitals of the middle of an SCF with rotations, which ends there (the best
of `--repeat`, including waiting for the device; with an empty `--modes` only steps are timed):

full         eigh of the library (cuSOLVER or LAPACK)
block        the default rotations, as they are near convergence
block_exact  the same with Cholesky factors of exact Gram matrices instead of the third order (norms above 2e-3)
block_first  rotations at the beginning: exact energies of both blocks, refined once (`cuanto.scf.pseudodiagonalise`)
refined      the rotations of `cuanto.scf`
sp2          purification with known levels

`rotation_seconds` are all steps of one SCF, of any kind: `block` or `block_exact`, refined, in single precision, with
eigenvectors of both blocks (once) or with orthonormalised orbitals (every tenth). Whole SCFs start from the same
density with the same criteria. `--xyz` adds geometries from files to the lattice of waters and the polyethylene chain
of `benchmarks/semiempirical.py`. (From about 1,000 waters on, levels of distant molecules of that lattice cross, and
full diagonalisations replace rotations.) The exit status is 1 if energies differ by more than 1e-9 Hartree, if more
than 1.3 times the cycles of `full` are needed, or if a run did not converge.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from common import machine, save
from semiempirical import with_orbitals

import cuanto
from cuanto.backends.base import get_backend
from cuanto.methods.semiempirical import Semiempirical
from cuanto.options import ScfOptions
from cuanto.scf.diagonalise import Full
from cuanto.scf.pseudodiagonalise import Pseudo
from cuanto.scf.rotations import make_orthonormal, rotate_by_factors, splits
from cuanto.scf.state import State
from cuanto.semiempirical.diagonalisers import SINGLE_IS_FASTER, purification
from cuanto.semiempirical.purify import Purification

TARGET_STEP, TARGET_GAIN = 0.12, 3.0
"""Target seconds of a step with 11,600 orbitals on an H200, and target speed-up of the whole SCF by rotations."""
MAX_DIFFERENCE, MAX_CYCLES = 1e-9, 1.3
"""Largest difference of energies, Hartree, and of cycles relative to full diagonalisation."""
MIDDLE = 6
"""Iteration whose matrices are used to time steps."""
BLOCK = {"diagonaliser": "pseudo", "variant": "block"}
MODES: dict[str, dict[str, Any]] = {
    "full": {"options": {"diagonaliser": "full"}},
    "block": {"options": BLOCK},
    "double": {"options": BLOCK, "mixed": False},
    "refined": {"options": {"diagonaliser": "pseudo", "variant": "refined"}},
    "sp2": {"diagonaliser": purification},
}
"""`block` begins in single precision on a CPU; `double` never does."""


def synchronize(backend: Any) -> None:
    """Wait for a device."""
    if hasattr(backend, "synchronize"):
        backend.synchronize()


def run_timed(backend: Any, call: Callable[..., Any], *given: Any) -> tuple[Any, float]:
    """Result of a call, and its seconds."""
    synchronize(backend)
    start = time.perf_counter()
    result = call(*given)
    synchronize(backend)
    return result, time.perf_counter() - start


def best(call: Callable[[], Any], backend: Any, repeat: int) -> float:
    """Seconds of the fastest run."""
    return min(run_timed(backend, call)[1] for _ in range(repeat))


def middle(molecule: cuanto.Molecule, backend: Any) -> State:
    """State in the middle of an SCF with rotations, which stops there."""
    states = Semiempirical(molecule, "pm6", backend, ScfOptions(**BLOCK)).states()
    return next(state for state in states if state.iteration == MIDDLE)


def steps(state: State, backend: Any, repeat: int, refined: bool) -> Iterator[tuple[str, float]]:
    """Names and seconds of one step of each kind, in double precision."""
    xp = backend.xp
    F, C, n_sm, energy = state.F_spq, state.C_spm.astype(np.float64, copy=False), state.n_sm, state.energy
    edges = tuple(splits(n_m)[0] for n_m in n_sm)

    def block() -> None:
        assert pseudo(F, rotated, n_sm, energy)[2] == "block"

    def exact() -> None:
        for part in pseudo.couple(F, rotated, n_sm, edges)[0]:
            rotate_by_factors(part.C, part.X, xp, backend.linalg)

    def first() -> None:
        assert Pseudo(backend, "economical")(F, C, n_sm, energy)[2] == "block"

    pseudo = Pseudo(backend, "economical")
    rotated = pseudo(F, C, n_sm, energy)[0]
    yield "gemm", best(lambda: F[0] @ C[0], backend, repeat)
    yield "block", best(block, backend, repeat)
    yield "block_exact", best(exact, backend, repeat)
    yield "block_first", best(first, backend, repeat)
    yield "full", best(lambda: Full(xp)(F, C, n_sm, energy), backend, repeat)
    if refined:
        refining = Pseudo(backend)
        start = refining(F, None, n_sm, energy)[0]
        yield "refined", best(lambda: refining(F, start, n_sm, energy), backend, repeat)
    purified = Purification(backend)
    yield "sp2", best(lambda: purified(F, C, n_sm, energy), backend, 2)  # the second call uses the levels of the first


class Timed(Pseudo):
    """Rotations that record the seconds of their steps, including waiting for the device."""

    def __init__(self, frame: Any) -> None:
        super().__init__(frame, "economical", mixed=SINGLE_IS_FASTER[frame.device.traits.language])
        self.backend, self.seconds, self.began = frame.backend, [], 0.0

    def couple(self, *given: Any) -> Any:
        """Run and time the first part of a step."""
        result, self.began = run_timed(self.backend, super().couple, *given)
        return result

    def apply(self, *given: Any) -> Any:
        """Run and time the second part of a step."""
        result, seconds = run_timed(self.backend, super().apply, *given)
        self.seconds.append(self.began + seconds)
        return result


def rotations(molecule: cuanto.Molecule, backend: Any) -> list[float]:
    """Seconds of every rotation of an SCF."""
    result: list[Timed] = []

    def timed(frame: Any) -> Timed:
        result.append(Timed(frame))
        return result[-1]

    Semiempirical(molecule, "pm6", backend, diagonaliser=timed).run()
    seconds = result[-1].seconds
    print("    rotations of an SCF", ", ".join(f"{one:.4f}" for one in seconds), "s", flush=True)
    return seconds


def whole(molecule: cuanto.Molecule, backend: Any, mode: str) -> dict[str, Any]:
    """Time one SCF."""
    given = dict(MODES[mode])
    calculation = Semiempirical(molecule, "pm6", backend, ScfOptions(**given.pop("options", {})), **given)
    result, seconds = run_timed(backend, calculation.run)
    print(
        f"    SCF {mode:8} {seconds:9.3f} s, {result.iterations} cycles, {result.heat_of_formation:.6f} kcal/mol",
        flush=True,
    )
    row = {"seconds": seconds, "iterations": result.iterations, "energy": result.energy, "converged": result.converged}
    row["steps"] = {name: round(t, 4) for name, t in result.timings.seconds.items() if t > 1e-3}
    return row


def measure(
    molecule: cuanto.Molecule, backend: Any, modes: list[str], repeat: int, row: dict[str, Any], keep: Callable[[], Any]
) -> None:
    """Measure one molecule and store the values in `row`, so that an interruption keeps those measured so far."""
    row |= {"orbitals": Semiempirical(molecule, "pm6", backend).layout.orbitals, "scf": {}}
    print(f"{row['molecule']}, {row['orbitals']} orbitals", flush=True)
    row["good"] = True
    for mode in modes:
        found = row["scf"][mode] = whole(molecule, backend, mode)
        row["good"] &= found["converged"]
        if "full" in row["scf"]:
            full = row["scf"]["full"]
            found["gain"], change = full["seconds"] / found["seconds"], found["energy"] - full["energy"]
            few = found["iterations"] <= MAX_CYCLES * full["iterations"]
            row["good"] &= bool(few and abs(change) < MAX_DIFFERENCE)
            print(f"    gain {mode:8} {found['gain']:6.2f}, dE {change:.1e}", flush=True)
        keep()
        if mode == "block" and repeat:
            row["rotation_seconds"] = rotations(molecule, backend)
    if repeat:
        row["step_seconds"] = {}
        for name, seconds in steps(middle(molecule, backend), backend, repeat, "refined" in modes):
            print(f"    step {name:12} {seconds:9.4f} s", flush=True)
            row["step_seconds"][name] = seconds
            keep()
    if backend.name == "cuda":
        print(f"    target for 11,600 orbitals on an H200: a step of {TARGET_STEP} s, gain {TARGET_GAIN}", flush=True)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--orbitals", type=int, nargs="*", default=[500, 1000, 2000])
    parser.add_argument("--systems", nargs="*", default=["polyethylene"], choices=["water", "polyethylene"])
    parser.add_argument("--xyz", nargs="*", default=[], help="files with further geometries")
    parser.add_argument("--modes", nargs="*", default=["full", "block", "sp2"], choices=list(MODES))
    parser.add_argument("--repeat", type=int, default=3, help="runs of each step; 0: only whole SCFs")
    parser.add_argument("--json")
    given = parser.parse_args()
    backend = get_backend(given.backend)
    modes = sorted(given.modes, key=lambda mode: mode != "full")
    molecules = [(with_orbitals(kind, orbitals), "made") for orbitals in given.orbitals for kind in given.systems]
    molecules += [(cuanto.Molecule.from_xyz(path), Path(path).name) for path in given.xyz]
    rows: list[dict[str, Any]] = []
    record = {"machine": machine(backend), "asked": {"step": TARGET_STEP, "gain": TARGET_GAIN}, "rows": rows}
    for mode in modes:
        whole(with_orbitals("water", 600), backend, mode)  # compiles, and starts libraries
    make_orthonormal(backend.xp.eye(600))  # the same for a step that comes only after ten rotations
    for molecule, source in molecules:
        rows.append({"molecule": molecule.name, "geometry": source})
        measure(molecule, backend, modes, given.repeat, rows[-1], lambda: save(given.json, record))
    sys.exit(0 if all(row["good"] for row in rows) else 1)


if __name__ == "__main__":
    main()
