"""The page: one file, no request to anywhere; what it may run is fixed by the hashes of its own scripts."""

from __future__ import annotations

import base64
import hashlib
import json
import lzma
import os
from functools import lru_cache
from importlib.resources import files
from typing import Any

from cuanto.interfaces.files import write_text
from cuanto.report.markup import Markup, join, tag
from cuanto.report.record import Record, Source, read_record
from cuanto.report.sections import body
from cuanto.report.surfaces import Surface, frontier_surfaces
from cuanto.units import BOHR_IN_ANGSTROM


def write_report(path: str | os.PathLike[str], source: Source) -> None:
    """One self-contained HTML page of a result, its QCSchema dictionary, a JSON file of it or a checkpoint."""
    write_text(path, report_html(source))


def report_html(source: Source) -> str:
    """The text of the page."""
    record = read_record(source)
    surfaces = frontier_surfaces(record)
    scripts = [viewer_script(), resource("page.js")]
    title = f"{record.molecule.name or 'molecule'}: {record.method}{'/' + record.basis if record.basis else ''}"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_policy(scripts)),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="generator", content=record.program),
        tag("title", title),
        tag("style", Markup(resource("page.css"))),
    )
    data = tag("script", Markup(_json(_data(record, surfaces))), type="application/json", id="report-data")
    run = join(*(tag("script", Markup(script)) for script in scripts))
    page = tag("html", head, tag("body", body(record, surfaces), data, run), lang="en")
    text = f"<!doctype html>\n{page}\n"
    return text.encode("ascii", "xmlcharrefreplace").decode(
        "ascii"
    )  # scripts and styles are ASCII: no encoding to miss


def _data(record: Record, surfaces: list[Surface]) -> dict[str, Any]:
    """What the script draws; lengths in Angstrom."""
    molecule = record.molecule
    rows = zip(molecule.symbols, (molecule.R_ax * BOHR_IN_ANGSTROM).tolist(), strict=True)
    charges = next(iter(record.charges.values()), None)
    return {
        "atoms": [[symbol, *(round(x, 5) for x in R_x)] for symbol, R_x in rows],
        "charges": None if charges is None else [round(q, 3) for q in charges],
        "surfaces": [surface.packed() for surface in surfaces],
    }


def _json(value: Any) -> str:
    """That cannot end the element it stands in."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _policy(scripts: list[str]) -> str:
    """Nothing is fetched, nothing runs but these scripts."""
    hashes = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes)
    return f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'"


@lru_cache
def resource(name: str) -> str:
    """A text that is shipped with the package."""
    return (files("cuanto") / "data" / "report" / name).read_text(encoding="utf-8")


@lru_cache
def viewer_script() -> str:
    """3Dmol.js; its origin and licence are beside it. The text must not end the element that it stands in."""
    packed = (files("cuanto") / "data" / "report" / "3Dmol-min.js.xz").read_bytes()
    text = lzma.decompress(packed).decode("utf-8")
    notice = (
        "/*! 3Dmol.js, (c) University of Pittsburgh and contributors, BSD-3-Clause; includes code of GLmol, Three.js */"
    )
    text = text.replace("</script", "<\\/script").replace("<!--", "<\\!--")
    return f"{notice}\n" + "".join(c if c.isascii() else f"\\u{ord(c):04x}" for c in text)
