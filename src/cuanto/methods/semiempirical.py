"""MNDO, AM1, PM3 and PM6: restricted for singlets, unrestricted otherwise (`upm6`: always)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto.backends.base import Backend
from cuanto.errors import InputError
from cuanto.log import Timings
from cuanto.options import ScfOptions
from cuanto.scf.convergence import Criteria
from cuanto.scf.diagonalise import Diagonaliser, Full
from cuanto.scf.loop import Density, Problem
from cuanto.scf.occupations import Aufbau, Fermi, Fixed, Occupations
from cuanto.scf.pseudodiagonalise import Pseudo
from cuanto.scf.search import search
from cuanto.scf.state import State
from cuanto.semiempirical import batch, properties
from cuanto.semiempirical.constants import BOHR, DEBYE, HARTREE_IN_KCAL, RESCALE
from cuanto.semiempirical.corrections import corrections
from cuanto.semiempirical.engine import PairEngine
from cuanto.semiempirical.fock import Fock
from cuanto.semiempirical.layout import Layout, positions
from cuanto.semiempirical.parameters import METHODS, parameters
from cuanto.semiempirical.purify import Purification
from cuanto.semiempirical.rotations import BlockRotations, triangular
from cuanto.semiempirical.schema import to_qcschema
from cuanto.semiempirical.terms import Constant, Core, Repulsion, orthonormal_frame, start_density
from cuanto.system import Molecule
from cuanto.terms.base import Term

Array = NDArray[np.float64]

SEMIEMPIRICAL = (*METHODS, *(f"u{method}" for method in METHODS))
PSEUDO_ORBITALS = 200
"""With fewer orbitals a full diagonalisation costs nothing that could be noticed."""


@dataclass(frozen=True, eq=False)
class Semiempirical:
    """A molecule with a method, ready to be iterated.

    `mopac_compatible`: overlaps from MOPAC's truncated series. `purify`: SP2 instead of a diagonalisation. `mixed`:
    early block rotations in single precision (None: on a CPU, where they take half the time); the end is always double.
    """

    molecule: Molecule
    method: str
    backend: Backend
    options: ScfOptions = field(default_factory=ScfOptions)
    max_memory: float | None = None
    mopac_compatible: bool = False
    purify: bool = False
    mixed: bool | None = None
    timings: Timings = field(default_factory=Timings)

    def __post_init__(self) -> None:
        if self.method not in SEMIEMPIRICAL:
            raise InputError(f"unknown method {self.method!r}: choose {', '.join(SEMIEMPIRICAL)}")
        if self.options.atomic_charges is not None or self.options.atomic_spins is not None:
            raise InputError(f"{self.method} starts from neutral atoms: leave out atomic_charges and atomic_spins")
        self.layout.electrons(self.molecule.charge, self.molecule.multiplicity)

    @cached_property
    def layout(self) -> Layout:
        """Elements without validated parameters are refused here."""
        return Layout(parameters(self.method.removeprefix("u")), self.molecule.symbols)

    @property
    def spins(self) -> int:
        """Densities: one of both electrons, or two."""
        return 2 if self.method[0] == "u" or self.molecule.multiplicity > 1 else 1

    @cached_property
    def engine(self) -> PairEngine:
        """Kernels for this geometry."""
        engine = PairEngine(
            self.layout, positions([self.molecule]), self.backend, self.max_memory, self.mopac_compatible
        )
        with self.timings.measure("kernels"):
            engine.prepare()
        return engine

    @cached_property
    def corrections(self) -> tuple[float, Array]:
        """What PM6 adds after the SCF: energy (Hartree) and gradient (Hartree/Bohr)."""
        if self.layout.parameters.method != "pm6":
            return 0.0, np.zeros((self.molecule.natom, 3))
        energy, gradient = corrections(self.molecule.symbols, self.molecule.R_ax * (RESCALE * BOHR))
        return energy / HARTREE_IN_KCAL, gradient * (BOHR / HARTREE_IN_KCAL)

    def states(self, start: Density | None = None) -> Iterator[State]:
        """Iterations from neutral atoms or another density."""
        engine = self.engine
        with self.timings.measure("integrals"):
            fock = Fock(engine)
            repulsion = float(self.backend.to_host(fock.core_repulsion)[0])
        frame = orthonormal_frame(self.layout.orbitals, self.backend)
        terms: list[Term] = [Constant("core repulsion", repulsion), Core(fock), Repulsion(fock)]
        if self.corrections[0]:
            terms.append(Constant("correction", self.corrections[0]))
        problem = Problem(terms, frame, self._occupations(), False, self.timings)
        electrons = self.layout.electrons(self.molecule.charge, self.molecule.multiplicity)
        if start is None:
            start = start_density(self.layout, electrons, self.spins, self.backend)
        options = self.options
        criteria = Criteria(
            options.energy_tolerance, options.gradient_tolerance, options.dipole_tolerance, self._displacement()
        )
        yield from search(problem, start, options, self._diagonaliser(frame), criteria, frame.X_pm)

    def _displacement(self) -> Any:
        rows, columns, weights = properties.dipole_vectors(self.layout, positions([self.molecule])[0])
        given = self.backend.upload({"rows": rows, "columns": columns, "weights": weights})

        def displacement(change_spq: Any) -> float:
            moment_x = given["weights"] @ change_spq.sum(axis=0)[given["rows"], given["columns"]]
            return float(np.abs(self.backend.to_host(moment_x)).max())

        return displacement

    def _occupations(self) -> Occupations:
        up, down = self.layout.electrons(self.molecule.charge, self.molecule.multiplicity)
        electrons, capacity = ((up + down,), 2) if self.spins == 1 else ((up, down), 1)
        options, orbitals = self.options, self.layout.orbitals
        if options.occupations is not None:
            return Fixed.of(options.occupations, electrons, capacity, orbitals)
        if options.smearing:
            return Fermi(electrons, capacity, orbitals, options.smearing)
        return Aufbau(electrons, capacity, orbitals)

    def _diagonaliser(self, frame: Any) -> Diagonaliser:
        options, integer = self.options, not self.options.smearing and self.options.occupations is None
        if self.purify:
            return Purification(frame.xp, frame.to_host)
        large = options.diagonaliser == "auto" and frame.size >= PSEUDO_ORBITALS and integer
        if large or (options.diagonaliser == "pseudo" and options.variant == "block"):
            host = frame.xp is np
            mixed, solve = host if self.mixed is None else self.mixed, triangular(frame.xp)
            return BlockRotations(frame.xp, frame.to_host, options.level_shift, mixed, solve, canonical=host)
        if options.diagonaliser == "pseudo":
            return Pseudo(frame.xp, frame.to_host, options.variant, options.level_shift)
        return Full(frame.xp, options.level_shift)

    def run(self, on_iteration: Any = None, start: Density | None = None) -> SemiempiricalResult:
        """All iterations and what follows from the last."""
        state: State | None = None
        for state in self.states(start):
            if on_iteration is not None:
                on_iteration(state)
        assert state is not None  # at least one iteration is made
        return SemiempiricalResult(self, state)


@dataclass(frozen=True, eq=False)
class SemiempiricalResult:
    """A calculation: its last state and what follows from it. Arrays are on the host, in atomic units."""

    calculation: Semiempirical
    state: State

    @property
    def molecule(self) -> Molecule:
        """As it was given."""
        return self.calculation.molecule

    @property
    def method(self) -> str:
        """Its name."""
        return self.calculation.method

    @property
    def timings(self) -> Timings:
        """Seconds by step."""
        return self.calculation.timings

    @property
    def energy(self) -> float:
        """Total energy of the valence electrons and cores, with PM6's corrections, Hartree."""
        return self.state.energy

    @property
    def energies(self) -> Mapping[str, float]:
        """By term."""
        return self.state.energies

    @property
    def electronic_energy(self) -> float:
        """Without cores and corrections, Hartree."""
        return self.energies["core"] + self.energies["two-electron"]

    @property
    def heat_of_formation(self) -> float:
        """At 298 K, kcal/mol."""
        layout = self.calculation.layout
        return HARTREE_IN_KCAL * (self.energy - layout.isolated) + layout.heat

    @property
    def converged(self) -> bool:
        """Energy, gradient and dipole within their tolerances, and no empty orbital below an occupied one."""
        return self.state.converged

    @property
    def iterations(self) -> int:
        """Of the SCF."""
        return self.state.iteration

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know."""
        engine = self.calculation.engine
        notes = [] if engine.stored else [f"repulsion made anew in {len(engine.slabs)} parts for every Fock matrix"]
        return tuple(notes + ["overlaps from MOPAC's truncated series"] * self.calculation.mopac_compatible)

    @cached_property
    def orbital_energies(self) -> Array:
        """eps_sm."""
        return self._host(self.state.eps_sm)

    @cached_property
    def coefficients(self) -> Array:
        """C_spm over orthonormal orbitals s, x, y, z, x2-y2, xz, z2, yz, xy of every atom."""
        return self._host(self.state.C_spm)

    @property
    def occupations(self) -> Array:
        """n_sm."""
        return self.state.n_sm

    @cached_property
    def density(self) -> Array:
        """D_spq."""
        return self._host(self.state.D_spq)

    @cached_property
    def homo(self) -> tuple[float, ...]:
        """Highest occupied orbital energy of each spin."""
        pairs = zip(self.orbital_energies, self.occupations, strict=True)
        return tuple(float(eps_m[n_m > 0].max(initial=-np.inf)) for eps_m, n_m in pairs)

    @cached_property
    def lumo(self) -> tuple[float, ...]:
        """Lowest empty orbital energy of each spin."""
        pairs = zip(self.orbital_energies, self.occupations, strict=True)
        return tuple(float(eps_m[n_m == 0].min(initial=np.inf)) for eps_m, n_m in pairs)

    @cached_property
    def charges(self) -> Array:
        """Net charge of every atom."""
        return properties.charges(self.calculation.layout, self.density.sum(axis=0))

    @cached_property
    def dipole(self) -> Array:
        """Dipole moment, e Bohr; of ions about the centre of mass."""
        R_ax = positions([self.molecule])[0]
        return properties.dipole(self.calculation.layout, R_ax, self.density.sum(axis=0), self.molecule.charge)

    @property
    def dipole_debye(self) -> Array:
        """Dipole moment, Debye."""
        return self.dipole * DEBYE

    @cached_property
    def bond_orders(self) -> Array:
        """Wiberg's, between atoms; valences on the diagonal."""
        return properties.bond_orders(self.calculation.layout, self.density)

    @cached_property
    def s_squared(self) -> float:
        """<S^2>."""
        if len(self.density) == 1:
            return 0.0
        up, down = self.occupations.sum(axis=1)
        overlap = float(np.sum(self.density[0] * self.density[1]))
        return float(0.25 * (up - down) ** 2 + 0.5 * (up + down) - overlap)

    @cached_property
    def gradient(self) -> Array:
        """dE/dR_ax, Hartree/Bohr."""
        with self.timings.measure("gradient"):
            pairs = self._host(self.calculation.engine.gradient(self.state.D_spq[None]))[0]
        return np.asarray((pairs + self.calculation.corrections[1]) * RESCALE)

    def to_qcschema(self) -> dict[str, Any]:
        """A QCSchema AtomicResult as a dictionary."""
        return to_qcschema(self)

    def _host(self, array: Any) -> Array:
        return np.asarray(array if isinstance(array, np.ndarray) else self.calculation.backend.to_host(array))


def semiempirical_energy(
    molecule: Molecule,
    method: str,
    backend: Backend,
    max_memory: float | None = None,
    guess: object = "sad",
    on_iteration: Any = None,
    mopac_compatible: bool = False,
    **options: Any,
) -> SemiempiricalResult:
    """A calculation from neutral atoms, or from the density of another one of the same atoms (`guess`)."""
    settings = ScfOptions.of(**options)
    timings = Timings(synchronize=getattr(backend, "synchronize", None) if settings.profile else None)
    calculation = Semiempirical(
        molecule, method.lower(), backend, settings, max_memory, mopac_compatible, timings=timings
    )
    return calculation.run(on_iteration, _start(guess, calculation))


def _start(guess: object, calculation: Semiempirical) -> Density | None:
    if guess == "sad":
        return None
    if not isinstance(guess, SemiempiricalResult):
        raise InputError(f"{calculation.method} starts from neutral atoms or from a semiempirical result: {guess!r}")
    shape = (calculation.spins, calculation.layout.orbitals, calculation.layout.orbitals)
    if guess.density.shape != shape:
        raise InputError(f"the guess has densities of shape {guess.density.shape}, {shape} are needed")
    return Density(calculation.backend.to_device(guess.density), None)


@dataclass(frozen=True, eq=False)
class Labelled:
    """One molecule of a batch: Hartree, kcal/mol, e, Hartree/Bohr (where it was asked for)."""

    energy: float
    heat_of_formation: float
    converged: bool
    iterations: int
    charges: Array
    gradient: Array | None


def semiempirical_energies(
    molecules: Sequence[Molecule], method: str, backend: Backend, gradient: bool = False, **options: Any
) -> list[Labelled]:
    """Energies of many molecules, those of one composition together, in the order given."""
    settings = ScfOptions.of(**options)
    groups: dict[tuple[Any, ...], list[int]] = {}
    for k, molecule in enumerate(molecules):
        groups.setdefault((molecule.symbols, molecule.charge, molecule.multiplicity), []).append(k)
    found: dict[int, Labelled] = {}
    for members in groups.values():
        first = Semiempirical(molecules[members[0]], method.lower(), backend, settings)
        size = batch.chunk(first.layout, backend)
        for begin in range(0, len(members), size):
            chosen = members[begin : begin + size]
            made = _chunk([molecules[k] for k in chosen], first, gradient)
            found.update(zip(chosen, made, strict=True))
    return [found[k] for k in range(len(molecules))]


def _chunk(molecules: Sequence[Molecule], model: Semiempirical, gradient: bool) -> list[Labelled]:
    """Molecules of one composition; stragglers alone, in the common loop."""
    layout, options = model.layout, model.options
    electrons = layout.electrons(model.molecule.charge, model.molecule.multiplicity)
    tolerances = (options.energy_tolerance, options.gradient_tolerance)
    solved = batch.solve(layout, positions(molecules), electrons, model.backend, model.spins, tolerances)
    slopes_bax = model.backend.to_host(solved.engine.gradient(solved.D_bspq)) if gradient else None
    D_bpq = model.backend.to_host(solved.D_bspq.sum(axis=1))
    made = []
    for b, molecule in enumerate(molecules):
        alone = replace(model, molecule=molecule, timings=Timings())
        if not solved.converged_b[b]:
            result = alone.run()
            slope = result.gradient if gradient else None
            heat, done = result.heat_of_formation, result.converged
            made.append(Labelled(result.energy, heat, done, result.iterations, result.charges, slope))
            continue
        extra, extra_ax = alone.corrections
        energy = float(solved.energy_b[b]) + extra
        slope = None if slopes_bax is None else (slopes_bax[b] + extra_ax) * RESCALE
        heat = HARTREE_IN_KCAL * (energy - layout.isolated) + layout.heat
        steps, charges_a = int(solved.iterations_b[b]), properties.charges(layout, D_bpq[b])
        made.append(Labelled(energy, heat, True, steps, charges_a, slope))
    return made
