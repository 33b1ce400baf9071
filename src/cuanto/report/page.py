"""The HTML page: one file without network requests; its policy allows only its own scripts, by their hashes."""

from __future__ import annotations

import base64
import hashlib
import json
import lzma
import os
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any

from cuanto.errors import InputError
from cuanto.files import write_text
from cuanto.interfaces.optimization import NAME as OPTIMIZATION
from cuanto.interfaces.qcschema import read_molecule
from cuanto.interfaces.read import from_schema, read, read_schema
from cuanto.interfaces.vibrations import is_hessian, read_hessian
from cuanto.interfaces.wavefunction import wavefunction_of
from cuanto.methods import Result
from cuanto.motion.optimize import OptimizationResult
from cuanto.motion.vibrations import Vibrations
from cuanto.report.markup import Markup, join, tag
from cuanto.report.motion import Motion, geometries_in, geometries_of
from cuanto.report.sections import atomic_charges, body, dipole_vector
from cuanto.report.surfaces import Surface, frontier_surfaces
from cuanto.units import BOHR_IN_ANGSTROM

EXPECTED_OPTIMIZATION = "give the JSON of `cuanto optimize --json`"
Source = Result | Vibrations | OptimizationResult | Mapping[str, Any] | str | os.PathLike[str]


def write_report(path: str | os.PathLike[str], source: Source) -> None:
    """Write one self-contained HTML page about a result, vibrations or an optimisation.

    `source` may also be a QCSchema dictionary, a JSON file of it, or a checkpoint.
    """
    write_text(path, report_html(source))


def report_html(source: Source) -> str:
    """The text of the page."""
    result, motion = _parts(source)
    surfaces, reason = _surfaces(result)
    moving = motion.data()
    scripts = [viewer_script(), resource("page.js"), *([resource("motion.js")] if moving else [])]
    title = f"{result.molecule.name or 'molecule'}: {result.level_of_theory}"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_policy(scripts)),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="generator", content=result.program),
        tag("title", title),
        tag("style", Markup(resource("page.css"))),
    )
    data = tag("script", Markup(_json(_data(result, surfaces) | moving)), type="application/json", id="report-data")
    run = join(*(tag("script", Markup(script)) for script in scripts))
    page = tag("html", head, tag("body", body(result, surfaces, reason, motion), data, run), lang="en")
    text = f"<!doctype html>\n{page}\n"
    # Scripts and styles are ASCII as well, so that the page does not depend on an encoding.
    return text.encode("ascii", "xmlcharrefreplace").decode("ascii")


def _parts(source: Source) -> tuple[Result, Motion]:
    """The result that the page is about, and its motion, if any."""
    if isinstance(source, Result):
        return source, Motion()
    if isinstance(source, OptimizationResult):
        return source.result, Motion.of_geometries(geometries_of(source), source.converged)
    if isinstance(source, Vibrations):
        if source.result is None:
            raise InputError("these vibrations were read from a Hessian file: make the report from the file itself")
        return source.result, Motion.of_vibrations(source)
    given, where = (source, "the result") if isinstance(source, Mapping) else (read_schema(source), str(source))
    if given is None:
        return read(source), Motion()
    if is_hessian(given):
        return from_schema(given, where), Motion.of_vibrations(read_hessian(given))
    if given.get("schema_name") == OPTIMIZATION and given.get("trajectory"):
        trajectory = given["trajectory"]
        if not isinstance(trajectory, list) or not all(isinstance(row, Mapping) for row in trajectory):
            raise InputError(f"the trajectory in {where} is not a list of results: {EXPECTED_OPTIMIZATION}")
        molecules = [read_molecule(row, where) for row in trajectory]
        try:
            found = geometries_in(trajectory, molecules)
        except (KeyError, TypeError, ValueError):
            raise InputError(f"the trajectory in {where} has incomplete results: {EXPECTED_OPTIMIZATION}") from None
        return from_schema(trajectory[-1], where), Motion.of_geometries(found, given.get("success") is True)
    return from_schema(given, where), Motion()


def _surfaces(result: Result) -> tuple[list[Surface], str]:
    """Frontier orbitals, or the reason why there are none."""
    try:
        return frontier_surfaces(wavefunction_of(result), result.molecule), "The orbitals cannot be drawn."
    except InputError as error:
        reason = str(error)
        return [], f"{reason[0].upper()}{reason[1:]}."


def _data(result: Result, surfaces: list[Surface]) -> dict[str, Any]:
    """Data for the script that draws the molecule; lengths in Angstrom."""
    molecule = result.molecule
    rows = zip(molecule.symbols, (molecule.R_ax * BOHR_IN_ANGSTROM).tolist(), strict=True)
    charges, dipole = next(iter(atomic_charges(result).values()), None), dipole_vector(result)
    return {
        "atoms": [[symbol, *(round(x, 5) for x in R_x)] for symbol, R_x in rows],
        "charges": None if charges is None else [round(float(q), 3) for q in charges],
        "dipole": None if dipole is None else [round(float(x), 4) for x in dipole],
        "surfaces": [surface.packed() for surface in surfaces],
    }


def _json(value: Any) -> str:
    """JSON that cannot close the HTML element that contains it."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _policy(scripts: list[str]) -> str:
    """Content security policy: nothing is fetched, and only these scripts run."""
    hashes = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes)
    return f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'"


@lru_cache
def resource(name: str) -> str:
    """A text file of the package."""
    return (files("cuanto") / "data" / "report" / name).read_text(encoding="utf-8")


@lru_cache
def viewer_script() -> str:
    """3Dmol.js, changed so that it cannot close its own element; origin and licence are beside the file."""
    packed = (files("cuanto") / "data" / "report" / "3Dmol-min.js.xz").read_bytes()
    text = lzma.decompress(packed).decode("utf-8")
    notice = (
        "/*! 3Dmol.js, (c) University of Pittsburgh and contributors, BSD-3-Clause; includes code of GLmol, Three.js */"
    )
    text = text.replace("</script", "<\\/script").replace("<!--", "<\\!--")
    return f"{notice}\n" + "".join(c if c.isascii() else f"\\u{ord(c):04x}" for c in text)
