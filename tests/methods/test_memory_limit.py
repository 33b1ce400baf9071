"""`max_memory` is respected: peak memory of separate processes and of the pool of a GPU; results do not depend on it.

A process is run twice: the first one compiles what it needs, the second one is measured. On Linux VmHWM is its peak;
`ru_maxrss` would begin with that of the parent.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from functools import cache
from typing import Any

import numpy as np
import pytest

import cuanto
from cuanto import Basis
from cuanto.backends import get_backend
from cuanto.coulomb.fitting import FittedJK
from cuanto.errors import InputError
from cuanto.memory import Budget
from fitting_cases import DATA, molecule, random_orbitals
from sample import EVERY_CASE
from tolerances import CPU_CUDA

ENERGY = 1e-9
"""Tolerance of energies between memory plans, Hartree."""
BUILD = 1e-12
"""Relative tolerance of the energy of one build."""
FORCES = 1e-8
"""Tolerance of forces between memory plans, Hartree/Bohr."""

BUILDER = """
def work(molecule, kind, limit):
    import numpy as np
    from cuanto.coulomb.fitting import FittedJK
    from cuanto.memory import Budget
    basis, aux = cuanto.Basis("cc-pvdz", molecule), cuanto.Basis("cc-pvdz-jkfit", molecule)
    fit = FittedJK(basis, aux, backend="cpu", kind=kind, budget=Budget(get_backend("cpu"), limit))
    C_spi = np.random.default_rng(3).normal(size=(1, basis.nbf, molecule.nelectron // 2)) / np.sqrt(basis.nbf)
    D_spq = C_spi @ C_spi.transpose(0, 2, 1)
    J_spq, K_spq = fit(D_spq, C_spi, True, kind == "jk")
    energy = float((J_spq * D_spq).sum()) - (0.0 if K_spq is None else 0.5 * float((K_spq * D_spq).sum()))
    return {"plan": str(fit.plan), "in_core": fit.plan.in_core, "energy": energy}
"""

CALCULATION = """
def work(molecule, kind, limit):
    options = {"fitting": kind, "auxbasis": "cc-pvdz-jkfit", "max_memory": limit, "max_iterations": MAX_ITERATIONS}
    options["storage"] = "direct"  # stored integrals of exchange would use all memory that is left
    options["grid"] = None if "METHOD" == "rhf" else "coarse"
    result = cuanto.energy(molecule, "METHOD", "cc-pvdz", backend="cpu", energy_tolerance=1e-10, **options)
    found = {"plan": result.notes[0], "energy": result.energy, "iterations": result.iterations}
    return found | {"converged": result.converged}
"""

GRADIENT = """
def work(molecule, kind, limit):
    options = {"fitting": kind, "auxbasis": "cc-pvtz-jkfit", "max_memory": limit, "max_iterations": MAX_ITERATIONS}
    options |= {"storage": "direct", "unconverged_gradient": True, "grid": None if "METHOD" == "rhf" else "coarse"}
    result = cuanto.gradient(molecule, "METHOD", "cc-pvtz", backend="cpu", energy_tolerance=1e-10, **options)
    found = {"plan": result.notes[0], "energy": result.energy, "iterations": result.iterations}
    return found | {"converged": result.converged, "gradient": result.gradient.tolist()}
"""

MAIN = """
import json, resource, sys
import cuanto
from cuanto.backends import get_backend

def peak():
    try:
        with open("/proc/self/status") as file:
            return next(1024 * int(line.split()[1]) for line in file if line.startswith("VmHWM"))
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

found = work(cuanto.Molecule.from_xyz(sys.argv[1]), sys.argv[2], float(sys.argv[3]) or None)
found["peak"] = peak()
get_backend("cpu").finish_compiling()
print(json.dumps(found))
"""


@cache
def measured(
    work: str, name: str, kind: str, limit: float = 0.0, iterations: int = 1, method: str = "rhf"
) -> dict[str, Any]:
    """Result, plan and peak of a process that finds its kernels in the cache, after a first process has compiled
    them."""
    geometry = str(DATA / "geometries" / f"{name}.xyz")
    environment = {**os.environ, "CUANTO_BASIS_PATH": str(DATA / "basis")}
    for count in (1, iterations):
        script = work.replace("MAX_ITERATIONS", str(count)).replace("METHOD", method) + MAIN
        command = [sys.executable, "-c", script, geometry, kind, str(limit)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(
    "kind, share, plan",
    [
        ("jk", 0.9, "blocked: J engine, for K "),
        ("jk", 0.5, "direct: J engine, integrals for K"),
        ("j", 0.5, "direct: J engine, "),
    ],
)
def test_peak_of_a_build(kind: str, share: float, plan: str) -> None:
    # J alone stores less, so that only a larger molecule has mostly integrals in memory.
    name = "alkane_08" if kind == "jk" else "alkane_12"
    whole = measured(BUILDER, name, kind)
    assert whole["plan"].startswith("in-core")
    assert whole["peak"] > whole["in_core"]  # all integrals were in memory
    limit = share * whole["peak"]
    less = measured(BUILDER, name, kind, limit)
    assert less["plan"].startswith(plan)
    assert less["peak"] < limit
    assert less["energy"] == pytest.approx(whole["energy"], rel=BUILD)


@pytest.mark.slow
@pytest.mark.parametrize("kind, name, iterations", [("jk", "alkane_08", 3), ("j", "alkane_12", 1)][: 1 + EVERY_CASE])
def test_half_of_the_memory_has_the_same_energy(kind: str, name: str, iterations: int) -> None:
    """Compared after a few iterations, because they are slow if little is stored."""
    whole = measured(CALCULATION, name, kind, iterations=iterations)
    assert "in-core" in whole["plan"]
    limit = 0.5 * whole["peak"]
    less = measured(CALCULATION, name, kind, limit, iterations)
    assert "direct" in less["plan"] and less["iterations"] == whole["iterations"]
    assert less["peak"] < limit
    assert less["energy"] == pytest.approx(whole["energy"], abs=ENERGY)


@pytest.mark.parametrize("method, kind", [("b3lyp", "jk"), ("rhf", "jk"), ("upbe", "j")][: 3 if EVERY_CASE else 1])
def test_half_of_the_memory_to_convergence(method: str, kind: str) -> None:
    """Eleven H2: few electrons, so that a whole calculation with its gradient does not take long."""
    whole = measured(GRADIENT, "hydrogen_11", kind, iterations=100, method=method)
    assert "in-core" in whole["plan"] and whole["converged"]
    limit = 0.5 * whole["peak"]
    less = measured(GRADIENT, "hydrogen_11", kind, limit, 100, method)
    assert "in-core:" not in less["plan"] and less["converged"] and less["iterations"] == whole["iterations"]
    assert less["peak"] < limit
    assert less["energy"] == pytest.approx(whole["energy"], abs=ENERGY)


@pytest.mark.parametrize("method", ["b3lyp", "rhf"][: 1 + EVERY_CASE])
def test_gradient_with_half_of_the_memory(method: str) -> None:
    """Integrals and coefficients of fitted exchange are computed in passes; the calculations are those of the test
    above."""
    whole = measured(GRADIENT, "hydrogen_11", "jk", iterations=100, method=method)
    assert "in-core" in whole["plan"] and whole["converged"]
    limit = 0.5 * whole["peak"]
    less = measured(GRADIENT, "hydrogen_11", "jk", limit, 100, method)
    assert "in-core:" not in less["plan"] and less["converged"]
    assert less["peak"] < limit
    assert np.abs(np.array(less["gradient"]) - whole["gradient"]).max() < FORCES


# ------------------------------------------------------------------------------------------------- GPU


class Peak:
    """High-water mark of CuPy's pool above what was in use before."""

    def __init__(self) -> None:
        import cupy

        pool = cupy.get_default_memory_pool()
        before = pool.used_bytes()
        self.bytes = 0

        class Hook(cupy.cuda.MemoryHook):  # type: ignore[misc]
            name = "peak"

            def malloc_postprocess(hook, **_: Any) -> None:
                self.bytes = max(self.bytes, pool.used_bytes() - before)

        self.hook = Hook()


@pytest.mark.gpu
@pytest.mark.parametrize("kind, share", [("jk", 0.75), ("jk", 0.45), ("jk", 0.3), ("jk", 0.2), ("j", 0.5)])
def test_peak_of_the_pool(kind: str, share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUANTO_BASIS_PATH", str(DATA / "basis"))
    mol, device = molecule("alkane_12"), get_backend("cuda")
    basis, aux = Basis("cc-pvdz", mol), Basis("cc-pvdz-jkfit", mol)
    C_spi, D_spq = (device.to_device(x) for x in random_orbitals(basis.nbf, mol.nelectron // 2))
    whole = FittedJK(basis, aux, backend=device, kind=kind)
    arguments = (D_spq, C_spi, True, kind == "jk")
    expected = [None if x is None else device.to_host(x) for x in whole(*arguments)]
    limit = share * whole.plan.in_core
    del whole
    peak = Peak()
    with peak.hook:
        less = FittedJK(basis, aux, backend=device, kind=kind, budget=Budget(device, limit))
        found = less(*arguments)
    # If memory is short, a GPU stores each pair once.
    assert (less.plan.mode == "in-core") == (kind == "jk" and share >= 0.45)
    assert 0 < peak.bytes < limit
    for mine, theirs in zip(found, expected, strict=True):
        if theirs is not None:
            assert abs(device.to_host(mine) - theirs).max() < 1e-10 * abs(theirs).max()


@pytest.mark.gpu
def test_energy_with_a_quarter_of_the_device_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUANTO_BASIS_PATH", str(DATA / "basis"))
    mol = molecule("alkane_08")
    in_core = FittedJK(Basis("cc-pvdz", mol), Basis("cc-pvdz-jkfit", mol), backend="cuda").plan.in_core
    options = {"fitting": "jk", "auxbasis": "cc-pvdz-jkfit", "backend": "cuda", "energy_tolerance": 1e-10}
    whole, limit = cuanto.energy(mol, "rhf", "cc-pvdz", **options), 0.25 * in_core
    gc.collect()  # otherwise garbage of `whole` could be freed during the run, and the peak would be too low
    peak = Peak()
    with peak.hook:
        less = cuanto.energy(mol, "rhf", "cc-pvdz", max_memory=limit, **options)
    assert "in-core" in whole.notes[0] and "in-core:" not in less.notes[0]
    assert 0 < peak.bytes < limit
    assert less.energy == pytest.approx(whole.energy, abs=CPU_CUDA)


@pytest.mark.gpu
@pytest.mark.parametrize("fitting", ["jk", "none"])
def test_gradient_with_half_of_the_device_memory(fitting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUANTO_BASIS_PATH", str(DATA / "basis"))
    mol = molecule("alkane_08")
    options: dict[str, Any] = {"fitting": fitting, "backend": "cuda", "gradient_tolerance": 1e-8}
    if fitting == "jk":
        options["auxbasis"] = "cc-pvdz-jkfit"
    peaks, found = [], []
    for share in (None, 0.5):
        gc.collect()  # otherwise garbage of the last run could be freed during this one, and the peak would be too low
        peak = Peak()
        limit = None if share is None else share * peaks[0]
        with peak.hook:
            found.append(cuanto.gradient(mol, "rhf", "cc-pvdz", max_memory=limit, **options).gradient)
        peaks.append(peak.bytes)
    assert 0 < peaks[1] < 0.5 * peaks[0]
    assert np.abs(found[0] - found[1]).max() < FORCES


@pytest.mark.gpu
def test_little_free_memory_on_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other processes hold the rest: the energy is the same, or, below the smallest plan, there is a one-line error."""
    monkeypatch.setenv("CUANTO_BASIS_PATH", str(DATA / "basis"))
    mol, device = molecule("water_06"), get_backend("cuda")
    pool, total = device.xp.get_default_memory_pool(), device.memory()[1]
    options = {"fitting": "jk", "auxbasis": "cc-pvdz-jkfit", "backend": device, "energy_tolerance": 1e-10}
    whole = cuanto.energy(mol, "b3lyp", "cc-pvdz", **options)
    finished = []
    for free in np.geomspace(1e8, 4e9, 8).astype(int).tolist():
        gc.collect()
        device.release_memory()
        limit = pool.used_bytes() + free
        pool.set_limit(size=limit)  # limits this process only; others may use the device
        monkeypatch.setattr(type(device), "memory", lambda _, limit=limit: (limit - pool.used_bytes(), total))
        try:
            less = cuanto.energy(mol, "b3lyp", "cc-pvdz", **options)
        except InputError as error:
            assert "\n" not in str(error) and "MiB" in str(error)
        else:
            assert less.energy == pytest.approx(whole.energy, abs=ENERGY)
            finished.append(free)
        finally:
            pool.set_limit(size=0)
    assert len(finished) >= 4
