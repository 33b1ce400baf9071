"""Two-centre repulsion of NDDO methods as straight-line code: interactions of point charges, with equal distances
computed once.

Integrals over s and p orbitals follow M. J. S. Dewar and W. Thiel, Theor. Chim. Acta 46, 89 (1977),
doi:10.1007/BF00548085; integrals with a d function W. Thiel and A. A. Voityuk, J. Phys. Chem. 100, 616 (1996),
doi:10.1021/jp952148o. Their combinations of multipoles are the products of real harmonics up to l = 2: the
coefficients are Gaunt integrals in the units of the charge distributions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from cuanto.basis.solid_harmonics import cartesian_powers, solid_harmonic_matrix

ORBITALS = ((0, 0), (1, 1), (1, -1), (1, 0), (2, 2), (2, 1), (2, 0), (2, -1), (2, -2))
"""(l, m) of s, x, y, z, x2-y2, xz, z2, yz, xy."""
SEPARATIONS = ("sp", "pp", "sd", "pd", "dd")
ADDITIVE = ("0", "sp", "pp", "sd", "pd", "dd", "0dd", "sp core", "pp core", "core")
"""Charge separations and additive terms of an atom, by pairs of shells. The additive terms of sp and pp are different
in integrals with a d function and in the attraction to a core (`sp core`, `pp core`); the core itself has one as
well."""

Charge = tuple[float, float, float, float]
Pole = tuple[str, float, str, str]
"""Shape, factor of its separation, shells of the separation, shells of the additive term."""


@cache
def products(orbitals: int) -> tuple[tuple[int, int], ...]:
    """Pairs of orbitals on an atom in packed order, by pairs of shells: ss, sp, pp, sd, pd, dd."""
    shells = [range(1), range(1, 4), range(4, 9)][: {1: 1, 4: 2, 9: 3}[orbitals]]
    found = list[tuple[int, int]]()
    for upper, own in enumerate(shells):
        found += [(i, j) for other in shells[:upper] for i in other for j in own]
        found += [(i, j) for i in own for j in own if i <= j]
    return tuple(found)


@cache
def charges(shape: str) -> tuple[Charge, ...]:
    """(q, x, y, z) in units of the separation: a unit charge, dipoles, linear and square quadrupoles."""
    axis = dict(zip("xyz", np.eye(3), strict=True))
    if shape == "q":
        return ((1.0, 0.0, 0.0, 0.0),)
    if shape[0] == "d":  # dipole
        return tuple((0.5 * sign, *(sign * axis[shape[1]]).tolist()) for sign in (1.0, -1.0))
    if shape[0] == "l":  # linear quadrupole
        ends = [(0.25, *(sign * 2.0 * axis[shape[1]]).tolist()) for sign in (1.0, -1.0)]
        return (*ends, (-0.5, 0.0, 0.0, 0.0))
    if shape[0] == "s":  # square quadrupole
        u, v = axis[shape[1]], axis[shape[2]]
        return tuple((0.25 * a * b, *(a * u + b * v).tolist()) for a in (1.0, -1.0) for b in (1.0, -1.0))
    if shape == "t0":  # Thiel and Voityuk's [20] and [22]
        around = [(-0.125, *(sign * axis[k]).tolist()) for k in "xy" for sign in (1.0, -1.0)]
        return (*((0.25, 0.0, 0.0, sign) for sign in (1.0, -1.0)), *around)
    assert shape == "t2"
    return tuple((w, *(sign * axis[k]).tolist()) for k, w in (("x", 0.25), ("y", -0.25)) for sign in (1.0, -1.0))


SHAPES = {(1, 0): "dz", (1, 1): "dx", (1, -1): "dy", (2, 0): "t0", (2, 2): "t2", (2, 1): "sxz", (2, -1): "syz"} | {
    (2, -2): "sxy"
}


@cache
def gaunt(k: int) -> NDArray[np.float64]:
    """<Y_i Y_j Y_km>[m + k, i, j] over the nine orbitals, by a quadrature that is exact here."""
    x, w = np.polynomial.legendre.leggauss(8)
    phi = np.pi / 8 * np.arange(16)
    sine = np.sqrt(1.0 - x * x)
    r = np.stack([np.outer(sine, np.cos(phi)), np.outer(sine, np.sin(phi)), np.outer(x, np.ones(16))], -1).reshape(
        -1, 3
    )
    w_g = np.repeat(w * np.pi / 8, 16)

    def harmonics(l: int) -> NDArray[np.float64]:
        monomials = np.stack([np.prod(r ** np.array(powers), axis=1) for powers in cartesian_powers(l)])
        values: NDArray[np.float64] = solid_harmonic_matrix(l) @ monomials
        return values if l != 1 else values[[1, 2, 0]]  # x, y, z as m = -1, 0, 1

    by_l = [harmonics(l) for l in range(3)]
    Y = np.stack([by_l[l][m + l] for l, m in ORBITALS])
    return np.asarray(np.einsum("mg,ig,jg,g->mij", by_l[k], Y, Y, w_g))


def _unit(shells: str) -> tuple[int, float]:
    """Order of the highest multipole of two shells, and the Gaunt integral that is its unit."""
    i, j, l, m, factor = {
        "sp": (0, 3, 1, 0, 1.0),
        "pp": (1, 3, 2, 1, 1.0),
        "sd": (0, 5, 2, 1, 1.0),
        "pd": (3, 5, 1, 1, 1.0),
        "dd": (6, 5, 2, 1, sqrt(3.0)),
    }[shells]
    return l, float(gaunt(l)[m + l, i, j]) * factor


def shells_of(i: int, j: int) -> str:
    """Shells of a product, such as `pd`."""
    return "".join("spd"[l] for l in sorted((ORBITALS[i][0], ORBITALS[j][0])))


def multipoles_with_d(i: int, j: int) -> Iterator[tuple[float, Pole]]:
    """Multipoles of a product in an integral that has a d function."""
    shells = shells_of(i, j)
    if i == j:
        yield 1.0, ("q", 0.0, "sp", "0dd" if shells == "dd" else "0")
    if shells == "ss":
        return
    l, unit = _unit(shells)
    for m in range(-l, l + 1):
        c = float(gaunt(l)[m + l, i, j]) / unit
        if abs(c) > 1e-10:
            shape = SHAPES[l, m]
            # charges of [21], [2-1] and [2-2] lie at D/sqrt(2); for pp, D is sqrt(2) times Dewar and Thiel's
            size = (sqrt(0.5) if shape[0] == "s" else 1.0) * (sqrt(2.0) if shells == "pp" else 1.0)
            additive = f"{shells} core" if shells in ("sp", "pp") else shells
            yield c * (2.0 / sqrt(3.0) if (l, m) == (2, 0) else 1.0), (shape, size, shells, additive)


def multipoles_without_d(i: int, j: int) -> Iterator[tuple[float, Pole]]:
    """Multipoles of a product in an integral over s and p."""
    if i == j:
        yield 1.0, ("q", 0.0, "sp", "0")
    if j == 0:
        return
    if i == 0:
        yield 1.0, ("d" + " xyz"[j], 1.0, "sp", "sp")
    else:
        yield 1.0, ("l" + " xyz"[i] if i == j else "s" + " xyz"[i] + " xyz"[j], 1.0, "pp", "pp")


def _symmetry_label(shape: str) -> str:
    """Symmetry label of a shape about the local axis; only shapes with equal labels interact."""
    return {"dx": "x", "sxz": "x", "dy": "y", "syz": "y", "sxy": "xy", "t2": "t2"}.get(shape, "")


def _swap_xy(pole: Pole) -> Pole:
    """Exchange x and y; the sign of `t2` does not matter, because it only interacts with `t2`."""
    shape = pole[0].translate(str.maketrans("xy", "yx"))
    return ("sxy" if shape == "syx" else shape, *pole[1:])


@dataclass(frozen=True)
class Repulsion:
    """`text` defines local_repulsion (with `slope`: derivatives with respect to R).

    `entries`: (product of A, product of B, value) where an integral is not zero.
    """

    text: str
    values: int
    entries: tuple[tuple[int, int, int], ...]


class _Writer:
    """Lines of code and the names they define."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._known: dict[object, str] = {}

    def name(self, key: object, kind: str, prefix: str, text: str) -> str:
        if key not in self._known:
            self._known[key] = f"{prefix}{len(self._known)}"
            self.lines.append(f"    const {kind} {self._known[key]} = {text};")
        return self._known[key]

    def separation(self, side: str, shells: str) -> str:
        return f"{side}[SEPARATION + {SEPARATIONS.index(shells)}]"

    def distance(self, one: Pole, other: Pole, at: tuple[float, ...]) -> str:
        """1/sqrt((R + u)^2 + v) with u = z_B - z_A; v contains the perpendicular distances and the additive terms."""
        z_a, z_b, aa, bb, ab = at
        D, E = self.separation("a", one[2]), self.separation("b", other[2])
        rho = f"a[ADDITIVE + {ADDITIVE.index(one[3])}] + b[ADDITIVE + {ADDITIVE.index(other[3])}]"
        rho = self.name(("rho", one[3], other[3]), "VEC", "r", rho)
        perpendicular = [f"{rho} * {rho}"]
        perpendicular += [f"REAL({c!r}) * {x} * {y}" for c, x, y in ((aa, D, D), (bb, E, E), (ab, D, E)) if c]
        along = [f"REAL({c!r}) * {x}" for c, x in ((z_b, E), (-z_a, D)) if c]
        v = self.name(("v", *perpendicular), "VEC", "v", " + ".join(perpendicular))
        u = self.name(("u", *along), "VEC", "u", " + ".join(along)) if along else ""
        l = f"R + {u}" if u else "R"
        return self.name(("t", l, v), "VEC", "t", f"of_charges({l}, {v}, slope)")

    def interaction(self, one: Pole, other: Pole) -> str:
        """Interaction of two sets of charges; equal distances are merged first, x and y are equivalent."""
        one, other = min((one, other), (_swap_xy(one), _swap_xy(other)))
        merged: dict[tuple[float, ...], float] = {}
        for q, *r_a in charges(one[0]):
            for p, *r_b in charges(other[0]):
                (x, y, z), (u, v, w) = ([one[1] * c for c in r_a], [other[1] * c for c in r_b])
                at = (z, w, x * x + y * y, u * u + v * v, -2.0 * (x * u + y * v))
                key = tuple(round(c, 12) + 0.0 for c in at)
                merged[key] = merged.get(key, 0.0) + q * p
        terms = [(c, self.distance(one, other, at)) for at, c in merged.items() if abs(c) > 1e-14]
        text = " + ".join(f"REAL({c!r}) * {t}" for c, t in terms)
        return self.name(("i", one, other), "VEC", "i", text)


@cache
def repulsion(orbitals_a: int, orbitals_b: int) -> Repulsion:
    """Code for all integrals of two kinds of atoms in the local frame, z from A to B."""
    writer = _Writer()
    values: dict[str, int] = {}
    entries: list[tuple[int, int, int]] = []
    for ij, (i, j) in enumerate(products(orbitals_a)):
        for kl, (k, l) in enumerate(products(orbitals_b)):
            d = max(j, l) > 3
            if not d and (i, j) == (1, 2) and (k, l) == (1, 2):
                text = _xy_xy_integral(writer)
            else:
                text = _integral(writer, (i, j), (k, l), d)
            if text:
                entries.append((ij, kl, values.setdefault(text, len(values))))
    body = [*writer.lines, *(f"    w[{k}] = {text};" for text, k in values.items())]
    head = "FN void local_repulsion(VEC R, const VEC* a, const VEC* b, bool slope, VEC* w) {"
    return Repulsion("\n".join([head, *body, "}\n"]), len(values), tuple(entries))


def _integral(writer: _Writer, bra: tuple[int, int], ket: tuple[int, int], d: bool) -> str:
    expand = multipoles_with_d if d else multipoles_without_d
    merged: dict[str, float] = {}
    for c, one in expand(*bra):
        for b, other in expand(*ket):
            if _symmetry_label(one[0]) == _symmetry_label(other[0]):
                name = writer.interaction(one, other)
                merged[name] = merged.get(name, 0.0) + c * b
    return " + ".join(f"REAL({round(c, 15)!r}) * {name}" for name, c in sorted(merged.items()) if abs(c) > 1e-12)


def _xy_xy_integral(writer: _Writer) -> str:
    """(xy|xy) = [(xx|xx) - (xx|yy)]/2, the choice that is invariant under rotation about the axis."""
    one = writer.interaction(("lx", 1.0, "pp", "pp"), ("lx", 1.0, "pp", "pp"))
    other = writer.interaction(("lx", 1.0, "pp", "pp"), ("ly", 1.0, "pp", "pp"))
    return f"REAL(0.5) * {one} + REAL(-0.5) * {other}"
