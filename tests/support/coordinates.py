"""Values of internal coordinates in a geometry."""

from __future__ import annotations

from typing import Any

import numpy as np

from cuanto.motion.constraints import Constraint


def value_of(one: Constraint, R_ax: Any) -> float:
    """The value of a coordinate in a geometry, Bohr or radians."""
    A, *others = (np.asarray(R_ax)[atom] for atom in one.atoms)
    if one.kind == "distance":
        return float(np.linalg.norm(A - others[0]))
    if one.kind == "angle":
        u, v = A - others[0], others[1] - others[0]
        return float(np.arctan2(np.linalg.norm(np.cross(u, v)), u @ v))
    if one.kind == "dihedral":
        u, v, w = others[0] - A, others[1] - others[0], others[2] - others[1]
        m, n = np.cross(u, v), np.cross(v, w)
        return float(np.arctan2(np.linalg.norm(v) * (u @ n), m @ n))
    raise ValueError(f"{one.kind} has no single value")
