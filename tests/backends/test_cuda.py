"""The cuda backend on a real GPU: arrays stay on the device, tiers, cache, agreement with the CPU."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bundle import Case, backend, block_maxima, bundle, evaluate, sides
from cuanto import Basis, Molecule, integrals
from cuanto.backends import Backend, get_backend
from cuanto.backends.cpu.backend import CpuBackend
from cuanto.backends.cuda import backend as cuda
from cuanto.backends.cuda.backend import CudaBackend, CudaProgram
from cuanto.integrals import api
from cuanto.integrals.engine import Engine
from cuanto.integrals.pairs import RowMap
from cuanto.kernels.build import general_source
from cuanto.kernels.text import Source
from oracle import Array
from paths import DATA
from tolerances import INTEGRAL_ABS, INTEGRAL_REL

pytestmark = pytest.mark.gpu

AGREE = 1e-13
"""Tolerance relative to the largest integral: the same recurrences are rounded differently."""


@pytest.fixture(autouse=True)
def empty_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("CUANTO_BASIS_PATH", str(DATA / "basis"))
    monkeypatch.setenv("CUANTO_CACHE", str(tmp_path))
    return tmp_path


def bases(name: str) -> tuple[Molecule, Basis, Basis]:
    molecule = Molecule.from_xyz(DATA / "geometries" / f"{name}.xyz")
    return molecule, Basis("cc-pvdz", molecule), Basis("cc-pvdz-jkfit", molecule)


def everything(name: str, device: Backend) -> dict[str, Any]:
    molecule, basis, aux = bases(name)
    return {
        "overlap": integrals.overlap(basis, backend=device),
        "kinetic": integrals.kinetic(basis, backend=device),
        "dipole": integrals.dipole(basis, origin=(0.1, 0.2, 0.3), backend=device),
        "nuclear": integrals.nuclear(basis, molecule, backend=device),
        "2c": integrals.eri_2c(aux, backend=device),
        "3c": integrals.eri_3c(basis, aux, backend=device),
        "packed": integrals.eri_3c(basis, aux, backend=device, packed=True),
    }


def agree(got: Any, expected: Array, device: Backend, what: str = "") -> None:
    assert np.abs(device.to_host(got) - expected).max() <= AGREE * np.abs(expected).max(), what


@pytest.mark.parametrize("schedule", ["auto", "group", "thread"])
def test_all_integrals_agree_with_the_cpu(schedule: str) -> None:
    device = CudaBackend(schedule)
    expected = everything("water_02", CpuBackend(schedule="table"))
    for _ in range(2):  # the second time with specialised kernels
        for name, values in everything("water_02", device).items():
            assert isinstance(values, device.xp.ndarray), f"{name} left the GPU"
            agree(values, expected[name], device, f"{name} {schedule}")
        device.finish_compiling()


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["hgp", "md"])
@pytest.mark.parametrize("setting", [("contracted", "near", "normal"), ("general", "coincident", "tight")])
def test_every_class_agrees_with_the_cpu(setting: tuple[str, str, str], algorithm: str) -> None:
    """All classes to h and i, block by block; errors of pure functions are relative to the Cartesian block that
    cancels."""
    scale: Array | None = None
    for form in ("cartesian", "pure"):
        basis, aux = bundle(Case(form, *setting))
        got, expected = (evaluate(backend(name), "3c", basis, aux, algorithm) for name in ("cuda-group", "cpu-table"))
        bases = sides("3c", basis, aux)
        largest = block_maxima(np.abs(expected), bases)
        scale = largest if scale is None else scale
        allowed = INTEGRAL_REL * largest + INTEGRAL_ABS * scale
        assert (block_maxima(np.abs(got - expected), bases) <= allowed).all(), f"{form} {algorithm}"


def test_the_gpu_is_chosen_where_there_is_one() -> None:
    assert get_backend("auto").name == "cuda"
    _, basis, _ = bases("water_01")
    assert isinstance(integrals.overlap(basis), get_backend("cuda").xp.ndarray)


def test_special_kernels_are_used_by_later_calls(monkeypatch: pytest.MonkeyPatch, empty_cache: Path) -> None:
    """The first call uses only the general kernel; kernels compiled meanwhile are used by the next call and process."""
    monkeypatch.setattr(cuda, "WORTH_COMPILING", 0.0)
    _, basis, aux = bases("water_01")
    device, launched, hold_back = CudaBackend(), set[str](), True
    is_ready, function_of = CudaProgram.ready.fget, device._function
    assert is_ready is not None

    def ready(program: CudaProgram) -> bool:
        return is_ready(program) and not hold_back  # later than the first call, even if the compiler is fast

    def function(source: Source) -> Any:
        launched.add(source.entry)
        return function_of(source)

    monkeypatch.setattr(CudaProgram, "ready", property(ready))
    monkeypatch.setattr(device, "_function", function)
    general = device.to_host(integrals.eri_3c(basis, aux, backend=device))
    assert launched == {"group_kernel"}
    device.finish_compiling()
    hold_back = False
    special = device.to_host(integrals.eri_3c(basis, aux, backend=device))
    assert len(launched) > 5
    assert np.abs(special - general).max() <= AGREE * np.abs(general).max()
    cubins = {path.name: path.stat().st_mtime_ns for path in empty_cache.glob("*.cubin")}
    assert len(cubins) > 5
    agree(integrals.eri_3c(basis, aux, backend=CudaBackend()), special, device)
    assert {path.name: path.stat().st_mtime_ns for path in empty_cache.glob("*.cubin")} == cubins


@pytest.mark.parametrize("damage", [b"", b"no machine code", None], ids=["empty", "garbage", "truncated"])
def test_damaged_files_in_the_cache(damage: bytes | None, empty_cache: Path) -> None:
    _, basis, _ = bases("water_01")
    expected = CudaBackend("group")
    S = expected.to_host(integrals.overlap(basis, backend=expected))
    (cubin,) = empty_cache.glob("*.cubin")
    cubin.write_bytes(cubin.read_bytes()[:1000] if damage is None else damage)
    for _ in range(2):
        device = CudaBackend("group")
        assert np.array_equal(device.to_host(integrals.overlap(basis, backend=device)), S)


def test_peak_memory_is_the_result_and_little_more() -> None:
    device = CudaBackend("group")
    _, basis, aux = bases("alkane_12")
    integrals.eri_3c(*bases("water_01")[1:], backend=device)
    pool = device.xp.get_default_memory_pool()
    pool.free_all_blocks()
    start = pool.total_bytes()
    result = integrals.eri_3c(basis, aux, backend=device, packed=True)
    assert result.nbytes > 2e8
    assert pool.total_bytes() - start <= 1.1 * result.nbytes
    free, total = device.memory()
    assert 0 < free < total


@pytest.mark.parametrize("momenta", [(5, 5, 6), (4, 3, 5)])
def test_values_in_global_memory(momenta: tuple[int, int, int]) -> None:
    """A class that does not fit into shared memory takes scratch space, with the same result."""
    basis, aux = bundle(Case("pure", "general"))
    device = CudaBackend("group")
    results = []
    for limit in (device.traits.shared_limit, 4000):
        device.traits = replace(device.traits, shared_limit=limit)
        out = device.zeros((basis.nbf, basis.nbf, aux.nbf), np.float64)
        engine = Engine(device, out, row_stride=aux.nbf)
        kets = [k for k in api.basis_kets(aux, coulomb=True) if k.shells.l == momenta[2:]]
        bras = [b for b in api.basis_pairs(basis, RowMap(basis.nbf, packed=False), 0.0) if b.shells.l == momenta[:2]]
        engine.run("coulomb", bras, kets, "hgp")
        results.append(device.to_host(out))
        job = engine.job("coulomb", bras[0], kets[0], "hgp", {**engine.bras(bras)[0], **engine.kets(kets)[0]})
        launch = device._launch_of(job)
        assert launch.program.source.text == general_source("group", "double").text
        assert limit == device.traits.shared_limit and (limit > 4000 or launch.scratch == 0)
    assert np.abs(results[0]).max() > 0
    assert np.abs(results[0] - results[1]).max() <= AGREE * np.abs(results[0]).max()


def test_freed_memory_counts_as_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """CuPy keeps it for later arrays; if plans did not count it as free, a second run would leave half a GPU unused."""
    monkeypatch.setattr(cuda, "POOL_SHARE", 0.0)
    device = CudaBackend()
    pool = device.xp.get_default_memory_pool()
    held = device.zeros((2**22,), np.float64)
    with_it = pool.total_bytes()
    del held
    device.memory()
    assert pool.total_bytes() <= with_it - 8 * 2**22
