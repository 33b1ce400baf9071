"""Where a molecule comes from on the command line and in job files: a file, `-`, `smiles:...`."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cuanto.errors import InputError
from cuanto.interfaces.hints import not_a_molecule
from cuanto.interfaces.keywords import checked_keywords
from cuanto.interfaces.versions import as_first, second_input
from cuanto.methods import SEMIEMPIRICAL
from cuanto.methods.model import kind_of
from cuanto.options import OPTIONS, require_meaning
from cuanto.system import Molecule
from cuanto.system.formats import parse_json, parse_structure
from cuanto.system.text import decoded, quoted, read_text

STDIN = "-"
SMILES = "smiles:"
LARGEST_LABEL = 80


@dataclass(frozen=True)
class Source:
    """A molecule, a label that is safe in names of files, and what a QCSchema input asks for beside it."""

    molecule: Molecule
    label: str
    method: str | None = None
    basis: str | None = None
    keywords: Mapping[str, Any] = field(default_factory=dict)
    driver: str = "energy"
    asked: Mapping[str, Any] | None = None
    """The input, where it is of QCSchema 2: the answer is, too."""


def read_source(
    given: str, charge: int | None = None, multiplicity: int | None = None, in_a_job: bool = False
) -> Source:
    """From what a person wrote, perhaps `in_a_job`; charge and multiplicity override what the file says."""
    if given.lower().startswith(SMILES):
        smiles = given[len(SMILES) :]
        return Source(Molecule.from_smiles(smiles, charge, multiplicity), safe_label(smiles))
    if given == STDIN:
        return text_source(read_stdin(), "standard input", "stdin", charge, multiplicity)
    return file_source(file_text(given, in_a_job), given, charge, multiplicity, in_a_job)


def file_text(given: str, in_a_job: bool = False) -> str:
    """What is in a file; where there is none, what a person may have meant."""
    try:
        return read_text(given, "file")
    except InputError as error:
        raise not_a_molecule(given, error, in_a_job) from None


def file_source(text: str, given: str, charge: int | None, multiplicity: int | None, in_a_job: bool = False) -> Source:
    """The text of the file `given`; another format than ours gets a hint."""
    try:
        return text_source(text, shown_name(given), Path(given).stem, charge, multiplicity)
    except InputError as error:
        try:
            parse_structure(text)
        except InputError:
            raise not_a_molecule(given, error, in_a_job) from None
        raise


def shown_name(path: str) -> str:
    """For messages."""
    return path if path.isprintable() and len(path) <= 200 else quoted(path, 200)


def text_source(text: str, shown: str, stem: str, charge: int | None, multiplicity: int | None) -> Source:
    """A file's text; of QCSchema also method, basis and keywords."""
    name = "" if shown == "standard input" else stem
    molecule = Molecule.from_text(text, charge, multiplicity, source=shown, name=name)
    given = parse_json(text, shown) if text.lstrip().startswith("{") else {}
    return Source(molecule, safe_label(stem), **model_of(as_first(given, shown), shown), asked=second_input(given))


def model_of(schema: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Method, basis, keywords and driver of an AtomicInput or AtomicResult; nothing of a bare molecule."""
    model, keywords = schema.get("model"), schema.get("keywords") or {}
    if model is None:
        return {}
    if not isinstance(model, Mapping) or not isinstance(keywords, Mapping):
        raise InputError(f"{where}: model and keywords must be objects, such as {{'method': 'hf', 'basis': 'sto-3g'}}")
    method, basis = model.get("method"), model.get("basis")
    if not isinstance(method, str) or not method:
        raise InputError(f"{where}: the model has no method such as hf, b3lyp or pm6")
    if not isinstance(basis, (str, type(None))):
        raise InputError(f"{where}: the basis of the model must be a name, not a set of functions")
    driver = schema.get("driver", "energy")
    driver = str(getattr(driver, "value", driver))
    return {
        "method": method,
        "basis": basis or None,
        "keywords": checked_keywords(keywords, where),
        "driver": driver,
    }


def inherited(source: Source, method: str | None, basis: str | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """Keywords of a file that hold beside the method, basis and keywords `given` in the place of its own.

    What belonged to the file's basis or method and has no meaning for another is left behind; a file that has no
    meaning in itself is refused.
    """
    kept = {name: value for name, value in source.keywords.items() if name not in given}
    if basis is not None or given.get("fitting") == "none":
        kept.pop("auxbasis", None)
    if method is None:
        if source.method is not None:
            require_meaning(source.method, kind_of(source.method), {"basis": source.basis})
        return kept
    if method.lower() in SEMIEMPIRICAL:
        kept.pop("guess", None)  # it starts from neutral atoms
    kind = kind_of(method)
    return {name: value for name, value in kept.items() if kind in OPTIONS[name].meaning.kinds}


def first_given(*values: str | None) -> str:
    """The first that is not None."""
    return next(value for value in values if value is not None)


def safe_label(text: str) -> str:
    """What can stand in the name of a file: no separators, no leading dot, not too long."""
    kept = re.sub(r"[^\w.+=-]+", "_", text, flags=re.ASCII).lstrip(".")
    return kept[:LARGEST_LABEL] or "molecule"


def read_stdin() -> str:
    """What was piped in."""
    if sys.stdin is None or sys.stdin.isatty():
        raise InputError("`-` reads a molecule from standard input: pipe a file into it, or give its name")
    raw = getattr(sys.stdin, "buffer", None)
    data = sys.stdin.read().encode() if raw is None else raw.read()
    return decoded(data, "standard input is not text")
