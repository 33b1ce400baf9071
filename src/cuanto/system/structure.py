"""What a file says about a molecule, whatever its format."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Structure:
    """Atoms in Angstrom or Bohr, nothing checked beyond the format; None where the file does not say."""

    symbols: tuple[str, ...]
    coordinates: tuple[tuple[float, float, float], ...]
    charge: int | None
    multiplicity: int | None
    name: str
    angstrom: bool
