"""Description of a kernel: frozen and hashable."""

from __future__ import annotations

from dataclasses import dataclass

from cuanto.errors import InputError

MAX_L = 8
"""Highest angular momentum that is tested; the recurrences themselves have no limit."""

SCHEDULES = {
    "cpu": {"lane-per-quartet": "lane", "table": "table"},
    "cuda": {
        "quartet-per-thread": "thread",
        "group-per-quartet": "group",
        "block-per-integral": "integral_block",
        "block-per-quartet": "quartet_block",
    },
}
"""Public names of the schedules of each target, and their short names in the code; both are accepted."""
BLOCK_SCHEDULES = ("integral_block", "quartet_block")
CONSUMERS = ("store", "list", "digest", "gradient", "potential")
"""What a kernel's results are used for: a matrix of integrals, a list of quartets, J and K, a gradient, a potential."""
COULOMB = ("coulomb", "coulomb_erf")
"""Coulomb operators: 1/r, and erf(omega r)/r, which has recurrences of its own."""


def coulomb_operator(attenuated: bool, algorithm: str) -> str:
    """Name of the operator; McMurchie-Davidson kernels are used for both, with different records of the bras."""
    return "coulomb_erf" if attenuated and algorithm == "hgp" else "coulomb"


def schedule_name(given: str, target: str) -> str:
    """The short name of a schedule, or `auto`."""
    names = SCHEDULES[target]
    if given == "auto" or given in names.values():
        return given
    if given not in names:
        raise InputError(f"unknown schedule {given!r} for target {target}: choose {', '.join(('auto', *names))}")
    return names[given]


def long_name(schedule: str) -> str:
    """The public name of a schedule."""
    return next(name for names in SCHEDULES.values() for name, short in names.items() if short == schedule)


@dataclass(frozen=True)
class Shells:
    """One side of an integral: angular momenta, and for each whether it has solid harmonics (the default).

    `hermite`: the side is not a shell but all Hermite Gaussians of one charge distribution up to the order `l`.
    """

    l: tuple[int, ...]
    pure: tuple[bool, ...] = ()
    hermite: bool = False

    def __post_init__(self) -> None:
        pure = self.pure or (True,) * len(self.l)
        # s and p functions are the same in both forms.
        object.__setattr__(self, "pure", tuple(p or l < 2 for l, p in zip(self.l, pure, strict=True)))

    def __str__(self) -> str:
        if self.hermite:
            return f"t{self.l[0]}"
        return "".join("spdfghiklmno"[l] + ("" if p else "c") for l, p in zip(self.l, self.pure, strict=True))


@dataclass(frozen=True)
class KernelSpec:
    """A kernel of integrals over two sides: algorithm, schedule, derivative order and consumer.

    Schedules: `lane` (CPU, straight-line, one ket per SIMD lane), `table` (CPU, loops over index tables), `thread`
    (CUDA, straight-line, one ket per thread), `group` (CUDA, index tables, a block shares a few kets), and on CUDA a
    block for each contracted integral (`integral_block`) or for each contracted quartet of shells (`quartet_block`).
    `columns`: contraction columns that a thread sums at once.
    """

    operator: str
    bra: Shells
    ket: Shells
    algorithm: str
    schedule: str
    real: str = "double"
    columns: int = 1
    derivative: int = 0
    consumer: str = "store"

    def __post_init__(self) -> None:
        if self.consumer not in CONSUMERS:
            raise InputError(f"unknown consumer {self.consumer!r}: choose {', '.join(CONSUMERS)}")

    @property
    def target(self) -> str:
        """Language of the text: `cpu` or `cuda`."""
        return next(target for target, names in SCHEDULES.items() if self.schedule in names.values())

    @property
    def name(self) -> str:
        """A readable name, used for the entry point of straight-line kernels."""
        parts = [self.operator, self.bra, self.ket, self.algorithm, self.schedule, self.real, self.columns]
        parts += [f"d{self.derivative}"] if self.derivative else []
        parts += [self.consumer] if self.consumer != "store" else []
        return "_".join(str(x) for x in parts)
