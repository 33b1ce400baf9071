"""Energy terms: one file for each physical effect, with its energy and its contribution to the Fock matrix."""

from cuanto.terms.base import Term
from cuanto.terms.core import CoreHamiltonian
from cuanto.terms.core_potentials import CorePotentials
from cuanto.terms.coulomb import Coulomb
from cuanto.terms.dispersion import Dispersion
from cuanto.terms.exchange import Exchange
from cuanto.terms.exchange_correlation import ExchangeCorrelation
from cuanto.terms.external import EXTERNAL_OPERATORS, Surroundings
from cuanto.terms.nuclear_repulsion import NuclearRepulsion

__all__ = [
    "EXTERNAL_OPERATORS",
    "CoreHamiltonian",
    "CorePotentials",
    "Coulomb",
    "Dispersion",
    "Exchange",
    "ExchangeCorrelation",
    "NuclearRepulsion",
    "Surroundings",
    "Term",
]
