"""Checkpoints: round trip, no partially written files, and restart of a killed calculation."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import cuanto
from cuanto import Basis
from cuanto.backends import get_backend
from cuanto.errors import InputError, MissingDependencyError
from cuanto.methods import Result
from cuanto.scf import checkpoint as module
from cuanto.scf.checkpoint import Checkpoint, read_checkpoint
from cuanto.scf.state import State
from fitting_cases import DATA, molecule


@pytest.fixture(autouse=True)
def basis_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUANTO_BASIS_PATH", str(DATA / "basis"))


def run(name: str, method: str, path: Path | None = None, **options: Any) -> Result:
    mol = molecule(name)
    basis = Basis("cc-pvdz", mol)
    keep = None if path is None else Checkpoint(path, mol, basis, method, get_backend("cpu"))
    return cuanto.energy(mol, method, basis, fitting="jk", auxbasis="cc-pvdz-jkfit", backend="cpu",
                         on_iteration=keep, **options)  # fmt: skip


@pytest.mark.parametrize(("name", "method"), [("water_01", "rhf"), ("CH3", "uhf"), ("CH3", "rohf")])
def test_a_restart_is_the_same_calculation(name: str, method: str, tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    first = run(name, method, path)
    found = read_checkpoint(path)
    assert [file.name for file in tmp_path.iterdir()] == ["a.h5"]
    assert found.converged and found.method == method
    assert found.energy == first.energy and found.iteration == first.iterations
    assert found.molecule.symbols == first.molecule.symbols
    assert np.array_equal(found.molecule.R_ax, first.molecule.R_ax)
    assert found.molecule.multiplicity == first.molecule.multiplicity
    again = run(name, method, guess=found.orbitals)
    assert again.converged
    assert again.energy == pytest.approx(first.energy, abs=1e-8)
    if method != "rohf":  # its first orbitals are those of the mean of both Fock matrices
        assert again.iterations < first.iterations


def test_isotopes_are_kept(tmp_path: Path) -> None:
    heavy, path = molecule("water_01").with_masses([None, 2.014, None]), tmp_path / "a.h5"
    keep = Checkpoint(path, heavy, Basis("sto-3g", heavy), "hf", get_backend("cpu"))
    cuanto.energy(heavy, "hf", "sto-3g", backend="cpu", on_iteration=keep)
    assert read_checkpoint(path).molecule.nuclei.masses.tolist() == [15.999, 2.014, 1.008]


def test_the_basis_is_read_as_it_was(tmp_path: Path) -> None:
    result = run("water_01", "rhf", tmp_path / "a.h5", max_iterations=2)
    found = read_checkpoint(tmp_path / "a.h5")
    assert not found.converged and found.gradient == result.state.gradient
    mine, theirs = found.orbitals.basis, result.basis
    assert mine.name == theirs.name and mine.symbols == theirs.symbols and mine.nbf == theirs.nbf
    assert np.array_equal(mine.R_ax, theirs.R_ax)
    for one, other in zip(mine.shells, theirs.shells, strict=True):
        assert (one.atom, one.l, one.pure) == (other.atom, other.l, other.pure)
        assert np.array_equal(one.exponents, other.exponents)
        assert np.array_equal(one.coefficients, other.coefficients)
    occupied = result.occupations[0] > 0
    assert np.array_equal(found.orbitals.C_spm, result.coefficients[:, :, occupied])


def test_guess_for_another_basis(tmp_path: Path) -> None:
    run("water_01", "rhf", tmp_path / "a.h5")
    water, options = molecule("water_01"), {"fitting": "none", "backend": "cpu"}
    scratch = cuanto.energy(water, "rhf", "def2-svp", guess="core", **options)
    result = cuanto.energy(water, "rhf", "def2-svp", guess=read_checkpoint(tmp_path / "a.h5").orbitals, **options)
    assert result.converged and result.iterations < scratch.iterations
    assert result.energy == pytest.approx(scratch.energy, abs=1e-7)


def a_state(path: Path) -> tuple[Checkpoint, State]:
    result = run("water_01", "rhf", max_iterations=1)
    return Checkpoint(path, result.molecule, result.basis, "rhf", get_backend("cpu")), result.state


def test_a_failed_write_leaves_the_last_iteration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.h5"
    keep, state = a_state(path)
    keep(state)
    before = path.read_bytes()

    def full_disk(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full_disk)
        with pytest.raises(InputError, match=r"cannot write the checkpoint .*No space left"):
            keep(replace(state, iteration=2))
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["a.h5"]
    keep(replace(state, iteration=3))
    assert read_checkpoint(path).iteration == 3


def test_a_damaged_file_is_refused_by_its_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The digest is computed in chunks."""
    monkeypatch.setattr(module, "CHUNK_BYTES", 1000)
    path = tmp_path / "a.h5"
    keep, state = a_state(path)
    keep(state)
    assert read_checkpoint(path).iteration == state.iteration
    whole = path.read_bytes()
    for bad in (whole[:-1], whole + b"x", whole[:20], whole[:3000] + bytes([whole[3000] ^ 1]) + whole[3001:]):
        path.write_bytes(bad)
        with pytest.raises(InputError, match="or it is damaged"):
            read_checkpoint(path)


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no checkpoint"):
        read_checkpoint(tmp_path / "none.h5")
    (tmp_path / "text.h5").write_text("not HDF5")
    with pytest.raises(InputError, match="cannot read the checkpoint") as refused:
        read_checkpoint(tmp_path / "text.h5")
    assert "\n" not in str(refused.value)
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["x"] = 1.0
    with pytest.raises(InputError, match="is not a checkpoint of this version"):
        read_checkpoint(tmp_path / "other.h5")


def test_missing_h5py_is_an_error_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'cuanto\[hdf5\]'"):
        a_state(tmp_path / "a.h5")


SLOW = """
import sys, time
sys.path.insert(0, "tests/support")
import cuanto
from cuanto import Basis
from cuanto.backends import get_backend
from cuanto.scf.checkpoint import Checkpoint
from fitting_cases import molecule
mol = molecule("CH3")
basis = Basis("cc-pvdz", mol)
keep = Checkpoint(sys.argv[1], mol, basis, "uhf", get_backend("cpu"))
def watch(state):
    keep(state)
    print(state.iteration, flush=True)
    time.sleep(0.2 if state.iteration < 5 else 60)
cuanto.energy(mol, "uhf", basis, fitting="jk", auxbasis="cc-pvdz-jkfit", backend="cpu", on_iteration=watch)
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_killed_and_restarted(how: signal.Signals, tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    arguments = [sys.executable, "-c", SLOW, str(path)]
    process = subprocess.Popen(
        arguments, cwd=DATA.parent.parent, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        deadline = time.monotonic() + 120
        while (line := process.stdout.readline()).strip() != "5":
            assert line and time.monotonic() < deadline
        os.kill(process.pid, how)
        process.wait(30)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode != 0
    found = read_checkpoint(path)
    assert found.iteration == 5 and not found.converged
    scratch = run("CH3", "uhf")
    again = run("CH3", "uhf", guess=found.orbitals)
    assert again.converged and again.iterations < scratch.iterations
    assert again.energy == pytest.approx(scratch.energy, abs=1e-8)
