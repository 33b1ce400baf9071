"""Read results from files: QCSchema (JSON) and checkpoints (HDF5) become the objects that `cuanto.energy` returns."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from cuanto.arrays import Array
from cuanto.backends.base import get_backend
from cuanto.errors import CuantoError, InputError
from cuanto.interfaces.keywords import errors_about
from cuanto.interfaces.optimization import last_result
from cuanto.interfaces.qcschema import TERMS, read_molecule
from cuanto.interfaces.versions import to_version_1
from cuanto.interfaces.wavefunction import Wavefunction, read_wavefunction
from cuanto.log import Timings
from cuanto.methods import SEMIEMPIRICAL, GaussianResult, Iteration, Result, Semiempirical, SemiempiricalResult
from cuanto.options import CalculationOptions, ScfOptions, options_of
from cuanto.scf.checkpoint import SIGNATURE, read_checkpoint
from cuanto.scf.state import State
from cuanto.system import Molecule
from cuanto.system.formats import parse_json
from cuanto.system.text import quote, read_text

Options = TypeVar("Options", CalculationOptions, ScfOptions)

EXPECTED_FILES = "give the JSON of `cuanto energy --json`, another QCSchema AtomicResult, or a checkpoint"
ENERGIES = {key: name for name, key in reversed(TERMS.items())} | {"scf_two_electron_energy": "two-electron"}
"""Terms of the energy by the names of the schema."""
FROM_CHECKPOINT = "Read from a checkpoint, which keeps only the occupied orbitals and the last energy."


def read(source: str | os.PathLike[str] | Mapping[str, Any]) -> Result:
    """Read the result in a JSON file of `cuanto energy --json` (any QCSchema AtomicResult), or in a checkpoint; of an
    optimisation that of its last geometry.

    `source` may also be a dictionary, as returned by `result.to_qcschema()`. Files are data: nothing in them is
    executed, and invalid optional values count as missing.
    """
    if isinstance(source, Mapping):
        return from_schema(source, "the result")
    schema = read_schema(source)
    return _from_checkpoint(Path(source)) if schema is None else from_schema(schema, str(source))


def read_schema(path: str | os.PathLike[str]) -> dict[str, Any] | None:
    """The content of a JSON file; None if the file is a checkpoint. A pipe can be read only once."""
    if not isinstance(path, (str, os.PathLike)):
        raise InputError(f"a {type(path).__name__} is not a result: {EXPECTED_FILES}")
    try:
        if is_checkpoint(Path(path)):
            return None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    try:
        return parse_json(read_text(path, "result"), str(path))
    except InputError as error:
        raise InputError(f"{error}; {EXPECTED_FILES}") from None


def is_checkpoint(path: Path) -> bool:
    """Whether a path is that of a checkpoint (HDF5)."""
    if not path.is_file():  # opening a pipe would wait
        return False
    with path.open("rb") as file:
        return file.read(len(SIGNATURE)) == SIGNATURE


def _from_checkpoint(path: Path) -> GaussianResult:
    """Make a result with occupied orbitals only, without their energies."""
    checkpoint = read_checkpoint(path)
    C_spm, n_sm = checkpoint.orbitals.C_spm, checkpoint.orbitals.n_sm
    state = State(
        iteration=checkpoint.iteration,
        energy=checkpoint.energy,
        energies={},
        gradient=checkpoint.gradient,
        converged=checkpoint.converged,
        step="checkpoint",
        C_spm=C_spm,
        n_sm=n_sm,
        D_spq=_density(C_spm, n_sm),
    )
    return GaussianResult(
        molecule=checkpoint.molecule,
        method=checkpoint.method,
        state=state,
        backend=get_backend("cpu"),
        options=ScfOptions(),
        timings=Timings(),
        notes=(FROM_CHECKPOINT,),
        basis=checkpoint.orbitals.basis,
    )


def from_schema(given: Mapping[str, Any], where: str) -> Result:
    """The result in a QCSchema AtomicResult, or the last one of an OptimizationResult; errors call it `where`."""
    schema = to_version_1(last_result(given, where), where)
    if not isinstance(schema.get("model"), Mapping) or "return_result" not in schema:
        what = "a failed calculation" if schema.get("success") is False else quote(schema.get("schema_name", "JSON"))
        raise InputError(f"{where} is {what}, not a result: {EXPECTED_FILES}")
    try:
        with errors_about(where):
            return _result(schema, where)
    except CuantoError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        text = " ".join(f"{type(error).__name__} {error}".split())
        raise InputError(f"{where} is not a complete QCSchema AtomicResult: {text}") from None


def _result(schema: Mapping[str, Any], where: str) -> Result:
    extras, keywords = _mapping(_mapping(schema.get("extras")).get("cuanto")), _mapping(schema.get("keywords"))
    method = schema["model"]["method"]
    common: dict[str, Any] = {
        "molecule": _with_cores(read_molecule(schema, where), extras.get("core_electrons")),
        "method": str(method),
        "backend": get_backend("cpu"),
        "options": _options(ScfOptions, keywords),
        "timings": Timings({name: t for name, t in _numbers_by_name(extras.get("timings")).items() if t >= 0}),
        "history": tuple(_iteration(i, _mapping(row)) for i, row in enumerate(_list(extras.get("history")), 1)),
        "notes": tuple(str(note) for note in _list(extras.get("notes"))),
    }
    if schema.get("wavefunction"):
        result: Result = _gaussian(schema, extras, common)
    else:
        eps_sm, n_sm = (_array(extras.get(name)) for name in ("orbital_energies", "occupations"))
        if eps_sm is None or n_sm is None or eps_sm.ndim != 2 or eps_sm.shape[1:] != n_sm.shape[1:]:
            eps_sm = n_sm = None
        state = _state(schema, extras, eps_sm=eps_sm, n_sm=n_sm)
        result = _semiempirical(common, state, keywords) if method in SEMIEMPIRICAL else Result(**common, state=state)
    vars(result).update(_known_properties(schema, extras, result.molecule.natom))
    return result


def _gaussian(schema: Mapping[str, Any], extras: Mapping[str, Any], common: Mapping[str, Any]) -> GaussianResult:
    wave, keywords = read_wavefunction(schema["wavefunction"], common["molecule"]), _mapping(schema.get("keywords"))
    common = {**common, "molecule": common["molecule"].with_core_electrons(wave.basis.core_electrons)}
    sets = 1 if _shares_orbitals(wave, common["method"]) else len(wave.C_spm)
    C_spm, eps_sm, D_spq = wave.C_spm[:sets], wave.eps_sm[:sets], _density(wave.C_spm, wave.n_sm)
    state = _state(schema, extras, eps_sm=eps_sm, n_sm=wave.n_sm, C_spm=C_spm, D_spq=D_spq)
    grid = keywords.get("grid")
    used = {"fitting": "none", **keywords, "auxbasis": None, "grid": tuple(grid) if isinstance(grid, list) else grid}
    return GaussianResult(**common, state=state, basis=wave.basis, settings=_options(CalculationOptions, used))


def _shares_orbitals(wave: Wavefunction, method: str) -> bool:
    """Whether both spins have the same orbitals, as in restricted open shells, of which files have two copies."""
    same = all(np.array_equal(spins[0], spins[-1]) for spins in (wave.C_spm, wave.eps_sm))
    return same and (method.lower() == "rohf" or not np.array_equal(wave.n_sm[0], wave.n_sm[-1]))


def _with_cores(molecule: Molecule, core_electrons: object) -> Molecule:
    """The molecule without the electrons that core potentials replace, if the file counts them."""
    counts = _array(core_electrons, (molecule.natom,))
    if counts is None or (counts != np.floor(counts)).any() or (counts < 0).any():
        return molecule
    return molecule.with_core_electrons(counts.astype(int).tolist())


def _semiempirical(common: Mapping[str, Any], state: State, keywords: Mapping[str, Any]) -> SemiempiricalResult:
    """Combine the parameters of the method with the data of the file."""
    compatible = bool(keywords.get("mopac_compatible", False))
    shared = {name: common[name] for name in ("molecule", "method", "backend", "options", "timings")}
    calculation = Semiempirical(**shared, mopac_compatible=compatible)
    return SemiempiricalResult(**common, state=state, calculation=calculation)


def _state(schema: Mapping[str, Any], extras: Mapping[str, Any], **arrays: Any) -> State:
    """The last iteration, as far as the file describes it."""
    properties = _mapping(schema.get("properties"))
    energy = _number(properties.get("return_energy"))
    terms = {name: properties.get(key) for key, name in ENERGIES.items()}
    return State(
        iteration=int(np.nan_to_num(_number(properties.get("scf_iterations")))),
        energy=energy if math.isfinite(energy) else _number(schema["return_result"]),
        energies=_numbers_by_name(extras.get("energies")) or _numbers_by_name(terms),
        energy_change=_number(extras.get("energy_change")),
        gradient=_number(extras.get("gradient")),
        converged=schema.get("success") is True,
        step="file",
        **arrays,
    )


def _known_properties(schema: Mapping[str, Any], extras: Mapping[str, Any], natom: int) -> dict[str, Any]:
    """Values of cached properties in the file, so that they are not computed again."""
    properties, model = _mapping(schema.get("properties")), schema["model"]
    provenance = _mapping(schema.get("provenance"))
    program = " ".join(str(provenance[key]) for key in ("creator", "version") if provenance.get(key))
    arrays = {
        "charges": _array(extras.get("charges"), (natom,)),
        "spin_populations": _array(extras.get("spin_populations"), (natom,)),
        "mulliken_charges": _array(extras.get("mulliken_charges"), (natom,)),
        "loewdin_charges": _array(extras.get("loewdin_charges"), (natom,)),
        "hirshfeld_charges": _array(extras.get("hirshfeld_charges"), (natom,)),
        "cm5_charges": _array(extras.get("cm5_charges"), (natom,)),
        "bond_orders": _array(extras.get("bond_orders"), (natom, natom)),
        "second_moments": _array(properties.get("scf_quadrupole_moment"), (3, 3)),
        "dipole": _array(properties.get("scf_dipole_moment"), (3,)),
        "gradient": _array(properties.get("return_gradient"), (natom, 3)),
    }
    if arrays["gradient"] is not None and model.get("basis"):
        on_charges = extras.get("charges_gradient")
        count = len(on_charges) if isinstance(on_charges, list) else 0
        arrays["charges_gradient"] = _array(on_charges or [], (count, 3))
    s_squared = _number(extras.get("s_squared"))
    return {
        **{name: array for name, array in arrays.items() if array is not None},
        **({"s_squared": s_squared} if math.isfinite(s_squared) else {}),
        **({"charge_kind": kind} if isinstance(kind := extras.get("charge_kind"), str) else {}),
        "errors": _numbers_by_name(extras.get("errors")),
        "keywords": dict(_mapping(schema.get("keywords"))),
        "basis_name": str(model["basis"]) if model.get("basis") else None,
        "backend_name": str(extras.get("backend") or ""),
        "program": program or "an unknown program",
    }


def _options(group: type[Options], keywords: Mapping[str, Any]) -> Options:
    """Make options from keywords that are ours; defaults if those of another program do not fit."""
    try:
        return group(**{name: keywords[name] for name in options_of(group) if name in keywords})
    except (InputError, OverflowError):
        return group()


def _iteration(number: int, row: Mapping[str, Any]) -> Iteration:
    energy, change, gradient = (_number(row.get(name)) for name in ("energy", "energy_change", "gradient"))
    return Iteration(number, energy, change, gradient, str(row.get("step", "")))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else []


def _number(value: object) -> float:
    """Return a finite number, or NaN; JSON has no infinities, which are written as null."""
    array = None if isinstance(value, bool) else _array(value, ())
    return math.nan if array is None else float(array)


def _numbers_by_name(value: object) -> dict[str, float]:
    found = {str(name): _number(x) for name, x in _mapping(value).items()}
    return {name: x for name, x in found.items() if math.isfinite(x)}


def _array(value: object, shape: tuple[int, ...] | None = None) -> Array | None:
    """An array of finite numbers, or None."""
    if value is None or isinstance(value, (str, bytes)):
        return None
    try:
        array = np.array(value, dtype=float)
        array = array if shape is None else array.reshape(shape)
    except (TypeError, ValueError, OverflowError):
        return None
    return array if np.isfinite(array).all() else None


def _density(C_spm: Array, n_sm: Array) -> Array:
    """D_spq = sum_m C_pm n_m C_qm; restricted open shells have one set of orbitals for two rows of occupations."""
    sets = np.broadcast_to(C_spm, (len(n_sm), *C_spm.shape[1:]))
    return np.array([(C_pm * n_m) @ C_pm.T for C_pm, n_m in zip(sets, n_sm, strict=True)])
