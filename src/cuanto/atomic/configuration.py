"""Electron configurations as chemists write them, and what they mean for symmetry species.

`[Ar] 3d5 4s1` becomes closed and open spinors per species and the list of distributions of the open electrons over
the fine-structure components, whose statistical average is the average of the configuration.
"""

from __future__ import annotations

import itertools
import re

from cuanto.atomic.occupation import Occupation
from cuanto.atomic.species import LETTERS
from cuanto.errors import InputError
from cuanto.scf.configurations import Configuration, capacity, configuration
from cuanto.system.elements import ATOMIC_NUMBERS
from cuanto.system.text import quoted

NOBLE_GASES = ("He", "Ne", "Ar", "Kr", "Xe", "Rn", "Og")
_SUBSHELL = re.compile(r"(?P<n>\d)(?P<l>[spdfg])\^?\{?(?P<q>\d{1,2})\}?", re.ASCII)
_CORE = re.compile(r"\[\s*(?P<core>[A-Za-z]{1,2})\s*\]", re.ASCII)


def parse_configuration(text: str) -> Configuration:
    """Electrons by subshell of '1s2 2s2 2p3' or '[Ar] 3d5 4s1'."""
    held: Configuration = {}
    rest = text.strip()
    if core := _CORE.match(rest):
        symbol = core["core"].capitalize()
        if symbol not in NOBLE_GASES:
            raise InputError(f"core [{core['core']}]: it may be {', '.join(f'[{gas}]' for gas in NOBLE_GASES)}")
        held, rest = configuration(ATOMIC_NUMBERS[symbol]), rest[core.end() :]
    seen: set[tuple[int, int]] = set()
    for word in rest.replace(",", " ").split():
        found = _SUBSHELL.fullmatch(word.lower())
        if found is None:
            raise InputError(f"configuration {quoted(text)}: {quoted(word)} is no subshell such as 3d5")
        n, l, q = int(found["n"]), LETTERS.index(found["l"]), int(found["q"])
        if l >= n:
            raise InputError(f"configuration {quoted(text)}: there is no {n}{LETTERS[l]}")
        if q > capacity(l):
            raise InputError(f"configuration {quoted(text)}: {n}{LETTERS[l]} holds {capacity(l)} electrons, not {q}")
        if (n, l) in seen:
            raise InputError(f"configuration {quoted(text)}: {n}{LETTERS[l]} is given twice")
        seen.add((n, l))
        held[n, l] = float(q)
    held = {nl: q for nl, q in held.items() if q > 0}
    if not held:
        raise InputError(f"configuration {quoted(text)} has no electrons; write one such as '1s2 2s2 2p3'")
    return held


def ground_configuration(symbol: str, charge: int = 0) -> Configuration:
    """Of a neutral atom or an ion; electrons leave the outermost subshell."""
    number = ATOMIC_NUMBERS[symbol]
    if not -1 - number < charge < number:
        raise InputError(f"charge {charge} of {symbol}: it must leave between 1 and {2 * number} electrons")
    return configuration(number, charge)


def configuration_text(held: Configuration) -> str:
    """[Ar] 3d5 4s1; the largest noble gas that is inside."""
    core = ""
    for symbol in reversed(NOBLE_GASES):
        inner = configuration(ATOMIC_NUMBERS[symbol])
        if all(held.get(nl) == q for nl, q in inner.items()) and len(held) > len(inner):
            core, held = f"[{symbol}] ", {nl: q for nl, q in held.items() if nl not in inner}
            break
    return core + " ".join(f"{n}{LETTERS[l]}{held[n, l]:g}" for n, l in sorted(held))


def occupation_of(held: Configuration, l_max: int | None = None) -> Occupation:
    """Closed and open spinors up to `l_max`: in every momentum full from below, and one subshell at most is open."""
    l_max = max([l_max or 0, *(l for _, l in held)])
    closed, opened = [0] * (2 * l_max + 1), [False] * (2 * l_max + 1)
    parts: list[tuple[tuple[float, ...], ...]] = []  # per open subshell: the ways to fill its species
    for l in range(l_max + 1):
        own = {n: q for (n, m), q in held.items() if m == l}
        species = [0] if l == 0 else [2 * l - 1, 2 * l]
        for i, n in enumerate(sorted(own)):
            if n != l + 1 + i:
                raise InputError(f"{n}{LETTERS[l]} is occupied but {l + 1 + i}{LETTERS[l]} is not")
            full = own[n] == capacity(l)
            if not full and n != max(own):
                raise InputError(f"{n}{LETTERS[l]} is open below {max(own)}{LETTERS[l]}; only the highest may be")
            for s in species:
                closed[s] += int(full)
                opened[s] = not full
            if not full:
                alone = [s in species for s in range(len(closed))]
                parts.append(Occupation.all_of((0,) * len(closed), alone, int(own[n])).configurations)
    ways = tuple(tuple(itertools.chain.from_iterable(way)) for way in itertools.product(*parts)) if parts else ()
    return Occupation(tuple(closed), tuple(opened), ways)
