"""Hints about states that are probably not what was meant: a wrong multiplicity, an anion that loses an electron."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite

from cuanto.methods.result import Result
from cuanto.scf.configurations import capacity, configuration
from cuanto.system import Molecule

TRIPLETS = ("O2", "S2", "OS", "Se2", "OSe", "SSe", "Te2", "B2", "Si2", "HN", "HP", "CH2", "CSi")
"""Formulas in Hill's order of small molecules whose ground states are triplets.

K. P. Huber and G. Herzberg, Constants of Diatomic Molecules (Van Nostrand Reinhold, 1979).
"""
BOUND = 0.0
"""Hartree. Electrons in orbitals above it leave the molecule if the basis allows it."""


def hints(result: Result) -> Iterator[str]:
    """One line for everything that looks like a mistake."""
    molecule = result.molecule
    lowest = ground_multiplicity(molecule)
    if lowest is not None and molecule.multiplicity != lowest:
        what = molecule.elements[0] if molecule.natom == 1 else "this molecule"
        yield (
            f"hint: the ground state of {what} has multiplicity {lowest}, not {molecule.multiplicity}: "
            f"give multiplicity {lowest} unless this state is meant"
        )
    highest = max(result.homo)
    if molecule.charge < 0 and isfinite(highest) and highest > BOUND:
        advice = "its energy depends on the basis; add diffuse functions (def2-svpd, aug-cc-pvdz), or check the charge"
        if result.basis_name is None:
            advice = "check the charge, or use a functional with a basis with diffuse functions (-m b3lyp -b def2-svpd)"
        yield f"hint: the highest occupied orbital of this anion is unbound ({highest:+.3f} Hartree): {advice}"


def ground_multiplicity(molecule: Molecule) -> int | None:
    """Multiplicity of the ground state of an atom (Hund's rule) or of a well-known triplet; None if it is not known."""
    if molecule.natom == 1 and not molecule.nuclei.ghosts.any():
        number = int(molecule.numbers[0])
        if molecule.charge >= number:
            return None
        subshells = configuration(number, molecule.charge)
        unpaired = sum(min(n, capacity(l) - n) for (_, l), n in subshells.items())
        return round(unpaired) + 1
    formula = "".join(name + (str(count) if count > 1 else "") for name, count in molecule.composition.items())
    return 3 if molecule.charge == 0 and formula in TRIPLETS else None
