"""The atoms Sc to Cu with five methods: every one must converge, to the same energy in every process.

    python benchmarks/hard_atoms.py --json benchmarks/results/hard_atoms_cpu.json
    python benchmarks/hard_atoms.py --only Sc --peer     # with PySCF's energies

Ground multiplicities, def2-SVP, all defaults. Each atom is computed twice, by two processes with different numbers of
threads. `--peer`: PySCF's energy followed through its stability analysis, with density fitting by the same set; it
starts from its own guess, and its energy is sometimes lower than ours. Rows are written one by one: an interrupted run
continues.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from common import machine, save

import cuanto
from cuanto.backends.base import get_backend

ATOMS = {"Sc": 2, "Ti": 3, "V": 4, "Cr": 7, "Mn": 6, "Fe": 5, "Co": 4, "Ni": 3, "Cu": 2}
"""Multiplicities of the ground states."""
METHODS = ("hf", "pbe", "b3lyp", "pbe0", "r2scan")
BASIS = "def2-svp"
THREADS = ("1", "2")
SAME = 1e-9
"""Hartree by which two runs may differ."""


def atom(symbol: str) -> cuanto.Molecule:
    """An atom in its ground multiplicity."""
    return cuanto.Molecule.from_string(f"1\n\n{symbol} 0 0 0", multiplicity=ATOMS[symbol])


def run(symbol: str) -> list[dict[str, Any]]:
    """Results of all methods, in this process."""
    rows = []
    for method in METHODS:
        found = cuanto.energy(atom(symbol), method, BASIS, backend="cpu")
        steps = [one.step.split(",")[0] for one in found.history]
        rows.append(
            {
                "atom": symbol,
                "method": method,
                "energy": found.energy,
                "converged": found.converged,
                "iterations": found.iterations,
                "newton": steps.count("newton"),
                "curvature": found.state.curvature,
                "s_squared": found.s_squared,
                "notes": [note for note in found.notes if "occup" in note or "orbital" in note],
            }
        )
    return rows


def peer(symbol: str, method: str) -> float:
    """PySCF's energy: DIIS, second order where that fails, followed to a state that its analysis calls stable."""
    from pyscf import dft, gto, scf

    mole = gto.M(atom=[(symbol, (0.0, 0.0, 0.0))], basis=BASIS, spin=ATOMS[symbol] - 1, verbose=0)
    field = scf.UHF(mole) if method == "hf" else dft.UKS(mole, xc=method)
    if method != "hf":
        field.grids.level = 4
    field = field.density_fit(auxbasis="def2-universal-jkfit")
    field.max_cycle, field.verbose = 100, 0
    field.kernel()
    field = field.newton()
    if not field.converged:
        field.kernel(field.mo_coeff, field.mo_occ)
    for _ in range(5):
        orbitals, _, stable, _ = field.stability(return_status=True)
        if stable:
            break
        field.kernel(orbitals, field.mo_occ)
    return float(field.e_tot)


def twice(symbol: str) -> list[dict[str, Any]]:
    """Rows of an atom by two processes; the second energies are added to the first rows."""
    answers = []
    for threads in THREADS:
        command = [sys.executable, "-W", "ignore", __file__, "--child", symbol]
        done = subprocess.run(
            command, capture_output=True, text=True, env={**os.environ, "CUANTO_THREADS": threads}, check=False
        )
        if done.returncode != 0:
            sys.exit(f"{done.stderr.strip()}\nthe process for {symbol} failed with status {done.returncode}")
        answers.append(json.loads(done.stdout.splitlines()[-1]))
    return [one | {"again": other["energy"]} for one, other in zip(*answers, strict=True)]


def show(row: dict[str, Any]) -> None:
    """Print a row."""
    verdict = "converged" if row["converged"] else "NOT converged"
    pyscf = f" PySCF {row['pyscf']:.6f}" if "pyscf" in row else ""
    difference = f"{row['again'] - row['energy']:8.1e}"
    print(
        f"{row['atom']:2} {row['method']:7} {row['energy']:.8f} {difference} {row['iterations']:3} {verdict}{pyscf}",
        flush=True,
    )


def main() -> None:
    """Run the atoms that are missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--peer", action="store_true")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS, help="methods of the peer")
    parser.add_argument("--child", choices=tuple(ATOMS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(run(options.child)))
        return
    known: list[dict[str, Any]] = []
    if options.json and options.json.exists():
        known = json.loads(options.json.read_text())["rows"]
    for symbol in (name for name in ATOMS if options.only in name):
        rows = [row for row in known if row["atom"] == symbol] or twice(symbol)
        known = [row for row in known if row["atom"] != symbol] + rows
        for row in rows:
            if options.peer and row["method"] in options.methods and "pyscf" not in row:
                row["pyscf"] = peer(symbol, row["method"])
            show(row)
            if options.json:
                save(options.json, {"benchmark": "hard atoms", "machine": machine(get_backend("cpu")), "rows": known})
    wrong = [row for row in known if not row["converged"] or abs(row["again"] - row["energy"]) > SAME]
    print(f"{len(known)} calculations, {len(wrong)} not converged or different in the second run")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
