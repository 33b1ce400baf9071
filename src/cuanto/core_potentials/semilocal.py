"""The projected part of a core potential as matrix products.

sum_l |lm> U_l <lm| on a radial quadrature is V_pq = sum_lmk P_p,lmk w_lk P_q,lmk with projections
P_p,lmk = <Y_lm|p>(r_k), whose angular part is analytic (`angular`), and weights w_lk = r_k^2 U_l(r_k) dr_k. At a fixed
density its derivative with respect to the centre of p is 2 sum_lmk (dP_p,lmk) w_lk sum_q D_pq P_q,lmk.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cuanto.arrays import Array, Ints, range_starts
from cuanto.backends.base import Backend, Launch
from cuanto.basis import Basis
from cuanto.basis.core_potential import CorePotential
from cuanto.core_potentials.angular import Directions
from cuanto.core_potentials.radial import RadialGrid, radial_grid
from cuanto.core_potentials.shells import ContractedShells, contracted_shells
from cuanto.kernels.core_potential import core_source


@dataclass(frozen=True, eq=False)
class Projections:
    """Basis functions projected about one centre: the significant functions, their weights and kernel arguments."""

    backend: Backend
    atom: int
    atoms: int
    functions: Ints  # basis functions, in the order of rows
    entry_atoms: Ints  # atom of every contracted shell
    points: int
    weights: Any  # [l m point], on the device
    arguments: dict[str, Any]
    value_coupling: Array
    derivative: _Coupling

    @classmethod
    def of(cls, basis: Basis, atom: int, given: CorePotential, backend: Backend) -> Projections | None:
        """Project the basis functions about an atom; None if none is significant there."""
        shells, centre = contracted_shells(basis), basis.R_ax[atom]
        grid = radial_grid(given.projected, shells, shells.distances(basis.R_ax, centre))
        if grid is None:
            return None
        entries, momenta = grid.entries, len(given.projected)
        atoms, of_entry = np.unique(shells.atom[entries], return_inverse=True)
        directions = Directions(basis.R_ax[atoms] - centre)
        coupling = _Coupling(directions, shells, entries, of_entry, momenta)
        values, place = coupling.values()
        arrays, functions = _records(shells, grid, directions.distances[of_entry], place)
        weights = np.concatenate([np.tile(w, 2 * l + 1) for l, w in enumerate(grid.weights)])
        uploaded = backend.upload({**arrays, "radius": grid.r, "weights": weights})
        arguments = {**uploaded, "points": len(grid.r), "momenta": momenta, "width": len(weights)}
        common = (len(grid.r), uploaded["weights"], arguments, values, coupling)
        return cls(backend, atom, len(basis.R_ax), functions, shells.atom[entries], *common)

    def _launch(self, kernel: str, **more: Any) -> None:
        items = len(self.entry_atoms) * self.points
        program = self.backend.compile(core_source(self.backend.traits.language, kernel))
        # Vectors of the CPU do not cross shells: chunks are whole shells.
        self.backend.launch_all([Launch(program, items, {**self.arguments, **more}, grain=self.points)])

    def values(self) -> Any:
        """P_p,lmk of the significant functions."""
        P = self.backend.zeros((len(self.functions), self.arguments["width"]), np.float64)
        self._launch("core_project", coupling=self.backend.to_device(self.value_coupling), P=P)
        return P

    def matrix(self) -> Any:
        """V_pq of the significant functions."""
        P = self.values()
        return self.backend.linalg.product(P * self.weights, P.T)

    def gradient(self, D_pq: Any) -> Array:
        """dE/dR for a density of the significant functions, [atom, axis]."""
        P = self.values()
        Q = self.backend.linalg.product(D_pq, P * (2.0 * self.weights))
        force = self.backend.xp.empty((len(self.entry_atoms), 3, self.points))
        values, place = self.derivative.derivatives()
        records = self.backend.to_host(self.arguments["records"]).copy()
        records[:, -1] = place
        more = self.backend.upload({"records": records, "coupling": values})
        self._launch("core_force", Q=Q, force=force, **more)
        gradient = np.zeros((self.atoms, 3))
        np.add.at(gradient, self.entry_atoms, self.backend.to_host(force.sum(axis=2)))
        gradient[self.atom] -= gradient.sum(axis=0)
        return gradient


def _records(shells: ContractedShells, grid: RadialGrid, distances: Array, place: Ints) -> tuple[dict[str, Any], Ints]:
    """Records of the shells for kernels, and the basis functions of the rows."""
    entries = grid.entries
    first, primitives = shells.select(entries)
    counts = shells.functions[entries]
    rows = range_starts(counts)
    functions = np.concatenate([np.arange(p, p + n) for p, n in zip(shells.row[entries], counts, strict=True)])
    fields = (shells.l[entries], counts, np.diff(first), rows[:-1], first[:-1], place)
    start = range_starts((2 * np.arange(len(grid.reach)) + 1) * grid.reach)
    arrays = {"records": np.stack(fields, axis=1), "distances": distances, "reach": grid.reach, "start": start[:-1]}
    arrays |= {"exponent": shells.exponents[primitives], "coefficient": shells.coefficients[primitives]}
    return arrays, functions


@dataclass(frozen=True, eq=False)
class _Coupling:
    """Coupling numbers of contracted shells: one set for all shells of an angular momentum and kind on an atom."""

    directions: Directions
    shells: ContractedShells
    entries: Ints
    atoms: Ints  # of entries, among `directions`
    momenta: int

    def values(self) -> tuple[Array, Ints]:
        """Numbers for the functions, and the first one of every entry."""
        return self._all(self.directions.value_coupling)

    def derivatives(self) -> tuple[Array, Ints]:
        """Numbers for the derivatives of functions, and the first one of every entry."""
        return self._all(self.directions.derivative_coupling)

    def _all(self, coupling: Any) -> tuple[Array, Ints]:
        """Numbers that the function `coupling` returns for each kind of shell, and the first one of every entry."""
        l, pure = self.shells.l[self.entries], self.shells.pure[self.entries]
        place, parts, size = np.zeros(len(self.entries), dtype=np.int64), [], 0
        for kind in sorted(set(zip(l.tolist(), pure.tolist(), strict=True))):
            of_kind = np.flatnonzero((l == kind[0]) & (pure == kind[1]))
            atoms, of_kind_atoms = np.unique(self.atoms[of_kind], return_inverse=True)
            X = coupling((kind[0], bool(kind[1])), self.momenta, atoms)
            place[of_kind] = size + of_kind_atoms * X.shape[1]
            parts.append(X.reshape(-1))
            size += X.size
        return np.concatenate(parts), place
