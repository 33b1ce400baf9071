"""A calculation uses one kernel for each class of integrals, whatever is compiled while it runs."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cuanto
from cuanto.backends.cpu import backend as cpu
from cuanto.backends.cpu import compiler
from cuanto.backends.cpu.backend import CpuBackend, CpuProgram
from cuanto.backends.cpu.compiler import compile_library
from cuanto.coulomb import j_steps
from cuanto.errors import CompilerError
from paths import DATA

HYDROGEN = "3\n\nH 0 0 0\nH 0.9 0 0\nH 0 1.1 0\n"
FITTED = {"fitting": "jk", "auxbasis": "def2-universal-jkfit"}
DIRECT = {"fitting": "none", "storage": "direct"}


def is_special(entry: str) -> bool:
    """Whether a kernel is that of a class: `coulomb_ps_s_hgp_lane_double_1` or `j_1_2_1_double`."""
    return "_lane_" in entry or entry.removeprefix("j_")[:1].isdecimal()


class Held:
    """Compilers that hold back kernels of the second tier until `gate` is set; `used`: kernels by their names.

    Kernels that were held back by an earlier gate are not compiled any more.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.gates, self.used = [threading.Event()], Counter[str]()
        variant, address = CpuProgram.variant, CpuBackend.address

        def compile_held(source: Any, patience: compiler.Patience | None = None) -> Path:
            gate = self.gate
            if is_special(source.entry) and not (gate.wait(60) and gate is self.gate):
                raise CompilerError("held back")
            return compile_library(source, patience)

        def used_variant(program: CpuProgram, arguments: Any) -> Any:
            self.used[program.source.entry] += 1
            return variant(program, arguments)

        def used_address(backend: CpuBackend, target: Any) -> int:
            if isinstance(target, CpuProgram):
                self.used[target.source.entry] += 1
            return address(backend, target)

        monkeypatch.setattr(compiler, "compile_library", compile_held)
        monkeypatch.setattr(CpuProgram, "variant", used_variant)
        monkeypatch.setattr(CpuBackend, "address", used_address)

    @property
    def gate(self) -> threading.Event:
        """The gate in use."""
        return self.gates[-1]

    @property
    def special(self) -> set[str]:
        """Specialised kernels that were used."""
        return set(filter(is_special, self.used))


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[Held]:
    monkeypatch.setenv("CUANTO_BASIS_PATH", str(DATA / "basis"))
    monkeypatch.setattr(cpu, "WORTH_COMPILING", 0.0)
    monkeypatch.setattr(j_steps, "WORTH_COMPILING", {"cpu": 0})
    holding = Held(monkeypatch)
    yield holding
    for gate in holding.gates:
        gate.set()


@pytest.mark.parametrize("options", [FITTED, DIRECT], ids=["fitted", "direct"])
def test_cold_calculations_give_the_same_bits(
    options: dict[str, Any], held: Held, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three calculations begin with empty caches. Nothing is compiled during the first two; everything is compiled
    during the third, which does not use it. The next one does."""
    molecule = cuanto.Molecule.from_string(HYDROGEN, charge=1)

    def run(backend: CpuBackend, on_iteration: Callable[[Any], None] | None = None) -> bytes:
        held.used.clear()
        found = cuanto.energy(molecule, "hf", "def2-svp", backend=backend, on_iteration=on_iteration, **options)
        return found.state.eps_sm.tobytes() + np.float64(found.energy).tobytes()

    found = set()
    for k in range(3):
        folder = tmp_path / str(k)
        folder.mkdir()
        monkeypatch.setenv("CUANTO_CACHE", str(folder))
        backend = CpuBackend(threads=2)
        held.gates.append(threading.Event())

        def finish(state: Any, k: int = k, backend: CpuBackend = backend) -> None:
            if k == 2 and state.iteration == 2:
                held.gate.set()
                backend.finish_compiling()

        found.add(run(backend, finish))
        assert not held.special
    assert len(found) == 1
    backend.finish_compiling()
    warm = {run(backend), run(backend)}
    assert len(held.special) > 5 and len(warm) == 1
