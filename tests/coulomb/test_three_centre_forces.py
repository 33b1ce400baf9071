"""Forces of three-centre integrals: kernels against NumPy, gradients against the reference and libcint."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from bundle import HAS_PYSCF, Case, backend, bundle, on
from cuanto import Basis
from cuanto.backends import Backend
from cuanto.backends.base import Launch
from cuanto.backends.cpu.backend import CpuBackend
from cuanto.backends.cuda.nvrtc import compile_nvrtc
from cuanto.basis import Shell
from cuanto.coulomb import three_centre_forces
from cuanto.coulomb.fitted_tensor import ThreeCentre
from cuanto.coulomb.three_centre_forces import THRESHOLD, ThreeCentreForces, primitive_pairs
from cuanto.integrals.pairs import pair_batches
from cuanto.integrals.segments import segments
from cuanto.kernels import fitting_force as kernels
from cuanto.kernels.abi import COULOMB_BRA
from cuanto.kernels.recurrences.components import kernel_matrix, polynomials, powers
from oracle import Array, _libcint_arrays
from oracles.fitting_forces import derivative_coefficients, hermite_forces, three_centre_gradient
from oracles.integrals.hermite import expansion_coefficients

AGREEMENT = 1e-10
OMEGA = 0.4


@cache
def shells(momenta: str, aux_momenta: str, pure: bool = True) -> tuple[Basis, Basis]:
    """Contracted shells on five atoms; the first shell has two columns, and one atom has two shells."""
    rng = np.random.default_rng(5)
    R_ax = rng.normal(size=(5, 3))

    def make(letters: str, first: int) -> Basis:
        chosen = []
        for number, letter in enumerate(letters):
            table = rng.uniform(0.3, 1.0, (2, 2 if number == 0 and first == 0 else 1))
            atom = (first + number) % 5
            chosen.append(Shell.from_table(atom, "spdfg".index(letter), rng.uniform(0.3, 3.0, 2), table, pure))
        return Basis.from_shells(chosen, R_ax)

    return make(momenta, 0), make(aux_momenta, 1)


def orbitals(basis: Basis, aux: Basis, count: int = 3) -> tuple[Array, Array, Array]:
    """Random C_pi and symmetric Y_ijP, and Gamma_pqP = sum_ij C_pi C_qj Y_ijP."""
    rng = np.random.default_rng(2)
    C_pi, Y_ijP = rng.normal(size=(basis.nbf, count)), rng.normal(size=(count, count, aux.nbf))
    Y_ijP += Y_ijP.transpose(1, 0, 2)
    return C_pi, Y_ijP, np.einsum("pi,qj,ijP->pqP", C_pi, C_pi, Y_ijP)


def forces(device: Backend, basis: Basis, aux: Basis, parts: int = 1, omega: float | None = None, **more: Any) -> Array:
    """The gradient from `orbitals`, added up in several parts."""
    C_pi, Y_ijP, _ = orbitals(basis, aux)
    result = ThreeCentreForces(ThreeCentre(basis, aux, device, omega), **{"threshold": 1e-16, **more})
    Y = np.zeros((*Y_ijP.shape[:2], result.width))
    Y[:, :, : aux.nbf] = Y_ijP[:, :, result.order]
    some = np.array_split(np.arange(len(Y)), parts)
    all_parts = [tuple(device.to_device(x) for x in (C_pi[:, i], C_pi, Y[i])) for i in some]
    if parts == 2:
        result.add(all_parts)
    else:
        for part in all_parts:
            result.add([part])
    return result.gradient()


@cache
def by_reference(basis: Basis, aux: Basis, omega: float | None) -> Array:
    return three_centre_gradient(basis, aux, orbitals(basis, aux)[2], omega)


@pytest.mark.parametrize("omega", [None, OMEGA])
@pytest.mark.parametrize("pure", [True, False])
@on("cpu-table", "cpu-lane", "simt-group", "cuda-group", "cuda-thread")
def test_against_the_reference(name: str, pure: bool, omega: float | None) -> None:
    basis, aux = shells("spdps", "spd", pure)
    found = forces(backend(name), basis, aux, omega=omega)
    expected = by_reference(basis, aux, omega)
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=AGREEMENT * np.abs(expected).max())
    np.testing.assert_allclose(found.sum(axis=0), 0.0, atol=AGREEMENT * np.abs(expected).max())


@pytest.mark.parametrize("name, parts", [("cpu-table", 2), ("cpu-table", 3), ("simt-group", 2)])
def test_parts_of_the_density(name: str, parts: int) -> None:
    basis, aux = shells("spdps", "spd")
    expected = by_reference(basis, aux, None)
    found = forces(backend(name), basis, aux, parts)
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=AGREEMENT * np.abs(expected).max())


def by_libcint(basis: Basis, aux: Basis, omega: float | None) -> Array:
    """2 sum_pqP Gamma_pqP (d/dA pq|P) on the centres of p, and its negative on those of P."""
    from pyscf import gto

    kind = "_cart" if any(shell.l > 1 and not shell.pure for shell in basis.shells) else "_sph"
    every = [*basis.shells, *aux.shells]
    centres = [*(basis.R_ax[s.atom] for s in basis.shells), *(aux.R_ax[s.atom] for s in aux.shells)]
    atm, bas, env = _libcint_arrays(every, centres)
    env[gto.mole.PTR_RANGE_OMEGA] = omega or 0.0
    count = len(bas) * len(basis.shells) // len(every)
    columns = sum(shell.coefficients.shape[1] > 1 for shell in every)
    assert columns == 0 and len(bas) == len(every)
    slices = (0, count, 0, count, count, len(bas))
    ip = gto.moleintor.getints("int3c2e_ip1" + kind, atm, bas, env, shls_slice=slices, comp=3)
    force_xpP = -2.0 * np.einsum("xpqP,pqP->xpP", ip, orbitals(basis, aux)[2])  # d/dA = -d/dr
    gradient = np.zeros_like(basis.R_ax)
    np.add.at(gradient, basis.function_atoms, force_xpP.sum(axis=2).T)
    np.add.at(gradient, aux.function_atoms, -force_xpP.sum(axis=1).T)
    return gradient


@pytest.mark.skipif(not HAS_PYSCF, reason="PySCF is not installed")
@pytest.mark.parametrize("omega", [None, OMEGA])
def test_high_momenta_against_libcint(omega: float | None) -> None:
    """f and g functions, with fitting functions to i; tight, diffuse and distant ones."""
    for exponents in ("normal", "mixed"):
        case = Case("pure", "primitive", exponents=exponents, l_max=4, aux_max=6)
        orbital, fitting = bundle(case)
        R_ax = np.concatenate([orbital.R_ax, fitting.R_ax])
        moved = [Shell(s.atom + len(orbital.R_ax), s.l, s.exponents, s.coefficients, s.pure) for s in fitting.shells]
        basis, aux = Basis.from_shells(list(orbital.shells), R_ax), Basis.from_shells(moved, R_ax)
        found, expected = forces(backend("cpu-table"), basis, aux, omega=omega), by_libcint(basis, aux, omega)
        np.testing.assert_allclose(found, expected, rtol=0.0, atol=AGREEMENT * np.abs(expected).max())


def test_passes_do_not_change_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """Passes with only one segment and a few pairs give the same result."""
    basis, aux = shells("spdps", "spd")
    whole = forces(backend("cpu-table"), basis, aux)
    monkeypatch.setattr(three_centre_forces, "CANDIDATES", 10)
    np.testing.assert_allclose(forces(backend("cpu-table"), basis, aux, limit=2e4), whole, rtol=0.0, atol=1e-11)


def test_bits_do_not_depend_on_threads() -> None:
    basis, aux = shells("spdps", "spd")
    one, two = (forces(CpuBackend(threads=n, schedule="table"), basis, aux) for n in (1, 2))
    assert np.array_equal(one, two)


# ---------------------------------------------------------------------------------------------- screening


def test_pairs_equal_those_of_an_exhaustive_search() -> None:
    """The first, rough selection loses none; each pair of segments is included once."""
    basis, _ = bundle(Case("pure", "contracted", "distant", "mixed", l_max=2))
    for x, a in enumerate(segments(basis)):
        for b in segments(basis)[: x + 1]:
            u, v = primitive_pairs(a, b, 1e-8)
            owner_a, owner_b = (np.repeat(np.arange(c.count), c.sizes) for c in (a, b))
            every_u, every_v = (index.reshape(-1) for index in np.indices((len(owner_a), len(owner_b))))
            R2 = ((a.centres[owner_a[every_u]] - b.centres[owner_b[every_v]]) ** 2).sum(axis=1)
            alpha, beta = a.exponents[every_u], b.exponents[every_v]
            size = three_centre_forces._sizes(a, b, alpha, beta, R2) * np.exp(-alpha * beta / (alpha + beta) * R2)
            keep = size * a.largest[every_u] * b.largest[every_v] > 1e-8
            keep &= (owner_a[every_u] >= owner_b[every_v]) | (a is not b)
            assert np.array_equal(u, every_u[keep]) and np.array_equal(v, every_v[keep])


def test_the_threshold_bounds_the_error() -> None:
    basis, aux = shells("spdps", "spd")
    spread = (
        Basis.from_shells(list(basis.shells), 4.0 * basis.R_ax),
        Basis.from_shells(list(aux.shells), 4.0 * aux.R_ax),
    )
    exact = forces(backend("cpu-table"), *spread)
    for threshold in (1e-6, 1e-9):
        error = np.abs(forces(backend("cpu-table"), *spread, threshold=threshold) - exact).max()
        assert 0.0 < error < 1e4 * threshold  # densities of random orbitals are large
    assert np.abs(forces(backend("cpu-table"), *spread, threshold=THRESHOLD) - exact).max() < 1e-9


# -------------------------------------------------------------------------------------------- the kernels


@pytest.mark.parametrize("omega", [None, OMEGA])
@on("cpu-table", "simt-group", "cuda-group")
def test_records_of_pairs(name: str, omega: float | None) -> None:
    """Records equal those of integrals, except for the operator and a factor of 2 for pairs of different segments."""
    device = backend(name)
    basis, _ = shells("spdps", "s")
    result = three_centre_forces._Classes(basis, device, omega, 1, 1e-100)
    for x, a in enumerate(result.all):
        for y, b in enumerate(result.all[: x + 1]):
            pairs = result.pairs(x, y)
            (batch,) = pair_batches(a, b, x == y, lambda p, q: p * basis.nbf + q, 0.0, split=False)
            first, second = (np.repeat(np.arange(c.count), c.sizes) for c in (a, b))
            u, v = (device.to_host(pairs.arrays[key]) for key in ("u", "v"))
            order = np.lexsort((v, u, second[v], first[u]))
            record, coefficient, factor = (
                device.to_host(pairs.arrays[key])[order] for key in ("record", "coefficient", "bra_coefficient")
            )
            p = 0.5 / record[:, 10]
            np.testing.assert_allclose(record[:, 0], p / (1.0 + p / omega**2) if omega else p, rtol=1e-14)
            np.testing.assert_allclose(factor[:, 0], np.sqrt(record[:, 0] / p), rtol=1e-14)
            np.testing.assert_allclose(record[:, 1:11], batch.record[:, 1:11], rtol=1e-13, atol=1e-14)
            P, exact = (x[:, 1:4] + x[:, 11:14] for x in (record, batch.record))
            np.testing.assert_allclose(P, exact, rtol=1e-15)
            twice = np.where((first[u] == second[v])[order] & (a is b), 1.0, 2.0)
            np.testing.assert_allclose(coefficient, twice[:, None] * batch.coefficient, rtol=1e-12)


@pytest.mark.parametrize("la, lb", [(0, 0), (1, 0), (2, 1), (3, 2)])
@on("cpu-table", "simt-group", "cuda-group")
def test_expansions(name: str, la: int, lb: int) -> None:
    """E and dE/d(A - B) = dE/dA - (alpha/p) d/dP, from raised and lowered functions; one pair is on one centre."""
    device, rng = backend(name), np.random.default_rng(la)
    alpha, beta, AB = rng.uniform(0.3, 2.0, 4), rng.uniform(0.3, 2.0, 4), rng.normal(size=(4, 3))
    AB[3] = 0.0
    p = alpha + beta
    record = np.zeros((4, COULOMB_BRA))
    record[:, 4:7], record[:, 7:10], record[:, 10] = -(beta / p)[:, None] * AB, (alpha / p)[:, None] * AB, 0.5 / p
    coefficient, table = rng.normal(size=(4, 2)), kernels.raised_tuples(la + lb)
    functions = 2 * la + 1, 2 * lb + 1
    E = device.zeros((4, 2 * functions[0], functions[1], len(table), 4), np.float64)
    arguments: dict[str, Any] = {"la": la, "lb": lb, "a_columns": 2, "b_columns": 1, "tuples": len(table), "E": E}
    arguments |= {"a_functions": functions[0], "b_functions": functions[1], "share": device.zeros((4,), np.float64)}
    host = {"record": record, "coefficient": coefficient, "table": table}
    for letter, l in (("a", la), ("b", lb)):
        start, power, value = polynomials(((l, True),))
        host |= {f"{letter}_start": start, f"{letter}_power": power, f"{letter}_value": value}
    program = device.compile(kernels.fit_expand_source(device.traits.language))
    device.launch(program, 4, {**arguments, **device.upload(host)}, kernels.expansion_memory(la, lb))
    expected = np.zeros((4, functions[0], functions[1], len(table), 4))
    i, j = (np.array(powers(l)) for l in (la, lb))
    Ca, Cb = (np.array(kernel_matrix(l, True)) for l in (la, lb))
    t = table[table[:, 3] == 1, :3]
    for k in range(4):
        value, slope = [], []
        for x in range(3):
            one = alpha[k : k + 1], beta[k : k + 1], float(AB[k, x])
            plain = expansion_coefficients(la, lb, *one)[..., 0] / np.exp(-alpha[k] * beta[k] / p[k] * AB[k, x] ** 2)
            by_A = derivative_coefficients(la, lb, *one)[..., 0] / np.exp(-alpha[k] * beta[k] / p[k] * AB[k, x] ** 2)
            by_A[:, :, 1:] -= alpha[k] / p[k] * plain
            assert np.abs(by_A[:, :, -1]).max() < 1e-12  # the order does not rise
            value.append(plain), slope.append(by_A[:, :, :-1] if k < 3 else 0.0 * plain)
        for c in range(4):
            axes = [slope[x] if c == x + 1 else value[x] for x in range(3)]
            picked = [axes[x][i[:, None, None, x], j[None, :, None, x], t[:, x]] for x in range(3)]
            expected[k, :, :, : len(t), c] = np.einsum("ma,nb,abt->mnt", Ca, Cb, picked[0] * picked[1] * picked[2])
    contracted = coefficient[:, :, None, None, None, None] * expected[:, None]
    found = device.to_host(E).reshape(contracted.shape)
    # For a pair on one centre, forces do not depend on the share.
    np.testing.assert_allclose(found[:3], contracted[:3], rtol=0.0, atol=1e-12)
    np.testing.assert_allclose(found[3, ..., 0], contracted[3, ..., 0], rtol=0.0, atol=1e-12)
    np.testing.assert_allclose(device.to_host(arguments["share"])[:3], (alpha / p)[:3], rtol=1e-14)


@pytest.mark.parametrize("order", [0, 1, 2])
@on("cpu-table", "simt-group", "cuda-group")
def test_contraction(name: str, order: int) -> None:
    """Three pairs in two items, 32 fitting functions in as many parts as the device takes."""
    device, rng = backend(name), np.random.default_rng(order)
    language, width, rows, columns = device.traits.language, 32, 2, 3
    table = kernels.raised_tuples(order)
    t = table[table[:, 3] == 1]
    E = np.zeros((3, rows * columns, len(table), 4))
    E[:, :, : len(t)] = rng.normal(size=(3, rows * columns, len(t), 4))
    hermites = int(table.max()) + 1
    W, Gamma, share = rng.normal(size=(3, hermites, width)), rng.normal(size=(9, 8, width)), rng.uniform(size=3)
    a_place, b_place = rows * np.array([4, 5, 6]), columns * np.array([2, 2, 3])
    target = device.zeros((3 * width + 3 * 4,), np.float64)
    arrays = {"item_first": np.array([0, 2, 3]), "atom_a": np.array([0, 1]), "atom_b": np.array([2, 3]), "table": table}
    arrays |= {"E": E, "share": share, "a_place": a_place, "b_place": b_place, "Gamma": Gamma, "W": W}
    sizes = {"first": 0, "parts": 2, "rows": rows, "columns": columns, "tuples": len(table), "hermites": hermites}
    sizes |= {"width": width, "a_base": 6, "b_base": 3, "a_stride": width, "b_stride": 8 * width}
    program = device.compile(kernels.fit_force_source(language))
    arguments = {**device.upload(arrays), **sizes, "target": target}
    device.launch_all([Launch(program, 2 * sizes["parts"], arguments, sums="target")])
    a, b = a_place - 6, b_place - 3
    Gamma_kfP = np.stack([Gamma[b[k] : b[k] + columns, a[k] : a[k] + rows].transpose(1, 0, 2) for k in range(3)])
    expected, by_R = hermite_forces(E[:, :, : len(t)], Gamma_kfP.reshape(3, -1, width), W, t[:, 5:8].T)
    found = device.to_host(target)
    np.testing.assert_allclose(found[: 3 * width].reshape(3, width), -expected.sum(axis=0), rtol=0.0, atol=1e-12)
    on_A = (share[:, None, None] * expected + by_R).sum(axis=2)
    on_both = expected.sum(axis=2)
    forces_on_atoms = [on_A[0] + on_A[1], on_A[2], (on_both - on_A)[0] + (on_both - on_A)[1], (on_both - on_A)[2]]
    np.testing.assert_allclose(found[3 * width :].reshape(4, 3), forces_on_atoms, rtol=0.0, atol=1e-11)


@pytest.mark.parametrize("make", [kernels.fit_pairs_source, kernels.fit_expand_source, kernels.fit_force_source])
def test_nvrtc_compiles(make: Any) -> None:
    cubin, log = compile_nvrtc(make("cuda").text, "sm_90")
    assert cubin.startswith(b"\x7fELF") and "warning" not in log, log
