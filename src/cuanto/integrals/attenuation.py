"""The attenuated operator erf(omega r)/r, for all kernels of the plain one.

erf(omega r)/r is what 1/r becomes when one of two point charges is spread as exp(-omega^2 r^2). Two distributions with
exponents p and q then meet with 1/rho = 1/p + 1/q + 1/omega^2 instead of 1/p + 1/q: it is as if the bra had an exponent
p' with 1/p' = 1/p + 1/omega^2, and sqrt(p'/p) is left over as a factor (P. M. W. Gill and R. D. Adamson, Chem. Phys.
Lett. 261, 105 (1996), doi:10.1016/0009-2614(96)00931-1; R. Ahlrichs, Phys. Chem. Chem. Phys. 8, 3072 (2006),
doi:10.1039/b605188j).

So omega is no argument of any kernel: it is in the records of the bras. Kets stay as they are. McMurchie-Davidson
kernels use p only where the distributions meet and serve unchanged; those of Head-Gordon and Pople use p'/p as well and
are made anew, as the operator `coulomb_erf`.
"""

from __future__ import annotations

from dataclasses import replace

from cuanto.errors import InputError
from cuanto.integrals.batches import BraBatch
from cuanto.integrals.segments import Array


def smearing(omega: float | None) -> float:
    """1/omega^2: nothing for the plain operator, which is the limit of large omega."""
    if omega is None:
        return 0.0
    try:
        inverse = 1.0 / float(omega)
    except (TypeError, ValueError, ZeroDivisionError):
        inverse = -1.0
    if not inverse >= 0.0:
        raise InputError(
            f"omega must be a positive number (1/Bohr), or None for the plain operator: {omega!r} was given"
        )
    return inverse * inverse


def met_exponents(p: Array, omega: float | None) -> Array:
    """p' of exponents p."""
    return p / (1.0 + smearing(omega) * p)


def attenuated(bra: BraBatch, omega: float | None) -> BraBatch:
    """The same bras for the attenuated operator. Kets of pairs have to be made before, from the bras as they were."""
    if omega is None:
        return bra
    p = bra.record[:, 0]
    record = bra.record.copy()
    record[:, 0] = met_exponents(p, omega)
    factor = (record[:, 0] / p) ** 0.5
    return replace(bra, record=record, coefficient=bra.coefficient * factor[:, None], attenuated=True, device=None)
