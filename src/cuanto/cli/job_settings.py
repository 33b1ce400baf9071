"""Settings of the tasks of a job file, each read from the table named after the task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from cuanto.cli.frequencies import CONDITION_FLAGS, HESSIAN_FLAGS, TABLE
from cuanto.cli.md import MOTION_FLAGS
from cuanto.errors import InputError
from cuanto.options import require_known

NUMBER, WHOLE, SWITCH, TEXT = "a number", "a whole number", "true or false", "text in quotes"
KINDS: dict[type, str] = {float: NUMBER, int: WHOLE, bool: SWITCH}


def _kinds(flags: Mapping[str, Any]) -> dict[str, str]:
    """Kinds of values from the annotations `Annotated[type | None, ...]` of flags of the same names."""
    types = {name: get_args(get_args(one)[0])[0] for name, one in flags.items()}
    return {name: KINDS.get(one, TEXT) for name, one in types.items()}


FREQUENCIES = _kinds({**CONDITION_FLAGS, **HESSIAN_FLAGS, "workers": TABLE["workers"]})
"""Keys of [frequencies], and kinds of their values; `isotopes` may also be a table."""
MD = _kinds(MOTION_FLAGS)
"""Keys of [md], and kinds of their values."""


def checked_table(table: Mapping[str, Any], kinds: Mapping[str, str], name: str) -> dict[str, Any]:
    """The values of a table; errors name the table, and suggest the closest key for an unknown one."""
    require_known(table, kinds, f"[{name}]: unknown key")
    for key, value in table.items():
        if not _is_a(value, kinds[key]):
            raise InputError(f"[{name}]: {key} must be {kinds[key]}, not {value!r:.60}")
    return dict(table)


def _is_a(value: Any, kind: str) -> bool:
    if kind in (SWITCH, TEXT):
        return isinstance(value, bool if kind == SWITCH else str)
    allowed = int if kind == WHOLE else (int, float)
    return isinstance(value, allowed) and not isinstance(value, bool)


def frequencies_settings(table: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of frequencies; `isotopes` are a table such as {2 = "D"}, or text such as "2=D"."""
    from cuanto.motion.thermochemistry import Conditions

    isotopes = table.get("isotopes", {})
    if not isinstance(isotopes, str | dict):
        raise InputError(f'[frequencies]: isotopes must be a table such as {{2 = "D"}}, not {isotopes!r:.60}')
    given = {name: value for name, value in table.items() if name != "isotopes"}
    found = checked_table(given, FREQUENCIES, "frequencies")
    Conditions(**{name: value for name, value in found.items() if name in vars(Conditions())})
    if found.get("workers", 0) < 0:
        raise InputError("[frequencies]: workers must not be negative")
    return {**found, "isotopes": isotopes}


def md_settings(table: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of dynamics."""
    found = checked_table(table, MD, "md")
    for name, smallest in (("steps", 1), ("every", 1), ("seed", 0)):
        if found.get(name, smallest) < smallest:
            raise InputError(f"[md]: {name} must be at least {smallest}")
    return found
