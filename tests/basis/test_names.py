"""Spellings of basis sets, and different sets for different elements in one text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cuanto import Basis, Molecule
from cuanto.basis import exchange
from cuanto.basis.auxiliary import auxiliary_basis
from cuanto.basis.names import canonical_name, split_names
from cuanto.errors import InputError

WATER = Molecule.from_string("3\n\nO 0 0 0.117\nH 0 0.757 -0.469\nH 0 -0.757 -0.469\n")


@pytest.mark.parametrize(
    ("typed", "usual"),
    [
        ("6-31G(d)", "6-31g*"),
        ("6-31+G(d,p)", "6-31+g**"),
        ("6-311++G(d,p)", "6-311++g**"),
        ("631g*", "6-31g*"),
        ("6-31Gd", "6-31g*"),
        ("6-31+Gdp", "6-31+g**"),
        ("def2svp", "def2-svp"),
        ("def2TZVP", "def2-tzvp"),
        ("def2-SV(P)", "def2-SV(P)"),
        ("ccpvdz", "cc-pvdz"),
        ("aug-ccpVTZ", "aug-cc-pvtz"),
        ("sto3g", "sto-3g"),
        ("pcseg1", "pcseg-1"),
    ],
)
def test_other_spellings(typed: str, usual: str) -> None:
    assert canonical_name(typed) == usual
    assert canonical_name(usual) == usual and exchange.knows(usual)


@pytest.mark.parametrize(
    ("typed", "instead"),
    [
        ("madef2-svp", "def2-svpd"),
        ("ma-def2-TZVPP", "def2-tzvppd"),
        ("ma-def2-sv(p)", "def2-svpd"),
        ("minix", "MINI"),
    ],
)
def test_well_known_sets_that_the_exchange_lacks(typed: str, instead: str) -> None:
    with pytest.raises(InputError, match=rf"unknown basis .*[uU]se {instead}, ") as refused:
        Basis(typed, WATER)
    assert exchange.knows(instead) and "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("svp", "def2-svp"),
        ("TZVP", "def2-tzvp"),
        ("QZVP", "def2-qzvp"),
        ("SDD", "Stuttgart RSC 1997"),
        ("vdzp", "Grimme vDZP"),
        ("def2/J", "def2-universal-jfit"),
    ],
)
def test_abbreviations(typed: str, meant: str) -> None:
    with pytest.raises(InputError, match=rf"unknown basis .*did you mean '{meant}'"):
        Basis(typed, WATER)
    assert exchange.knows(meant)


@pytest.mark.parametrize("typed", ["sv(p)", "tzvpp", "sdd", "def2/jk", "dzp", "vdzp"])
def test_sets_in_the_advice_exist(typed: str) -> None:
    advice = str(exchange.unknown_basis(typed)).partition("; ")[2]
    names = re.findall("'(.+?)'", advice)
    assert names and all(exchange.knows(name) for name in names), advice


@pytest.mark.parametrize("name", ["DZP (Dunning-Hay)", "Grimme vDZP"])
def test_names_with_spaces(name: str) -> None:
    assert Basis(name, WATER).nbf > 0


def test_two_sets_for_one_element_are_refused() -> None:
    with pytest.raises(InputError, match="more than one basis for O: give one"):
        Basis("O=def2-svp,o=sto-3g,H=sto-3g", WATER)


@pytest.mark.parametrize(
    "name", ["def2-SVP", "def2-SV(P)", "6-311G(2df,2pd)", "cc-pV(D+d)Z", "ANO-RCC", "jorge-DZP", "x"]
)
def test_names_of_the_exchange_stay(name: str) -> None:
    assert canonical_name(name) == name


def test_a_calculation_accepts_them() -> None:
    """Functions, name and fitting set are those of the usual name."""
    typed, usual = Basis("def2svp", WATER), Basis("def2-svp", WATER)
    assert typed.name == usual.name == "def2-svp" and typed.nbf == usual.nbf
    assert auxiliary_basis(typed, WATER).name == auxiliary_basis(usual, WATER).name
    assert Basis("6-31G(d)", WATER).nbf == Basis("6-31g*", WATER).nbf == 19


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("O=def2-tzvp,H=def2-svp", {"O": "def2-tzvp", "H": "def2-svp"}),
        ("def2-svp, O=def2-tzvp", {"default": "def2-svp", "O": "def2-tzvp"}),
        ("O=6-31G(d,p),default=6-31G", {"O": "6-31G(d,p)", "default": "6-31G"}),
        ("O=6-31g*,*=sto-3g", {"O": "6-31g*", "*": "sto-3g"}),
        ("O: def2-tzvp, H: def2-svp", {"O": "def2-tzvp", "H": "def2-svp"}),
        ("O=def2-tzvp; H=def2-svp", {"O": "def2-tzvp", "H": "def2-svp"}),
        ("6-311G(2df,2pd)", None),
        ("def2-svp", None),
        ("a,b", None),
        ("O=", None),
        ("", None),
    ],
)
def test_sets_by_element(text: str, parts: dict[str, str] | None) -> None:
    assert split_names(text) == parts


def test_a_mixed_basis_in_one_text(tmp_path: Path) -> None:
    (tmp_path / "h.nw").write_text("H S\n 1.0 1.0\n")
    mixed = Basis("O=def2svp,H=sto-3g", WATER)
    assert mixed.nbf == 14 + 2 and mixed.name == "O: def2-svp, H: sto-3g"
    assert Basis(mixed.name, WATER).nbf == mixed.nbf  # a result's JSON file contains this name
    assert Basis(f"sto-3g,H={tmp_path / 'h.nw'}", WATER).nbf == 5 + 2
