"""Results have the same bits whatever the number of threads."""

from __future__ import annotations

import pytest

import cuanto
from cuanto.backends.cpu.backend import CpuBackend
from paths import DATA

METHANOL = """6

C -0.0467  0.6632  0.0000
O -0.0467 -0.7561  0.0000
H -1.0871  0.9759  0.0000
H  0.4386  1.0714  0.8876
H  0.4386  1.0714 -0.8876
H  0.8610 -1.0567  0.0000
"""


@pytest.mark.parametrize("method", ["pbe", "b3lyp"])
def test_bits_do_not_depend_on_threads(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only table kernels are used: specialised ones that replace them during a run would add in another order."""
    monkeypatch.setenv("CUANTO_BASIS_PATH", str(DATA / "basis"))
    molecule, found = cuanto.Molecule.from_string(METHANOL), set()
    for threads in (1, 2, 3, 2):
        one = cuanto.gradient(molecule, method, "def2-svp", grid="coarse", backend=CpuBackend(threads, "table"))
        found.add((one.energy, one.orbital_energies.tobytes(), one.gradient.tobytes()))
    assert len(found) == 1
