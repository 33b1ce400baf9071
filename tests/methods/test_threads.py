"""Results have the same bits whatever the number of threads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

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

ROUNDING = 1e-11
"""Difference of energies by general and by specialised kernels, Hartree."""
PROCESS = f"""
import cuanto
from cuanto.backends import get_backend

molecule = cuanto.Molecule.from_string({METHANOL!r})
options = {{"auxbasis": "def2-universal-jkfit", "fitting": "jk", "grid": "coarse", "backend": "cpu"}}
print(cuanto.energy(molecule, "b3lyp", "def2-svp", **options).energy.hex())
get_backend("cpu").finish_compiling()
"""
"""A program that prints all digits of an energy and waits for kernels that are compiled for later calculations."""


@pytest.mark.parametrize("method", ["pbe", "b3lyp"])
def test_bits_do_not_depend_on_threads(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only table kernels are used: specialised ones, which later runs would use, add in another order."""
    monkeypatch.setenv("CUANTO_BASIS_PATH", str(DATA / "basis"))
    molecule, found = cuanto.Molecule.from_string(METHANOL), set()
    for threads in (1, 2, 3, 2):
        one = cuanto.gradient(molecule, method, "def2-svp", grid="coarse", backend=CpuBackend(threads, "table"))
        found.add((one.energy, one.orbital_energies.tobytes(), one.gradient.tobytes()))
    assert len(found) == 1


def test_processes_give_the_same_bits_once_all_kernels_are_compiled(tmp_path: Path) -> None:
    """The first process, which fills the cache, also uses general kernels; its last digit differs at times."""
    found = []
    for threads in ("2", "1", "2"):
        given = {"CUANTO_CACHE": str(tmp_path), "CUANTO_BASIS_PATH": str(DATA / "basis"), "CUANTO_THREADS": threads}
        command = [sys.executable, "-c", PROCESS]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **given})
        assert done.returncode == 0, done.stderr
        found.append(done.stdout.strip())
    first, one, two = found
    assert one == two
    assert float.fromhex(first) == pytest.approx(float.fromhex(two), abs=ROUNDING)
