"""Vibrational frequencies of a molecule: the function that users call."""

from __future__ import annotations

import os
from dataclasses import fields
from typing import Any

from cuanto.basis import Basis
from cuanto.basis.library import BasisChoice
from cuanto.motion.follow import ModeFollower
from cuanto.motion.hessian import STEP, HessianCalculation, Watcher, Work
from cuanto.motion.record import open_journal, require_own_files
from cuanto.motion.thermochemistry import Conditions
from cuanto.motion.vibrations import Isotopes, Vibrations, analyse, atomic_masses
from cuanto.system import Molecule

CONDITIONS = tuple(one.name for one in fields(Conditions))
"""Keywords of `frequencies` that describe the conditions of thermochemistry."""


def frequencies(
    molecule: Molecule | str | os.PathLike[str],
    method: str = "hf",
    basis: BasisChoice | Basis | None = None,
    *,
    charge: int | None = None,
    multiplicity: int | None = None,
    isotopes: Isotopes | None = None,
    step: float = STEP,
    symmetry: bool | None = None,
    follow_imaginary: bool = False,
    workers: int | None = None,
    scheduler: str | None = None,
    journal: str | os.PathLike[str] | None = None,
    on_task: Watcher | None = None,
    **options: Any,
) -> Vibrations:
    """Compute the Hessian of a molecule from gradients of displaced geometries, its vibrations and thermochemistry.

    `molecule`, `charge` and `multiplicity` as in `cuanto.energy`.
    `isotopes`: by number of the atom (from 1) or by element, such as {2: "D"}, {"C": "13C"} or {1: 15.9949};
    other atoms have the masses of the molecule.
    `step`: displacement of the atoms, Bohr. `symmetry`: derive gradients of equivalent displacements from each other
    (None: if the grid of a functional allows it, and not with point charges or a field).
    `follow_imaginary`: displace the atoms along imaginary modes, optimise (with geomeTRIC) and compute again until no
    imaginary mode is left; the geometry is then the `.molecule` of the result.
    `workers`: processes of one thread each on this machine (0: this process; None: one for each core, but this process
    if there is a GPU or little to do). `scheduler`: address of a Dask scheduler whose workers are used instead.
    `journal`: file of finished displacements, which are not computed again. `on_task` is called with the numbers of
    finished and of all displacements.
    `options`: those of `cuanto.energy`, and `temperature` (K), `pressure` (atm), `scale`, `symmetry_number`,
    `degeneracy`, `entropy` and `cutoff` of thermochemistry (see `cuanto.motion.thermochemistry.Conditions`).
    """
    require_own_files(molecule, basis, journal)
    molecule = Molecule.of(molecule, charge, multiplicity)
    conditions = Conditions(**{name: options.pop(name) for name in CONDITIONS if name in options})
    work = Work(workers=workers, scheduler=scheduler, journal=journal, on_task=on_task)

    def compute(geometry: Molecule) -> Vibrations:
        hessian, result = HessianCalculation(geometry, method, basis, options, step, symmetry, work).run()
        return analyse(hessian, isotopes, conditions, result)

    atomic_masses(molecule, isotopes or {})  # refuses wrong isotopes before the work begins
    if not follow_imaginary:
        return compute(molecule)
    return ModeFollower(compute, (method, basis, options), None if journal is None else open_journal(journal)).run(
        molecule
    )
