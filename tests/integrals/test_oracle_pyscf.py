"""The NumPy reference against libcint (PySCF) and, where libcint is not accurate enough to judge, against mpmath."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cuanto.basis.shell import Shell
from oracle import assert_block, block_scale, describe, mp_block, pyscf_block, random_shell, reference_block
from oracles import integrals as reference
from sample import sample
from tolerances import INTEGRAL_ABS, INTEGRAL_REL, SMALLEST

EXTRA: dict[str, dict[str, Any]] = {
    "nuclear": {"charges": [1.0, -0.5, 8.0], "positions": [[0.3, 0.1, 0.0], [1.0, 1.0, -1.0], [-2.0, 0.0, 3.0]]},
    "dipole": {"origin": [0.3, 0.2, -1.0]},
}
ONE_ELECTRON = ("overlap", "kinetic", "nuclear", "dipole")
FORMS = pytest.mark.parametrize("pure", [True, False], ids=["spherical", "cartesian"])

HERE = np.array([0.3, -0.4, 0.7])
NEAR = HERE + np.array([1.1, 0.5, -0.7])
NEAR_TOO = HERE + np.array([-0.4, 0.9, 0.2])
FAR = HERE + np.array([4.0, -6.0, 5.0])
FURTHER = FAR + np.array([3.0, 3.0, 3.0])


def every_class(operator: str) -> list[tuple[int, ...]]:
    """All classes with l <= 3 (auxiliary 4); four centres: one order of each pair of shells and of the two pairs."""
    if operator == "2c":
        return list(product(range(5), repeat=2))
    if operator == "3c":
        return list(product(range(4), range(4), range(5)))
    if operator == "4c":
        pairs = [(a, b) for a in range(4) for b in range(a + 1)]
        return [(*bra, *ket) for n, bra in enumerate(pairs) for ket in pairs[: n + 1]]
    return list(product(range(4), repeat=2))


@FORMS
@pytest.mark.parametrize("operator", [*ONE_ELECTRON, "2c", "3c", "4c"])
def test_every_class_to_f(operator: str, pure: bool) -> None:
    """Two columns of two primitives (in a quartet only every second shell), ordinary exponents."""
    rng = np.random.default_rng(7)
    for momenta in every_class(operator):
        shells = []
        for i, l in enumerate(momenta):
            n = 1 if operator == "4c" and i % 2 else 2
            shells.append(random_shell(rng, l, n, n, pure, rng.choice([0.3, 1.0, 5.0])))
        centres = rng.uniform(-1.5, 1.5, (len(momenta), 3))
        extra = EXTRA.get(operator, {})
        values = reference_block(operator, shells, centres, **extra)
        assert_block(values, operator, shells, centres, strict=True, **extra)


HIGH: dict[str, list[tuple[int, ...]]] = {
    "overlap": [(4, 0), (4, 3), (5, 2), (5, 5)],
    "kinetic": [(4, 1), (4, 4), (5, 3), (5, 5)],
    "nuclear": [(4, 2), (5, 0), (5, 5)],
    "dipole": [(4, 4), (5, 1), (5, 5)],
    "2c": [(5, 0), (5, 5), (6, 1), (6, 4), (6, 6)],
    "3c": [(4, 4, 4), (4, 0, 6), (5, 3, 2), (5, 1, 5), (0, 0, 6), (2, 5, 6), (5, 5, 6)],
    "4c": [(4, 4, 1, 0), (4, 2, 4, 2), (5, 0, 5, 0), (5, 1, 3, 2)],
}


@FORMS
@pytest.mark.parametrize("operator", HIGH)
def test_sample_of_high_classes(operator: str, pure: bool) -> None:
    """l to 5, auxiliary to 6: single primitives, for which mpmath is fast enough."""
    rng = np.random.default_rng(8)
    for momenta in HIGH[operator]:
        shells = [random_shell(rng, l, 1, 1, pure, rng.choice([0.5, 1.0, 3.0])) for l in momenta]
        centres = rng.uniform(-1.5, 1.5, (len(momenta), 3))
        extra = EXTRA.get(operator, {})
        values = reference_block(operator, shells, centres, **extra)
        assert_block(values, operator, shells, centres, strict=True, **extra)


EXTREME_TWO: list[tuple[int, ...]] = [(0, 0), (1, 2), (2, 0), (3, 1), (5, 0), (2, 4)]
EXTREME_THREE: list[tuple[int, ...]] = [(0, 0, 0), (1, 0, 2), (2, 1, 3), (3, 2, 0), (1, 3, 4)]
PLACES = {
    "coincident": [HERE, HERE, HERE],
    "pair_coincident": [HERE, HERE, FAR],
    "near": [HERE, NEAR, NEAR_TOO],
    "distant": [HERE, FAR, FURTHER],
}


@FORMS
@pytest.mark.parametrize(
    ("operator", "place"),
    [(o, p) for o in (*ONE_ELECTRON, "2c", "3c") for p in PLACES if o == "3c" or p != "pair_coincident"],
)
def test_extreme_exponents(operator: str, place: str, pure: bool) -> None:
    """Tight (1e6), ordinary and diffuse (1e-3) exponents in all combinations, judged with forty digits."""
    rng = np.random.default_rng(9)
    classes = EXTREME_THREE if operator == "3c" else EXTREME_TWO
    n = len(classes[0])
    centres = PLACES[place][:n]
    extra = EXTRA.get(operator, {})
    exponents = list(product((1e6, 1.0, 1e-3), repeat=n))
    for momenta, scales in product(classes, sample(exponents, 4 if n == 3 else 2)):
        shells = [random_shell(rng, l, 1, 1, pure, scale) for l, scale in zip(momenta, scales, strict=True)]
        values = reference_block(operator, shells, centres, **extra)
        exact = mp_block(operator, shells, centres, **extra)
        tolerance = INTEGRAL_REL * abs(exact).max() + SMALLEST
        if pure:  # cartesian blocks must agree to 1e-12 of their largest element, without an allowance for cancellation
            tolerance += INTEGRAL_ABS * block_scale(operator, shells, centres, **extra)
        assert abs(values - exact).max() <= tolerance, f"{operator} {place}: {describe(shells)}"


@FORMS
@pytest.mark.parametrize("operator", [*ONE_ELECTRON, "2c", "3c", "4c"])
def test_long_contractions_from_tight_to_diffuse(operator: str, pure: bool) -> None:
    """Two contractions over nine orders of magnitude, as in a generally contracted set: here libcint is accurate enough
    to compare with."""
    exponents = 10.0 ** np.arange(6, -4, -1.5)
    coefficients = np.array(
        [[0.001, -0.0002], [0.01, -0.002], [0.1, -0.03], [0.4, -0.2], [0.5, 0.1], [0.2, 0.7], [0.05, 0.4]]
    )
    momenta = {"4c": (1, 0, 2, 1), "3c": (2, 1, 3)}.get(operator, (2, 1))
    shells = [Shell.from_table(0, l, exponents, coefficients, pure) for l in momenta]
    for centres in ([HERE, HERE, HERE, HERE], [HERE, NEAR, NEAR_TOO, FAR]):
        extra = EXTRA.get(operator, {})
        values = reference_block(operator, shells, centres[: len(momenta)], **extra)
        exact = pyscf_block(operator, shells, centres[: len(momenta)], **extra)
        assert abs(values - exact).max() <= INTEGRAL_REL * abs(exact).max()


@pytest.mark.parametrize(
    ("operator", "momenta", "exponents", "centres"),
    [
        ("overlap", (4, 4), (1e6, 1e-3), (HERE, FAR)),
        ("kinetic", (0, 0), (1e-3, 1e6), (HERE, HERE)),
        ("nuclear", (4, 4), (1e6, 1e-3), (HERE, NEAR)),
        ("3c", (1, 1, 2), (1e6, 1e-3, 1.0), (HERE, FAR, FURTHER)),
    ],
)
def test_libcint_loses_digits_where_mpmath_judges(
    operator: str, momenta: tuple[int, ...], exponents: tuple[float, ...], centres: tuple[Any, ...]
) -> None:
    """Cartesian blocks in which libcint differs from forty-digit values and the reference does not, so that libcint is
    no standard.

    The horizontal recursion moves powers of x from one centre to another and so builds small moments about a
    tight function from large ones about its partner; a Laplacian applied to the tight function cancels likewise.
    """
    rng = np.random.default_rng(10)
    shells = [random_shell(rng, l, 1, 1, False, scale) for l, scale in zip(momenta, exponents, strict=True)]
    extra = EXTRA.get(operator, {})
    exact = mp_block(operator, shells, centres, **extra)
    largest = abs(exact).max()
    assert abs(reference_block(operator, shells, centres, **extra) - exact).max() <= INTEGRAL_REL * largest
    assert abs(pyscf_block(operator, shells, centres, **extra) - exact).max() > INTEGRAL_REL * largest


def water(cart: bool) -> tuple[Any, SimpleNamespace]:
    """PySCF's water in cc-pVDZ and the same basis as ours."""
    from pyscf import gto

    mol = gto.M(atom="O 0 0 0.1; H 0 0.75 -0.45; H 0 -0.75 -0.45", basis="cc-pvdz", cart=cart, verbose=0)
    return mol, as_basis(mol)


def as_basis(mol: Any) -> SimpleNamespace:
    """Shells from PySCF's tables (exponents, coefficients of normalised primitives)."""
    shells = []
    for atom in range(mol.natm):
        for l, *rows in sorted(mol._basis[mol.atom_symbol(atom)], key=lambda entry: int(entry[0])):
            table = np.array(rows)
            shells.append(Shell.from_table(atom, l, table[:, 0], table[:, 1:], pure=not mol.cart))
    offsets = np.concatenate([[0], np.cumsum([shell.nbf for shell in shells])])
    return SimpleNamespace(shells=shells, R_ax=mol.atom_coords(), offsets=offsets[:-1], nbf=int(offsets[-1]))


def same(ours: Any, theirs: Any) -> bool:
    return bool(abs(ours - theirs).max() <= INTEGRAL_REL * abs(theirs).max())


@FORMS
def test_whole_matrices(pure: bool) -> None:
    """Assembly, AO order and normalisation for a generally contracted set, against PySCF's own handling of it."""
    mol, basis = water(cart=not pure)
    assert same(reference.overlap_matrix(basis), mol.intor("int1e_ovlp"))
    assert same(reference.kinetic_matrix(basis), mol.intor("int1e_kin"))
    assert same(reference.nuclear_matrix(basis, mol.atom_charges(), mol.atom_coords()), mol.intor("int1e_nuc"))
    assert same(reference.dipole_matrices(basis), mol.intor("int1e_r"))
    assert same(reference.eri_4c_tensor(basis), mol.intor("int2e"))


@FORMS
def test_whole_fitting_tensors(pure: bool) -> None:
    """(P|Q) and (pq|P) for a fitting set."""
    from pyscf import df

    mol, basis = water(cart=not pure)
    auxmol = df.addons.make_auxmol(mol, "weigend")
    aux = as_basis(auxmol)
    assert same(reference.eri_2c_matrix(aux), auxmol.intor("int2c2e"))
    assert same(reference.eri_3c_tensor(basis, aux), df.incore.aux_e2(mol, auxmol, "int3c2e", aosym="s1"))
