"""Write the table of all options, from `cuanto.options`, into the page about the interface.

python tools/docs_options.py
"""

from __future__ import annotations

from pathlib import Path

from cuanto.options import OPTIONS, Option

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "interface.md"
BEGIN, END = "<!-- made by tools/docs_options.py -->\n", "<!-- end -->"


def with_table(markdown: str) -> str:
    """The page with the current table of options."""
    before, rest = markdown.split(BEGIN)
    return before + BEGIN + "\n" + options_table() + "\n\n" + END + rest.split(END, 1)[1]


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


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text()))
