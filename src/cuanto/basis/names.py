"""Names of basis sets as people write them: other spellings, and different sets for different elements."""

import re
from collections.abc import Callable, Mapping

from cuanto.errors import require
from cuanto.system.text import quote

_POPLE = re.compile(r"6-?(31|311)(\+{0,2})g(\(d\)|\(d,p\)|dp?|\*{0,2})")
_POLARISED = {"(d)": "*", "(d,p)": "**", "d": "*", "dp": "**"}
_SPELLINGS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"(ma-?)?def2[-_ ]?(sv\(p\)|sv|tzv|qzv|universal)(.*)"), lambda m: _join(m[1], "def2", m[2] + m[3])),
    (
        re.compile(r"(d-?aug|aug|heavy-?aug|jul|jun|may|apr)?-?cc-?p(w?c)?v(\(?[dtq56](?:\+d\))?z)(.*)"),
        lambda m: _join(m[1] and m[1].replace("daug", "d-aug"), "cc", f"p{m[2] or ''}v{m[3]}{m[4]}"),
    ),
    (re.compile(r"sto(\d)g(\*?)"), lambda m: f"sto-{m[1]}g{m[2]}"),
    (re.compile(r"(aug-)?(pcseg|pc)([0-4])"), lambda m: f"{m[1] or ''}{m[2]}-{m[3]}"),
    (re.compile(r"321g"), lambda m: "3-21g"),
)
_PART = re.compile(r"\s*([A-Za-z]{1,2}|default|\*)\s*[=:]\s*(\S.*?)\s*", re.IGNORECASE)
_SEPARATOR = re.compile(r"[,;](?![^(]*\))")


def canonical_name(name: str) -> str:
    """The usual spelling: `6-31G(d)` is 6-31g*, `def2svp` is def2-svp; other names are returned as they are."""
    plain = name.strip().lower()
    if found := _POPLE.fullmatch(plain):
        usual = f"6-{found[1]}{found[2]}g{_POLARISED.get(found[3], found[3])}"
    else:
        usual = next((write(found) for form, write in _SPELLINGS if (found := form.fullmatch(plain))), plain)
    return name if usual == plain else usual


def split_names(text: str) -> Mapping[str, str] | None:
    """Sets by element of a text such as `O=def2-tzvp,H=def2-svp` (`default=` or `*=`, or a name without an
    element, applies to all others; a semicolon also separates).

    None for the name of a single set.
    """
    parts = [part.strip() for part in _SEPARATOR.split(text)]
    found = [_PART.fullmatch(part) for part in parts]
    others = [part for part, match in zip(parts, found, strict=True) if match is None]
    if not any(found) or len(others) > 1 or not all(others):
        return None
    elements = [match[1].capitalize() for match in found if match]
    for element in elements:
        require(elements.count(element) == 1, f"{quote(text, 80)} has more than one basis for {element}: give one")
    names = {match[1]: match[2] for match in found if match}
    return {**names, "default": others[0]} if others else names


def _join(prefix: str | None, family: str, rest: str) -> str:
    return "-".join(part.rstrip("-") for part in (prefix, family, rest) if part)
