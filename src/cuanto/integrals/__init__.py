"""One- to four-centre integrals over Gaussian shells."""

from cuanto.integrals.api import (
    dipole,
    eri_2c,
    eri_3c,
    eri_4c,
    kinetic,
    nuclear,
    one_electron,
    overlap,
    overlap_and_kinetic,
    quadrupole,
)

__all__ = [
    "dipole",
    "eri_2c",
    "eri_3c",
    "eri_4c",
    "kinetic",
    "nuclear",
    "one_electron",
    "overlap",
    "overlap_and_kinetic",
    "quadrupole",
]
