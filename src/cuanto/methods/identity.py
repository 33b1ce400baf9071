"""Keys of results in journals: a hash of everything that a result depends on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from cuanto.basis import Basis
from cuanto.basis.library import is_file
from cuanto.options import OPTIONS
from cuanto.system import Molecule


def result_key(molecule: Molecule, method: str | None, basis: Any, keywords: Mapping[str, Any], *more: Any) -> str:
    """Key of a result of `cuanto.energy`, including the version of cuanto; `more`: further plain data.

    Options such as `backend` and `max_memory` are not part of it: a run may be continued on another machine.
    """
    what = {name: value for name, value in keywords.items() if OPTIONS[name].affects_result}
    sets = [_content(basis), _content(what.pop("auxbasis", None))]
    parts = [molecule.symbols, molecule.charge, molecule.multiplicity, method, *sets, what, *more]
    version = import_module("cuanto").__version__
    text = json.dumps([version, *parts], sort_keys=True, default=_plain)
    return hashlib.sha256(text.encode() + molecule.R_ax.tobytes()).hexdigest()[:32]


def _content(basis: Any) -> Any:
    """The name of a basis, or a hash of its file or functions."""
    if isinstance(basis, Basis):
        numbers = [(one.atom, one.l, one.pure, one.exponents, one.coefficients) for one in basis.shells]
        return hashlib.sha256(json.dumps(numbers, default=_plain).encode()).hexdigest()
    if isinstance(basis, Mapping):
        return {str(element): _content(one) for element, one in basis.items()}
    if basis is None or not is_file(basis):
        return basis
    try:
        return hashlib.sha256(Path(basis).expanduser().read_bytes()).hexdigest()
    except OSError:
        return str(basis)  # reported when it is used


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else repr(value)
