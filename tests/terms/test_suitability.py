"""Warnings about sets that lack their core potential or are not contracted for X2C, and the sets that are advised."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import basis_set_exchange as bse
import pytest

import cuanto
from cuanto import Basis, Molecule
from cuanto.backends.base import get_backend
from cuanto.basis import exchange
from cuanto.basis.advice import alternatives, sets_for
from cuanto.basis.shell import Shell
from cuanto.basis.table import ElementTable
from cuanto.errors import InputError
from cuanto.system.elements import ATOMIC_NUMBERS
from cuanto.terms import CoreHamiltonian, Surroundings
from cuanto.terms.suitability import is_contracted_without_relativity, lacks_core
from cuanto.terms.x2c import NONRELATIVISTIC, OneElectronModel
from cuanto.units import BOHR_IN_ANGSTROM, HARTREE_IN_KCAL_PER_MOL
from sample import EVERY_CASE

C = 137.035999074
VALENCE_ONLY = ("PAW-", "def2-mTZVP", "DFO-1-BHS")
"""Sets of the Exchange that are for pseudopotentials which it does not contain."""
RELATIVISTIC = r"(?i)x2c-|.*-x2c$|.*-dk3?$|ano-r|dyall|sapporo-dkh|sarc2?-.*dkh|jorge-.*-dkh|cologne|ano-dk3"
OTHERS = r"def2-[STQ]Z?V|cc-pV[DTQ]Z$|STO-[3-6]G|6-31|pcseg|jorge-[DTQ]ZP$|Sapporo-[DTQ]ZP|WTBS|3-21G|Koga"


@cache
def sets() -> list[str]:
    """Names of all orbital sets of the Exchange, or of a sample of them."""
    names = [entry["display_name"] for entry in bse.get_metadata().values() if entry["role"] == "orbital"]
    return names if EVERY_CASE else names[::7]


def tables(name: str, first: int = 1, every: bool = EVERY_CASE) -> list[ElementTable]:
    """Elements of a set from atomic number `first` on: the first, the middle and the last one, or every one."""
    symbols = sorted(
        (s for s in exchange.elements_of(name) if ATOMIC_NUMBERS[s] >= first), key=ATOMIC_NUMBERS.__getitem__
    )
    chosen = symbols if every else dict.fromkeys(symbols[i] for i in (0, len(symbols) // 2, -1) if symbols)
    return [exchange.exchange_table(name, symbol) for symbol in chosen]


def shells(table: ElementTable) -> list[Shell]:
    return [Shell.from_table(0, s.l, s.exponents, s.coefficients, True) for s in table.shells if s.l < 2]


def test_sets_of_all_electrons_have_their_core() -> None:
    for name in sets():
        for table in tables(name):
            potential = table.core_potential is not None and table.core_potential.core_electrons > 0
            if table.shells and not potential and not name.startswith(VALENCE_ONLY):
                assert not lacks_core(table.symbol, shells(table)), (name, table.symbol)


@pytest.mark.parametrize(
    "name", ["def2-SVP", "def2-TZVP", "def2-QZVPP", "LANL2DZ", "cc-pVDZ-PP", "CRENBS", "SBKJC-VDZ"]
)
def test_sets_without_their_potential_are_found(name: str) -> None:
    found = [(t.symbol, lacks_core(t.symbol, shells(t))) for t in tables(name, 37, every=True) if t.core_potential]
    assert len(found) > 15 and all(lacking for _, lacking in found)


@pytest.mark.parametrize("name", ["def2-mTZVP", "PAW-L1-contracted"])
def test_valence_sets_of_the_exchange_are_found(name: str) -> None:
    """The Exchange has these without the potentials that they belong to."""
    heavy = tables(name, 37) or tables(name, 13)
    assert heavy and all(lacks_core(table.symbol, shells(table)) for table in heavy)


def test_contractions_are_told_apart() -> None:
    counts = {True: 0, False: 0}
    for name in sets():
        relativistic = bool(re.match(RELATIVISTIC, name))
        if not relativistic and not re.match(OTHERS, name):
            continue
        for table in tables(name, 19):
            if table.core_potential is None and not name.startswith(VALENCE_ONLY):
                counts[relativistic] += 1
                otherwise = is_contracted_without_relativity(table.symbol, shells(table), C)
                assert otherwise is not relativistic, (name, table.symbol)
    assert min(counts.values()) > 10


def atom(symbol: str) -> Molecule:
    return Molecule([symbol], [[0, 0, 0]], multiplicity=1 + ATOMIC_NUMBERS[symbol] % 2)


def warnings_of(molecule: Molecule, name: Any, model: OneElectronModel = NONRELATIVISTIC) -> list[str]:
    """Warnings of the one-electron term, of which core potentials are refused with X2C."""
    basis = Basis(name, molecule)
    molecule = molecule.with_core_electrons(basis.core_electrons)
    assert model.c is None or not molecule.nuclei.core_electrons.any()
    notes = CoreHamiltonian(molecule, basis, Surroundings(), get_backend("cpu"), None, model).notes()
    return [note for note in notes if note.startswith("WARNING")]


HBR = Molecule.from_string("2\n\nH 0 0 0\nBr 0 0 1.41\n")
HI = Molecule.from_string("2\n\nH 0 0 0\nI 0 0 1.61\n")


@pytest.mark.parametrize("name", ["def2-svp", "sto-3g", "cc-pvdz"])
def test_x2c_with_a_contraction_for_other_calculations(name: str) -> None:
    (note,) = warnings_of(HBR, name, OneElectronModel(C))
    assert "the basis of Br is not contracted for X2C" in note and "use x2c-SVPall or x2c-TZVPall" in note
    assert warnings_of(HBR, name) == []


def test_ghosts_and_light_elements_have_no_warning() -> None:
    ghost = Molecule(["H", "H", "Gh-Br"], [[0, 0, 0], [0, 0, 1.4], [0, 0, 5]])
    assert warnings_of(ghost, "def2-svp", OneElectronModel(C)) == []
    assert warnings_of(Molecule(["Ar"], [[0, 0, 0]]), "def2-svp", OneElectronModel(C)) == []


@pytest.mark.parametrize("model", [NONRELATIVISTIC, OneElectronModel(C)])
def test_a_file_without_its_core_potential(tmp_path: Path, model: OneElectronModel) -> None:
    text = bse.get_basis("def2-svp", elements=["H", "I"], fmt="nwchem", header=False)
    (tmp_path / "whole.nw").write_text(text)
    (tmp_path / "noecp.nw").write_text(text[: text.index("\nECP")])
    (note,) = warnings_of(HI, tmp_path / "noecp.nw", model)
    assert "the basis of I is for valence electrons and lacks its core potential: give a file with its ECP sect" in note
    assert ("def2-SVP" in note) == (model.c is None)
    assert warnings_of(HI, tmp_path / "whole.nw") == []


@pytest.mark.parametrize("symbol", ["Br", "I", "La", "Rn", "Fr", "U", "Og"])
@pytest.mark.parametrize("relativity", ["none", "x2c"])
def test_advice_works(symbol: str, relativity: str) -> None:
    """Advised sets have the elements and produce neither a warning nor a refusal with the same settings."""
    molecule = atom(symbol)
    with pytest.raises(InputError, match=rf"has no functions for {symbol}; .* would work") as refused:
        cuanto.energy(molecule, "hf", "ano-pvdz", relativity=relativity, backend="cpu")
    advised = str(refused.value).split("; ")[1].removesuffix(" would work").split(", ")
    model = NONRELATIVISTIC if relativity == "none" else OneElectronModel(C)
    for name in advised:
        assert warnings_of(molecule, name, model) == [], name


@pytest.mark.parametrize(
    ("given", "lacking", "mixed", "advised"),
    [
        ("cc-pvdz", "I", "I=cc-pvdz-pp,cc-pvdz", "{}, def2-SVP, def2-TZVP"),
        ("cc-pvdz-pp", "H", "I=cc-pvdz-pp,cc-pvdz", "{}, def2-SVP, def2-TZVP"),
        ("aug-cc-pV(T+d)Z", "I", "I=aug-cc-pvtz-pp,aug-cc-pv(t+d)z", "{}, def2-SVP, def2-TZVP"),
        ("6-31+g*", "I", "I=def2-svp,6-31+g*", "def2-SVP, def2-TZVP, {}"),
    ],
)
def test_advice_to_mix(given: str, lacking: str, mixed: str, advised: str) -> None:
    text = f"has no functions for {lacking}; {advised.format(repr(mixed))} would work"
    with pytest.raises(InputError, match=re.escape(text)):
        Basis(given, HI)
    assert warnings_of(HI, mixed) == [] and Basis(mixed, HI).core_electrons.tolist() in ([0, 28], [0, 46])


def bond_energy(basis: str, **options: Any) -> float:
    """Bond energy of HI with PBE0 at the experimental distance, kcal/mol."""
    molecules = (Molecule([symbol], [[0, 0, 0]], multiplicity=2) for symbol in ("H", "I"))
    pair = Molecule(["H", "I"], [[0, 0, 0], [0, 0, 1.609 / BOHR_IN_ANGSTROM]])
    parts = sum(cuanto.energy(one, "pbe0", basis, backend="cpu", **options).energy for one in molecules)
    whole = cuanto.energy(pair, "pbe0", basis, backend="cpu", **options).energy
    return (parts - whole) * HARTREE_IN_KCAL_PER_MOL


@pytest.fixture(scope="module")
def relativistic_bond_energy() -> float:
    return bond_energy("x2c-SVPall", relativity="x2c")


@pytest.mark.parametrize("given", ["6-31g*", "cc-pvdz"])
def test_the_first_advice_gives_the_right_bond_energy(given: str, relativistic_bond_energy: float) -> None:
    """With X2C in its own set 77.1 kcal/mol; I=lanl2dz,6-31g* gave 69.1."""
    with pytest.raises(InputError, match="would work") as refused:
        Basis(given, HI)
    first = str(refused.value).split("; ")[1].removesuffix(" would work").split(", ")[0].strip("'")
    assert relativistic_bond_energy == pytest.approx(77.1, abs=0.1)
    assert bond_energy(first) == pytest.approx(relativistic_bond_energy, abs=3)


def test_no_mixture_with_a_heavy_element_without_relativity() -> None:
    assert alternatives("sto-3g", ["I", "U"], ["U"], False) == ["CRENBL"]
    assert alternatives("cc-pvdz", ["H", "I"], ["I"], True) == sets_for(["H", "I"], relativistic=True)
