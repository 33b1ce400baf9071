"""Ground-state configurations of atoms: electrons in (n, l) subshells.

Neutral atoms are in a table, `data/atoms/configurations.json`, which names its sources; ions follow from them.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files

Configuration = dict[tuple[int, int], float]

_ORDER = sorted(((n, l) for n in range(1, 9) for l in range(min(n, 4))), key=lambda nl: (nl[0] + nl[1], nl[0]))
"""Madelung's order, in which anions are filled."""

LANTHANIDES = range(57, 72)
FILLED_4D, FILLED_4F = 46, 60
"""Number of electrons of a lanthanide up to and including these subshells."""
NOBLE_GASES = (2, 10, 18, 36, 54, 86)


@cache
def _table() -> tuple[Configuration, ...]:
    """Configurations of the neutral atoms, H to Og."""
    text = (files("cuanto") / "data" / "atoms" / "configurations.json").read_text(encoding="utf-8")
    found: dict[str, Configuration] = {}
    for symbol, written in json.loads(text)["elements"].items():
        subshells: Configuration = {}
        for word in written.split():
            if word.startswith("["):
                subshells |= found[word.strip("[]")]
            else:
                subshells[int(word[0]), "spdf".index(word[1])] = float(word[2:])
        found[symbol] = subshells
    return tuple(found.values())


def capacity(l: int) -> int:
    """Electrons of a full subshell."""
    return 2 * (2 * l + 1)


def unpaired_electrons(subshells: Configuration) -> float:
    """Unpaired electrons by Hund's rule."""
    return sum(min(n, capacity(l) - n) for (_, l), n in subshells.items())


def spins_by_hund(subshells: Configuration) -> tuple[Configuration, Configuration]:
    """Electrons of alpha and of beta spin: in open subshells as many as possible are parallel."""
    up = {(n, l): min(q, capacity(l) / 2) for (n, l), q in subshells.items()}
    return up, {nl: q - up[nl] for nl, q in subshells.items()}


def configuration(number: int, charge: float = 0.0) -> Configuration:
    """Electrons of an atom or ion by subshell; cations lose those of the outermost one, anions fill the open one."""
    return _ionise(dict(_table()[number - 1]), charge)


def _ionise(subshells: Configuration, charge: float) -> Configuration:
    while charge > 1e-12 and subshells:
        outermost = max(subshells)
        taken = min(charge, subshells[outermost])
        subshells[outermost] -= taken
        charge -= taken
        subshells = {nl: q for nl, q in subshells.items() if q > 0}
    for n, l in [nl for nl in _ORDER if nl in subshells] + [nl for nl in _ORDER if nl not in subshells]:
        added = min(-charge, capacity(l) - subshells.get((n, l), 0.0))
        if added > 1e-12:
            subshells[n, l] = subshells.get((n, l), 0.0) + added
            charge += added
    return subshells


def outside_core(subshells: Configuration, number: int, core_electrons: int) -> list[Configuration]:
    """Possible configurations of the electrons of an element outside a core potential with `core_electrons` electrons.

    The core of a noble gas, or subshells in the order of n and l: 28 = [Ar] 3d10, 60 = [Kr] 4d10 4f14. Potentials of
    lanthanides may have a part of the 4f electrons in the core; the other valence electrons are then 5s 5p 5d 6s.
    """
    if number in LANTHANIDES and FILLED_4D < core_electrons < FILLED_4F:
        electrons = sum(subshells.values()) - core_electrons
        without_f: Configuration = {}
        for nl in ((5, 0), (5, 1), (6, 0), (5, 2)):
            without_f[nl] = min(electrons, float(capacity(nl[1])))
            electrons -= without_f[nl]
        found = [{nl: q for nl, q in without_f.items() if q > 0}]
        return [*found, _without_core(subshells, core_electrons)] if core_electrons in NOBLE_GASES else found
    return [_without_core(subshells, core_electrons)]


def _without_core(subshells: Configuration, core_electrons: int) -> Configuration:
    """A configuration without the innermost electrons."""
    order = _ORDER if core_electrons in NOBLE_GASES else sorted(_ORDER)
    left, found = float(core_electrons), dict(subshells)
    for nl in order:
        taken = min(left, found.get(nl, 0.0))
        found[nl] = found.get(nl, 0.0) - taken
        left -= taken
    return {nl: q for nl, q in found.items() if q > 0}


def electrons_by_momentum(subshells: Configuration) -> list[float]:
    """Number of electrons with l = 0, 1, 2, ..."""
    largest = max((l for _, l in subshells), default=0)
    return [sum(q for (_, l), q in subshells.items() if l == wanted) for wanted in range(largest + 1)]
