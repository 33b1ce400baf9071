"""Random spin densities for tests of functionals, and the results of Libxc (through PySCF)."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto.functionals import Evaluator, Functional, Part
from cuanto.functionals.density import C_F
from cuanto.functionals.functional import labels
from cuanto.kernels.functional_source import FLOORS
from oracles.functionals import evaluate, numpy_values

Array = NDArray[np.float64]

ENERGY_REL = 1e-10
DERIVATIVE_REL = 1e-8
OMEGA = {"gga_x_ityh": 0.2, "hyb_gga_xc_wb97x": 0.3}
"""Default range-separation parameters of Libxc, for the parts that have one."""
LIBXC = {
    "svwn5": "lda_x,lda_c_vwn",
    "svwn1rpa": "lda_x,lda_c_vwn_rpa",
    "spw92": "lda_x,lda_c_pw",
    "blyp": "gga_x_b88,gga_c_lyp",
    "bp86": "gga_x_b88,gga_c_p86",
    "pbe": "gga_x_pbe,gga_c_pbe",
    "revpbe": "gga_x_pbe_r,gga_c_pbe",
    "pw91": "gga_x_pw91,gga_c_pw91",
    "tpss": "mgga_x_tpss,mgga_c_tpss",
    "scan": "mgga_x_scan,mgga_c_scan",
    "r2scan": "mgga_x_r2scan,mgga_c_r2scan",
    "m06-l": "mgga_x_m06_l,mgga_c_m06_l",
    "b3lyp": "hyb_gga_xc_b3lyp",
    "b3lyp5": "b3lyp5",
    "pbe0": "hyb_gga_xc_pbeh",
    "bhandhlyp": "hyb_gga_xc_bhandhlyp",
    "tpssh": "hyb_mgga_xc_tpssh",
    "m06-2x": "hyb_mgga_x_m06_2x,mgga_c_m06_2x",
    "cam-b3lyp": "hyb_gga_xc_cam_b3lyp",
    "wb97x": "hyb_gga_xc_wb97x",
}
LABELS = tuple(labels())
LOST_BY_LIBXC = {"mgga_c_scan": 18, "mgga_c_tpss": 1, "wb97x": 1}
"""Maximum number of results in a set of points for which Libxc loses digits; zero for all other functionals. For SCAN
these are derivatives with respect to tau near alpha = 1, which are zero in Libxc and actually below 1e-13."""
MINORITY_FRACTIONS = (1e-4, 1e-6, 1e-8, 1e-9, 1e-10, 1e-12, 1e-14)
"""Small fractions of the density that the minority spin has."""


@cache
def exact_functions() -> dict[str, Any]:
    """Functions of mpmath, which computes with any number of digits."""
    import mpmath

    names = ("sqrt", "cbrt", "exp", "expm1", "log", "log1p", "atan", "erf")
    functions: dict[str, Any] = {name: getattr(mpmath, name) for name in names}
    functions |= {"number": mpmath.mpf, "rcp": lambda x: 1 / x}
    return functions | {"select": lambda x, y, yes, no: yes if x < y else no}


def part(label: str) -> Functional:
    """A functional that consists of one part."""
    return Functional(label, (Part(1.0, label, OMEGA.get(label)),))


class Points:
    """Densities rho_sg, gradients, tau_sg with tau_s >= |grad rho_s|^2 / 8 rho_s, as for all physical densities."""

    def __init__(self, rho_sg: Array, seed: int, gradient: float = 1.0) -> None:
        rng = np.random.default_rng(seed)
        spins, n = rho_sg.shape
        direction = rng.normal(size=(spins, 3, n))
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
        size = gradient * rho_sg ** (4 / 3) * 10 ** rng.uniform(-2, 1, (spins, n))
        self.rho_sg = rho_sg
        self.gradient_sxg = direction * size[:, None]
        weizsaecker = size**2 / (8 * np.where(rho_sg > 0, rho_sg, 1.0))
        self.tau_sg = weizsaecker + C_F * rho_sg ** (5 / 3) * rng.uniform(0.01, 3, (spins, n))

    @property
    def sigma_xg(self) -> Array:
        """sigma_aa, sigma_ab, sigma_bb; for closed shells only |grad rho|^2."""
        g = self.gradient_sxg
        pairs = ((0, 0), (0, 1), (1, 1)) if len(g) == 2 else ((0, 0),)
        return np.array([(g[i] * g[j]).sum(axis=0) for i, j in pairs])

    def rows(self, family: str) -> list[Array]:
        """The variables of a family."""
        rows = [*self.rho_sg]
        if family != "lda":
            rows += [*self.sigma_xg]
        return [*rows, *self.tau_sg] if family == "mgga" else rows


def ordinary(spins: int, n: int = 1000) -> Points:
    """Densities from 1e-6 to 100 Bohr^-3 with ratios of the spins up to 1:1000; the last points are not polarised."""
    rng = np.random.default_rng(1)
    rho_a = 10 ** rng.uniform(-6, 2, n)
    if spins == 1:
        return Points(rho_a[None], 1)
    rho_b = rho_a * 10 ** rng.uniform(-3, 3, n)
    rho_b[-n // 20 :] = rho_a[-n // 20 :]
    return Points(np.array([rho_a, np.clip(rho_b, 1e-7, 1e3)]), 1)


def tiny(spins: int, low: float = -10.0, n: int = 300) -> Points:
    """Densities over five powers of ten, from 10^low on."""
    rng = np.random.default_rng(3)
    return Points(10 ** rng.uniform(low, low + 5, (spins, n)), 3, gradient=10.0)


def polarised(n: int = 200, low: float = -1.5, minority: Sequence[float] = (0.0,)) -> Points:
    """Densities from 10^low on of nearly one spin: alpha in the first half of the points, beta in the second. The other
    spin has the fractions `minority` of it, in turn."""
    rho = 10 ** np.random.default_rng(2).uniform(low, 2, n)
    first, few = np.arange(n) < n // 2, rho * np.resize(minority, n)
    return Points(np.array([np.where(first, rho, few), np.where(first, few, rho)]), 2)


def majority_results(family: str, points: Points, g: int) -> list[int]:
    """Numbers of the results that are defined if one spin is empty: the energy, and derivatives with respect to
    variables of the other."""
    s = int(points.rho_sg[:, g].argmax())
    return [0, 1 + s, (3, 5)[s], (6, 7)[s]][: {"lda": 2, "gga": 3, "mgga": 4}[family]]


@cache
def with_our_floors(code: str) -> str:
    """Give Libxc the smallest densities of our kernels for an empty spin.

    Its own ones, or 1e-18, change PBE's phi, SCAN's alpha and the energy of opposite spins; its smallest 1 - |zeta|
    changes PBE and TPSS.
    """
    from pyscf import lib
    from pyscf.dft import libxc

    library, floors = lib.load_library("libxc_itrf"), FLOORS["double"]
    least = {"dens": floors["SPIN_FLOOR"], "sigma": floors["SIGMA_FLOOR"] ** 0.5, "tau": floors["TAU_FLOOR"]}

    def lower(found: Any, _by_number: object, _spin: int) -> None:
        for one in found.xc_objs:
            for kind, value in {**least, "zeta": 1e-40}.items():
                getattr(library, f"xc_func_set_{kind}_threshold")(one, ctypes.c_double(value))

    name = f"our_floors_{code}"
    libxc.register_custom_functional_(name, code, callback=lower)
    return name


def from_libxc(code: str, family: str, points: Points) -> list[Array]:
    """Energy per volume and its derivatives in our order."""
    from pyscf.dft import libxc

    rho_sg, spins = points.rho_sg, len(points.rho_sg)
    count = {"lda": 1, "gga": 4, "mgga": 6}[family]
    blocks: list[Any] = []
    for s in range(spins):
        rows = [rho_sg[s], *points.gradient_sxg[s], np.zeros_like(rho_sg[s]), points.tau_sg[s]]
        blocks.append(np.array(rows[:count]) if count > 1 else rows[0])
    given = tuple(blocks) if spins == 2 else blocks[0]
    energy, derivatives = libxc.eval_xc(with_our_floors(code), given, spin=spins - 1)[:2]
    kinds = {"lda": (0,), "gga": (0, 1), "mgga": (0, 1, 3)}[family]
    found = [np.reshape(np.asarray(derivatives[k]).T, (-1, rho_sg.shape[1])) for k in kinds]
    return [energy * rho_sg.sum(axis=0), *(row for block in found for row in block)]


def by_kernel(functional: Functional, backend: Any, points: Points, real: str = "double") -> list[Array]:
    """Energy and derivatives from the generated kernel."""
    evaluator = Evaluator(functional, backend, len(points.rho_sg), real)
    arrays = [backend.to_device(array) for array in (points.rho_sg, points.sigma_xg, points.tau_sg)]
    found = evaluator(*arrays)
    blocks = [block for block in (found.v_rho_sg, found.v_sigma_xg, found.v_tau_sg) if block is not None]
    return [backend.to_host(found.e_g), *(row for block in blocks for row in backend.to_host(block))]


def sizes(functional: Functional, points: Points) -> list[Array]:
    """Sums of the absolute contributions of the parts to every result: they may cancel (PBE's gradient terms do)."""
    rows = points.rows(functional.family)
    total = [np.zeros_like(rows[0]) for _ in range(len(rows) + 1)]
    for one in functional.parts:
        alone = Functional(one.label, (one,))
        own = numpy_values(alone, points.rows(alone.family))
        for k, value in enumerate(own):
            total[k] += np.abs(one.factor * value) if one.factor != 1.0 else np.abs(value)
    return total


def require_equal(found: Sequence[Array], expected: Sequence[Array], scale: Sequence[Array]) -> None:
    """Require energies to 1e-10 and derivatives to 1e-8 of their contributions; 1e-30 where all of these vanish."""
    for k, g in outside_tolerance(found, expected, scale):
        raise AssertionError(f"result {k}, point {g}: {found[k][g]!r} is not {expected[k][g]!r}")


def outside_tolerance(
    found: Sequence[Array], expected: Sequence[Array], scale: Sequence[Array]
) -> list[tuple[int, int]]:
    """Numbers of results and points at which they are outside the tolerance."""
    assert len(found) == len(expected)
    positions = []
    for k, (a, b, c) in enumerate(zip(found, expected, scale, strict=True)):
        assert np.isfinite(a).all(), f"result {k} is not finite"
        tolerance = (DERIVATIVE_REL if k else ENERGY_REL) * np.maximum(np.abs(b), c) + 1e-30
        positions += [(k, int(g)) for g in np.flatnonzero(np.abs(a - b) > tolerance)]
    return positions


def require_libxc(
    functional: Functional, code: str, points: Points, found: Sequence[Array], scale: Sequence[Array]
) -> None:
    """Require the results of Libxc; where it loses digits, those of a calculation with 40 digits."""
    positions = outside_tolerance(found, from_libxc(code, functional.family, points), scale)
    assert len(positions) <= LOST_BY_LIBXC.get(functional.name, 0), f"{len(positions)} results differ: {positions[:9]}"
    require_exact(functional, points, found, scale, positions)


def require_exact(
    functional: Functional,
    points: Points,
    found: Sequence[Array],
    scale: Sequence[Array],
    positions: Sequence[tuple[int, int]],
) -> None:
    """Require agreement with a 40-digit calculation, for these results at these points."""
    known: dict[int, list[Any]] = {}
    for k, g in positions:
        if g not in known:
            known[g] = forty_digits(functional, points, g)
        exact = known[g][k]
        tolerance = (DERIVATIVE_REL if k else ENERGY_REL) * max(abs(exact), scale[k][g])
        assert abs(found[k][g] - exact) <= tolerance, f"result {k}, point {g}: {found[k][g]!r} is not {exact}"


def forty_digits(functional: Functional, points: Points, g: int) -> list[Any]:
    """All results at a point; an empty spin has the smallest density and gradient of our kernels."""
    import mpmath

    with mpmath.workdps(40):
        x = [mpmath.mpf(float(row[g])) for row in points.rows(functional.family)]
        for s in range(len(points.rho_sg)):
            if x[s] == 0:
                x[s] = x[1 - s] * mpmath.mpf(10) ** -35
                for k, power in (((2, 4)[s], 3), ((5, 6)[s], mpmath.mpf(5) / 3)):
                    x[k : k + 1] = [x[s] ** power] if k < len(x) else []
        return evaluate(functional.expressions(len(points.rho_sg)), x, exact_functions())
