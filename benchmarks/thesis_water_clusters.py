"""The water clusters of a thesis on Kohn-Sham calculations with GPUs: its figures 5.2 to 5.6 and table 5.1 with cuanto.

    python benchmarks/thesis_water_clusters.py --quick                         # a CPU, small clusters: a few minutes
    python benchmarks/thesis_water_clusters.py --backend cuda --json benchmarks/results/thesis_water_clusters_cuda.json

The thesis (M. A. Nitsche, Aceleración de cálculos de estructura electrónica mediante el uso de Procesadores Gráficos
Programables, Universidad de Buenos Aires, 2009) has clusters of 1 to 24 waters, LDA with VWN correlation, a DZVP basis,
Becke's grids with 35 shells and 116 points per shell for times, 194 for energies, and a Tesla C1060. Here: Slater and
VWN5, DGauss DZVP with Cartesian d functions, Becke's radial rule and cells, 35 shells of 110 (the nearest Lebedev rule)
and 194 points, nothing pruned, J from exact four-centre integrals.

1. Time of an iteration, by kernel, and memory against the number of waters (figures 5.4 and 5.6). Values of functions
   are stored (`precálculo` in the thesis) or recomputed (`recálculo`). Memory is that of the values, and the peak of a
   whole calculation on the device. Each size is calculated once before it is timed.
2. Time of a pass against the radius of the spheres, as a fraction of the shells, for several sizes of cubes (figure
   5.2), and against the edge of the cubes with spheres of 60 % (figure 5.3). The density is the same in all of them;
   the change of its energy is printed.
3. Formation energy E_n - n E_1 in mixed and single precision against double (table 5.1: 0.06 kcal/mol between its
   programs for GPU and CPU, 0.36 against Gaussian 03).
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from common import geometry, machine, save
from dft_steps import Density, Pass, product_rate, show

import cuanto
from cuanto.backends.base import get_backend
from cuanto.functionals import get_functional
from cuanto.grid import GridSettings

KCAL = 627.509469
"""kcal/mol in a Hartree (CODATA 2010)."""
SHELLS = 35
ANGULAR = (110, 194)
SIZES = (1, 2, 3, 4, 6, 8, 10, 12, 16, 20, 24)
QUICK = (1, 2, 4)
RADII = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
CUBES = (2.0, 4.0, 8.0, 19.5)
"""Bohr; 19.5 is the thesis's choice for its GPU, 3.5 for its CPU."""
EDGES = (1.0, 1.5, 2.0, 3.0, 3.5, 4.5, 6.0, 8.0, 12.0, 19.5, 30.0)
SPHERES = 0.6
"""Sphere fraction used in the thesis."""
MIXED, SINGLE = 1e-4, 0.05
"""Target errors of the formation energy, kcal/mol."""
MIB = 2**20
ITERATION_C1060 = 0.6
"""Seconds of an iteration of 24 waters on a Tesla C1060, read from the thesis's figure 5.5."""


class PeakMemory:
    """Measures `most`: peak bytes of arrays on the device, beyond those in use before; zero on a host. The size of the
    pool is not measured, because it keeps unused blocks; it is emptied first.
    """

    def __init__(self, backend: Any) -> None:
        self.most, self._hook = 0, None
        if backend.name == "cuda":
            self._hook = self._make_hook()

    def _make_hook(self) -> Any:
        import cupy

        peak = self
        cupy.get_default_memory_pool().free_all_blocks()

        class Hook(cupy.cuda.MemoryHook):
            """Counts allocations from the pool."""

            name, used = "PeakMemory", 0

            def malloc_postprocess(self, **given: Any) -> None:
                self.used += given["mem_size"]
                peak.most = max(peak.most, self.used)

            def free_postprocess(self, **given: Any) -> None:
                self.used -= given["mem_size"]

        return Hook()

    def __enter__(self) -> PeakMemory:
        if self._hook is not None:
            self._hook.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        if self._hook is not None:
            self._hook.__exit__(*error)


class Clusters:
    """Converged calculations, each computed once."""

    def __init__(self, backend: Any) -> None:
        self.backend = backend
        self._made: dict[tuple[int, int, str], tuple[Any, float]] = {}

    def cluster(self, waters: int) -> tuple[cuanto.Molecule, cuanto.Basis]:
        """Molecule and basis."""
        molecule = cuanto.Molecule.from_xyz(geometry(f"water_{waters:02d}"))
        return molecule, cuanto.Basis("dgauss-dzvp", molecule, spherical=False)

    def result(self, waters: int, angular: int, precision: str = "double") -> tuple[Any, float]:
        """The calculation and its seconds."""
        key = (waters, angular, precision)
        if key not in self._made:
            molecule, basis = self.cluster(waters)
            start = time.perf_counter()
            result = cuanto.energy(
                molecule,
                "lda",
                basis,
                fitting="none",
                backend=self.backend,
                precision=precision,
                grid=settings(angular),
                profile=True,
            )
            self._made[key] = result, time.perf_counter() - start
            if not result.converged:
                print(f"*** {waters} waters, {precision}: did not converge ***", flush=True)
        return self._made[key]

    def warm_up(self, waters: int) -> int:
        """Run a calculation without timing it, so that the next one does not compile kernels or load libraries; returns
        the peak bytes on the device."""
        with PeakMemory(self.backend) as memory:
            self.result(waters, ANGULAR[0])
        self.backend.finish_compiling()
        self._made.pop((waters, ANGULAR[0], "double"))
        return memory.most

    def measure(self, waters: int, given: GridSettings, repeat: int) -> dict[str, Any]:
        """Measure one pass with these settings, on the density of the default settings."""
        molecule, basis = self.cluster(waters)
        result, _ = self.result(waters, ANGULAR[0])
        return Pass(molecule, basis, get_functional("lda"), given, self.backend).measure(Density.of(result), repeat)


def settings(angular: int, **more: Any) -> GridSettings:
    """Grid settings as in the thesis."""
    return GridSettings(level=(SHELLS, angular), radial="becke", partition="becke-bragg", pruning="none", **more)


def by_size(clusters: Clusters, sizes: tuple[int, ...], rate: float) -> Iterator[dict[str, Any]]:
    """Times and memory by number of waters, as in figures 5.4 and 5.6."""
    print("time of an iteration against the number of waters", flush=True)
    for waters in sizes:
        most = clusters.warm_up(waters)
        result, seconds = clusters.result(waters, ANGULAR[0])
        steps = {name: s / result.iterations for name, s in result.timings.seconds.items()}
        row: dict[str, Any] = {"waters": waters, "functions": result.basis.nbf, "iterations": result.iterations}
        row |= {"scf_seconds": seconds, "energy": result.energy, "converged": result.converged}
        row["per_iteration"] = {name: steps[name] for name in ("coulomb", "exchange-correlation", "diagonalisation")}
        print(f"{waters} waters, {row['functions']} functions, whole SCF {seconds:.2f} s", flush=True)
        print("  ms an iteration: " + ", ".join(f"{name} {1e3 * s:.2f}" for name, s in row["per_iteration"].items()))
        for angular in ANGULAR:
            for store in ("keep", "recompute"):
                found = clusters.measure(waters, settings(angular, store=store), 3)
                row[f"{angular} {store}"] = found
                print(f"  {angular} points per shell, {found['values_bytes'] / MIB:.0f} MiB of values", flush=True)
                show(found, rate)
        row["device_bytes"] = most
        print(f"  memory of the device in use, at most: {most / MIB:.0f} MiB", flush=True)
        yield row


def sweep(clusters: Clusters, waters: int, edges: tuple[float, ...], radii: tuple[float, ...]) -> list[dict[str, Any]]:
    """Measure a pass for every size of cubes and spheres; `change`: energy minus that of a fine partition, kcal/mol."""
    plain = settings(ANGULAR[0], density="matrix")
    exact = clusters.measure(waters, replace(plain, cube_edge=2.0, sphere_fraction=0.0, threshold=1e-13), 1)["energy"]
    rows = []
    for edge in edges:
        for radius in radii:
            found = clusters.measure(waters, replace(plain, cube_edge=edge, sphere_fraction=radius), 2)
            change = (found["energy"] - exact) * KCAL
            row = {"waters": waters, "edge": edge, "radius": radius, "groups": found["groups"], "pass": found["pass"]}
            row |= {"seconds": found["seconds"], "functions_at_a_point": found["functions_at_a_point"]}
            rows.append({**row, "change": change})
            print(
                f"  {waters:2d} waters, cubes {edge:4.1f} Bohr, spheres {radius:4.0%}: {found['groups']:5d} groups, "
                f"{found['functions_at_a_point']:4.0f} functions at a point, {1e3 * found['pass']:8.2f} ms, "
                f"energy {change:8.1e} kcal/mol",
                flush=True,
            )
    return rows


def formation(clusters: Clusters, waters: int) -> list[dict[str, Any]]:
    """Formation energies by precision, as in table 5.1, with 194 points per shell."""
    print(f"formation energy of {waters} waters, {ANGULAR[1]} points per shell", flush=True)
    rows: list[dict[str, Any]] = []
    for precision in ("double", "mixed", "single"):
        many, seconds = clusters.result(waters, ANGULAR[1], precision)
        one, _ = clusters.result(1, ANGULAR[1], precision)
        energy = (many.energy - waters * one.energy) * KCAL
        difference = energy - rows[0]["kcal_mol"] if rows else 0.0
        row = {"precision": precision, "waters": waters, "kcal_mol": energy, "difference": difference}
        row |= {"energy": many.energy, "iterations": many.iterations, "converged": many.converged, "seconds": seconds}
        rows.append({**row, "notes": list(many.notes)})
        print(
            f"  {precision}: {energy:.6f} kcal/mol, {difference:.1e} from double; {'; '.join(many.notes)}", flush=True
        )
    return rows


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--quick", action="store_true", help="1, 2 and 4 waters, few settings")
    parser.add_argument("--sizes", type=int, nargs="*", help="numbers of waters, 1 to 24")
    parser.add_argument("--parts", nargs="*", choices=("sizes", "sweeps", "precision"), help="default: all three")
    parser.add_argument("--json", help="write the result here, after each part")
    options = parser.parse_args()
    options.sizes = tuple(options.sizes or (QUICK if options.quick else SIZES))
    if any(not 1 <= n <= 24 for n in options.sizes):
        parser.error("there are clusters of 1 to 24 waters")
    options.parts = options.parts or ("sizes", "sweeps", "precision")
    return options


def main() -> int:
    options = arguments()
    backend: Any = get_backend(options.backend)
    clusters, largest = Clusters(backend), max(options.sizes)
    print(f"{backend.name}; load average {os.getloadavg()[0]:.1f}: times need an idle machine", flush=True)
    rate = product_rate(backend)
    record: dict[str, Any] = {"benchmark": "thesis_water_clusters", "machine": machine(backend)}
    record |= {"load": os.getloadavg()[0], "cores": os.cpu_count(), "fp64_product_rate": rate}
    record["thesis"] = {"iteration_24_waters_c1060": ITERATION_C1060, "formation_kcal_mol": [0.06, 0.07, 0.36]}
    clusters.result(1, ANGULAR[0])  # compiles
    backend.finish_compiling()
    clusters = Clusters(backend)
    if "sizes" in options.parts:
        record["sizes"] = list(by_size(clusters, options.sizes, rate))
        save(options.json, record)
    if "sweeps" in options.parts:
        print("time of a pass against the radius of the spheres", flush=True)
        radii, edges = (RADII[::3], EDGES[2::4]) if options.quick else (RADII, EDGES)
        record["radii"] = sweep(clusters, largest, CUBES[1::2] if options.quick else CUBES, radii)
        print("time of a pass against the edge of the cubes", flush=True)
        chosen = sorted({1, max(1, largest // 2), largest})
        record["edges"] = [row for n in chosen for row in sweep(clusters, n, edges, (SPHERES,))]
        save(options.json, record)
    good = True
    if "precision" in options.parts:
        record["formation"] = formation(clusters, largest)
        save(options.json, record)
        mixed, single = (abs(row["difference"]) for row in record["formation"][1:])
        good = mixed < MIXED and single < SINGLE and all(row["converged"] for row in record["formation"])
        print(f"target: mixed below {MIXED:g}, single below {SINGLE:g} kcal/mol: {'met' if good else 'NOT met'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
