"""Results from files, as the objects that `cuanto.energy` gives: QCSchema (JSON) and checkpoints (HDF5)."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from cuanto.backends.base import get_backend
from cuanto.errors import CuantoError, InputError
from cuanto.interfaces.versions import as_first
from cuanto.interfaces.wavefunction import read_wavefunction
from cuanto.log import Timings
from cuanto.methods import SEMIEMPIRICAL, GaussianResult, Iteration, Result, Semiempirical, SemiempiricalResult
from cuanto.options import CalculationOptions, ScfOptions, options_of
from cuanto.scf.checkpoint import read_checkpoint
from cuanto.scf.state import State
from cuanto.system import Molecule
from cuanto.system.formats import parse_json, qcschema_structure
from cuanto.system.text import quoted, read_text

Array = NDArray[np.float64]
Options = TypeVar("Options", CalculationOptions, ScfOptions)

HDF5 = b"\x89HDF\r\n\x1a\n"
KEPT = ("charges", "mulliken_charges", "loewdin_charges", "s_squared", "bond_orders")
"""What a file may have so that nothing need be computed again."""


def read(source: str | os.PathLike[str] | Mapping[str, Any]) -> Result:
    """The result in a JSON file of `cuanto energy --json` (any QCSchema AtomicResult), or in a checkpoint.

    A dictionary, as `result.to_qcschema()` gives it, is read as well. Files are data: nothing in them is executed.
    """
    if isinstance(source, Mapping):
        return _of_schema(source, "the result")
    path = Path(source)
    try:
        with path.open("rb") as file:
            binary = file.read(len(HDF5)) == HDF5
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    if binary:
        return _of_checkpoint(path)
    return _of_schema(parse_json(read_text(path, "result"), str(path)), str(path))


def _of_checkpoint(path: Path) -> GaussianResult:
    """Occupied orbitals only: their energies are not in the file."""
    kept = read_checkpoint(path)
    C_spm, n_sm = kept.orbitals.C_spm, kept.orbitals.n_sm
    state = State(
        iteration=kept.iteration,
        energy=kept.energy,
        energies={},
        energy_change=math.nan,
        gradient=kept.gradient,
        converged=kept.converged,
        step="checkpoint",
        C_spm=C_spm,
        eps_sm=None,
        n_sm=n_sm,
        D_spq=_density(C_spm, n_sm),
        F_spq=None,
    )
    return GaussianResult(
        molecule=kept.molecule,
        method=kept.method,
        state=state,
        backend=get_backend("cpu"),
        options=ScfOptions(),
        timings=Timings(),
        basis=kept.orbitals.basis,
    )


def _of_schema(given: Mapping[str, Any], where: str) -> Result:
    schema = as_first(given, where)
    if not isinstance(schema.get("model"), Mapping) or "return_result" not in schema:
        what = "a failed calculation" if schema.get("success") is False else quoted(schema.get("schema_name", "JSON"))
        raise InputError(
            f"{where} is {what}, no result: give a QCSchema AtomicResult, as `cuanto energy --json` writes"
        )
    try:
        return _filled(schema, where)
    except CuantoError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        text = " ".join(f"{type(error).__name__} {error}".split())
        raise InputError(f"{where} is no complete QCSchema AtomicResult: {text}") from None


def _filled(schema: Mapping[str, Any], where: str) -> Result:
    structure = qcschema_structure(schema, where)
    molecule = Molecule(
        structure.symbols, structure.coordinates, structure.charge or 0, structure.multiplicity, structure.name
    )
    ours, keywords = (schema.get("extras") or {}).get("cuanto") or {}, schema.get("keywords") or {}
    method = str(schema["model"]["method"])
    common: dict[str, Any] = {
        "molecule": molecule,
        "method": method,
        "backend": get_backend("cpu"),
        "options": _options(ScfOptions, keywords),
        "timings": Timings({str(name): float(seconds) for name, seconds in (ours.get("timings") or {}).items()}),
        "history": tuple(_iteration(row) for row in ours.get("history") or ()),
        "notes": tuple(str(note) for note in ours.get("notes") or ()),
    }
    if schema.get("wavefunction"):
        result: Result = _gaussian(schema, ours, common)
    else:
        eps_sm, n_sm = _matrix(ours.get("orbital_energies")), _matrix(ours.get("occupations"))
        state = _state(schema, ours, eps_sm=eps_sm, n_sm=n_sm)
        result = _semiempirical(common, state, keywords) if method in SEMIEMPIRICAL else Result(**common, state=state)
    _remember(result, ours, schema)
    return result


def _gaussian(schema: Mapping[str, Any], ours: Mapping[str, Any], common: Mapping[str, Any]) -> GaussianResult:
    wave, keywords = read_wavefunction(schema["wavefunction"], common["molecule"]), schema.get("keywords") or {}
    D_spq = _density(wave.C_spm, wave.n_sm)
    state = _state(schema, ours, eps_sm=wave.eps_sm, n_sm=wave.n_sm, C_spm=wave.C_spm, D_spq=D_spq)
    grid = keywords.get("grid")
    used = {"fitting": "none", **keywords, "auxbasis": None, "grid": tuple(grid) if isinstance(grid, list) else grid}
    return GaussianResult(**common, state=state, basis=wave.basis, settings=_options(CalculationOptions, used))


def _semiempirical(common: Mapping[str, Any], state: State, keywords: Mapping[str, Any]) -> SemiempiricalResult:
    """The parameters of the method are known here; what else it needs is in the file."""
    compatible = bool(keywords.get("mopac_compatible", False))
    about = {name: common[name] for name in ("molecule", "method", "backend", "options", "timings")}
    calculation = Semiempirical(**about, mopac_compatible=compatible)
    return SemiempiricalResult(**common, state=state, calculation=calculation)


def _state(schema: Mapping[str, Any], ours: Mapping[str, Any], **arrays: Array | None) -> State:
    """The last iteration, as far as the file knows it."""
    properties = schema.get("properties") or {}
    energy = properties.get("return_energy", schema["return_result"])
    given: dict[str, Any] = {"C_spm": None, "D_spq": None, "F_spq": None, **arrays}
    return State(
        iteration=int(properties.get("scf_iterations") or 0),
        energy=float(energy),
        energies={str(name): float(value) for name, value in (ours.get("energies") or {}).items()},
        energy_change=_number(ours.get("energy_change")),
        gradient=_number(ours.get("gradient")),
        converged=bool(ours.get("converged", schema.get("success", False))),
        step="file",
        **given,
    )


def _remember(result: Result, ours: Mapping[str, Any], schema: Mapping[str, Any]) -> None:
    """Numbers of the file in the place of what would be computed again: cached properties look there first."""
    known: dict[str, Any] = {name: ours[name] for name in KEPT if ours.get(name) is not None}
    properties, keywords = schema.get("properties") or {}, schema.get("keywords")
    for name, key in (("dipole", "scf_dipole_moment"), ("gradient", "return_gradient")):
        if properties.get(key) is not None:
            known[name] = properties[key]
    for name, value in known.items():
        array = np.array(value, dtype=float)
        shape = {"dipole": (-1,), "gradient": (-1, 3)}.get(name, array.shape)
        vars(result)[name] = float(array) if array.ndim == 0 else array.reshape(shape)
    if isinstance(keywords, Mapping):
        vars(result)["keywords"] = dict(keywords)


def _options(group: type[Options], keywords: Mapping[str, Any]) -> Options:
    """Those of ours; another program has others."""
    try:
        return group(**{name: keywords[name] for name in options_of(group) if name in keywords})
    except InputError:
        return group()


def _iteration(row: Mapping[str, Any]) -> Iteration:
    energy, change, gradient = (_number(row.get(name)) for name in ("energy", "energy_change", "gradient"))
    return Iteration(int(row["iteration"]), energy, change, gradient, str(row.get("step", "")))


def _number(value: object) -> float:
    """JSON has no infinities: they were written as null."""
    return float(value) if isinstance(value, (int, float)) else math.nan


def _matrix(rows: object) -> Array | None:
    return None if rows is None else np.array(rows, dtype=float)


def _density(C_spm: Array, n_sm: Array) -> Array:
    """D_spq = sum_m C_pm n_m C_qm; restricted open shells have one set of orbitals for two rows of occupations."""
    return np.array(
        [(C_spm[min(s, len(C_spm) - 1)] * n_m) @ C_spm[min(s, len(C_spm) - 1)].T for s, n_m in enumerate(n_sm)]
    )
