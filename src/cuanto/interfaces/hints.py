"""What a person may have meant by something that is no molecule: one line that says what would work."""

from __future__ import annotations

import difflib
import re
import shlex
from pathlib import Path

from cuanto.errors import InputError
from cuanto.system.text import quoted

KNOWN = "an XYZ, QCSchema (JSON) or Molden file, - for standard input, or smiles:CCO"
HDF5 = b"\x89HDF\r\n\x1a\n"
OBABEL = (".pdb", ".mol", ".mol2", ".sdf", ".cif", ".gjf", ".com", ".log", ".out", ".fchk", ".cml", ".smi", ".mop")
"""Formats that Open Babel turns into XYZ."""
_SMILES = re.compile(r"(?:Cl|Br|[BCNOPSFIbcnops]|\[[^\]\s]+\]|[-=#$:/\\().%@+0-9])+")
_WITH_ATOM = re.compile(r"[BCNOPSFIbcnops\[]")


def not_a_molecule(given: str, error: InputError) -> InputError:
    """A better `error` for what was given, where one is known."""
    shown = quoted(given, 200)
    if not given.strip():
        return InputError(f"the name of the molecule is empty: give {KNOWN}")
    try:
        path = Path(given)
        if path.is_dir():
            return InputError(f"{shown} is a folder: name a file in it, or use --out FILE.csv for all its XYZ files")
        hint = _of_suffix(given, path)
        if hint is not None:
            return InputError(f"{shown} {hint}")
        if not path.exists():
            return InputError(f"{error}{_meant(given, path)}")
    except (OSError, ValueError):  # names that no file can have
        pass
    return error


def _of_suffix(given: str, path: Path) -> str | None:
    """What can be done with a file of another kind."""
    suffix = path.suffix.lower()
    if not given.isprintable():
        return None  # no escape sequences in a command that somebody may copy
    given, target = shlex.quote(given), shlex.quote(f"{path.stem}.xyz")
    if path.is_file():
        with path.open("rb") as file:
            if file.read(len(HDF5)) == HDF5:
                return f"is a checkpoint: give the molecule's own file, and --restart {given}"
    if suffix == ".traj":
        return f"is a trajectory of ASE: `ase convert {given} {target}`, then `cuanto energy {target} --out FILE.csv`"
    if suffix in OBABEL:
        return f"is not a format that cuanto reads: `obabel {given} -O {target}` makes an XYZ file"
    if suffix == ".toml":
        return f"is a job: `cuanto run {given}`"
    if suffix == ".inp":
        return f"is an input of an atom: `cuanto atom {given}`; a molecule is {KNOWN}"
    return None


def _meant(given: str, path: Path) -> str:
    """After 'does not exist': a SMILES without its prefix, or a name that is nearly right."""
    if _SMILES.fullmatch(given) and _WITH_ATOM.search(given):
        return f"; if it is a SMILES, write smiles:{given}"
    names = [one.name for one in path.parent.iterdir()] if path.parent.is_dir() else []
    close = difflib.get_close_matches(path.name, names, n=1, cutoff=0.75)
    return f"; did you mean {quoted(str(path.parent / close[0]), 200)}?" if close else f"; give {KNOWN}"
