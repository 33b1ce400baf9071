"""A hook of MkDocs: the script that lets the search work from a disk is our own, so that no page needs a network."""

from __future__ import annotations

from typing import Any

REMOTE = "https://unpkg.com/iframe-worker/shim"
OWN = "assets/worker.js"


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """The page with our script in place of the remote one."""
    depth = page.file.dest_uri.count("/")
    return output.replace(REMOTE, "../" * depth + OWN)


def on_post_template(output_content: str, **_: Any) -> str:
    """The same in the page for addresses that do not exist."""
    return output_content.replace(REMOTE, f"/{OWN}")
