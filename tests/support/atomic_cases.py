"""Atoms for the tests: the stored reference values, the basis sets of the thesis's table, integrals by kind."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from cuanto.atomic import SPECIES, Atom, AtomBasis, Nucleus, Occupation, Repulsion, ScfSettings, one_electron
from cuanto.atomic.configuration import occupation_of, parse_configuration
from cuanto.atomic.pairs import Triangle
from cuanto.atomic.species import exchange_factors
from cuanto.atomic.wtbs import table_set
from cuanto.kernels.atomic import GROUP, PLANES
from cuanto.system.nuclear_sizes import BOHR_IN_FEMTOMETRES
from oracles import atomic as slow
from paths import DATA

Array = NDArray[np.float64]
TIGHT = ScfSettings(threshold_LL=1e-8, threshold_SL=1e-10, threshold_SS=1e-12)
"""Settings for spinor energies and virial ratios, whose error is of first order."""
MODELS = {"point": "point", "gauss": "gaussian", "sphere": "sphere"}
"""Names of nuclear models in the stored values and ours."""
PLANE_NAMES = ("LL", "SS", "LS", "SL", "K_pqrs", "K_pqsr", "K_qprs", "K_qpsr")
"""Kinds of integrals that a kernel stores: LL, SS, LS and SL, and exchange LS for each order of the functions."""


@cache
def stored() -> dict[str, Any]:
    return dict(json.loads((DATA / "atoms_reference.json").read_text()))


@cache
def entries() -> dict[str, dict[str, Any]]:
    """Energies in the basis sets of the thesis's Table 2.1, by symbol."""
    return {entry["element"]: entry for entry in stored()["dhf_table_2_1_basis"]["entries"]}


@cache
def numerical_entries() -> dict[str, dict[str, Any]]:
    """Energies of a numerical program with Fermi nuclei, by atom."""
    found = json.loads((DATA / "atoms_numerical.json").read_text())
    return {entry["atom"]: entry | {"c": found["c"]} for entry in found["atoms"]}


def table_basis(symbol: str, pool: bool = False) -> AtomBasis:
    return replace(table_set(symbol), pool=pool).basis()


def occupation(configuration: str, basis: AtomBasis) -> Occupation:
    return occupation_of(parse_configuration(configuration), (basis.nsym - 1) // 2)


def table_atom(symbol: str, model: str = "point", pool: bool = False) -> Atom:
    entry, basis = entries()[symbol], table_basis(symbol, pool)
    return Atom(Nucleus(entry["Z"], MODELS[model]), basis, occupation(entry["configuration"], basis))


def fermi_nucleus(rms: float, thickness: float = 2.3) -> list[tuple[float, float]]:
    """The Fermi distribution with this root mean square radius (fm) as uniform spheres: weights and radii (Bohr).

    A density that falls with r is a sum of spheres, -rho'(R) R^3 of each radius R.
    """
    a = thickness / (4 * np.log(3))
    offsets = np.linspace(-24 * a, 24 * a, 97)

    def spheres(half: float) -> tuple[Array, Array]:
        R = half + offsets[half + offsets > 0]
        weights = R**3 / np.cosh((R - half) / (2 * a)) ** 2
        return weights / weights.sum(), R

    def error(half: float) -> float:
        weights, R = spheres(half)
        return float(0.6 * weights @ R**2 - rms**2)

    weights, R = spheres(float(brentq(error, 1.0, 10.0)))
    kept = weights > 1e-14
    return list(zip(weights[kept].tolist(), (R[kept] / BOHR_IN_FEMTOMETRES).tolist(), strict=True))


@contextmanager
def fermi_potential(rms: float) -> Iterator[None]:
    """Replace the potential of all nuclei by that of a Fermi distribution with this root mean square radius (fm)."""
    spheres, sphere = fermi_nucleus(rms), one_electron.potential_integral

    def potential_integral(_: Nucleus, n: int, a: Array) -> Any:
        return sum(weight * sphere(Nucleus(1.0, "sphere", R), n, a) for weight, R in spheres)

    with patch.object(one_electron, "potential_integral", potential_integral):
        yield


def random_basis(seed: int, sizes: tuple[int, ...], low: float = -2.0, high: float = 8.0) -> AtomBasis:
    """Exponents between exp(low) and exp(high)."""
    rng = np.random.default_rng(seed)
    return AtomBasis(tuple(np.sort(np.exp(rng.uniform(low, high, size=n))) for n in sizes))


def random_densities(basis: AtomBasis, seed: int = 0) -> list[Array]:
    rng = np.random.default_rng(seed)
    matrices = [rng.normal(size=(2 * n, 2 * n)) for n in basis.sizes]
    return [one + one.T for one in matrices]


def planes(repulsion: Repulsion, i: int, j: int) -> dict[str, Array]:
    """Integrals computed by the kernels, [pair of i, pair of j], expanded from halved diagonals and triangles."""
    plan = repulsion.plan
    if isinstance(plan.layout, Triangle):
        return _triangular(repulsion, i, j)
    rows, columns = (plan.offsets.span(k) for k in (i, j))
    matrices = {name: repulsion.backend.to_host(one) for name, one in repulsion.matrices.items()}
    found = {name: matrices[name][rows, columns] for name in PLANE_NAMES[:4]}
    K = matrices["K"].reshape(2, plan.offsets.total, 2, -1)
    for number, name in enumerate(PLANE_NAMES[4:]):
        found[name] = K[number // 2, rows, number % 2, columns]
    return found


def _triangular(repulsion: Repulsion, i: int, j: int) -> dict[str, Array]:
    offsets, planes = repulsion.plan.offsets, PLANES[repulsion.relativistic]
    begin = next(task.matrix for task in repulsion.plan.layout.tasks() if (task.i, task.j) == (i, j))
    rows, columns = offsets.counts[i], offsets.counts[j]
    X = repulsion.matrices["X"][begin : begin + rows * offsets.widths[j] * planes]
    cube = X.reshape(rows, -1, planes, GROUP)
    found = {name: cube[:, :, k].reshape(rows, -1)[:, :columns] for k, name in enumerate(PLANE_NAMES)}
    if i != j:
        return found
    lower = {name: np.tril(one) for name, one in found.items()}
    mirror = {**{name: name for name in PLANE_NAMES}, "LS": "SL", "SL": "LS", "K_pqsr": "K_qprs", "K_qprs": "K_pqsr"}
    return {name: lower[name] + lower[mirror[name]].T for name in PLANE_NAMES}


def slow_planes(basis: AtomBasis, i: int, j: int, sizes: bool = False) -> dict[str, Array]:
    """The same integrals from the oracle; `sizes`: the sums of the absolute values of their terms."""
    one, other = SPECIES[i], SPECIES[j]
    z, y = basis.exponents[i], basis.exponents[j]
    result = slow.supermatrices(one.kappa, z, other.kappa, y, exchange_factors(one, other), sizes)
    p, q = np.tril_indices(len(z))
    r, s = np.tril_indices(len(y))
    P, Q, R, S = p[:, None], q[:, None], r[None, :], s[None, :]
    sign = 1.0 if sizes else -1.0
    found = {"LS": result["J_LS"][P, Q, R, S], "SL": result["J_SL"][P, Q, R, S]}
    for X in ("LL", "SS"):
        K = result[f"K_{X}"]
        found[X] = result[f"J_{X}"][P, Q, R, S] + sign * 0.5 * (K[P, Q, R, S] + K[P, Q, S, R])
    K = result["K_LS"]
    orders = {"K_pqrs": K[P, Q, R, S], "K_pqsr": K[P, Q, S, R], "K_qprs": K[Q, P, R, S], "K_qpsr": K[Q, P, S, R]}
    return found | {name: sign * values for name, values in orders.items()}
