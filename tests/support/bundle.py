"""A bundle: one shell of every angular momentum, so that one call of an integral function covers every class."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec
from itertools import product
from typing import Any

import numpy as np
import pytest

from cuanto import integrals
from cuanto.backends import Backend
from cuanto.backends.base import Job, Launch
from cuanto.backends.cpu.backend import CpuBackend
from cuanto.backends.cuda.backend import CudaBackend
from cuanto.backends.simt.backend import SimtBackend
from cuanto.basis import Basis, Shell, shell_matrix
from cuanto.integrals import api
from cuanto.integrals.engine import Engine
from cuanto.integrals.pairs import RowMap
from cuanto.kernels.build import GROUP_THREADS
from oracle import Array, _libcint_arrays, describe, reference_block
from oracles import integrals as reference
from tolerances import INTEGRAL_ABS, INTEGRAL_REL, SMALLEST

EXPONENTS = {"normal": (0.3, 3.0), "tight": (3e5, 1e6), "diffuse": (1e-3, 1e-2), "mixed": (1e-3, 1e6)}
SPREAD = {"near": 1.5, "coincident": 0.0, "distant": 6.0}
FORMS = ("pure", "cartesian", "both")
PRIMITIVES = {"primitive": (1, 1), "contracted": (3, 2), "general": (5, 4)}
"""Primitives and columns of an orbital shell; a pair of such shells has 1, 4 or 16 contracted columns."""
ONE_ELECTRON = ("overlap", "kinetic", "dipole", "nuclear")
ORIGIN = np.array([0.4, -0.3, 0.2])
CANCELLATION = INTEGRAL_ABS / 4
"""25 eps: rounding errors of Cartesian functions that cancel in pure ones; at most 9 eps were observed, with orbital
shells up to l = 5 and auxiliary ones up to l = 6."""


def expand_kernel_macro(text: str) -> str:
    """The text of a kernel without comments, with the macro KERNEL of its prelude expanded."""
    code = re.sub(r"//.*", "", text)
    ((definition, full),) = re.findall(r"(?m)^(#define KERNEL\(threads\) (.*)\n)", code)
    return re.sub(r"\bKERNEL\((\w+)\)", lambda use: full.replace("threads", use[1]), code.replace(definition, ""))


class Planner(SimtBackend):
    """A GPU that collects jobs and runs nothing; `plan` says how it would launch one."""

    def __init__(self, schedule: str = "auto", worth_compiling: float = 0.0) -> None:
        super().__init__(schedule, shared_limit=200_000)
        sizes = {"group_threads": GROUP_THREADS, "quartet_threads": 0, "workers": 8}
        self.traits = replace(self.traits, worth_compiling=worth_compiling, **sizes)
        self.jobs: list[Job] = []

    def plan(self, job: Job) -> Launch:
        return self._launch_of(job)

    def run(self, groups: Iterable[Sequence[Job]]) -> None:
        self.jobs += [job for group in groups for job in group]


@dataclass(frozen=True)
class Case:
    """Properties of the shells of a bundle; form `both`: every third shell is Cartesian."""

    form: str = "pure"
    contraction: str = "primitive"
    geometry: str = "near"
    exponents: str = "normal"
    l_max: int = 5
    aux_max: int = 6

    def __str__(self) -> str:
        reach = f"l{self.l_max}-{self.aux_max}"
        return f"{self.form}-{self.contraction}-{self.geometry}-{self.exponents}-{reach}"


def cases(form: str, l_max: int, aux_max: int, short: bool = False) -> list[Case]:
    """Every geometry with every range of exponents and alternating contractions; `short`: each of these once."""
    if short:
        chosen = [
            ("primitive", "distant", "mixed"),
            ("contracted", "coincident", "tight"),
            ("general", "near", "diffuse"),
        ]
    else:
        kinds = list(PRIMITIVES)
        chosen = [(kinds[i % 3], *setting) for i, setting in enumerate(product(SPREAD, EXPONENTS))]
        chosen += [(kind, "near", "normal") for kind in kinds[1:]]
        if l_max > 3:  # many of these blocks need the reference, which is slow for long contractions
            chosen = [
                ("primitive" if setting[1:] == ("distant", "mixed") else setting[0], *setting[1:]) for setting in chosen
            ]
    return [Case(form, *choice, l_max, aux_max) for choice in chosen]


@cache
def bundle(case: Case, seed: int = 1) -> tuple[Basis, Basis]:
    """Orbital basis (l = 0 .. l_max, twice the lower ones) and auxiliary basis (l = 0 .. aux_max)."""
    rng = np.random.default_rng(seed)
    # Tight functions overlap only if they are close: all lengths scale with 1 / sqrt(exponent).
    low, high = EXPONENTS[case.exponents]
    spread = SPREAD[case.geometry] * ((low * high) ** -0.25 if case.exponents != "mixed" else 1.0)
    nprim, ncol = PRIMITIVES[case.contraction]
    momenta, aux_momenta = [*range(case.l_max + 1), *range(min(case.l_max, 2) + 1)], list(range(case.aux_max + 1))
    orbital_centres = spread * rng.normal(size=(len(momenta), 3))
    aux_centres = spread * rng.normal(size=(len(aux_momenta), 3))
    aux_centres[::2] = orbital_centres[1::2][np.arange(len(aux_centres[::2])) % len(orbital_centres[1::2])]
    orbital = _shells(rng, case, momenta, nprim, ncol)
    aux = _shells(rng, case, aux_momenta, min(nprim, 2), 1)
    return Basis.from_shells(orbital, orbital_centres), Basis.from_shells(aux, aux_centres)


def _shells(rng: np.random.Generator, case: Case, momenta: list[int], nprim: int, ncol: int) -> list[Shell]:
    low, high = EXPONENTS[case.exponents]
    shells = []
    for atom, l in enumerate(momenta):
        pure = case.form == "pure" or (case.form == "both" and (atom + l) % 3 != 2)
        exponents = np.exp(rng.uniform(np.log(low), np.log(high), nprim))
        coefficients = rng.uniform(0.3, 1.0, (nprim, ncol))
        if ncol > 2:
            coefficients[1:, -1] = 0.0  # as in most generally contracted sets
        shells.append(Shell.from_table(atom, l, exponents, coefficients, pure))
    return shells


def point_charges(basis: Basis, count: int = 35) -> dict[str, Array]:
    """Charges of both signs, more than one launch takes; the first ones sit on the centres of the basis."""
    rng = np.random.default_rng(5)
    spread = max(1e-3, float(np.abs(basis.R_ax).max()))
    positions = 2 * spread * rng.normal(size=(count, 3))
    positions[: len(basis.R_ax)] = basis.R_ax[:count]
    return {"charges": rng.uniform(-1.0, 8.0, count), "positions": positions}


def arguments(operator: str, basis: Basis, charges: int = 35) -> dict[str, Any]:
    """Further arguments of an operator, besides the basis."""
    if operator == "nuclear":
        return point_charges(basis, charges)
    return {"origin": ORIGIN} if operator == "dipole" else {}


# ------------------------------------------------------------------------------------------ our evaluations

BACKENDS: dict[str, Callable[[], Backend | None]] = {
    "reference": lambda: None,
    "cpu-table": lambda: CpuBackend(schedule="table"),
    "cpu-lane": lambda: CpuBackend(schedule="lane"),
    "simt-group": lambda: SimtBackend("group"),
    "simt-scratch": lambda: SimtBackend("group", shared_limit=2000),  # values in global memory, as for (hh|i) on a GPU
    "simt-thread": lambda: SimtBackend("thread"),
    "cuda-group": lambda: CudaBackend("group"),
    "cuda-thread": lambda: CudaBackend("thread"),
}
BLOCKS: dict[str, Callable[[], Backend]] = {
    "simt-block": lambda: SimtBackend("quartet_block"),
    "simt-block-scratch": lambda: SimtBackend("quartet_block", shared_limit=4000),  # sums in global memory
    "cuda-block": lambda: CudaBackend("quartet_block"),
}
"""Blocks of threads for a quartet of shells, for direct J and K."""


def on(*names: str) -> pytest.MarkDecorator:
    """Parametrise a test by the names of backends; those of GPUs are marked."""
    marks = {name: [pytest.mark.gpu] if name.startswith("cuda") else [] for name in names}
    return pytest.mark.parametrize("name", [pytest.param(name, marks=marks[name]) for name in names])


@cache
def backend(name: str) -> Backend | None:
    return {**BACKENDS, **BLOCKS}[name]()


def evaluate(
    backend: Backend | None, operator: str, basis: Basis, aux: Basis, algorithm: str = "auto", charges: int = 35
) -> Array:
    """The integrals of a bundle on a backend; None is the NumPy reference. No pair is neglected."""
    extra = arguments(operator, basis, charges)
    if backend is None:
        return _reference(operator, basis, aux, extra)
    if operator == "2c":
        return backend.to_host(integrals.eri_2c(aux, algorithm=algorithm, backend=backend))
    if operator == "3c":
        values = integrals.eri_3c(basis, aux, algorithm=algorithm, backend=backend, threshold=0.0)
        return backend.to_host(values)
    return backend.to_host(getattr(integrals, operator)(basis, backend=backend, **extra))


def _reference(operator: str, basis: Basis, aux: Basis, extra: dict[str, Any]) -> Array:
    if operator == "2c":
        return reference.eri_2c_matrix(aux)
    if operator == "3c":
        return reference.eri_3c_tensor(basis, aux)
    name = "dipole_matrices" if operator == "dipole" else f"{operator}_matrix"
    values: Array = getattr(reference, name)(basis, **extra)
    return values


def some_classes(
    backend: Backend, basis: Basis, aux: Basis, wanted: Iterable[tuple[int, int, int]], algorithm: str
) -> Array:
    """(pq|P) of the wanted classes (l of p >= l of q) only, zero elsewhere."""
    wanted = set(wanted)
    n = basis.nbf
    out = backend.zeros((n, n, aux.nbf), np.float64)
    engine = Engine(backend, out, row_stride=aux.nbf)
    kets = api.basis_kets(aux, coulomb=True)
    for bra in api.basis_pairs(basis, RowMap(n, packed=False), 0.0):
        partners = [ket for ket in kets if (*bra.shells.l, *ket.shells.l) in wanted]
        if partners:
            engine.run("coulomb", [bra], partners, algorithm)
    lower = backend.to_host(out)
    return np.where(np.tri(n, dtype=bool)[:, :, None], lower, lower.transpose(1, 0, 2))


def our_block(device: Backend | None, operator: str, basis: Basis, aux: Basis, algorithm: str) -> Array:
    a, b = (shell.nbf for shell in basis.shells)
    if operator == "3c" and device is not None:
        high, low = sorted((shell.l for shell in basis.shells), reverse=True)
        values = some_classes(device, basis, aux, [(high, low, aux.shells[0].l)], algorithm)
    else:
        values = evaluate(device, operator, basis, aux, algorithm, charges=3)
    return values[:a, a:] if operator == "3c" else values[..., :a, a : a + b]


# -------------------------------------------------------------------------------------- another evaluation


@cache
def expected(operator: str, basis: Basis, aux: Basis) -> Array:
    """The same integrals from libcint. Where forms are mixed, its cartesian integrals are transformed."""
    bases = sides(operator, basis, aux)
    forms = {shell.pure for b in bases for shell in b.shells if shell.l >= 2}
    if len(forms) < 2:
        return _other_program(operator, bases, "_cart" if forms == {False} else "_sph")
    values = _other_program(operator, [cartesian(b) for b in bases], "_cart")
    lead = values.ndim - len(bases)
    for axis, b in enumerate(bases, start=lead):
        values = np.moveaxis(np.tensordot(_transformation(b), values, axes=(1, axis)), 0, axis)
    return values


@cache
def natural_scale(operator: str, basis: Basis, aux: Basis) -> Array:
    """Size of the numbers that are summed in every block; errors of a few eps times this are unavoidable.

    A pure function is a sum of cartesian ones that may cancel: this is the largest cartesian element of the block, with
    absolute contributions of point charges. The kinetic energy is itself a difference, of terms as large as the overlap
    times an exponent: that of the smoother shell is added.
    """
    bases = [cartesian(b) for b in sides(operator, basis, aux)]
    scale = block_maxima(np.abs(_other_program(operator, bases, "_cart", magnitudes=True)), bases)
    if operator == "kinetic":
        alpha = np.array([shell.exponents.max() for shell in basis.shells])
        S = block_maxima(np.abs(_other_program("overlap", bases, "_cart")), bases)
        scale = scale + S * np.minimum.outer(alpha, alpha)
    return scale


def sides(operator: str, basis: Basis, aux: Basis) -> list[Basis]:
    return {"2c": [aux, aux], "3c": [basis, basis, aux]}.get(operator, [basis, basis])


def cartesian(basis: Basis) -> Basis:
    """The same shells in cartesian form."""
    return Basis.from_shells([replace(shell, pure=False) for shell in basis.shells], basis.R_ax)


def _transformation(basis: Basis) -> Array:
    """Cartesian functions (as libcint normalises them) -> functions of the basis."""
    blocks = []
    for shell in basis.shells:
        block = (
            shell_matrix(shell.l, True) if shell.pure and shell.l > 1 else np.eye((shell.l + 1) * (shell.l + 2) // 2)
        )
        blocks += [block] * shell.ncol
    rows, columns = (sum(block.shape[axis] for block in blocks) for axis in (0, 1))
    matrix, i, j = np.zeros((rows, columns)), 0, 0
    for block in blocks:
        matrix[i : i + block.shape[0], j : j + block.shape[1]] = block
        i, j = i + block.shape[0], j + block.shape[1]
    return matrix


_NAMES = {"overlap": "int1e_ovlp", "kinetic": "int1e_kin", "dipole": "int1e_r", "nuclear": "int1e_rinv"}
_NAMES |= {"2c": "int2c2e", "3c": "int3c2e"}


HAS_PYSCF = find_spec("pyscf") is not None
"""Without PySCF, as on a GPU node, the reference replaces libcint."""


def _other_program(operator: str, bases: Sequence[Basis], kind: str, magnitudes: bool = False) -> Array:
    """Integrals from another program; with `magnitudes`, absolute contributions of point charges are summed."""
    extra = arguments(operator, bases[0])
    if magnitudes and operator == "nuclear":
        extra["charges"] = np.abs(extra["charges"])
    if not HAS_PYSCF:
        return _by_reference(operator, bases, extra)
    if operator != "nuclear":
        return _libcint(operator, bases, kind, extra)
    total = np.zeros((bases[0].nbf, bases[1].nbf))
    for charge, position in zip(extra["charges"], extra["positions"], strict=True):
        one = _libcint(operator, bases, kind, {"charges": [charge], "positions": [position]})
        total += np.abs(one) if magnitudes else one
    return total


def _by_reference(operator: str, bases: Sequence[Basis], extra: dict[str, Any]) -> Array:
    lead = (3,) if operator == "dipole" else ()
    values = np.empty((*lead, *(b.nbf for b in bases)))
    for position in np.ndindex(*(len(b.shells) for b in bases)):
        shells, centres, index = block_at(bases, position)
        values[index] = reference_block(operator, shells, centres, **extra)
    return values


def _libcint(operator: str, bases: Sequence[Basis], kind: str, extra: dict[str, Any]) -> Array:
    from pyscf import gto

    unique = list({id(b): b for b in bases}.values())
    shells = [shell for b in unique for shell in b.shells]
    centres = [b.R_ax[shell.atom] for b in unique for shell in b.shells]
    start = {id(b): sum(len(x.shells) for x in unique[:i]) for i, b in enumerate(unique)}
    atm, bas, env = _libcint_arrays(shells, centres)
    edges = tuple(edge for b in bases for edge in (start[id(b)], start[id(b)] + len(b.shells)))
    factor = 1.0
    if operator == "dipole":
        env[gto.mole.PTR_COMMON_ORIG : gto.mole.PTR_COMMON_ORIG + 3] = extra["origin"]
    elif operator == "nuclear":
        env[gto.mole.PTR_RINV_ORIG : gto.mole.PTR_RINV_ORIG + 3] = extra["positions"][0]
        factor = -extra["charges"][0]
    result: Array = factor * gto.moleintor.getints(_NAMES[operator] + kind, atm, bas, env, shls_slice=edges)
    return result


# -------------------------------------------------------------------------------------------- block by block


def block_maxima(values: Array, bases: Sequence[Basis]) -> Array:
    """Largest element of every block of shells; operator components count as one."""
    lead = values.ndim - len(bases)
    for axis, b in enumerate(bases, start=lead):
        values = np.maximum.reduceat(values, np.asarray(b.offsets, dtype=np.int64), axis=axis)
    return values.max(axis=tuple(range(lead))) if lead else values


def block_at(bases: Sequence[Basis], position: Sequence[int]) -> tuple[list[Shell], list[Array], tuple[Any, ...]]:
    """Shells and centres of a block, and its index in the array."""
    shells = [b.shells[i] for b, i in zip(bases, position, strict=True)]
    centres = [b.R_ax[shell.atom] for b, shell in zip(bases, shells, strict=True)]
    first = [int(b.offsets[i]) for b, i in zip(bases, position, strict=True)]
    return shells, centres, (..., *(slice(i, i + shell.nbf) for i, shell in zip(first, shells, strict=True)))


def assert_blocks(got: Array, operator: str, basis: Basis, aux: Basis, what: str) -> None:
    """Every block agrees with libcint's to 1e-12 of its largest element, whatever the algorithm.

    Otherwise it must agree with the reference, which is tested against forty digits: some of libcint's blocks, between
    a tight and a smooth function on different centres, are accurate to 1e-5 only. Where the cartesian terms of a pure
    function cancel, their rounding errors are allowed.
    """
    bases = sides(operator, basis, aux)
    rounding = CANCELLATION * natural_scale(operator, basis, aux) + SMALLEST
    wanted = expected(operator, basis, aux)
    assert np.isfinite(got).all() and got.shape == wanted.shape, what
    allowed = INTEGRAL_REL * block_maxima(np.abs(wanted), bases) + rounding
    for position in np.argwhere(block_maxima(np.abs(got - wanted), bases) > allowed):
        shells, centres, index = block_at(bases, position.tolist())
        exact = reference_block(operator, shells, centres, **arguments(operator, basis))
        tolerance = INTEGRAL_REL * np.abs(exact).max() + rounding[tuple(position)]
        ratio = float(np.abs(got[index] - exact).max() / tolerance)
        assert ratio <= 1, f"{what}: {describe(shells)}: error is {ratio:.2g} times the tolerance"
