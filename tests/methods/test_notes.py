"""Warnings about basis sets that were made for another purpose."""

from __future__ import annotations

import re
from typing import Any

import pytest

import cuanto
from cuanto.basis import exchange
from cuanto.errors import InputError, MissingDependencyError
from cuanto.report import report_html

H2 = "2\n\nH 0 0 0\nH 0 0 0.74\n"
CPU: dict[str, Any] = {"backend": "cpu"}


def warnings(method: str, basis: str, **options: Any) -> list[str]:
    found = cuanto.energy(H2, method, basis, **CPU, **options)
    return [note for note in found.notes if note.startswith("WARNING")]


@pytest.mark.parametrize(
    ("method", "basis", "auxbasis", "expected"),
    [
        ("hf", "def2-svp", "def2-universal-jfit", "for J, not for exchange: leave out auxbasis"),
        ("b3lyp", "cc-pvdz", "def2-universal-jfit", "or use fitting='j'"),
        ("hf", "def2-svp", "dgauss-a1-dftjfit", "for J, not for exchange"),
        ("hf", "def2-svp", "def2-svp", "is an orbital basis, not a fitting set: leave out auxbasis"),
        ("hf", "cc-pvdz", "cc-pvdz-rifit", "is a set for another purpose (rifit), not for J and exchange"),
        ("pbe", "def2-svp", "admm-2", "is a set for another purpose (admmfit)"),
        ("hf", "def2-universal-jkfit", None, "def2-universal-jkfit is an auxiliary set, not an orbital basis"),
        ("hf", "cc-pvdz-rifit", None, "is an auxiliary set, not an orbital basis"),
    ],
)
def test_sets_for_another_purpose(method: str, basis: str, auxbasis: str | None, expected: str) -> None:
    (warning,) = warnings(method, basis, auxbasis=auxbasis)
    assert expected in warning


def test_universal_sets_for_heavy_elements_with_all_electrons() -> None:
    """The error for HI is 28 Hartree; the estimate of the error shows this, too."""
    molecule = "2\n\nH 0 0 0\nI 0 0 1.61\n"
    wrong = cuanto.energy(molecule, "hf", "sto-3g", auxbasis="def2-universal-jkfit", **CPU)
    assert any("assume core potentials, but I has all electrons: leave out auxbasis" in note for note in wrong.notes)
    assert re.search(
        "WARNING: the estimated error of fitting is .* Hartree: use auxbasis='autoaux' or fitting", str(wrong)
    )
    assert "WARNING: the estimated error of fitting is" in report_html(wrong)
    right = cuanto.energy(molecule, "hf", "def2-svp", auxbasis="def2-universal-jkfit", **CPU)
    assert not any(note.startswith("WARNING") for note in right.notes) and "WARNING" not in str(right)


@pytest.mark.parametrize("name", ["cc-pvdz-jkfit", "cc-pvtz-rifit"])
@pytest.mark.parametrize("options", [{"basis": "def2-svp", "auxbasis": ""}, {"basis": ""}])
def test_auxiliary_sets_without_an_element(name: str, options: dict[str, str]) -> None:
    with pytest.raises(InputError, match=r"auxiliary set '.*' has no functions for Au: leave out auxbasis"):
        cuanto.energy("2\n\nAu 0 0 0\nH 0 0 1.52\n", "hf", **{key: value or name for key, value in options.items()})


def test_suitable_sets() -> None:
    assert not warnings("pbe", "def2-svp", auxbasis="def2-universal-jfit")
    assert not warnings("hf", "def2-svp", auxbasis="cc-pvdz-jkfit")
    assert not warnings("hf", "def2-svp")


def test_sets_are_not_judged_without_the_basis_set_exchange(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise MissingDependencyError("not installed")

    monkeypatch.setattr(exchange, "_package", missing)
    exchange._catalogue.cache_clear()
    try:
        assert exchange.role_of("def2-svp") is None
    finally:
        exchange._catalogue.cache_clear()


def test_a_fitting_set_is_generated_on_request() -> None:
    generated = cuanto.energy(H2, "hf", "def2-svp", auxbasis="autoaux", **CPU)
    usual, exact = (cuanto.energy(H2, "hf", "def2-svp", fitting=kind, **CPU) for kind in ("jk", "none"))
    assert generated.auxbasis is not None and generated.auxbasis.name == "autoaux"
    water = "3\n\nO 0 0 0.117\nH 0 0.757 -0.469\nH 0 -0.757 -0.469\n"
    names = {"O": "AutoAux", "default": "def2-universal-jkfit"}
    mixed = cuanto.energy(water, "hf", "def2-svp", auxbasis=names, **CPU)
    assert mixed.auxbasis is not None and mixed.auxbasis.name == "O: autoaux, H: def2-universal-jkfit"
    assert cuanto.energy(water, "hf", "def2-svp", auxbasis=mixed.auxbasis.name, **CPU).energy == mixed.energy
    assert generated.energy != usual.energy and abs(generated.energy - exact.energy) < 1e-5
