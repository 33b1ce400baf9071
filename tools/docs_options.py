"""MkDocs hook: replace `<!-- options -->` by the table of all options, made from `cuanto.options`."""

from __future__ import annotations

from typing import Any

from cuanto.options import OPTIONS, Option

MARK = "<!-- options -->"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Return the page with the table of options."""
    return markdown.replace(MARK, options_table())


def options_table() -> str:
    """A Markdown table with a row per option."""
    rows = [f"| `{name}` | {_values(option)} | {option.description} |" for name, option in OPTIONS.items()]
    return "\n".join(["| option | values (default first) | meaning |", "|---|---|---|", *rows])


def _values(option: Option) -> str:
    """The default, then the other choices or the range."""
    shown = "" if option.default is None else f"`{option.default}`"
    if option.choices:
        return ", ".join([shown, *(f"`{value}`" for value in option.choices if value != option.default)])
    return f"{shown}; {option.low:g} to {option.high:g}" if option.kind in ("number", "integer") else shown
