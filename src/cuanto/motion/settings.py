"""Settings of an optimisation, checked once: keywords of `cuanto.optimize`, flags, and keys of a job file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from cuanto.errors import InputError
from cuanto.methods import SEMIEMPIRICAL
from cuanto.methods.model import kind_of
from cuanto.motion.constraints import Constraint, read_constraints
from cuanto.motion.criteria import Criteria
from cuanto.motion.walker import COORDINATES
from cuanto.options import require_known
from cuanto.system import Molecule

HESSIANS = ("auto", "model", "numerical", *SEMIEMPIRICAL)
"""Sources of the initial Hessian."""
EXAMPLES = {"freeze": "distance 1 2", "set": "distance 1 2 1.5", "scan": "distance 1 2 1.0 2.0 11"}
"""Constraints as text."""
MAX_STEPS = 200


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Goal and convergence criteria of an optimisation.

    `convergence`: loose, normal, tight, verytight, or criteria by name. `freeze`, `set`, `scan`: a constraint as text
    or several, see `cuanto.motion.constraints`. `ts`: search for a transition state. `irc`: follow the reaction path
    through it, in both directions. `pre`: semiempirical method for a pre-optimisation. `hessian`: source of the initial
    Hessian; auto is geomeTRIC's model for a minimum, and numerical (differences of gradients) for a transition state or
    path. `max_steps`: limit for each optimisation. `trust`: initial trust radius, Angstrom.
    """

    convergence: str | Mapping[str, float] | Criteria = "normal"
    freeze: str | Sequence[Any] = ()
    set: str | Sequence[Any] = ()
    scan: str | Sequence[Any] = ()
    ts: bool = False
    irc: bool = False
    pre: str | None = None
    hessian: str = "auto"
    coordinates: str = "tric"
    max_steps: int = MAX_STEPS
    trust: float | None = None

    @classmethod
    def of(cls, **given: Any) -> Settings:
        """Settings from keywords; for an unknown one the error suggests the closest."""
        require_known(given, NAMES, "optimize: unknown key")
        return cls(**{name: value for name, value in given.items() if value is not None})

    def __post_init__(self) -> None:
        Criteria.of(self.convergence)
        for name in ("freeze", "set", "scan"):
            texts = getattr(self, name)
            if isinstance(texts, str):
                object.__setattr__(self, name, (texts,))
            elif not isinstance(texts, Sequence):
                raise InputError(f"{name} must be a text or a list of texts, such as ['{EXAMPLES[name]}']")
        for name in ("ts", "irc"):
            if not isinstance(getattr(self, name), bool):
                raise InputError(f"{name} must be true or false, not {getattr(self, name)!r:.60}")
        if self.coordinates not in COORDINATES:
            raise InputError(f"unknown coordinates {self.coordinates!r:.60}: choose {', '.join(COORDINATES)}")
        if self.hessian not in HESSIANS:
            raise InputError(f"unknown hessian {self.hessian!r:.60}: choose {', '.join(HESSIANS)}")
        if self.pre is not None and (not isinstance(self.pre, str) or kind_of(self.pre) != "semiempirical"):
            raise InputError(f"pre is {self.pre!r:.60}: give a semiempirical method, {', '.join(SEMIEMPIRICAL)}")
        self._check_numbers()
        self._check_consistency()

    def _check_numbers(self) -> None:
        steps, trust = self.max_steps, self.trust
        if isinstance(steps, bool) or not isinstance(steps, int) or not 1 <= steps <= 1_000_000:
            raise InputError(f"max_steps is {steps!r:.60}: give a whole number from 1 to 1000000")
        if trust is not None and (not isinstance(trust, int | float) or not 1e-3 <= trust <= 1.0):
            raise InputError(f"trust is {trust!r:.60}: give a trust radius from 0.001 to 1 Angstrom")

    def _check_consistency(self) -> None:
        if self.irc and (self.freeze or self.set or self.scan):
            raise InputError("a reaction path has no constraints: leave out irc, or freeze, set and scan")
        if self.scan and self.ts:
            raise InputError("a scan optimises minima: leave out ts or scan")
        if self.ts and (self.freeze or self.set):
            raise InputError("a search for a transition state has no constraints: leave out ts, or freeze and set")
        if self.pre is not None and (self.ts or self.irc):
            raise InputError("pre leads to a minimum, away from a transition state: leave it out, or ts and irc")
        if self.hessian == "model" and (self.ts or self.irc):
            raise InputError("hessian='model' has no direction that leads downwards: use numerical or pm6")

    @property
    def criteria(self) -> Criteria:
        """The limits of convergence."""
        return Criteria.of(self.convergence)

    def first_hessian(self, kind: str) -> str:
        """Source of the initial Hessian for a search of this kind: minimum, ts or irc."""
        automatic = "model" if kind == "minimum" else "numerical"
        return automatic if self.hessian == "auto" else self.hessian

    def constraints(self, molecule: Molecule) -> list[list[Constraint]]:
        """Constraints of every point of a scan."""
        return read_constraints(molecule, self.freeze, self.set, self.scan)

    def plain(self) -> dict[str, Any]:
        """Convert to plain data, from which `of` makes the same settings."""
        found = {**vars(self), "convergence": asdict(self.criteria)}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}


NAMES = [one.name for one in fields(Settings)]
