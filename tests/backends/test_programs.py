"""Index tables of large classes in the kernel cache."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cuanto import tuning
from cuanto.backends import cache as disk
from cuanto.backends import programs, tables
from cuanto.backends.programs import ClassTables, class_cost, class_tables, load_or_make_source, tables_path
from cuanto.kernels.build import cost_of, integrals_of, make_integrals, programs_of
from cuanto.kernels.spec import KernelSpec, Shells

LARGE = ("coulomb", Shells((2, 2)), Shells((2, 2)), "hgp")
SMALL = ("coulomb", Shells((1, 0)), Shells((1, 0)), "hgp")


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CUANTO_CACHE", str(tmp_path))
    forget()
    return tmp_path


def forget() -> None:
    """Clear all caches, as in a new process."""
    for function in (class_tables, class_cost):
        function.cache_clear()
    programs.GRAPHS.clear()


def assert_same(found: ClassTables, levels: bool) -> None:
    for ours, result in zip(found.programs, programs_of(*LARGE, levels), strict=True):
        np.testing.assert_array_equal(ours.table, result.table)
        np.testing.assert_array_equal(ours.constants, result.constants)
        assert (ours.table.dtype, ours.constants.dtype) == (result.table.dtype, result.constants.dtype)
        assert (ours.uniforms, ours.slots, ours.repeat) == (result.uniforms, result.slots, result.repeat)
    integrals = integrals_of(*LARGE)
    assert (found.width, found.middle) == (integrals.width, integrals.middle)
    assert found.bra_functions == integrals.bra_functions and found.cost == cost_of(*LARGE)


def stored(folder: Path) -> list[Path]:
    """Files of the cache, when they are written."""
    disk.flush()
    return list(folder.iterdir())


def test_graphs_are_made_once_for_costs_and_tables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Costs of all classes are needed first, to choose kernels; the oldest graphs are dropped beyond a size."""
    made = []

    def counted(*class_: Any) -> Any:
        made.append(class_)
        return make_integrals(*class_)

    monkeypatch.setattr(programs, "make_integrals", counted)
    classes = [("coulomb", Shells((a, 0)), Shells((b, 0)), "hgp") for a in (1, 2) for b in (1, 2)]
    for class_ in classes:
        class_cost(*class_)
    for class_ in classes:
        class_tables(*class_, False)
    assert made == classes
    monkeypatch.setattr(programs, "KEPT_OPERATIONS", class_cost(*classes[-1]).text_operations)
    monkeypatch.setenv("CUANTO_CACHE", str(tmp_path / "other"))
    forget()
    class_cost(*classes[-1])
    class_cost(*classes[0])
    class_tables(*classes[-1], False)
    assert made[len(classes) :] == [classes[-1], classes[0], classes[-1]]


def forbidden(*_: object) -> None:
    raise AssertionError("the graph was made again")


@pytest.mark.parametrize("levels", [True, False])
def test_the_next_process_makes_nothing(empty_cache: Path, levels: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_same(class_tables(*LARGE, levels), levels)
    assert [file.suffix for file in stored(empty_cache)] == [".npz"]
    forget()
    monkeypatch.setattr(programs, "make_integrals", forbidden)
    assert class_cost(*LARGE) == cost_of(*LARGE)
    assert_same(class_tables(*LARGE, levels), levels)


def test_small_classes_are_not_kept(empty_cache: Path) -> None:
    class_tables(*SMALL, True)
    assert not stored(empty_cache)


@pytest.mark.parametrize("keep", [0, 10, 2000])
def test_a_damaged_file_is_made_again(empty_cache: Path, keep: int) -> None:
    class_tables(*LARGE, True)
    (file,) = stored(empty_cache)
    whole = file.read_bytes()
    file.write_bytes(whole[:keep])
    forget()
    assert class_cost(*LARGE) == cost_of(*LARGE)
    assert_same(class_tables(*LARGE, True), True)
    assert file in stored(empty_cache) and file.stat().st_size == len(whole)


def test_another_generator_has_other_files(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class_tables(*LARGE, True)
    forget()
    monkeypatch.setattr(programs, "_generator", lambda: "changed")
    class_tables(*LARGE, True)
    assert len(stored(empty_cache)) == 2


def test_cost_and_text_are_read_by_the_next_process(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = KernelSpec(*SMALL, "thread", "double", 1)
    source, cost = load_or_make_source(spec), class_cost(*SMALL)
    assert sorted(file.suffix for file in stored(empty_cache)) == [".cost", ".source"]
    forget()
    monkeypatch.setattr(programs, "make_integrals", forbidden)
    monkeypatch.setattr(programs, "source_of", forbidden)
    assert load_or_make_source(spec) == source and class_cost(*SMALL) == cost


def test_other_tuned_numbers_have_other_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """They decide which classes have loops instead of straight-line programs."""
    spec = KernelSpec(*SMALL, "thread", "double", 1)
    before = tables_path(*LARGE, True), programs._source_path(spec)
    content = tuning.content("cpu")
    changed = content | {"numbers": content["numbers"] | {"integrals.straight_momentum": {"value": 12}}}
    monkeypatch.setattr(tuning, "content", lambda language: changed)
    programs._generator.cache_clear()
    after = tables_path(*LARGE, True), programs._source_path(spec)
    programs._generator.cache_clear()
    assert before[0] != after[0] and before[1] != after[1]


def test_tables_of_many_classes_are_made_by_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "usable_cores", lambda: 2)
    monkeypatch.setattr(tables, "MIN_CLASSES", 2)
    another = ("coulomb", Shells((3, 2)), Shells((2, 2)), "hgp")
    tables.make_tables([LARGE, another, SMALL], levels=True)
    paths = [tables_path(*one, True) for one in (LARGE, another, SMALL)]
    assert [path.exists() for path in paths] == [True, True, False]
    read = class_tables(*LARGE, True)
    forget()
    paths[0].unlink()
    generated = class_tables(*LARGE, True)
    for one, other in zip(read.programs, generated.programs, strict=True):
        assert np.array_equal(one.table, other.table) and np.array_equal(one.constants, other.constants)
