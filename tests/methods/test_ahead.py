"""Kernels are requested before the first launch, and no general kernel that is launched is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

import cuanto
from cuanto.backends.base import Launch, Program
from cuanto.backends.cpu.backend import CpuBackend, CpuProgram
from cuanto.backends.simt.backend import SimtBackend, SimtProgram
from cuanto.kernels.text import Source

SPECIAL = ("coulomb_", "overlap_", "kinetic_", "dipole_", "nuclear_", "j_0", "j_1", "j_2", "digest", "group_")
"""Beginnings of names of kernels that are compiled later: those of classes of integrals and their stand-ins."""


class Watched(SimtBackend):
    """Remembers the kernels that were requested before the first launch, and those that were launched."""

    def __init__(self) -> None:
        super().__init__()
        self.requested: set[str] = set()
        self.launched: set[str] = set()

    def compile(self, source: Source, later: bool = False) -> SimtProgram:
        if not self.launched:
            self.requested.add(source.entry)
        return super().compile(source, later)

    def launch(self, program: Program, items: int, arguments: Mapping[str, Any], scratch: int = 0) -> None:
        self.launched.add(program.source.entry)
        super().launch(program, items, arguments, scratch)


class WatchedHost(CpuBackend):
    """The same on the CPU."""

    def __init__(self) -> None:
        super().__init__(threads=1)
        self.requested: set[str] = set()
        self.launched: set[str] = set()

    def compile(self, source: Source, later: bool = False) -> CpuProgram:
        if not self.launched:
            self.requested.add(source.entry)
        return super().compile(source, later)

    def launch_all(self, launches: Sequence[Launch]) -> None:
        self.launched |= {one.program.source.entry for one in launches}
        super().launch_all(launches)


@pytest.mark.parametrize(("method", "fitting"), [("b3lyp", "jk"), ("upbe", "j"), ("hf", "none")])
def test_kernels_of_the_cpu_are_requested_first(method: str, fitting: str) -> None:
    """All of them, and none that is not needed, except for direct J and K where integrals turn out to be stored."""
    backend = WatchedHost()
    hydrogen = cuanto.Molecule(["H", "H"], [[0, 0, 0], [0, 0, 1.4]])
    auxiliary = {} if fitting == "none" else {"auxbasis": "def2-universal-jkfit"}
    options = {"fitting": fitting, "max_iterations": 2, **auxiliary, **({} if method == "hf" else {"grid": "coarse"})}
    cuanto.energy(hydrogen, method, "sto-3g", backend=backend, **options)
    assert not {name for name in backend.launched - backend.requested if not name.startswith(SPECIAL)}
    assert backend.requested - backend.launched <= {"table_kernel", "matrices_list", "digest"}


@pytest.mark.parametrize(("method", "fitting"), [("lda", "j"), ("hf", "none")])
def test_general_kernels_are_requested_first(method: str, fitting: str) -> None:
    backend = Watched()
    hydrogen = cuanto.Molecule(["H", "H"], [[0, 0, 0], [0, 0, 1.4]])
    auxiliary = {"auxbasis": "def2-universal-jkfit"} if fitting == "j" else {}
    options = {"fitting": fitting, "max_iterations": 2, **auxiliary, **({} if method == "hf" else {"grid": "coarse"})}
    cuanto.energy(hydrogen, method, "sto-3g", backend=backend, **options)
    missing = {name for name in backend.launched - backend.requested if not name.startswith(SPECIAL)}
    assert not missing
