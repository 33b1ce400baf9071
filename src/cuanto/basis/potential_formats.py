"""Core potentials in basis set files: Gaussian, NWChem and the JSON of the Basis Set Exchange.

Spin-orbit parts are left out.
"""

from collections.abc import Mapping
from typing import Any

from cuanto.basis.core_potential import CorePotential, RadialTerm
from cuanto.basis.shell import ANGULAR_LETTERS
from cuanto.errors import require
from cuanto.system.text import parse_json_numbers, parse_numbers, parse_whole, quote

NO_TERM = RadialTerm(power=2, exponent=1.0, coefficient=0.0)


class PotentialParts:
    """Parts of a core potential while its file is being read; the local part has the key `LOCAL`."""

    LOCAL = -1

    def __init__(self) -> None:
        self.core_electrons: int | None = None
        self.parts: dict[int, list[RadialTerm]] = {}
        self.current: list[RadialTerm] | None = None
        self.spin_orbit = False

    def begin(self, l: int) -> None:
        """Start the part of an angular momentum, or the local one; rows that follow belong to it."""
        require(l not in self.parts, f"a second potential of {'the local part' if l < 0 else ANGULAR_LETTERS[l]}")
        self.current = self.parts[l] = []

    def row(self, tokens: list[str]) -> None:
        """Add a row 'power exponent coefficient', which may have a spin-orbit coefficient as well."""
        expected = f"expected 'power exponent coefficient' of a core potential, found {quote(' '.join(tokens))}"
        require(self.current is not None and 3 <= len(tokens) <= 4, expected)
        power, exponent, coefficient = parse_numbers(tokens)[:3]
        require(power == int(power), expected)
        assert self.current is not None
        self.current.append(RadialTerm(int(power), exponent, coefficient))
        self.spin_orbit |= len(tokens) == 4

    def potential(self, symbol: str) -> CorePotential | None:
        """The potential; None if there is nothing but a spin-orbit part."""
        if not self.parts and self.core_electrons is None:
            return None
        require(self.core_electrons is not None, f"the core potential of {symbol} lacks its number of core electrons")
        require(self.LOCAL in self.parts, f"the core potential of {symbol} lacks its local part")
        assert self.core_electrons is not None
        projected = {l: terms for l, terms in self.parts.items() if l != self.LOCAL}
        return CorePotential.from_parts(symbol, self.core_electrons, self.parts[self.LOCAL], projected, self.spin_orbit)


class GaussianPotential(PotentialParts):
    """Parts of a core potential in Gaussian's format: a title, the number of rows, and the rows, for each part."""

    def __init__(self, parts: int) -> None:
        super().__init__()
        self.missing = parts
        self.rows: int | None = None
        self.titled = False

    @property
    def complete(self) -> bool:
        """Whether all parts have been read."""
        return not self.missing

    def line(self, text: str) -> None:
        """Read the next line."""
        if not self.titled:
            self.titled = True
            self.begin(len(self.parts) - 1)
        elif self.rows is None:
            self.rows = parse_whole(text)
            good = self.rows is not None and 0 <= self.rows < 1000
            require(good, f"expected the number of rows of a core potential, found {quote(text)}")
        else:
            self.row(text.split())
            self.rows -= 1
        if self.rows == 0:
            self.missing, self.rows, self.titled = self.missing - 1, None, False


def potential_from_exchange(symbol: str, entry: Mapping[str, Any]) -> CorePotential | None:
    """The core potential of an element; the part of the highest angular momentum is the local one."""
    potentials = entry.get("ecp_potentials") or []
    good = isinstance(potentials, list) and all(isinstance(part, Mapping) for part in potentials)
    require(good, "'ecp_potentials' is not a list of objects")
    scalar = [part for part in potentials if str(part.get("ecp_type", "scalar")).startswith("scalar")]
    if not scalar:
        return None
    parts = PotentialParts()
    parts.spin_orbit = len(scalar) < len(potentials)
    parts.core_electrons = parse_whole(str(entry.get("ecp_electrons")))
    momenta = [part.get("angular_momentum") for part in scalar]
    for ls in momenta:
        good = isinstance(ls, list) and len(ls) == 1 and type(ls[0]) is int and 0 <= ls[0] < len(ANGULAR_LETTERS)
        require(good, f"angular momentum {quote(ls)} of a core potential is not a list of one whole number")
    for part, (l,) in zip(scalar, momenta, strict=True):
        parts.begin(parts.LOCAL if l == max(ls[0] for ls in momenta) else l)
        columns = part.get("coefficients")
        require(isinstance(columns, list) and len(columns) == 1, "a core potential needs one column of coefficients")
        values = [part.get("r_exponents"), part.get("gaussian_exponents"), columns[0]]
        powers, exponents, coefficients = map(parse_json_numbers, values)
        equal = len(powers) == len(exponents) == len(coefficients)
        require(equal, "the columns of a core potential have different lengths")
        for row in zip(powers, exponents, coefficients, strict=True):
            parts.row([repr(number) for number in row])
    return parts.potential(symbol)


def potential_entry(potential: CorePotential) -> dict[str, Any]:
    """A core potential in the data structure of the Basis Set Exchange and of QCSchema, the local part first.

    These need a term in every part; one with coefficient zero is written into an empty part (cc-pVDZ-PP).
    """
    parts = [
        {
            "ecp_type": "scalar",
            "angular_momentum": [l],
            "r_exponents": [term.power for term in terms],
            "gaussian_exponents": [term.exponent for term in terms],
            "coefficients": [[term.coefficient for term in terms]],
        }
        for l, given in [(len(potential.projected), potential.local), *enumerate(potential.projected)]
        for terms in [given or (NO_TERM,)]
    ]
    return {"ecp_electrons": potential.core_electrons, "ecp_potentials": parts}
