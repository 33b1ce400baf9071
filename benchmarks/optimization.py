"""Optimisations: Baker's set of 30 molecules, and an optimisation of caffeine, compared with geomeTRIC and PySCF.

    python benchmarks/optimization.py --check --peer --json benchmarks/results/optimization_baker_h200.json
    python benchmarks/optimization.py --only water ammonia
    python benchmarks/optimization.py --caffeine --peer --peer-limit 300 \
        --json benchmarks/results/optimization_caffeine_cpu.json

Baker's set (J. Comput. Chem. 14, 1085 (1993), doi:10.1002/jcc.540140910) as PyBerny has it (`pip install pyberny`),
HF/6-31G** without fitting, criteria `normal`: a step is one gradient, as PyBerny counts; its published total with the
same four criteria is 208. Every minimum is optimised again with `tight`; with --check, PySCF computes the energies of
both.
The peer is PySCF's gradient in geomeTRIC with its own defaults. With --geometric, its steps are also counted with our
gradients, which takes minutes instead of hours; PySCF's count is used where there are both. A molecule that does not
converge, an energy more than 2e-6 Hartree above the tight minimum, or more than 208 steps end in exit status 1.
Molecules that are already in the file of --json are not computed again.

Caffeine: RI-B3LYP-D3BJ/def2-SVP from the PM6 geometry, seconds of the whole optimisation with all kernels compiled. The
peer has the same functions, fitting basis, grid and threads, starts every SCF from the last density, and takes its
dispersion from the same library. It may take long: after --peer-limit seconds it is stopped before its next gradient,
and the ratio of the times is an upper bound.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

# The test data have 6-31G** for some elements only, and with five d functions: use the Basis Set Exchange throughout.
os.environ.setdefault("CUANTO_BASIS_PATH", "")

from common import geometry, machine, pyscf_mole, save

import cuanto
from cuanto.backends.base import get_backend
from cuanto.motion.surface import Surface

MAX_EXCESS = 2e-6
"""Largest energy of a minimum above the tightly converged one, Hartree."""
MAX_STEPS = 208
METHOD, BASIS = "hf", "6-31g**"


def baker_set() -> tuple[Path, dict[str, Any]]:
    """Folder of PyBerny's files, and its table of steps; small molecules first."""
    found = importlib.util.find_spec("berny")  # not imported: only its files are needed
    if found is None or found.origin is None:
        sys.exit("Baker's molecules come with PyBerny: pip install pyberny")
    folder = Path(found.origin).parent / "benchmarks" / "baker_shajan_2023"
    table = json.loads((folder / "reference.json").read_text())
    return folder, dict(sorted(table.items(), key=lambda item: item[1]["atoms"]))


def pyscf_energy(molecule: cuanto.Molecule) -> float:
    """RHF by PySCF with our functions."""
    from pyscf import scf

    method = scf.RHF(pyscf_mole(molecule, cuanto.Basis(BASIS, molecule)))
    method.conv_tol = 1e-11
    return float(method.kernel())


class PeerStopped(Exception):
    """The time limit of the peer is over."""


class Peer:
    """Energies and gradients of PySCF for geomeTRIC; every SCF starts from the density of the last."""

    def __init__(self, make: Any, extra: Any = None, limit: float | None = None) -> None:
        self.make, self.extra, self.count, self._density = make, extra, 0, None
        self._end = None if limit is None else time.perf_counter() + limit

    def __call__(self, mol: Any) -> tuple[float, Any]:
        if self._end is not None and time.perf_counter() > self._end:
            raise PeerStopped
        self.count += 1
        method = self.make(mol)
        energy = method.kernel(dm0=self._density)
        self._density = method.make_rdm1()
        slope = method.nuc_grad_method()
        slope.verbose = 0
        if hasattr(slope, "grid_response"):
            slope.grid_response = True
        gradient = slope.kernel()
        if self.extra is not None:
            more, force = self.extra(mol)
            energy, gradient = energy + more, gradient + force
        return energy, gradient


class OwnGradients:
    """Our energies and gradients for geomeTRIC; the latter are PySCF's to 1e-9 Hartree/Bohr."""

    def __init__(self, molecule: cuanto.Molecule) -> None:
        self.count, self._surface = 0, Surface(molecule, METHOD, BASIS, fitting="none", backend="cpu")

    def __call__(self, mol: Any) -> tuple[float, Any]:
        self.count += 1
        found = self._surface.at(mol.atom_coords())
        return found.energy, found.gradient


def run_geometric(engine: Peer | OwnGradients, molecule: cuanto.Molecule, basis: Any) -> dict[str, Any]:
    """Optimise with geomeTRIC's defaults: steps (gradients), seconds, energy, whether it converged."""
    from pyscf.geomopt import as_pyscf_method, geometric_solver

    start, mol = time.perf_counter(), pyscf_mole(molecule, basis)
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            converged, end = geometric_solver.kernel(as_pyscf_method(mol, engine), maxsteps=200)
    except PeerStopped:
        return {"steps": engine.count, "seconds": time.perf_counter() - start, "stopped": True, "converged": False}
    row = {"steps": engine.count, "seconds": time.perf_counter() - start, "converged": bool(converged)}
    return row | {"energy": float(engine(end)[0])}  # computed again: geomeTRIC does not return it


def rhf_peer(molecule: cuanto.Molecule) -> dict[str, Any]:
    """Steps of geomeTRIC with PySCF's RHF."""
    from pyscf import scf

    def make(mol: Any) -> Any:
        method = scf.RHF(mol)
        method.conv_tol, method.conv_tol_grad, method.chkfile, method.verbose = 1e-10, 1e-6, None, 0
        return method

    return run_geometric(Peer(make), molecule, cuanto.Basis(BASIS, molecule))


def optimise(name: str, molecule: cuanto.Molecule, backend: str) -> dict[str, Any]:
    """Optimise one molecule of the set, and once more with `tight`."""
    given = {"fitting": "none", "backend": backend}
    start = time.perf_counter()
    found = cuanto.optimize(molecule, METHOD, BASIS, **given)
    seconds = time.perf_counter() - start
    tight = cuanto.optimize(found.molecule, METHOD, BASIS, convergence="tight", **given)
    row: dict[str, Any] = {"converged": found.converged, "steps": found.iterations, "seconds": round(seconds, 2)}
    row |= {"energy": found.energy, "excess": found.energy - tight.energy, "tight_converged": tight.converged}
    row |= {"tight_steps": tight.iterations, "positions": found.molecule.R_ax.reshape(-1).round(8).tolist()}
    row |= {"tight_positions": tight.molecule.R_ax.reshape(-1).round(8).tolist()}
    line = f"{name:24s} {row['steps']:3d} steps, {row['excess']:.1e} Hartree too high"
    print(line if found.converged else f"{line}, NOT converged", flush=True)
    return row


def check(row: dict[str, Any], molecule: cuanto.Molecule) -> None:
    """Energies of both minima by PySCF."""
    positions = [np.reshape(row[key], (-1, 3)) for key in ("positions", "tight_positions")]
    normal, tight = (pyscf_energy(cuanto.Molecule(molecule.symbols, R_ax)) for R_ax in positions)
    row |= {"pyscf_excess": normal - tight, "pyscf_difference": row["energy"] - normal}
    excess, difference = row["pyscf_excess"], row["pyscf_difference"]
    print(
        f"{row['molecule']:24s} by PySCF {excess:.1e} Hartree too high, energies differ by {difference:.1e}", flush=True
    )


def baker(options: argparse.Namespace, record: dict[str, Any]) -> int:
    """Optimise the set or a part of it; returns 1 if something is wrong."""
    folder, table = baker_set()
    rows = {row["molecule"]: row for row in record["cases"]}
    for name, about in table.items():
        if options.only is not None and name not in options.only:
            continue
        molecule = cuanto.Molecule.from_xyz(folder / f"{name}.xyz", about["charge"], about["mult"])
        row = rows.setdefault(name, {"molecule": name, "atoms": molecule.natom, "pyberny": about["pyberny_steps"]})
        if "steps" not in row and not options.peer_only:
            row |= optimise(name, molecule, options.backend)
        if options.check and "pyscf_excess" not in row and "steps" in row:
            check(row, molecule)
        if (options.peer or options.peer_only) and "peer" not in row:
            row["peer"] = rhf_peer(molecule)
            print(f"{name:24s} {row['peer']['steps']:3d} steps of geomeTRIC with PySCF", flush=True)
        if options.geometric and "geometric" not in row:
            row["geometric"] = run_geometric(OwnGradients(molecule), molecule, cuanto.Basis(BASIS, molecule))
            print(f"{name:24s} {row['geometric']['steps']:3d} steps of geomeTRIC with our gradients", flush=True)
        record["cases"] = list(rows.values())
        record |= totals(record["cases"])
        save(options.json, record)
    return 0 if options.peer_only else judge(record)


def judge(record: dict[str, Any]) -> int:
    """Print the totals; 1 if a molecule, an energy or the number of steps is wrong."""
    rows, found = record["cases"], totals(record["cases"])
    print(f"{len(rows)} molecules, {found['steps']} steps, PyBerny {found['pyberny']}, geomeTRIC {found['geometric']}")
    excesses = [max(row["excess"], row.get("pyscf_excess", 0.0)) for row in rows]
    wrong = max(excesses) > MAX_EXCESS or not all(row["converged"] for row in rows)
    return 1 if wrong or found["steps"] > MAX_STEPS else 0


def totals(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Sums over the molecules."""
    theirs = [(row.get("peer") or row["geometric"])["steps"] for row in rows if "peer" in row or "geometric" in row]
    ours = [row for row in rows if "steps" in row]
    return {
        "steps": sum(row["steps"] for row in ours),
        "pyberny": sum(row["pyberny"] for row in ours),
        "geometric": sum(theirs) if len(theirs) == len(rows) else None,
        "largest_excess": max((row["excess"] for row in ours), default=None),
    }


def caffeine(options: argparse.Namespace, record: dict[str, Any]) -> int:
    """The whole optimisation of caffeine."""
    molecule = cuanto.Molecule.from_xyz(geometry("caffeine"))
    start = cuanto.optimize(molecule, "pm6").molecule
    given = {"method": "b3lyp-d3bj", "basis": "def2-svp", "backend": options.backend}
    warm = cuanto.gradient(start, **given)  # compiles the kernels
    seconds = []
    for _ in range(options.repeats):
        begin = time.perf_counter()
        found = cuanto.optimize(start, **given)
        seconds.append(time.perf_counter() - begin)
    row: dict[str, Any] = {
        "case": "caffeine",
        "seconds": min(seconds),
        "all_seconds": seconds,
        "steps": found.iterations,
    }
    row |= {"converged": found.converged, "energy": found.energy, "functions": warm.basis.nbf}
    print(f"caffeine: {row['steps']} steps, {row['seconds']:.1f} s, {row['energy']:.9f} Hartree", flush=True)
    if options.peer:
        row["peer"] = theirs = caffeine_peer(start, warm, options.peer_limit)
        stopped = "stopped" in theirs
        row["ratio_at_most" if stopped else "ratio"] = ratio = row["seconds"] / theirs["seconds"]
        told = f"stopped after {theirs['steps']} steps and" if stopped else f"{theirs['steps']} steps,"
        print(f"geomeTRIC with PySCF: {told} {theirs['seconds']:.1f} s, ratio {'below ' * stopped}{ratio:.3f}")
    record["cases"] = [row]
    save(options.json, record)
    return 0 if found.converged else 1


def caffeine_peer(start: cuanto.Molecule, warm: Any, limit: float | None) -> dict[str, Any]:
    """The same with PySCF: functions, fit, grid, threads and dispersion as ours; stopped after `limit` seconds."""
    from dftd3.interface import DispersionModel, RationalDampingParam
    from pyscf import dft, lib

    from cuanto.grid import GridSettings

    lib.num_threads(get_backend("cpu").threads)
    grid, damping = GridSettings.of("fine"), RationalDampingParam(method="b3lyp", atm=False)
    auxiliary = pyscf_mole(start, warm.auxbasis).basis

    def make(mol: Any) -> Any:
        method = dft.RKS(mol, xc="b3lyp").density_fit(auxbasis=auxiliary)
        labels = [mol.atom_symbol(k) for k in range(mol.natm)]
        numbers = zip(labels, start.numbers, strict=True)
        method.grids.atom_grid = {name: grid.numbers(int(Z)) for name, Z in numbers}
        method.grids.prune = dft.gen_grid.nwchem_prune if grid.pruned else None
        method.conv_tol, method.chkfile, method.verbose = 1e-9, None, 0
        return method

    def dispersion(mol: Any) -> tuple[float, Any]:
        found = DispersionModel(np.asarray(start.numbers), mol.atom_coords()).get_dispersion(damping, grad=True)
        return float(found["energy"]), found["gradient"]

    return run_geometric(Peer(make, dispersion, limit), start, warm.basis)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--caffeine", action="store_true", help="the whole optimisation of caffeine instead")
    parser.add_argument("--backend", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--check", action="store_true", help="energies of PySCF")
    parser.add_argument("--only", nargs="+", help="some molecules of the set")
    parser.add_argument("--peer", action="store_true", help="geomeTRIC with PySCF in the same run")
    parser.add_argument("--peer-only", action="store_true", help="geomeTRIC with PySCF alone, for a part of a campaign")
    parser.add_argument("--peer-limit", type=float, help="seconds after which the peer of caffeine is stopped")
    parser.add_argument("--geometric", action="store_true", help="geomeTRIC's own defaults with our gradients, too")
    parser.add_argument("--repeats", type=int, default=1, help="optimisations of caffeine; the fastest counts")
    parser.add_argument("--json", help="record to write; one that exists is continued")
    options = parser.parse_args()
    record: dict[str, Any] = {"benchmark": "optimization", "cases": []}
    if options.json and not options.caffeine and Path(options.json).exists():
        record = json.loads(Path(options.json).read_text())
    record["machine"] = machine(get_backend(options.backend))
    sys.exit(caffeine(options, record) if options.caffeine else baker(options, record))


if __name__ == "__main__":
    main()
