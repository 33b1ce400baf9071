"""HTML and SVG that are safe by construction: everything that is not markup is escaped."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

VOID = frozenset(("meta", "input", "br", "line", "circle", "rect", "path", "polyline"))
"""Elements without content; those of SVG close themselves."""
MAX_NUMBER = 1e12
"""Larger numbers cannot be a property of a molecule in any of our units."""


class Markup(str):
    """Text that is markup and is not escaped again."""


def tag(name: str, /, *children: object, **attributes: object) -> Markup:
    """An element; attributes are given as `class_` or `stroke_width`, and left out if they are None or False."""
    given = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in VOID and not children:
        return Markup(f"<{name}{given}/>")
    return Markup(f"<{name}{given}>{join(*children)}</{name}>")


def join(*children: object) -> Markup:
    """Concatenate children; None is left out, text is escaped."""
    return Markup("".join(c if isinstance(c, Markup) else escape(str(c)) for c in children if c is not None))


def headed_table(heads: Iterable[str], rows: Iterable[Markup], **attributes: object) -> Markup:
    """A table with a row of heads."""
    head = tag("thead", tag("tr", *(tag("th", one) for one in heads)))
    return tag("table", head, tag("tbody", *rows), **attributes)


def _attribute(key: str, value: object) -> str:
    if value is None or value is False:
        return ""
    name = "viewBox" if key == "viewBox" else key.rstrip("_").replace("_", "-")
    if isinstance(value, float):
        value = f"{value:.2f}"
    return f" {name}" if value is True else f' {name}="{escape(str(value))}"'


def number(value: float, digits: int, unit: str = "") -> str:
    """Format a number with a typographic minus sign; a dash for missing or impossible values."""
    if not abs(value) < MAX_NUMBER:
        return "\u2013"
    text = f"{value:.{digits}f}".replace("-", "\u2212")
    return f"{text} {unit}".rstrip()


def seconds(value: float) -> str:
    """Format a time in minutes, seconds or milliseconds."""
    if value >= 120:
        return f"{value / 60:.1f} min"
    return f"{value:.2f} s" if value >= 0.1 else f"{value * 1e3:.1f} ms"
