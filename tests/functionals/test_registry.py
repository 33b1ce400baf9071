"""Names, citations and coefficients of functionals; the command; dispersion corrections."""

from __future__ import annotations

import re
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cuanto import Molecule
from cuanto.cli.main import run
from cuanto.errors import InputError, MissingDependencyError
from cuanto.functionals import functional_names, get_functional, split_dispersion
from cuanto.functionals.functional import Part
from cuanto.functionals.registry import aliases
from cuanto.kernels.cost import stage_cost
from cuanto.terms.dispersion import METHODS, PACKAGES, Dispersion
from functional_cases import LABELS, LIBXC

WATER = Molecule(["O", "H", "H"], [[0.0, 0.0, 0.0], [1.8, 0.0, 0.0], [0.0, 1.8, 0.0]])


@pytest.mark.parametrize("name", functional_names())
def test_exact_exchange_equals_that_of_libxc(name: str) -> None:
    from pyscf.dft import libxc

    functional = get_functional(name)
    omega, far, difference = libxc.rsh_coeff(LIBXC[name])
    if functional.range_separation is None:
        assert (omega, functional.exact_exchange) == pytest.approx((0.0, far))
    else:
        ours = functional.range_separation
        assert (ours.omega, ours.alpha + ours.beta, -ours.beta) == pytest.approx((omega, far, difference))
        assert functional.exact_exchange == ours.alpha


REQUIRED = (
    "svwn5 svwn1rpa spw92 blyp bp86 pbe revpbe pw91 tpss scan r2scan m06-l b3lyp b3lyp5 pbe0 bhandhlyp tpssh m06-2x"
)
"""Functionals that must be available, except for the range-separated ones."""


def test_the_list_is_complete() -> None:
    assert {*REQUIRED.split(), "cam-b3lyp", "wb97x"} <= set(functional_names()) == set(LIBXC)


def test_every_functional_has_citations() -> None:
    for name in functional_names():
        citations = get_functional(name).citations
        assert citations and len(set(citations)) == len(citations)
        assert all(re.fullmatch(r"10\.\d{4,5}/\S+", citation.doi) for citation in citations)
        assert all(re.search(r"\(\d{4}\)$", citation.text) for citation in citations)


def test_names_in_any_case_without_hyphens_or_with_greek_letters() -> None:
    for name in functional_names():
        for alias in (name, *aliases(name), name.upper(), name.replace("-", "")):
            assert get_functional(alias) is get_functional(name), alias
    assert get_functional("\u03c9B97X").name == "wb97x"
    assert get_functional("r\u00b2SCAN").name == "r2scan"
    assert get_functional("b3lyp") != get_functional("b3lyp5")


def test_parts_by_label() -> None:
    assert get_functional("GGA_X_PBE + gga_c_pbe").parts == get_functional("pbe").parts
    assert get_functional("lda_c_pz").parts == (Part(1.0, "lda_c_pz"),)
    with pytest.raises(InputError, match="joins a hybrid"):
        get_functional("b3lyp+gga_c_lyp")
    used = {part.label for name in functional_names() for part in get_functional(name).parts}
    assert set(LABELS) - used == {"lda_c_pw_mod", "lda_c_pz"}  # used inside the parts of PBE and P86


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ("b3lpy", r"unknown functional 'b3lpy'; did you mean b3lyp, .*\?"),
        ("pbe-0-0", r"unknown functional 'pbe-0-0'; did you mean pbe0.*\?"),
        ("gga_x_pbee", r".*did you mean gga_x_pbe.*"),
        ("qqqqqq", r"unknown functional 'qqqqqq'; `cuanto functionals` lists the available ones"),
    ],
)
def test_unknown_names_get_suggestions(given: str, line: str) -> None:
    with pytest.raises(InputError) as caught:
        get_functional(given)
    assert re.fullmatch(line, str(caught.value)), str(caught.value)


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("b3lyp-d3bj", ("b3lyp", "d3bj")),
        ("PBE-D3(BJ)", ("PBE", "d3bj")),
        ("cam-b3lyp-d4", ("cam-b3lyp", "d4")),
        ("m06-2x", ("m06-2x", None)),
    ],
)
def test_suffixes_select_dispersion(method: str, expected: tuple[str, str | None]) -> None:
    assert split_dispersion(method) == expected


def test_closed_shells_are_cheaper() -> None:
    for name in functional_names():
        functional = get_functional(name)
        one, two = (stage_cost(functional.expressions(spins)) for spins in (1, 2))
        assert one.operations + one.calls < 0.75 * (two.operations + two.calls), name


def test_importing_functionals_is_light() -> None:
    import subprocess

    code = "import sys, cuanto.functionals as f; f.get_functional('r2scan').source('cuda', 2); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"sympy", "pyscf", "cupy"} & set(done.stdout.split())


def exit_status(*arguments: str) -> Any:
    with pytest.raises(SystemExit) as leaving:
        run(arguments)
    return leaving.value.code


def test_command_lists_names_with_citations(capsys: pytest.CaptureFixture[str]) -> None:
    assert not exit_status("functionals")
    out = capsys.readouterr().out
    for name in functional_names():
        assert re.search(rf"^{re.escape(name)} ", out, re.MULTILINE)
    assert "doi:10.1103/PhysRevLett.77.3865" in out and "range-separated GGA" in out


def test_command_shows_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert not exit_status("functionals", "B3LYP")
    out = capsys.readouterr().out
    assert "0.19  lda_c_vwn_rpa" in out and "exact exchange 20 %" in out and "per point" in out
    assert exit_status("functionals", "b3lpy") == 2
    assert capsys.readouterr().err.startswith("cuanto: unknown functional 'b3lpy'; did you mean b3lyp")


def test_command_prints_the_kernel(capsys: pytest.CaptureFixture[str]) -> None:
    assert not exit_status("functionals", "pbe", "--source", "cuda", "--spins", "2")
    assert "__global__" in capsys.readouterr().out
    assert exit_status("functionals", "--source", "cpu") == 2
    assert "name a functional" in capsys.readouterr().err


def test_dispersion_without_parameters_is_refused() -> None:
    with pytest.raises(InputError, match="d3bj has no parameters for 'm06-2x'"):
        Dispersion(WATER, "m06-2x", "d3bj")
    with pytest.raises(InputError, match="unknown dispersion correction 'd5'"):
        Dispersion(WATER, "pbe", "d5")
    with pytest.raises(InputError, match="up to element 94"):
        Dispersion(Molecule(["Og"], [[0.0, 0.0, 0.0]]), "pbe", "d3bj")
    names = {*functional_names(), "hf"}
    assert all(set(known) <= names for known in METHODS.values())


def test_missing_dispersion_packages_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind, package in PACKAGES.items():
        monkeypatch.setitem(sys.modules, f"{package}.interface", None)
        with pytest.raises(MissingDependencyError, match=f"pip install {package}"):
            Dispersion(WATER, "pbe", kind)


def test_dispersion_through_a_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """The arguments passed to the package, and the use of its result."""
    passed: dict[str, Any] = {}

    class Model:
        def __init__(self, numbers: Any, positions: Any) -> None:
            passed["numbers"], passed["positions"] = numbers, positions

        def get_dispersion(self, damping: Any, grad: bool) -> dict[str, Any]:
            return {"energy": -0.25, "gradient": np.zeros((3, 3)), "damping": damping, "grad": grad}

    interface: Any = ModuleType("dftd3.interface")
    interface.DispersionModel = Model
    interface.RationalDampingParam = lambda **given: passed.update(given) or SimpleNamespace(**given)
    monkeypatch.setitem(sys.modules, "dftd3", ModuleType("dftd3"))
    monkeypatch.setitem(sys.modules, "dftd3.interface", interface)
    term = Dispersion(WATER, "bp86", "d3bj")
    assert term.fock(None, None) == (-0.25, None) and term.gradient_ax.shape == (3, 3)
    assert (passed["method"], passed["atm"]) == ("bp", False)
    assert (passed["numbers"] == [8, 1, 1]).all() and (passed["positions"] == WATER.R_ax).all()


# energies from s-dftd3 1.7.0 and dftd4 4.3.1 for these positions
KNOWN = {("b3lyp", "d3bj"): -0.0005744380796098155, ("pbe0", "d4"): -0.00015948796219435868}


@pytest.mark.parametrize(("name", "kind"), KNOWN)
def test_dispersion_energies_and_gradients(name: str, kind: str) -> None:
    term = Dispersion(WATER, name, kind)
    assert term.energy == pytest.approx(KNOWN[name, kind], abs=1e-9)
    R_ax, step = WATER.R_ax.copy(), 1e-4
    ends = []
    for sign in (1, -1):
        moved = R_ax.copy()
        moved[1, 0] += sign * step
        ends.append(Dispersion(Molecule(WATER.symbols, moved), name, kind).energy)
    assert (ends[0] - ends[1]) / (2 * step) == pytest.approx(term.gradient_ax[1, 0], abs=1e-8)
