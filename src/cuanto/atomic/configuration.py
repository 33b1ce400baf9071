"""Occupations of the spinors of an atom, and electron configurations such as `[Ar] 3d5 4s1`.

Closed shells are full; at most one shell per symmetry, the highest occupied, is open. The average energy of a set of
distributions of the open electrons needs only the mean occupations and the factors f_lm below (average of
configurations, G. Malli and others; see docs/develop/atom_notes.md).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, isfinite, lgamma

import numpy as np

from cuanto.arrays import Array
from cuanto.atomic.species import LETTERS, SPECIES
from cuanto.errors import InputError, require
from cuanto.scf.configurations import Configuration, capacity, configuration
from cuanto.system.elements import ATOMIC_NUMBERS
from cuanto.system.text import quote

NOBLE_GASES = ("He", "Ne", "Ar", "Kr", "Xe", "Rn", "Og")
_SUBSHELL = re.compile(r"(?P<n>\d)(?P<l>[spdfg])\^?\{?(?P<q>\d{1,2})\}?", re.ASCII)
_CORE = re.compile(r"\[\s*(?P<core>[A-Za-z]{1,2})\s*\]", re.ASCII)


@dataclass(frozen=True)
class Occupation:
    """Closed and open shells of every symmetry, and the `configurations` of the electrons in the open shells.

    `closed`: number of full shells of each symmetry; `open`: whether it has an open shell.

    A configuration has one number per open symmetry, in the order of the symmetries. Without `weights` a configuration
    counts as many times as it has determinants, which is the statistical weight of all its levels.
    """

    closed: tuple[int, ...]
    open: tuple[bool, ...] = ()
    configurations: tuple[tuple[float, ...], ...] = ()
    weights: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "closed", tuple(int(n) for n in self.closed))
        opened = tuple(bool(n) for n in self.open) or (False,) * len(self.closed)
        object.__setattr__(self, "open", opened)
        object.__setattr__(self, "configurations", tuple(tuple(map(float, c)) for c in self.configurations))
        self._check()

    @classmethod
    def all_of(cls, closed: Sequence[int], opened: Sequence[int | bool], electrons: int) -> Occupation:
        """Every distribution of this number of electrons over the open shells (`autogen` of the thesis)."""
        capacities = [s.capacity for s, is_open in zip(SPECIES, opened, strict=False) if is_open]
        found = [c for c in itertools.product(*(range(n + 1) for n in capacities)) if sum(c) == electrons]
        if capacities and not found:
            raise InputError(f"{electrons} electrons do not fit into open shells that hold {sum(capacities)}")
        # the order of the thesis: the first symmetry is filled first
        return cls(tuple(closed), tuple(bool(n) for n in opened), tuple(sorted(found, reverse=True)))

    @property
    def nsym(self) -> int:
        """Number of symmetries."""
        return len(self.closed)

    @property
    def open_symmetries(self) -> tuple[int, ...]:
        """Positions of the symmetries with an open shell."""
        return tuple(i for i, is_open in enumerate(self.open) if is_open)

    @property
    def electrons(self) -> float:
        """Number of electrons in all shells."""
        full = sum(n * s.capacity for n, s in zip(self.closed, SPECIES, strict=False))
        return full + sum(self.mean_occupations)

    def shells(self, i: int) -> int:
        """Occupied shells of a symmetry."""
        return self.closed[i] + int(self.open[i])

    @property
    def normalised_weights(self) -> tuple[float, ...]:
        """Weights of the configurations, with the sum 1."""
        if self.weights is not None:
            total = sum(self.weights)
            return tuple(w / total for w in self.weights)
        capacities = [SPECIES[i].capacity for i in self.open_symmetries]
        logs = [sum(_log_binomial(N, n) for N, n in zip(capacities, c, strict=True)) for c in self.configurations]
        sizes = [exp(x - max(logs)) for x in logs]
        return tuple(size / sum(sizes) for size in sizes)

    @property
    def mean_occupations(self) -> tuple[float, ...]:
        """Mean number of electrons in every open shell."""
        if not self.configurations:
            return ()
        return tuple(float(x) for x in np.asarray(self.normalised_weights) @ np.array(self.configurations))

    def coupling(self) -> Array:
        """A_lm = 1 - f_lm between open shells, the "vector coupling coefficients".

        f_lm = <n_l n_m> / (<n_l> <n_m>), and N/(N - 1) <n_l (n_l - 1)> / <n_l>^2 within a shell that holds N.
        """
        if not self.configurations:
            return np.zeros((0, 0))
        n_cl, w_c = np.array(self.configurations), np.asarray(self.normalised_weights)
        mean_l = w_c @ n_cl
        f_lm = np.einsum("c,cl,cm->lm", w_c, n_cl, n_cl) / np.outer(mean_l, mean_l)
        N_l = np.array([SPECIES[i].capacity for i in self.open_symmetries], dtype=float)
        same_l = N_l / (N_l - 1.0) * (w_c @ (n_cl * (n_cl - 1.0))) / mean_l**2
        np.fill_diagonal(f_lm, same_l)
        return np.asarray(1.0 - f_lm)

    def _check(self) -> None:
        given = f"{len(self.closed)} symmetries with closed and {len(self.open)} with open shells"
        matching = 1 <= len(self.closed) <= len(SPECIES) and len(self.open) == len(self.closed)
        require(matching, f"{given} were given: both lists must have the same length, 1 to {len(SPECIES)}")
        require(min(self.closed) >= 0, f"closed shells {self.closed}: give non-negative numbers")
        labels = [SPECIES[i].label for i in self.open_symmetries]
        given = f"open shells {labels or 'none'} and {len(self.configurations)} configurations"
        require(bool(labels) == bool(self.configurations), f"{given}: give both")
        for c in self.configurations:
            self._check_configuration(c, labels)
        if self.weights is not None:
            good = len(self.weights) == len(self.configurations) and sum(self.weights) > 0
            good = good and all(isfinite(w) and w >= 0 for w in self.weights)
            require(good, f"weights {self.weights}: give a non-negative weight for every configuration")
        for label, i, mean in zip(labels, self.open_symmetries, self.mean_occupations, strict=True):
            require(mean > 0, f"the open shell {label} is empty in all configurations: leave it out")
            full = mean >= SPECIES[i].capacity * (1 - 1e-12)
            require(not full, f"the open shell {label} is full in all configurations: declare it closed")

    def _check_configuration(self, c: tuple[float, ...], labels: list[str]) -> None:
        wanted = f"give {len(labels)} numbers, one for each of {', '.join(labels)}"
        require(len(c) == len(labels), f"configuration {c}: {wanted}")
        for n, label, i in zip(c, labels, self.open_symmetries, strict=True):
            room = SPECIES[i].capacity
            require(0 <= n <= room, f"configuration {c}: {label} holds 0 to {room} electrons, not {n:g}")
        electrons, expected = sum(c), sum(self.configurations[0])
        same = abs(electrons - expected) <= 1e-9
        require(same, f"configuration {c} has {electrons:g} electrons, the first one {expected:g}")


def _log_binomial(N: float, n: float) -> float:
    return lgamma(N + 1) - lgamma(n + 1) - lgamma(N - n + 1)


def parse_configuration(text: str) -> Configuration:
    """Electrons by subshell from '1s2 2s2 2p3' or '[Ar] 3d5 4s1'."""
    subshells: Configuration = {}
    rest = text.strip()
    if core := _CORE.match(rest):
        symbol = core["core"].capitalize()
        if symbol not in NOBLE_GASES:
            raise InputError(f"core [{core['core']}]: it may be {', '.join(f'[{gas}]' for gas in NOBLE_GASES)}")
        subshells, rest = configuration(ATOMIC_NUMBERS[symbol]), rest[core.end() :]
    seen: set[tuple[int, int]] = set()
    for word in rest.replace(",", " ").split():
        found = _SUBSHELL.fullmatch(word.lower())
        if found is None:
            raise InputError(f"configuration {quote(text)}: {quote(word)} is not a subshell such as 3d5")
        n, l, q = int(found["n"]), LETTERS.index(found["l"]), int(found["q"])
        shell = f"configuration {quote(text)}: {n}{LETTERS[l]}"
        require(l < n, f"configuration {quote(text)}: there is no {n}{LETTERS[l]}")
        require(q <= capacity(l), f"{shell} holds {capacity(l)} electrons, not {q}")
        require((n, l) not in seen, f"{shell} is given twice")
        seen.add((n, l))
        subshells[n, l] = float(q)
    subshells = {nl: q for nl, q in subshells.items() if q > 0}
    require(subshells, f"configuration {quote(text)} has no electrons; write one such as '1s2 2s2 2p3'")
    return subshells


def ground_configuration(symbol: str, charge: int = 0) -> Configuration:
    """Ground configuration of a neutral atom or an ion; electrons leave the outermost subshell."""
    number = ATOMIC_NUMBERS[symbol]
    possible = -1 - number < charge < number
    require(possible, f"charge {charge} of {symbol}: it must leave between 1 and {2 * number} electrons")
    return configuration(number, charge)


def configuration_text(subshells: Configuration) -> str:
    """'[Ar] 3d5 4s1': the configuration with the largest possible noble-gas core."""
    core = ""
    for symbol in reversed(NOBLE_GASES):
        inner = configuration(ATOMIC_NUMBERS[symbol])
        if all(subshells.get(nl) == q for nl, q in inner.items()) and len(subshells) > len(inner):
            core, subshells = f"[{symbol}] ", {nl: q for nl, q in subshells.items() if nl not in inner}
            break
    return core + " ".join(f"{n}{LETTERS[l]}{subshells[n, l]:g}" for n, l in sorted(subshells))


def occupation_of(subshells: Configuration, l_max: int | None = None) -> Occupation:
    """Closed and open shells up to `l_max`; only the highest occupied subshell of each angular momentum may be open."""
    l_max = max([l_max or 0, *(l for _, l in subshells)])
    closed, opened = [0] * (2 * l_max + 1), [False] * (2 * l_max + 1)
    parts: list[tuple[tuple[float, ...], ...]] = []  # per open subshell: the ways to fill its species
    for l in range(l_max + 1):
        own = {n: q for (n, m), q in subshells.items() if m == l}
        species = [0] if l == 0 else [2 * l - 1, 2 * l]
        for i, n in enumerate(sorted(own)):
            require(n == l + 1 + i, f"{n}{LETTERS[l]} is occupied but {l + 1 + i}{LETTERS[l]} is not")
            full, highest = own[n] == capacity(l), max(own)
            require(
                full or n == highest, f"{n}{LETTERS[l]} is open below {highest}{LETTERS[l]}; only the highest may be"
            )
            for s in species:
                closed[s] += int(full)
                opened[s] = not full
            if not full:
                alone = [s in species for s in range(len(closed))]
                parts.append(Occupation.all_of((0,) * len(closed), alone, int(own[n])).configurations)
    ways = tuple(tuple(itertools.chain.from_iterable(way)) for way in itertools.product(*parts)) if parts else ()
    return Occupation(tuple(closed), tuple(opened), ways)
