"""Lowest states of 40 small molecules with open d shells or few p electrons: cuanto and PySCF, UHF and B3LYP.

    python benchmarks/lower_states.py --json benchmarks/results/lower_states_cpu.json
    python benchmarks/lower_states.py --json RECORD --only NiO --methods uhf --again
    python benchmarks/lower_states.py --json RECORD --table

def2-SVP without fitting. PySCF's default calculation, then the same followed along its internal instabilities (second
order, up to five times); ours with `search="auto"` and with `search="none"`, and the SCF from the winning starting
point alone, which ends in the same state as the search (`same_state`). Only converged energies count. The record is
written after every row, and rows that it has are not computed again (`--again` repeats ours, never PySCF's).
"""

from __future__ import annotations

import argparse
import json
import re
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from common import machine, save

BASIS, METHODS = "def2-svp", ("uhf", "ub3lyp")
TOLERANCE = {"uhf": 1e-5, "ub3lyp": 2e-5}
"""Energies that differ less than this (Hartree) belong to the same state; the grids of the two programs differ."""
DIATOMICS = {
    "ScO": (1.668, 2),
    "TiO": (1.620, 3),
    "VO": (1.589, 4),
    "CrO": (1.615, 5),
    "MnO": (1.646, 6),
    "FeO": (1.616, 5),
    "CoO": (1.629, 4),
    "NiO": (1.627, 3),
    "CuO": (1.7244, 2),
    "ScH": (1.775, 1),
    "TiH": (1.780, 4),
    "VH": (1.730, 5),
    "CrH": (1.656, 6),
    "MnH": (1.731, 7),
    "FeH": (1.589, 4),
    "CoH": (1.52, 3),
    "NiH": (1.476, 2),
    "CuH": (1.463, 1),
    "ScF": (1.787, 1),
    "TiF": (1.834, 4),
    "VF": (1.776, 5),
    "CrF": (1.784, 6),
    "MnF": (1.836, 7),
    "FeF": (1.780, 6),
    "CoF": (1.735, 3),
    "NiF": (1.740, 2),
    "CuF": (1.745, 1),
    "ScN": (1.687, 1),
    "TiN": (1.582, 2),
    "VN": (1.567, 3),
    "CrN": (1.563, 4),
    "B2": (1.590, 3),
    "C2": (1.2425, 1),
    "O2": (1.208, 3),
    "Si2": (2.246, 3),
    "BN": (1.329, 3),
}
"""Distances (Angstrom) and multiplicities, most of them of the ground states."""
CARBONYLS = {"FeCO": (1.727, 3), "CoCO": (1.692, 2), "NiCO": (1.667, 1), "CuCO": (1.960, 2)}
"""Linear M-C-O: distance of metal and carbon, multiplicity; C-O 1.16 Angstrom."""
KNOWN = {
    ("CoH", "ub3lyp"): -1383.15181,
    ("NiO", "uhf"): -1581.35630,
    ("CrO", "uhf"): -1117.93263,
    ("FeO", "uhf"): -1336.99397,
    ("CuO", "uhf"): -1713.42268,
    ("B2", "ub3lyp"): -49.37609,
}
"""Lowest energies known from elsewhere, to five digits."""
WINNER = re.compile(r"lowest from (.*) \(")
FOLLOWED = 5
"""Largest number of instabilities of a state that PySCF follows."""


def atoms_of(name: str) -> tuple[list[tuple[str, float]], int]:
    """Symbols and positions on the z axis (Angstrom), and the multiplicity."""
    if name in CARBONYLS:
        distance, multiplicity = CARBONYLS[name]
        return [(name[:2], 0.0), ("C", distance), ("O", distance + 1.16)], multiplicity
    distance, multiplicity = DIATOMICS[name]
    symbols = [name[0]] * 2 if name[1:] == "2" else [name[:-1], name[-1]]
    symbols = ["Si", "Si"] if name == "Si2" else symbols
    return [(symbols[0], 0.0), (symbols[1], distance)], multiplicity


def pyscf_energies(name: str, method: str) -> Iterator[dict[str, Any]]:
    """Energies of PySCF: the default, then after following instabilities; None where it does not converge."""
    from pyscf import dft, gto, scf

    atoms, multiplicity = atoms_of(name)
    where = [(symbol, (0.0, 0.0, z)) for symbol, z in atoms]
    mole = gto.M(atom=where, basis=BASIS, spin=multiplicity - 1, verbose=0)
    mean_field = scf.UHF(mole) if method == "uhf" else dft.UKS(mole, xc="b3lyp")
    begin = time.perf_counter()
    default = float(mean_field.kernel())
    found: dict[str, Any] = {"pyscf": default if mean_field.converged else None}
    found["pyscf_seconds"] = round(time.perf_counter() - begin, 2)
    yield found
    energy: float | None = None
    for _ in range(FOLLOWED):
        orbitals, _, stable, _ = mean_field.stability(return_status=True)
        if stable:
            break
        second_order = mean_field.newton()
        second_order.kernel(orbitals, mean_field.mo_occ)
        if not second_order.converged:
            break
        mean_field, energy = second_order.undo_newton(), float(second_order.e_tot)
    found["pyscf_followed"] = energy if energy is not None else found["pyscf"]
    found["pyscf_followed_seconds"] = round(time.perf_counter() - begin, 2)
    yield found


@contextmanager
def count_calls(owner: Any, name: str) -> Iterator[list[None]]:
    """A list that grows by one entry with every call of a method."""
    function, calls = getattr(owner, name), []

    def counted(*arguments: Any) -> Any:
        calls.append(None)
        return function(*arguments)

    setattr(owner, name, counted)
    try:
        yield calls
    finally:
        setattr(owner, name, function)


def our_energies(name: str, method: str) -> dict[str, Any]:
    """Our energies with and without the search and from the winning starting point, CPU seconds (the shortest of three
    runs), the number of Fock matrices (including products of the Hessian) and the note of the search."""
    import cuanto

    atoms, multiplicity = atoms_of(name)
    text = f"{len(atoms)}\n\n" + "".join(f"{symbol} 0 0 {z}\n" for symbol, z in atoms)
    molecule = cuanto.Molecule.from_string(text, multiplicity=multiplicity)
    found = measure("plain", molecule, method, "none") | measure("search", molecule, method, "auto")
    label = found["note"] and WINNER.search(found["note"])[1]
    if label is None:  # nothing was searched for
        return found | {"same_state": found["search"], "same_state_seconds": found["search_seconds"]}
    with only_starting_point(label):
        return {**measure("same_state", molecule, method, "auto"), **found}


def measure(key: str, molecule: Any, method: str, search: str) -> dict[str, Any]:
    """Energy, iterations, seconds and matrices of one kind of calculation, and the note of its search."""
    import cuanto
    from cuanto.terms import Coulomb

    seconds = []
    for _ in range(3):
        begin = time.process_time()
        with count_calls(Coulomb, "fock") as calls:
            result = cuanto.energy(molecule, method, BASIS, fitting="none", backend="cpu", search=search)
        seconds.append(time.process_time() - begin)
    found = {key: result.energy if result.converged else None, f"{key}_iterations": result.iterations}
    found |= {f"{key}_seconds": round(min(seconds), 3), f"{key}_matrices": len(calls)}
    return found | {"note": next((note for note in result.notes if note.startswith("search")), None)}


@contextmanager
def only_starting_point(label: str) -> Iterator[None]:
    """Search among a single starting point, with the random fields that it has among the others."""
    from cuanto.methods import gaussian
    from cuanto.scf import screening

    every, seeds = gaussian.starting_points, screening.SEEDS

    def only(molecule: Any) -> Iterator[Any]:
        for point, screening.SEEDS in zip(every(molecule), ((seed,) for seed in seeds), strict=False):
            if point.label == label:
                yield point
                return

    gaussian.starting_points = only
    try:
        yield
    finally:
        gaussian.starting_points, screening.SEEDS = every, seeds


def judge(row: dict[str, Any]) -> dict[str, Any]:
    """Add to a row the lowest energy of other programs, and whether ours is as low."""
    known = KNOWN.get((row["molecule"], row["method"]))
    others = [e for e in (row.get("pyscf"), row.get("pyscf_followed")) if e is not None]
    limits = [e + TOLERANCE[row["method"]] for e in others] + ([known + 1e-5] if known is not None else [])
    row["known"], row["best_of_others"] = known, min([*others, *([known] if known is not None else [])], default=None)
    if "search" in row and "pyscf_followed" in row:
        row["as_low"] = row["search"] is not None and all(row["search"] <= limit for limit in limits)
    return row


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Counts over all rows."""
    done = [row for row in rows if "as_low" in row and "same_state_seconds" in row]
    timed = [row["search_seconds"] / row["plain_seconds"] for row in done]
    slow = [row for row, ratio in zip(done, timed, strict=True) if ratio > 2]
    total = sum(row["search_seconds"] for row in done) / max(sum(row["plain_seconds"] for row in done), 1e-9)
    return {
        "rows": len(done),
        "as_low_as_others": sum(row["as_low"] for row in done),
        "lower_than_others": sum(
            row["as_low"] and row["best_of_others"] is not None and row["search"] < row["best_of_others"] - 1e-4
            for row in done
        ),
        "lower_than_without_search": sum(
            row["plain"] is None or (row["search"] or 0.0) < row["plain"] - 1e-4 for row in done
        ),
        "time_ratio": round(total, 2),
        "largest_time_ratio": round(max(timed, default=0.0), 2),
        "above_twice": len(slow),
        "above_twice_in_the_same_state": [
            f"{row['molecule']} {row['method']}" for row in slow if row["plain"] and row["search"] > row["plain"] - 1e-5
        ],
        "ratio_to_same_state": round(
            sum(row["search_seconds"] for row in done) / max(sum(row["same_state_seconds"] for row in done), 1e-9), 2
        ),
    }


def table(rows: dict[tuple[str, str], dict[str, Any]]) -> str:
    """A Markdown table: our energies, and how far those of PySCF, and ours without a search, lie above them."""
    head = ["molecule", "multiplicity"]
    for method in ("UHF", "B3LYP"):
        head += [method, "no search", "PySCF", "followed"]
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    for name in [*DIATOMICS, *CARBONYLS]:
        cells = [name, str(atoms_of(name)[1])]
        for method in METHODS:
            row = rows.get((name, method), {})
            ours = row.get("search")
            cells.append("-" if ours is None else f"{ours:.5f}")
            for key in ("plain", "pyscf", "pyscf_followed"):
                if key not in row:
                    cells.append("")
                    continue
                other = row[key]
                missing = ours is None or other is None
                cells.append("-" if missing else f"{1e3 * (other - ours):.2f}".replace("-0.00", "0.00"))
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", required=True, help="the record, which is continued if it exists")
    parser.add_argument("--only", nargs="+", help="names of molecules")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--parts", nargs="+", choices=("pyscf", "cuanto"), default=("pyscf", "cuanto"))
    parser.add_argument("--table", action="store_true", help="print the record as a table, and compute nothing")
    parser.add_argument("--again", action="store_true", help="repeat our calculations")
    options = parser.parse_args()
    from cuanto.backends.base import get_backend

    warnings.simplefilter("ignore")
    path = Path(options.json)
    known = json.loads(path.read_text())["cases"] if path.exists() else []
    rows = {(row["molecule"], row["method"]): row for row in known}
    if options.table:
        print(table(rows))
        return
    for name in options.only or [*DIATOMICS, *CARBONYLS]:
        for method in options.methods:
            row = rows.setdefault((name, method), {"molecule": name, "method": method})
            for found in missing_parts(row, options.parts, options.again):
                row |= found
                judge(row)
                cases = list(rows.values())
                record = {"machine": machine(get_backend("cpu")), "basis": BASIS, "summary": summary(cases)}
                save(options.json, record | {"cases": cases})
            print(name, method, *(row.get(k) for k in ("pyscf", "pyscf_followed", "plain", "search", "as_low")))


def missing_parts(row: dict[str, Any], parts: Sequence[str], again: bool) -> Iterator[dict[str, Any]]:
    """Compute what a row does not have yet."""
    name, method = row["molecule"], row["method"]
    if "pyscf" in parts and "pyscf_followed" not in row:
        yield from pyscf_energies(name, method)
    if "cuanto" in parts and (again or "search" not in row):
        yield our_energies(name, method)


if __name__ == "__main__":
    main()
