"""The GPU's kernel for the gradient of exact exchange: one text for each class of quartets, whatever its momenta."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import prod

from cuanto.kernels import abi
from cuanto.kernels.abi import declared
from cuanto.kernels.build import LIST_THREADS, Skeleton, integral_source
from cuanto.kernels.emit import function, straight_line
from cuanto.kernels.passes import live_values
from cuanto.kernels.recurrences.components import ORIGIN, Powers, cheapest_axis, powers, raised
from cuanto.kernels.recurrences.hermite_coulomb import hermite_count
from cuanto.kernels.recurrences.hermite_expansion import expansion
from cuanto.kernels.recurrences.hermite_forces import forces, hermite_integrals, operations
from cuanto.kernels.recurrences.mcmurchie_davidson import hermite_tuples
from cuanto.kernels.text import Source

WARP = 32
SHARED_TARGET = 48 * 1024
"""Bytes of shared memory of a block, if a warp needs no more."""
EXPAND_LIMIT = 20_000
"""Estimated operations of an expansion from which loops take the place of straight-line code: about (df|."""
STRAIGHT_LIMIT = 6000
"""Operations up to which a quartet has one thread."""
MOST_PRODUCTS, TOO_MANY = 400, 10**9
"""Products of four functions from which operations are not counted, and what their number is taken for."""
REGISTER_PRODUCTS = 32
"""Products of four functions whose densities may stay in registers."""
REGISTER_ORDER = 4
"""Order up to which R stays in registers."""
LIVE_LIMIT = 230
"""Live values up to which a quartet has one thread: beyond, the compiler keeps everything in memory."""
THREADS = 64
MOST_EACH = 4
"""Products of the ket's functions of a thread at most."""
ARGUMENTS = declared(
    "const int* list, const int* count, const int* bra_first, const REAL* bra_record, const REAL* bra_coefficient, "
    "int columns, const REAL* bra_shell, const int* ket_first, const REAL* ket_record, const REAL* ket_shell, "
    "const REAL* boys_table, double cutoff, const int* bra_ao, const int* ket_ao, const int* bra_pair, "
    "const int* ket_pair, int same, const int* place, const int* atom, INDEX atoms, INDEX size, INDEX densities, "
    "const double* D, double* gradient, int copies"
)
Momenta = tuple[int, int]


def workers(products: int) -> tuple[int, int, int]:
    """Threads for a quartet whose ket has this many products of functions, products of a thread, and rounds.

    Threads of a warp that would be idle count as lost, and so does a second round, which builds R again.
    """
    best, chosen = 0.0, (1, 1, products)
    for rounds in range(1, products + 1):
        for each in range(1, MOST_EACH + 1):
            threads = -(-products // (rounds * each))
            if threads > WARP:
                continue
            busy = (WARP // threads * threads) / WARP * products / (rounds * each * threads)
            value = busy / (rounds * (1.0 + 0.1 * (each - 1)))
            if value > best:
                best, chosen = value, (threads, each, rounds)
    return chosen


def shared_bytes(bra: Momenta, ket: Momenta, real: str) -> int:
    """Shared memory of a block."""
    if straight(bra, ket):
        return _straight_shared(sum(bra) + sum(ket) + 1) * (8 if real == "double" else 4)
    return block_warps(bra, ket, real) * _warp_bytes(bra, ket, real)


def _warp_bytes(bra: Momenta, ket: Momenta, real: str) -> int:
    """Shared memory of a warp, for two orders of R of each quartet."""
    threads, _, _ = workers(len(powers(ket[0])) * len(powers(ket[1])))
    return WARP // threads * (2 * (sum(bra) + sum(ket) + 2) ** 3 + 1) * (8 if real == "double" else 4)


def block_warps(bra: Momenta, ket: Momenta, real: str) -> int:
    """Warps of a block."""
    return min(LIST_THREADS // WARP, max(1, SHARED_TARGET // _warp_bytes(bra, ket, real)))


def orientation(one: Momenta, other: Momenta) -> tuple[Momenta, Momenta]:
    """Which of two pairs is the bra: straight-line code is shorter that way, else the bra has the higher momenta."""
    low, high = sorted((one, other), key=lambda l: (l[0] + l[1], l))
    return min(((high, low), (low, high)), key=lambda pair: (not straight(*pair), class_operations(*pair)))


def straight(bra: Momenta, ket: Momenta) -> bool:
    """Whether a thread evaluates a quartet by straight-line code."""
    count = class_operations(bra, ket)
    return count <= STRAIGHT_LIMIT and live_values(forces(bra, ket), by_number=True) <= LIVE_LIMIT


@cache
def class_operations(bra: Momenta, ket: Momenta) -> int:
    """Operations of a primitive quartet in straight-line code; a high number, if far too many to count."""
    if len(powers(bra[0])) * len(powers(bra[1])) * len(powers(ket[0])) * len(powers(ket[1])) > MOST_PRODUCTS:
        return TOO_MANY
    return operations(forces(bra, ket))


@cache
def exchange_force_source(bra: Momenta, ket: Momenta, real: str) -> Source:
    """Forces of a list of quartets of a class."""
    if straight(bra, ket):
        return _straight_source(bra, ket, real)
    return _shared_source(bra, ket, real)


def _name(bra: Momenta, ket: Momenta) -> str:
    return "exchange_force_" + "_".join("spdfghikl"[a] + "spdfghikl"[b] for a, b in (bra, ket))


def _straight_source(bra: Momenta, ket: Momenta, real: str) -> Source:
    """One thread per quartet."""
    order, products = sum(bra) + sum(ket) + 1, [len(powers(l)) for l in (*bra, *ket)]

    def read(record: str, index: int) -> str:
        return f"R[{index} * R_STEP]" if record == "R" else f"{record}[{index}]"

    build = straight_line(hermite_integrals(order), read, lambda n, name: f"R[{n} * R_STEP] = {name};")
    add = straight_line(forces(bra, ket), read, lambda n, name: f"out[{n}] = {name};", by_number=True)
    records = ", ".join(f"const REAL* {name}" for name in ("bra", "ket", "gamma"))
    functions = function("FN void build_r(const REAL* X, const REAL* base, REAL* R)", build)
    functions += function(f"FN void forces({records}, HERMITE_POINTER R, REAL* out)", add)
    macros: dict[str, object] = dict(zip(("NA", "NB", "NC", "ND"), products, strict=True))
    macros |= {"ORDER": order, "BRA_FIELDS": abi.COULOMB_BRA, "KET_FIELDS": abi.PAIR_KET}
    macros["GAMMA_LOOP"] = "UNROLL" if prod(products) <= REGISTER_PRODUCTS else "NO_UNROLL"
    macros |= {"HERMITES": hermite_count(order), "SHARED_R": int(_straight_shared(order) > 0)}
    macros["R_STEP"] = THREADS if _straight_shared(order) else 1
    macros["HERMITE_POINTER"] = "const volatile REAL*" if _straight_shared(order) else "const REAL*"
    skeleton = Skeleton(("exchange_force_thread.cuh",), ARGUMENTS, THREADS)
    return integral_source(_name(bra, ket), "cuda", real, skeleton, macros, functions)


def _straight_shared(order: int) -> int:
    """Numbers of R in the shared memory of a block; 0 if they stay in registers."""
    return THREADS * hermite_count(order) if order > REGISTER_ORDER else 0


def _shared_source(bra: Momenta, ket: Momenta, real: str) -> Source:
    """Some threads for a quartet."""
    order = sum(bra) + sum(ket) + 1
    products = len(powers(ket[0])) * len(powers(ket[1]))
    threads, each, rounds = workers(products)
    loops = _expansion_operations(bra) > EXPAND_LIMIT
    macros: dict[str, object] = {
        "EXPAND_LOOPS": int(loops),
        "LA": bra[0],
        "LB": bra[1],
        "LC": ket[0],
        "LD": ket[1],
        "NA": len(powers(bra[0])),
        "NB": len(powers(bra[1])),
        "ND": len(powers(ket[1])),
        "ORDER": order,
        "SIDE": order + 1,
        "CUBE": (order + 1) ** 3,
        "BRA_ORDER": sum(bra),
        "KET_ORDER": sum(ket),
        "KET_PRODUCTS": products,
        "BRA_PRODUCTS": len(powers(bra[0])) * len(powers(bra[1])),
        "BRA_HERMITES": hermite_count(sum(bra)),
        "BRA_SLOPES": hermite_count(sum(bra) - 1),
        "WORKERS": threads,
        "FUNCTIONS_EACH": each,
        "ROUNDS": rounds,
        "GROUPS": WARP // threads,
        "BRA_FIELDS": abi.COULOMB_BRA,
        "KET_FIELDS": abi.PAIR_KET,
    }
    expand = _expand_tables(bra) if loops else _expand(bra)
    functions = "\n".join([_tables(order, ket), expand, _contract(sum(bra), order + 1)])
    skeleton = Skeleton(("exchange_force.cuh",), ARGUMENTS, WARP * block_warps(bra, ket, real))
    return integral_source(_name(bra, ket), "cuda", real, skeleton, macros, functions)


def _tables(order: int, ket: Momenta) -> str:
    """Place, axis to lower and power left of every entry of R; powers of the monomials of c and d."""
    entries = []
    for t in hermite_tuples(order):
        axis = cheapest_axis(t) if t != ORIGIN else 0
        power = t[axis] - 1 if t != ORIGIN else 0
        entries.append(_offset(t, order + 1) | axis << 16 | power << 18)
    return _table("hermite", entries) + _powers("c", ket[0]) + _powers("d", ket[1])


def _table(name: str, values: Sequence[int]) -> str:
    return f"TABLE int {name}[] = {{{', '.join(map(str, values))}}};\n"


def _powers(shell: str, l: int) -> str:
    return _table(f"powers_{shell}", [n for a in powers(l) for n in a])


def _expansion_operations(bra: Momenta) -> int:
    """Four results for each product of functions and each Hermite Gaussian of at most its order."""
    return 4 * len(powers(bra[0])) * len(powers(bra[1])) * hermite_count(sum(bra))


def _expand_tables(bra: Momenta) -> str:
    """Powers of the monomials of a and b, and the number of each (t, u, v)."""
    side = sum(bra) + 1
    number = {_offset(t, side): n for n, t in enumerate(hermite_tuples(sum(bra)))}
    numbers = [number.get(n, 0) for n in range(side**3)]
    return _powers("a", bra[0]) + _powers("b", bra[1]) + _table("number", numbers)


def _offset(t: Powers, side: int) -> int:
    return (t[0] * side + t[1]) * side + t[2]


def _expand(bra: Momenta) -> str:
    """`expand(pair, gamma, h, k)`"""
    stage, count = expansion(*bra), hermite_count(sum(bra))

    def write(n: int, name: str) -> str:
        return f"h[{n}] = {name};" if n < count else f"k[{n - count}] = {name};"

    lines = straight_line(stage, lambda record, index: f"{record}[{index}]", write)
    return function("FN void expand(const REAL* pair, const REAL* gamma, REAL* h, REAL* k)", lines)


def _contract(order: int, side: int) -> str:
    """`contract(R, h, k, energy, total, bra)`: sums over t of h_t R_t, h_t R_(t + x) and k_xt R_t."""
    number = {t: i for i, t in enumerate(hermite_tuples(order))}
    lines = []
    for t in hermite_tuples(order + 1):
        found = []
        if t in number:
            found.append(f"energy = fma(h[{number[t]}], r, energy);")
        found += [f"total[{x}] = fma(h[{number[raised(t, x, -1)]}], r, total[{x}]);" for x in range(3) if t[x]]
        if sum(t) < order:
            found += [f"bra[{x}] = fma(k[{x * hermite_count(order - 1) + number[t]}], r, bra[{x}]);" for x in range(3)]
        lines.append(f"{{ const REAL r = R[{_offset(t, side)}]; {' '.join(found)} }}")
    head = "FN void contract(const REAL* R, const REAL* h, const REAL* k, REAL& energy, REAL* total, REAL* bra)"
    return function(head, lines)
