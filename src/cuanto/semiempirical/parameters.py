"""Parameters of a method: data with provenance (`cuanto/data/semiempirical`), and quantities derived from them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from math import sqrt
from typing import Any

import numpy as np

from cuanto.arrays import Array
from cuanto.errors import InputError
from cuanto.semiempirical import derived
from cuanto.semiempirical.constants import HARTREE

METHODS = ("mndo", "am1", "pm3", "pm6")
SMALLEST_HSP = 1e-7
SMALLEST_HPP = 0.1
"""eV: lower bounds in the additive terms."""
GAUSSIANS = 4
"""Maximum number of Gaussians of an element in the core repulsion."""


@dataclass(frozen=True)
class Element:
    """Parameters of an element in atomic units, except `alpha` and `gaussians` (K, L, M): Angstrom; `heat`: kcal/mol.

    `D` and `rho` by pair of shells: `sp`, `pp`, and with d functions `sd`, `pd`, `dd`; rho also of the monopoles `0`
    and `0dd`. `slater_condon` has the radial integrals with d functions, by name as in Thiel and Voityuk.
    """

    symbol: str
    number: int
    core_charge: int
    n: int
    orbitals: int
    U: tuple[float, ...]
    beta: tuple[float, ...]
    zeta: tuple[float, ...]
    internal: tuple[float, ...]
    g: Mapping[str, float]
    D: Mapping[str, float]
    rho: Mapping[str, float]
    alpha: float
    gaussians: tuple[tuple[float, float, float], ...]
    isolated: float
    heat: float

    @property
    def kind(self) -> tuple[int, int]:
        """Principal quantum number and number of orbitals, for which kernels are specialised."""
        return self.n, self.orbitals

    def per_orbital(self, values: tuple[float, ...]) -> Array:
        """One number per shell, repeated for its orbitals."""
        return np.repeat(values, [1, 3, 5][: len(values)])


@dataclass(frozen=True)
class Parameters:
    """Parameters of a method; `pairs`: (alpha, x) of PM6 by both symbols in either order."""

    method: str
    elements: Mapping[str, Element]
    pairs: Mapping[tuple[str, str], tuple[float, float]] = field(default_factory=dict)

    def element(self, symbol: str) -> Element:
        """The element; an error if it has no validated parameters."""
        if symbol not in self.elements:
            known = ", ".join(self.elements)
            raise InputError(f"{self.method} has no validated parameters for {symbol}: there are {known}")
        return self.elements[symbol]


@cache
def parameters(method: str) -> Parameters:
    """Parameters of a method, cached."""
    if method not in METHODS:
        raise InputError(f"unknown semiempirical method {method!r}: choose {', '.join(METHODS)}")
    text = (files("cuanto") / "data" / "semiempirical" / f"{method}.json").read_text()
    data = json.loads(text)
    pairs: dict[tuple[str, str], tuple[float, float]] = {}
    for entry in data["pairs"]:
        for key in ((entry["A"], entry["B"]), (entry["B"], entry["A"])):
            pairs[key] = entry["alpha"], entry["x"]
    return Parameters(method, {symbol: _element(symbol, given) for symbol, given in data["elements"].items()}, pairs)


def _element(symbol: str, given: Mapping[str, Any]) -> Element:
    shells = "spd"[: 1 + ("zeta_p" in given) + ("zeta_d" in given)]
    n = int(given["n_s"])
    zeta = tuple(float(given[f"zeta_{l}"]) for l in shells)
    internal = tuple(float(given[f"zeta_{l}_internal"]) for l in shells) if "d" in shells else ()
    g = {name: given[name] / HARTREE for name in ("g_ss", "g_sp", "g_pp", "g_p2", "h_sp") if name in given}
    U = tuple(given[f"U_{l}{l}"] / HARTREE for l in shells)
    D, rho = _multipoles(n, zeta, internal, g)
    s = min(2, int(given["core_charge"]))
    p = int(given["core_charge"]) - s
    return Element(
        symbol=symbol,
        number=int(given["Z"]),
        core_charge=int(given["core_charge"]),
        n=n,
        orbitals={1: 1, 2: 4, 3: 9}[len(shells)],
        U=U,
        beta=tuple(given[f"beta_{l}"] / HARTREE for l in shells),
        zeta=zeta,
        internal=internal,
        g=g,
        D=D,
        rho=rho,
        alpha=float(given.get("alpha", 0.0)),
        gaussians=tuple((t["K"], t["L"], t["M"]) for t in given["gaussians"]),
        isolated=derived.isolated_atom(s, p, (U[0], U[1] if p else 0.0), g),
        heat=float(given["heat_of_formation_atom"]),
    )


def _multipoles(
    n: int, zeta: tuple[float, ...], internal: tuple[float, ...], g: Mapping[str, float]
) -> tuple[dict[str, float], dict[str, float]]:
    """Charge separations and additive terms of all pairs of shells."""
    D: dict[str, float] = {}
    rho = {"0": 0.5 / g["g_ss"]}
    if len(zeta) == 1:
        return D, rho
    s, p = (n, zeta[0]), (n, zeta[1])
    D["sp"] = derived.moment(s, p, 1) / sqrt(3.0)
    D["pp"] = sqrt(derived.moment(p, p, 2) / 5.0)
    h_pp = max(SMALLEST_HPP / HARTREE, 0.5 * (g["g_pp"] - g["g_p2"]))
    rho["sp"] = derived.additive_dipole(D["sp"], max(SMALLEST_HSP / HARTREE, g["h_sp"]))
    rho["pp"] = derived.additive_linear(D["pp"], h_pp)
    if len(zeta) == 2:
        return D, rho
    d = (n, zeta[2])
    D["sd"] = sqrt(2.0 * derived.moment(s, d, 2) / sqrt(15.0))
    D["pd"] = derived.moment(p, d, 1) / sqrt(5.0)
    D["dd"] = sqrt(2.0 * derived.moment(d, d, 2) / 7.0)
    a, b, c = ((n, one) for one in internal)
    rho["sd"] = derived.additive_square(D["sd"], derived.slater_condon(2, a, c, a, c) / 5.0)
    rho["pd"] = derived.additive_dipole(D["pd"], 4.0 / 15.0 * derived.slater_condon(1, b, c, b, c))
    rho["dd"] = derived.additive_square(D["dd"], 3.0 / 49.0 * derived.slater_condon(2, c, c, c, c))
    rho["0dd"] = 0.5 / derived.slater_condon(0, c, c, c, c)
    return D, rho
