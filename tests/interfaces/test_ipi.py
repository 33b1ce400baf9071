"""The client of the i-PI protocol, driven by ASE's server and by i-PI itself."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from ase import Atoms, units
from ase.calculators.socketio import SocketIOCalculator

import cuanto
from cuanto import Molecule
from cuanto.errors import InputError
from cuanto.interfaces.ipi import serve

XYZ = "3\nname=water\nO 0 0 0.1\nH 0 0.75 -0.5\nH 0 -0.75 -0.5\n"
WATER = Molecule.from_string(XYZ)
IPI_INPUT = """<simulation verbosity='quiet'>
  <output prefix='run'>
    <properties stride='1' filename='out'> [ step, conserved, potential ] </properties>
  </output>
  <total_steps> 3 </total_steps>
  <ffsocket name='driver' mode='unix'> <address> {name} </address> <latency> 0.001 </latency> </ffsocket>
  <system>
    <initialize nbeads='1'> <file mode='xyz' units='angstrom'> water.xyz </file>
      <cell> [90, 0, 0, 0, 90, 0, 0, 0, 90] </cell>
      <velocities mode='thermal' units='kelvin'> 100 </velocities>
    </initialize>
    <forces> <force forcefield='driver'/> </forces>
    <motion mode='dynamics'> <dynamics mode='nve'> <timestep units='femtosecond'> 0.25 </timestep> </dynamics> </motion>
    <ensemble> <temperature units='kelvin'> 100 </temperature> </ensemble>
  </system>
</simulation>
"""


def test_a_server_of_ase_gets_energies_and_forces() -> None:
    name = f"cuanto_test_{os.getpid()}"
    counts: list[int] = []
    with SocketIOCalculator(unixsocket=name) as calculator:
        atoms = Atoms("OH2", WATER.R_ax * units.Bohr, calculator=calculator)
        client = threading.Thread(target=lambda: counts.append(serve(WATER, "pm6", unix=name, backend="cpu")))
        client.start()
        forces = atoms.get_forces()
        atoms.positions[1, 1] += 0.01
        energy = atoms.get_potential_energy()
    client.join(30)
    assert counts == [2]
    alone = cuanto.gradient(WATER, "pm6", backend="cpu")
    assert np.allclose(forces, -alone.gradient * units.Hartree / units.Bohr, atol=1e-5)
    moved = Molecule(WATER.symbols, atoms.positions / units.Bohr)
    assert energy == pytest.approx(cuanto.energy(moved, "pm6", backend="cpu").energy * units.Hartree, abs=1e-6)


def test_ipi_itself_drives_a_trajectory(tmp_path: Path) -> None:
    pytest.importorskip("ipi")
    name = f"cuanto_ipi_{os.getpid()}"
    (tmp_path / "water.xyz").write_text(XYZ)
    (tmp_path / "input.xml").write_text(IPI_INPUT.format(name=name))
    ipi = Path(sys.executable).with_name("i-pi")
    with subprocess.Popen([ipi, "input.xml"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as server:
        socket = Path(f"/tmp/ipi_{name}")
        for _ in range(600):
            if socket.exists() or server.poll() is not None:
                break
            threading.Event().wait(0.05)
        count = serve(WATER, "pm6", unix=name, backend="cpu")
        output = server.communicate(timeout=60)[0].decode()
    assert server.returncode == 0, output
    rows = np.loadtxt(tmp_path / "run.out")
    assert count == 4
    assert rows[0, 2] == pytest.approx(
        cuanto.energy(WATER, "pm6", backend="cpu").energy, rel=1e-8
    )  # i-PI prints nine digits
    assert np.ptp(rows[:, 1]) < 1e-5


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # ASE leaves the socket open
def test_a_missing_server_is_a_clear_error() -> None:
    with pytest.raises(InputError, match="no server answers"):
        serve(WATER, "pm6", unix="cuanto_nobody_is_here")
    with pytest.raises(InputError, match="port 9"):
        serve(WATER, "pm6", port=9)
