"""Functionals against Libxc, point by point; their formulas in exact arithmetic; their kernels on every backend."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from cuanto.backends.base import get_backend
from cuanto.backends.cpu.backend import CpuBackend
from cuanto.backends.cuda.nvrtc import compile_nvrtc
from cuanto.errors import InputError
from cuanto.functionals import Evaluator, functional_names, get_functional
from cuanto.functionals.evaluate import CHUNK
from cuanto.kernels.ir import Stage
from functional_cases import (
    DERIVATIVE_REL,
    ENERGY_REL,
    LABELS,
    LIBXC,
    MINORITY_FRACTIONS,
    Points,
    by_kernel,
    exact_functions,
    from_libxc,
    majority_results,
    ordinary,
    outside_tolerance,
    part,
    polarised,
    require_equal,
    require_exact,
    require_libxc,
    sizes,
    tiny,
)
from oracles.functionals import evaluate, numpy_values

CPU = get_backend("cpu")
LOST_AT_FULL_POLARISATION = {"gga_c_pw91": 1}
"""Number of values that may differ from Libxc if one spin has no electrons."""
SIMT_SAMPLE = ("svwn5", "bp86", "r2scan", "cam-b3lyp")


@pytest.mark.parametrize("label", LABELS)
def test_parts_equal_those_of_libxc(label: str) -> None:
    functional = part(label)
    for points in (ordinary(2), ordinary(1), tiny(2)):
        found = numpy_values(functional, points.rows(functional.family))
        require_libxc(functional, label, points, found, [np.zeros_like(row) for row in found])


@pytest.mark.parametrize("label", LABELS)
def test_parts_at_full_polarisation(label: str) -> None:
    """Energies, and derivatives with respect to the variables of the only spin; LYP has no energy there."""
    functional, lost = part(label), 0
    for points in (polarised(), polarised(low=-9.0)):
        expected = from_libxc(label, functional.family, points)
        found = numpy_values(functional, points.rows(functional.family))
        assert all(np.isfinite(row).all() for row in found)
        uniform = numpy_values(part("lda_x"), points.rows("lda"))
        half = points.rho_sg.shape[1] // 2
        for s, chosen in enumerate((slice(0, half), slice(half, None))):
            positions = majority_results(functional.family, points, s * half)
            size = [np.abs(uniform[0]), np.abs(uniform[1 + s])]
            size += [np.abs(uniform[0]) / row.clip(1e-99) for row in (points.sigma_xg[(0, 2)[s]], points.tau_sg[s])]
            scale = [1e-3 * row[chosen] for row in size[: len(positions)]]
            lost += len(
                outside_tolerance(
                    [found[k][chosen] for k in positions], [expected[k][chosen] for k in positions], scale
                )
            )
    assert lost <= LOST_AT_FULL_POLARISATION.get(label, 0)


@pytest.mark.parametrize("name", functional_names())
@pytest.mark.parametrize("spins", [1, 2])
def test_kernels_agree_with_libxc(name: str, spins: int) -> None:
    """The kernels that calculations use, on the CPU."""
    functional = get_functional(name)
    for points in (ordinary(spins, 403), tiny(spins, n=101)):
        found = by_kernel(functional, CPU, points)
        require_libxc(functional, LIBXC[name], points, found, sizes(functional, points))


@pytest.mark.parametrize("name", functional_names())
def test_kernels_at_full_polarisation(name: str) -> None:
    """One spin is empty, the other has 1e-9 to 100 electrons per Bohr^3."""
    functional, points = get_functional(name), polarised(24, -9.0)
    found, scale = by_kernel(functional, CPU, points), sizes(functional, points)
    positions = outside_tolerance(found, from_libxc(LIBXC[name], functional.family, points), scale)
    defined = {(k, g) for g in range(24) for k in majority_results(functional.family, points, g)}
    assert not defined & set(positions)
    require_exact(functional, points, found, scale, sorted(defined))


@pytest.mark.parametrize("name", functional_names())
def test_kernels_near_full_polarisation(name: str) -> None:
    """All derivatives, also by variables of a nearly empty spin, where Libxc loses digits."""
    functional, points = get_functional(name), polarised(28, -9.0, MINORITY_FRACTIONS)
    found = by_kernel(functional, CPU, points)
    positions = [(k, g) for k in range(len(found)) for g in range(28)]
    require_exact(functional, points, found, sizes(functional, points), positions)


@pytest.mark.parametrize("label", LABELS)
def test_rounding_and_derivatives_in_exact_arithmetic(label: str) -> None:
    """At densities down to 1e-13, where Libxc cuts off; derivatives also by differences of 40-digit energies."""
    functional = part(label)
    expressions = functional.expressions(2)
    energy = Stage(expressions.graph, expressions.outputs[:1])
    numbers = exact_functions()
    with mpmath.workdps(40):
        for points in (tiny(2, -13.0, n=4), ordinary(2, n=4)):
            rows = points.rows(functional.family)
            found = numpy_values(functional, rows)
            for g in range(points.rho_sg.shape[1]):
                x = [mpmath.mpf(float(row[g])) for row in rows]
                exact = evaluate(expressions, x, numbers)
                for k, value in enumerate(exact):
                    tolerance = DERIVATIVE_REL if k else ENERGY_REL
                    assert abs(found[k][g] - value) <= tolerance * abs(value) + 1e-40, (g, k)
            for k, centre in enumerate(x):
                step = centre * mpmath.mpf(10) ** -15
                ends = [evaluate(energy, [*x[:k], centre + sign * step, *x[k + 1 :]], numbers)[0] for sign in (1, -1)]
                slope = (ends[0] - ends[1]) / (2 * step)
                assert abs(slope - exact[k + 1]) <= 1e-8 * (abs(slope) + abs(exact[0] / centre) * 1e-10), k


@pytest.mark.parametrize("name", SIMT_SAMPLE)
@pytest.mark.parametrize("spins", [1, 2])
def test_cuda_kernels_on_the_cpu(name: str, spins: int) -> None:
    functional, simt = get_functional(name), get_backend("simt")
    nearly = [polarised(20, -9.0, MINORITY_FRACTIONS)] if spins == 2 else []
    for points in (ordinary(spins, 150), *nearly):
        expected = numpy_values(functional, points.rows(functional.family))
        require_equal(by_kernel(functional, simt, points), expected, sizes(functional, points))


@pytest.mark.parametrize(
    ("name", "spins", "real"), [("tpss", 2, "double"), ("wb97x", 1, "double"), ("m06-l", 2, "float")]
)
def test_nvrtc_takes_the_text(name: str, spins: int, real: str) -> None:
    binary, _ = compile_nvrtc(get_functional(name).source("cuda", spins, real).text)
    assert binary.startswith(b"\x7fELF")


@pytest.mark.parametrize("name", ["pbe", "r2scan"])
def test_single_precision(name: str) -> None:
    functional, points = get_functional(name), ordinary(2, 300)
    expected = numpy_values(functional, points.rows(functional.family))
    found = by_kernel(functional, CPU, points, "float")
    assert found[0].dtype == np.float32
    error = np.abs(found[0] - expected[0]) / sizes(functional, points)[0]
    assert error.max() < 3e-5 and np.median(error) < 1e-6
    assert all(np.isfinite(row).all() for row in found)


def awkward() -> Points:
    """Zero and negative densities, no gradient, spin gradients that cancel, tau below von Weizsaecker's."""
    rho_sg = np.array(
        [[0.0, -1e-9, 0.3, 0.3, 0.0, 1e-30, 0.2, 1e-15, 0.4], [0.0, 1e-16, 0.2, 0.3, 0.5, 0.1, 0, 1e-15, 0.4]]
    )
    points = Points(np.abs(rho_sg), 7)
    points.rho_sg = rho_sg
    points.gradient_sxg[:, :, 2] = 0.0
    points.gradient_sxg[1, :, 3] = -points.gradient_sxg[0, :, 3]
    points.tau_sg[:, 8] *= 0.0
    return points


@pytest.mark.parametrize("name", functional_names())
def test_nothing_is_ever_infinite(name: str) -> None:
    functional, points = get_functional(name), awkward()
    found = by_kernel(functional, CPU, points)
    for row in found:
        assert np.isfinite(row).all()
        assert (row[[0, 1, 7]] == 0.0).all()  # total density below the threshold
    if functional.needs_gradient:
        assert (found[3][[4, 5]] == 0.0).all() and found[5][6] == 0.0  # an empty spin has no gradient


def test_closed_shells_equal_open_shells_with_equal_spins() -> None:
    rho = ordinary(1, 200)
    half = Points(np.repeat(rho.rho_sg / 2, 2, axis=0), 1)
    half.gradient_sxg = np.repeat(rho.gradient_sxg / 2, 2, axis=0)
    half.tau_sg = np.repeat(rho.tau_sg / 2, 2, axis=0)
    for name in functional_names():
        functional = get_functional(name)
        one = numpy_values(functional, rho.rows(functional.family))
        two = numpy_values(functional, half.rows(functional.family))
        scale = sizes(functional, rho)
        require_equal(two[:2], one[:2], scale[:2])
        if functional.needs_gradient:
            mean = (two[3] + two[4] + two[5]) / 4  # d sigma_aa = d sigma_ab = d sigma_bb = d sigma / 4
            require_equal([one[0], mean], [one[0], one[2]], [scale[0], scale[2]])


def test_nan_densities_are_not_skipped() -> None:
    evaluator = Evaluator(get_functional("pbe"), CPU, 1)
    found = evaluator(np.array([[0.3, np.nan]]), np.array([[0.1, 0.1]]))
    assert np.isfinite(found.e_g[0]) and np.isnan(found.e_g[1])


@pytest.mark.parametrize("points", [1, 5, CHUNK + 3])
def test_any_number_of_points(points: int) -> None:
    evaluator = Evaluator(get_functional("svwn5"), CPU, 2)
    rho_sg = np.random.default_rng(0).uniform(0.1, 1.0, (2, points))
    together, alone = evaluator(rho_sg), Evaluator(get_functional("svwn5"), CpuBackend(threads=1), 2)(rho_sg)
    assert (together.e_g == alone.e_g).all() and (together.v_rho_sg == alone.v_rho_sg).all()
    last = evaluator(rho_sg[:, -1:])
    assert last.e_g[0] == alone.e_g[-1]
    assert alone.v_sigma_xg is None and alone.v_tau_sg is None


def test_no_points_and_wrong_ones() -> None:
    evaluator = Evaluator(get_functional("pbe"), CPU, 2)
    assert evaluator(np.zeros((2, 0)), np.zeros((3, 0))).e_g.shape == (0,)
    with pytest.raises(InputError, match=r"pbe needs sigma of shape \(3, 4\): nothing was given"):
        evaluator(np.ones((2, 4)))
    with pytest.raises(InputError, match=r"pbe needs rho of shape \(2, 4\)"):
        evaluator(np.ones((1, 4)), np.ones((3, 4)))
    with pytest.raises(InputError, match="choose 1 or 2 spins"):
        Evaluator(get_functional("pbe"), CPU, 3)
