"""``cuanto doctor --warm-up``: compile the kernels of a method ahead of time, and time a calculation in a new process.

The kernels are those that calculations of a sample molecule request, a chain of atoms of the chosen elements: energies
and gradients with and without an unpaired electron, and an energy without density fitting. This is meant for container
images, and for machines on which the first user should not wait.
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

from cuanto.cli.lines import print_text
from cuanto.errors import ConvergenceWarning, CuantoError
from cuanto.workers import python_environment

if TYPE_CHECKING:
    from cuanto.system import Molecule

METHOD, BASIS, ELEMENTS = "b3lyp", "def2-svp", ("H", "C", "N", "O")
SAMPLE_ATOMS = 8
"""Atoms in the chain (more if more elements are given): enough work that specialised kernels are compiled."""
FEW_ITERATIONS = 2
"""Iterations of the SCF of samples with a basis; later ones need the dipole moment in addition."""
STRETCH = 1.1
"""Scale of the distances between neighbours in the chain, relative to the sum of their radii."""
NEW_PROCESS = """
import json, sys, time
start = time.perf_counter()
import cuanto
symbols, R_ax, charge, method, basis, backend, options = json.loads(sys.argv[1])
cuanto.energy(cuanto.Molecule(symbols, R_ax, charge), method, basis, backend=backend, **options)
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
    elements, console = elements or list(ELEMENTS), Console(highlight=False)
    level = method if is_semiempirical(method) else f"{method}/{basis}"
    print_text(console, f"compiling for {level} with {', '.join(dict.fromkeys(sample(elements).symbols))} ...")
    done = warm_up(elements, method, basis, backend)
    made = done.kernels_after - done.kernels_before
    counted = f"{made} new files in the cache of kernels, {done.kernels_after} in all"
    print_text(console, f"compiled in {done.compiling:.1f} s: {counted}")
    iterations = "" if is_semiempirical(method) else f", {FEW_ITERATIONS} iterations"
    what = f"an energy of a chain of {len(sample(elements).symbols)} atoms{iterations}"
    print_text(console, f"in a new process, with its start, {what}, takes {done.first_calculation:.1f} s now")


def is_semiempirical(method: str) -> bool:
    """Whether a method has no basis."""
    from cuanto.methods import SEMIEMPIRICAL

    return method.lower().removeprefix("u") in SEMIEMPIRICAL


def sample(elements: Sequence[str], unpaired: int = 0) -> Molecule:
    """The sample molecule: a zigzag chain of atoms that repeats the elements in turn, a cation if that is necessary for
    0 or 1 `unpaired` electrons."""
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
    charge = (sum(ATOMIC_NUMBERS[symbol] for symbol in symbols) + unpaired) % 2
    return Molecule(symbols, R_ax, charge, 1 + unpaired, name="sample chain")


def warm_up(elements: Sequence[str], method: str, basis: str, backend: str) -> WarmUp:
    """Compute energies and gradients of chains, wait for all kernels, and time an energy in a new process."""
    import cuanto
    from cuanto.backends.base import get_backend
    from cuanto.backends.cache import files

    has_basis = not is_semiempirical(method)
    few: dict[str, Any] = {"max_iterations": FEW_ITERATIONS} if has_basis else {}
    chain, before, begin = sample(elements), len(files()), time.perf_counter()
    common = (method, basis if has_basis else None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        if has_basis:
            for molecule in (chain, sample(elements, unpaired=1)):
                found = cuanto.gradient(molecule, *common, backend=backend, unconverged_gradient=True, **few)
                assert len(found.dipole) == 3
            cuanto.energy(chain, *common, backend=backend, fitting="none", **few)
        else:
            cuanto.gradient(chain, *common, backend=backend)
    for name in {get_backend(backend).name, "cpu"}:
        get_backend(name).finish_compiling()
    compiling = time.perf_counter() - begin
    request = json.dumps([chain.symbols, chain.R_ax.tolist(), chain.charge, *common, backend, few])
    done = subprocess.run(
        [sys.executable, "-c", NEW_PROCESS, request],
        capture_output=True,
        text=True,
        env=python_environment(),
    )
    if done.returncode != 0:
        raise CuantoError(f"the calculation in a new process failed: {done.stderr.strip()[-300:]}")
    return WarmUp(compiling, float(done.stdout.split()[-1]), before, len(files()))
