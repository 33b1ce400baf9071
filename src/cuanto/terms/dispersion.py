"""London dispersion by D3(BJ) and D4, from the packages `dftd3` and `dftd4`; constant during the SCF.

S. Grimme, S. Ehrlich, L. Goerigk, J. Comput. Chem. 32, 1456 (2011), doi:10.1002/jcc.21759 (D3 with rational damping,
two-body terms); E. Caldeweyher et al., J. Chem. Phys. 150, 154122 (2019), doi:10.1063/1.5090222 (D4).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuanto.errors import InputError, import_optional
from cuanto.system import Molecule
from cuanto.terms.base import Term

PACKAGES = {"d3bj": "dftd3", "d4": "dftd4"}
LAST_ELEMENT = {"d3bj": 94, "d4": 86}
"""Highest atomic number of the published parameters."""

_SAME = ["hf", "blyp", "pbe", "revpbe", "pw91", "tpss", "scan", "r2scan", "b3lyp", "pbe0", "tpssh", "cam-b3lyp"]
_BOTH = {**dict(zip(_SAME, _SAME, strict=True)), "bp86": "bp", "b3lyp5": "b3lyp", "bhandhlyp": "bhlyp"}
METHODS = {"d3bj": _BOTH, "d4": {**_BOTH, "m06-l": "m06l"}}
"""Our names of functionals -> the packages' names of their damping parameters. The other functionals were never
parametrised (M06-2X, LDA), or only in a variant with a similar name (omega-B97X)."""


class Dispersion(Term):
    """Energy (Hartree) and gradient_ax (Hartree/Bohr) of all atoms but ghosts; independent of the density."""

    name, linear = "dispersion", True

    def __init__(self, molecule: Molecule, functional: str, kind: str) -> None:
        parameters = _parameters_name(functional, kind)
        atoms = np.flatnonzero(~molecule.nuclei.ghosts)
        heavy = int(molecule.numbers[atoms].max())
        if heavy > LAST_ELEMENT[kind]:
            raise InputError(f"{kind} has parameters up to element {LAST_ELEMENT[kind]}, the molecule has {heavy}")
        found = _result(molecule, atoms, parameters, kind)
        self.energy = float(found["energy"])
        self.gradient_ax: NDArray[np.float64] = np.zeros((molecule.natom, 3))
        self.gradient_ax[atoms] = found["gradient"]

    def fock(self, D_spq: Any, C_spi: Any | None) -> tuple[float, None]:
        """The constant energy, without a Fock matrix."""
        return self.energy, None

    def gradient(self, D_spq: Any, C_spi: Any | None) -> NDArray[np.float64]:
        """The gradient, which does not depend on the density."""
        return self.gradient_ax


def _parameters_name(functional: str, kind: str) -> str:
    if kind not in PACKAGES:
        raise InputError(f"unknown dispersion correction {kind!r}: choose {' or '.join(PACKAGES)}")
    if functional not in METHODS[kind]:
        known = ", ".join(METHODS[kind])
        raise InputError(f"{kind} has no parameters for {functional!r}: choose one of {known}")
    return METHODS[kind][functional]


def _result(molecule: Molecule, atoms: NDArray[np.int64], parameters: str, kind: str) -> dict[str, Any]:
    package = PACKAGES[kind]
    interface = import_optional(f"{package}.interface", f"{kind} needs the package {package}: `pip install {package}`")
    numbers, positions = molecule.numbers[atoms], molecule.R_ax[atoms]
    if kind == "d3bj":
        model = interface.DispersionModel(numbers, positions)
        damping = interface.RationalDampingParam(method=parameters, atm=False)
    else:
        model = interface.DispersionModel(numbers, positions, charge=float(molecule.charge))
        damping = interface.DampingParam(method=parameters)
    found: dict[str, Any] = model.get_dispersion(damping, grad=True)
    return found
