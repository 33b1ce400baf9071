"""``cuanto run job.toml``: a calculation written down, so that it can be repeated and handed on."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from cuanto.cli.arguments import Verbose, examples
from cuanto.cli.calculate import OUTPUTS, STDOUT, Job, carry_out
from cuanto.errors import InputError
from cuanto.options import OPTIONS, CalculationOptions, options_of, require_known

EXAMPLES = examples(
    "cuanto run water.toml",
    "cuanto run --template > water.toml    writes a job with every key explained",
)
TEMPLATE = """\
# Paths are relative to this file, and stay in its folder (`cuanto run --anywhere` lifts that).
molecule = "water.xyz"        # or a list of them; XYZ, QCSchema JSON, Molden, or "smiles:CCO"
method = "b3lyp"              # hf, rhf, uhf, rohf; a functional (`cuanto functionals`); mndo, am1, pm3, pm6
basis = "def2-svp"            # leave out for semiempirical methods
# charge = 0
# multiplicity = 1
# restart = "water.h5"        # a checkpoint
OPTIONS

[options]                     # of the self-consistent field
max_iterations = 100

[output]                      # {name}: the name of the molecule's file
json = "{name}.json"
# molden = "{name}.molden"
# checkpoint = "{name}.h5"
# report = "{name}.html"
"""
EXAMPLE = {
    "basis": "def2-universal-jkfit",
    "grid": "fine",
    "size": "4GB",
    "numbers": [0.0, 0.0, 0.001],
    "charges": [[0.5], [[0.0, 0.0, 6.0]]],
}
"""Values of options without a default, by kind."""
ABOUT = ("molecule", "method", "basis", "charge", "multiplicity", "restart")
KEYS = options_of(CalculationOptions)
"""Options that are keys of the first level."""
SETTINGS = [name for name, option in OPTIONS.items() if name not in KEYS or not option.flags]
"""Options that may stand in the table [options]."""
TABLES = ("options", "output")
LARGEST_FILE = 1 << 20


def job_template() -> str:
    """A job with every key of the first level explained."""
    lines = []
    for name, option in KEYS.items():
        line = f"# {name} = {json.dumps(EXAMPLE[option.kind] if option.default is None else option.default)}"
        lines.append(f"{line:29} # {', '.join(option.choices) or option.described}")
    return TEMPLATE.replace("OPTIONS", "\n".join(lines))


def run(
    job: Annotated[Path | None, typer.Argument(metavar="JOB.toml", help="The calculation.", show_default=False)] = None,
    anywhere: Annotated[
        bool, typer.Option("--anywhere", help="Let the job read and write outside its own folder.")
    ] = False,
    template: Annotated[bool, typer.Option("--template", help="Print a job to begin with.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the energies only.")] = False,
    verbose: Verbose = False,
) -> None:
    """Run the calculation that a TOML file describes; exit status 0 converged, 1 not converged, 2 bad input."""
    if template:
        print(job_template(), end="")
        return
    if job is None:
        raise InputError("give a job such as job.toml; `cuanto run --template` prints one to begin with")
    from cuanto.interfaces.keywords import about

    with about(str(job)):
        status = carry_out(read_job(job, anywhere, quiet))
    if status:
        raise typer.Exit(status)


def read_job(path: Path, anywhere: bool = False, quiet: bool = False) -> Job:
    """A job file, every key and type checked."""
    from cuanto.interfaces.keywords import about, checked_keywords

    job, where = _parsed(path), str(path)
    require_known(job, (*ABOUT, *KEYS, *TABLES), f"{where}: unknown key")
    options, output = (_table(job, name, where) for name in TABLES)
    require_known(options, SETTINGS, f"{where}: [options]: unknown key")
    require_known(output, OUTPUTS, f"{where}: [output]: unknown key")
    place = Places(path.parent, anywhere, where)
    arguments = {name: value for name, value in job.items() if name in KEYS}
    if isinstance(arguments.get("auxbasis"), str):
        arguments["auxbasis"] = place.of_basis(arguments["auxbasis"], "auxbasis")
    basis, restart = _text(job, "basis", where), _text(job, "restart", where)
    outputs = {name: _text(output, name, where) for name in output}
    if STDOUT in outputs.values():
        raise InputError(f"{where}: a job writes files, not to standard output; name one, such as '{{name}}.json'")
    with about(where):
        return Job(
            sources=[place.of_molecule(name) for name in _molecules(job, where)],
            method=_text(job, "method", where),
            basis=None if basis is None else place.of_basis(basis, "basis"),
            charge=_whole(job, "charge", where),
            multiplicity=_whole(job, "multiplicity", where),
            keywords=checked_keywords({**arguments, **options}, where),
            outputs={name: place.of(text, name) for name, text in outputs.items() if text is not None},
            restart=None if restart is None else place.of(restart, "restart"),
            quiet=quiet,
            file=where,
        )


class Places:
    """Paths of a job: relative to its folder and, unless `anywhere`, within it: a job may come from a stranger."""

    def __init__(self, folder: Path, anywhere: bool, where: str) -> None:
        self.folder, self.anywhere, self.where = folder, anywhere, where

    def of(self, text: str, key: str) -> str:
        """Where a file is."""
        if not text or "\0" in text:
            raise InputError(f"{self.where}: {key} must be the name of a file")
        path = os.path.expanduser(text) if self.anywhere else text
        target = (self.folder / path).resolve()
        if not self.anywhere and not target.is_relative_to(self.folder.resolve()):
            raise InputError(
                f"{self.where}: {key} {text!r} leaves the folder of the job; copy the file there, "
                "or trust the job with `cuanto run --anywhere`"
            )
        if self.folder == Path() and not path.startswith("~"):
            return path  # as it was written: ./basis is a file, and ./- is one, too
        return os.path.join(self.folder, path)

    def of_molecule(self, text: str) -> str:
        """A file, or what is none; standard input is not reproducible."""
        if text == STDOUT:
            raise InputError(f"{self.where}: a job cannot read its molecule from standard input; name a file")
        return text if text.lower().startswith("smiles:") else self.of(text, "molecule")

    def of_basis(self, text: str, key: str) -> str:
        """A name of the Exchange as it is, a file where it is."""
        from cuanto.basis.library import is_file

        looks_like_path = text.startswith((".", "~", os.sep)) or ".." in Path(text).parts
        here = self.folder / text
        if is_file(text) or looks_like_path or (os.sep in text and here.is_file()):
            return self.of(text, key)
        return text


def _parsed(path: Path) -> dict[str, Any]:
    from cuanto.system.text import read_text

    if path.is_file() and path.stat().st_size > LARGEST_FILE:
        raise InputError(f"{path} is larger than 1 MB: that is no job; see `cuanto run --template`")
    try:
        return tomllib.loads(read_text(path, "job"))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        hint = "" if path.suffix.lower() == ".toml" else f"; a molecule is computed with `cuanto energy {path}`"
        raise InputError(f"{path} is no valid TOML: {' '.join(str(error).split())}{hint}") from None


def _table(job: Mapping[str, Any], name: str, where: str) -> dict[str, Any]:
    found = job.get(name, {})
    if not isinstance(found, dict):
        raise InputError(f"{where}: {name} must be a table; write [{name}] on a line of its own")
    return found


def _molecules(job: Mapping[str, Any], where: str) -> list[str]:
    found = job.get("molecule")
    names = [found] if isinstance(found, str) else found
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise InputError(f"{where}: say which molecule, such as molecule = 'water.xyz' (or a list of files)")
    return names


def _text(given: Mapping[str, Any], name: str, where: str) -> str | None:
    value = given.get(name)
    if value is not None and not isinstance(value, str):
        raise InputError(f"{where}: {name} must be a text in quotes, not {value!r:.60}")
    return value


def _whole(given: Mapping[str, Any], name: str, where: str) -> int | None:
    value = given.get(name)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise InputError(f"{where}: {name} must be a whole number, not {value!r:.60}")
    return value
