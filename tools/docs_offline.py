"""MkDocs hook: replace the remote script that the search needs for pages opened from a disk by a local one."""

from __future__ import annotations

from typing import Any

REMOTE = "https://unpkg.com/iframe-worker/shim"
OWN = "assets/worker.js"


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Return the page with our script."""
    depth = page.file.dest_uri.count("/")
    return output.replace(REMOTE, "../" * depth + OWN)


def on_post_template(output_content: str, **_: Any) -> str:
    """Return the page for unknown addresses with our script."""
    return output_content.replace(REMOTE, f"/{OWN}")
