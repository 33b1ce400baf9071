"""The 22 molecules of a thesis on RI-J with generated kernels (UNAM 2021): energies, and where the time of J goes.

`scf.py --thesis` writes them for a backend. Table 6.7 of the thesis profiles J on a GPU: the metric's factorisation
once, then in every cycle the fit vector x_Q = sum_pq (pq|Q) D_pq, the solve V x' = x, and J_pq = sum_Q (pq|Q) x'_Q. The
thesis recomputes integrals in every cycle, as part of the fit vector; here the memory plan decides whether they are
computed once, or whether the J engine sums over them directly. The same three steps are timed with the final density
and multiplied by the number of builds in the SCF.
"""

from __future__ import annotations

import argparse
import csv
from typing import Any

from common import ROOT, geometry
from scf_systems import System, calculation, compare, reference_energy

import cuanto
from cuanto.coulomb.fitting import FittedJK
from cuanto.coulomb.metric import FittingMetric
from cuanto.integrals import eri_2c
from cuanto.log import Timings

THESIS = ROOT / "benchmarks" / "data" / "esqueda_2021.tsv"
STEPS = ("fit vector", "solve", "J from fit")


def thesis_rows() -> list[dict[str, str]]:
    """Values printed in the thesis, by molecule."""
    lines = [line for line in THESIS.read_text().splitlines() if not line.startswith("#")]
    return list(csv.DictReader(lines, delimiter="\t"))


def run_thesis(options: argparse.Namespace, backend: Any) -> dict[str, Any]:
    """Energies and profiles of all molecules."""
    molecules = []
    for row in thesis_rows():
        molecules.append(run_molecule(row["molecule"], options, backend))
        if not options.no_profile:
            show(molecules[-1], row)
    return {"method": "RI-RHF/cc-pVDZ", "molecules": molecules}


def run_molecule(name: str, options: argparse.Namespace, backend: Any) -> dict[str, Any]:
    """Compute the energy, then profile J of its density."""
    print(f"{name}:", flush=True)
    molecule = cuanto.Molecule.from_xyz(geometry(name))
    basis, aux = cuanto.Basis("cc-pvdz", molecule), cuanto.Basis("cc-pvdz-jkfit", molecule)
    result = calculation(molecule, basis, aux, backend)()
    found: dict[str, Any] = {"molecule": name, "functions": basis.nbf, "auxiliary": aux.nbf}
    found |= {"energy": result.energy, "iterations": result.iterations, "converged": result.converged}
    found["troubles"] = [] if result.converged else ["did not converge"]
    compare(found, "PySCF", reference_energy(System(name, geometry(name), "cc-pvdz", "cc-pvdz-jkfit")))
    for trouble in found["troubles"]:
        print(f"  *** {trouble} ***", flush=True)
    if not options.no_profile:
        builds = result.iterations + 1  # one more for the guess
        found["j"] = profile_j(basis, aux, result.state.D_spq, backend, builds, options.repeat)
    return found


def profile_j(
    basis: cuanto.Basis, aux: cuanto.Basis, D_spq: Any, backend: Any, builds: int, repeat: int
) -> dict[str, Any]:
    """Seconds of one-time work, of the steps of one build (best of several), and of J in a whole SCF."""
    builder = FittedJK(basis, aux, backend=backend, kind="j")
    builder(D_spq, want_k=False)
    backend.finish_compiling()
    plan, runs = builder.plan.mode, []
    for _ in range(max(repeat, 1)):
        del builder  # freed before the next one is made
        timings = Timings(synchronize=backend.synchronize)
        with timings.measure("metric"):
            metric = FittingMetric(eri_2c(aux, backend=backend), backend)
        with timings.measure("setup"):
            builder = FittedJK(basis, aux, backend=backend, kind="j")
        with timings.measure("fit vector"):
            x_sP = builder.tensor.fit(D_spq)
        with timings.measure("J from fit"):
            builder.tensor.potential(x_sP)
        with timings.measure("solve"):
            metric.solve(x_sP)
        for step in ("fit vector", "J from fit"):  # each includes half of a solve
            timings.seconds[step] -= 0.5 * timings.seconds["solve"]
        runs.append(timings.seconds)
    best = {name: min(run[name] for run in runs) for name in runs[0]}
    best["integrals"] = max(best["setup"] - best["metric"], 0.0)
    total = best["setup"] + builds * sum(best[step] for step in STEPS)
    return {**best, "plan": plan, "builds": builds, "total": total}


def shares(j: dict[str, Any]) -> tuple[float, float, float]:
    """Per cent of fit vector (integrals included), solve and J, as in Table 6.7: without the metric."""
    parts = [j["integrals"] + j["builds"] * j["fit vector"], j["builds"] * j["solve"], j["builds"] * j["J from fit"]]
    fit, solve, potential = (100.0 * part / sum(parts) for part in parts)
    return fit, solve, potential


def show(found: dict[str, Any], thesis: dict[str, str]) -> None:
    """Print our values and those of the thesis."""
    j = found["j"]
    fit, solve, potential = shares(j)
    steps = " ".join(f"{step} {1e3 * j[step]:.3f}" for step in STEPS)
    print(
        f"  {found['iterations']} iterations; J ({j['plan']}): metric {j['metric']:.4f} s, "
        f"integrals {j['integrals']:.4f} s, {steps} ms; {j['builds']} builds {j['total']:.4f} s = "
        f"{fit:.1f} + {solve:.1f} + {potential:.1f} %",
        flush=True,
    )
    shown = " + ".join(thesis[key] for key in ("fit_vector", "solve", "j_from_fit"))
    print(f"  thesis, K20c: {thesis['j_gpu']} s = {shown} %, metric {thesis['metric_gpu']} s", flush=True)
