"""Hints for names that do not denote a molecule: what may have been meant, and what would work."""

from __future__ import annotations

import difflib
import re
import shlex
from pathlib import Path

from cuanto.errors import InputError
from cuanto.interfaces.read import is_checkpoint
from cuanto.methods.model import kind_of
from cuanto.system.text import file_bytes, quote

KNOWN_INPUTS = "an XYZ, QCSchema (JSON) or Molden file, - for standard input, or smiles:CCO"
KNOWN_JOB_INPUTS = "an XYZ, QCSchema (JSON) or Molden file, or smiles:CCO"
OBABEL = (".pdb", ".mol", ".mol2", ".sdf", ".cif", ".gjf", ".com", ".log", ".out", ".fchk", ".cml", ".smi", ".mop")
"""Formats that Open Babel converts to XYZ."""
_SMILES = re.compile(r"(?:Cl|Br|[BCNOPSFIbcnops]|\[[^\]\s]+\]|[-=#$:/\\().%@+0-9])+")
_ORCA = re.compile(r"^\s*(!|\*\s*(xyz|int|gzmt))", re.IGNORECASE | re.MULTILINE)
"""Lines of an input of ORCA."""
_WITH_ATOM = re.compile(r"[BCNOPSFIbcnops\[]")


def not_a_molecule(given: str, error: InputError, in_a_job: bool = False) -> InputError:
    """Return a more helpful error than `error` if possible; in a job it does not mention command-line options."""
    shown, known = quote(given, 200), KNOWN_JOB_INPUTS if in_a_job else KNOWN_INPUTS
    if not given.strip():
        return InputError(f"the name of the molecule is empty: give {known}")
    try:
        path = Path(given)
        if path.is_dir():
            many = "" if in_a_job else ", or use --out FILE.csv for all its XYZ files"
            return InputError(f"{shown} is a folder: name a file in it{many}")
        if not path.exists():
            return InputError(f"{error}{_suggest(given, path, known)}")
        if is_checkpoint(path):
            copied = shlex.quote(given) if given.isprintable() else "FILE"
            option = "this one as restart" if in_a_job else f"--restart {copied}"
            return InputError(f"{shown} is a checkpoint: give the file of the molecule, and {option}")
        if (hint := _advice_for_suffix(given, path, in_a_job)) is not None:
            return InputError(f"{error}; {hint}")
    except (OSError, ValueError):  # names that no file can have
        pass
    return error


def _advice_for_suffix(given: str, path: Path, in_a_job: bool) -> str | None:
    """Advice for a file of another format, by its suffix."""
    suffix = path.suffix.lower()
    if not given.isprintable():
        return None  # no escape sequences in a command that may be copied
    given, target = shlex.quote(given), shlex.quote(f"{path.stem}.xyz")
    if suffix == ".traj":
        convert = f"convert an ASE trajectory with `ase convert {given} {target}`"
        return convert if in_a_job else f"{convert}, then `cuanto energy {target} --out FILE.csv`"
    if suffix in OBABEL:
        return f"convert other formats with `obabel {given} -O {target}`"
    if suffix == ".toml":
        return f"to run a job, use `cuanto run {given}`"
    if suffix == ".inp" and not _ORCA.search(file_bytes(path).decode("utf-8", "replace")):
        return f"for the input of an atom, use `cuanto atom {given}`"
    return {
        ".inp": f"the input of another program: write its coordinates to {target}",
        ".zmat": f"Z-matrices are not read: write Cartesian coordinates to {target}",
    }.get(suffix) or (f"convert it with `obabel -itmol {given} -O {target}`" if path.name == "coord" else None)


def _is_method(given: str) -> bool:
    try:
        return bool(kind_of(given))
    except InputError:
        return False


def _suggest(given: str, path: Path, known: str) -> str:
    """Suggestion after 'does not exist': a SMILES without its prefix, or a similar file name."""
    if _SMILES.fullmatch(given) and _WITH_ATOM.search(given):
        return f"; if it is a SMILES, write smiles:{given}"
    if known == KNOWN_INPUTS and _is_method(given):
        return f"; a method is given with -m {given}, a basis with -b"
    names = [one.name for one in path.parent.iterdir()] if path.parent.is_dir() else []
    close = difflib.get_close_matches(path.name, names, n=1, cutoff=0.75)
    return f"; did you mean {quote(str(path.parent / close[0]), 200)}?" if close else f"; give {known}"
