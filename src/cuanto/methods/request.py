"""A request for a calculation: checked once here, trusted everywhere else."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from cuanto.basis import Basis
from cuanto.basis.library import BasisChoice
from cuanto.errors import InputError
from cuanto.grid import GridSettings
from cuanto.methods.model import Model, kind_of
from cuanto.methods.result import Result
from cuanto.options import (
    DEFAULT_BASIS,
    DEFAULT_GRID,
    DEFAULT_METHOD,
    CalculationOptions,
    ScfOptions,
    errors_about_option,
    options_of,
    require_applicable,
    require_known,
)
from cuanto.scf.guess import GUESSES
from cuanto.scf.state import Orbitals
from cuanto.semiempirical.diagonalisers import settings
from cuanto.system import Molecule
from cuanto.system.text import parse_size
from cuanto.terms import EXTERNAL_OPERATORS, Surroundings


@dataclass(frozen=True, eq=False, kw_only=True)
class Request:
    """One calculation; `model` is None for semiempirical methods.

    `diagonaliser`: factory of a diagonaliser that only semiempirical methods offer, if the options choose it.
    `single_point`: False for a part of an optimisation, of dynamics or of finite differences, which need connected
    states.
    """

    molecule: Molecule
    method: str
    model: Model | None
    basis: BasisChoice | Basis
    options: CalculationOptions
    scf: ScfOptions
    grid: GridSettings
    surroundings: Surroundings
    diagonaliser: Callable[..., Any] | None
    single_point: bool = True

    @classmethod
    def of(
        cls,
        molecule: Molecule | str | os.PathLike[str],
        method: str = DEFAULT_METHOD,
        basis: BasisChoice | Basis | None = None,
        *,
        charge: int | None = None,
        multiplicity: int | None = None,
        **given: Any,
    ) -> Request:
        """Check the arguments of `cuanto.energy`."""
        molecule = Molecule.of(molecule, charge, multiplicity)
        checked = check(method, basis, given)
        with errors_about_option("method"):
            model = None if checked.pop("kind") == "semiempirical" else Model.of(method, molecule)
        spins_a = checked["scf"].atomic_spins
        if model is not None and model.spins == 1 and spins_a is not None and np.any(np.asarray(spins_a) != 0):
            unrestricted = "u" + re.sub("^rhf", "hf", method.lower())
            raise InputError(f"atomic_spins have no effect in {method}, whose shells are closed: use {unrestricted}")
        return cls(molecule=molecule, method=method.lower(), model=model, **checked)

    def orbital_basis(self) -> Basis:
        """Make the basis of the orbitals, unless it was given."""
        if isinstance(self.basis, Basis):
            return self.basis
        return Basis(self.basis, self.molecule, relativistic=self.options.relativity != "none")

    @property
    def ineffective_options(self) -> list[str]:
        """Notes about options that have no effect."""
        assert self.model is not None
        notes, fitting = [], self.fitting
        if self.options.precision != "double" and fitting == "jk" and not self.model.has_functional:
            why = f"{self.method} has neither direct J and K nor a grid"
            notes.append(f"precision={self.options.precision!r} has no effect here: {why}")
        exchange = fitting != "jk" and self.model.exchange
        if self.options.storage == "stored" and not exchange:
            notes.append("storage='stored' has no effect here: no exchange is computed from four-centre integrals")
        if self.options.storage == "direct" and not exchange and fitting != "none":
            notes.append("storage='direct' has no effect here: there are no four-centre integrals")
        return notes

    @property
    def fitting(self) -> str:
        """Matrices that are fitted; `auto` means J, and also K if there is exact exchange."""
        automatic = "jk" if self.model is not None and self.model.exchange else "j"
        return automatic if self.options.fitting == "auto" else self.options.fitting


def check(method: str, basis: object, given: Mapping[str, Any]) -> dict[str, Any]:
    """Check everything that does not depend on the molecule; returns fields of `Request`, and the `kind` of the
    method."""
    kind = kind_of(method)
    require_known(given)
    require_applicable(method, kind, {"basis": basis, **given})
    calculation_options, scf_options = (
        {name: given[name] for name in options_of(group) if name in given} for group in (CalculationOptions, ScfOptions)
    )
    if isinstance(size := calculation_options.get("max_memory"), str):
        with errors_about_option("max_memory"):
            calculation_options["max_memory"] = parse_size(size, "max_memory")
    options = CalculationOptions(**calculation_options)
    scf, diagonaliser = settings(scf_options) if kind == "semiempirical" else (ScfOptions(**scf_options), None)
    if method.lower() == "rohf" and scf.smearing:
        # The orbital energies depend on the convention for the coupled matrix: a Fermi level has no meaning.
        raise InputError("rohf has no unique orbital energies to smear: use uhf, or leave out smearing")
    with errors_about_option("guess"):
        options = replace(options, guess=_checked_guess(options.guess, method, kind))
    with errors_about_option("grid"):
        grid = GridSettings.of(DEFAULT_GRID if options.grid is None else options.grid)
    return {
        "kind": kind,
        "basis": DEFAULT_BASIS if basis is None else basis,
        "options": options,
        "scf": scf,
        "grid": grid,
        "surroundings": _surroundings(options),
        "diagonaliser": diagonaliser,
    }


def _checked_guess(guess: object, method: str, kind: str) -> object:
    """The name of a guess, orbitals, a result, or the path of a file with orbitals."""
    if kind == "semiempirical":
        if not isinstance(guess, Result) and guess != "sad":
            raise InputError(f"{method} starts from neutral atoms or a semiempirical result, not {guess!r}")
        return guess
    if isinstance(guess, (os.PathLike, Orbitals, Result)) or guess in GUESSES:
        return guess
    if isinstance(guess, str) and os.path.isfile(guess):
        return Path(guess)
    known = ", ".join(GUESSES)
    raise InputError(f"unknown guess {guess!r}: choose {known}, or give a result, or the JSON or checkpoint of one")


def _surroundings(options: CalculationOptions) -> Surroundings:
    """Point charges and external operators of the options."""
    operators = {name: getattr(options, name) for name in EXTERNAL_OPERATORS}
    if options.point_charges is None:
        return Surroundings.of(**operators)
    with errors_about_option("point_charges"):
        try:
            charges, positions = options.point_charges
        except (TypeError, ValueError):
            raise InputError("point_charges must be a pair: charges (e) and their positions (Bohr)") from None
    return Surroundings.of(charges, positions, **operators)
