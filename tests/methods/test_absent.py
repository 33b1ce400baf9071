"""Methods that are known but absent: the message says what would work."""

from __future__ import annotations

import pytest

from cuanto.errors import InputError
from cuanto.functionals import functional_names
from cuanto.functionals.registry import aliases
from cuanto.methods.absent import DAMPING
from cuanto.methods.model import METHODS, SEMIEMPIRICAL, kind_of


@pytest.mark.parametrize(
    ("method", "advice"),
    [
        ("b3lyp-d3", f"name its damping: {DAMPING}"),
        ("b3lyp-d3zero", DAMPING),
        ("hf-d2", DAMPING),
        ("wb97x-d3", "use wb97x, or b3lyp-d3bj or b3lyp-d4"),
        ("wB97X-D", "use wb97x, or b3lyp-d3bj or b3lyp-d4"),
        ("wb97m-v", "non-local correlation (VV10)"),
        ("MP2", "wave-function correlation"),
        ("ccsd(t)", "semiempirical ones such as pm6"),
        ("dlpno-ccsd(t)", "semiempirical ones such as pm6"),
        ("casscf", "semiempirical ones such as pm6"),
        ("tddft", "excited states"),
        ("b2plyp", "double hybrids need MP2"),
        ("r2scan-3c", "composite methods"),
        ("gfn2-xtb", "use mndo, am1, pm3, pm6 or rm1"),
        ("pm7", "use pm6"),
        ("hse06", "`cuanto functionals` lists those there are"),
        ("m06", "`cuanto functionals` lists those there are"),
    ],
)
def test_known_but_absent(method: str, advice: str) -> None:
    with pytest.raises(InputError) as refused:
        kind_of(method)
    assert str(refused.value).startswith(f"not implemented: {method}; ") and advice in str(refused.value)


def test_what_is_there_is_not_called_absent() -> None:
    for name in functional_names():
        for own in (name, *aliases(name)):
            assert {kind_of(f"{u}{own}{ending}") for u in ("", "u") for ending in ("", "-d3bj", "-d4")} == {
                "functional"
            }
    assert {kind_of(name) for name in SEMIEMPIRICAL} == {"semiempirical"}
    assert {kind_of(name + ending) for name in METHODS for ending in ("", "-d4")} == {"hf"}
