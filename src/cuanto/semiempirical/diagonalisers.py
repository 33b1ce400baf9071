"""Choice of the diagonaliser of an NDDO calculation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cuanto import tuning
from cuanto.errors import InputError
from cuanto.options import ScfOptions
from cuanto.scf.diagonalise import Diagonaliser, Full
from cuanto.scf.orthogonal import Frame
from cuanto.scf.pseudodiagonalise import SETTLED_COUPLING, Pseudo
from cuanto.semiempirical.purify import Purification

PSEUDO_ORBITALS = tuning.sizes("semiempirical.pseudo_orbitals")
SINGLE_IS_FASTER = {"cpu": True, "cuda": False}
"""Whether early rotations in single precision are faster, by language."""
SP2 = "sp2"
"""Name of purification, which only NDDO methods offer."""


def choose_diagonaliser(options: ScfOptions, frame: Frame) -> Diagonaliser:
    """The diagonaliser selected by `options`.

    Early block rotations are in single precision if that pays and the energy tolerance is tighter than what they reach.
    """
    language = frame.device.traits.language
    large = options.diagonaliser == "auto" and frame.size >= PSEUDO_ORBITALS[language] and options.aufbau
    if large or (options.diagonaliser == "pseudo" and options.variant in ("auto", "block")):
        mixed = SINGLE_IS_FASTER[language] and options.energy_tolerance < SETTLED_COUPLING**2
        return Pseudo(frame, "economical", options.level_shift, mixed)
    if options.diagonaliser == "pseudo":
        return Pseudo(frame, options.variant, options.level_shift)
    return Full(frame, options.level_shift, bool(options.smearing))


def purification(frame: Frame) -> Diagonaliser:
    """A diagonaliser that uses SP2 purification."""
    return Purification(frame)


def settings(given: dict[str, Any]) -> tuple[ScfOptions, Callable[[Frame], Diagonaliser] | None]:
    """Checked options, and a factory of the diagonaliser if it is `sp2`, which `ScfOptions` does not know."""
    if str(given.get("diagonaliser")).lower() != SP2:
        return ScfOptions.of(**given), None
    options = ScfOptions.of(**{**given, "diagonaliser": "full"})
    if not options.aufbau or options.level_shift:
        raise InputError("diagonaliser='sp2' needs aufbau occupations: leave out smearing, occupations and level_shift")
    return options, purification
