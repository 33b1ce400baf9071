"""Input files of atoms: the format of the thesis (D. Hennessey, Alberta 2018, section 3.5), read unchanged.

A title, then the groups $contrl, $nuc, $bas, $wtbs (or exponents), $newuoa, $econfig, $scf in this order; our own
addition is `rms` in $nuc, the radius of the nucleus in fm. Every mistake is an `InputError` of one line that names file
and line.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field

import numpy as np

from cuanto.atomic.atom import MAX_EXPONENT, MIN_EXPONENT, SPEED_OF_LIGHT, Atom, AtomBasis, ScfSettings
from cuanto.atomic.configuration import Occupation
from cuanto.atomic.namelist import LOGICAL, NUMBER, POSITIVE, Group, NamelistReader, integer, one_of, real
from cuanto.atomic.nucleus import RADII, Model, Nucleus
from cuanto.atomic.species import SPECIES
from cuanto.atomic.wtbs import NAMES, WellTempered
from cuanto.errors import InputError, require
from cuanto.system.text import format_path, quote, read_text

MAX_FUNCTIONS = 200
NUCLEI: dict[int, Model] = {1: "point", 2: "sphere", 3: "gaussian"}
LIMITS = {
    "c": (1.0, 1e12),
    "znuc": (1e-3, 1e3),
    "rnuc": (1e-10, 1e3),
    "alpha": (1e-6, 1e20),
    "rhobeg": (1e-12, 10.0),
    "rms": RADII,
}
"""Limits of the values of keys: outside of them, numbers overflow or no electron is bound."""
BOUNDED_REALS = {key: real(*limits) for key, limits in LIMITS.items()}
WEIGHTS = (1e-30, 1e30)


@dataclass(frozen=True)
class TrustRegion:
    """Trust region of an optimisation: the group $newuoa."""

    rhobeg: float = 0.1
    rhoend: float = 1e-4
    iprint: int = 0
    maxfun: int = 500


@dataclass(frozen=True, eq=False)
class AtomInput:
    """A calculation of an atom; `optimise` is None for a single energy."""

    title: str
    nucleus: Nucleus
    basis: WellTempered | AtomBasis
    occupation: Occupation
    settings: ScfSettings = field(default_factory=ScfSettings)
    optimise: TrustRegion | None = None

    def atom(self, basis: WellTempered | AtomBasis | None = None) -> Atom:
        """The atom in its own basis or in another one."""
        basis = self.basis if basis is None else basis
        return Atom(self.nucleus, basis.basis() if isinstance(basis, WellTempered) else basis, self.occupation)


def read_input(path: str | os.PathLike[str]) -> AtomInput:
    """Read a job from a file whose name ends in .inp."""
    name = os.fspath(path)
    require(name.lower().endswith(".inp"), f"{quote(name, 200)}: the name of an input file of an atom ends in .inp")
    return parse_input(read_text(path, "input file"), name)


def parse_input(text: str, source: str = "input") -> AtomInput:
    """Parse the text of an input file; every error message begins with `source`."""
    reader = NamelistReader(text, format_path(source))
    if reader.title[:1] in ("$", "&"):
        raise reader.error(f"expected a title, found the group {quote(reader.title.split()[0])}")
    if len(reader.title) > 200:
        raise reader.error(f"the title has {len(reader.title)} characters; 200 are allowed")
    job, c = _contrl(reader.group("contrl"))
    nucleus = _nucleus(reader.group("nuc"), c)
    nsym, kind, ngroup = _bas(group := reader.group("bas"))
    if job == "bsopt" and kind == "rdin":
        raise group.error("bastype", "is 'rdin', which jobtype='bsopt' cannot optimise; use 'wtbs'")
    basis = _wtbs(reader.group("wtbs"), nsym, ngroup) if kind == "wtbs" else _exponents(reader, nsym)
    trust = _newuoa(reader, job)
    sizes = tuple(b - a + 1 for a, b in basis.ranges) if isinstance(basis, WellTempered) else basis.sizes
    occupation = _econfig(reader.group("econfig", "seconfig"), nucleus.charge, sizes)
    settings = _scf(reader.group("scf"), c)
    if (left := reader.take()) is not None:
        raise reader.error(f"{quote(left.text)} after the last group")
    return AtomInput(reader.title, nucleus, basis, occupation, settings, trust)


def _contrl(group: Group) -> tuple[str, float]:
    group.allow("jobtype", "jobtyp", "c")
    if {"jobtype", "jobtyp"} <= set(group.entries):
        raise group.error("jobtyp", "and jobtype are the same; give one")
    spelling = "jobtyp" if "jobtyp" in group.entries else "jobtype"
    return group.get(spelling, one_of("energy", "bsopt"), "energy"), group.get("c", BOUNDED_REALS["c"], SPEED_OF_LIGHT)


def _nucleus(group: Group, c: float) -> Nucleus:
    group.allow("znuc", "nucmdl", "rnuc", "alpha", "rms")
    charge = group.get("znuc", BOUNDED_REALS["znuc"])
    model = NUCLEI[group.get("nucmdl", integer(1, 3), 1)]
    sizes: dict[str, float] = {
        key: group.get(key, BOUNDED_REALS[key]) for key in ("rnuc", "alpha") if key in group.entries
    }
    if model == "point" and charge >= c:
        raise group.error("znuc", f"is {charge:g}, not below c = {c:g}: a point charge binds no 1s; use nucmdl=3")
    if sizes and "rms" in group.entries:
        raise group.error("rms", f"and {' and '.join(sizes)} are both sizes of the nucleus; give one")
    try:
        if "rms" in group.entries:
            return Nucleus.of_radius(charge, model, group.get("rms", BOUNDED_REALS["rms"]))
        return Nucleus(charge, model, sizes.get({"sphere": "rnuc", "gaussian": "alpha"}.get(model, "")))
    except InputError as error:
        raise group.error("", str(error)) from None


def _bas(group: Group) -> tuple[int, str, int]:
    group.allow("nsym", "bastype", "ngroup")
    nsym = group.get("nsym", integer(1, len(SPECIES)))
    return nsym, group.get("bastype", one_of("wtbs", "rdin")), group.get("ngroup", integer(1, nsym), 1)


def _wtbs(group: Group, nsym: int, ngroup: int) -> WellTempered:
    group.allow("wtbspara", "nbs", "start", "groups")
    parameters = group.array("wtbspara", NUMBER, len(NAMES) * ngroup, f"ngroup={ngroup}")
    nbs = group.array("nbs", integer(1, MAX_FUNCTIONS), nsym, f"nsym={nsym}")
    start = group.array("start", integer(1, MAX_FUNCTIONS), nsym, f"nsym={nsym}", 1)
    groups = group.array("groups", integer(1, ngroup), nsym, f"nsym={nsym}", 1)
    ranges = tuple((a, a + n - 1) for a, n in zip(start, nbs, strict=True))
    basis = WellTempered(parameters, ranges, groups)
    if reason := basis.invalid_reason():
        raise group.error("wtbspara", f"gives no valid set of exponents: {reason}")
    return basis


def _exponents(reader: NamelistReader, nsym: int) -> AtomBasis:
    """For each species a line with the number of functions, then one line for each exponent."""
    found: list[list[float]] = []
    for species in SPECIES[:nsym]:
        label = species.label
        count = _one_number(reader, f"the number of functions of {label}")
        if count != round(count) or not 1 <= count <= MAX_FUNCTIONS:
            raise reader.error(f"{count:g} functions of {label}; a whole number from 1 to {MAX_FUNCTIONS} is needed")
        zeta: list[float] = []
        for k in range(int(count)):
            value = _one_number(reader, f"exponent {k + 1} of {int(count)} of {label}")
            if not MIN_EXPONENT <= value <= MAX_EXPONENT:
                between = f"{MIN_EXPONENT:g} and {MAX_EXPONENT:g}"
                raise reader.error(f"exponent {value:g} of {label} is not between {between}")
            if value in zeta:
                raise reader.error(f"exponent {value:g} of {label} is given twice")
            zeta.append(value)
        found.append(sorted(zeta))
    return AtomBasis(tuple(np.array(zeta) for zeta in found))


def _one_number(reader: NamelistReader, description: str) -> float:
    values = reader.numbers(description)
    if len(values) != 1:
        raise reader.error(f"expected {description}, found {len(values)} numbers")
    return values[0]


def _newuoa(reader: NamelistReader, job: str) -> TrustRegion | None:
    """The trust region of an optimisation; a single energy skips the group."""
    following = reader.peek()
    if job == "energy" and (following is None or following.text[1:].lower() != "newuoa"):
        return None
    group = reader.group("newuoa")
    group.allow("rhobeg", "rhoend", "iprint", "maxfun")
    begin, end = (
        group.get("rhobeg", BOUNDED_REALS["rhobeg"], TrustRegion.rhobeg),
        group.get("rhoend", POSITIVE, TrustRegion.rhoend),
    )
    if end >= begin:
        raise group.error("rhoend", f"is {end:g}; it must be smaller than rhobeg = {begin:g}")
    iprint = group.get("iprint", integer(0, 3), TrustRegion.iprint)
    trust = TrustRegion(begin, end, iprint, group.get("maxfun", integer(1, 10**9), TrustRegion.maxfun))
    return trust if job == "bsopt" else None


def _econfig(group: Group, charge: float, sizes: tuple[int, ...]) -> Occupation:
    group.allow("nclose", "nopen", "freeel", "autogen", "nconf")
    nclose = group.array("nclose", integer(0, MAX_FUNCTIONS), len(sizes), f"nsym={len(sizes)}")
    nopen = group.array("nopen", integer(0, 1), len(sizes), f"nsym={len(sizes)}", 0)
    for i, size in enumerate(sizes):
        if nclose[i] + nopen[i] > size:
            spinors = f"asks for {nclose[i] + nopen[i]} spinors of {SPECIES[i].label}"
            raise group.error("nclose", f"{spinors}, which has {size} functions")
    free = group.get("freeel", NUMBER, 0.0)
    room = sum(SPECIES[i].capacity for i, n in enumerate(nopen) if n)
    if not any(nopen) and free != 0:
        raise group.error("freeel", f"is {free:g}, but nopen has no open spinor")
    if any(nopen) and not 0 < free < room:
        raise group.error("freeel", f"is {free:g}; the open spinors hold {room}: give more than 0 and fewer than that")
    occupation = _occupation(group, nclose, nopen, free)
    electrons = occupation.electrons
    if electrons == 0:
        raise group.error("nclose", "and freeel leave no electron")
    if electrons >= 2 * charge + 1:  # E. H. Lieb, Phys. Rev. A 29, 3018 (1984), doi:10.1103/PhysRevA.29.3018
        raise group.error(
            "nclose", f"and freeel make {electrons:g} electrons; a nucleus of {charge:g} cannot bind them"
        )
    return occupation


def _occupation(group: Group, nclose: tuple[int, ...], nopen: tuple[int, ...], free: float) -> Occupation:
    automatic, count = group.get("autogen", LOGICAL, False), group.get("nconf", integer(0, 10_000), 0)
    if not any(nopen):
        if count and not automatic:
            raise group.error("nconf", f"is {count}, but nopen has no open spinor")
        return Occupation(nclose)
    if automatic and free != round(free):
        raise group.error("freeel", f"is {free:g}; autogen needs a whole number")
    if not automatic and count == 0:
        raise group.error("nconf", "is 0: open spinors need autogen=.true. or lines with configurations")
    try:
        if automatic:
            return Occupation.all_of(nclose, nopen, round(free))
        listed, weights = _read_configurations(group.reader, nopen, free, count)
        return Occupation(nclose, tuple(map(bool, nopen)), listed, weights)
    except InputError as error:
        if str(error).startswith(group.reader.source):
            raise
        raise group.error("nopen", f"and the configurations do not fit together: {error}") from None


def _read_configurations(
    reader: NamelistReader, nopen: tuple[int, ...], free: float, count: int
) -> tuple[tuple[tuple[float, ...], ...], tuple[float, ...] | None]:
    """Read lines of occupations; either all of them end with a weight, or none."""
    species = [i for i, n in enumerate(nopen) if n]
    rows: list[tuple[float, ...]] = []
    weights: list[float] = []
    for k in range(count):
        values = reader.numbers(f"configuration {k + 1} of {count}")
        if len(values) not in (len(species), len(species) + 1):
            raise reader.error(f"{len(values)} occupations; nopen has {len(species)} open spinors")
        row = values[: len(species)]
        for i, q in zip(species, row, strict=True):
            if not 0 <= q <= SPECIES[i].capacity:
                raise reader.error(f"{q:g} electrons in {SPECIES[i].label}, which holds 0 to {SPECIES[i].capacity}")
        if not math.isclose(sum(row), free, abs_tol=1e-9):
            raise reader.error(f"the occupations add up to {sum(row):g}, not to freeel = {free:g}")
        if k > 0 and (len(values) > len(species)) != bool(weights):
            raise reader.error("give a weight with every configuration or with none")
        if len(values) > len(species):
            if not WEIGHTS[0] <= values[-1] <= WEIGHTS[1]:
                raise reader.error(f"the weight {values[-1]:g} is not between {WEIGHTS[0]:g} and {WEIGHTS[1]:g}")
            weights.append(values[-1])
        rows.append(tuple(row))
    return tuple(rows), tuple(weights) or None


def _scf(group: Group, c: float) -> ScfSettings:
    group.allow("maxitr", "ixtrp", "dfctr", "thdll", "thdsl", "thdss")
    return ScfSettings(
        c=c,
        max_iterations=group.get("maxitr", integer(1, 100_000), 50),
        accelerator="diis" if group.get("ixtrp", integer(0, 1), 0) else "damping",
        damping=group.get("dfctr", real(0.0, math.nextafter(1.0, 0.0)), 0.3),
        threshold_LL=group.get("thdll", POSITIVE, 1e-5),
        threshold_SL=group.get("thdsl", POSITIVE, 1e-7),
        threshold_SS=group.get("thdss", POSITIVE, 1e-9),
    )
