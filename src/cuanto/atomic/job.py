"""Jobs for an element, without an input file, and energies as a function of the exponents."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict, astuple, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError

from cuanto.atomic.atom import AtomBasis, AtomIteration, AtomResult, ScfSettings
from cuanto.atomic.configuration import configuration_text, ground_configuration, occupation_of, parse_configuration
from cuanto.atomic.export import Contraction, contracted_table, uncontracted_table, x2c_contracted_table
from cuanto.atomic.input import AtomInput
from cuanto.atomic.nucleus import Model, Nucleus
from cuanto.atomic.optimise import EnergyFailure
from cuanto.atomic.solve import energy_converged, solve
from cuanto.atomic.species import LETTERS
from cuanto.atomic.wtbs import (
    Range,
    WellTempered,
    even_tempered,
    generated_set,
    nearest_set,
    singular_largest,
    table,
    table_set,
)
from cuanto.basis.advice import sets_for
from cuanto.basis.library import element_tables
from cuanto.basis.table import ElementTable
from cuanto.errors import CuantoError, InputError, require
from cuanto.scf.configurations import Configuration
from cuanto.system.elements import ATOMIC_NUMBERS, symbol_of
from cuanto.system.text import parse_real, quote

TIGHT_THRESHOLDS: dict[str, Any] = {"threshold_LL": 1e-8, "threshold_SL": 1e-10, "threshold_SS": 1e-12}
"""Density thresholds for accurate spinor energies."""

ENERGY_ONLY: dict[str, Any] = {"threshold_LL": 1e-6, "threshold_SL": 1e-8, "threshold_SS": 1e-10}
"""Density thresholds for a relative energy error of 1e-13, the best that nearly dependent sets reach."""

ENERGY_NOISE = 1e-12  # relative noise of energies that an optimisation tolerates

TEMPERED = ("auto", "wtbs", "even")
"""Names of sets with parameters and ranges."""
LIMIT_RATIO = 1.75
LIMIT_LARGEST = (1e11, 1e9, 1e7, 1e5, 1e4)  # s, p, d, f, g
LIMIT_SINGULAR = 100.0
"""Largest exponent of s and p around a point nucleus, relative to that of generated sets."""
LIMIT_SMALLEST = 0.5  # smallest exponent relative to alpha of the table
_RANGE = re.compile(r"\s*([spdfg])\s*\(\s*(\d{1,3})\s*:\s*(\d{1,3})\s*\)\s*,?", re.ASCII | re.IGNORECASE)


def element_job(
    element: str,
    basis: str | WellTempered = "auto",
    configuration: str | None = None,
    charge: int | None = None,
    nucleus: Model = "gaussian",
    *,
    nuclear_radius: float | None = None,
    parameters: str | None = None,
    ranges: str | None = None,
    settings: dict[str, Any] | None = None,
) -> AtomInput:
    """Make the job of an element, by default in its ground configuration, in a basis set given by name.

    `basis`: `wtbs` (the table), `even` (even-tempered, for every element), `auto` (the table, or `even` for elements
    without a set there), `limit` (even-tempered, close to the basis limit), a basis file, or a name of the Basis Set
    Exchange (only exponents are used). `parameters` and `ranges` override those of `wtbs` and `even`.
    `nuclear_radius`: root mean square in fm; by default that of the isotope chosen for the element.
    """
    symbol = symbol_of(element)
    subshells = _configuration(symbol, configuration, charge)
    singular = nucleus == "point" and bool((settings or {}).get("relativistic", True))
    found = _basis(symbol, basis, subshells, singular, parameters, ranges) if isinstance(basis, str) else basis
    top = found.ranges if isinstance(found, WellTempered) else found.exponents
    l_max, needed = (len(top) - 1) // 2, max(l for _, l in subshells)
    require(l_max >= needed, f"{configuration_text(subshells)} needs {LETTERS[needed]} functions; the basis has none")
    title = f"{symbol}, {configuration_text(subshells)}"
    thresholds = TIGHT_THRESHOLDS if isinstance(found, WellTempered) else ENERGY_ONLY
    scf = ScfSettings(**{**thresholds, **(settings or {})})
    atom = Nucleus.of_radius(ATOMIC_NUMBERS[symbol], nucleus, nuclear_radius)
    return AtomInput(title, atom, found, occupation_of(subshells, l_max), scf)


def _configuration(symbol: str, text: str | None, charge: int | None) -> Configuration:
    if text is None:
        return ground_configuration(symbol, charge or 0)
    subshells = parse_configuration(text)
    electrons, number = sum(subshells.values()), ATOMIC_NUMBERS[symbol]
    if charge is not None and electrons != number - charge:
        raise InputError(f"{text} has {electrons:g} electrons, {symbol} with charge {charge} has {number - charge}")
    check_electrons(symbol, text, subshells)
    return subshells


def check_electrons(symbol: str, text: str, subshells: Configuration) -> None:
    """Refuse a configuration, written as `text`, with more electrons than an element can bind."""
    electrons = sum(subshells.values())
    bound = electrons < 2 * ATOMIC_NUMBERS[symbol] + 1
    require(bound, f"{text} has {electrons:g} electrons, more than {symbol} can bind")


def _basis(
    symbol: str, name: str, subshells: Configuration, singular: bool, parameters: str | None, ranges: str | None
) -> WellTempered | AtomBasis:
    """The set of a name; `singular`: for relativistic spinors around a point nucleus."""
    l_max = max(l for _, l in subshells)
    if name.lower() in TEMPERED:
        if parameters is not None and ranges is not None:
            return WellTempered.shared(parse_parameters(parameters), parse_ranges(ranges))
        found = _tempered(symbol, name.lower(), l_max, singular)
        if ranges is not None:
            return WellTempered.shared(found.parameters, parse_ranges(ranges))
        return found if parameters is None else found.at(parse_parameters(parameters))
    if parameters is not None or ranges is not None:
        raise InputError(f"parameters and ranges belong to --basis wtbs or even, not to {quote(name)}")
    return limit_basis(symbol, l_max, singular) if name.lower() == "limit" else _library_basis(symbol, name)


def _tempered(symbol: str, name: str, l_max: int, singular: bool) -> WellTempered:
    """The set of the table or the generated one; `auto` takes the latter if the table has no set up to `l_max`."""
    known = table().get(symbol)
    missing = known is None or len(known.ranges) < 2 * l_max + 1
    generated = name == "even" or (name == "auto" and missing)
    return generated_set(symbol, l_max, singular) if generated else table_set(symbol)


def parse_parameters(text: str) -> tuple[float, ...]:
    """Four numbers alpha, beta, delta, gamma."""
    values = [parse_real(word) for word in text.replace(",", " ").split()]
    good = [value for value in values if value is not None]
    if len(values) != 4 or len(good) != 4:
        raise InputError(f"parameters {quote(text)}: give four numbers alpha,beta,delta,gamma")
    return tuple(good)


def parse_ranges(text: str) -> dict[str, Range]:
    """{'s': (1, 18), 'p': (3, 9)} from 's(1:18)p(3:9)'."""
    found: dict[str, Range] = {}
    position = 0
    while position < len(text.rstrip()):
        match = _RANGE.match(text, position)
        if match is None or match[1].lower() in found or not 1 <= int(match[2]) <= int(match[3]) <= 200:
            raise InputError(f"ranges {quote(text)}: write them as s(1:18)p(3:9), indices from 1 to 200")
        found[match[1].lower()] = (int(match[2]), int(match[3]))
        position = match.end()
    return found


def limit_basis(symbol: str, l_max: int, singular: bool = False) -> AtomBasis:
    """Even-tempered exponents with which the energy is within about 1e-10 of the basis limit.

    `singular`: with the tighter s and p functions that relativistic spinors need around a point nucleus; their error
    is about 1e-9.
    """
    smallest = LIMIT_SMALLEST * min(0.05, nearest_set(symbol).parameters[0])
    tight = LIMIT_SINGULAR * singular_largest(symbol) if singular else 0.0
    limits = [max(largest, tight) if l < 2 else largest for l, largest in enumerate(LIMIT_LARGEST)]
    counts = [int(np.log(largest / smallest) / np.log(LIMIT_RATIO)) + 1 for largest in limits]
    return AtomBasis.by_momentum([even_tempered(smallest, LIMIT_RATIO, count) for count in counts[: l_max + 1]])


def _library_basis(symbol: str, name: str) -> AtomBasis:
    """Return the exponents of a molecular basis set, without its contractions."""
    table_of_set = element_tables(name, [symbol])[symbol]
    shells, potential = table_of_set.shells, table_of_set.core_potential
    if potential is not None:
        instead = " or ".join(sets_for([symbol], relativistic=True)) or "--basis auto"
        raise InputError(
            f"basis {quote(name)} of {symbol} replaces {potential.core_electrons} electrons by a core potential, but "
            f"here all electrons are computed: use a set for all of them, such as {instead}"
        )
    l_max = max((shell.l for shell in shells), default=-1)
    by_l = [sorted({a for shell in shells if shell.l == l for a in shell.exponents}) for l in range(l_max + 1)]
    if not by_l or not all(by_l) or l_max >= len(LETTERS):
        raise InputError(f"basis {quote(name)} of {symbol} must have functions s, p, ... up to g without a gap")
    return AtomBasis.by_momentum(by_l)


class AtomEnergy:
    """The energy of an atom as a function of its well-tempered set, independent of what was computed before.

    Every SCF starts from the spinors in the set of the job. The spinors of the previous set would be a better start,
    but an interrupted optimisation would then continue with slightly different energies.
    """

    def __init__(self, job: AtomInput, backend: str = "auto") -> None:
        self.job, self.backend, self.settings = job, backend, replace(job.settings, accelerator="diis")

    def __call__(self, basis: WellTempered | AtomBasis) -> float:
        try:
            return self._solve(basis, self._origin).energy
        except EnergyFailure:
            if self._origin is None:
                raise
            return self._solve(basis, None).energy  # these initial spinors do not suit this set

    @cached_property
    def _origin(self) -> AtomResult | None:
        """Result in the set of the job, from the core guess; None if that SCF fails."""
        try:
            return self._solve(self.job.basis, None)
        except EnergyFailure:
            return None

    def _solve(self, basis: WellTempered | AtomBasis, start: AtomResult | None) -> AtomResult:
        try:
            atom = self.job.atom(basis)
            if start is not None and atom.basis.same_as(start.atom.basis):
                return start
            result = solve(atom, self.settings, self.backend, start=start, is_converged=energy_converged)
        except (CuantoError, LinAlgError) as error:
            raise EnergyFailure(" ".join(str(error).split())) from None
        if not (result.converged or energy_is_constant(result)):
            raise EnergyFailure("the SCF did not converge")
        return result


def energy_is_constant(result: AtomResult) -> bool:
    """Whether the energy was constant for five iterations, even if the density oscillates (nearly dependent sets)."""
    last = [step.energy for step in result.history[-5:]]
    return len(last) == 5 and max(last) - min(last) < ENERGY_NOISE * abs(result.energy)


def run_energy(
    job: AtomInput, backend: str = "auto", watch: Callable[[AtomIteration], None] | None = None
) -> AtomResult:
    """Run the calculation in the basis of the job."""
    return solve(job.atom(), job.settings, backend, on_iteration=watch)


def element_table(symbol: str, job: AtomInput, contraction: Contraction | None, backend: str = "auto") -> ElementTable:
    """The basis of the job for molecular programs, uncontracted without a `contraction`."""
    if contraction is None:
        return uncontracted_table(symbol, job.atom().basis)
    if contraction.x2c:
        return x2c_contracted_table(symbol, job.atom(), job.settings.c, contraction.diffuse)
    plain = run_energy(replace(job, settings=replace(job.settings, relativistic=False)), backend)
    return contracted_table(symbol, plain, contraction.diffuse)


def problem_of(job: AtomInput) -> dict[str, Any]:
    """Return everything that determines the energies of an optimisation, as JSON data."""
    basis, scf = job.basis, asdict(job.settings)
    assert isinstance(basis, WellTempered)
    del scf["relativistic"], scf["accelerator"]  # c says the former, and AtomEnergy chooses the latter
    return {
        "nucleus": astuple(job.nucleus),
        "ranges": basis.ranges,
        "groups": basis.groups,
        "pool": basis.pool,
        "start": basis.parameters,
        **scf,
        "c": job.settings.c if job.settings.relativistic else None,
        **asdict(job.occupation),
    }
