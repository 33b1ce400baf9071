"""The options of a calculation: each one is a field here, described in one place.

Derived from the fields: checks of values, options of `cuanto energy`, keys of a job (TOML), keywords of QCSchema, the
refusal of options that do not apply to a method, and the keywords of a result. A new option is one new field.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from numbers import Number, Real
from types import MappingProxyType
from typing import Any

from cuanto.advice import SYMBOLS, advice_about, plain
from cuanto.errors import InputError
from cuanto.units import SPEED_OF_LIGHT

DEFAULT_METHOD, DEFAULT_BASIS, DEFAULT_GRID = "hf", "def2-svp", "fine"
FITTINGS = ("auto", "none", "j", "jk")
DEVICES = ("auto", "cpu", "cuda")
VARIANTS = ("refined", "block", "jacobi", "two-kernel")
PRECISIONS = ("double", "mixed", "single")
RELATIVITY = ("none", "x2c")
NUCLEAR_MODELS = ("point", "gaussian")
STORAGES = ("auto", "stored", "direct")
SIMILARITY = 0.7
"""Smallest ratio of equal letters at which a message suggests a name: `charge` must not become `point_charges`."""


@dataclass(frozen=True)
class Scope:
    """The `kinds` of methods (hf, functional, semiempirical) that an option applies to; `use` lists them for errors."""

    kinds: tuple[str, ...]
    use: str = ""


ALL_METHODS = Scope(("hf", "functional", "semiempirical"))
BASIS_METHODS = Scope(("hf", "functional"), "hf or a functional")
FUNCTIONALS = Scope(("functional",), "a functional")
NDDO_METHODS = Scope(("semiempirical",), "mndo, am1, pm3, pm6 or rm1")


@dataclass(frozen=True, kw_only=True)
class Option:
    """Description of an option.

    `kind` of value: choice, number, integer, switch, text, basis, size, grid, charges or numbers. `low` and `high`:
    range of a number. `scope`: methods that it applies to. `flag`: whether the command line has a flag for it, perhaps
    with `aliases`; other options are given as `-o NAME=VALUE`. `affects_result`: whether the result depends on it.
    """

    kind: str
    help: str
    name: str = ""
    default: Any = None
    choices: tuple[str, ...] = ()
    low: float = -math.inf
    high: float = math.inf
    unit: str = ""
    scope: Scope = ALL_METHODS
    flag: bool = False
    aliases: tuple[str, ...] = ()
    affects_result: bool = True

    @property
    def flags(self) -> tuple[str, ...]:
        """The flag and its aliases."""
        return (f"--{self.name.replace('_', '-')}", *self.aliases) if self.flag else ()

    @property
    def description(self) -> str:
        """Help text with the unit, without the default."""
        text = self.help.split(" \\[default")[0]
        return f"{text.rstrip('.')}, {self.unit}." if self.unit else text

    def check(self, value: Any) -> None:
        """Raise an error for an invalid value; texts, basis sets and arrays are checked where they are used."""
        if value is None and self.default is None:
            return
        name = self.name
        with errors_about_option(name):
            if self.kind == "choice" and _lower(value) not in self.choices:
                raise InputError(f"unknown {name} {value!r}: choose {', '.join(self.choices)}")
            if self.kind == "switch" and (hasattr(value, "__len__") or value not in (True, False)):
                raise InputError(f"{name} must be true or false, not {value!r}")
            if self.kind == "size" and not (_is_number(value) and value > 0):
                raise InputError(f"{name} must be a positive number of bytes, not {_shown(value)}")
            if self.kind in ("number", "integer"):
                if not _is_number(value):
                    raise InputError(f"{name} must be a number, not {_shown(value)}")
                if not self.low <= value <= self.high:
                    raise InputError(f"{name} is {value:g}: give a number from {self.low:g} to {self.high:g}")
                if self.kind == "integer" and value != int(value):
                    raise InputError(f"{name} must be a whole number, not {value!r}")


def _lower(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


def _is_number(value: object) -> bool:
    """Whether it is a finite number that a float can hold; NumPy scalars are, booleans are not."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # of an integer
        return False


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def option(default: Any, kind: str, help: str, scope: Scope = ALL_METHODS, **about: Any) -> Any:
    """Define a field of an options class; `about`: further fields of `Option`."""
    about |= {"kind": kind, "help": help, "default": default, "scope": scope}
    return field(default=default, metadata={"option": Option(**about)})


def choice(default: str, choices: tuple[str, ...], help: str, scope: Scope = ALL_METHODS, **about: Any) -> Any:
    """An option with a fixed set of values."""
    return option(default, "choice", help, scope, choices=choices, **about)


def number(default: float, low: float, high: float, help: str, scope: Scope = ALL_METHODS, **about: Any) -> Any:
    """An option that is a number, an integer if its default is one."""
    kind = "integer" if isinstance(default, int) else "number"
    return option(default, kind, help, scope, low=low, high=high, **about)


@dataclass(frozen=True, kw_only=True)
class CalculationOptions:
    """How an energy is computed: integrals, device, precision, initial guess and surroundings."""

    fitting: str = choice(
        "auto",
        FITTINGS,
        "Density fitting. auto: J, and K if there is exact exchange; none; j: J only; jk: J and K. \\[default: auto]",
        BASIS_METHODS,
        flag=True,
    )
    auxbasis: Any = option(
        None,
        "basis",
        "Fitting basis; by default chosen to match the orbital basis.",
        BASIS_METHODS,
        flag=True,
        aliases=("--aux",),
    )
    backend: object = option(
        "auto", "text", "auto: the GPU if there is one, else cpu.", choices=DEVICES, flag=True, affects_result=False
    )
    precision: str = choice(
        "double",
        PRECISIONS,
        "Precision of direct J and K and of integration on a grid. \\[default: double]",
        BASIS_METHODS,
        flag=True,
    )
    grid: Any = option(
        None,
        "grid",
        "For functionals: coarse, medium, fine, ultrafine, superfine, or radial,angular such as 99,590. "
        "\\[default: fine]",
        FUNCTIONALS,
        flag=True,
    )
    guess: Any = option(
        "sad",
        "text",
        "sad (superposition of atomic densities), core, or a JSON result or checkpoint. \\[default: sad]",
        flag=True,
    )
    point_charges: Any = option(None, "charges", "Charges (e) and their positions (Bohr).", BASIS_METHODS)
    field: Any = option(None, "numbers", "Electric field.", BASIS_METHODS, unit="Hartree/(e Bohr)")
    relativity: str = choice(
        "none",
        RELATIVITY,
        "Scalar relativity for all-electron basis sets: x2c, spin-free with one-electron decoupling. \\[default: none]",
        BASIS_METHODS,
        flag=True,
    )
    nuclear_model: str = choice(
        "point", NUCLEAR_MODELS, "Charge distribution of the nuclei that attract electrons.", BASIS_METHODS
    )
    speed_of_light: float = number(
        SPEED_OF_LIGHT, 1.0, 1e8, "Speed of light in x2c.", BASIS_METHODS, unit="atomic units"
    )
    screening: float = number(1e-12, 1e-20, 1e-4, "Screening threshold of direct J and K.", BASIS_METHODS)
    storage: str = choice(
        "auto",
        STORAGES,
        "Four-centre integrals: stored (on the CPU), computed in every iteration (direct), or stored if there is "
        "exchange and half of max_memory, or of the free memory, is enough (auto).",
        BASIS_METHODS,
    )
    mopac_compatible: bool = option(False, "switch", "Overlaps from MOPAC's truncated series.", NDDO_METHODS)
    max_memory: float | None = option(
        None,
        "size",
        "Memory limit, such as 4GB; by default all free memory.",
        flag=True,
        affects_result=False,
    )

    def __post_init__(self) -> None:
        _check_fields(self)
        if self.auxbasis is not None and self.fitting == "none":
            raise InputError("auxbasis has no effect with fitting='none': leave out one of them")
        if self.speed_of_light != SPEED_OF_LIGHT and self.relativity == "none":
            raise InputError("speed_of_light has no effect without relativity: add relativity='x2c'")


@dataclass(frozen=True, kw_only=True)
class ScfOptions:
    """Settings of the self-consistent field.

    Energy, gradient and dipole moment must all be within their tolerances: the gradient is the norm of FDS - SDF in an
    orthonormal basis, and the energy is then right to about its square.
    """

    max_iterations: int = number(
        100,
        1,
        1_000_000,
        "Largest number of iterations. Products of the orbital Hessian in second-order steps and in tests of stability "
        "are not counted.",
    )
    energy_tolerance: float = number(1e-9, 1e-14, 1.0, "Largest change of the energy.", unit="Hartree")
    gradient_tolerance: float = number(1e-5, 1e-12, 1.0, "Largest norm of FDS - SDF.", unit="Hartree")
    dipole_tolerance: float = number(
        4e-6, 1e-12, 1e6, "Largest estimated change of the dipole moment in the remaining steps.", unit="e Bohr"
    )
    diagonaliser: str = choice(
        "auto",
        ("auto", "full", "pseudo"),
        "Full diagonalisation, rotations between occupied and virtual orbitals (pseudo), or the faster one (auto). "
        "Semiempirical methods also have sp2, purification of the density.",
    )
    variant: str = choice(
        "auto", ("auto", *VARIANTS), "Variant of pseudodiagonalisation; block is cheaper, but converges less tightly."
    )
    accelerator: str = choice(
        "auto",
        ("auto", "diis", "adiis", "descent", "none"),
        "DIIS; ADIIS (interpolation that lowers the energy); direct minimisation until DIIS is safe (descent); auto: "
        "DIIS, then ADIIS if it oscillates, then descent and Newton steps if that does not help.",
    )
    history: int = number(8, 2, 12, "Matrices that ADIIS keeps; DIIS keeps 1.5 times as many.")
    damping: float = number(
        0.0,
        0.0,
        0.95,
        "Fraction of the last Fock matrix mixed into the new one, far from convergence; always if accelerator is none.",
    )
    level_shift: float = number(0.0, 0.0, 100.0, "Shift of the energies of virtual orbitals.", unit="Hartree")
    smearing: float = number(0.0, 0.0, 1.0, "k_B T of a Fermi distribution.", unit="Hartree")
    occupations: Sequence[Sequence[float]] | None = option(
        None, "numbers", "Fixed occupations of each spin, by orbital energy."
    )
    linear_dependence: float = number(
        1e-7, 1e-14, 0.1, "Smallest eigenvalue kept of the overlap matrix of normalised functions."
    )
    atomic_charges: Sequence[float] | None = option(
        None, "numbers", "Charges of the atoms whose densities are superposed for the guess.", unit="e"
    )
    atomic_spins: Sequence[float] | None = option(
        None,
        "numbers",
        "Unpaired electrons of the superposed atoms, negative for beta; they may add up to a broken-symmetry singlet.",
    )
    guess_mixing: float = number(
        0.0, 0.0, 10.0, "Norm of random rotations between occupied and empty orbitals of the guess."
    )
    seed: int = number(0, 0, 2**63 - 1, "Random seed of guess_mixing.")
    stability: str = choice(
        "auto",
        ("auto", "none", "check", "follow"),
        "Check whether the energy is a minimum, and perhaps follow the unstable direction and converge again; auto: "
        "follow for atoms with open d or f shells, for restricted single points of molecules with such atoms, "
        "where DIIS has failed, and in semiempirical methods for open shells, transition metals, lanthanides and noble "
        "gases (up to 2000 orbitals), otherwise none.",
    )
    search: str = choice(
        "auto",
        ("auto", "none"),
        "Look for the lowest state from several starting points; auto: in unrestricted calculations of molecules with "
        "open d or f shells, or of clusters such as B2 and C2, if no guess is given and atoms do not move.",
        BASIS_METHODS,
    )
    unconverged_gradient: bool = option(
        False, "switch", "Compute gradients even if the SCF did not converge; they are not derivatives of the energy."
    )
    profile: bool = option(False, "switch", "Wait for the device after each step, for exact timings.")

    def __post_init__(self) -> None:
        _check_fields(self)
        if self.variant != "auto" and self.diagonaliser == "full":
            raise InputError("variant has no effect with diagonaliser='full': leave out one of them")
        if self.aufbau:
            return
        self._require_lists_of_occupations()
        if self.smearing and self.occupations is not None:
            raise InputError("smearing and fixed occupations exclude each other: leave out one of them")
        if self.accelerator == "descent" or self.stability not in ("auto", "none"):
            raise InputError("stability and descent need aufbau occupations: leave out smearing and occupations")
        if self.diagonaliser == "pseudo":
            raise InputError("diagonaliser='pseudo' needs aufbau occupations: leave out smearing and occupations")

    def _require_lists_of_occupations(self) -> None:
        given: Any = self.occupations
        with errors_about_option("occupations"):
            if given is not None and (not hasattr(given, "__len__") or any(isinstance(one, Real) for one in given)):
                wanted = "a list for each spin, or one for both, such as [[2, 2, 2, 2, 2]]"
                raise InputError(f"occupations must have {wanted}, not {_shown(given)}")

    @property
    def aufbau(self) -> bool:
        """Whether the lowest orbitals are filled and the others empty."""
        return not self.smearing and self.occupations is None

    @classmethod
    def of(cls, **given: Any) -> ScfOptions:
        """Options from keywords; for an unknown one the error suggests the closest."""
        require_known(given, options_of(cls))
        return cls(**given)


def options_of(*groups: type) -> dict[str, Option]:
    """Options of classes by name, in the order of their fields."""
    return {one.name: replace(one.metadata["option"], name=one.name) for group in groups for one in fields(group)}


OPTIONS: Mapping[str, Option] = MappingProxyType(options_of(CalculationOptions, ScfOptions))
"""All options by name."""
BASIS = Option(kind="basis", help="Orbital basis.", name="basis", scope=BASIS_METHODS)
"""The basis is a separate argument, which does not apply to every method either."""


def require_known(given: Iterable[str], known: Iterable[str] = OPTIONS, what: str = "unknown option") -> None:
    """Refuse an unknown name: suggest the closest known one, else what would work instead, else list all."""
    names = list(known)
    for name in given:
        if name not in names:
            close = _closest(str(name), names)
            others = advice_about(str(name)) or f"choose one of {', '.join(names)}"
            raise InputError(f"{what} {name!r:.60}; {f'did you mean {close!r}?' if close else others}")


def _closest(name: str, names: Sequence[str]) -> str | None:
    """The name that was probably meant: spelled differently, similar, or that of the quantity with this symbol."""
    for one in names:
        if plain(one) == plain(name) or one == SYMBOLS.get(plain(name)):
            return one
    return next(iter(difflib.get_close_matches(name, names, n=1, cutoff=SIMILARITY)), None)


def require_applicable(method: str, kind: str, given: Mapping[str, Any]) -> None:
    """Refuse options that do not apply to a method of this kind, unless they are None or the name of the default."""
    for name, value in given.items():
        known = OPTIONS.get(name, BASIS)
        if value is None or (isinstance(value, str) and value == known.default) or kind in known.scope.kinds:
            continue
        raise InputError(f"{name} does not apply to {method}: leave it out, or use {known.scope.use}")


def check_values(given: Mapping[str, Any]) -> None:
    """Refuse invalid values."""
    for name, value in given.items():
        OPTIONS[name].check(value)


def _check_fields(options: CalculationOptions | ScfOptions) -> None:
    """Refuse invalid values, and write the words among them in lower case."""
    check_values(vars(options))
    for name, value in vars(options).items():
        if OPTIONS[name].choices:
            object.__setattr__(options, name, _lower(value))


def changed_options(given: CalculationOptions | ScfOptions) -> dict[str, Any]:
    """Options that affect the result and differ from their defaults."""
    return {
        name: value
        for name, value in vars(given).items()
        if OPTIONS[name].affects_result and value is not None
        if not isinstance(value, (str, Number)) or value != OPTIONS[name].default
    }


@contextmanager
def errors_about_option(name: str) -> Iterator[None]:
    """Errors raised inside carry the name of the option."""
    try:
        yield
    except InputError as error:
        error.option = name
        raise
