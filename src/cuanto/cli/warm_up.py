"""``cuanto doctor --warm-up``: compile the kernels of a method ahead of time, and time a calculation in a new process.

The kernels are those that an energy and a gradient of a sample molecule request, a chain of atoms of the chosen
elements. This is meant for container images, and for machines on which the first user should not wait.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import TYPE_CHECKING, Any

from rich.console import Console

from cuanto.errors import ConvergenceWarning, CuantoError
from cuanto.workers import python_environment

if TYPE_CHECKING:
    from cuanto.system import Molecule

METHOD, BASIS, ELEMENTS = "b3lyp", "def2-svp", ("H", "C", "N", "O")
SAMPLE_ATOMS = 8
"""Atoms in the chain (more if more elements are given): enough work that specialised kernels are compiled."""
STRETCH = 1.1
"""Scale of the distances between neighbours in the chain, relative to the sum of their radii."""
NEW_PROCESS = """
import json, sys, time
start = time.perf_counter()
import cuanto
symbols, R_ax, method, basis, backend, options = json.loads(sys.argv[1])
cuanto.energy(cuanto.Molecule(symbols, R_ax), method, basis, backend=backend, **options)
print(time.perf_counter() - start)
"""


@dataclass(frozen=True)
class WarmUp:
    """Seconds of compiling and of the first calculation in a new process; files in the cache before and after."""

    compiling: float
    first_calculation: float
    kernels_before: int
    kernels_after: int


def print_warm_up(given: Sequence[str], backend: str) -> None:
    """Warm up for a method, a basis and elements, `given` in this order, and print the times; defaults replace
    what is missing."""
    method, basis, *elements = (*given, *(METHOD, BASIS)[len(given) :])
    chain, console = sample(elements or ELEMENTS), Console(highlight=False)
    console.print(f"compiling for {method}/{basis} with {', '.join(dict.fromkeys(chain.symbols))} ...")
    done = warm_up(chain, method, basis, backend)
    made = done.kernels_after - done.kernels_before
    console.print(
        f"compiled in {done.compiling:.1f} s: {made} new files in the cache of kernels, {done.kernels_after} in all"
    )
    console.print(f"a first calculation takes {done.first_calculation:.1f} s in a new process now", soft_wrap=True)


def sample(elements: Sequence[str]) -> Molecule:
    """The sample molecule: a zigzag chain of atoms that repeats the elements in turn."""
    import numpy as np

    from cuanto.grid.rules import bragg_slater_radii
    from cuanto.system import Molecule
    from cuanto.system.elements import ATOMIC_NUMBERS, symbol_of

    symbols = [symbol_of(label) for label in islice(cycle(elements), max(SAMPLE_ATOMS, len(elements)))]
    radii = bragg_slater_radii()[[ATOMIC_NUMBERS[symbol] for symbol in symbols]]
    steps = STRETCH * (radii[1:] + radii[:-1])
    R_ax = np.zeros((len(symbols), 3))
    R_ax[1:, 0] = np.cumsum(0.8 * steps)
    R_ax[1::2, 1] = 0.6 * steps.mean()
    return Molecule(symbols, R_ax, name="sample chain")


def warm_up(chain: Molecule, method: str, basis: str, backend: str) -> WarmUp:
    """Compute a gradient of the chain, wait for all kernels, and time an energy in a new process."""
    import cuanto
    from cuanto.backends.base import get_backend
    from cuanto.backends.cache import files
    from cuanto.methods import SEMIEMPIRICAL

    semiempirical = method.lower().removeprefix("u") in SEMIEMPIRICAL
    few_iterations: dict[str, Any] = {} if semiempirical else {"max_iterations": 2}
    before, begin = len(files()), time.perf_counter()
    keywords = few_iterations | ({} if semiempirical else {"unconverged_gradient": True})
    given_basis = None if semiempirical else basis
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        cuanto.gradient(chain, method, given_basis, backend=backend, **keywords)
    for name in {get_backend(backend).name, "cpu"}:
        get_backend(name).finish_compiling()
    compiling = time.perf_counter() - begin
    request = json.dumps([chain.symbols, chain.R_ax.tolist(), method, given_basis, backend, few_iterations])
    done = subprocess.run(
        [sys.executable, "-c", NEW_PROCESS, request],
        capture_output=True,
        text=True,
        env=python_environment(),
    )
    if done.returncode != 0:
        raise CuantoError(f"the calculation in a new process failed: {done.stderr.strip()[-300:]}")
    return WarmUp(compiling, float(done.stdout.split()[-1]), before, len(files()))
