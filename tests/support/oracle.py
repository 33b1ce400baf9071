"""Independent evaluations of integrals for the tests: libcint through PySCF, and mpmath with forty digits.

Operators are named "overlap", "kinetic", "nuclear", "dipole", "2c", "3c", "4c". A block is described by its
shells and their centres; nuclear attraction takes point charges, the dipole its origin.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, reduce
from itertools import product
from math import comb, factorial, perm
from typing import Any

import mpmath as mp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from cuanto.basis.shell import Shell
from cuanto.basis.solid_harmonics import cartesian_powers, solid_harmonic_matrix
from oracles import integrals as reference
from tolerances import INTEGRAL_ABS, INTEGRAL_REL, SMALLEST

Array = NDArray[np.float64]
Shells = Sequence[Shell]
Centres = Sequence[ArrayLike] | Array


def random_shell(
    rng: np.random.Generator, l: int, nprim: int = 1, ncol: int = 1, pure: bool = True, scale: float = 1.0
) -> Shell:
    """A normalised shell whose exponents lie around `scale`, a factor of about three apart."""
    exponents = scale * 3.0 ** (np.arange(nprim)[::-1] - (nprim - 1) / 2 + rng.uniform(-0.3, 0.3, nprim))
    coefficients = rng.uniform(0.2, 1.0, (nprim, ncol)) * rng.choice([-1.0, 1.0], (nprim, ncol))
    return Shell.from_table(0, l, exponents, coefficients, pure)


def reference_block(operator: str, shells: Shells, centres: Centres, **extra: Any) -> Array:
    """The NumPy reference's block; `extra` is charges and positions (nuclear) or origin (dipole)."""
    functions: dict[str, Callable[..., Array]] = {
        "overlap": reference.overlap,
        "kinetic": reference.kinetic,
        "nuclear": reference.nuclear,
        "dipole": reference.dipole,
        "2c": reference.eri_2c,
        "3c": reference.eri_3c,
        "4c": reference.eri_4c,
    }
    arguments = [item for placed in zip(shells, centres, strict=True) for item in placed]
    return functions[operator](*arguments, **extra)


def block_scale(operator: str, shells: Shells, centres: Centres, **extra: Any) -> float:
    """The largest sum of absolute cartesian contributions to any element of the block.

    For cartesian shells this is the largest element. A pure function is a sum of cartesian ones that may
    cancel almost completely (a tight f and a smooth partner have next to no overlap): no evaluation by way of
    cartesian functions in double precision can be more accurate than some eps times this scale.
    """
    block = abs(reference_block(operator, [replace(shell, pure=False) for shell in shells], centres, **extra))
    lead = 1 if operator == "dipole" else 0
    for axis, shell in enumerate(shells, start=lead):
        if shell.pure and shell.l >= 2:  # s and p are the same in both forms
            size = np.kron(np.eye(shell.ncol), abs(solid_harmonic_matrix(shell.l)))
            block = np.moveaxis(np.tensordot(size, block, axes=(1, axis)), 0, axis)
    return float(block.max())


def assert_block(
    values: Array, operator: str, shells: Shells, centres: Centres, strict: bool = False, **extra: Any
) -> None:
    """`values` are libcint's or, where libcint differs (some of its blocks are good to 1e-10 only), mpmath's.

    The error allowed is 1e-12 of the block's largest element, and 100 eps of `block_scale` unless `strict`.
    """
    floor = 0.0 if strict else INTEGRAL_ABS * block_scale(operator, shells, centres, **extra)

    def excess(exact: Array) -> float:
        assert values.shape == exact.shape
        return float(abs(values - exact).max() / (INTEGRAL_REL * abs(exact).max() + floor + SMALLEST))

    if len({shell.pure for shell in shells}) == 1 and excess(pyscf_block(operator, shells, centres, **extra)) <= 1:
        return
    ratio = excess(mp_block(operator, shells, centres, **extra))
    assert ratio <= 1, f"{operator} {describe(shells)}: error is {ratio:.2g} times the tolerance"


def describe(shells: Shells) -> str:
    """Description of shells for failing tests."""
    return ", ".join(
        f"l={s.l} {'pure' if s.pure else 'cartesian'} exponents {s.exponents.round(6).tolist()}" for s in shells
    )


# ------------------------------------------------------------------------------------- libcint through PySCF

_LIBCINT = {
    "overlap": "int1e_ovlp",
    "kinetic": "int1e_kin",
    "nuclear": "int1e_rinv",
    "dipole": "int1e_r",
    "2c": "int2c2e",
    "3c": "int3c2e",
    "4c": "int2e",
}


def pyscf_block(
    operator: str,
    shells: Shells,
    centres: Centres,
    charges: ArrayLike = (),
    positions: ArrayLike = (),
    origin: ArrayLike = (0.0, 0.0, 0.0),
) -> Array:
    """libcint's block of the same shells. All must be pure or all cartesian, as in a PySCF molecule."""
    from pyscf import gto

    if len({shell.pure for shell in shells}) != 1:
        raise ValueError("libcint takes shells that are all pure or all cartesian")
    atm, bas, env = _libcint_arrays(shells, centres)
    name = _LIBCINT[operator] + ("_sph" if shells[0].pure else "_cart")
    shls_slice = tuple(edge for i in range(len(shells)) for edge in (i, i + 1))

    def integrals() -> Array:
        result: Array = gto.moleintor.getints(name, atm, bas, env, shls_slice=shls_slice)
        return result

    if operator == "nuclear":
        block = np.zeros((shells[0].nbf, shells[1].nbf))
        for charge, position in zip(np.reshape(charges, -1), np.reshape(positions, (-1, 3)), strict=True):
            env[gto.mole.PTR_RINV_ORIG : gto.mole.PTR_RINV_ORIG + 3] = position
            block -= charge * integrals()
        return block
    env[gto.mole.PTR_COMMON_ORIG : gto.mole.PTR_COMMON_ORIG + 3] = origin
    return integrals()


def _libcint_arrays(shells: Shells, centres: Centres) -> tuple[NDArray[np.int32], NDArray[np.int32], Array]:
    """libcint's tables, filled by hand so that our coefficients arrive unchanged; one bare atom per shell.

    libcint multiplies r^l exp(-a r^2) with the coefficients it is given: PySCF normalises before it calls.
    """
    from pyscf import gto

    env = list(np.zeros(gto.mole.PTR_ENV_START))
    env[gto.mole.PTR_EXPCUTOFF] = 600.0  # drop nothing above the underflow limit: small blocks are compared, too
    atm = np.zeros((len(shells), gto.mole.ATM_SLOTS), dtype=np.int32)
    bas = np.zeros((len(shells), gto.mole.BAS_SLOTS), dtype=np.int32)
    for i, (shell, centre) in enumerate(zip(shells, centres, strict=True)):
        atm[i, gto.mole.PTR_COORD] = len(env)
        env += list(np.asarray(centre, float))
        bas[i, gto.mole.ATOM_OF] = i
        bas[i, gto.mole.ANG_OF] = shell.l
        bas[i, gto.mole.NPRIM_OF] = shell.nprim
        bas[i, gto.mole.NCTR_OF] = shell.ncol
        bas[i, gto.mole.PTR_EXP] = len(env)
        env += list(shell.exponents)
        bas[i, gto.mole.PTR_COEFF] = len(env)
        env += list(shell.coefficients.T.ravel())
    return atm, bas, np.array(env)


# -------------------------------------------------------------------------------------- mpmath, forty digits
# The formulas of McMurchie and Davidson, one element at a time, with enough digits to survive all
# cancellation. A function is a polynomial {(i, j, k): coefficient} times exp(-a r^2) about its centre;
# a charge distribution is {(t, u, v): coefficient} of Hermite Gaussians.

DIGITS = 40
Powers = tuple[int, int, int]
Polynomial = dict[Powers, mp.mpf]
Vector = list[mp.mpf]


@dataclass(frozen=True)
class _Primitive:
    """All components of one primitive shell."""

    exponent: mp.mpf
    centre: Vector
    components: list[Polynomial]


@dataclass(frozen=True)
class _Distribution:
    """Hermite expansions of all component pairs of two primitives, which share exponent and centre."""

    exponent: mp.mpf
    centre: Vector
    order: int
    expansions: list[Polynomial]


def mp_block(operator: str, shells: Shells, centres: Centres, **extra: ArrayLike) -> Array:
    """The same block with forty digits, rounded at the end. Use few primitives: high angular momenta take seconds."""
    with mp.workdps(DIGITS):
        total: Any = 0
        for numbers in product(*(range(shell.nprim) for shell in shells)):
            primitives, columns = [], []
            for shell, centre, k in zip(shells, centres, numbers, strict=True):
                components = mp_components(shell.l, shell.pure)
                primitives.append(_Primitive(mp.mpf(float(shell.exponents[k])), _vector(centre), components))
                columns.append(np.array(_vector(shell.coefficients[k]), dtype=object))
            total = total + np.multiply.outer(
                _mp_values(operator, primitives, extra), reduce(np.multiply.outer, columns)
            )
    n = len(shells)
    # (operator component, components of all shells, columns of all shells) -> column outer, component inner
    order = [0] + [axis for i in range(n) for axis in (1 + n + i, 1 + i)]
    block = np.transpose(total.astype(float), order).reshape(-1, *(shell.nbf for shell in shells))
    return block if operator == "dipole" else block[0]


def _mp_values(operator: str, primitives: list[_Primitive], extra: dict[str, ArrayLike]) -> NDArray[Any]:
    """Values for all components of the primitives; the leading axis has length 3 for the dipole, else 1."""
    sizes = [len(primitive.components) for primitive in primitives]
    if operator in ("2c", "3c", "4c"):
        bra = primitives[:1] if operator == "2c" else primitives[:2]
        ket = primitives[len(bra) :]
        values = _mp_coulomb(_mp_distribution(*bra), _mp_distribution(*ket))
    else:
        a, b = primitives
        if operator == "kinetic":
            b = _Primitive(b.exponent, b.centre, [_mp_kinetic(f, b.exponent) for f in b.components])
        pair = _mp_distribution(a, b)
        if operator == "nuclear":
            values = _mp_nuclear(pair, **extra)
        elif operator == "dipole":
            values = _mp_dipole(pair, _vector(extra.get("origin", (0.0, 0.0, 0.0))))
        else:
            charge = mp.sqrt(mp.pi / pair.exponent) ** 3
            values = [[charge * H.get((0, 0, 0), mp.mpf(0)) for H in pair.expansions]]
    return np.array(values, dtype=object).reshape(-1, *sizes)


def _mp_dipole(pair: _Distribution, origin: Vector) -> list[list[mp.mpf]]:
    charge = mp.sqrt(mp.pi / pair.exponent) ** 3
    first: list[Powers] = [(1, 0, 0), (0, 1, 0), (0, 0, 1)]
    return [
        [charge * (H.get((0, 0, 0), 0) * (pair.centre[x] - origin[x]) + H.get(first[x], 0)) for H in pair.expansions]
        for x in range(3)
    ]


def _mp_nuclear(pair: _Distribution, charges: ArrayLike, positions: ArrayLike) -> list[list[mp.mpf]]:
    total = [mp.mpf(0)] * len(pair.expansions)
    for q, C in zip(np.reshape(charges, -1), np.reshape(positions, (-1, 3)), strict=True):
        R = _mp_coulomb_derivatives(pair.order, pair.exponent, _minus(pair.centre, _vector(C)))
        factor = -mp.mpf(float(q)) * 2 * mp.pi / pair.exponent
        total = [v + factor * _dot(H, R) for v, H in zip(total, pair.expansions, strict=True)]
    return [total]


def _mp_coulomb(bra: _Distribution, ket: _Distribution) -> list[list[mp.mpf]]:
    p, q = bra.exponent, ket.exponent
    R = _mp_coulomb_derivatives(bra.order + ket.order, p * q / (p + q), _minus(bra.centre, ket.centre))
    factor = 2 * mp.sqrt(mp.pi) ** 5 / (p * q * mp.sqrt(p + q))
    potentials = []
    for H in ket.expansions:
        signed = [(index, (-1) ** sum(index) * factor * value) for index, value in H.items()]
        potentials.append(
            {
                (t, u, v): mp.fdot((value, R[t + i, u + j, v + k]) for (i, j, k), value in signed)
                for t, u, v in _indices(bra.order)
            }
        )
    return [[_dot(H, potential) for potential in potentials] for H in bra.expansions]


def _mp_distribution(a: _Primitive, b: _Primitive | None = None) -> _Distribution:
    """Hermite expansions of the products of all components of a and b (b fastest)."""
    if b is None:
        b = _Primitive(mp.mpf(0), a.centre, [{(0, 0, 0): mp.mpf(1)}])
    p = a.exponent + b.exponent
    P = [(a.exponent * A + b.exponent * B) / p for A, B in zip(a.centre, b.centre, strict=True)]
    orders = [max(sum(index) for f in s.components for index in f) for s in (a, b)]
    E = [_mp_expansion(orders[0], orders[1], a.exponent, b.exponent, a.centre[x], b.centre[x]) for x in range(3)]
    expansions = []
    for f, g in product(a.components, b.components):
        H: Polynomial = {}
        for (i, c_i), (j, c_j) in product(f.items(), g.items()):
            along = [E[x][i[x], j[x]] for x in range(3)]
            for (t, E_t), (u, E_u), (v, E_v) in product(*(axis.items() for axis in along)):
                H[t, u, v] = H.get((t, u, v), mp.mpf(0)) + c_i * c_j * E_t * E_u * E_v
        expansions.append(H)
    return _Distribution(p, P, sum(orders), expansions)


def _mp_expansion(
    l_a: int, l_b: int, a: mp.mpf, b: mp.mpf, A: mp.mpf, B: mp.mpf
) -> dict[tuple[int, int], dict[int, mp.mpf]]:
    """One-dimensional E_t^{ij}, zeros left out."""
    p = a + b
    P = (a * A + b * B) / p
    E = {(0, 0): {0: mp.exp(-a * b / p * (A - B) ** 2)}}

    def raise_power(row: dict[int, mp.mpf], X: mp.mpf) -> dict[int, mp.mpf]:
        new = {
            t: row.get(t - 1, 0) / (2 * p) + X * row.get(t, 0) + (t + 1) * row.get(t + 1, 0)
            for t in range(max(row) + 2)
        }
        return {t: value for t, value in new.items() if value != 0 or t == 0}

    for i in range(l_a + 1):
        if i > 0:
            E[i, 0] = raise_power(E[i - 1, 0], P - A)
        for j in range(1, l_b + 1):
            E[i, j] = raise_power(E[i, j - 1], P - B)
    return E


def _mp_coulomb_derivatives(order: int, alpha: mp.mpf, X: Vector) -> Polynomial:
    """R_tuv by the textbook recursion, level by level."""
    T = alpha * sum(x * x for x in X)
    levels: Polynomial = {}
    for n in range(order, -1, -1):
        above, levels = levels, {(0, 0, 0): (-2 * alpha) ** n * mp_boys(n, T)}
        for index in _indices(order - n):
            if sum(index) == 0:
                continue
            x = next(axis for axis in range(3) if index[axis] > 0)
            levels[index] = X[x] * above[_shift_power(index, x, -1)]
            if index[x] > 1:
                levels[index] += (index[x] - 1) * above[_shift_power(index, x, -2)]
    return levels


def mp_boys(m: int, T: mp.mpf) -> mp.mpf:
    """F_m(T) with forty digits."""
    half = mp.mpf(1) / 2
    if T < 100:
        return mp.hyp1f1(m + half, m + 3 * half, -T) / (2 * m + 1)
    return mp.gammainc(m + half, 0, T) / (2 * T ** (m + half))


def _mp_kinetic(f: Polynomial, b: mp.mpf) -> Polynomial:
    """Polynomial of -nabla^2/2 applied to f exp(-b r^2)."""
    result: Polynomial = {}
    for index, c in f.items():
        for x in range(3):
            j = index[x]
            for shift, factor in ((2, 4 * b * b), (0, -2 * b * (2 * j + 1)), (-2, mp.mpf(j * (j - 1)))):
                if factor != 0:
                    power = _shift_power(index, x, shift)
                    result[power] = result.get(power, mp.mpf(0)) - c * factor / 2
    return result


@cache
def mp_components(l: int, pure: bool) -> list[Polynomial]:
    """Components of a shell with forty digits, in AO order (see docs/reference/conventions.md)."""
    if not pure and l >= 2:
        return [{powers: mp.mpf(1)} for powers in cartesian_powers(l)]
    orders = (1, -1, 0) if l == 1 else tuple(range(-l, l + 1))
    with mp.workdps(DIGITS):
        return [_mp_solid_harmonic(l, m) for m in orders]


def _mp_solid_harmonic(l: int, m: int) -> Polynomial:
    """S_lm = N Re or Im (x + iy)^|m| d^|m|/dz^|m| of r^l P_l(z/r): Rodrigues' formula, written out."""
    k = abs(m)
    norm = mp.sqrt(mp.mpf((2 * l + 1) * factorial(l - k) * (1 if k == 0 else 2)) / factorial(l + k) / (4 * mp.pi))
    result: Polynomial = {}
    for s in range((l - k) // 2 + 1):
        # (-1)^s 2^-l binom(l, s) binom(2l-2s, l) (l-2s)!/(l-2s-k)! r^(2s) z^(l-2s-k)
        legendre = norm * (-1) ** s * comb(l, s) * comb(2 * l - 2 * s, l) * perm(l - 2 * s, k) / mp.mpf(2) ** l
        for i, j in product(range(s + 1), repeat=2):
            if i + j > s:
                continue
            radial = legendre * comb(s, i) * comb(s - i, j)  # x^2i y^2j z^2(s-i-j) in r^2s
            for n in range(1 if m < 0 else 0, k + 1, 2):  # i^n y^n x^(k-n) in (x + iy)^k
                power = (2 * i + k - n, 2 * j + n, 2 * (s - i - j) + l - 2 * s - k)
                result[power] = result.get(power, mp.mpf(0)) + radial * comb(k, n) * (-1) ** (n // 2)
    return {power: value for power, value in result.items() if value != 0}


@cache
def _indices(order: int) -> list[Powers]:
    return [(t, u, v) for t, u, v in product(range(order + 1), repeat=3) if t + u + v <= order]


def _shift_power(index: Powers, x: int, step: int) -> Powers:
    i, j, k = index
    return (i + step * (x == 0), j + step * (x == 1), k + step * (x == 2))


def _dot(H: Polynomial, values: Polynomial) -> mp.mpf:
    return mp.fdot((c, values[index]) for index, c in H.items())


def _vector(x: ArrayLike) -> Vector:
    return [mp.mpf(float(value)) for value in np.asarray(x, float).reshape(-1)]


def _minus(A: Vector, B: Vector) -> Vector:
    return [x - y for x, y in zip(A, B, strict=True)]
