"""Index tables of large classes in the kernel cache."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cuanto.backends import programs
from cuanto.backends.programs import ClassTables, class_cost, class_tables
from cuanto.kernels.build import cost_of, integrals_of, programs_of
from cuanto.kernels.spec import Shells

LARGE = ("coulomb", Shells((2, 2)), Shells((2, 2)), "hgp")
SMALL = ("coulomb", Shells((1, 0)), Shells((1, 0)), "hgp")


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CUANTO_CACHE", str(tmp_path))
    forget()
    return tmp_path


def forget() -> None:
    """Clear all caches, as in a new process."""
    for function in (class_tables, class_cost, programs._graphs):
        function.cache_clear()


def assert_same(found: ClassTables, levels: bool) -> None:
    for ours, result in zip(found.programs, programs_of(*LARGE, levels), strict=True):
        np.testing.assert_array_equal(ours.table, result.table)
        np.testing.assert_array_equal(ours.constants, result.constants)
        assert (ours.table.dtype, ours.constants.dtype) == (result.table.dtype, result.constants.dtype)
        assert (ours.uniforms, ours.slots, ours.repeat) == (result.uniforms, result.slots, result.repeat)
    integrals = integrals_of(*LARGE)
    assert (found.width, found.middle) == (integrals.width, integrals.middle)
    assert found.bra_functions == integrals.bra_functions and found.cost == cost_of(*LARGE)


def forbidden(*_: object) -> None:
    raise AssertionError("the graph was made again")


@pytest.mark.parametrize("levels", [True, False])
def test_the_next_process_makes_nothing(empty_cache: Path, levels: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_same(class_tables(*LARGE, levels), levels)
    assert [file.suffix for file in empty_cache.iterdir()] == [".npz"]
    forget()
    monkeypatch.setattr(programs, "make_integrals", forbidden)
    assert class_cost(*LARGE) == cost_of(*LARGE)
    assert_same(class_tables(*LARGE, levels), levels)


def test_small_classes_are_not_kept(empty_cache: Path) -> None:
    class_tables(*SMALL, True)
    assert not list(empty_cache.iterdir())


@pytest.mark.parametrize("keep", [0, 10, 2000])
def test_a_damaged_file_is_made_again(empty_cache: Path, keep: int) -> None:
    class_tables(*LARGE, True)
    (file,) = empty_cache.iterdir()
    whole = file.read_bytes()
    file.write_bytes(whole[:keep])
    forget()
    assert class_cost(*LARGE) == cost_of(*LARGE)
    assert_same(class_tables(*LARGE, True), True)
    assert file.stat().st_size == len(whole)


def test_another_generator_has_other_files(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class_tables(*LARGE, True)
    forget()
    monkeypatch.setattr(programs, "_generator", lambda: "changed")
    class_tables(*LARGE, True)
    assert len(list(empty_cache.iterdir())) == 2
