"""Settings of an optimisation."""

from __future__ import annotations

import re
from typing import Any

import pytest

from cuanto import Molecule
from cuanto.advice import ADVICE
from cuanto.errors import InputError
from cuanto.motion.settings import EXAMPLES, Settings


def test_plain_data_give_the_same_settings() -> None:
    given = Settings.of(convergence="tight", freeze=["distance 1 2"], pre="pm6", max_steps=5)
    assert Settings.of(**given.plain()).plain() == given.plain()


def test_the_first_hessian() -> None:
    assert Settings().first_hessian("minimum") == "model"
    assert Settings(ts=True).first_hessian("ts") == "numerical"
    assert Settings(ts=True, hessian="pm6").first_hessian("ts") == "pm6"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"converge": "tight"}, "did you mean 'convergence'"),
        ({"convergence": "quick"}, "unknown convergence 'quick'"),
        ({"freeze": 5}, "freeze must be a text or a list of texts, such as .'distance 1 2'."),
        ({"scan": 5}, "scan must be a text or a list of texts, such as .'distance 1 2 1.0 2.0 11'."),
        ({"ts": 1}, "ts must be true or false"),
        ({"coordinates": "zmatrix"}, "choose tric, dlc, hdlc"),
        ({"hessian": "exact"}, "unknown hessian 'exact'"),
        ({"pre": "hf"}, "pre is 'hf': give a semiempirical method"),
        ({"max_steps": 0}, "max_steps is 0"),
        ({"trust": 5.0}, "trust radius from 0.001 to 1"),
        ({"irc": True, "freeze": ["distance 1 2"]}, "a reaction path has no constraints"),
        ({"ts": True, "scan": ["distance 1 2 1 2 3"]}, "a scan optimises minima"),
        ({"ts": True, "freeze": ["distance 1 2"]}, "a search for a transition state has no constraints"),
        ({"ts": True, "pre": "pm6"}, "pre leads to a minimum"),
        ({"ts": True, "hessian": "model"}, "no direction that leads downwards"),
    ],
)
def test_refusals(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Settings.of(**given)


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_single_constraint(name: str) -> None:
    hydrogen = Molecule(["H", "H"], [[0, 0, 0], [0, 0, 1.4]])
    one, several = (Settings.of(**{name: given}) for given in (EXAMPLES[name], [EXAMPLES[name]]))
    assert one.constraints(hydrogen) == several.constraints(hydrogen) and one.plain() == several.plain()


def test_the_advice_about_scans() -> None:
    hydrogen = Molecule(["H", "H"], [[0, 0, 0], [0, 0, 1.4]])
    (text,) = re.findall(r"cuanto.optimize\(..., scan='(.*)'\)", ADVICE["scan"])
    assert len(Settings.of(scan=text).constraints(hydrogen)) == 11
