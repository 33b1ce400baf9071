"""Four-component Dirac-Hartree-Fock for atoms in kinetically balanced Gaussians; see docs/theory/dirac_fock.md.

    basis = AtomBasis.by_momentum([even_tempered(0.1, 1.9, 18)])
    atom = Atom(Nucleus(2, "gaussian"), basis, Occupation(closed=(1,)))
    result = solve(atom)                                    # AtomResult: energy, parts, virial, spinors
    result = solve(atom, ScfSettings(c=1e5), start=result)  # from those spinors
Two-electron integrals depend on the exponents only: a `Repulsion(basis)` given to `solve(..., repulsion=...)` can be
reused when c, the nucleus or the occupation changes. Between programs: `SavedSpinors.of(result).save(path)`, then
`solve(..., start=SavedSpinors.load(path))`.
"""

from cuanto.atomic.atom import (
    SPEED_OF_LIGHT,
    Atom,
    AtomBasis,
    AtomIteration,
    AtomResult,
    ScfSettings,
    Spinor,
)
from cuanto.atomic.configuration import Occupation
from cuanto.atomic.guess import SavedSpinors
from cuanto.atomic.nucleus import MODELS, Nucleus
from cuanto.atomic.repulsion import Repulsion
from cuanto.atomic.solve import solve
from cuanto.atomic.species import SPECIES, Species
from cuanto.atomic.wtbs import even_tempered, well_tempered
from cuanto.system.nuclear_sizes import mass_number, rms_radius

__all__ = [
    "MODELS",
    "SPECIES",
    "SPEED_OF_LIGHT",
    "Atom",
    "AtomBasis",
    "AtomIteration",
    "AtomResult",
    "Nucleus",
    "Occupation",
    "Repulsion",
    "SavedSpinors",
    "ScfSettings",
    "Species",
    "Spinor",
    "even_tempered",
    "mass_number",
    "rms_radius",
    "solve",
    "well_tempered",
]
