"""Self-consistent field: a generator of states with exchangeable parts."""

from cuanto.scf.accelerator import Accelerator
from cuanto.scf.convergence import Criteria
from cuanto.scf.diagonalise import Diagonaliser, Full
from cuanto.scf.loop import Density, Problem, iterate
from cuanto.scf.orthogonal import Frame, make_frame
from cuanto.scf.pseudodiagonalise import Pseudo
from cuanto.scf.state import Orbitals, State

__all__ = [
    "Accelerator",
    "Criteria",
    "Density",
    "Diagonaliser",
    "Frame",
    "Full",
    "Orbitals",
    "Problem",
    "Pseudo",
    "State",
    "iterate",
    "make_frame",
]
