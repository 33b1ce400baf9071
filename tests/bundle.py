"""A bundle: one shell of every momentum, so that one call of an integral function meets every class at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cuanto.basis import Basis, Shell
from oracle import Array, _libcint_arrays

EXPONENTS = {"normal": (0.3, 3.0), "tight": (3e5, 1e6), "diffuse": (1e-3, 1e-2), "mixed": (1e-3, 1e6)}
GEOMETRIES = ("near", "coincident", "distant")


@dataclass(frozen=True)
class Case:
    """What the shells of a bundle look like."""

    pure: bool = True
    contracted: bool = False
    geometry: str = "near"
    exponents: str = "normal"
    l_max: int = 5
    aux_max: int = 6

    def __str__(self) -> str:
        kind = "pure" if self.pure else "cartesian"
        contraction = "contracted" if self.contracted else "primitive"
        return f"{kind}-{contraction}-{self.geometry}-{self.exponents}-l{self.l_max}-{self.aux_max}"


def bundle(case: Case, seed: int = 1) -> tuple[Basis, Basis]:
    """Orbital basis (l = 0 .. l_max, twice the lower ones) and auxiliary basis (l = 0 .. aux_max)."""
    rng = np.random.default_rng(seed)
    orbital = [*range(case.l_max + 1), *range(min(case.l_max, 2) + 1)]
    spread = {"near": 1.5, "coincident": 0.0, "distant": 6.0}[case.geometry]
    # Tight functions see each other only when they are close: the scale of all lengths goes with 1 / sqrt(exponent).
    low, high = EXPONENTS[case.exponents]
    spread *= (low * high) ** -0.25 if case.exponents != "mixed" else 1.0
    return (_basis(rng, case, orbital, spread, 3), _basis(rng, case, list(range(case.aux_max + 1)), spread, 2))


def _basis(rng: np.random.Generator, case: Case, momenta: list[int], spread: float, nprim: int) -> Basis:
    low, high = EXPONENTS[case.exponents]
    shells = []
    for atom, l in enumerate(momenta):
        k, columns = (nprim, 2 if nprim == 3 else 1) if case.contracted else (1, 1)
        exponents = np.exp(rng.uniform(np.log(low), np.log(high), k))
        shells.append(Shell.from_table(atom, l, exponents, rng.uniform(0.3, 1.0, (k, columns)), case.pure))
    return Basis.from_shells(shells, spread * rng.normal(size=(len(momenta), 3)))


def libcint(name: str, *bases: Basis) -> Array:
    """An integral over whole bases from libcint, e.g. ("int3c2e", orbital, orbital, aux)."""
    from pyscf import gto

    unique = list({id(b): b for b in bases}.values())
    shells = [shell for b in unique for shell in b.shells]
    centres = [b.R_ax[shell.atom] for b in unique for shell in b.shells]
    start = {id(b): sum(len(x.shells) for x in unique[:i]) for i, b in enumerate(unique)}
    atm, bas, env = _libcint_arrays(shells, centres)
    edges = [edge for b in bases for edge in (start[id(b)], start[id(b)] + len(b.shells))]
    kind = "_sph" if shells[0].pure else "_cart"
    result: Array = gto.moleintor.getints(name + kind, atm, bas, env, shls_slice=tuple(edges))
    return result


def block_errors(got: Array, expected: Array, *bases: Basis) -> Array:
    """Largest deviation of each block of shells relative to the block's largest element (1 for an empty block)."""
    worst = np.abs(got - expected)
    scale = np.abs(expected)
    lead = got.ndim - len(bases)
    for axis, basis in enumerate(bases):
        starts = np.asarray(basis.offsets, dtype=np.int64)
        worst = np.maximum.reduceat(worst, starts, axis=lead + axis)
        scale = np.maximum.reduceat(scale, starts, axis=lead + axis)
    errors: NDArray[np.float64] = worst / np.where(scale > 1e-280, scale, 1.0)
    return errors
