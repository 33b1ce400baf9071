"""Full diagonalisation, rotations and purification in a PM6 SCF: one step, and the whole.

    python benchmarks/pseudodiagonalisation.py --orbitals 500 1000 2000 \\
        --json benchmarks/results/pseudodiagonalisation_cpu.json
    python benchmarks/pseudodiagonalisation.py --backend cuda --orbitals 2000 4000 8000 11600 \\
        --json benchmarks/results/pseudodiagonalisation_h200.json

Steps are timed on the Fock matrix and the orbitals of the middle of an SCF (the best of `--repeat`, the device waited
for): `full` is the library's eigh (cuSOLVER or LAPACK), `block` the rotations that are the default, as they are near
convergence, `block_first` as they are before (exact energies of both blocks, refined once; see
`cuanto.semiempirical.rotations`), `refined` those of `cuanto.scf`, `sp2` purification. Whole SCFs start from the same
density with the same criteria. `--xyz` takes geometries from files, beside the lattice of waters and the polyethylene
chain that `benchmarks/semiempirical.py` makes. (From about 1,000 waters on, levels of molecules at distant places of
that lattice cross, and rotations hand over to full diagonalisations.) Energies that differ by more than 1e-9 Hartree,
more than 1.3 times the cycles of `full` (rounded up), and runs that did not converge end in exit status 1.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable
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
from cuanto.semiempirical.diagonalisers import chosen, purification
from cuanto.semiempirical.purify import Purification
from cuanto.semiempirical.rotations import BlockRotations

ASKED_STEP, ASKED_GAIN = 0.12, 3.0
"""Seconds of a step with 11,600 orbitals on an H200; full against pseudo, whole SCF."""
SAME, CYCLES = 1e-9, 1.3
MIDDLE = 6
"""Call of the diagonaliser whose matrices are kept."""
BLOCK = {"diagonaliser": "pseudo", "variant": "block"}
MODES: dict[str, dict[str, Any]] = {
    "full": {"options": {"diagonaliser": "full"}},
    "block": {"options": BLOCK},
    "double": {"options": BLOCK, "mixed": False},
    "refined": {"options": {"diagonaliser": "pseudo", "variant": "refined"}},
    "sp2": {"diagonaliser": purification},
}
"""`block` begins in single precision on a CPU; `double` never does."""


class Keeper:
    """A diagonaliser that remembers what it was given in the middle of an SCF."""

    def __init__(self, inner: Any) -> None:
        self.inner, self.calls = inner, 0
        self.kept: tuple[Any, ...] = ()

    def restart(self) -> None:
        """Of the inner one."""
        self.inner.restart()

    def __call__(self, *given: Any) -> Any:
        self.calls += 1
        if self.calls == MIDDLE:
            self.kept = given
        return self.inner(*given)


def synchronize(backend: Any) -> None:
    """Wait for a device."""
    if hasattr(backend, "synchronize"):
        backend.synchronize()


def matrices(molecule: cuanto.Molecule, backend: Any) -> tuple[Any, ...]:
    """Fock matrix, orbitals, occupations and energy of the middle of an SCF, in double precision."""
    keepers: list[Keeper] = []

    def keeper(frame: Any) -> Keeper:
        keepers.append(Keeper(chosen(ScfOptions(**BLOCK), frame, mixed=False)))
        return keepers[0]

    options = ScfOptions(max_iterations=MIDDLE + 1)
    for _ in Semiempirical(molecule, "pm6", backend, options, diagonaliser=keeper).states():
        if keepers and keepers[0].kept:
            break
    return keepers[0].kept


def best(call: Callable[[], Any], backend: Any, repeat: int) -> float:
    """Seconds of the fastest."""
    seconds = []
    for _ in range(repeat):
        synchronize(backend)
        start = time.perf_counter()
        call()
        synchronize(backend)
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def steps(molecule: cuanto.Molecule, backend: Any, repeat: int, refined: bool) -> dict[str, float]:
    """Seconds of one step of each."""
    F, C, n_sm, energy = matrices(molecule, backend)
    xp, found = backend.xp, {}
    to_host = np.asarray if xp is np else backend.to_host

    def block() -> None:
        assert turns[-1](F, turned, n_sm, energy)[2] == "block"

    def first() -> None:
        assert BlockRotations(xp, to_host)(F, C, n_sm, energy)[2] == "block"

    turns = [BlockRotations(xp, to_host)]
    turned = turns[0](F, C, n_sm, energy)[0]
    found["gemm"] = best(lambda: F[0] @ C[0], backend, repeat)
    found["block"] = best(block, backend, repeat)
    found["block_first"] = best(first, backend, repeat)
    found["full"] = best(lambda: Full(xp)(F, C, n_sm, energy), backend, repeat)
    if refined:
        older = Pseudo(xp, to_host)
        begun = older(F, None, n_sm, energy)[0]
        found["refined"] = best(lambda: older(F, begun, n_sm, energy), backend, repeat)
    found["sp2"] = best(lambda: Purification(xp, to_host)(F, C, n_sm, energy), backend, min(repeat, 2))
    for name, seconds in found.items():
        print(f"    step {name:12} {seconds:9.4f} s", flush=True)
    return found


def whole(molecule: cuanto.Molecule, backend: Any, mode: str) -> dict[str, Any]:
    """One SCF."""
    given = dict(MODES[mode])
    calculation = Semiempirical(molecule, "pm6", backend, ScfOptions(**given.pop("options", {})), **given)
    synchronize(backend)
    start = time.perf_counter()
    result = calculation.run()
    synchronize(backend)
    seconds = time.perf_counter() - start
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
    """Everything for one molecule, into `row`; what is there already survives an interruption."""
    row |= {"molecule": molecule.name, "orbitals": Semiempirical(molecule, "pm6", backend).layout.orbitals, "scf": {}}
    print(f"{row['molecule']}, {row['orbitals']} orbitals", flush=True)
    if repeat:
        row["step_seconds"] = steps(molecule, backend, repeat, "refined" in modes)
        keep()
    row["same"] = True
    for mode in modes:
        found = row["scf"][mode] = whole(molecule, backend, mode)
        full = row["scf"]["full"]
        found["gain"] = full["seconds"] / found["seconds"]
        good = found["converged"] and abs(found["energy"] - full["energy"]) < SAME
        row["same"] &= bool(good and found["iterations"] <= math.ceil(CYCLES * full["iterations"]))
        print(f"    gain {mode:8} {found['gain']:6.2f}, dE {found['energy'] - full['energy']:.1e}", flush=True)
        keep()


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--orbitals", type=int, nargs="*", default=[500, 1000, 2000])
    parser.add_argument("--systems", nargs="*", default=["polyethylene"], choices=["water", "polyethylene"])
    parser.add_argument("--xyz", nargs="*", default=[], help="geometries to be taken as well")
    parser.add_argument("--modes", nargs="*", default=["block", "sp2"], choices=list(MODES))
    parser.add_argument("--repeat", type=int, default=3, help="of single steps; 0: only whole SCFs")
    parser.add_argument("--json")
    given = parser.parse_args()
    backend = get_backend(given.backend)
    modes = ["full", *(mode for mode in given.modes if mode != "full")]
    molecules = [with_orbitals(kind, orbitals) for orbitals in given.orbitals for kind in given.systems]
    molecules += [cuanto.Molecule.from_xyz(path) for path in given.xyz]
    rows: list[dict[str, Any]] = []
    record = {"machine": machine(backend), "asked": {"step": ASKED_STEP, "gain": ASKED_GAIN}, "rows": rows}
    whole(with_orbitals("water", 300), backend, "full")  # compiles
    for molecule in molecules:
        rows.append({})
        measure(molecule, backend, modes, given.repeat, rows[-1], lambda: save(given.json, record))
    sys.exit(0 if all(row["same"] for row in rows) else 1)


if __name__ == "__main__":
    main()
