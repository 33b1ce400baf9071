"""cuanto: an electronic-structure engine whose compute kernels are generated.

Public names are resolved on first use (PEP 562), so that ``import cuanto`` is fast and needs neither a compiler nor a
GPU.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cuanto import basis, core_potentials, coulomb, errors, integrals, system, units
    from cuanto.api import energy, gradient
    from cuanto.basis import Basis
    from cuanto.batch import energies
    from cuanto.interfaces.compute import compute
    from cuanto.interfaces.read import read
    from cuanto.methods import Result
    from cuanto.motion.dynamics import dynamics
    from cuanto.motion.frequencies import frequencies
    from cuanto.motion.optimize import OptimizationResult, optimize
    from cuanto.motion.vibrations import Vibrations
    from cuanto.system import Molecule

__version__ = "0.1.0"

__all__ = [
    "Basis",
    "Molecule",
    "OptimizationResult",
    "Result",
    "Vibrations",
    "__version__",
    "basis",
    "compute",
    "core_potentials",
    "coulomb",
    "dynamics",
    "energies",
    "energy",
    "errors",
    "frequencies",
    "gradient",
    "integrals",
    "optimize",
    "read",
    "system",
    "units",
]

_SUBMODULES = ("basis", "core_potentials", "coulomb", "errors", "integrals", "system", "units")
_HOME = {
    "Basis": "cuanto.basis",
    "Molecule": "cuanto.system",
    "OptimizationResult": "cuanto.motion.optimize",
    "Result": "cuanto.methods",
    "Vibrations": "cuanto.motion.vibrations",
    "compute": "cuanto.interfaces.compute",
    "dynamics": "cuanto.motion.dynamics",
    "energies": "cuanto.batch",
    "energy": "cuanto.api",
    "frequencies": "cuanto.motion.frequencies",
    "gradient": "cuanto.api",
    "optimize": "cuanto.motion.optimize",
    "read": "cuanto.interfaces.read",
}


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return import_module(f"cuanto.{name}")
    if name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'cuanto' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
