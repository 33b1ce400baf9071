"""The journal of an optimisation."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from cuanto.basis import Basis
from cuanto.motion.record import Recorder, calculation_key
from cuanto.motion.surface import Surface
from cuanto.system import Molecule

WATER = Molecule.from_string("3\n\nO 0 0 0\nH 0.96 0 0\nH -0.24 0.93 0\n")


def test_known_evaluations_are_not_computed_again(tmp_path: Path) -> None:
    path, surface = tmp_path / "a.journal", Surface(WATER, "pm6")
    first = Recorder(path, "key")
    energy, gradient = first.evaluate(surface, WATER.R_ax)
    with open(path, "ab") as file:
        file.write(b'{"key": "key", "number": 2, "ener')  # as after a crash in the middle of a line
    again, untouched = Recorder(path, "key"), Surface(WATER, "pm6")
    assert again.known == 1
    energy_again, gradient_again = again.evaluate(untouched, WATER.R_ax)
    assert energy_again == energy and (gradient_again == gradient).all()
    assert untouched.result is None and again.replayed == 1


def test_other_positions_end_the_replay(tmp_path: Path) -> None:
    path, surface = tmp_path / "a.journal", Surface(WATER, "pm6")
    first = Recorder(path, "key")
    for shift in (0.0, 0.01, 0.02):
        first.evaluate(surface, WATER.R_ax + shift)
    again = Recorder(path, "key")
    again.evaluate(surface, WATER.R_ax)
    again.evaluate(surface, WATER.R_ax + 0.5)
    assert again.replayed == 1
    assert Recorder(path, "key").known == 2  # the new second evaluation replaces the old ones after the first


def test_another_calculation_has_its_own_lines(tmp_path: Path) -> None:
    path, surface = tmp_path / "a.journal", Surface(WATER, "pm6")
    one, other = Recorder(path, "one"), Recorder(path, "other")
    one.evaluate(surface, WATER.R_ax)
    other.evaluate(surface, WATER.R_ax)
    other.finish()
    assert Recorder(path, "other").known == 0 and Recorder(path, "one").known == 1
    one.finish()
    assert not path.exists()


def test_keys_depend_on_what_matters() -> None:
    def key(molecule: Molecule = WATER, method: str = "hf", basis: str = "sto-3g", **options: object) -> str:
        return calculation_key(molecule, method, basis, options, {"ts": False})

    moved = Molecule(WATER.symbols, WATER.R_ax + 1e-12)
    others = [key(moved), key(method="pbe"), key(basis="6-31g"), key(fitting="none")]
    assert len({key(), *others}) == 5
    assert key(backend="cpu") == key() == key(method="HF")
    assert key(field=np.zeros(3)) == key(field=[0.0, 0.0, 0.0]) != key()


def test_keys_depend_on_core_potentials() -> None:
    gold = Molecule(["Au"], [[0, 0, 0.0]], 1)
    basis = Basis("def2-svp", gold)
    bare = Basis.from_shells(basis.shells, gold.R_ax, symbols=gold.symbols)
    assert basis.core_potentials != bare.core_potentials
    assert calculation_key(gold, "hf", basis, {}) != calculation_key(gold, "hf", bare, {})
