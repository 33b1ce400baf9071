"""Index tables made by other processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuanto.backends import tables
from cuanto.backends.programs import is_cached
from cuanto.kernels.spec import Shells


def test_tables_of_other_processes_are_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUANTO_CACHE", str(tmp_path))
    monkeypatch.setattr(tables, "LARGE", 1)
    monkeypatch.setattr(tables, "MIN_CLASSES", 2)
    monkeypatch.setattr(tables, "usable_cores", lambda: 2)
    classes = [("coulomb", Shells((l, 0)), Shells((0,)), "hgp") for l in (1, 2)]
    assert not any(is_cached(*one, levels=False) for one in classes)
    tables.make_tables(classes, levels=False)
    assert all(is_cached(*one, levels=False) for one in classes)
