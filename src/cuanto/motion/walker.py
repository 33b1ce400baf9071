"""Steps of geomeTRIC in internal coordinates, with energies and gradients from a function.

L.-P. Wang, C. Song, J. Chem. Phys. 144, 214108 (2016), doi:10.1063/1.4952956: translations and rotations of fragments
are coordinates of their own (TRIC). Reaction paths: C. Gonzalez, H. B. Schlegel, J. Phys. Chem. 94, 5523 (1990),
doi:10.1021/j100377a021. geomeTRIC's log is discarded, and its files are in a temporary folder.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from cuanto.arrays import Array
from cuanto.backends.blas import one_thread
from cuanto.errors import ConvergenceError, CuantoError, InputError, import_optional
from cuanto.motion.constraints import Constraint
from cuanto.motion.criteria import Criteria, Measures, displacement
from cuanto.motion.model_hessian import add_missing_angles
from cuanto.system import Molecule
from cuanto.units import BOHR_IN_ANGSTROM

Evaluate = Callable[[Array], tuple[float, Array]]
"""Energy and gradient at positions R_ax."""
MODULES = ("engine", "errors", "internal", "molecule", "normal_modes", "optimize", "params")
"""Modules of geomeTRIC that are used."""
MESSAGE = "optimisations need geomeTRIC: `pip install 'cuanto[motion]'`"
COORDINATES = {"tric": (False, False), "dlc": (True, False), "hdlc": (False, True)}
"""Coordinate systems: whether fragments are connected, and whether Cartesian coordinates are added."""
TRUST_RADII = {"minimum": (0.1, 0.3), "ts": (0.01, 0.1), "irc": (0.1, 0.1)}
"""First and largest trust radius, Angstrom."""
MIN_TRUST = 1e-4
MAX_VIOLATION = 1e-3
"""Largest violation (Angstrom, degrees) of constraints in a converged geometry."""
MIN_NEGATIVE_CURVATURE = -1e-3
"""Hartree/Bohr^2 or Hartree/rad^2: eigenvalues above are those of translations and rotations with numerical noise."""
KEEP_NET_FORCE = 0
"""geomeTRIC's `subfrctor`: point charges, fields and frozen atoms exert a force and torque on the whole molecule."""
CONSTRAINED_FIRST = 1
"""geomeTRIC's `conmethod` that builds the other coordinates orthogonal to the constrained ones. With the default, 0,
searches with frozen atoms, fragments or redundant coordinates end away from the constrained minimum, or never."""
MIN_INDEPENDENT = 0.2
"""Fraction of a constraint that must be independent of those before it for `CONSTRAINED_FIRST`, which drops constraints
below 0.1."""
DEPENDENT = 1e-6
"""Ratio of singular values below which directions are linearly dependent."""
LIMITED_STEP_FRACTION = 0.9
"""Steps longer than this fraction of the trust radius are limited by it."""


@contextmanager
def silence() -> Iterator[None]:
    """Discard geomeTRIC's log, even if logging is configured to print everything."""
    log = logging.getLogger("geometric")
    before, log.propagate, quiet = log.propagate, False, logging.NullHandler()
    log.addHandler(quiet)
    try:
        yield
    finally:
        log.propagate = before
        log.removeHandler(quiet)


@dataclass(frozen=True, eq=False)
class Point:
    """A geometry with energy and gradient (without components along constraints).

    `move_ax`: displacement of the step that follows, on a reaction path of the step that led here; None if the geometry
    was rejected. `limited`: the step is limited by the trust radius. `satisfied`: whether the constraints are
    satisfied. `descents`: number of negative eigenvalues of the model Hessian. `expected`: change of the energy in the
    step that follows. `direction` on a reaction path: 1 or -1.
    """

    R_ax: Array
    energy: float
    gradient_ax: Array
    free_gradient_ax: Array
    move_ax: Array | None
    limited: bool = False
    satisfied: bool = True
    descents: int = 0
    expected: float = 0.0
    direction: int = 0

    @property
    def accepted(self) -> bool:
        """Whether the next step starts here."""
        return self.move_ax is not None


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Settings of a search for a minimum, a transition state (`ts`) or a reaction path (`irc`).

    `surroundings`: whether the energy depends on the position and orientation of the whole molecule. `masses`: those
    with which a reaction path is weighted; None: geomeTRIC's masses of the elements.
    """

    kind: str = "minimum"
    coordinates: str = "tric"
    constraints: Sequence[Constraint] = ()
    hessian_xx: Array | None = None
    trust: float | None = None
    surroundings: bool = False
    masses: Array | None = None


class Walker:
    """geomeTRIC's optimiser of one molecule."""

    def __init__(self, molecule: Molecule, evaluate: Evaluate, plan: Plan, criteria: Criteria) -> None:
        self._criteria = criteria
        self._modules = {name: import_optional(f"geometric.{name}", MESSAGE) for name in MODULES}
        self._masses = plan.masses
        self._folder = tempfile.TemporaryDirectory(prefix="cuanto-")
        self._move = np.subtract if plan.surroundings else displacement
        with silence(), _translate_errors(), one_thread:
            self._optimizer = self._make(molecule, evaluate, plan, criteria)

    def __enter__(self) -> Walker:
        return self

    def __exit__(self, *error: object) -> None:
        self._folder.cleanup()

    def walk(self) -> Iterator[Point]:
        """Yield the geometries of a search for a stationary point, until the caller stops or the gradient vanishes."""
        optimizer = self._optimizer
        with silence(), _translate_errors():
            optimizer.calcEnergyForce()
            optimizer.prepareFirstStep()
            while True:
                energy, g, X = optimizer.E, optimizer.gradx.copy(), optimizer.X.copy()
                point = self._point(X, energy, g, X)
                if point.satisfied and self._criteria.flat(Measures.of(point.free_gradient_ax, None)):
                    yield point  # a step of length zero has no direction
                    return
                self._propose()
                yield self._point(X, energy, g, optimizer.X)
                while True:
                    energy, X = self._evaluate()
                    g = optimizer.gradx.copy()
                    optimizer.evaluateStep()
                    if np.array_equal(optimizer.X, X):
                        break
                    yield self._point(X, energy, g, None)
                    self._propose()

    def softest_ax(self) -> Array:
        """Displacement along the softest mode of geomeTRIC's Hessian at the present geometry."""
        optimizer = self._optimizer
        with silence(), _translate_errors():
            derivatives_qx = optimizer.IC.wilsonB(optimizer.X)
        softest_q = np.linalg.eigh(optimizer.H)[1][:, 0]
        return np.asarray(np.linalg.lstsq(derivatives_qx, softest_q)[0]).reshape(-1, 3)

    def path(self) -> Iterator[Point]:
        """Geometries of a reaction path through a transition state, first in one direction, then in the other."""
        optimizer, done = self._optimizer, self._modules["optimize"].OPT_STATE
        with silence(), _translate_errors():
            optimizer.calcEnergyForce()
            optimizer.prepareFirstStep()
            self._set_first_modes()
            X = optimizer.X.copy()
            yield self._point(X, optimizer.E, optimizer.gradx.copy(), X)
            while optimizer.state not in (done.CONVERGED, done.FAILED):
                direction = optimizer.IRC_info["direction"]
                self._propose()
                before = optimizer.Xprev.copy()
                energy, X = self._evaluate()
                g = optimizer.gradx.copy()
                optimizer.evaluateStep()
                reversed_now = optimizer.IRC_info["direction"] != direction
                accepted = reversed_now or np.array_equal(optimizer.X, X)
                yield self._point(X, energy, g, before if accepted else None, direction)

    def _propose(self) -> None:
        """Let geomeTRIC take a step, after it has built new coordinates if it has to."""
        ready = self._modules["optimize"].OPT_STATE.NEEDS_EVALUATION
        self._step()
        while self._optimizer.state != ready:
            self._step()

    def _step(self) -> None:
        """One step of geomeTRIC, whose new coordinates have the masses of the elements."""
        if self._masses is not None:
            self._optimizer.IC.mass = np.repeat(self._masses, 3)
        self._optimizer.step()

    def _set_first_modes(self) -> None:
        """Replace the normal modes at the transition state, which are those of the masses of the elements."""
        if self._masses is not None:
            optimizer, analysis = self._optimizer, self._modules["normal_modes"].frequency_analysis
            found = analysis(optimizer.X, optimizer.Hx0, optimizer.molecule.elem, self._masses)
            optimizer.TSWavenum, optimizer.TSNormal_modes_x, _ = found

    def _evaluate(self) -> tuple[float, Array]:
        self._optimizer.calcEnergyForce()
        return self._optimizer.E, self._optimizer.X.copy()

    def _point(self, X: Array, energy: float, g: Array, other: Array | None, direction: int = 0) -> Point:
        optimizer = self._optimizer
        constrained = optimizer.IC.haveConstraints()
        free = self._free_gradient(X, g) if constrained else g
        move = None if other is None else self._move(other.reshape(-1, 3), X.reshape(-1, 3))
        return Point(
            R_ax=X.reshape(-1, 3),
            energy=float(energy),
            gradient_ax=g.reshape(-1, 3),
            free_gradient_ax=np.asarray(free).reshape(-1, 3),
            move_ax=move,
            limited=bool(optimizer.cnorm > LIMITED_STEP_FRACTION * optimizer.trust)
            if hasattr(optimizer, "cnorm")
            else False,
            satisfied=not constrained or optimizer.IC.maxConstraintViolation(X) < MAX_VIOLATION,
            descents=int((np.linalg.eigvalsh(optimizer.H) < MIN_NEGATIVE_CURVATURE).sum()),
            expected=float(getattr(optimizer, "expect", 0.0)),
            direction=direction,
        )

    def _free_gradient(self, X: Array, g: Array) -> Array:
        """The gradient without its components along the Cartesian derivatives of the constrained coordinates."""
        _, sizes, V = np.linalg.svd(_derivatives(self._optimizer.IC.Prims.cPrims, X), full_matrices=False)
        V = V[sizes > DEPENDENT * sizes[0]]
        return np.asarray(g - V.T @ (V @ g))

    def _make(self, molecule: Molecule, evaluate: Evaluate, plan: Plan, criteria: Criteria) -> Any:
        system = self._modules["molecule"].Molecule()
        system.elem, system.xyzs = list(molecule.elements), [molecule.R_ax * BOHR_IN_ANGSTROM]
        system.build_topology()
        kind = plan.coordinates
        if plan.kind == "irc" and kind == "tric" and len(system.molecules) == 1 and not plan.surroundings:
            kind = "dlc"  # a path through rotations of a single fragment is not defined
        connect, cartesian = COORDINATES[kind]
        constraints = _without_frozen_coordinates(plan.constraints)
        primitives = [primitive for one in constraints for primitive in self._primitives(one)]
        exact = bool(primitives) and _are_independent(_derivatives(primitives, molecule.R_ax))
        coordinates = self._modules["internal"].DelocalizedInternalCoordinates(
            system,
            build=True,
            connect=connect,
            addcart=cartesian,
            constraints=primitives or None,
            cvals=[value for one in constraints for value in _targets(one)],
            conmethod=CONSTRAINED_FIRST if exact else 0,
        )
        add_missing_angles(coordinates, system, self._modules["internal"].Angle)
        settings = self._settings(plan, criteria)
        start = molecule.R_ax.reshape(-1).copy()
        return self._modules["optimize"].Optimizer(
            start, system, coordinates, self._engine(system, evaluate), self._folder.name, settings, print_info=False
        )

    def _settings(self, plan: Plan, criteria: Criteria) -> Any:
        """geomeTRIC's parameters; its own criteria only decide where a reaction path ends."""
        first, largest = TRUST_RADII[plan.kind]
        limits = {"convergence_grms": 0.0, "tmin": MIN_TRUST}
        if plan.kind == "irc":
            unit = BOHR_IN_ANGSTROM
            limits = {"convergence_grms": criteria.gradient_rms, "convergence_gmax": criteria.gradient_max}
            limits |= {"convergence_drms": criteria.displacement_rms * unit}
            limits |= {"convergence_dmax": criteria.displacement_max * unit}
        found = self._modules["params"].OptParams(
            transition=plan.kind == "ts",
            irc=plan.kind == "irc",
            trust=first if plan.trust is None else plan.trust,
            tmax=largest if plan.trust is None else max(largest, plan.trust),
            maxiter=10**9,  # the caller counts
            enforce=0.0,  # geomeTRIC's exact enforcement may not end, and is slow
            hessian="never",
            subfrctor=KEEP_NET_FORCE,
            frequency=plan.kind == "irc",
            xyzout=f"{self._folder.name}/path.xyz" if plan.kind == "irc" else None,
            **limits,
        )
        if plan.hessian_xx is not None:
            found.hess_data = plan.hessian_xx
        return found

    def _engine(self, system: Any, evaluate: Evaluate) -> Any:
        engine = self._modules["engine"].Engine(system)

        def calc(coords: Array, *unused: object, **more: object) -> dict[str, Any]:
            try:
                energy, gradient_ax = evaluate(coords.reshape(-1, 3).copy())
            except Exception as error:
                raise _EvaluationError from error
            return {"energy": energy, "gradient": np.array(gradient_ax).reshape(-1)}

        engine.calc = calc
        return engine

    def _primitives(self, one: Constraint) -> list[Any]:
        internal = self._modules["internal"]
        if one.kind == "atom":
            return [kind(one.atoms[0]) for kind in (internal.CartesianX, internal.CartesianY, internal.CartesianZ)]
        kinds = {"distance": internal.Distance, "angle": internal.Angle, "dihedral": internal.Dihedral}
        return [kinds[one.kind](*one.atoms)]


class _EvaluationError(Exception):
    """Carries an error of the energy or gradient through geomeTRIC."""


def _targets(one: Constraint) -> list[float | None]:
    """Target values of the coordinates of a constraint; None keeps the current ones."""
    return [None] * 3 if one.kind == "atom" else [one.value]


def _without_frozen_coordinates(constraints: Sequence[Constraint]) -> list[Constraint]:
    """Leave out distances and angles between frozen atoms only, which are frozen anyway."""
    frozen = {one.atoms[0] for one in constraints if one.kind == "atom"}
    return [one for one in constraints if one.kind == "atom" or not frozen.issuperset(one.atoms)]


def _derivatives(primitives: Sequence[Any], R_ax: Array) -> Array:
    """Cartesian derivatives of coordinates of geomeTRIC, one row for each."""
    return np.array([one.derivative(R_ax.reshape(-1, 3)).reshape(-1) for one in primitives])


def _are_independent(rows: Array) -> bool:
    """True if at least `MIN_INDEPENDENT` of every row is orthogonal to all rows before it."""
    independent = np.abs(np.diag(np.linalg.qr(rows.T)[1]))
    enough = len(rows) <= rows.shape[1] and independent >= MIN_INDEPENDENT * np.linalg.norm(rows, axis=1)
    return bool(np.all(enough))


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Convert errors of geomeTRIC to ours."""
    errors = import_optional("geometric.errors", MESSAGE)
    try:
        yield
    except _EvaluationError as error:
        assert error.__cause__ is not None
        raise error.__cause__ from None
    except CuantoError:
        raise
    except errors.LinearTorsionError as error:
        raise InputError(f"a constrained dihedral angle has three atoms on a line: {_line(error)}") from None
    except errors.IRCError as error:
        reason = _line(error).split(". Please")[0].lower()
        advice = "find the transition state, with ts (--ts on the command line)"
        raise InputError(f"no reaction path starts here: {reason}; {advice}") from None
    except (errors.Error, RuntimeError, ValueError, np.linalg.LinAlgError) as error:
        text = f"geomeTRIC found no further step ({_line(error)}); try other coordinates, such as hdlc"
        raise ConvergenceError(text) from error


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]
