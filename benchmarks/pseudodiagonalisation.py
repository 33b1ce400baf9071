"""Full diagonalisation, rotations and purification in a PM6 SCF: one step, and the whole.

    python benchmarks/pseudodiagonalisation.py --orbitals 500 1000 2000 --json benchmarks/results/pseudo_cpu.json
    python benchmarks/pseudodiagonalisation.py --backend cuda --orbitals 2000 4000 8000 11600 \\
        --json benchmarks/results/pseudo_h200.json

Steps are timed on the Fock matrix and the orbitals of the middle of an SCF (the best of `--repeat`, the device waited
for): `full` is the library's eigh (cuSOLVER or LAPACK), `block` the rotations that are the default (with and without
exact energies of both blocks, see `cuanto.semiempirical.rotations`), `refined` those of `cuanto.scf`, `sp2`
purification. Whole SCFs start from the same density with the same criteria; `others` is all that is not the
diagonaliser's. Energies that differ by more than 1e-9 Hartree, more than 1.3 times the cycles of `full`, and runs that
did not converge end in exit status 1.
"""

from __future__ import annotations

import argparse
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
from cuanto.semiempirical.purify import Purification
from cuanto.semiempirical.rotations import SETTLED, BlockRotations, triangular

ASKED_STEP, ASKED_GAIN = 0.12, 3.0
"""Seconds of a step with 11,600 orbitals on an H200; full against pseudo, whole SCF."""
SAME, CYCLES = 1e-9, 1.3
MIDDLE = 5
"""Call of the diagonaliser whose matrices are kept."""
MODES: dict[str, dict[str, Any]] = {
    "full": {"options": {"diagonaliser": "full"}},
    "block": {"options": {"diagonaliser": "pseudo", "variant": "block"}},
    "mixed": {"options": {"diagonaliser": "pseudo", "variant": "block"}, "mixed": True},
    "refined": {"options": {"diagonaliser": "pseudo", "variant": "refined"}},
    "sp2": {"options": {}, "purify": True},
}


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
    """Fock matrix, orbitals and occupations of the middle of an SCF."""
    calculation = Semiempirical(molecule, "pm6", backend, ScfOptions(max_iterations=MIDDLE + 1))
    keeper: Keeper | None = None
    original = Semiempirical._diagonaliser

    def kept(self: Semiempirical, frame: Any) -> Any:
        nonlocal keeper
        keeper = Keeper(original(self, frame))
        return keeper

    Semiempirical._diagonaliser = kept  # type: ignore[method-assign]
    try:
        list(calculation.states())
    finally:
        Semiempirical._diagonaliser = original  # type: ignore[method-assign]
    assert keeper is not None and keeper.kept
    return keeper.kept


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


def steps(molecule: cuanto.Molecule, backend: Any, repeat: int) -> dict[str, float]:
    """Seconds of one step of each."""
    F, C, n_sm, energy = matrices(molecule, backend)
    xp, found = backend.xp, {}
    to_host = np.asarray if xp is np else backend.to_host
    eps = xp.einsum("spm,spm->sm", C, F @ C)

    def block(smallest: float) -> None:
        turn = BlockRotations(xp, to_host, solve_triangular=triangular(xp))
        turn._eps_s, turn._smallest = list(eps), smallest
        assert turn(F, C, n_sm, energy)[2] == "block"

    def refined() -> None:
        turn = Pseudo(xp, to_host)
        turn._frozen = eps
        assert turn(F, C, n_sm, energy)[2] == "pseudo"

    found["gemm"] = best(lambda: F[0] @ C[0], backend, repeat)
    found["full"] = best(lambda: Full(xp)(F, C, n_sm, energy), backend, repeat)
    found["block"] = best(lambda: block(0.5 * SETTLED), backend, repeat)
    found["block_exact"] = best(lambda: block(2.0 * SETTLED), backend, repeat)
    found["refined"] = best(refined, backend, repeat)
    found["sp2"] = best(lambda: Purification(xp, to_host)(F, C, n_sm, energy), backend, 1)
    for name, seconds in found.items():
        print(f"    step {name:12} {seconds:9.4f} s", flush=True)
    return found


def whole(molecule: cuanto.Molecule, backend: Any, mode: str) -> dict[str, Any]:
    """One SCF."""
    given = dict(MODES[mode])
    calculation = Semiempirical(molecule, "pm6", backend, ScfOptions(**given.pop("options")), **given)
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


def measure(kind: str, orbitals: int, backend: Any, modes: list[str], repeat: int) -> dict[str, Any]:
    """Everything for one size."""
    molecule = with_orbitals(kind, orbitals)
    print(f"{molecule.name}, about {orbitals} orbitals", flush=True)
    row: dict[str, Any] = {"molecule": molecule.name, "orbitals": orbitals}
    row["step_seconds"] = steps(molecule, backend, repeat)
    row["scf"] = {mode: whole(molecule, backend, mode) for mode in modes}
    full = row["scf"]["full"]
    row["same"] = True
    for mode, found in row["scf"].items():
        found["gain"] = full["seconds"] / found["seconds"]
        good = found["converged"] and abs(found["energy"] - full["energy"]) < SAME
        row["same"] &= bool(good and found["iterations"] <= CYCLES * full["iterations"])
        print(f"    gain {mode:8} {found['gain']:6.2f}, dE {found['energy'] - full['energy']:.1e}", flush=True)
    return row


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--orbitals", type=int, nargs="*", default=[500, 1000, 2000])
    parser.add_argument("--systems", nargs="*", default=["water"], choices=["water", "polyethylene"])
    parser.add_argument("--modes", nargs="*", default=list(MODES), choices=list(MODES))
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json")
    given = parser.parse_args()
    backend = get_backend(given.backend)
    modes = ["full", *(mode for mode in given.modes if mode != "full")]
    rows = []
    record = {"machine": machine(backend), "asked": {"step": ASKED_STEP, "gain": ASKED_GAIN}, "rows": rows}
    for orbitals in given.orbitals:
        for kind in given.systems:
            rows.append(measure(kind, orbitals, backend, modes, given.repeat))
            save(given.json, record)  # what is there already survives an interruption
    sys.exit(0 if all(row["same"] for row in rows) else 1)


if __name__ == "__main__":
    main()
