"""McMurchie-Davidson as plain loops on the CPU (`templates/md_loops_cpu.h`), without graphs or index tables."""

from __future__ import annotations

import numpy as np

from cuanto import tuning
from cuanto.kernels import abi
from cuanto.kernels.cost import BOYS_OPERATIONS, Cost, StageCost, cost
from cuanto.kernels.ir import Graph, Integrals, Stage
from cuanto.kernels.recurrences.head_gordon_pople import side_functions
from cuanto.kernels.recurrences.mcmurchie_davidson import bra_sweep, hermite_tuples, ket_sweep, monomials
from cuanto.kernels.schedule.table import HEADER, Program
from cuanto.kernels.spec import Shells

STRAIGHT_MOMENTUM = tuning.size("cpu", "integrals.straight_momentum")


def by_loops(operator: str, bra: Shells, ket: Shells, algorithm: str) -> bool:
    """Whether a class of four-centre integrals has momenta so high that its graph and tables would be too large."""
    wanted = operator == "coulomb" and algorithm == "md" and len(bra.l) == len(ket.l) == 2
    return wanted and sum(bra.l) + sum(ket.l) > STRAIGHT_MOMENTUM


def without_primitives(bra: Shells, ket: Shells) -> Integrals:
    """The integrals of a class with only the contracted stage; the primitive stage is the loops."""
    empty = Graph()
    outputs = (empty.zero,) * (monomials(bra) * monomials(ket))
    sweeps = (*ket_sweep(bra, ket), bra_sweep(bra, ket))
    return Integrals(Stage(empty, outputs), sweeps, 1, side_functions(bra), side_functions(ket))


def loop_program(bra: Shells, ket: Shells) -> Program:
    """A program without statements; the header ends with the angular momenta, encoded in base 16, plus one."""
    table = np.zeros(HEADER, dtype=np.int32)
    uniforms, slots = abi.bra_fields("coulomb"), abi.ket_fields(ket)
    table[[0, 2, 3, 5, 6, 7]] = HEADER, uniforms, slots, slots, uniforms, 1
    table[15] = 1 + sum(l << 4 * i for i, l in enumerate((*bra.l, *ket.l)))
    return Program(table, np.zeros(1), uniforms, slots, 1)


def loop_cost(integrals: Integrals, bra: Shells, ket: Shells) -> Cost:
    """Operations of the loops: R, the ket's transformation for every Hermite Gaussian of the bra, then the bra's."""
    L_bra, L_ket = sum(bra.l), sum(ket.l)
    n_bra, n_ket = len(hermite_tuples(L_bra)), len(hermite_tuples(L_ket))
    R = 2 * len(hermite_tuples(L_bra + L_ket)) * (L_bra + L_ket) // 4
    transform = n_bra * (n_ket + _transformation(ket)) + monomials(ket) * (n_bra + _transformation(bra))
    primitive = StageCost(R + transform, 0, 1, BOYS_OPERATIONS + 3 * (L_bra + L_ket), n_bra * monomials(ket))
    counted = cost(integrals)
    return Cost(primitive, counted.sweeps, counted.width, counted.bytes_read, counted.bytes_written)


def _transformation(side: Shells) -> int:
    """Operations of one transformation from Hermite Gaussians to monomials of a pair (`from_hermites`)."""
    la, lb = side.l
    total = 0
    for az in range(la + 1):
        for bz in range(lb + 1):
            left = la + lb - az - bz
            total += 2 * (left + 1) * (left + 2) // 2 * (az + bz + 1)
            for ay in range(la - az + 1):
                for by in range(lb - bz + 1):
                    total += 2 * (left - ay - by + 1) * (ay + by + 2)
    return total
