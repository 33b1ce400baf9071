"""Valence shells of an element: one-centre integrals, charge separations and additive terms for pairs of shells.

M. J. S. Dewar and W. Thiel, Theor. Chim. Acta 46, 89 (1977), doi:10.1007/BF00548085 (s and p); W. Thiel and
A. A. Voityuk, J. Phys. Chem. 100, 616 (1996), doi:10.1021/jp952148o (d). Bohr and Hartree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from typing import Any

from cuanto.semiempirical import derived
from cuanto.semiempirical.constants import HARTREE
from cuanto.semiempirical.derived import Radial

MIN_HSP = 1e-7
MIN_HPP = 0.1
"""Lower bounds, in eV, of the exchange integrals h_sp and h_pp from which the additive terms are computed."""
INTEGRALS = ("g_ss", "g_sp", "g_pp", "g_p2", "h_sp")
REPLACED = {"F0_sd": (0, {"ss", "dd"}), "G2_sd": (2, {"sd"})}
"""Radial integrals R^k that are parameters of some elements: the order k, and the shell pairs of the two electrons (one
if both have the same)."""


@dataclass(frozen=True)
class Shells:
    """The valence shells of an element and the quantities derived from them.

    `n_multipole`: principal quantum numbers used for the charge separations of s and p. `internal`: exponents used for
    the one-centre integrals of elements with d shells. `given`: one-centre integrals that are parameters, Hartree.
    `core`: the additive term of the core, if it is a parameter.
    """

    n: tuple[int, ...]
    n_multipole: tuple[int, int]
    zeta: tuple[float, ...]
    internal: tuple[float, ...]
    given: Mapping[str, float]
    core: float | None

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Shells:
        """Shells from the parameters of an element."""
        n = tuple(given["n"])
        return cls(
            n,
            (given.get("n_multipole", n[0]), given.get("n_multipole", n[min(1, len(n) - 1)])),
            tuple(given["zeta"]),
            tuple(given.get("zeta_internal", ())),
            {name: given[name] / HARTREE for name in (*INTEGRALS, *REPLACED) if name in given},
            given.get("rho_core"),
        )

    @property
    def metal(self) -> bool:
        """Whether the one-centre integrals of s and p follow from exponents: transition metals and lanthanides."""
        return "g_ss" not in self.given

    @property
    def noble(self) -> bool:
        """Whether this is a noble gas other than helium.

        Its parameters are for p and for the empty s shell of the next row, such as 2p and 3s of neon.
        """
        return len(self.n) > 1 and self.n[0] > self.n[1]

    def radial(self, k: int, one: str, other: str) -> float:
        """Radial integral R^k of two pairs of shells, such as `sd` and `pp`, one pair for each electron."""
        pairs = {"".join(sorted(pair, key="spd".index)) for pair in (one, other)}
        for name, (order, shells) in REPLACED.items():
            if name in self.given and (k, pairs) == (order, shells):
                return self.given[name]
        functions: list[Radial] = [(self.n["spd".index(l)], self.internal["spd".index(l)]) for l in one + other]
        return derived.slater_condon(k, *functions)

    @cached_property
    def g(self) -> Mapping[str, float]:
        """One-centre integrals of s and p, Hartree."""
        if not self.metal:
            return self.given
        F0, F2 = self.radial(0, "pp", "pp"), self.radial(2, "pp", "pp")
        return {
            "g_ss": self.radial(0, "ss", "ss"),
            "g_sp": self.radial(0, "ss", "pp"),
            "g_pp": F0 + 0.16 * F2,
            "g_p2": F0 - 0.08 * F2,
            "h_sp": self.radial(1, "sp", "sp") / 3.0,
        }

    @cached_property
    def D(self) -> Mapping[str, float]:
        """Charge separations: `sp`, `pp`, and with d functions `sd`, `pd`, `dd`."""
        if len(self.n) == 1:
            return {}
        s, p = zip(self.n_multipole, self.zeta[:2], strict=True)
        found = {"sp": derived.moment(s, p, 1) / sqrt(3.0), "pp": sqrt(derived.moment(p, p, 2) / 5.0)}
        if len(self.n) == 3:
            s, p, d = zip(self.n, self.zeta, strict=True)
            found["sd"] = sqrt(2.0 * derived.moment(s, d, 2) / sqrt(15.0))
            found["pd"] = derived.moment(p, d, 1) / sqrt(5.0)
            found["dd"] = sqrt(2.0 * derived.moment(d, d, 2) / 7.0)
        return found

    @cached_property
    def rho(self) -> Mapping[str, float]:
        """Additive terms of each pair of shells, of the monopoles (`0`, `0dd`) and of the `core`.

        `sp core` and `pp core` replace `sp` and `pp` in the attraction to cores and in integrals with d functions; for
        metals they are clipped to a range, as MOPAC does with all additive terms of d functions.
        """
        found = {"0": 0.5 / self.g["g_ss"]}
        found["core"] = found["0"] if self.core is None else self.core
        if len(self.n) == 1:
            return found
        h_pp = max(MIN_HPP / HARTREE, 0.5 * (self.g["g_pp"] - self.g["g_p2"]))
        found["sp"] = derived.additive_dipole(self.D["sp"], max(MIN_HSP / HARTREE, self.g["h_sp"]))
        found["pp"] = derived.additive_quadrupole(self.D["pp"], h_pp)
        for pair in ("sp", "pp"):
            found[f"{pair} core"] = derived.clip_additive(found[pair]) if self.metal else found[pair]
        if len(self.n) == 3:
            square = {"sd": self.radial(2, "sd", "sd") / 5.0, "dd": 3.0 / 49.0 * self.radial(2, "dd", "dd")}
            dipole = 4.0 / 15.0 * self.radial(1, "pd", "pd")
            found |= {
                pair: derived.clip_additive(derived.additive_square(self.D[pair], square[pair])) for pair in square
            }
            found["pd"] = derived.clip_additive(derived.additive_dipole(self.D["pd"], dipole))
            found["0dd"] = 0.5 / self.radial(0, "dd", "dd")
        return found

    def isolated_d(self, multiples: Sequence[float]) -> float:
        """Two-electron energy of the d electrons of an isolated atom: five radial integrals, times `multiples`."""
        integrals = (
            self.radial(0, "ss", "dd"),
            self.radial(0, "dd", "dd"),
            -self.radial(2, "sd", "sd") / 5.0,
            -self.radial(2, "dd", "dd") / 49.0,
            -self.radial(4, "dd", "dd") / 49.0,
        )
        return sum(a * x for a, x in zip(multiples, integrals, strict=True))
