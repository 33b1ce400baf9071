"""A hook of MkDocs: `<!-- options -->` becomes the table of all options, made from their fields."""

from __future__ import annotations

from typing import Any

from cuanto.options import OPTIONS, Option

MARK = "<!-- options -->"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """The page with its table."""
    return markdown.replace(MARK, options_table())


def options_table() -> str:
    """A row for every option."""
    rows = [f"| `{name}` | {_values(option)} | {option.description} |" for name, option in OPTIONS.items()]
    return "\n".join(["| option | values (default first) | what it is |", "|---|---|---|", *rows])


def _values(option: Option) -> str:
    """The default, then what else is possible."""
    shown = "" if option.default is None else f"`{option.default}`"
    if option.choices:
        return ", ".join([shown, *(f"`{value}`" for value in option.choices if value != option.default)])
    return f"{shown}; {option.low:g} to {option.high:g}" if option.kind in ("number", "integer") else shown
