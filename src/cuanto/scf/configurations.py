"""Ground-state configurations of atoms: electrons in (n, l) subshells.

Madelung's order with the exceptions of the observed ground states: A. Kramida et al., NIST Atomic Spectra Database,
doi:10.18434/T4W30F (elements beyond Lr: predicted, after Madelung).
"""

from __future__ import annotations

Configuration = dict[tuple[int, int], float]

_ORDER = sorted(((n, l) for n in range(1, 9) for l in range(min(n, 4))), key=lambda nl: (nl[0] + nl[1], nl[0]))

# Atomic number: occupations of subshells that deviate from Madelung's order.
_EXCEPTIONS: dict[int, Configuration] = {
    24: {(4, 0): 1, (3, 2): 5},
    29: {(4, 0): 1, (3, 2): 10},
    41: {(5, 0): 1, (4, 2): 4},
    42: {(5, 0): 1, (4, 2): 5},
    44: {(5, 0): 1, (4, 2): 7},
    45: {(5, 0): 1, (4, 2): 8},
    46: {(5, 0): 0, (4, 2): 10},
    47: {(5, 0): 1, (4, 2): 10},
    57: {(4, 3): 0, (5, 2): 1},
    58: {(4, 3): 1, (5, 2): 1},
    64: {(4, 3): 7, (5, 2): 1},
    78: {(6, 0): 1, (5, 2): 9},
    79: {(6, 0): 1, (5, 2): 10},
    89: {(5, 3): 0, (6, 2): 1},
    90: {(5, 3): 0, (6, 2): 2},
    91: {(5, 3): 2, (6, 2): 1},
    92: {(5, 3): 3, (6, 2): 1},
    93: {(5, 3): 4, (6, 2): 1},
    96: {(5, 3): 7, (6, 2): 1},
    103: {(6, 2): 0, (7, 1): 1},
}


def capacity(l: int) -> int:
    """Electrons of a full subshell."""
    return 2 * (2 * l + 1)


def configuration(number: int, charge: float = 0.0) -> Configuration:
    """Electrons of an atom or ion by subshell; ions lose electrons of the outermost subshell, or fill the open one."""
    held: Configuration = {}
    left = float(number)
    for n, l in _ORDER:
        held[n, l] = min(left, float(capacity(l)))
        left -= held[n, l]
    held |= _EXCEPTIONS.get(number, {})
    return _charged({nl: q for nl, q in held.items() if q > 0}, charge)


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
