"""Molecules as they are named on the command line and in job files: a file, `-`, atoms, `smiles:...`."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from cuanto.basis.library import names_file
from cuanto.basis.names import split_names
from cuanto.errors import InputError
from cuanto.interfaces.hints import not_a_molecule
from cuanto.interfaces.keywords import checked_keywords
from cuanto.interfaces.optimization import energy_input
from cuanto.interfaces.qcschema import require_driver
from cuanto.interfaces.versions import to_version_1, version_2_input
from cuanto.methods import SEMIEMPIRICAL
from cuanto.methods.model import kind_of
from cuanto.options import DEFAULT_BASIS, DEFAULT_METHOD, OPTIONS, require_applicable
from cuanto.scf.guess import GUESSES
from cuanto.system import Molecule
from cuanto.system.formats import parse_json, parse_structure
from cuanto.system.text import MAX_FILE_BYTES, decode, format_path, quote, read_text
from cuanto.system.xyz import is_atom_list

STDIN = "-"
SMILES = "smiles:"
MAX_LABEL_LENGTH = 80
HESSIAN = "hessian"
"""Driver of frequencies."""
OPTIMIZE = "optimize"
"""The task of an optimisation, which QCSchema has no driver for."""
SURROUNDINGS = ("field", "point_charges")
"""Keywords that are part of the system, not of the method."""
COUNTERPOISE = "counterpoise"
"""The task of an interaction energy, which QCSchema has no driver for either."""


@dataclass(frozen=True)
class Model:
    """What to compute: method, basis and keywords of `cuanto.energy`; None where a file or the defaults decide.

    `driver`: that of QCSchema, or another task, which may have `settings` of its own.
    """

    method: str | None = None
    basis: str | None = None
    keywords: Mapping[str, Any] = field(default_factory=dict)
    driver: str = "energy"
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of the driver, such as the temperature of thermochemistry."""

    @property
    def gradient(self) -> bool:
        """Whether a gradient is requested."""
        return self.driver == "gradient"


def _inside(name: str, folder: Path) -> bool:
    try:
        return Path(os.path.expanduser(name)).resolve().is_relative_to(folder.resolve())
    except (OSError, ValueError, RuntimeError):  # names that no file can have
        return False


def confined_basis(text: str, key: str, folder: Path = Path()) -> str:
    """The name of a basis, or a file in the working folder or in the `folder` of the input; others are refused."""
    if (parts := split_names(text)) is not None:
        return ",".join(f"{symbol}={confined_basis(part, key, folder)}" for symbol, part in parts.items())
    if names_file(text) and not any(_inside(text, one) for one in (Path(), folder)):
        raise InputError(
            f"{key} {quote(text, 200)} is a file outside the folder of the input: copy it there, or name it "
            "yourself with --basis or --auxbasis"
        )
    return text


@dataclass(frozen=True)
class Source:
    """A molecule, a label that is safe in file names, and the model of a QCSchema input."""

    molecule: Molecule
    label: str
    model: Model = field(default_factory=Model)
    input_schema: Mapping[str, Any] | None = None
    """The input itself if it is QCSchema version 2; the result is then written in the same version."""
    basis_path: Callable[[str, str], str] = confined_basis
    """Checks a basis that the input, which may be untrusted, names; arguments: its name or path, and the key (`basis`
    or `auxbasis`) for error messages."""
    notes: tuple[str, ...] = ()
    """Lines about how the file was read."""


def read_source(
    given: str, charge: int | None = None, multiplicity: int | None = None, in_a_job: bool = False
) -> Source:
    """Read a molecule named on the command line or `in_a_job`; charge and multiplicity override the file."""
    if given.lower().startswith(SMILES):
        smiles = given[len(SMILES) :]
        return Source(Molecule.from_smiles(smiles, charge, multiplicity), safe_label(smiles))
    if is_atom_list(given):
        molecule = Molecule.from_text(given, charge, multiplicity, source=quote(given))
        return Source(molecule, safe_label(molecule.formula))
    return source_from_text(*read_input(given, in_a_job), charge, multiplicity, given, in_a_job)


def is_written_out(given: str) -> bool:
    """Whether a molecule is given as SMILES or atoms, not as a file."""
    return given.lower().startswith(SMILES) or is_atom_list(given)


def read_input(given: str, in_a_job: bool = False) -> tuple[str, str, str]:
    """Text of a file or of standard input, its name in messages, and its name without suffix."""
    if given == STDIN:
        return read_stdin(), "standard input", "stdin"
    try:
        text = read_text(given, "file")
    except InputError as error:
        raise not_a_molecule(given, error, in_a_job) from None
    return text, format_path(given), Path(given).stem


def source_from_text(
    text: str,
    shown: str,
    stem: str,
    charge: int | None,
    multiplicity: int | None,
    given: str = STDIN,
    in_a_job: bool = False,
) -> Source:
    """A molecule, and the model of a QCSchema input; if the file `given` has another format, the error suggests what to
    do."""
    name = "" if shown == "standard input" else stem
    try:
        molecule = Molecule.from_text(text, charge, multiplicity, source=shown, name=name)
    except InputError as error:
        try:
            parse_structure(text)
        except InputError:
            raise (error if given == STDIN else not_a_molecule(given, error, in_a_job)) from None
        raise
    schema = parse_json(text, shown) if text.lstrip().startswith("{") else {}
    inner = to_version_1(energy_input(schema), shown)
    folder = Path() if given == STDIN else Path(given).parent
    return Source(
        molecule,
        safe_label(stem),
        read_model(inner, shown) or Model(),
        version_2_input(schema),
        partial(confined_basis, folder=folder),
        _notes(text, shown),
    )


def _notes(text: str, shown: str) -> tuple[str, ...]:
    dummies = parse_structure(text, shown).dummies
    if not dummies:
        return ()
    atoms = f"atom{'s' if len(dummies) > 1 else ''} {', '.join(map(str, dummies))}"
    advice = "a centre with basis functions is written as Gh-O"
    return (f"{shown}: dummy {atoms}, without functions, charge or grid points, left out of the numbering; {advice}",)


def read_model(schema: Mapping[str, Any], where: str) -> Model | None:
    """Model of an AtomicInput or AtomicResult; None for a bare molecule."""
    model, keywords = schema.get("model"), schema.get("keywords") or {}
    if model is None:
        return None
    if not isinstance(model, Mapping) or not isinstance(keywords, Mapping):
        raise InputError(f"{where}: model and keywords must be objects, such as {{'method': 'hf', 'basis': 'sto-3g'}}")
    method, basis = model.get("method"), model.get("basis")
    if not isinstance(method, str) or not method:
        raise InputError(f"{where}: the model has no method; give one such as hf, b3lyp or pm6")
    if not isinstance(basis, (str, type(None))):
        raise InputError(f"{where}: the basis of the model must be a name, not a table of functions")
    guess = keywords.get("guess")
    if isinstance(guess, str) and guess not in GUESSES and os.path.isfile(guess):
        raise InputError(f"{where}: guess {quote(guess, 200)} is a file, which an input must not name: give --guess")
    driver = schema.get("driver", "energy")
    driver = str(getattr(driver, "value", driver))
    return Model(method, basis or None, checked_keywords(keywords, where), driver)


def choose_model(source: Source, given: Model) -> Model:
    """Choose what to compute: values that are `given`, else those of the file, else the defaults.

    Keywords of the file that do not apply to another method or basis are dropped, but a field and point charges, which
    are part of the system, are refused; so is a file whose own basis does not apply to its method.
    """
    requested = source.model
    method = given.method or requested.method or DEFAULT_METHOD
    driver = requested.driver if given.driver == "energy" else given.driver
    if driver not in (OPTIMIZE, COUNTERPOISE):
        require_driver(driver)
    keywords = {name: value for name, value in requested.keywords.items() if name not in given.keywords}
    if isinstance(keywords.get("auxbasis"), str):
        keywords["auxbasis"] = source.basis_path(keywords["auxbasis"], "auxbasis")
    if given.basis is not None or given.keywords.get("fitting") == "none":
        keywords.pop("auxbasis", None)
    if given.method is not None:
        kind = kind_of(method)
        _require_surroundings(method, kind, keywords)
        keywords = {name: value for name, value in keywords.items() if kind in OPTIONS[name].scope.kinds}
    elif requested.method is not None:
        require_applicable(method, kind_of(method), {"basis": requested.basis})
    basis = given.basis
    if method.lower() in SEMIEMPIRICAL:
        keywords.pop("guess", None)  # these methods start from neutral atoms
    elif basis is None:
        basis = source.basis_path(requested.basis, "basis") if requested.basis else DEFAULT_BASIS
    return Model(method, basis, {**keywords, **given.keywords}, driver, dict(given.settings))


def _require_surroundings(method: str, kind: str, keywords: Mapping[str, Any]) -> None:
    """Refuse a method that does not support the surroundings of the molecule in the file."""
    for name in SURROUNDINGS:
        if name in keywords and kind not in OPTIONS[name].scope.kinds:
            use = OPTIONS[name].scope.use
            raise InputError(
                f"{method} does not support the {name} of the file: use {use}, or remove {name} from the file"
            )


def safe_label(text: str) -> str:
    """Convert text to a part of a file name: no separators, no leading dot, at most MAX_LABEL_LENGTH characters."""
    label = re.sub(r"[^\w.+=-]+", "_", text, flags=re.ASCII).lstrip(".")
    return label[:MAX_LABEL_LENGTH] or "molecule"


def read_stdin() -> str:
    """The text that was piped in."""
    if sys.stdin is None or sys.stdin.isatty():
        raise InputError("`-` reads a molecule from standard input: pipe a file into it, or give its name")
    raw = getattr(sys.stdin, "buffer", None)
    data = sys.stdin.read(MAX_FILE_BYTES + 1).encode() if raw is None else raw.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise InputError(f"standard input is longer than {MAX_FILE_BYTES >> 20} MiB: give a file with one molecule")
    return decode(data, "standard input is not text")
