"""Hints for names that do not denote a molecule: what may have been meant, and what would work."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from cuanto.advice import ONE_VALUE
from cuanto.errors import InputError
from cuanto.interfaces.read import is_checkpoint
from cuanto.methods.model import kind_of
from cuanto.system.formats import KNOWN_INPUTS as KNOWN_JOB_INPUTS
from cuanto.system.smiles import looks_like_smiles
from cuanto.system.text import parse_real, parse_whole, quote

KNOWN_INPUTS = KNOWN_JOB_INPUTS.replace("file, ", "file, - for standard input, ")
OBABEL = (".pdb", ".mol", ".mol2", ".sdf", ".cif", ".gjf", ".com", ".log", ".out", ".fchk", ".cml", ".mop")
"""Formats that Open Babel converts to XYZ."""
_ATOM = re.compile(r"[$&](nuc|bas|wtbs|s?econfig)\b", re.IGNORECASE)
"""Groups that only inputs of `cuanto atom` have."""
_OTHER_PROGRAM = re.compile(
    r"^[ \t]*(!|%\w|[$&]\w|\*[ \t]*(xyz|int|gzmt)|molecule\b.*\{|geometry\b)", re.IGNORECASE | re.MULTILINE
)
"""Lines of inputs of ORCA, GAMESS, Q-Chem, CP2K, Psi4 and NWChem."""
_Z_MATRIX = re.compile(r"^[ \t]*[a-z]{1,2}\d*[ \t]*\r?\n[ \t]*[a-z]{1,2}\d*[ \t]+1[ \t]+\S+[ \t]*\r?$", re.I | re.M)
"""The first two lines of a Z-matrix."""
HEAD = 65536
"""Number of bytes in which the format of a file is recognised."""


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
        if (hint := advice_about_format(given, path, in_a_job)) is not None:
            return InputError(f"{error}; {hint}")
    except (OSError, ValueError):  # names that no file can have
        pass
    return error


def advice_about_format(given: str, path: Path, in_a_job: bool) -> str | None:
    """Advice for a file of another format, by its suffix or else by its content."""
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
    return _advice_about_content(_head(path), given, suffix, "an XYZ file" if suffix == ".xyz" else target)


def _head(path: Path) -> str:
    """The beginning of a file; nothing of a pipe, which can be read only once."""
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        return file.read(HEAD).decode("utf-8", "replace")


def _advice_about_content(text: str, given: str, suffix: str, target: str) -> str | None:
    """Advice for the input of another program, a Z-matrix or the input of an atom; none for a wrong XYZ file."""
    if suffix == ".inp" and _ATOM.search(text):
        return f"for the input of an atom, use `cuanto atom {given}`"
    if parse_whole(text.partition("\n")[0].strip()) is not None:
        return None
    if _is_poscar(text.splitlines()[:5]):
        return f"it looks like a POSCAR file: convert it with `ase convert -o xyz {given} {target}`"
    if suffix == ".zmat" or _Z_MATRIX.search(text):
        return f"Z-matrices are not read: write Cartesian coordinates to {target}"
    if re.match(r"\s*\$coord\b", text):
        return f"convert it with `obabel -itmol {given} -O {target}`"
    if suffix == ".inp" or _OTHER_PROGRAM.search(text):
        return f"it looks like the input of another program: write its coordinates to {target}"
    return None


def _is_poscar(lines: Sequence[str]) -> bool:
    """Whether a title, a scaling factor and three vectors begin the text."""
    numbers = [[parse_real(word) for word in line.split()] for line in lines[1:]]
    return [len(row) for row in numbers] == [1, 3, 3, 3] and all(None not in row for row in numbers)


def _is_method(given: str) -> bool:
    try:
        return bool(kind_of(given))
    except InputError:
        return False


def _suggest(given: str, path: Path, known: str) -> str:
    """Suggestion after 'does not exist': a SMILES without its prefix, or a similar file name."""
    if looks_like_smiles(given):
        return f"; if it is a SMILES, write smiles:{given}"
    if known == KNOWN_INPUTS and parse_real(given) is not None:
        return f"; {ONE_VALUE}"
    if known == KNOWN_INPUTS and _is_method(given):
        return f"; a method is given with -m {given}, a basis with -b"
    names = [one.name for one in path.parent.iterdir()] if path.parent.is_dir() else []
    close = difflib.get_close_matches(path.name, names, n=1, cutoff=0.75)
    return f"; did you mean {quote(str(path.parent / close[0]), 200)}?" if close else f"; give {known}"
