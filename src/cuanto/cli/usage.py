"""Messages for wrong options and arguments: what was given, what is wrong, what would work.

Typer has no public names for the classes of these errors, and their texts change between releases, so they are
recognised by class name and attributes.
"""

from __future__ import annotations

import difflib
import re
from typing import Any

from cuanto.advice import ONE_VALUE, advice_about, advice_about_flag
from cuanto.options import SIMILARITY

COMMANDS = {
    **dict.fromkeys(("sp", "singlepoint", "single-point", "scf", "hf", "dft"), "energy"),
    **dict.fromkeys(("grad", "force", "forces", "engrad"), "gradient"),
    **dict.fromkeys(("geomopt", "minimize", "minimise"), "optimize"),
    **dict.fromkeys(("vib", "vibrations", "hessian", "hess", "ir", "thermo"), "frequencies"),
    **dict.fromkeys(("dynamics", "aimd"), "md"),
}
"""Commands by the names that they have in other programs."""
_MOLECULE = re.compile(r".+\.(xyz|json|molden)|smiles:.+", re.IGNORECASE)
_CHOICES = re.compile(r"not one of (.*)", re.DOTALL)
_WORD = re.compile(r"'([^']*)'")
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)")


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
    if _NUMBER.fullmatch(name):
        return f"there is no option {name}: {ONE_VALUE}"
    command = getattr(getattr(error, "ctx", None), "info_name", None)
    if (advice := advice_about_flag(name, str(command))) is not None:
        return f"there is no option {name}: {advice}"
    close = [one for one in sorted(getattr(error, "possibilities", None) or ()) if _resembles(one, name)]
    hint = f"; did you mean {' or '.join(close)}?" if close else ""
    return f"there is no option {name}{hint}"


def _resembles(known: str, given: str) -> bool:
    """Whether one begins like the other, or most letters are the same; typer suggests less similar options too."""
    known, given = (one.lstrip("-").replace("_", "-").lower() for one in (known, given))
    similarity = difflib.SequenceMatcher(None, known, given).ratio()
    return known.startswith(given) or given.startswith(known) or similarity >= SIMILARITY


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
        if (advice := advice_about(found[1])) is not None:
            return f"there is no command {found[1]!r}: {advice}"
        close = _WORD.findall(found[2])
        return f"there is no command {found[1][:40]!r}" + (f"; did you mean {' or '.join(close)}?" if close else "")
    if found := re.match(r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)", text):
        words = found[1].split()
        advice = f": {ONE_VALUE}" if all(map(_NUMBER.fullmatch, words)) else ""
        return f"unexpected argument {' '.join(map(repr, words))}{advice}"
    return text[:1].lower() + text[1:]
