"""Names of methods with a basis: Hartree-Fock and functionals.

`rhf` (restricted closed shells), `uhf` (unrestricted), `rohf` (restricted open shells); `hf`, and a functional by its
name, are restricted for singlets and unrestricted otherwise; a functional with `u` before its name (`upbe`) is always
unrestricted. An ending such as `-d3bj` adds dispersion.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass

from cuanto.errors import InputError, require
from cuanto.functionals import Functional, get_functional, split_dispersion
from cuanto.methods.absent import require_implemented
from cuanto.options import errors_about_option
from cuanto.semiempirical.parameters import METHODS as NDDO
from cuanto.system import Molecule

METHODS = ("hf", "rhf", "uhf", "rohf")
SEMIEMPIRICAL = (*NDDO, *(f"u{method}" for method in NDDO))
_RESTRICTED_OPEN = re.compile(r"ro(?:ks)?[-_/ ]?(.+)")
_DISPERSION = re.compile(r"(?P<name>.+?)[-_/ ]?(?:g?d3[-_ ]?\(?bj\)?|(?P<d4>g?d4))")
HARTREE_FOCK = Functional("hf", (), 1.0)
"""No functional, and 100 % exact exchange."""


@dataclass(frozen=True)
class Model:
    """Functional, spins (1 restricted, 2 unrestricted) and dispersion correction of the method `name`.

    `shared`: both spins have the same orbitals.
    """

    name: str
    functional: Functional
    spins: int
    dispersion: str | None = None
    shared: bool = False

    @classmethod
    def of(cls, method: str, molecule: Molecule) -> Model:
        """The model of a method for a molecule."""
        name, dispersion = split_dispersion(method)
        plain = name.lower()
        spins = 1 if molecule.valence_multiplicity == 1 else 2
        if plain in METHODS:
            if plain == "rhf" and spins == 2:
                multiplicity = molecule.valence_multiplicity
                raise InputError(f"rhf needs a singlet, but the multiplicity is {multiplicity}: use uhf or rohf")
            spins = spins if plain == "hf" else 1 if plain == "rhf" else 2
            named = "rhf" if spins == 1 else "uhf"
            label = method.lower() if dispersion is not None or plain == "rohf" else named
            return cls(label, HARTREE_FOCK, spins, dispersion, plain == "rohf")
        functional, unrestricted = _functional(name)
        return cls(method.lower(), functional, 2 if unrestricted else spins, dispersion)

    @property
    def exchange(self) -> bool:
        """Whether there is exact exchange, of any range."""
        return bool(self.functional.exact_exchange) or self.functional.range_separation is not None

    @property
    def has_functional(self) -> bool:
        """Whether there is a functional, integrated on a grid."""
        return bool(self.functional.parts)

    @property
    def omega(self) -> float | None:
        """Range-separation parameter, 1/Bohr; None without long-range exchange."""
        separation = self.functional.range_separation
        return None if separation is None else separation.omega


@errors_about_option("method")
def kind_of(method: str) -> str:
    """Kind of a method: `hf`, `functional` or `semiempirical`; refuses an unknown method."""
    if not isinstance(method, str) or not method:
        raise InputError(f"a method is a name such as hf, b3lyp or pm6, not {method!r}")
    name = split_dispersion(method)[0]
    if method.lower() in SEMIEMPIRICAL:
        return "semiempirical"
    require_implemented(method)
    require_implemented(name)
    _require_one_method(method)
    _refuse_restricted_open_shells(method)
    if name.lower() in METHODS:
        return "hf"
    try:
        _functional(name)
    except InputError as error:
        _suggest_dispersion(method)
        _refuse_basis(method)
        names = (*METHODS, *SEMIEMPIRICAL)
        if close := difflib.get_close_matches(method.lower(), names, n=1):
            raise InputError(f"unknown method {method!r}; did you mean {close[0]!r}? Or: {error}") from None
        if "did you mean" in str(error):
            raise InputError(str(error).replace("functional", "method", 1)) from None
        choice = ", ".join(names)
        raise InputError(f"unknown method {method!r}: choose {choice} or a functional; {error}") from None
    return "functional"


def _require_one_method(method: str) -> None:
    """Refuse names that leave the method open, and functionals with an `r` for restricted before them."""
    plain = method.strip().lower()
    if plain in ("scf", "ks", "dft", "rks", "uks", "roks"):
        raise InputError(f"{method!r} leaves the method open: give hf, or a functional such as pbe0 or ub3lyp")
    require(not plain.endswith("/"), f"method {method!r} ends with a slash: leave it out")
    if plain.startswith("r") and not _is_functional(plain) and _is_functional(plain[1:]):
        raise InputError(
            f"unknown method {method!r}: give {plain[1:].lstrip('-')}, which is restricted for closed shells"
        )


def _refuse_restricted_open_shells(method: str) -> None:
    """Refuse a functional with `ro` before it; without it, open shells would be unrestricted."""
    plain = method.strip().lower()
    found = _RESTRICTED_OPEN.fullmatch(plain)
    if found is not None and not _is_functional(plain) and _is_functional(found[1]):
        raise InputError(
            f"not implemented: {method}; functionals have no restricted open shells: use u{found[1]} (unrestricted), "
            "or rohf"
        )


def _suggest_dispersion(method: str) -> None:
    """Refuse other spellings of a known method with a dispersion correction."""
    if found := _DISPERSION.fullmatch(method.strip().lower()):
        name = f"{found['name']}-{'d4' if found['d4'] else 'd3bj'}"
        if name != method.lower() and (found["name"] in METHODS or _is_functional(found["name"].removeprefix("u"))):
            raise InputError(f"unknown method {method!r}; did you mean {name!r}?")


def _is_functional(name: str) -> bool:
    try:
        require_implemented(name)
        get_functional(split_dispersion(name)[0])
    except InputError:
        return False
    return True


def _refuse_basis(method: str) -> None:
    """Refuse a known method with a basis behind it, such as B3LYP/6-31G*."""
    name, _, basis = (part.strip() for part in method.partition("/"))
    if name and basis and kind_of(name) != "semiempirical":
        raise InputError(
            f"method {method!r} has a basis in it: give the method {name} and the basis {basis} "
            f"(on the command line -m {name} -b '{basis}')"
        )


def _functional(name: str) -> tuple[Functional, bool]:
    """Functional of this name, and whether the name begins with `u` for unrestricted."""
    try:
        return get_functional(name), False
    except InputError:
        # There is no `r` for restricted: RPBE, for example, is another functional.
        if not name.lower().startswith("u"):
            raise
    return get_functional(name[1:]), True
