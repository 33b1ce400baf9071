"""A sample of the fuzzer's campaign: no damaged input ends in an internal error."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from campaign import TARGETS, Campaign, prepare

COUNT = 600


def test_damaged_inputs_are_refused_with_an_explanation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sample; `python tests/support/campaign.py --count 50000` tries 50,000."""
    monkeypatch.chdir(tmp_path)
    campaign = Campaign(seed=2)
    campaign.run(COUNT)
    assert not campaign.failures, campaign.failures[0]
    assert campaign.tried.total() == COUNT and set(campaign.tried) == set(TARGETS)


@pytest.mark.parametrize("name", TARGETS)
def test_inputs_are_good_before_they_are_damaged(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    prepare()
    for example in TARGETS[name].examples:
        found = TARGETS[name].act(example)
        assert name != "commands" or found == 0, example


def test_an_input_follows_from_its_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    seen: list[object] = []
    monkeypatch.setitem(TARGETS, "options", type(TARGETS["options"])(seen.append, ["a=1"]))
    for name in set(TARGETS) - {"options"}:
        monkeypatch.delitem(TARGETS, name)
    for _ in range(2):
        Campaign(seed=3).run(5, first=7)
    assert len(seen) == 10 and seen[:5] == seen[5:]


def test_what_is_not_an_error_of_cuanto_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, target in TARGETS.items():
        monkeypatch.setitem(TARGETS, name, replace(target, act=lambda given: 1 // 0))
    campaign = Campaign()
    campaign.run(3)
    assert len(campaign.failures) == 3 and "ZeroDivisionError" in campaign.failures[0]
