"""Follow imaginary modes downhill: displace the atoms along them, optimise, and compute the vibrations again.

Geometries that were optimised are kept in the journal of the Hessian, so that an interrupted call can continue.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from cuanto.journal import JsonLines
from cuanto.log import logger
from cuanto.motion.record import calculation_key
from cuanto.motion.vibrations import Vibrations
from cuanto.system import Molecule

MAX_ROUNDS = 6
"""Optimisations before giving up."""
MAX_DISPLACEMENT = 0.3
"""Largest displacement of an atom along an imaginary mode, Bohr."""
CONVERGENCE = "tight"
"""Criteria of the optimisations: with looser ones, spurious imaginary modes remain."""


class ModeFollower:
    """Repeats Hessian and optimisation until no imaginary mode is left.

    `compute`: the vibrations of a molecule. `model`: method, basis and options of the optimisations.
    """

    def __init__(
        self,
        compute: Callable[[Molecule], Vibrations],
        model: tuple[str, Any, dict[str, Any]],
        journal: JsonLines | None,
    ) -> None:
        self._compute, self._model, self._journal = compute, model, journal

    def run(self, molecule: Molecule) -> Vibrations:
        """Vibrations at a minimum or, after MAX_ROUNDS optimisations, at the last geometry."""
        notes: list[str] = []
        vibrations = self._compute(molecule)
        for number in range(1, MAX_ROUNDS + 1):
            if not len(vibrations.imaginary):
                break
            before, lowest = vibrations.energy, float(vibrations.imaginary[0])
            minimum = self._optimise_from(displace(vibrations, 1 if number % 2 else -1))
            vibrations = self._compute(minimum)
            notes.append(
                f"followed {lowest:.1f} cm^-1: energy {vibrations.energy - before:+.2e} Hartree, "
                f"{len(vibrations.imaginary)} imaginary modes left"
            )
            logger.info("%s", notes[-1])
        return replace(vibrations, notes=(*notes, *vibrations.notes))

    def _optimise_from(self, start: Molecule) -> Molecule:
        """Find the nearest minimum, from the journal or by an optimisation."""
        from cuanto.motion.optimize import optimize  # geomeTRIC is optional

        method, basis, options = self._model
        key = calculation_key(start, method, basis, options, "optimised")
        known = [] if self._journal is None else [line for line in self._journal.read() if line.get("key") == key]
        if known:
            return start.moved_to(known[-1]["R_ax"])
        path = None if self._journal is None else self._journal.path.with_suffix(".optimise.journal")
        found = optimize(start, method, basis, convergence=CONVERGENCE, journal=path, **options)
        if self._journal is not None:
            self._journal.append({"key": key, "R_ax": found.molecule.R_ax.tolist()}, safely=True)
        return found.molecule


def displace(vibrations: Vibrations, sign: int) -> Molecule:
    """Displace the molecule along the sum of its imaginary modes."""
    shift_ax = sign * vibrations.modes[vibrations.wavenumbers < 0].sum(axis=0)
    shift_ax *= MAX_DISPLACEMENT / np.linalg.norm(shift_ax, axis=1).max()
    return vibrations.molecule.moved_to(vibrations.molecule.R_ax + shift_ax)
