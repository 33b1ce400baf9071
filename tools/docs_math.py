"""MkDocs hook: convert formulas to MathML when pages are built, so that readers need neither scripts nor a network.

`pymdownx.arithmatex` marks formulas, `latex2mathml` converts them, and browsers since 2023 render them.
"""

from __future__ import annotations

import html
import re
from typing import Any

from latex2mathml.converter import convert

INLINE = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.DOTALL)
DISPLAYED = re.compile(r'<div class="arithmatex">\s*\\\[(.*?)\\\]\s*</div>', re.DOTALL)


def on_page_content(html: str, **_: Any) -> str:
    """Return the page with its formulas as MathML."""
    return INLINE.sub(_inline, DISPLAYED.sub(_displayed, html))


def _inline(found: re.Match[str]) -> str:
    return str(convert(html.unescape(found[1]), display="inline"))


def _displayed(found: re.Match[str]) -> str:
    # Wide formulas scroll in their own box.
    formula = convert(html.unescape(found[1]), display="block")
    return f'<div style="overflow: auto hidden; padding-block: 0.4em">{formula}</div>'
