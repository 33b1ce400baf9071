"""Ground-state configurations of atoms: electrons in (n, l) subshells.

Madelung's order with the exceptions of the observed ground states: A. Kramida et al., NIST Atomic Spectra Database,
doi:10.18434/T4W30F (elements beyond Lr: predicted, after Madelung).
"""

from __future__ import annotations

Configuration = dict[tuple[int, int], float]

_ORDER = sorted(((n, l) for n in range(1, 9) for l in range(min(n, 4))), key=lambda nl: (nl[0] + nl[1], nl[0]))

LANTHANIDES = range(57, 72)
FILLED_4D, FILLED_4F = 46, 60
"""Electrons up to these subshells of lanthanides."""
NOBLE_GASES = (2, 10, 18, 36, 54, 86)

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


def outside_core(subshells: Configuration, number: int, core_electrons: int) -> list[Configuration]:
    """Possible configurations of the electrons that a core potential of so many electrons leaves to an element.

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
