"""Methods that are known but absent: the message says what would work."""

from __future__ import annotations

import re
import time
from contextlib import suppress

import pytest

from cuanto.errors import InputError
from cuanto.functionals import functional_names
from cuanto.functionals.registry import aliases
from cuanto.methods.absent import CORRELATION, DAMPING, DOUBLE_HYBRID, EXCITED, require_implemented
from cuanto.methods.model import METHODS, SEMIEMPIRICAL, kind_of


@pytest.mark.parametrize(
    ("method", "advice"),
    [
        ("b3lyp-d3", f"name its damping: {DAMPING}"),
        ("b3lyp-d3zero", DAMPING),
        ("hf-d2", f"{DAMPING}, for example hf-d3bj"),
        ("pbe-d3", f"name its damping: {DAMPING}, for example pbe-d3bj"),
        ("uPBE0-D3", "for example upbe0-d3bj"),
        ("m06-2x-d3", "for example b3lyp-d3bj"),  # without parameters of its own
        ("wb97x-d3", "use wb97x, or b3lyp-d3bj or b3lyp-d4"),
        ("wB97X-D", "use wb97x, or b3lyp-d3bj or b3lyp-d4"),
        ("\u03c9B97X-D", "use wb97x, or b3lyp-d3bj or b3lyp-d4"),
        ("\u03a9B97X-D3", "use wb97x, or b3lyp-d3bj or b3lyp-d4"),
        ("r\u00b2SCAN-3c", "composite methods"),
        ("r\u00b2SCAN-D3", "for example r2scan-d3bj"),
        ("wb97m-v", "non-local correlation (VV10)"),
        ("MP2", "wave-function correlation"),
        *((name, CORRELATION) for name in ("ri-mp2", "scs-mp2", "mp2-f12", "lmp2", "mp4(sdq)", "omp2", "mp2.5")),
        *((name, CORRELATION) for name in ("ccsd(t)", "dlpno-ccsd(t)", "qcisd(t)", "cisd", "lccsd", "fci", "g4")),
        *((name, CORRELATION) for name in ("casscf", "ms-caspt2", "nevpt2", "rpa", "sapt0", "cbs-qb3")),
        *((name, EXCITED) for name in ("tddft", "cis", "CIS(D)", "tda-b3lyp", "td-b3lyp", "b3lyp-td", "td(pbe0)")),
        *((name, EXCITED) for name in ("eom-ccsd", "adc(2)", "cc2", "stda", "tdhf", "gw")),
        *((name, DOUBLE_HYBRID) for name in ("b2plyp", "b2plyp-d3", "b2gp-plyp", "mpw2plyp", "dsd-pbep86", "xygjos")),
        *((name, DOUBLE_HYBRID) for name in ("revdsd-pbep86-d4", "wb97x-2", "wb97m(2)", "pbe0-2", "pbe-qidh", "ptpss")),
        *((name, DOUBLE_HYBRID) for name in ("r2scan0-dh", "pr2scan50", "pwpb95", "wb2plyp", "pbe0-dh")),
        ("r2scan-3c", "composite methods"),
        ("gfn2-xtb", "use mndo, am1, pm3, pm6 or rm1"),
        ("pm7", "use pm6"),
        ("hse06", "`cuanto functionals` lists the available ones"),
        ("B97-D", "`cuanto functionals` lists the available ones"),
        ("rpbe", "`cuanto functionals` lists the available ones"),
        ("pbesol", "`cuanto functionals` lists the available ones"),
        ("b3lyp-d", "name its damping"),
        *(
            (name, "no dispersion corrections or d variants of semiempirical methods: use pm6")
            for name in ("pm6-d3", "rpm6-d3", "mndo-d", "PM6-D", "upm6-d3h4", "am1-d3bj")
        ),
        *((name, "use pm6, rm1 or am1") for name in ("pm7-d3", "om2-d3")),
        ("gfn2-xtb-d4", "use mndo, am1, pm3, pm6 or rm1"),
        ("m06", "`cuanto functionals` lists the available ones"),
    ],
)
def test_known_but_absent(method: str, advice: str) -> None:
    with pytest.raises(InputError) as refused:
        kind_of(method)
    assert str(refused.value).startswith(f"not implemented: {method}; ") and advice in str(refused.value)


@pytest.mark.parametrize("method", ["b3lpy-d3", "foo-d2", "ufoo-mbd"])
def test_dispersion_of_an_unknown_functional(method: str) -> None:
    require_implemented(method)
    with pytest.raises(InputError, match="unknown method"):
        kind_of(method)


@pytest.mark.parametrize("method", ["RPBE-D3", "rpbe-d2", "uRPBE-d3", "hse06-d3zero", "b97-d2"])
def test_a_missing_functional_is_named_before_its_dispersion(method: str) -> None:
    functional = re.escape(method.rpartition("-")[0])
    with pytest.raises(InputError, match=f"^not implemented: {functional}; `cuanto functionals` lists the available"):
        kind_of(method)


@pytest.mark.parametrize(
    ("method", "advice"),
    [
        ("scf", "'scf' leaves the method open: give hf, or a functional such as pbe0"),
        ("RKS", "'RKS' leaves the method open"),
        ("r-b3lyp", "give b3lyp, which is restricted for closed shells"),
        ("RB3LYP", "give b3lyp, which is restricted for closed shells"),
        ("pbe/", "ends with a slash"),
    ],
)
def test_names_that_are_no_method(method: str, advice: str) -> None:
    with pytest.raises(InputError, match=advice):
        kind_of(method)


@pytest.mark.parametrize(
    ("method", "advice"),
    [
        *((name, "use ub3lyp (unrestricted), or rohf") for name in ("rob3lyp", "ROKS-B3LYP", "ro-b3lyp", "roks/b3lyp")),
        (
            "ropbe",
            "not implemented: ropbe; functionals have no restricted open shells: use upbe (unrestricted), or rohf",
        ),
        ("robhlyp-d3bj", "use ubhlyp-d3bj (unrestricted)"),
        *((name, "did you mean 'b3lyp-d3bj'?") for name in ("b3lyp-gd3bj", "b3lyp d3bj", "b3lyp/d3bj", "B3LYP-D3-BJ")),
        *((name, "did you mean 'b3lyp-d3bj'?") for name in ("b3lypd3bj", "b3lyp_d3(bj)", "b3lyp-gd3(bj)")),
        ("uhf d4", "did you mean 'uhf-d4'?"),
        ("upbe/d4", "did you mean 'upbe-d4'?"),
    ],
)
def test_other_spellings(method: str, advice: str) -> None:
    with pytest.raises(InputError, match=re.escape(advice)) as refused:
        kind_of(method)
    for name in re.findall(r"(?:use |mean ')([^ ']+)", str(refused.value)):
        assert kind_of(name)


def test_available_methods_are_not_reported_as_absent() -> None:
    for name in functional_names():
        for own in (name, *aliases(name)):
            assert {kind_of(f"{u}{own}{ending}") for u in ("", "u") for ending in ("", "-d3bj", "-d4")} == {
                "functional"
            }
    assert {kind_of(name) for name in SEMIEMPIRICAL} == {"semiempirical"}
    assert {kind_of(name + ending) for name in METHODS for ending in ("", "-d4")} == {"hf"}


@pytest.mark.parametrize("part", ["ro", "uor", "dlpno-", "td-", "sos-", "b2", "-d"])
def test_long_names_take_no_time(part: str) -> None:
    begin = time.monotonic()
    with suppress(InputError):
        require_implemented(part * 20_000 + "?")
    assert time.monotonic() - begin < 10


@pytest.mark.parametrize("advice", [CORRELATION, DOUBLE_HYBRID])
def test_methods_in_the_advice_exist(advice: str) -> None:
    names = re.findall(r"\b(?:hf|pm6|b3lyp-d4|pbe0-d4|wb97x)\b", advice)
    assert len(names) >= 3 and all(kind_of(name) for name in names)
