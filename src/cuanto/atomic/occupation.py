"""Who is where: closed shells, open shells and the configurations that are averaged over.

At most one open shell per symmetry, the highest occupied one. The mean energy of a set of configurations needs only the
mean occupations and the factors f_lm below (G. Malli's and others' average of configurations; see docs/atoms.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import exp, isfinite, lgamma

import numpy as np

from cuanto.atomic.species import SPECIES, Array
from cuanto.errors import InputError


@dataclass(frozen=True)
class Occupation:
    """`closed`: full shells by symmetry; `open`: is there an open one; `configurations`: electrons in the open shells.

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
        """Every distribution of so many electrons over the open shells (the thesis's `autogen`)."""
        capacities = [s.capacity for s, is_open in zip(SPECIES, opened, strict=False) if is_open]
        found = [c for c in product(*(range(n + 1) for n in capacities)) if sum(c) == electrons]
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
        """In all shells."""
        full = sum(n * s.capacity for n, s in zip(self.closed, SPECIES, strict=False))
        return full + sum(self.mean_occupations)

    def shells(self, i: int) -> int:
        """Occupied shells of a symmetry."""
        return self.closed[i] + int(self.open[i])

    @property
    def normalised_weights(self) -> tuple[float, ...]:
        """They add up to 1."""
        if self.weights is not None:
            total = sum(self.weights)
            return tuple(w / total for w in self.weights)
        capacities = [SPECIES[i].capacity for i in self.open_symmetries]
        logs = [sum(_log_binomial(N, n) for N, n in zip(capacities, c, strict=True)) for c in self.configurations]
        sizes = [exp(x - max(logs)) for x in logs]
        return tuple(size / sum(sizes) for size in sizes)

    @property
    def mean_occupations(self) -> tuple[float, ...]:
        """Mean electrons of every open shell."""
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
        if not 1 <= len(self.closed) <= len(SPECIES) or len(self.open) != len(self.closed):
            raise InputError(
                f"{len(self.closed)} symmetries with closed and {len(self.open)} with open shells were given: "
                f"both lists have the same length, 1 to {len(SPECIES)}"
            )
        if min(self.closed) < 0:
            raise InputError(f"closed shells {self.closed}: give numbers that are not negative")
        labels = [SPECIES[i].label for i in self.open_symmetries]
        if bool(labels) != bool(self.configurations):
            raise InputError(f"open shells {labels or 'none'} and {len(self.configurations)} configurations: give both")
        for c in self.configurations:
            self._check_configuration(c, labels)
        if self.weights is not None:
            good = len(self.weights) == len(self.configurations)
            if not good or not all(isfinite(w) and w >= 0 for w in self.weights) or sum(self.weights) <= 0:
                raise InputError(f"weights {self.weights}: give one that is not negative for every configuration")
        for label, i, mean in zip(labels, self.open_symmetries, self.mean_occupations, strict=True):
            if mean <= 0:
                raise InputError(f"the open shell {label} is empty in all configurations: leave it out")
            if mean >= SPECIES[i].capacity * (1 - 1e-12):
                raise InputError(f"the open shell {label} is full in all configurations: declare it closed")

    def _check_configuration(self, c: tuple[float, ...], labels: list[str]) -> None:
        if len(c) != len(labels):
            raise InputError(f"configuration {c}: give {len(labels)} numbers, one for each of {', '.join(labels)}")
        for n, label, i in zip(c, labels, self.open_symmetries, strict=True):
            if not (isfinite(n) and 0 <= n <= SPECIES[i].capacity):
                raise InputError(f"configuration {c}: {label} holds 0 to {SPECIES[i].capacity} electrons, not {n:g}")
        if abs(sum(c) - sum(self.configurations[0])) > 1e-9:
            raise InputError(
                f"configuration {c} has {sum(c):g} electrons, the first one {sum(self.configurations[0]):g}"
            )


def _log_binomial(N: float, n: float) -> float:
    return lgamma(N + 1) - lgamma(n + 1) - lgamma(N - n + 1)
