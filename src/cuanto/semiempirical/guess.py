"""Where a calculation begins: at neutral atoms, or at the molecules of a cluster."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto import tuning
from cuanto.scf.diagonalise import Diagonaliser
from cuanto.scf.loop import Density, Problem
from cuanto.scf.loop import fock as fock_matrix
from cuanto.scf.pseudodiagonalise import Pseudo
from cuanto.semiempirical import fragments
from cuanto.semiempirical.layout import Layout
from cuanto.semiempirical.rotation_steps import projectors
from cuanto.semiempirical.terms import start_density

FRAGMENT_ORBITALS = tuning.size("cpu", "semiempirical.fragment_orbitals")


def begin(
    problem: Problem,
    layout: Layout,
    R_ax: NDArray[np.float64],
    electrons: tuple[int, int],
    spins: int,
    made: Diagonaliser,
    given: Density | None,
) -> Density | tuple[Any, Any]:
    """The density to begin with, `given` or not; economical rotations begin from orbitals and their energies: those of
    the molecules of a neutral cluster, or the eigenvectors of the first Fock matrix."""
    frame, timings, start = problem.frame, problem.timings, given
    rotations = made if isinstance(made, Pseudo) and made.variant.economical else None
    neutral = electrons[0] == electrons[1] and sum(electrons) == int(layout.core_charges.sum())
    if start is None and neutral and layout.orbitals >= FRAGMENT_ORBITALS:
        with timings.measure("guess"):
            found = fragments.orbitals(layout, R_ax, frame.backend)
        if found is not None:
            C_sjm, eps_sm = (frame.backend.xp.stack([array] * spins) for array in found)
            if rotations is not None:
                return rotations.begin(C_sjm, eps_sm, distant=True)
            start = Density(projectors(C_sjm, list(electrons)[:spins], 2.0 / spins, frame.backend.xp), None)
    if start is None:
        start = start_density(layout, electrons, spins, frame.backend)
    if rotations is None:
        return start
    F_sjk = frame.matrix(fock_matrix(problem, start)[1])
    with timings.measure("diagonalisation"), frame.blas_threads:
        return rotations.first(F_sjk)
