"""Small calculations with every family of kernels, each compared with the CPU, to be run under compute-sanitizer.

    compute-sanitizer --tool memcheck --error-exitcode 9 python3 tools/run_kernels.py

compute-sanitizer makes kernels tens of times slower, so molecules are as small as a family allows. `--only` takes some
families, `--backend simt` or `cpu` tries the script where there is no GPU.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cuanto
from cuanto import energies
from cuanto.atomic import Atom, AtomBasis, Nucleus, Occupation, ScfSettings, even_tempered, solve
from cuanto.grid import GridSettings

GEOMETRIES = Path(__file__).resolve().parents[1] / "tests" / "data" / "geometries"
SAME = 1e-9
"""Tolerance of energies between backends, Hartree."""
GRID = (12, 26)
"""Radial shells, and points of each shell."""


def molecule(name: str) -> cuanto.Molecule:
    return cuanto.Molecule.from_xyz(GEOMETRIES / f"{name}.xyz")


def atomic(backend: str) -> list[float]:
    """Integrals and contractions: closed and open shells, species to D+, with and without relativity."""
    sets = [even_tempered(0.3, 3.0, 8), even_tempered(0.3, 3.2, 5), even_tempered(0.5, 3.0, 3)]
    scandium = Occupation.all_of((3, 2, 2, 0, 0), (0, 0, 0, 1, 1), 1)  # a d1 ion
    atoms = [Atom(Nucleus(21, "gaussian"), AtomBasis.by_momentum(sets), scandium)]
    atoms.append(Atom(Nucleus(2), AtomBasis.by_momentum(sets[:1]), Occupation((1,))))
    settings = [ScfSettings(), ScfSettings(relativistic=False)]
    return [solve(atom, how, backend).energy for atom in atoms for how in settings]


def nddo(backend: str) -> list[float]:
    """Repulsion, core, exchange and their gradients: atoms with 1, 4 and 9 orbitals, alone and in a batch."""
    mols = [molecule("water_01"), cuanto.Molecule(["H", "Cl"], [[0.0, 0.0, 0.0], [0.0, 0.0, 2.4]])]
    found = [cuanto.energy(mol, "pm6", backend=backend) for mol in mols]
    many = energies([mols[0], mols[0]], "am1", backend=backend, gradient=True, workers=0)
    sizes = [float((one.gradient**2).sum()) for one in (found[0], found[1])]
    return [*(one.energy for one in found), *(one.energy for one in many), *sizes]


def functionals(backend: str) -> list[float]:
    """Grid weights of both kinds, values, density, potential: LDA, GGA and meta-GGA, one and two spins."""
    water, found = molecule("water_01"), []
    for method, partition in (("svwn5", "becke"), ("upbe", "stratmann"), ("r2scan", "becke")):
        grid = GridSettings(level=GRID, partition=partition)
        options: dict[str, Any] = {"grid": grid, "fitting": "none", "max_iterations": 3}
        found.append(cuanto.energy(water, method, "sto-3g", backend=backend, **options).energy)
    return found


def attenuated(backend: str) -> list[float]:
    """erf(omega r)/r, direct and fitted."""
    water, found = molecule("water_01"), []
    for fitting, aux in (("none", None), ("jk", "cc-pvdz-jkfit")):
        options: dict[str, Any] = {"grid": GridSettings(level=GRID), "fitting": fitting, "auxbasis": aux}
        options["max_iterations"] = 2
        found.append(cuanto.energy(water, "wb97x", "cc-pvdz", backend=backend, **options).energy)
    return found


def hartree_fock(backend: str) -> list[float]:
    """Direct J and K, the J engine, three-centre integrals, screening, algebra on the device."""
    water = molecule("water_01")
    return [
        cuanto.energy(water, "uhf", "cc-pvdz", backend=backend, fitting=fitting, auxbasis=aux).energy
        for fitting, aux in (("none", None), ("j", "cc-pvdz-jkfit"), ("jk", "cc-pvdz-jkfit"))
    ]


def high_momenta(backend: str) -> list[float]:
    """Quartets by blocks of threads: contracted functions and angular momenta to g."""
    fluoride = cuanto.Molecule.from_string("2\nHF\nF 0 0 0\nH 0 0.1 0.91\n")
    return [cuanto.energy(fluoride, "hf", "cc-pvqz", backend=backend, fitting="none", max_iterations=2).energy]


def gradients(backend: str) -> list[float]:
    """Forces of electrostatics, direct and fitted exchange at both ranges, functions, points and weights of a grid."""
    water, found = molecule("water_01"), []
    exact: dict[str, Any] = {"fitting": "none"}
    cases: list[tuple[str, dict[str, Any]]] = [("uhf", exact), ("rhf", {"auxbasis": "cc-pvdz-jkfit"})]
    for method, partition in (("svwn5", "becke"), ("upbe", "stratmann"), ("r2scan", "becke")):
        cases.append((method, exact | {"grid": GridSettings(level=GRID, partition=partition)}))
    for more in (exact, {"auxbasis": "cc-pvdz-jkfit", "fitting": "jk"}):
        cases.append(("wb97x", more | {"grid": GridSettings(level=GRID)}))
    few: dict[str, Any] = {"max_iterations": 3, "unconverged_gradient": True}
    for method, options in cases:
        basis = "cc-pvdz" if "auxbasis" in options else "sto-3g"
        result = cuanto.gradient(water, method, basis, backend=backend, **few, **options)
        found += [result.energy, *result.gradient.reshape(-1)]
    return found


def core_potentials(backend: str) -> list[float]:
    """Local and projected parts of a core potential, and their forces."""
    iodide = cuanto.Molecule.from_string("2\nHI\nI 0 0 0\nH 0 0.3 1.58\n")
    few: dict[str, Any] = {"max_iterations": 2, "unconverged_gradient": True, "fitting": "none"}
    result = cuanto.gradient(iodide, "hf", "def2-svp", backend=backend, **few)
    return [result.energy, *result.gradient.reshape(-1)]


FAMILIES: dict[str, Callable[[str], list[float]]] = {
    "atomic": atomic,
    "nddo": nddo,
    "functionals": functionals,
    "attenuated": attenuated,
    "hartree_fock": hartree_fock,
    "high_momenta": high_momenta,
    "gradients": gradients,
    "core_potentials": core_potentials,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="cuda")
    parser.add_argument("--only", nargs="+", choices=list(FAMILIES), default=list(FAMILIES))
    options = parser.parse_args()
    wrong = 0
    for name in options.only:
        begin = time.perf_counter()
        there, here = (FAMILIES[name](backend) for backend in (options.backend, "cpu"))
        error = max(abs(a - b) for a, b in zip(there, here, strict=True))
        wrong += not error < SAME
        print(
            f"{name:13} {len(there)} results, {error:.1e} from the CPU's, {time.perf_counter() - begin:.1f} s",
            flush=True,
        )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
