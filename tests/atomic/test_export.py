"""Export of basis sets: files can be read by us and by the Basis Set Exchange, and used in molecules; plots."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path

import basis_set_exchange as bse
import numpy as np
import pytest
from basis_set_exchange import readers, validator

import cuanto
from cuanto.atomic import Atom, AtomBasis, AtomResult, Nucleus, Occupation, ScfSettings, solve
from cuanto.atomic.export import Contraction, basis_text, contracted_table, format_of, uncontracted_table
from cuanto.atomic.input import AtomInput
from cuanto.atomic.job import element_job, element_table, run_energy
from cuanto.atomic.optimise import Evaluation
from cuanto.atomic.plot import plot_convergence, plot_spinors, radial_functions, require_picture
from cuanto.atomic.report import result_dict
from cuanto.basis.formats import parse_basis
from cuanto.basis.table import ElementTable
from cuanto.errors import InputError, MissingDependencyError
from paths import ROOT

SUFFIXES = (".json", ".nw", ".gbs")
NEON = "s(1:14)p(1:9)"
PARAMETERS = "0.1,2.4,5.0,1.4"


@pytest.fixture(scope="module")
def neon() -> AtomInput:
    """A small set, point nucleus, non-relativistic: what molecular programs compute."""
    settings = {"relativistic": False}
    return element_job("Ne", nucleus="point", parameters=PARAMETERS, ranges=NEON, settings=settings)


@pytest.fixture(scope="module")
def orbitals(neon: AtomInput) -> AtomResult:
    result = run_energy(neon, "cpu")
    assert result.converged
    return result


def write(folder: Path, suffix: str, *tables: ElementTable) -> Path:
    path = folder / f"made-here{suffix}"
    path.write_text(basis_text(path, tables, "made-here", "a set\nof two lines"))
    return path


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_format_is_read_back_to_the_last_digit(tmp_path: Path, suffix: str, orbitals: AtomResult) -> None:
    helium = uncontracted_table("He", element_job("He").atom().basis)
    neon = contracted_table("Ne", orbitals, diffuse=2)
    text = write(tmp_path, suffix, helium, neon).read_text()
    found = parse_basis(text)
    assert list(found) == ["He", "Ne"]
    for table in (helium, neon):
        np.testing.assert_allclose(numbers(found[table.symbol]), numbers(table), rtol=1e-14)


def numbers(table: ElementTable) -> list[tuple[float, ...]]:
    """Momentum, exponent and coefficient of all shells, in a canonical order."""
    return sorted(
        (shell.l, a, c)
        for shell in table.shells
        for a, row in zip(shell.exponents, shell.coefficients, strict=True)
        for c in row
    )


# a warning of the Basis Set Exchange package
@pytest.mark.filterwarnings("ignore:jsonschema.RefResolver:DeprecationWarning")
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_exchange_reads_them_too(tmp_path: Path, suffix: str, orbitals: AtomResult) -> None:
    text = write(tmp_path, suffix, contracted_table("Ne", orbitals, diffuse=1)).read_text()
    if suffix == ".json":
        data = json.loads(text)
        validator.validate_data("complete", data)
        assert "Ne" in bse.write_formatted_basis_str(data, "nwchem")
    else:
        name = {".nw": "nwchem", ".gbs": "gaussian94"}[suffix]
        data = readers.read_formatted_basis_str(text, name)
    shells = data["elements"]["10"]["electron_shells"]
    assert sum(len(shell["coefficients"]) for shell in shells if shell["angular_momentum"] == [0]) == 3
    assert sum(len(shell["coefficients"]) for shell in shells if shell["angular_momentum"] == [1]) == 2


@pytest.mark.parametrize("diffuse", [None, 0, 2])
def test_a_molecular_calculation_with_an_exported_set_has_the_energy_of_the_atom(
    tmp_path: Path, diffuse: int | None, neon: AtomInput, orbitals: AtomResult
) -> None:
    """The atomic and the molecular program agree, also for sets contracted to the orbitals of the atom."""
    table = (
        uncontracted_table("Ne", neon.atom().basis) if diffuse is None else contracted_table("Ne", orbitals, diffuse)
    )
    path = write(tmp_path, ".nw", table)
    molecule = cuanto.Molecule.from_string("1\n\nNe 0 0 0\n")
    result = cuanto.energy(molecule, "rhf", str(path), fitting="none", backend="cpu")
    assert result.converged and result.energy == pytest.approx(orbitals.energy, abs=1e-8)


def test_a_set_for_relativity_gives_the_atom_its_energy_with_relativity(tmp_path: Path, neon: AtomInput) -> None:
    """The contraction to X2C orbitals loses nothing with X2C; that without relativity loses 0.011 Hartree in neon."""
    assert neon.nucleus.model == "point"
    molecule = cuanto.Molecule.from_string("1\n\nNe 0 0 0\n")
    options = {"relativity": "x2c", "speed_of_light": neon.settings.c, "fitting": "none", "backend": "cpu"}
    found = []
    for contraction in (None, Contraction(x2c=True), Contraction(diffuse=0, x2c=True), Contraction(diffuse=0)):
        path = write(tmp_path, ".nw", element_table("Ne", neon, contraction, "cpu"))
        found.append(cuanto.energy(molecule, "rhf", str(path), **options).energy)
    assert found[1:3] == pytest.approx([found[0]] * 2, abs=1e-8)
    assert 5e-3 < found[3] - found[0] < 2e-2


def test_open_shells_of_a_set_for_relativity() -> None:
    """Electrons of all symmetries with the same l are added, and unoccupied angular momenta have primitives only."""
    job = element_job("B", parameters=PARAMETERS, ranges="s(1:8)p(1:4)d(2:2)")
    table = element_table("B", job, Contraction(x2c=True))
    assert [(shell.l, len(shell.coefficients[0])) for shell in table.shells] == [(0, 2), (0, 1), (1, 1), (1, 1), (2, 1)]


@pytest.mark.parametrize("symmetries", [2, 3])
def test_a_contraction_keeps_orbitals_with_the_lower_j_only(symmetries: int) -> None:
    exponents = [[0.5, 2.0, 8.0, 40.0], [0.2, 1.0, 4.0], [0.2, 1.0, 4.0]][:symmetries]
    held = Occupation((2, 0, 0)[:symmetries], (False, True, False)[:symmetries], ((1.0,),))
    atom = Atom(Nucleus(5), AtomBasis(tuple(map(np.array, exponents))), held)
    result = solve(atom, ScfSettings(relativistic=False), "cpu")
    shells = contracted_table("B", result, diffuse=0).shells
    assert [(shell.l, len(shell.coefficients[0])) for shell in shells] == [(0, 2), (1, 1)]


@pytest.mark.parametrize(("diffuse", "added"), [(0, 0), (9, 9), (10, 9), (17, 9)])
def test_diffuse_functions_are_at_most_all(diffuse: int, added: int, orbitals: AtomResult) -> None:
    shells = [shell for shell in contracted_table("Ne", orbitals, diffuse).shells if shell.l == 1]
    assert len(shells) == 1 + added


def test_sets_that_cannot_be_exported(orbitals: AtomResult) -> None:
    relativistic = solve(orbitals.atom, ScfSettings(), "cpu")
    with pytest.raises(InputError, match="non-relativistic orbitals"):
        contracted_table("Ne", relativistic)
    with pytest.raises(InputError, match=r"ends in \.json, \.nw"):
        format_of("basis.txt")


def test_result_for_programs(neon: AtomInput, orbitals: AtomResult) -> None:
    found = json.loads(json.dumps(result_dict(neon, orbitals), allow_nan=False))
    assert found["energy"] == orbitals.energy and found["converged"] is True and found["c"] is None
    assert found["iterations"] == orbitals.iterations
    assert [spinor["label"] for spinor in found["spinors"]] == ["1s", "2s", "2p-", "2p+"]
    assert found["parts"]["one_electron"] + found["parts"]["two_electron"] == pytest.approx(found["energy"])
    assert found["basis"]["parameters"] == [0.1, 2.4, 5.0, 1.4] and len(found["basis"]["exponents"]["S+"]) == 14


# -------------------------------------------------------------------------------------------------- pictures


@pytest.fixture(scope="module")
def spinors() -> AtomResult:
    job = element_job("Ne", parameters=PARAMETERS, ranges=NEON)
    assert isinstance(job.nucleus, Nucleus)
    return run_energy(job, "cpu")


def test_radial_functions_are_normalised_and_orthogonal(spinors: AtomResult) -> None:
    r_g = np.linspace(1e-7, 1.0, 40001) ** 2 * 25
    functions = []
    for spinor, position in zip(spinors.spinors, (0, 0, 1, 2), strict=True):
        functions.append(radial_functions(spinor, spinors.atom.basis.exponents[position], r_g))
    for (P, Q), spinor in zip(functions, spinors.spinors, strict=True):
        assert np.trapezoid(P**2 + Q**2, r_g) == pytest.approx(1, abs=1e-6)
        assert np.trapezoid((P**2 + Q**2) * r_g, r_g) == pytest.approx(spinor.r, rel=1e-6)
    (P1, Q1), (P2, Q2) = functions[:2]
    assert np.trapezoid(P1 * P2 + Q1 * Q2, r_g) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_pictures_are_written(tmp_path: Path, suffix: str, spinors: AtomResult, orbitals: AtomResult) -> None:
    evaluations = [Evaluation(1, (1.0,), -2.8), Evaluation(2, (1.1,), None, "refused"), Evaluation(3, (0.9,), -2.9)]
    plot_spinors(tmp_path / f"spinors{suffix}", spinors, "Ne")
    plot_spinors(tmp_path / f"orbitals{suffix}", orbitals, "Ne")
    plot_convergence(tmp_path / f"way{suffix}", evaluations, "Ne")
    magic = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}[suffix]
    files = sorted(tmp_path.iterdir())
    assert len(files) == 3 and all(path.read_bytes().startswith(magic) for path in files)


def test_pictures_that_cannot_be_made(tmp_path: Path, spinors: AtomResult, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"a picture ends in \.png"):
        require_picture("way.doc")
    with pytest.raises(InputError, match="cannot write"):
        plot_spinors(tmp_path / "no" / "folder.png", spinors)
    with pytest.raises(InputError, match="without a single energy"):
        plot_convergence(tmp_path / "way.png", [Evaluation(1, (1.0,), None)])
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingDependencyError, match="pip install matplotlib"):
        require_picture("way.png")


def test_the_example_agrees_with_itself() -> None:
    example = runpy.run_path(str(ROOT / "examples" / "03_atom.py"))
    as_atom, as_molecule = example["main"]("He")
    assert as_atom == pytest.approx(as_molecule, abs=1e-8)
    assert as_atom == pytest.approx(-2.861680, abs=1e-5)  # ten functions, not far from the limit
