"""The attenuated operator erf(omega r)/r, with the kernels of 1/r.

1/r becomes erf(omega r)/r when one of two point charges is smeared as exp(-omega^2 r^2). Two distributions with
exponents p and q then interact with 1/rho = 1/p + 1/q + 1/omega^2 instead of 1/p + 1/q, as if the bra had an exponent
p' with 1/p' = 1/p + 1/omega^2, and a factor sqrt(p'/p) (P. M. W. Gill and R. D. Adamson, Chem. Phys.
Lett. 261, 105 (1996), doi:10.1016/0009-2614(96)00931-1; R. Ahlrichs, Phys. Chem. Chem. Phys. 8, 3072 (2006),
doi:10.1039/b605188j).

So omega is not an argument of any kernel: it is part of the records of the bras, and kets do not change.
McMurchie-Davidson kernels are used unchanged, since p enters only the interaction; those of Head-Gordon and Pople
also use p'/p and exist separately, as the operator `coulomb_erf`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cuanto.arrays import Array
from cuanto.errors import InputError
from cuanto.integrals.batches import BraBatch


def smearing(omega: float | None) -> float:
    """1/omega^2, or zero for 1/r, the limit of large omega."""
    if omega is None:
        return 0.0
    try:
        inverse = 1.0 / float(omega)
    except (TypeError, ValueError, ZeroDivisionError):
        inverse = -1.0
    if not inverse >= 0.0:
        raise InputError(f"omega must be a positive number (1/Bohr), or None for the operator 1/r: {omega!r} was given")
    return inverse * inverse


def attenuated_exponents(p: Array, omega: float | None) -> Array:
    """Exponents p' with 1/p' = 1/p + 1/omega^2."""
    return p / (1.0 + smearing(omega) * p)


def attenuate(bra: BraBatch, omega: float | None) -> BraBatch:
    """Convert bras to the attenuated operator; kets of pairs are made from the original bras."""
    if omega is None:
        return bra
    p = bra.record[:, 0]
    record = bra.record.copy()
    record[:, 0] = attenuated_exponents(p, omega)
    factor = np.sqrt(record[:, 0] / p)
    coefficient = bra.coefficient * factor[:, None]
    device = None if bra.device is None else {**bra.device, "bra_record": record, "bra_coefficient": coefficient}
    return replace(bra, record=record, coefficient=coefficient, attenuated=True, device=device)
