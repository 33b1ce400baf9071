"""Errors of the grid levels over molecules with metals and halogens, at fixed densities.

    python benchmarks/grid_errors.py --json benchmarks/results/grid_errors.json
    python benchmarks/grid_errors.py --only "MnO4-" "Ni(CO)4" --heaviest 86
    python benchmarks/grid_errors.py --peer --heaviest 86 --json benchmarks/results/grid_errors.json
    python benchmarks/grid_errors.py --only HgCl2 WF6 --heaviest 86 --factors 0.8 1.0 1.2 1.4 1.6
    python benchmarks/grid_errors.py --only Xe Hg --all-electron --json benchmarks/results/grid_errors_all_electron.json

Molecules and geometries are those of the semiempirical references (tests/data/nddo_elements.json) with an element from
fluorine to `--heaviest`, and ferrocene. The density is that of PBE/def2-SVP on the default grid; the error is the
difference of its exchange-correlation energy from that on 150 radial shells of 974 points without pruning. A molecule
that is in the record is not computed again; one whose SCF does not converge is listed and left out. `--factors`: errors
of the levels with these factors in the radial rule of the heaviest element (`treutler` in cuanto/grid/data/radii.json).
`--peer`: the same density on PySCF's default grid as well; rows without that are computed again.
`--all-electron`: x2c-SVPall with X2C instead of def2-SVP, which has core potentials beyond krypton, and 400 radial
shells for the reference; `--only` also takes elements, which are then single atoms.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from common import DATA, ROOT, machine, save

LEVELS = ("coarse", "medium", "fine", "ultrafine")
FUNCTIONALS = ("pbe", "r2scan")
PEER = "pyscf"
"""Name of PySCF's default grid in the record."""
MORE = {"ferrocene": 26}
"""Molecules of benchmarks/data, and their heaviest elements."""
FIRST_ELEMENT = 9
"""Lighter molecules are covered by other test sets."""


def chosen_molecules(heaviest: int, names: list[str] | None) -> dict[str, Any]:
    """Molecules by name."""
    import cuanto
    from cuanto.system.elements import ATOMIC_NUMBERS

    found = {}
    for name, known in json.loads((DATA / "nddo_elements.json").read_text())["molecules"].items():
        highest = max(ATOMIC_NUMBERS[symbol] for symbol in known["symbols"])
        chosen = name in names if names else FIRST_ELEMENT <= highest <= heaviest
        if chosen:
            lines = [
                f"{s} {x} {y} {z}" for s, (x, y, z) in zip(known["symbols"], known["coordinates_angstrom"], strict=True)
            ]
            text = "\n".join([str(len(lines)), "", *lines])
            found[name] = cuanto.Molecule.from_string(text, known["charge"], known["multiplicity"])
    for name, highest in MORE.items():
        if name in names if names else highest <= heaviest:
            found[name] = cuanto.Molecule.from_xyz(str(ROOT / "benchmarks" / "data" / f"{name}.xyz"))
    atoms = [name for name in names or [] if name in ATOMIC_NUMBERS]
    return found | {name: cuanto.Molecule([name], np.zeros((1, 3))) for name in atoms}


def errors_of(molecule: Any, backend: Any, factors: list[float], all_electron: bool, with_peer: bool) -> dict[str, Any]:
    """Errors and numbers of points by level, for every functional, and by factor of the radial rule."""
    import cuanto
    from cuanto.functionals import XCPotential, get_functional
    from cuanto.grid import GridSettings
    from cuanto.terms import ExchangeCorrelation

    basis, options = ("x2c-svpall", {"relativity": "x2c"}) if all_electron else ("def2-svp", {})
    result = cuanto.energy(molecule, "pbe", basis, backend=backend, **options)
    if not result.converged:
        return {"converged": False}
    D_spq = result.state.D_spq

    def integrate(functional: str, settings: GridSettings) -> tuple[float, int]:
        potential = XCPotential(get_functional(functional), backend, len(D_spq))
        term = ExchangeCorrelation(potential, molecule, result.basis, settings)
        return term.energy(D_spq), int(np.count_nonzero(term.grid.w_g))

    errors: dict[str, Any] = {"converged": True, "points": {}}
    for functional in FUNCTIONALS:
        exact, _ = integrate(functional, GridSettings(level=(400 if all_electron else 150, 974)))
        errors[functional] = {}
        for level in LEVELS:
            found, errors["points"][level] = integrate(functional, GridSettings(level=level))
            errors[functional][level] = found - exact
        if with_peer:
            found, errors["points"][PEER] = peer(molecule, result.basis, result.density, functional)
            errors[functional][PEER] = found - exact
        by_factor = errors.setdefault("factors", {}) if factors else {}
        for factor in factors:
            with radial_factor(int(molecule.numbers.max()), factor):
                found_of = {level: integrate(functional, GridSettings(level=level))[0] - exact for level in LEVELS}
            by_factor.setdefault(functional, {})[str(factor)] = found_of
    return errors


def peer(molecule: Any, basis: Any, D_spq: Any, functional: str) -> tuple[float, int]:
    """Exchange-correlation energy of a density on PySCF's default grid, and its number of points."""
    from pyscf import dft

    sys.path.insert(0, str(ROOT / "tests" / "support"))
    from scf_cases import oracle

    mole = oracle(molecule, basis)
    mole.cart = not basis.spherical
    grids = dft.gen_grid.Grids(mole).build()
    integrate = dft.numint.NumInt()
    name = {"pbe": "pbe,pbe", "r2scan": "r2scan,r2scan"}[functional]
    if len(D_spq) == 1:
        return float(integrate.nr_rks(mole, grids, name, D_spq[0])[1]), len(grids.weights)
    return float(integrate.nr_uks(mole, grids, name, D_spq)[1]), len(grids.weights)


@contextmanager
def radial_factor(Z: int, factor: float) -> Iterator[None]:
    """Another factor in the radial rule of an element."""
    from cuanto.grid import rules

    usual = rules.treutler_scales
    scales = usual().copy()
    scales[Z] = factor
    rules.treutler_scales = lambda: scales
    try:
        yield
    finally:
        rules.treutler_scales = usual


def show(rows: dict[str, Any]) -> None:
    """Medians, 90th percentiles and largest errors."""
    good = {name: row for name, row in rows.items() if row["converged"]}
    levels = (*LEVELS, PEER) if all(PEER in row["points"] for row in good.values()) else LEVELS
    print(f"{len(good)} molecules; not converged: {', '.join(set(rows) - set(good)) or 'none'}")
    for functional in FUNCTIONALS:
        for level in levels:
            errors = {name: abs(row[functional][level]) for name, row in good.items()}
            worst = max(errors, key=errors.__getitem__)
            middle, most = np.quantile(list(errors.values()), (0.5, 0.9))
            print(f"{functional:8s}{level:10s} median {middle:.1e}, 90 % below {most:.1e}, {worst} {errors[worst]:.1e}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--heaviest", type=int, default=36, help="largest atomic number")
    parser.add_argument("--only", nargs="+", help="these molecules")
    parser.add_argument(
        "--factors", nargs="*", type=float, default=[], help="of the radial rule of the heaviest element"
    )
    parser.add_argument("--peer", action="store_true", help="PySCF's default grid as well")
    parser.add_argument("--all-electron", action="store_true", help="x2c-SVPall with X2C")
    parser.add_argument("--json", help="record, which is continued")
    given = parser.parse_args()
    from cuanto.backends.base import get_backend

    backend = get_backend(given.backend)
    path = Path(given.json) if given.json else None
    rows = json.loads(path.read_text())["molecules"] if path and path.exists() else {}
    for name, molecule in chosen_molecules(given.heaviest, given.only).items():
        known = rows.get(name)
        if known is None or (given.peer and known["converged"] and PEER not in known["points"]):
            start = time.perf_counter()
            rows[name] = errors_of(molecule, backend, given.factors, given.all_electron, given.peer)
            print(f"{name:24s}{time.perf_counter() - start:6.1f} s", flush=True)
            save(given.json, {"benchmark": "grid_errors", "machine": machine(backend), "molecules": rows})
    show(rows)


if __name__ == "__main__":
    main()
