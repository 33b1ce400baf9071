"""Exchange and correlation of a density functional, integrated on a grid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cuanto.basis import Basis
from cuanto.errors import InputError
from cuanto.functionals import XCPotential
from cuanto.grid.base import Quadrature
from cuanto.grid.check import check_patterns
from cuanto.grid.gradient import energy_gradient
from cuanto.grid.grouped_grid import GroupedGrid
from cuanto.grid.groups import make_grid
from cuanto.grid.integration import Integration, MixedIntegration
from cuanto.grid.quadrature import make_quadrature
from cuanto.grid.settings import GridSettings
from cuanto.memory import Budget
from cuanto.options import PRECISIONS
from cuanto.system import Molecule
from cuanto.terms.base import Term

COARSE_GRID_ERROR = 1e-4
"""Relative error of the number of electrons above which a grid is too coarse."""
GRID_BYTES = 256
"""Memory per grid point, including intermediates; slightly more than measured (benzene, ultrafine: 210)."""

GRID_CURVATURE = 5e-4
"""Error, in Hartree, of second derivatives of the energy. On a grid the energy of a non-spherical density depends on
its orientation: for Sc (PBE/def2-SVP) a second derivative is -3.7e-4 with the fine and -0.5e-4 with the superfine grid.
"""


def grid_bytes(molecule: Molecule, settings: GridSettings) -> int:
    """Memory that the grid of a molecule will take."""
    return GRID_BYTES * settings.points(molecule.numbers)


class ExchangeCorrelation(Term):
    """E = int e(rho, |grad rho|^2, tau); exact exchange is a separate term.

    `potential`: the functional on a backend, compiled while the grid is made. `electrons`: integral of the last
    density, whose error is a measure of the quality of the grid.
    """

    name = "exchange-correlation"
    curvature_error = GRID_CURVATURE

    def __init__(
        self,
        potential: XCPotential,
        molecule: Molecule,
        basis: Basis,
        settings: GridSettings | None = None,
        *,
        budget: Budget | None = None,
        precision: str = "double",
        grid: GroupedGrid | None = None,
    ) -> None:
        if precision not in PRECISIONS:
            raise InputError(f"unknown precision {precision!r}: choose {', '.join(PRECISIONS)}")
        functional, backend = potential.functional, potential.backend
        self.functional, self.backend, self.basis, self.precision = functional, backend, basis, precision
        self.molecule, self._potential = molecule, potential
        self.settings, self._budget = settings or GridSettings(), budget or Budget(backend)
        self.grid = grid or make_grid(molecule, basis, self.settings, backend)
        self._w_g = backend.to_device(self.grid.w_g)
        first = self._quadrature("float" if precision == "single" else "double")
        self._plain = Integration(potential, first, self._w_g, self.settings.density)
        self._integrate: Integration | MixedIntegration = self._plain
        if precision == "mixed":
            self._integrate = MixedIntegration(self._plain, self._quadrature("float"))
        self.electrons: Any = None
        self._known: tuple[Any, Any] | None = None  # the last density matrix in double precision, and its densities

    def fock(self, D_spq: Any, C_spi: Any | None) -> tuple[Any, Any]:
        """E and dE/dD for each spin; with one matrix, for both spins together."""
        if self._integrate is self._plain:
            self._known = D_spq, self._plain.rho(D_spq, C_spi)
            parts = self._plain.of_density(self._known[1])
        else:
            parts = self._integrate(D_spq, C_spi)
        energy, self.electrons, F_spq = (self.backend.communicator.sum(part) for part in parts)
        return energy, F_spq

    def response(self, D_spq: Any, change_spq: Any) -> Any:
        """Change of the potential, by finite differences at every point, in double precision unless `precision` is
        `single`."""
        dv_scg = self._plain.response(self._densities(D_spq, None), self._plain.rho(change_spq, None))
        return self.backend.communicator.sum(self._plain.quadrature.matrix(dv_scg))

    def gradient(self, D_spq: Any, C_spi: Any | None) -> Any:
        """dE/dR_ax in double precision, with the response of the grid if the settings include it."""
        if self.precision == "single" and (double := self.in_double()) is not None:
            return double.gradient(D_spq, C_spi)
        settings, density = self.settings, (D_spq, C_spi, self._densities(D_spq, C_spi))
        part = energy_gradient(self._plain, density, self.molecule, settings.partition, settings.response)
        return self.backend.communicator.sum(part)

    def _densities(self, D_spq: Any, C_spi: Any | None) -> Any:
        """Densities at the points: for the gradient and the response at a matrix, often the last one of an SCF."""
        if self._known is None or self._known[0] is not D_spq:
            self._known = D_spq, self._plain.rho(D_spq, C_spi)
        return self._known[1]

    def notes(self) -> Sequence[str]:
        """Size of the grid and number of electrons, with a warning if the grid is too coarse."""
        size = f"grid: {len(self.grid.w_g)} points, density integrates to {float(self.electrons):.6f} electrons"
        warning = self.warning(self.molecule.nelectron)
        return (size,) if warning is None else (size, f"WARNING: {warning}")

    def in_double(self) -> ExchangeCorrelation | None:
        """The same term in double precision, on the same grid."""
        if self.precision == "double":
            return None
        common = (self._potential, self.molecule, self.basis, self.settings)
        return ExchangeCorrelation(*common, budget=self._budget, grid=self.grid)

    def on_grid(self, settings: GridSettings) -> ExchangeCorrelation:
        """The same term on another grid, in double precision."""
        return ExchangeCorrelation(self._potential, self.molecule, self.basis, settings, budget=self._budget)

    def warning(self, electrons: int) -> str | None:
        """A warning if the grid is too coarse for this number of electrons, else None."""
        found = float(self.electrons)
        if abs(found - electrons) <= COARSE_GRID_ERROR * electrons:
            return None
        return (
            f"the grid is too coarse: the density integrates to {found:.5f} electrons, not {electrons}; "
            "use a finer one, such as grid='ultrafine'"
        )

    def energy(self, D_spq: Any, C_spi: Any | None = None) -> float:
        """The energy alone, in double precision unless `precision` is `single`."""
        plain = self._plain
        return float(self.backend.communicator.sum(plain.integrate(plain.rho(D_spq, C_spi))[0]))

    def _quadrature(self, real: str) -> Quadrature:
        quadrature, self.plan = make_quadrature(
            self.grid, self.basis, self.backend, self.functional.family, self.settings, self._budget, real
        )
        return quadrature


def grid_error(
    potential: XCPotential,
    molecule: Molecule,
    basis: Basis,
    settings: GridSettings,
    density: tuple[Any, Any],
    budget: Budget,
) -> float:
    """Estimated error of the energy of a `density` (D_spq and C_spi) on a grid, Hartree, from a small grid that
    compares quadrature rules where they err most (`grid.check`)."""
    patterns = check_patterns(molecule, settings)
    grid = make_grid(molecule, basis, settings, potential.backend, patterns=patterns)
    if not len(grid.w_g):
        return 0.0
    return -ExchangeCorrelation(potential, molecule, basis, settings, budget=budget, grid=grid).energy(*density)
