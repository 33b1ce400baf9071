"""J and K of erf(omega r)/r, direct and fitted: against the reference and PySCF, by every algorithm."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from bundle import HAS_PYSCF, backend, on
from cuanto import Basis, Molecule, integrals
from cuanto.backends import Backend
from cuanto.backends.cpu.backend import CpuBackend
from cuanto.basis import Shell
from cuanto.coulomb import DirectJK, FittedJK, IncrementalJK
from cuanto.integrals.uploaded_pairs import upload_pairs
from direct_reference import DEVICES, Array, close, densities
from fitting_cases import DATA, Device, budget_of, molecule, random_orbitals, smallest_budget
from oracles import integrals as reference

FITTED = {0.2: 1e-7, 1.0: 1e-9, 10.0: 1e-9}
"""Tolerances against PySCF by omega; PySCF removes other functions from a singular metric than we do."""
LONG_RANGE_FIT = 1e-7
"""Tolerance of fitted against exact matrices for omega below one half, with a fitting set made for 1/r."""
SCREENED = 1e-10
"""Tolerance of J and K with the threshold 1e-12."""
ALGORITHMS = pytest.mark.parametrize("algorithm", ["hgp", "md"])


@pytest.fixture(autouse=True)
def basis_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUANTO_BASIS_PATH", str(DATA / "basis"))


# ----------------------------------------------------------------------------------------- direct J and K


def few_shells(scale: float = 1.0, l_max: int = 2, seed: int = 7) -> Basis:
    """A shell of every angular momentum at its own centre, and two more shells on a common centre."""
    rng = np.random.default_rng(seed)
    momenta = [*range(l_max + 1), max(0, l_max - 2), l_max]
    atoms = [*range(l_max + 1), l_max + 1, l_max + 1]
    shells = [
        Shell.from_table(atom, l, scale * rng.uniform(0.4, 2.0, 2), rng.uniform(0.3, 1.0, (2, 1)), True)
        for l, atom in zip(momenta, atoms, strict=True)
    ]
    return Basis.from_shells(shells, rng.normal(size=(l_max + 2, 3)))


def matrices(G_pqrt: Array, D_pq: Array) -> tuple[Array, Array]:
    return np.einsum("pqrt,rt->pq", G_pqrt, D_pq), np.einsum("prqt,rt->pq", G_pqrt, D_pq)


def check_direct(device: Backend | None, basis: Basis, omega: float, kinds: tuple[str, ...], **options: Any) -> None:
    assert device is not None
    direct = DirectJK(basis, backend=device, threshold=1e-15, omega=omega, **options)
    G_pqrt = reference.eri_4c_tensor(basis, omega)
    for kind in kinds:
        D_pq = densities(basis.nbf)[kind]
        for M, expected in zip(direct(device.to_device(D_pq)), matrices(G_pqrt, D_pq), strict=True):
            close(device.to_host(M), expected)


@ALGORITHMS
@pytest.mark.parametrize("one_pass", [True, False])
@on("cpu-table", "cuda-group", "cuda-thread")
def test_direct(name: str, algorithm: str, one_pass: bool) -> None:
    # Straight-line (dd|dd) by McMurchie-Davidson is never chosen; it would take minutes to compile and much GPU memory.
    basis = few_shells(l_max=1 if (name, algorithm) == ("cuda-thread", "md") else 2)
    check_direct(backend(name), basis, 0.4, ("symmetric", "general"), algorithm=algorithm, one_pass=one_pass)


@on("simt-group", "simt-thread")
def test_direct_on_simt(name: str) -> None:
    for algorithm in ("hgp", "md"):
        check_direct(backend(name), few_shells(l_max=1), 0.4, ("general",), algorithm=algorithm)


@on("cpu-lane", "cuda-thread")
def test_direct_by_straight_line_kernels(name: str) -> None:
    check_direct(backend(name), few_shells(l_max=1), 2.0, ("symmetric",), algorithm="hgp")


@pytest.mark.parametrize("omega", [0.1, 1.0])
def test_tight_pairs_without_charge_are_not_lost(omega: float) -> None:
    """(sd|sd) of tight shells nearly vanishes for a smooth operator, but still bounds (sd|pp)."""
    tight, smooth = few_shells(1e6, l_max=2).shells[3:5], few_shells(0.3, l_max=1).shells[:2]
    basis = Basis.from_shells([*tight, *smooth], few_shells().R_ax[:4])
    D_pq = densities(basis.nbf)["symmetric"]
    exact_matrices = matrices(reference.eri_4c_tensor(basis, omega), D_pq)
    direct = DirectJK(basis, backend=CpuBackend(), threshold=1e-12, omega=omega, one_pass=True)
    for M, expected in zip(direct(D_pq), exact_matrices, strict=True):
        assert np.abs(M - expected).max() <= SCREENED


@pytest.mark.parametrize("precision, error", [("mixed", 1e-8), ("single", 1e-4)])
@DEVICES
def test_other_precisions(device: str, precision: str, error: float) -> None:
    basis = Basis("def2-svp", molecule("water_01"))
    D_pq = random_orbitals(basis.nbf, 5)[1][0]
    for one_pass in (True, False):
        double, other = (
            DirectJK(basis, backend=device, omega=0.33, precision=p, one_pass=one_pass) for p in ("double", precision)
        )
        for M, expected in zip(other(D_pq), double(D_pq), strict=True):
            assert float(abs(M - expected).max()) <= error


def test_fewer_quartets_matter() -> None:
    """Bounds are those of the attenuated operator; increments of the density are used."""
    basis = Basis("6-31g*", molecule("alkane_03"))
    D_pq = 1e-3 * random_orbitals(basis.nbf, 5)[1]
    counts = []
    for omega in (None, 0.3):
        direct = DirectJK(basis, backend="cpu", threshold=1e-9, omega=omega)
        builder = IncrementalJK(direct)
        K = builder(D_pq, None, False, True)[1]
        statistics = direct.statistics.quartets
        assert statistics is not None
        counts.append(statistics.quartets)
        assert np.abs(builder(1.5 * D_pq, None, False, True)[1] - 1.5 * K).max() <= 1e-7
    assert counts[1] < counts[0]


# ----------------------------------------------------------------------------------------- against PySCF


def pyscf_molecule(mol: Molecule, basis: str) -> Any:
    from pyscf import gto

    atoms = [(int(z), tuple(r)) for z, r in zip(mol.numbers, mol.R_ax, strict=True)]
    return gto.M(atom=atoms, unit="Bohr", basis=basis, verbose=0)


@cache
def reference_jk(name: str, set_name: str, omega: float) -> tuple[Array, Array]:
    """J and K of `random_orbitals`: PySCF's, or those of the CPU where there is no PySCF."""
    basis = Basis(set_name, molecule(name))
    D_pq = random_orbitals(basis.nbf, 5)[1][0]
    if not HAS_PYSCF:
        J_pq, K_pq = DirectJK(basis, backend="cpu", threshold=1e-14, omega=omega)(D_pq)
        return J_pq, K_pq
    from pyscf import scf

    mol = pyscf_molecule(molecule(name), set_name)
    with mol.with_range_coulomb(omega):
        J_pq, K_pq = scf.hf.get_jk(mol, D_pq)
    return J_pq, K_pq


SYSTEMS = [("water_01", "def2-svp", 0.2), ("water_01", "def2-svp", 1.0), ("water_01", "def2-svp", 10.0)]
LARGER = ("benzene", "def2-svp", 0.33)


@DEVICES
@pytest.mark.parametrize("name, set_name, omega", [*SYSTEMS, LARGER])
def test_direct_as_pyscf(name: str, set_name: str, omega: float, device: str) -> None:
    expected = reference_jk(name, set_name, omega)
    direct = DirectJK(Basis(set_name, molecule(name)), backend=device, omega=omega)
    D_pq = direct.backend.to_device(random_orbitals(direct.basis.nbf, 5)[1][0])
    for M, exact_M in zip(direct(D_pq), expected, strict=True):
        assert np.abs(direct.backend.to_host(M) - exact_M).max() <= SCREENED


def fit(name: str, set_name: str, omega: float, device: Any, **options: Any) -> tuple[FittedJK, Array, Array]:
    basis, aux = (Basis(which, molecule(name)) for which in (set_name, "def2-universal-jkfit"))
    builder = FittedJK(basis, aux, backend=device, omega=omega, **options)
    C_spi, D_spq = (builder.backend.to_device(x) for x in random_orbitals(basis.nbf, 5))
    J_spq, K_spq = builder(D_spq, C_spi)
    return builder, builder.backend.to_host(J_spq)[0], builder.backend.to_host(K_spq)[0]


@pytest.mark.parametrize("name, set_name, omega", SYSTEMS)
def test_fitted_by_definition(name: str, set_name: str, omega: float) -> None:
    """PySCF's fit with the same operator in metric and integrals; ours, written out, where there is no PySCF."""
    builder, *found = fit(name, set_name, omega, "cpu")
    C_spi, D_spq = random_orbitals(builder.basis.nbf, 5)
    if HAS_PYSCF:
        from pyscf import df

        with df.DF(pyscf_molecule(molecule(name), set_name), "def2-universal-jkfit").range_coulomb(omega) as fitted:
            expected = fitted.get_jk(D_spq[0], hermi=1)
    else:
        I_pqP = integrals.eri_3c(builder.basis, builder.aux, backend="cpu", omega=omega)
        V_PQ = integrals.eri_2c(builder.aux, backend="cpu", omega=omega)
        scale_P = np.diagonal(V_PQ) ** -0.5
        w, U = np.linalg.eigh(V_PQ * np.outer(scale_P, scale_P))
        B_pqP = (I_pqP * scale_P) @ (U[:, w > 1e-12] / np.sqrt(w[w > 1e-12]))
        X_piP = np.einsum("pqP,qi->piP", B_pqP, C_spi[0])
        expected = B_pqP @ np.einsum("pqP,pq->P", B_pqP, D_spq[0]), np.einsum("piP,qiP->pq", X_piP, X_piP)
    for M, theirs in zip(found, expected, strict=True):
        assert np.abs(M - theirs).max() <= FITTED[omega]


def test_gradients_do_not_depend_on_memory() -> None:
    """Rounding errors are magnified by the singular metric, and differ where integrals are recomputed."""
    mol = molecule("benzene")
    basis, aux = Basis("def2-svp", mol), Basis("def2-universal-jkfit", mol)
    C_spi, D_spq = random_orbitals(basis.nbf, 12)
    stored = FittedJK(basis, aux, backend="cpu", omega=0.3)
    less = FittedJK(basis, aux, backend="cpu", omega=0.3, budget=budget_of(0.55 * stored.plan.in_core))
    assert stored.plan.mode == "in-core" and less.plan.mode == "direct" and stored.metric.left_out > 0
    found, expected = (builder.exchange_gradient(D_spq, C_spi) for builder in (less, stored))
    assert np.abs(found - expected).max() < 1e-6 * np.abs(expected).max()


@DEVICES
def test_fitted_larger(device: str) -> None:
    """A singular metric: functions that are left out do not change the result."""
    builder, *found = fit(*LARGER, device)
    assert builder.metric.method == "pivoted cholesky" and builder.metric.left_out > 0
    assert "left out" in str(builder.metric)
    direct = DirectJK(builder.basis, backend="cpu", omega=LARGER[2])
    for M, expected in zip(found, direct(random_orbitals(builder.basis.nbf, 5)[1][0]), strict=True):
        assert np.abs(M - expected).max() <= LONG_RANGE_FIT


@pytest.mark.parametrize("omega", [0.05, 0.2, 1.0])
def test_all_variants_of_fitting(omega: float) -> None:
    """Integrals stored or recomputed, J engine, the GPU code path, given pairs, densities without orbitals."""
    builder, *first = fit("water_01", "def2-svp", omega, "cpu")
    there = Device()
    pairs = upload_pairs(builder.basis, there)
    direct = smallest_budget(builder.basis, builder.aux, "jk", omega)
    for device, options in (("cpu", {"budget": direct}), (there, {}), (there, {"pairs": pairs})):
        other, *found = fit("water_01", "def2-svp", omega, device, **options)
        for M, expected in zip(found, first, strict=True):
            assert np.abs(other.backend.to_host(M) - expected).max() <= SCREENED
        D_spq = random_orbitals(builder.basis.nbf, 5)[1]
        K_spq = other.backend.to_host(other(other.backend.to_device(D_spq))[1])
        assert np.abs(K_spq[0] - first[1]).max() <= SCREENED


def test_j_alone() -> None:
    builder, J_pq, _ = fit("water_01", "def2-svp", 1.0, "cpu")
    alone = FittedJK(builder.basis, builder.aux, backend="cpu", omega=1.0, kind="j")
    J_spq, K_spq = alone(random_orbitals(builder.basis.nbf, 5)[1], want_k=False)
    assert K_spq is None and np.abs(J_spq[0] - J_pq).max() <= SCREENED
