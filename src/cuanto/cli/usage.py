"""Messages for wrong options and arguments: what was given, what is wrong, what would work.

Typer has no public names for the classes of these errors, and their texts change between releases, so they are
recognised by class name and attributes.
"""

from __future__ import annotations

import re
from typing import Any

_THREADS = "give the number of threads with --threads, such as --threads 4"
_SOLVENT = (
    "solvent models are not implemented; add molecules of the solvent to the file, or surround the molecule with point "
    "charges (e, and positions in Bohr): -o 'point_charges=[[-0.8, 0.4], [[0, 0, 5], [0, 1, 6]]]'"
)
_MULTIPLICITY = "give the multiplicity 2S + 1 with --multiplicity, such as 3 for two unpaired electrons"
_UNRESTRICTED = "put a u before the method, such as -m uhf or -m ub3lyp"
_ITERATIONS = "give the largest number of iterations as an option, such as -o max_iterations=200"
ADVICE = {
    **dict.fromkeys(("--nthreads", "--nprocs", "--nproc", "--ncores", "--cores", "--cpus"), _THREADS),
    **dict.fromkeys(("--spin", "--unpaired", "--nopen", "--uhf-electrons"), _MULTIPLICITY),
    **dict.fromkeys(("--solvent", "--solvation", "--pcm", "--cpcm", "--smd", "--alpb", "--gbsa", "--cosmo"), _SOLVENT),
    **dict.fromkeys(("--unrestricted", "--uhf", "--uks"), _UNRESTRICTED),
    **dict.fromkeys(("--functional", "--xc", "--theory"), "give the functional with --method, such as -m pbe0"),
    **dict.fromkeys(("--memory", "--mem"), "give the memory with --max-memory, such as 4GB"),
    **dict.fromkeys(("--gpu", "--cuda"), "choose the device with --backend cuda"),
    **dict.fromkeys(("--opt", "--optimize"), "use `cuanto optimize`"),
    **dict.fromkeys(("--freq", "--frequencies", "--hessian"), "use `cuanto frequencies`"),
    **dict.fromkeys(("--output", "--out-file"), "results are written with --json, --molden, --report or --out"),
    **dict.fromkeys(("--dispersion", "--d3", "--d4"), "add -d3bj or -d4 to the method, such as -m b3lyp-d4"),
    **dict.fromkeys(("--maxiter", "--max-iter", "--max-iterations", "--maxcycle", "--max-cycle"), _ITERATIONS),
    **dict.fromkeys(("-c", "--chrg"), "give the charge with --charge"),
    **dict.fromkeys(("--nosym", "--symmetry"), "energies do not use symmetry: leave it out"),
}
"""What would work instead of options of other programs."""

COMMANDS = {
    **dict.fromkeys(("sp", "singlepoint", "single-point", "scf", "hf", "dft"), "energy"),
    **dict.fromkeys(("grad", "force", "forces", "engrad"), "gradient"),
    **dict.fromkeys(("geomopt", "minimize", "minimise"), "optimize"),
    **dict.fromkeys(("vib", "vibrations", "hessian", "hess"), "frequencies"),
    **dict.fromkeys(("dynamics", "aimd"), "md"),
}
"""Commands by the names that they have in other programs."""
_MOLECULE = re.compile(r".+\.(xyz|json|molden)|smiles:.+", re.IGNORECASE)
_CHOICES = re.compile(r"not one of (.*)", re.DOTALL)
_WORD = re.compile(r"'([^']*)'")


def usage_line(error: Exception) -> str | None:
    """The message in one line; None for other kinds of errors."""
    if not hasattr(error, "format_message"):
        return None
    kinds = {
        "MissingParameter": _missing,
        "NoSuchOption": _no_such_option,
        "BadOptionUsage": _needs_value,
        "BadParameter": _bad_value,
    }
    text = "".join(c if c.isprintable() else "?" for c in kinds.get(type(error).__name__, _other)(error))
    context = getattr(error, "ctx", None)
    if context is None:
        return text
    return f"{text}{' See' if text.endswith('?') else '; see'} `{context.command_path} --help`"


def _name(parameter: Any) -> str:
    """The long form of an option, or the name of an argument in the help text."""
    options: list[str] = [one for one in getattr(parameter, "opts", ()) if one.startswith("-")]
    if options:
        return max(options, key=len)
    return str(getattr(parameter, "metavar", None) or getattr(parameter, "name", None) or "argument").upper()


def _missing(error: Any) -> str:
    parameter = getattr(error, "param", None)
    about = " ".join(str(getattr(parameter, "help", None) or "").replace("\\[", "[").split()).rstrip(".")
    return f"{_name(parameter)} is missing" + (f": {about}" if about else "")


def _no_such_option(error: Any) -> str:
    name = str(getattr(error, "option_name", ""))
    if name.lower() in ADVICE:
        return f"there is no option {name}: {ADVICE[name.lower()]}"
    close = sorted(getattr(error, "possibilities", None) or ())
    hint = f"; did you mean {' or '.join(close)}?" if close else ""
    return f"there is no option {getattr(error, 'option_name', '')}{hint}"


def _needs_value(error: Any) -> str:
    name = getattr(error, "option_name", "an option")
    if "does not take a value" in str(getattr(error, "message", "")):
        return f"{name} takes no value: leave out the = and what follows it"
    return f"{name} needs a value after it"


def _bad_value(error: Any) -> str:
    from cuanto.system.text import quote

    parameter, message = getattr(error, "param", None), str(getattr(error, "message", ""))
    given = _given(error, message)
    shown = _name(parameter) + ("" if given is None else f" {quote(given)}")
    if found := _CHOICES.search(message):
        return f"{shown}: choose {', '.join(_WORD.findall(found[1]))}"
    low, high = (_limit(parameter, side) for side in ("min", "max"))
    kind = "a number" if "number" in message or "float" in message else "a whole number"
    if low is not None or high is not None:
        return f"{shown}: give a whole number" + (f" of at least {low}" if high is None else f" from {low} to {high}")
    if "integer" in message or kind == "a number":
        return f"{shown}: give {kind}"
    return f"{shown}: {message.rstrip('.')}"


def _limit(parameter: Any, side: str) -> Any:
    """A limit of the parameter or, in older releases of typer, of its type."""
    found = getattr(parameter, side, None)
    return getattr(getattr(parameter, "type", None), side, None) if found is None else found


def _given(error: Any, message: str) -> object:
    """The wrong value, from the cause of the error or from its text."""
    cause = error.__cause__
    if hasattr(cause, "errors"):
        return next((one.get("input") for one in cause.errors()), None)
    found = _WORD.match(message) or re.match(r"(\S+) is not in the range", message)
    return found[1] if found else None


def _other(error: Any) -> str:
    """The message about an unknown command or an unexpected argument."""
    text = " ".join(str(error.format_message()).split()).rstrip(".")
    if found := re.match(r"No such command '([^']*)'\.?(.*)", text):
        if found[1].lower() in COMMANDS:
            return f"there is no command {found[1]!r}: use `cuanto {COMMANDS[found[1].lower()]}`"
        if _MOLECULE.fullmatch(found[1]):
            return f"a command is missing before {found[1][:40]!r}: for the energy, use `cuanto energy {found[1][:40]}`"
        close = _WORD.findall(found[2])
        return f"there is no command {found[1][:40]!r}" + (f"; did you mean {' or '.join(close)}?" if close else "")
    if found := re.match(r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)", text):
        return f"unexpected argument {' '.join(repr(word) for word in found[1].split())}"
    return text[:1].lower() + text[1:]
