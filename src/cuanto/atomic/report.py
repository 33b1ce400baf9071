"""Reports of a calculation of an atom: lines of text and a dictionary for JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cuanto.atomic.atom import AtomResult
from cuanto.atomic.input import AtomInput
from cuanto.atomic.optimise import Optimum
from cuanto.atomic.species import SPECIES
from cuanto.atomic.wtbs import NAMES, WellTempered
from cuanto.system.elements import SYMBOLS


def symbol_of_charge(nuclear_charge: float) -> str:
    """The symbol of the element with this nuclear charge, or 'Z=6.5' if there is none."""
    whole = round(nuclear_charge)
    named = whole == nuclear_charge and 1 <= whole <= len(SYMBOLS)
    return SYMBOLS[whole - 1] if named else f"Z={nuclear_charge:g}"


def heading(job: AtomInput) -> Iterator[str]:
    """Lines that describe the calculation."""
    atom, settings = job.atom(), job.settings
    nucleus = job.nucleus
    size = {"point": "", "sphere": f", R = {nucleus.size} Bohr", "gaussian": f", exponent {nucleus.size} / Bohr^2"}
    yield job.title
    yield f"{symbol_of_charge(nucleus.charge)}: {atom.electrons:g} electrons, charge {atom.charge:g}"
    radius = f", rms radius {nucleus.femtometres:.4g} fm" if nucleus.size else ""
    yield f"nucleus: {nucleus.model}{size[nucleus.model]}{radius}"
    # Tables of non-relativistic energies have point nuclei.
    hint = " with a finite nucleus; a point nucleus with --nucleus point (nucmdl=1)" if nucleus.size else ""
    yield f"c = {settings.c:.10g} a.u." if settings.relativistic else f"non-relativistic{hint}"
    basis = job.basis
    if isinstance(basis, WellTempered):
        yield f"basis: {basis.range_text()}, " + ", ".join(parameter_texts(basis))
    else:
        counts = [f"{len(z)} {s.label}" for z, s in zip(basis.exponents, SPECIES, strict=False)]
        yield f"basis: {', '.join(counts)}"
    if len(job.occupation.configurations) > 1:
        yield f"average of {len(job.occupation.configurations)} configurations of the open shells"


def parameter_texts(basis: WellTempered) -> list[str]:
    """Parameters as texts: 'alpha = 0.0814', ..., with several groups 'alpha1 = ...'."""
    several = len(basis.parameters) > len(NAMES)
    names = [f"{NAMES[i % 4]}{i // 4 + 1 if several else ''}" for i in range(len(basis.parameters))]
    return [f"{name} = {value:.8g}" for name, value in zip(names, basis.parameters, strict=True)]


def result_dict(job: AtomInput, result: AtomResult, optimum: Optimum | None = None) -> dict[str, Any]:
    """The result as JSON data; energies in Hartree, lengths in Bohr."""
    nucleus, settings = job.nucleus, result.settings
    numbers = ("n", "occupation", "closed", "energy", "r", "r_inverse", "r_squared")
    basis: dict[str, Any] = {
        "exponents": {s.label: z.tolist() for s, z in zip(SPECIES, result.atom.basis.exponents, strict=False)}
    }
    if isinstance(job.basis, WellTempered):
        basis |= {"ranges": job.basis.range_text(), "parameters": list(job.basis.parameters)}
    found: dict[str, Any] = {
        "title": job.title,
        "energy": result.energy,
        "converged": result.converged,
        "iterations": result.iterations,
        "parts": dict(result.parts),
        "virial": result.virial,
        "spinors": [
            {"label": s.label, "kappa": s.species.kappa, **{name: getattr(s, name) for name in numbers}}
            for s in result.spinors
        ],
        "element": symbol_of_charge(nucleus.charge),
        "electrons": result.atom.electrons,
        "charge": result.atom.charge,
        "nucleus": {
            "charge": nucleus.charge,
            "model": nucleus.model,
            "size": nucleus.size,
            "rms_radius_fm": nucleus.femtometres,
        },
        "relativistic": settings.relativistic,
        "c": settings.c if settings.relativistic else None,
        "basis": basis,
        "timings": dict(result.timings),
    }
    if optimum is not None:
        found["optimisation"] = {
            "method": optimum.method,
            "converged": optimum.converged,
            "evaluations": len(optimum.evaluations),
            "refused": sum(e.energy is None for e in optimum.evaluations),
            "parameters": list(optimum.basis.parameters),
            "relative_gain": optimum.gain,
        }
    return found
