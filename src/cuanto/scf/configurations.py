"""Ground-state configurations of atoms: electrons in (n, l) subshells.

Madelung's order with the exceptions of the observed ground states: A. Kramida et al., NIST Atomic Spectra Database,
doi:10.18434/T4W30F (elements beyond Lr: predicted, after Madelung).
"""

from __future__ import annotations

Configuration = dict[tuple[int, int], float]

_ORDER = sorted(((n, l) for n in range(1, 9) for l in range(min(n, 4))), key=lambda nl: (nl[0] + nl[1], nl[0]))

_EXCEPTIONS = """
24 4s1 3d5, 29 4s1 3d10, 41 5s1 4d4, 42 5s1 4d5, 44 5s1 4d7, 45 5s1 4d8, 46 5s0 4d10,
47 5s1 4d10, 57 4f0 5d1, 58 4f1 5d1, 64 4f7 5d1, 78 6s1 5d9, 79 6s1 5d10, 89 5f0 6d1,
90 5f0 6d2, 91 5f2 6d1, 92 5f3 6d1, 93 5f4 6d1, 96 5f7 6d1, 103 6d0 7p1
"""
"""Atomic numbers, and subshells whose occupations deviate from Madelung's order."""


def _exceptions(number: int) -> Configuration:
    """Occupations of an atom that deviate from Madelung's order."""
    for line in _EXCEPTIONS.split(","):
        atom, *subshells = line.split()
        if int(atom) == number:
            return {(int(s[0]), "spdf".index(s[1])): float(s[2:]) for s in subshells}
    return {}


def capacity(l: int) -> int:
    """Electrons of a full subshell."""
    return 2 * (2 * l + 1)


def configuration(number: int, charge: float = 0.0) -> Configuration:
    """Electrons of an atom or ion by subshell; ions lose electrons of the outermost subshell, or fill the open one."""
    subshells: Configuration = {}
    left = float(number)
    for n, l in _ORDER:
        subshells[n, l] = min(left, float(capacity(l)))
        left -= subshells[n, l]
    subshells |= _exceptions(number)
    return _ionise({nl: q for nl, q in subshells.items() if q > 0}, charge)


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


def electrons_by_momentum(subshells: Configuration) -> list[float]:
    """Number of electrons with l = 0, 1, 2, ..."""
    largest = max((l for _, l in subshells), default=0)
    return [sum(q for (_, l), q in subshells.items() if l == wanted) for wanted in range(largest + 1)]
