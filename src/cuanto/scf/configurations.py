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


@cache
def _table() -> tuple[Configuration, ...]:
    """Configurations of the neutral atoms, H to Og."""
    text = (files("cuanto") / "data" / "atoms" / "configurations.json").read_text(encoding="utf-8")
    found: dict[str, Configuration] = {}
    for symbol, subshells in json.loads(text)["elements"].items():
        held: Configuration = {}
        for word in subshells.split():
            if word.startswith("["):
                held |= found[word.strip("[]")]
            else:
                held[int(word[0]), "spdf".index(word[1])] = float(word[2:])
        found[symbol] = held
    return tuple(found.values())


def capacity(l: int) -> int:
    """Electrons of a full subshell."""
    return 2 * (2 * l + 1)


def configuration(number: int, charge: float = 0.0) -> Configuration:
    """Electrons of an atom or ion by subshell; ions lose electrons of the outermost subshell, or fill the open one."""
    return _charged(dict(_table()[number - 1]), charge)


def _charged(held: Configuration, charge: float) -> Configuration:
    while charge > 1e-12 and held:
        outermost = max(held)
        taken = min(charge, held[outermost])
        held[outermost] -= taken
        charge -= taken
        held = {nl: q for nl, q in held.items() if q > 0}
    for n, l in [nl for nl in _ORDER if nl in held] + [nl for nl in _ORDER if nl not in held]:
        added = min(-charge, capacity(l) - held.get((n, l), 0.0))
        if added > 1e-12:
            held[n, l] = held.get((n, l), 0.0) + added
            charge += added
    return held


def electrons_by_momentum(held: Configuration) -> list[float]:
    """Number of electrons with l = 0, 1, 2, ..."""
    largest = max((l for _, l in held), default=0)
    return [sum(q for (_, l), q in held.items() if l == wanted) for wanted in range(largest + 1)]
