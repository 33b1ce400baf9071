"""Hints about states that are probably not what was meant: a wrong multiplicity, an anion that loses an electron; and
what to try if an SCF did not converge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import isfinite
from typing import TypeVar

import numpy as np

from cuanto.arrays import Array, Flags
from cuanto.methods.result import Result
from cuanto.options import ScfOptions
from cuanto.scf.configurations import configuration, unpaired_electrons
from cuanto.system import Molecule
from cuanto.system.covalent_radii import RADII
from cuanto.system.distances import close_pairs
from cuanto.units import BOHR_IN_ANGSTROM

R = TypeVar("R", bound=Result)

TRIPLETS = ("O2", "S2", "OS", "Se2", "OSe", "SSe", "Te2", "B2", "Si2", "HN", "HP", "CH2", "CSi")
"""Formulas in Hill's order of small molecules whose ground states are triplets.

K. P. Huber and G. Herzberg, Constants of Diatomic Molecules (Van Nostrand Reinhold, 1979).
"""
DAMPING = 0.5
SMEARING = 0.005
"""Hartree, about 1600 K: occupies orbitals near the Fermi level partly and changes others little."""
SHORTEST, SHORTEST_WITH_HYDROGEN = 0.54, 0.65
"""Shortest reasonable distances, as fractions of the sum of the covalent radii.

Multiple bonds are short: 0.77 in N2, 0.58 in V2. Bonds of hydrogen are single, with a fraction of about 1, in H2 1.19.
With Angstrom in place of Bohr it is 0.52 in water, 0.63 in H2.
"""
BOUND = 0.0
"""Hartree. Electrons in orbitals above it leave the molecule if the basis allows it."""


def with_hints(result: R) -> R:
    """The result with hints among its notes."""
    found = tuple(hints(result))
    return replace(result, notes=(*result.notes, *found)) if found else result


def with_hints_of_all(results: Sequence[R]) -> list[R]:
    """The same for several geometries of one composition: hints are looked for where there may be some."""
    first = results[0].molecule
    short = have_short_bonds(first.symbols, np.array([result.molecule.R_ax for result in results]))
    everywhere = first.charge < 0 or any(hints(results[0]))
    return [with_hints(one) if everywhere or close else one for one, close in zip(results, short, strict=True)]


def hints(result: Result) -> Iterator[str]:
    """One line for each thing that looks like a mistake."""
    molecule = result.molecule
    lowest = ground_multiplicity(molecule)
    if lowest is not None and molecule.multiplicity != lowest:
        what = molecule.elements[0] if molecule.natom == 1 else "this molecule"
        yield (
            f"hint: the ground state of {what} has multiplicity {lowest}, not {molecule.multiplicity}: "
            f"give multiplicity {lowest} unless this state is meant"
        )
    if (pair := short_bond(molecule)) is not None:
        yield pair
    highest = max(result.homo)
    if molecule.charge < 0 and isfinite(highest) and highest > BOUND:
        advice = "its energy depends on the basis; add diffuse functions (def2-svpd, aug-cc-pvdz), or check the charge"
        if result.basis_name is None:
            advice = "check the charge, or use a functional with a basis with diffuse functions (-m b3lyp -b def2-svpd)"
        yield f"hint: the highest occupied orbital of this anion is unbound ({highest:+.3f} Hartree): {advice}"


def short_bond(molecule: Molecule) -> str | None:
    """A hint about atoms that are much closer than in a bond: coordinates in Angstrom may have been taken for Bohr."""
    symbols = molecule.symbols
    radius_a = np.array([RADII.get(symbol, 0.0) for symbol in symbols])
    hydrogen_a = np.array([symbol == "H" for symbol in symbols])
    limit = 2.0 * SHORTEST_WITH_HYDROGEN * float(radius_a.max())
    r_k, a_k, b_k = close_pairs(molecule.R_ax * BOHR_IN_ANGSTROM, limit)
    fraction_k = np.where(hydrogen_a[a_k] | hydrogen_a[b_k], SHORTEST_WITH_HYDROGEN, SHORTEST)
    shortest_k = np.where(radius_a[a_k] * radius_a[b_k] > 0.0, fraction_k * (radius_a[a_k] + radius_a[b_k]), 0.0)
    short = np.flatnonzero(r_k < shortest_k)
    if not short.size:
        return None
    k = short[np.argmin(r_k[short] / shortest_k[short])]
    a, b = int(a_k[k]), int(b_k[k])
    return (
        f"hint: atoms {a + 1} ({symbols[a]}) and {b + 1} ({symbols[b]}) are {r_k[k]:.2f} Angstrom apart, much less "
        "than in a bond: coordinates are in Bohr in cuanto.Molecule, in Angstrom in XYZ files and texts"
    )


def have_short_bonds(symbols: Sequence[str], R_bax: Array) -> Flags:
    """Which of several geometries of the same atoms have a pair as close as `short_bond` reports."""
    radius_a = np.array([RADII.get(symbol, 0.0) for symbol in symbols])
    hydrogen_a = np.array([symbol == "H" for symbol in symbols])
    a, b = np.triu_indices(len(symbols), 1)
    known = radius_a[a] * radius_a[b] > 0.0
    fraction = np.where(hydrogen_a[a] | hydrogen_a[b], SHORTEST_WITH_HYDROGEN, SHORTEST)
    shortest = np.where(known, fraction * (radius_a[a] + radius_a[b]), 0.0) / BOHR_IN_ANGSTROM
    apart_bkx = R_bax[:, a] - R_bax[:, b]
    return np.asarray((np.einsum("bkx,bkx->bk", apart_bkx, apart_bkx) < shortest**2).any(axis=1))


def convergence_advice(options: ScfOptions) -> str:
    """What to try if an SCF with these options did not converge, what helps most often first.

    Square Ni4 (pbe/lanl2dz, singlet, 2.2 Angstrom) takes 68 iterations, 56 with this damping, 24 with this smearing,
    145 with descent from the start, and more than 200 with a level shift of 0.3 Hartree: the last two do not help.
    """
    ways = [f"max_iterations={max(ScfOptions().max_iterations, 2 * options.max_iterations)}"]
    if not options.damping:
        ways.append(f"damping={DAMPING}")
    if options.aufbau:
        ways.append(f"smearing={SMEARING} (a free energy; use its orbitals as the guess of a run without smearing)")
    return f"check geometry, charge and multiplicity, then try {' or '.join(ways)}"


def ground_multiplicity(molecule: Molecule) -> int | None:
    """Multiplicity of the ground state of an atom (Hund's rule) or of a well-known triplet; None if it is not known."""
    if molecule.natom == 1 and not molecule.nuclei.ghosts.any():
        number = int(molecule.numbers[0])
        if molecule.charge >= number:
            return None
        return round(unpaired_electrons(configuration(number, molecule.charge))) + 1
    few = molecule.natom - int(molecule.nuclei.ghosts.sum()) <= 3
    return 3 if few and molecule.charge == 0 and molecule.formula in TRIPLETS else None
