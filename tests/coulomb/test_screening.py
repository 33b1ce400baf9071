"""Direct J and K: screening, increments, precision, reproducibility, invalid input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.linalg import eigh

from bundle import backend, on
from cuanto import Basis, Molecule, integrals
from cuanto.backends import get_backend
from cuanto.basis import Shell
from cuanto.coulomb import DirectJK, IncrementalJK
from cuanto.coulomb.pair_classes import pair_classes
from cuanto.errors import InputError
from cuanto.kernels.abi import SIZE
from direct_reference import (
    DATA,
    DEVICES,
    EXACT,
    SYSTEMS,
    Array,
    basis_of,
    close,
    densities,
    density,
    molecule_of,
    ours,
    stored,
)

PER_THRESHOLD = 30.0
"""Largest error of an element of J or K in units of the threshold: errors of many neglected quartets add up."""
OWN_PAIR = 0.5
"""Weight of the pair of a shell with itself."""
MIXED = 1e-8
MIXED_ENERGY = 1e-7


@pytest.fixture(autouse=True)
def basis_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUANTO_BASIS_PATH", str(DATA / "basis"))


def benzene() -> Basis:
    return Basis("6-31g**", molecule_of("benzene"), spherical=True)


# ------------------------------------------------------------------------------------------------- screening


@pytest.mark.parametrize("one_pass", [True, False])
@DEVICES
def test_the_error_follows_the_threshold(device: str, one_pass: bool) -> None:
    system = SYSTEMS[0]
    record, basis = stored()[str(system)], basis_of(system)
    D, indices = density(basis), np.array(record["places"])
    errors, counts = [], []
    for threshold in (1e-12, 1e-10, 1e-8, 1e-6):
        direct = DirectJK(basis, backend=device, threshold=threshold, one_pass=one_pass)
        J, K = ours(direct, D)
        found = [M[indices[:, 0], indices[:, 1]] - record[letter]["elements"] for letter, M in (("J", J), ("K", K))]
        errors.append(np.abs(found).max(axis=1))
        assert errors[-1].max() < PER_THRESHOLD * threshold
        statistics = direct.statistics.quartets
        assert statistics is not None and errors[-1][1] < statistics.error
        counts.append(statistics.quartets)
    assert (np.diff(errors, axis=0) > 0).all()
    assert (np.diff(counts) < 0).all()


@DEVICES
def test_several_densities_are_treated_one_by_one(device: str) -> None:
    basis = Basis("6-31g**", molecule_of("water_02"))
    rng = np.random.default_rng(1)
    D = rng.normal(size=(3, basis.nbf, basis.nbf))
    for one_pass in (True, False):
        direct = DirectJK(basis, backend=device, one_pass=one_pass)
        together = ours(direct, D)
        for n in range(len(D)):
            for M, alone in zip(together, ours(direct, D[n]), strict=True):
                close(M[n], alone, EXACT)


@DEVICES
def test_only_wanted_matrices(device: str) -> None:
    basis = Basis("sto-3g", molecule_of("water_02"))
    D = densities(basis.nbf)["symmetric"]
    for one_pass in (True, False):
        direct = DirectJK(basis, backend=device, one_pass=one_pass)
        J, K = ours(direct, D)
        for wanted, both in (({"want_k": False}, (J, None)), ({"want_j": False}, (None, K))):
            for M, expected in zip(ours(direct, D, **wanted), both, strict=True):
                assert (M is None) == (expected is None)
                if expected is not None:
                    close(M, expected)
        close(direct.backend.to_host(direct.j(direct.backend.to_device(D))), J)
        close(direct.backend.to_host(direct.k(direct.backend.to_device(D))), K)


@pytest.mark.parametrize("one_pass", [True, False])
@DEVICES
def test_zero_density(device: str, one_pass: bool) -> None:
    basis = Basis("sto-3g", molecule_of("water_01"))
    direct = DirectJK(basis, backend=device, one_pass=one_pass)
    J, K = ours(direct, np.zeros((basis.nbf, basis.nbf)))
    assert not J.any() and not K.any()
    statistics = direct.statistics.quartets
    assert statistics is not None and statistics.quartets == statistics.single == 0


# ------------------------------------------------------------------------------------------------ increments


def test_increments_are_cheap_and_add_up() -> None:
    basis = benzene()
    D, change = density(basis), density(basis, length=1.0)
    threshold = 1e-10
    direct = DirectJK(basis, backend="cpu", threshold=threshold)
    incremental, counts = IncrementalJK(direct), []
    for step in (0.0, 1e-2, 1e-4, 1e-6):
        D = D + step * change
        J, K = incremental(D)
        statistics = direct.statistics
        assert statistics.quartets is not None and statistics.coulomb is not None
        counts.append((statistics.quartets.quartets, statistics.coulomb.interactions))
        for M, full in zip((J, K), DirectJK(basis, backend="cpu", threshold=threshold)(D), strict=True):
            assert np.abs(M - full).max() < PER_THRESHOLD * threshold
    assert (np.diff(counts, axis=0) < 0).all()
    assert counts[-1][0] < 0.5 * counts[0][0]


class Recorder(DirectJK):
    """Records the largest element of every density that it is called with."""

    def __init__(self, basis: Basis) -> None:
        super().__init__(basis, backend="cpu")
        self.sizes: list[float] = []

    def __call__(self, D: Any, **wanted: bool) -> tuple[Any, Any]:
        self.sizes.append(float(np.abs(D).max()))
        return super().__call__(D, **wanted)


def test_full_rebuild_after_restart_calls() -> None:
    basis = Basis("sto-3g", molecule_of("water_01"))
    recorder = Recorder(basis)
    incremental = IncrementalJK(recorder, restart=3)
    D = np.eye(basis.nbf)
    for step in range(7):
        D = D + 0.125 * (step > 0) * np.eye(basis.nbf)
        incremental(D)
    assert recorder.sizes == [1.0, 0.125, 0.125, 1.375, 0.125, 0.125, 1.75]


def test_full_rebuild_for_large_changes_and_other_shapes() -> None:
    basis = Basis("sto-3g", molecule_of("water_01"))
    recorder = Recorder(basis)
    incremental = IncrementalJK(recorder)
    D = np.eye(basis.nbf)
    incremental(D)
    incremental(-D)
    J, _ = incremental(np.stack([D, D]))
    assert recorder.sizes == [1.0, 1.0, 1.0] and J.shape == (2, basis.nbf, basis.nbf)


def test_results_of_increments_belong_to_the_caller() -> None:
    basis = Basis("sto-3g", molecule_of("water_01"))
    incremental = IncrementalJK(DirectJK(basis, backend="cpu"))
    D = np.eye(basis.nbf)
    J, K = incremental(D)
    first = J.copy(), K.copy()
    J[:], K[:], D[:] = 7.0, 7.0, 1e-3 * np.eye(basis.nbf) + np.eye(basis.nbf)
    for M, exact in zip(incremental(D), first, strict=True):
        close(M, 1.001 * exact, EXACT)


# ------------------------------------------------------------------------------------------- reproducibility


def test_same_bits_again_on_the_cpu() -> None:
    basis = Basis("6-31g**", molecule_of("water_03"))
    D = density(basis)
    direct = DirectJK(basis, backend="cpu", one_pass=True)
    direct(D)
    direct.finish_compiling()
    first = direct(D)
    for _ in range(3):
        assert all(np.array_equal(M, again) for M, again in zip(first, direct(D), strict=True))


@pytest.mark.gpu
def test_repeated_builds_agree_on_a_gpu() -> None:
    basis = benzene()
    D = density(basis)
    for one_pass in (True, False):
        direct = DirectJK(basis, backend="cuda", one_pass=one_pass)
        ours(direct, D)
        direct.finish_compiling()
        first = ours(direct, D)
        for M, again in zip(first, ours(direct, D), strict=True):
            assert np.abs(M - again).max() < 1e-12


# ------------------------------------------------------------------------------------------------- precision


def guess_density(molecule: Molecule, basis: Basis) -> Array:
    """Density of non-interacting electrons: idempotent, like a converged one."""
    S, T = (function(basis, backend="cpu") for function in (integrals.overlap, integrals.kinetic))
    C_pi = eigh(T + integrals.nuclear(basis, molecule, backend="cpu"), S)[1][:, : molecule.nelectron // 2]
    D: Array = 2.0 * C_pi @ C_pi.T
    return D


@pytest.mark.parametrize("one_pass", [True, False])
@DEVICES
def test_precision(device: str, one_pass: bool) -> None:
    basis = benzene()
    D = guess_density(molecule_of("benzene"), basis)
    double = DirectJK(basis, backend=device, one_pass=one_pass)
    exact = ours(double, D)
    most = double.statistics.quartets
    assert most is not None and most.single == 0 and 0 < most.quartets <= most.possible
    for precision in ("mixed", "single"):
        direct = DirectJK(basis, backend=device, precision=precision, one_pass=one_pass)
        J, K = ours(direct, D)
        statistics = direct.statistics.quartets
        assert statistics is not None and statistics.quartets == most.quartets
        assert statistics.error >= np.abs(K - exact[1]).max()
        if one_pass:
            assert direct.statistics.coulomb is None and statistics.error >= np.abs(J - exact[0]).max()
        if precision == "single":
            assert statistics.single == statistics.quartets
            continue
        assert 0 < statistics.single < statistics.quartets
        assert max(np.abs(M - N).max() for M, N in zip((J, K), exact, strict=True)) < MIXED
        energies = [0.5 * ((M - 0.5 * N) * D).sum() for M, N in ((J, K), exact)]
        assert abs(energies[0] - energies[1]) < MIXED_ENERGY


@on("cpu-table", "simt-group", "cuda-group", "cuda-thread")
def test_all_quartets_are_counted(name: str) -> None:
    """Quartets of shells with several columns are counted for every column; padding of lists is not."""
    shells = [Shell.from_table(l, l, [0.5, 1.5], [[0.3, 0.8], [0.7, -0.2]], True) for l in (0, 1)]
    basis = Basis.from_shells(shells, [[0.0, 0.0, 0.0], [0.5, -0.4, 0.3]])
    device = backend(name)
    assert device is not None
    direct = DirectJK(basis, backend=device, threshold=1e-30)
    ours(direct, np.ones((basis.nbf, basis.nbf)), want_j=False)
    statistics = direct.statistics.quartets
    # Pairs of shells: ss, ps, pp, each with four columns; a pair with itself meets all of its columns.
    assert statistics is not None and statistics.quartets == statistics.possible == 16 * (3 + 3)


# ------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    "options, word",
    [
        ({"precision": "half"}, "double, mixed, single"),
        ({"algorithm": "rys"}, "hgp"),
        ({"threshold": 0.0}, "threshold"),
        ({"threshold": -1e-10}, "threshold"),
        ({"threshold": float("nan")}, "threshold"),
        ({"backend": "abacus"}, "abacus"),
    ],
)
def test_bad_options(options: dict[str, Any], word: str) -> None:
    basis = Basis("sto-3g", molecule_of("water_01"))
    with pytest.raises(InputError, match=word) as caught:
        DirectJK(basis, **{"backend": "cpu", **options})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("shape", [(3, 3), (7,), (7, 3), (0, 7, 7), (1, 1, 7, 7), ()])
def test_bad_shapes(shape: tuple[int, ...]) -> None:
    direct = DirectJK(Basis("sto-3g", molecule_of("water_01")), backend="cpu")
    for call in (direct, direct.j, direct.k, IncrementalJK(direct)):
        with pytest.raises(InputError, match="7 x 7") as caught:
            call(np.ones(shape))
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_bad_numbers(value: float) -> None:
    direct = DirectJK(Basis("sto-3g", molecule_of("water_01")), backend="cpu")
    D = np.eye(7)
    D[2, 3] = value
    for call in (direct, IncrementalJK(direct)):
        with pytest.raises(InputError, match="finite"):
            call(D)


def test_other_bad_input() -> None:
    with pytest.raises(InputError, match=r"cuanto\.Basis"):
        DirectJK("sto-3g")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="restart"):
        IncrementalJK(DirectJK(Basis("sto-3g", molecule_of("water_01")), backend="cpu"), restart=0)


def test_the_backend_by_name() -> None:
    assert DirectJK(Basis("sto-3g", molecule_of("water_01")), backend="cpu").backend is get_backend("cpu")


@pytest.mark.parametrize("l", range(1, 6))
def test_sizes_of_products_of_cartesian_functions(l: int) -> None:
    """Those of h functions had been a thousandth of sqrt((ab|ab)), and quartets were left out."""
    shell = Shell.from_table(0, l, (0.9,), ((1.0,),), pure=False)
    basis = Basis.from_shells([shell], np.zeros((1, 3)))
    (pair,) = pair_classes(basis, 0.0)
    n = basis.nbf
    exact = np.sqrt(integrals.eri_4c(basis, backend="cpu").reshape(n * n, n * n).diagonal().max())
    size = pair.bra.record[:, SIZE].max() / OWN_PAIR
    assert 1 / 3 < size / exact < 3
