"""Kernels are requested before the first launch, and no general kernel that is launched is missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

import cuanto
from cuanto.backends.base import Program
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


@pytest.mark.parametrize(("method", "fitting"), [("lda", "j"), ("hf", "none")])
def test_general_kernels_are_requested_first(method: str, fitting: str) -> None:
    backend = Watched()
    hydrogen = cuanto.Molecule(["H", "H"], [[0, 0, 0], [0, 0, 1.4]])
    auxiliary = {"auxbasis": "def2-universal-jkfit"} if fitting == "j" else {}
    options = {"fitting": fitting, "max_iterations": 2, **auxiliary, **({} if method == "hf" else {"grid": "coarse"})}
    cuanto.energy(hydrogen, method, "sto-3g", backend=backend, **options)
    missing = {name for name in backend.launched - backend.requested if not name.startswith(SPECIAL)}
    assert not missing
