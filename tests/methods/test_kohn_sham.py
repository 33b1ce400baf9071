"""Whole Kohn-Sham calculations: the energies of the references, on their grids; derivatives, restart, dispersion."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cuanto
from cuanto.backends.base import get_backend
from cuanto.cli.main import run as command
from cuanto.errors import InputError
from cuanto.grid import GridSettings
from cuanto.methods import Calculation, Context, Request
from cuanto.methods.context import builders_for, core_hamiltonian, make_terms
from cuanto.methods.model import Model
from cuanto.options import ScfOptions
from cuanto.scf.checkpoint import Checkpoint, read_checkpoint
from cuanto.scf.loop import Density, fock
from cuanto.terms import Dispersion
from sample import EVERY_CASE, sample
from scf_cases import DATA, WATER, basis, molecule, oracle, records, water
from tolerances import ENERGY_GRID, FINITE_DIFFERENCE

ELECTRONS = 1e-6
"""Relative tolerance of the number of electrons."""
FILES = ("dft_def2", "lda_dzvp_water", "open_shell")
ROWS = [r for file in FILES for r in records(file) if "functional" in r and r["fitting"].startswith("none")]
SMALL = [r for r in ROWS if r["nbf"] <= 50 and r["grid"]["lebedev"] <= 590]
COUNTED: dict[str, Any] = json.loads((DATA / "grid_electrons.json").read_text())
"""Electrons that PySCF integrates for a water cluster on a grid of 75 shells of 302 points."""


def electrons_on_the_grid(given: dict[str, Any]) -> float:
    """Number of electrons that PySCF integrates on the same grid (it may be off by more than 1e-6); NaN if unknown."""
    same = given["functional"] == COUNTED["functional"] and given["grid"]["lebedev"] == COUNTED["grid"][1]
    return float(COUNTED["electrons"].get(given["molecule"], np.nan) if same else np.nan)


LARGER = [r for r in ROWS if r not in SMALL and (r["nbf"] <= 130 or electrons_on_the_grid(r) > 0)]
"""Larger cases; tools/compare_references.py has still larger ones."""


def run(given: dict[str, Any], backend: str = "cpu") -> Any:
    mol = molecule(given["molecule"])
    orbital = basis(given["basis"], mol, spherical=not given["cartesian"])
    grid = (given["grid"]["radial"], given["grid"]["lebedev"])
    name = ("u" if given["method"] == "UKS" else "") + given["functional"].lower()
    return cuanto.energy(mol, name, orbital, fitting="none", backend=backend, grid=grid)


def electrons(found: Any) -> float:
    (number,) = [m[1] for note in found.notes if (m := re.match(r"grid: .*integrates to ([0-9.]+) ", note))]
    return float(number)


def title(given: dict[str, Any]) -> str:
    return f"{given['molecule']}-{given['functional']}-{given['basis']}-{given['grid']['lebedev']}"


@pytest.mark.parametrize("given", sample(SMALL, 2), ids=title)
def test_references(given: dict[str, Any]) -> None:
    found = run(given)
    assert found.converged
    assert abs(found.energy - given["energy"]) < ENERGY_GRID
    assert np.abs(found.dipole_debye - given["dipole_debye"]).max() < 1e-4
    assert electrons(found) == pytest.approx(found.molecule.nelectron, rel=ELECTRONS)


@pytest.mark.parametrize("name", ["water_05", "water_07", "water_08"][: 3 if EVERY_CASE else 1])
def test_a_small_grid_counts_electrons_as_it_does_for_pyscf(name: str) -> None:
    (given,) = [r for r in ROWS if r["molecule"] == name and r["functional"] == "LDA"]
    found, theirs = run(given), electrons_on_the_grid(given)
    assert abs(theirs / found.molecule.nelectron - 1.0) > ELECTRONS  # PySCF has the same error of the grid
    assert electrons(found) == pytest.approx(theirs, rel=0.02 * ELECTRONS)  # notes have six decimals
    assert abs(found.energy - given["energy"]) < ENERGY_GRID


@pytest.mark.gpu
@pytest.mark.parametrize("given", LARGER, ids=title)
def test_larger_references_on_a_gpu(given: dict[str, Any]) -> None:
    found = run(given, "cuda")
    assert found.converged
    assert abs(found.energy - given["energy"]) < ENERGY_GRID
    theirs = electrons_on_the_grid(given)
    assert electrons(found) == pytest.approx(found.molecule.nelectron if np.isnan(theirs) else theirs, rel=ELECTRONS)


def test_every_step_after_the_guess_is_extrapolated() -> None:
    (given,) = [r for r in SMALL if r["molecule"] == "NO2" and r["functional"] == "PBE" and r["basis"] == "cc-pvdz"]
    found = run(given)
    steps = [iteration.step for iteration in found.history]
    assert steps[0] == "guess" and all(step.startswith("diis") for step in steps[1:])
    assert found.iterations <= given["niter"] + 1


@pytest.mark.parametrize("name", ["pbe", "b3lyp", "tpss", "cam-b3lyp"])
def test_fitting_and_pseudodiagonalisation_change_little(name: str) -> None:
    mol, orbital = water()
    common: dict[str, Any] = {"backend": "cpu", "grid": "coarse"}
    exact = cuanto.energy(mol, name, orbital, fitting="none", **common)
    fitted = cuanto.energy(mol, name, orbital, auxbasis=basis("cc-pvdz-jkfit", mol), **common)
    rotated = cuanto.energy(mol, name, orbital, fitting="none", diagonaliser="pseudo", **common)
    assert exact.converged and fitted.converged and rotated.converged
    assert abs(exact.energy - fitted.energy) < 2e-4
    assert abs(exact.energy - rotated.energy) < 1e-9
    assert fitted.fitting == ("j" if name in ("pbe", "tpss") else "jk")


@pytest.mark.parametrize(
    ("name", "method", "theirs", "orbital"),
    [
        ("water_01", "cam-b3lyp", "camb3lyp", "cc-pvdz"),
        ("water_01", "wb97x", "wb97x", "6-31g"),
        ("CH3", "cam-b3lyp", "camb3lyp", "6-31gs"),
    ],
)
def test_range_separation_against_pyscf(name: str, method: str, theirs: str, orbital: str) -> None:
    """Whole calculations on the same grid, closed shells and an open one."""
    from pyscf import dft

    mol = molecule(name)
    shells = basis(orbital, mol)
    kind = dft.RKS if mol.multiplicity == 1 else dft.UKS
    peer = kind(oracle(mol, shells), xc=theirs)
    peer.grids.atom_grid, peer.grids.prune, peer.conv_tol = (50, 110), None, 1e-10
    mine = cuanto.energy(mol, method, shells, fitting="none", backend="cpu", grid=(50, 110))
    expected = peer.kernel()
    assert mine.converged and peer.converged
    assert abs(mine.energy - expected) < ENERGY_GRID


def test_an_unrestricted_calculation_continues_from_its_checkpoint(tmp_path: Path) -> None:
    mol = molecule("CH3")
    orbital, path = basis("sto-3g", mol), tmp_path / "a.h5"
    common: dict[str, Any] = {"fitting": "none", "backend": "cpu", "grid": "coarse"}
    whole = cuanto.energy(mol, "b3lyp", orbital, **common)
    keep = Checkpoint(path, mol, orbital, "b3lyp", get_backend("cpu"))
    stopped = cuanto.energy(mol, "b3lyp", orbital, max_iterations=4, on_iteration=keep, **common)
    found = read_checkpoint(path)
    assert not stopped.converged and not found.converged
    assert (found.method, found.energy, found.iteration) == ("b3lyp", stopped.energy, 4)
    assert found.orbitals.n_sm.sum(axis=1).tolist() == [5.0, 4.0]
    again = cuanto.energy(mol, "b3lyp", orbital, guess=path, **common)
    assert again.converged and again.iterations < whole.iterations
    assert abs(again.energy - whole.energy) < 1e-8 and again.s_squared == pytest.approx(whole.s_squared, abs=1e-6)


def test_names() -> None:
    singlet, doublet = molecule("water_01"), molecule("CH3")
    assert Model.of("PBE", singlet).spins == 1 and Model.of("pbe", doublet).spins == 2
    assert Model.of("upbe", singlet).spins == 2
    assert Model.of("revPBE", singlet).functional.name == "revpbe"
    assert Model.of("b3lyp-d3bj", singlet).dispersion == "d3bj"
    with pytest.raises(InputError, match="unknown functional 'rpbe'"):  # the r of rpbe does not mean restricted PBE
        Model.of("rpbe", singlet)
    with pytest.raises(InputError, match="did you mean"):
        cuanto.energy(singlet, "b3lip")


def test_a_coarse_grid_gives_a_warning() -> None:
    mol, orbital = water()
    found = cuanto.energy(mol, "pbe", orbital, fitting="none", backend="cpu", grid=(10, 14))
    (warning,) = [note for note in found.notes if note.startswith("WARNING: the grid is too coarse")]
    assert f"integrates to {electrons(found):.5f} electrons, not 10" in warning


def kohn_sham(name: str) -> Calculation:
    """Water in a small basis on a small grid."""
    mol, orbital = water(name="6-31g")
    given: dict[str, Any] = {"fitting": "none", "storage": "direct", "grid": (15, 50)}
    context = Context.of(Request.of(mol, name, orbital, backend="cpu", **given))
    core = core_hamiltonian(context)
    return Calculation(context, core, make_terms(context, core, builders_for(context)))


@pytest.mark.parametrize("name", ["svwn5", "upbe", "tpss", "b3lyp", "um06-2x", "ucam-b3lyp", "wb97x"])
def test_fock_is_the_derivative_of_the_energy(name: str) -> None:
    """Tests the sum of all terms, for every family and both spin cases."""
    problem = kohn_sham(name).problem()
    frame = problem.frame
    spins = 2 if name.startswith("u") else 1
    rng, X_pm = np.random.default_rng(5), np.asarray(frame.X_pm)
    C_spi = np.stack([X_pm @ np.linalg.qr(rng.normal(size=(X_pm.shape[1], 5)))[0] for _ in range(spins)])
    C_spi *= np.sqrt(2.0) if spins == 1 else 1.0
    change_spi = np.stack([X_pm @ rng.normal(size=(X_pm.shape[1], 5)) for _ in range(spins)])

    def at(step: float) -> tuple[float, Any, Any]:
        C = C_spi + step * change_spi
        D = C @ C.transpose(0, 2, 1)
        energies, F_spq = fock(problem, Density(D, C))
        return float(sum(energies)), F_spq, D

    h = 1e-4
    (above, _, D_above), (below, _, D_below), (_, F_spq, _) = at(h), at(-h), at(0.0)
    slope, expected = (above - below) / (2 * h), float((F_spq * (D_above - D_below)).sum()) / (2 * h)
    assert abs(slope - expected) < FINITE_DIFFERENCE * max(1.0, abs(expected))


def test_the_first_step_does_not_overshoot() -> None:
    """The energy decreases from the first iteration on, and does not depend on the start."""
    mol, orbital = water()
    energies: list[float] = []
    common: dict[str, Any] = {"fitting": "none", "backend": "cpu", "grid": "coarse"}
    found = cuanto.energy(mol, "pbe", orbital, on_iteration=lambda s: energies.append(s.energy), **common)
    assert energies[1] < energies[0] + 0.01 and energies[0] - energies[-1] < 0.05
    other = cuanto.energy(mol, "pbe", orbital, guess="core", **common)
    assert abs(found.energy - other.energy) < 1e-8
    again = cuanto.energy(mol, "pbe", orbital, guess=found, **common)
    assert again.iterations <= 3 and abs(again.energy - found.energy) < 1e-9


def test_without_a_functional_there_is_no_grid() -> None:
    """Hartree-Fock with dispersion: no tolerance is loosened for a grid, and none is reported."""
    mol, orbital = water()
    common: dict[str, Any] = {"fitting": "none", "backend": "cpu", "precision": "single", "max_iterations": 1}
    found = cuanto.energy(mol, "hf-d3bj", orbital, **common)
    assert found.grid is None and "grid" not in found.keywords
    request = Request.of(mol, "hf-d3bj", orbital, backend="cpu", fitting="none", precision="single")
    core: Any = None
    assert Calculation(Context.of(request), core, ()).options == ScfOptions()


def test_settings_of_a_grid_are_keywords() -> None:
    mol, orbital = water()
    settings = GridSettings(level=(30, 110), partition="stratmann")
    found = cuanto.energy(mol, "pbe", orbital, fitting="none", backend="cpu", grid=settings, max_iterations=1)
    assert found.keywords["grid"] == {"level": (30, 110), "partition": "stratmann"}
    assert GridSettings.of(json.loads(json.dumps(found.keywords["grid"]))) == settings
    assert GridSettings.of("coarse").plain == "coarse"
    with pytest.raises(InputError, match="unknown grid setting 'rule'; choose one of level, radial"):
        GridSettings.of({"rule": "becke"})


def exit_status(*arguments: str) -> Any:
    with pytest.raises(SystemExit) as leaving:
        command(arguments)
    return leaving.value.code


@pytest.fixture
def xyz(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("CUANTO_BASIS_PATH", str(DATA / "basis"))
    (tmp_path / "water.xyz").write_text(WATER)
    return str(tmp_path / "water.xyz")


def test_a_job_has_a_table_of_the_grid(xyz: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Every setting on the page about Kohn-Sham, all different from the defaults."""
    job = Path(xyz).with_name("job.toml")
    lines = 'molecule = "water.xyz"\nmethod = "pbe"\nbasis = "sto-3g"\nfitting = "none"\nbackend = "cpu"\n[grid]\n'
    changed = {"level": (20, 50), "radial": "mura-knowles", "partition": "stratmann", "pruning": "nwchem"}
    changed |= {"cube_edge": 3.0, "sphere_fraction": 0.4, "threshold": 1e-10, "store": "keep", "density": "matrix"}
    changed |= {"response": False}
    table = "".join(f"{name} = {json.dumps(value)}\n" for name, value in changed.items())
    page = (DATA.parents[1] / "docs" / "methods" / "dft.md").read_text().split("[grid]\n")[1].split("```")[0]
    assert [line.split()[0] for line in page.splitlines()] == list(changed)
    job.write_text(lines + table)
    assert not exit_status("run", str(job))
    printed = capsys.readouterr().out
    mol = cuanto.Molecule.from_xyz(xyz)
    found = cuanto.energy(mol, "pbe", "sto-3g", fitting="none", backend="cpu", grid=GridSettings(**changed))
    assert found.keywords["grid"] == changed
    (note,) = [note for note in found.notes if note.startswith("grid:")]
    assert note in printed and f"{found.energy:.6f}" in printed
    job.write_text(lines + table.replace("stratmann", "strat"))
    assert exit_status("run", str(job)) == 2
    assert "job.toml: grid: unknown partition 'strat': choose becke" in capsys.readouterr().err


def test_dispersion_is_added(xyz: str, capsys: pytest.CaptureFixture[str]) -> None:
    mol = cuanto.Molecule.from_xyz(xyz)
    common: dict[str, Any] = {"fitting": "none", "backend": "cpu", "grid": "coarse"}
    plain = cuanto.energy(mol, "b3lyp", "sto-3g", **common)
    for kind in ("d3bj", "d4"):
        expected = Dispersion(mol, "b3lyp", kind).energy
        found = cuanto.energy(mol, f"B3LYP-{kind.upper()}", "sto-3g", **common)
        assert expected < -1e-5 and found.energies["dispersion"] == expected
        assert found.energy == pytest.approx(plain.energy + expected, abs=1e-9)
    hartree_fock = cuanto.energy(mol, "hf", "sto-3g", fitting="none", backend="cpu").energy
    found = cuanto.energy(mol, "hf-d3bj", "sto-3g", fitting="none", backend="cpu")
    assert found.energy == pytest.approx(hartree_fock + Dispersion(mol, "hf", "d3bj").energy, abs=1e-9)
    given = ("-b", "sto-3g", "--fitting", "none", "--backend", "cpu", "--grid", "coarse")
    assert not exit_status("energy", xyz, "-m", "b3lyp-d3bj", *given)
    assert "dispersion" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("method", "line"),
    [
        ("b3lip", r"did you mean b3lyp"),
        ("m06-2x-d3bj", r"d3bj has no parameters for 'm06-2x'"),
        ("pbe-d5", r"unknown method 'pbe-d5'"),
    ],
)
def test_bad_requests_are_one_line(method: str, line: str, xyz: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_status("energy", xyz, "-m", method, "-b", "sto-3g", "--fitting", "none", "--backend", "cpu") == 2
    err = capsys.readouterr().err
    assert err.startswith("cuanto: ") and re.search(line, err) and err.count("\n") == 1
