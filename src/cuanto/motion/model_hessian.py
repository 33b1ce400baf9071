"""The initial Hessian of a minimisation: geomeTRIC's diagonal model, with the angles that its coordinates leave out.

The model is transformed to any coordinates, while geomeTRIC's transformation holds for orthonormal combinations of its
primitive coordinates only, which those of constrained searches are not.

geomeTRIC drops one of the three angles around a planar atom, because it is redundant as a coordinate. Its force
constant matters nevertheless: without it rings are too soft, and the first step is too long. Force constants of angles
are H. B. Schlegel's, Theor. Chim. Acta 66, 333 (1984), doi:10.1007/BF00554788.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import scipy.linalg

from cuanto.arrays import Array

HYDROGEN_ANGLES, OTHER_ANGLES = 0.160, 0.250
"""Force constants of angles, Hartree/rad^2."""
LINEAR_COSINE = 0.985
"""Angles whose cosine is larger in absolute value are nearly linear and described by other coordinates."""


def add_missing_angles(coordinates: Any, system: Any, angle: Any) -> None:
    """Make geomeTRIC's coordinates include all angles in their model Hessian; `angle` is its class of angles."""
    listed = [one for one in coordinates.Prims.Internals if isinstance(one, angle)]
    missing = [one for one in _angles(system, angle) if one not in listed]
    light = [element == "H" for element in system.elem]

    def guess_hessian(X: Array) -> Array:
        xyz = X.reshape(-1, 3)
        bent = [one for one in missing if abs(_cosine(one, xyz)) < LINEAR_COSINE]
        k = [HYDROGEN_ANGLES if light[one.a] or light[one.c] else OTHER_ANGLES for one in bent]
        B_angles = np.array([one.derivative(xyz).reshape(-1) for one in bent]).reshape(-1, len(X))
        B = np.vstack([coordinates.Prims.wilsonB(X), B_angles])
        H = scipy.linalg.block_diag(coordinates.Prims.guess_hessian(X), np.diag(k))
        T = B @ coordinates.wilsonB(X).T @ coordinates.GInverse(X)  # derivatives in internal coordinates
        return np.asarray(T.T @ H @ T)

    coordinates.guess_hessian = guess_hessian


def _angles(system: Any, angle: Any) -> list[Any]:
    """All angles between bonds."""
    bonds = system.topology
    return [angle(a, b, c) for b in sorted(bonds) for a, c in combinations(sorted(bonds[b]), 2)]


def _cosine(one: Any, xyz: Array) -> float:
    u, v = xyz[one.a] - xyz[one.b], xyz[one.c] - xyz[one.b]
    return float(u @ v / np.sqrt((u @ u) * (v @ v)))
