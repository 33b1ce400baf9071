"""What a page shows, read from wherever a result is. Files are not trusted: every value is checked once here."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from cuanto import __version__
from cuanto.errors import InputError
from cuanto.interfaces.qcschema import to_qcschema
from cuanto.interfaces.versions import as_first, is_second
from cuanto.interfaces.wavefunction import Wavefunction, read_wavefunction, wavefunction_of
from cuanto.methods import GaussianResult, Result, SemiempiricalResult
from cuanto.system import Molecule
from cuanto.system.formats import qcschema_structure
from cuanto.units import DIPOLE_IN_DEBYE

Source = Result | SemiempiricalResult | Mapping[str, Any] | str | os.PathLike[str]
Levels = tuple[tuple[float, ...], tuple[float, ...]]

HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"
MAX_TEXT = 400
ABSURD = 1e12
"""No quantity of a molecule is as large in any of our units."""
NO_ORBITALS = "This result has no orbitals in it."
EXPECTED = "give the JSON of `cuanto energy --json`, another QCSchema AtomicResult, or a checkpoint"


@dataclass(frozen=True)
class Step:
    """One iteration."""

    iteration: int
    energy: float | None
    change: float | None
    gradient: float | None
    name: str


@dataclass(frozen=True, eq=False)
class Record:
    """Energies in Hartree, dipole in Debye. What the source does not say is None or empty.

    `levels`: orbital energies and occupations of each spin; `no_orbitals` says why there is no `wave`.
    """

    molecule: Molecule
    method: str
    basis: str | None
    energy: float | None
    converged: bool
    iterations: int | None = None
    functions: int | None = None
    energies: Mapping[str, float] = field(default_factory=dict)
    heat_of_formation: float | None = None
    levels: tuple[Levels, ...] = ()
    charges: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    dipole: tuple[float, ...] | None = None
    s_squared: float | None = None
    timings: Mapping[str, float] = field(default_factory=dict)
    history: tuple[Step, ...] = ()
    notes: tuple[str, ...] = ()
    keywords: Mapping[str, Any] = field(default_factory=dict)
    backend: str | None = None
    program: str = f"cuanto {__version__}"
    wave: Wavefunction | None = None
    no_orbitals: str = NO_ORBITALS


def read_record(source: Source) -> Record:
    """From a result, its QCSchema dictionary, or a file with either that or a checkpoint."""
    if isinstance(source, GaussianResult):
        return _from_schema(to_qcschema(source, orbitals=False), "the result", wavefunction_of(source))
    if isinstance(source, (Result, SemiempiricalResult)):
        return _from_schema(source.to_qcschema(), "the result", None)
    if isinstance(source, Mapping):
        return _from_schema(source, "the dictionary", None)
    if not isinstance(source, (str, os.PathLike)):
        raise InputError(f"no report of a {type(source).__name__}: {EXPECTED}")
    return _from_file(Path(source))


def _from_file(path: Path) -> Record:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    if data.startswith(HDF5_MAGIC):
        return _from_checkpoint(path)
    try:
        schema = json.loads(data)
    except (ValueError, RecursionError):
        raise InputError(f"{path} is no result: it is neither JSON nor HDF5; {EXPECTED}") from None
    return _from_schema(schema, str(path), None)


def _from_checkpoint(path: Path) -> Record:
    from cuanto.scf.checkpoint import read_checkpoint

    kept = read_checkpoint(path)
    orbitals = kept.orbitals
    spins, sets = len(orbitals.n_sm), len(orbitals.C_spm)
    C_spm = np.repeat(orbitals.C_spm, spins // sets, axis=0)
    unknown = np.full(orbitals.n_sm.shape, np.nan)  # keeps their order, which is that of their energies
    return Record(
        molecule=kept.molecule,
        method=kept.method,
        basis=orbitals.basis.name,
        energy=kept.energy,
        converged=kept.converged,
        iterations=kept.iteration,
        functions=orbitals.basis.nbf,
        notes=("Read from a checkpoint, which keeps the occupied orbitals and the last energy only.",),
        wave=Wavefunction(orbitals.basis, C_spm, unknown, orbitals.n_sm),
    )


def _from_schema(schema: Any, where: str, wave: Wavefunction | None) -> Record:
    """QCSchema AtomicResult."""
    if is_second(schema):
        schema = as_first(schema, where)
    kind = schema.get("schema_name") if isinstance(schema, Mapping) else None
    if not isinstance(schema, Mapping) or kind not in ("qcschema_output", "qc_schema_output"):
        found = f"its schema_name is {str(kind)[:40]!r}" if kind is not None else "it has no schema_name"
        raise InputError(f"{where} is no QCSchema result: {found}; {EXPECTED}")
    molecule = _molecule(schema.get("molecule"), where)
    extras = _mapping(_mapping(schema.get("extras")).get("cuanto"))
    properties, model = _mapping(schema.get("properties")), _mapping(schema.get("model"))
    why = NO_ORBITALS
    if wave is None and schema.get("wavefunction") is not None:
        wave = read_wavefunction(_mapping(schema["wavefunction"]), molecule)
    elif wave is None and not model.get("basis"):
        why = "Semiempirical orbitals belong to a minimal set of Slater functions; their surfaces are not drawn."
    dipole = _numbers(properties.get("scf_dipole_moment"), 3)
    return Record(
        molecule=molecule,
        method=_text(model.get("method")) or "unknown method",
        basis=_text(model.get("basis")) or None,
        energy=_number(schema.get("return_result")) or _number(properties.get("return_energy")),
        converged=schema.get("success") is True,
        iterations=_whole(properties.get("scf_iterations")),
        functions=_whole(properties.get("calcinfo_nbasis")),
        energies=_named(extras.get("energies")) or _schema_energies(properties),
        heat_of_formation=_number(extras.get("heat_of_formation_kcal_mol")),
        levels=_levels(extras, wave),
        charges=_charges(extras, molecule.natom),
        dipole=None if dipole is None else tuple(x * DIPOLE_IN_DEBYE for x in dipole),
        s_squared=_number(extras.get("s_squared")),
        timings={name: t for name, t in _named(extras.get("timings")).items() if t >= 0},
        history=_history(extras.get("history")),
        notes=tuple(_text(note) for note in _list(extras.get("notes"))[:50]),
        keywords={str(k)[:MAX_TEXT]: v for k, v in _mapping(schema.get("keywords")).items()},
        backend=_text(extras.get("backend")) or None,
        program=_program(_mapping(schema.get("provenance"))),
        wave=wave,
        no_orbitals=why,
    )


def _molecule(schema: Any, where: str) -> Molecule:
    if not isinstance(schema, Mapping):
        raise InputError(f"{where}: it has no molecule with symbols and geometry; {EXPECTED}")
    found = qcschema_structure(schema, where)
    try:
        return Molecule(found.symbols, found.coordinates, found.charge or 0, found.multiplicity, _text(found.name))
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def _levels(extras: Mapping[str, Any], wave: Wavefunction | None) -> tuple[Levels, ...]:
    """From the orbitals, else from the lists of energies and occupations; one row of energies may serve both spins."""
    if wave is not None:
        eps_sm, n_sm = wave.eps_sm.tolist(), wave.n_sm.tolist()
    else:
        eps_sm, n_sm = _list(extras.get("orbital_energies")), _list(extras.get("occupations"))
    found = []
    for s, n_m in enumerate(n_sm[:2]):
        eps = _numbers(eps_sm[min(s, len(eps_sm) - 1)] if eps_sm else None)
        n = _numbers(n_m)
        if not eps or n is None or len(n) != len(eps):
            return ()
        order = sorted(range(len(eps)), key=eps.__getitem__)
        found.append((tuple(eps[m] for m in order), tuple(n[m] for m in order)))
    return tuple(found)


def _charges(extras: Mapping[str, Any], natom: int) -> dict[str, tuple[float, ...]]:
    names = {"mulliken_charges": "Mulliken", "loewdin_charges": "L\u00f6wdin", "charges": "net"}
    found = {name: _numbers(extras.get(key), natom) for key, name in names.items()}
    given = {name: values for name, values in found.items() if values is not None}
    if len(given) > 1:
        given.pop("net", None)  # one of the others, by another name
    return given


def _history(value: Any) -> tuple[Step, ...]:
    steps = []
    for i, row in enumerate(_list(value)[:10_000], 1):
        row = _mapping(row)
        change = _number(row.get("energy_change")) if i > 1 else None
        numbers = _number(row.get("energy")), change, _number(row.get("gradient"))
        steps.append(Step(i, *numbers, _text(row.get("step"))))
    return tuple(steps)


def _schema_energies(properties: Mapping[str, Any]) -> dict[str, float]:
    names = {
        "nuclear_repulsion_energy": "nuclear repulsion",
        "scf_one_electron_energy": "one-electron",
        "scf_two_electron_energy": "two-electron",
        "scf_xc_energy": "exchange-correlation",
        "scf_dispersion_correction_energy": "dispersion",
    }
    found = {name: _number(properties.get(key)) for key, name in names.items()}
    return {name: value for name, value in found.items() if value is not None}


def _program(provenance: Mapping[str, Any]) -> str:
    return " ".join(_text(provenance.get(key)) for key in ("creator", "version")).strip() or "an unknown program"


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else []


def _text(value: Any) -> str:
    """One line of printable characters."""
    line = " ".join(value.split()) if isinstance(value, str) else ""
    return "".join(c for c in line if c.isprintable())[:MAX_TEXT]


def _number(value: Any) -> float | None:
    """A number that a result can have, or none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if -ABSURD < value < ABSURD else None


def _whole(value: Any) -> int | None:
    found = _number(value)
    return None if found is None else int(found)


def _numbers(value: Any, length: int | None = None) -> tuple[float, ...] | None:
    """A list of finite numbers, of the given length; one that is not all that is none at all."""
    found = [_number(x) for x in _list(value)]
    if not found or None in found or (length is not None and len(found) != length):
        return None
    return tuple(x for x in found if x is not None)


def _named(value: Any) -> dict[str, float]:
    found = {_text(str(name)): _number(x) for name, x in list(_mapping(value).items())[:200]}
    return {name: x for name, x in found.items() if x is not None}
