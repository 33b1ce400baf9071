"""What a user may ask for: every option is one field here, with all that is known about it.

Derived from the fields: the checks of values, the options of `cuanto energy`, the keys of a job (TOML), the keywords of
QCSchema, the refusal of what means nothing for a method, and the keywords of a result. A new option is one field.
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

from cuanto.errors import InputError

DEFAULT_METHOD, DEFAULT_BASIS, DEFAULT_GRID = "hf", "def2-svp", "fine"
FITTINGS = ("auto", "none", "j", "jk")
DEVICES = ("auto", "cpu", "cuda")
VARIANTS = ("refined", "block", "jacobi", "two-kernel")
PRECISIONS = ("double", "mixed", "single")
STORAGES = ("auto", "stored", "direct")


@dataclass(frozen=True)
class Meaning:
    """The `kinds` of methods (hf, functional, semiempirical) that an option applies to, in words: `use`."""

    kinds: tuple[str, ...]
    use: str = ""


EVERY = Meaning(("hf", "functional", "semiempirical"))
IN_A_BASIS = Meaning(("hf", "functional"), "hf or a functional")
ON_A_GRID = Meaning(("functional",), "a functional")
OF_NDDO = Meaning(("semiempirical",), "mndo, am1, pm3 or pm6")


@dataclass(frozen=True, kw_only=True)
class Option:
    """All that is known about an option.

    `kind` of value: choice, number, whole (number), switch, text, basis, size, grid, charges or numbers. `low` and
    `high`: range of a number. `flag`: the command line has one, perhaps with `aliases`; options without are given as
    `-o NAME=VALUE`. `decides`: the result depends on it.
    """

    kind: str
    help: str
    name: str = ""
    default: Any = None
    choices: tuple[str, ...] = ()
    low: float = -math.inf
    high: float = math.inf
    unit: str = ""
    meaning: Meaning = EVERY
    flag: bool = False
    aliases: tuple[str, ...] = ()
    decides: bool = True

    @property
    def flags(self) -> tuple[str, ...]:
        """Names of the flag."""
        return (f"--{self.name.replace('_', '-')}", *self.aliases) if self.flag else ()

    @property
    def described(self) -> str:
        """What it is, and its unit."""
        text = self.help.split(" \\[default")[0]
        return f"{text.rstrip('.')}, {self.unit}." if self.unit else text

    def check(self, value: Any) -> None:
        """Refuse a value that makes no sense; texts, bases and arrays are looked at where they are used."""
        if value is None and self.default is None:
            return
        name = self.name
        with about_option(name):
            if self.kind == "choice" and value not in self.choices:
                raise InputError(f"unknown {name} {value!r}: choose {', '.join(self.choices)}")
            if self.kind == "switch" and (hasattr(value, "__len__") or value not in (True, False)):
                raise InputError(f"{name} must be true or false, {value!r} was given")
            if self.kind == "size" and not (_is_number(value) and value > 0):
                raise InputError(f"{name} must be a positive number of bytes, {value!r} was given")
            if self.kind in ("number", "whole"):
                if not _is_number(value):
                    raise InputError(f"{name} must be a number, {value!r} was given")
                if not self.low <= value <= self.high:
                    raise InputError(f"{name} is {value:g}: give a number from {self.low:g} to {self.high:g}")
                if self.kind == "whole" and value != int(value):
                    raise InputError(f"{name} must be a whole number, {value!r} was given")


def _is_number(value: object) -> bool:
    """NumPy's scalars are numbers, truth values are none."""
    return not isinstance(value, bool) and isinstance(value, Real) and math.isfinite(value)


def option(default: Any, kind: str, help: str, meaning: Meaning = EVERY, **about: Any) -> Any:
    """A field of a class of options; `about`: the rest of `Option`."""
    about |= {"kind": kind, "help": help, "default": default, "meaning": meaning}
    return field(default=default, metadata={"option": Option(**about)})


def choice(default: str, choices: tuple[str, ...], help: str, meaning: Meaning = EVERY, **about: Any) -> Any:
    """An option with a few values."""
    return option(default, "choice", help, meaning, choices=choices, **about)


def number(default: float, low: float, high: float, help: str, meaning: Meaning = EVERY, **about: Any) -> Any:
    """An option that is a number; a whole one where its default is."""
    kind = "whole" if isinstance(default, int) else "number"
    return option(default, kind, help, meaning, low=low, high=high, **about)


@dataclass(frozen=True, kw_only=True)
class CalculationOptions:
    """How an energy is computed: which integrals, where, how precisely, from which start, in which surroundings."""

    fitting: str = choice(
        "auto", FITTINGS, "Density fitting of J, of J and K, or none. \\[default: auto]", IN_A_BASIS, flag=True
    )
    auxbasis: Any = option(
        None,
        "basis",
        "Fitting basis; chosen from the orbital basis when left out.",
        IN_A_BASIS,
        flag=True,
        aliases=("--aux",),
    )
    backend: object = option(
        "auto", "text", "auto: the GPU where there is one, else cpu.", choices=DEVICES, flag=True, decides=False
    )
    precision: str = choice(
        "double", PRECISIONS, "Of direct J and K, and on the grid. \\[default: double]", IN_A_BASIS, flag=True
    )
    grid: Any = option(
        None,
        "grid",
        "For functionals: coarse, medium, fine, ultrafine, superfine, or radial,angular such as 99,590. "
        "\\[default: fine]",
        ON_A_GRID,
        flag=True,
    )
    guess: Any = option("sad", "text", "sad (superposed atoms) or core. \\[default: sad]", flag=True)
    point_charges: Any = option(None, "charges", "Charges (e), and their positions (Bohr).", IN_A_BASIS)
    field: Any = option(None, "numbers", "Electric field.", IN_A_BASIS, unit="Hartree/(e Bohr)")
    screening: float = number(1e-12, 1e-20, 1e-4, "Threshold of direct J and K.", IN_A_BASIS)
    storage: str = choice(
        "auto",
        STORAGES,
        "Four-centre integrals are stored (on the CPU), made in every iteration (direct), or stored where half of "
        "max_memory, or of the free memory, allows it and there is exchange (auto).",
        IN_A_BASIS,
    )
    mopac_compatible: bool = option(False, "switch", "Overlaps from MOPAC's truncated series.", OF_NDDO)
    max_memory: float | None = option(
        None, "size", "Such as 4GB or 500MB; all that is free otherwise.", flag=True, decides=False
    )

    def __post_init__(self) -> None:
        check_values(vars(self))
        if self.auxbasis is not None and self.fitting == "none":
            raise InputError("auxbasis is of no use with fitting='none': leave out one of them")


@dataclass(frozen=True, kw_only=True)
class ScfOptions:
    """Settings of the self-consistent field.

    Energy, gradient and dipole moment must all be within their tolerances: the gradient is the norm of FDS - SDF in an
    orthonormal basis, and the energy is then right to about its square.
    """

    max_iterations: int = number(100, 1, 1_000_000, "Fock matrices that are built at most.")
    energy_tolerance: float = number(1e-9, 1e-14, 1.0, "Largest change of the energy.", unit="Hartree")
    gradient_tolerance: float = number(1e-5, 1e-12, 1.0, "Largest norm of FDS - SDF.", unit="Hartree")
    dipole_tolerance: float = number(
        4e-6, 1e-12, 1e6, "What the steps to come would change of the dipole moment, by an estimate.", unit="e Bohr"
    )
    diagonaliser: str = choice(
        "auto",
        ("auto", "full", "pseudo"),
        "Full diagonalisation, rotations between occupied and virtual orbitals (pseudo), or whichever is faster.",
    )
    variant: str = choice("auto", ("auto", *VARIANTS), "Of the rotations; block: cheaper, less far.")
    accelerator: str = choice(
        "auto",
        ("auto", "diis", "adiis", "descent", "none"),
        "DIIS; ADIIS (interpolation that lowers the energy); direct minimisation until DIIS is safe (descent); auto: "
        "DIIS, rescued by ADIIS and, where that does not help, by descent.",
    )
    history: int = number(8, 2, 12, "Matrices that ADIIS remembers; DIIS has half as many more.")
    damping: float = number(0.0, 0.0, 0.95, "Share of the last Fock matrix that is kept while far from convergence.")
    level_shift: float = number(0.0, 0.0, 100.0, "Added to the energies of virtual orbitals.", unit="Hartree")
    smearing: float = number(0.0, 0.0, 1.0, "k_B T of a Fermi distribution.", unit="Hartree")
    occupations: Sequence[Sequence[float]] | None = option(
        None, "numbers", "Fixed occupations of each spin, by orbital energy."
    )
    linear_dependence: float = number(
        1e-7, 1e-14, 0.1, "Smallest eigenvalue kept of the overlap matrix of normalised functions."
    )
    atomic_charges: Sequence[float] | None = option(
        None, "numbers", "Charges of the atoms whose densities are superposed as a guess.", unit="e"
    )
    atomic_spins: Sequence[float] | None = option(
        None,
        "numbers",
        "Unpaired electrons of these atoms, sign for direction; they may cancel and break the symmetry of a singlet.",
    )
    guess_mixing: float = number(
        0.0, 0.0, 10.0, "Norm of random rotations between occupied and empty orbitals of the guess."
    )
    seed: int = number(0, 0, 2**63 - 1, "Of these rotations.")
    stability: str = choice(
        "none",
        ("none", "check", "follow"),
        "Check whether the energy is a minimum; follow the direction in which it is not, and converge again.",
    )
    profile: bool = option(False, "switch", "Wait for the device after each step, so that timings are exact.")

    def __post_init__(self) -> None:
        check_values(vars(self))
        if self.aufbau:
            return
        if self.smearing and self.occupations is not None:
            raise InputError("smearing and fixed occupations exclude each other: give one of them")
        if self.accelerator == "descent" or self.stability != "none":
            raise InputError("stability and descent need aufbau occupations: leave out smearing and occupations")
        if self.diagonaliser == "pseudo":
            raise InputError("diagonaliser='pseudo' needs aufbau occupations: leave out smearing and occupations")

    @property
    def aufbau(self) -> bool:
        """The lowest orbitals are full, the others empty."""
        return not self.smearing and self.occupations is None

    @classmethod
    def of(cls, **given: Any) -> ScfOptions:
        """From keywords; an unknown one is named together with the nearest."""
        require_known(given, options_of(cls))
        return cls(**given)


def options_of(*groups: type) -> dict[str, Option]:
    """Options of some classes by name, in the order of their fields."""
    return {one.name: replace(one.metadata["option"], name=one.name) for group in groups for one in fields(group)}


OPTIONS: Mapping[str, Option] = MappingProxyType(options_of(CalculationOptions, ScfOptions))
"""All of them."""
BASIS = Option(kind="basis", help="Orbital basis.", name="basis", meaning=IN_A_BASIS)
"""An argument of its own, which has to have a meaning as well."""


def require_known(given: Iterable[str], known: Iterable[str] = OPTIONS, what: str = "unknown option") -> None:
    """Refuse an unknown name, and say which is the nearest."""
    names = list(known)
    for name in given:
        if name not in names:
            close = difflib.get_close_matches(str(name), names, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(names)}"
            raise InputError(f"{what} {name!r:.60}; {hint}")


def require_meaning(method: str, kind: str, given: Mapping[str, Any]) -> None:
    """Refuse options that do not apply to a method of this kind, unless they are None or the name of the default."""
    for name, value in given.items():
        known = OPTIONS.get(name, BASIS)
        if value is None or (isinstance(value, str) and value == known.default) or kind in known.meaning.kinds:
            continue
        raise InputError(f"{name} does not apply to {method}: leave it out, or use {known.meaning.use}")


def check_values(given: Mapping[str, Any]) -> None:
    """Refuse values that make no sense."""
    for name, value in given.items():
        OPTIONS[name].check(value)


def changed(given: CalculationOptions | ScfOptions) -> dict[str, Any]:
    """The options that decide a result and are not as usual."""
    return {
        name: value
        for name, value in vars(given).items()
        if OPTIONS[name].decides and value is not None
        if not isinstance(value, (str, Number)) or value != OPTIONS[name].default
    }


@contextmanager
def about_option(name: str) -> Iterator[None]:
    """Tell which option an error is about."""
    try:
        yield
    except InputError as error:
        error.option = name
        raise
