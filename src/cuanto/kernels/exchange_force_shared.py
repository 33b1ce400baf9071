"""The kernel of exchange forces for high angular momenta: some threads of a warp share a quartet."""

from __future__ import annotations

from collections.abc import Sequence

from cuanto.kernels import abi
from cuanto.kernels.abi import parse_arguments
from cuanto.kernels.build import LIST_THREADS, Skeleton, integral_source
from cuanto.kernels.emit import function, straight_line
from cuanto.kernels.recurrences.components import ORIGIN, Powers, cheapest_axis, powers, shift_power
from cuanto.kernels.recurrences.hermite_coulomb import hermite_count
from cuanto.kernels.recurrences.hermite_expansion import expansion
from cuanto.kernels.recurrences.mcmurchie_davidson import hermite_tuples
from cuanto.kernels.text import Source

WARP = 32
SHARED_TARGET = 48 * 1024
"""Bytes of shared memory of a block, if a warp needs no more."""
EXPAND_LIMIT = 20_000
"""Estimated operations of an expansion above which loops replace straight-line code; bras from about (fd| have more."""
MAX_EACH = 2
"""Maximum number of products of the ket's functions per thread, as long as a warp is large enough."""
ARGUMENTS = parse_arguments(
    "const int* list, const int* count, const int* bra_first, const REAL* bra_record, const REAL* bra_coefficient, "
    "int columns, const REAL* bra_shell, const int* ket_first, const REAL* ket_record, const REAL* ket_shell, "
    "const REAL* boys_table, double cutoff, const int* bra_ao, const int* ket_ao, const int* bra_pair, "
    "const int* ket_pair, int same, const int* place, const int* atom, INDEX atoms, INDEX size, INDEX densities, "
    "const double* D, double* sums, int copies, REAL* scratch, INDEX scratch_stride"
)
Momenta = tuple[int, int]
NAMES = "spdfghikl"


def kernel_name(bra: Momenta, ket: Momenta) -> str:
    """Name of the kernel of a class."""
    return "exchange_force_" + "_".join(NAMES[a] + NAMES[b] for a, b in (bra, ket))


def products(pair: Momenta) -> int:
    """Products of the monomials of both shells."""
    return len(powers(pair[0])) * len(powers(pair[1]))


def workers(products: int) -> tuple[int, int, int]:
    """Threads per quartet, products per thread, and rounds, for a ket with this number of products of functions.

    The choice with the fewest idle threads and the fewest rounds, each of which builds R again.
    """
    best, chosen = 0.0, (1, 1, products)
    for rounds in range(1, products + 1):
        for each in range(1, MAX_EACH + 1):
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
    return _block_warps(bra, ket, real) * _warp_bytes(bra, ket, real)


def _warp_bytes(bra: Momenta, ket: Momenta, real: str) -> int:
    """Shared memory of a warp, for two orders of R of each quartet."""
    threads, _, _ = workers(products(ket))
    return WARP // threads * (2 * (sum(bra) + sum(ket) + 2) ** 3 + 1) * (8 if real == "double" else 4)


def _block_warps(bra: Momenta, ket: Momenta, real: str) -> int:
    """Warps of a block."""
    return min(LIST_THREADS // WARP, max(1, SHARED_TARGET // _warp_bytes(bra, ket, real)))


def shared_source(bra: Momenta, ket: Momenta, real: str, in_scratch: bool = False) -> Source:
    """Forces of a list of quartets, each evaluated by some threads; `in_scratch`: R is in global memory."""
    order = sum(bra) + sum(ket) + 1
    threads, each, rounds = workers(products(ket))
    loops = _expansion_operations(bra) > EXPAND_LIMIT
    macros: dict[str, object] = {
        "EXPAND_LOOPS": int(loops),
        "IN_SCRATCH": int(in_scratch),
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
        "KET_PRODUCTS": products(ket),
        "BRA_PRODUCTS": products(bra),
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
    skeleton = Skeleton(("exchange_force.cuh",), ARGUMENTS, WARP * _block_warps(bra, ket, real))
    return integral_source(kernel_name(bra, ket), "cuda", real, skeleton, macros, functions)


def _tables(order: int, ket: Momenta) -> str:
    """Position, axis to lower and remaining power of every entry of R; powers of the monomials of c and d."""
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
    """Estimated operations of an expansion: four results for each product of functions and each Hermite Gaussian."""
    return 4 * products(bra) * hermite_count(sum(bra))


def _expand_tables(bra: Momenta) -> str:
    """Powers of the monomials of a and b, and the number of each (t, u, v)."""
    side = sum(bra) + 1
    number = {_offset(t, side): n for n, t in enumerate(hermite_tuples(sum(bra)))}
    numbers = [number.get(n, 0) for n in range(side**3)]
    return _powers("a", bra[0]) + _powers("b", bra[1]) + _table("number", numbers)


def _offset(t: Powers, side: int) -> int:
    return (t[0] * side + t[1]) * side + t[2]


def _expand(bra: Momenta) -> str:
    """Text of the function `expand(pair, gamma, h, k)`."""
    stage, count = expansion(*bra), hermite_count(sum(bra))

    def write(n: int, name: str) -> str:
        return f"h[{n}] = {name};" if n < count else f"k[{n - count}] = {name};"

    lines = straight_line(stage, lambda record, index: f"{record}[{index}]", write)
    return function("FN void expand(const REAL* pair, const REAL* gamma, REAL* h, REAL* k)", lines)


def _contract(order: int, side: int) -> str:
    """Text of the function `contract(R, h, k, energy, total, bra)`: sums over t of h_t R_t, h_t R_(t + x), k_xt R_t."""
    number = {t: i for i, t in enumerate(hermite_tuples(order))}
    lines = []
    for t in hermite_tuples(order + 1):
        found = []
        if t in number:
            found.append(f"energy = fma(h[{number[t]}], r, energy);")
        found += [f"total[{x}] = fma(h[{number[shift_power(t, x, -1)]}], r, total[{x}]);" for x in range(3) if t[x]]
        if sum(t) < order:
            found += [f"bra[{x}] = fma(k[{x * hermite_count(order - 1) + number[t]}], r, bra[{x}]);" for x in range(3)]
        lines.append(f"{{ const REAL r = R[{_offset(t, side)}]; {' '.join(found)} }}")
    head = "FN void contract(const REAL* R, const REAL* h, const REAL* k, REAL& energy, REAL* total, REAL* bra)"
    return function(head, lines)
