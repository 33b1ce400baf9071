"""Many molecules at once, and the command line."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import cuanto
from cuanto import Molecule, energies
from cuanto.backends.base import get_backend
from cuanto.cli.main import app
from cuanto.errors import InputError
from cuanto.methods.semiempirical import Semiempirical
from cuanto.methods.semiempirical_batch import semiempirical_energies
from cuanto.semiempirical import batch
from cuanto.semiempirical.constants import HARTREE_IN_KCAL
from cuanto.units import BOHR_IN_ANGSTROM
from nddo_cases import METHODS, molecule, molecule_of, reference, run, values


def displaced_copies(name: str, count: int) -> list[Molecule]:
    mol, rng = molecule(name), np.random.default_rng(5)
    moved = [mol.R_ax + rng.normal(scale=0.05, size=mol.R_ax.shape) for _ in range(count)]
    return [Molecule(mol.symbols, R_ax, mol.charge, mol.multiplicity) for R_ax in moved]


@cache
def one_by_one() -> list[tuple[Molecule, Any]]:
    """Molecules of several compositions, closed and open shells, in any order, with their results."""
    mixed = [
        *displaced_copies("glycine", 2),
        *displaced_copies("CH3", 2),
        molecule("C2H2"),
        *displaced_copies("CH3SH", 2),
        *displaced_copies("glycine", 1),
    ]
    return [(mol, run(mol, "pm6", gradient_tolerance=1e-6)) for mol in mixed]


@pytest.mark.parametrize("backend", ["cpu", "simt"])
def test_a_batch_is_its_molecules_one_by_one(backend: str) -> None:
    molecules, results = zip(*one_by_one(), strict=True)
    found = energies(molecules, "pm6", backend=backend, workers=0, gradient=True, gradient_tolerance=1e-6)
    for alone, row in zip(results, found, strict=True):
        assert row.converged
        assert abs(row.energy - alone.energy) < 1e-9
        assert abs(row.heat_of_formation - alone.heat_of_formation) < 1e-6
        assert np.abs(row.charges - alone.charges).max() < 1e-5
        assert row.dipole is not None and np.abs(row.dipole - alone.dipole).max() < 1e-5
        assert row.homo == pytest.approx(max(alone.homo), abs=1e-5)
        assert row.lumo == pytest.approx(min(alone.lumo), abs=1e-5)
        assert row.gradient is not None and np.abs(row.gradient - alone.gradient).max() < 1e-5


def test_gradients_of_a_batch_are_converged_like_single_ones() -> None:
    molecules = displaced_copies("glycine", 4)
    found = energies(molecules, "am1", backend="cpu", workers=0, gradient=True)
    for mol, row in zip(molecules, found, strict=True):
        alone = cuanto.gradient(mol, "am1", backend="cpu").gradient
        assert row.gradient is not None and np.abs(row.gradient - alone).max() < 1e-7


@pytest.mark.parametrize("method", METHODS)
def test_heats_of_a_batch(method: str) -> None:
    names = ["phenol", "NH4+", "O2", "SF6"]
    found = energies([molecule(name) for name in names], method, backend="cpu", workers=0)
    for name, row in zip(names, found, strict=True):
        assert row.heat_of_formation == pytest.approx(values(name, method)["heat_of_formation_kcal_mol"], abs=1e-4)


def test_unconverged_molecules_use_the_common_loop() -> None:
    """Hydrogen fluoride at 2 A, which does not converge with the others."""
    hard = molecule_of(reference()["scf_stress_cases"][0])
    easy = Molecule(["H", "F"], [[0, 0, 0], [0, 0, 1.75]])
    found = energies([easy, hard, easy], "pm6", backend="cpu", workers=0)
    assert all(row.converged for row in found)
    assert found[1].heat_of_formation == pytest.approx(77.0095398, abs=1e-4)


@pytest.mark.parametrize(("symbols", "distance"), [("LiLi", 4.0), ("NN", 4.8), ("FF", 4.8), ("CO", 3.8)])
def test_stretched_molecules_have_the_states_of_single_calculations(symbols: str, distance: float) -> None:
    """Alone from neutral atoms, Li2 would end 0.17 Hartree lower than with another one."""
    names = re.findall("[A-Z][a-z]?", symbols)
    both = [Molecule(names, [[0.0, 0.0, 0.0], [0.0, 0.0, R / BOHR_IN_ANGSTROM]]) for R in (distance, distance + 0.01)]
    for mol, row in zip(both, energies(both, "pm6", backend="cpu", workers=0), strict=True):
        assert row.converged and row.energy == pytest.approx(run(mol, "pm6").energy, abs=1e-8)


@pytest.mark.parametrize("name", ["C2H2", "C2H4", "O2"])
def test_open_shells_of_a_batch_have_the_states_of_single_calculations(name: str) -> None:
    mol = molecule(name)
    both = [Molecule(mol.symbols, scale * mol.R_ax, multiplicity=3) for scale in (1.0, 1.01)]
    for alone, row in zip(both, energies(both, "am1", backend="cpu", workers=0), strict=True):
        assert row.converged and row.energy == pytest.approx(run(alone, "am1").energy, abs=1e-7)


def test_ordinary_closed_shells_are_computed_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Computing them one by one takes about ten times as long."""
    monkeypatch.setattr(Semiempirical, "states", None)
    for name in ("glycine", "phenol", "C2H2", "CH3SH"):
        found = semiempirical_energies(displaced_copies(name, 4), "pm6", get_backend("cpu"))
        assert all(result.converged for result in found)


def test_states_that_are_not_aufbau_use_the_common_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same molecule in a stationary state 203 kcal/mol too high, whose lone pairs lie above occupied orbitals."""
    ended: list[batch.Converged] = []
    solve = batch.solve

    def solve_and_record(*given: Any) -> batch.Converged:
        ended.append(solve(*given))
        return ended[-1]

    def swap_homo_and_lumo(self: Any, current: Any) -> Any:
        return np.linalg.eigh(self.history.extrapolate())[1][..., [0, 1, 2, 4, 3]]

    monkeypatch.setattr(batch, "solve", solve_and_record)
    monkeypatch.setattr(batch._BatchScf, "advance", swap_homo_and_lumo)
    record = reference()["scf_stress_cases"][0]
    (row,) = semiempirical_energies([molecule_of(record)], "pm6", get_backend("cpu"))
    assert ended[0].iterations_b[0] < 40 and not ended[0].converged_b[0]
    assert (ended[0].energy_b[0] - row.energy) * HARTREE_IN_KCAL == pytest.approx(203.0426, abs=1e-3)
    assert row.converged
    assert row.heat_of_formation == pytest.approx(record["mopac_heat_of_formation_kcal_mol"], abs=1e-6)


@pytest.mark.parametrize("options", [{"max_iterations": 2}, {"smearing": 0.05}, {"diagonaliser": "sp2"}], ids=str)
def test_options_that_only_single_molecules_have(options: dict[str, Any]) -> None:
    both = displaced_copies("water_01", 2)
    found = semiempirical_energies(both, "pm6", get_backend("cpu"), **options)
    for mol, row in zip(both, found, strict=True):
        alone = run(mol, "pm6", **options)
        assert row.converged == alone.converged and row.iterations == alone.iterations
        assert row.energy == pytest.approx(alone.energy, abs=1e-10)


def test_a_batch_needs_molecules() -> None:
    with pytest.raises(InputError, match="is not a molecule"):
        energies([2], "pm6")  # type: ignore[list-item]
    assert energies([], "pm6", workers=0) == []


def xyz(path: Path, name: str) -> str:
    mol = molecule(name)
    lines = [
        f"{s} {x:.12f} {y:.12f} {z:.12f}" for s, (x, y, z) in zip(mol.symbols, mol.R_ax * 0.52917721092, strict=True)
    ]
    path.write_text(f"{mol.natom}\n\n" + "\n".join(lines) + "\n")
    return str(path)


def test_the_command(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    file = xyz(tmp_path / "m.xyz", "CH3SH")
    done = CliRunner().invoke(app, ["energy", file, "-m", "pm6", "--backend", "cpu", "--json", str(out)])
    assert done.exit_code == 0, done.output
    heat = values("CH3SH", "PM6")["heat_of_formation_kcal_mol"]
    (line,) = [line for line in done.output.splitlines() if "heat of formation" in line]
    assert float(line.split()[-2]) == pytest.approx(heat, abs=1e-4) and line.split()[-1] == "kcal/mol"
    schema = json.loads(out.read_text())
    assert schema["extras"]["cuanto"]["heat_of_formation_kcal_mol"] == pytest.approx(heat, abs=1e-4)
    assert len(schema["extras"]["cuanto"]["charges"]) == 6


def test_options_of_the_command(tmp_path: Path) -> None:
    """MOPAC-compatible overlaps, and purification instead of diagonalisation."""
    out, file = tmp_path / "out.json", xyz(tmp_path / "m.xyz", "HI")
    found = {}
    for option in ("mopac_compatible=true", "mopac_compatible=false", "diagonaliser=sp2"):
        arguments = ["energy", file, "-m", "pm6", "--backend", "cpu", "-o", option, "--json", str(out)]
        done = CliRunner().invoke(app, arguments)
        assert done.exit_code == 0, done.output
        schema = json.loads(out.read_text())
        heat = schema["extras"]["cuanto"]["heat_of_formation_kcal_mol"]
        found[option] = (heat, done.output, schema["keywords"])
    mopac = values("HI", "PM6", "mopac")["heat_of_formation_kcal_mol"]
    exact = values("HI", "PM6")["heat_of_formation_kcal_mol"]
    assert abs(mopac - exact) > 9e-4
    heat, output, keywords = found["mopac_compatible=true"]
    assert heat == pytest.approx(mopac, abs=1e-5) and "overlaps from MOPAC's truncated series" in output
    assert keywords["mopac_compatible"] is True
    heat, output, _ = found["mopac_compatible=false"]
    assert heat == pytest.approx(exact, abs=1e-5) and "truncated series" not in output and "full" in output
    heat, output, keywords = found["diagonaliser=sp2"]
    assert heat == pytest.approx(exact, abs=1e-5) and "diis, sp2" in output and "full" not in output
    assert keywords["diagonaliser"] == "sp2"


def test_the_command_reports_errors(tmp_path: Path) -> None:
    file = xyz(tmp_path / "m.xyz", "water_01")
    few = CliRunner().invoke(app, ["energy", file, "-m", "am1", "--backend", "cpu", "-o", "max_iterations=2"])
    assert few.exit_code == 1 and "NOT converged in 2 iterations" in few.output
    done = CliRunner().invoke(app, ["energy", file, "-m", "pm6", "--molden", str(tmp_path / "x.molden")])
    assert isinstance(done.exception, InputError) and "--molden does not apply to pm6" in str(done.exception)
