"""``cuanto run job.toml``: a calculation in a file, so that it can be repeated and shared."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from textwrap import wrap
from typing import Annotated, Any, TypeVar

import typer

from cuanto.cli.arguments import Quiet, Threads, Verbose, examples
from cuanto.cli.calculate import COUNTERPOISE, OUTPUTS, STDOUT, TASKS, Job, run_job
from cuanto.cli.counterpoise import OUTPUTS as COUNTERPOISE_OUTPUTS
from cuanto.cli.counterpoise import checked_division
from cuanto.cli.frequencies import DEFAULT_OUTPUTS as FREQUENCIES_OUTPUTS
from cuanto.cli.frequencies import Analysis, run_frequencies
from cuanto.cli.job_settings import FREQUENCIES, MD, frequencies_settings, md_settings
from cuanto.cli.lines import in_a_job
from cuanto.cli.md import DEFAULT_OUTPUTS as MD_OUTPUTS
from cuanto.cli.md import run_md
from cuanto.cli.optimize import DEFAULT_OUTPUTS as OPTIMIZE_OUTPUTS
from cuanto.cli.optimize import checked_settings
from cuanto.errors import InputError
from cuanto.options import OPTIONS, CalculationOptions, options_of, require_known

EXAMPLES = examples(
    "cuanto run water.toml",
    "cuanto run --template > water.toml    writes a job that explains every key",
)
EXAMPLE = {
    "basis": "def2-universal-jkfit",
    "grid": "fine",
    "size": "4GB",
    "numbers": [0.0, 0.0, 0.001],
    "charges": [[0.5], [[0.0, 0.0, 6.0]]],
}
"""Example values of options without a default, by kind."""
COMMENT_COLUMN, TEMPLATE_WIDTH = 30, 80
"""Column of the comments beside the keys of a template, and its width: longer comments are on lines of their own."""
TOP_LEVEL_KEYS = ("molecule", "task", "method", "basis", "charge", "multiplicity", "restart")
KEYS = options_of(CalculationOptions)
"""Options that are given outside the tables."""
SETTINGS = [name for name, option in OPTIONS.items() if name not in KEYS or not option.flags]
"""Options that may be given in the table [options]."""
TABLES = ("options", "output")
TASK_TABLES = {
    "optimize": checked_settings,
    "frequencies": frequencies_settings,
    "md": md_settings,
    COUNTERPOISE: checked_division,
}
"""Tables with the settings of a task of the same name, and the functions that check them."""
DEFAULT_OUTPUTS = {"optimize": OPTIMIZE_OUTPUTS, "frequencies": FREQUENCIES_OUTPUTS, "md": MD_OUTPUTS}
OUTPUTS_OF = {
    "optimize": (*OPTIMIZE_OUTPUTS, "json", "molden", "report"),
    "frequencies": (*FREQUENCIES_OUTPUTS, "json", "molden", "report"),
    "md": tuple(MD_OUTPUTS),
    COUNTERPOISE: COUNTERPOISE_OUTPUTS,
}
"""Files of tasks other than energies."""
TASK_ALIASES = {"opt": "optimize", "optimise": "optimize", "freq": "frequencies"}
"""Other names of tasks, as of the commands."""
MAX_FILE_BYTES = 1 << 20
Value = TypeVar("Value", str, int)


def job_template() -> str:
    """A job that explains every key outside of its tables."""
    template = (files("cuanto") / "data" / "job_template.toml").read_text(encoding="utf-8")
    lines = []
    for name, option in KEYS.items():
        line = f"# {name} = {json.dumps(EXAMPLE[option.kind] if option.default is None else option.default)}"
        comment = f"# {', '.join(option.choices) or option.description}"
        fits = len(line) < COMMENT_COLUMN and COMMENT_COLUMN + len(comment) <= TEMPLATE_WIDTH
        lines += (
            [f"{line:{COMMENT_COLUMN}}{comment}"]
            if fits
            else [*wrap(comment, TEMPLATE_WIDTH, subsequent_indent="# "), line]
        )
    return template.replace("OPTIONS", "\n".join(lines))


def run(
    job: Annotated[Path | None, typer.Argument(metavar="JOB.toml", help="The calculation.", show_default=False)] = None,
    anywhere: Annotated[
        bool, typer.Option("--anywhere", help="Let the job read and write outside its own folder.")
    ] = False,
    template: Annotated[bool, typer.Option("--template", help="Print a job to start from.")] = False,
    quiet: Quiet = False,
    threads: Threads = None,
    verbose: Verbose = False,
) -> None:
    """Run the calculation that a TOML file describes; exit status 0 converged, 1 not converged, 2 bad input."""
    if template:
        print(job_template(), end="")
        return
    if job is None:
        raise InputError("give a job such as job.toml; `cuanto run --template` prints one to start from")
    from cuanto.interfaces.keywords import errors_about

    in_a_job.set(True)
    with errors_about(str(job)):
        status = run_task(read_job(job, anywhere, quiet))
    if status:
        raise typer.Exit(status)


def run_task(job: Job) -> int:
    """Run the task of a job; returns the exit status."""
    if job.driver == "frequencies":
        return run_frequencies(replace(job, driver="hessian", settings={}), Analysis.of(job.settings))
    if job.driver == "md":
        return run_md(replace(job, driver="gradient"))
    return run_job(job)


def read_job(path: Path, anywhere: bool = False, quiet: bool = False) -> Job:
    """Read a job file and check every key and type; errors name the file."""
    from cuanto.interfaces.keywords import errors_about

    with errors_about(str(path)):
        return _job(_parse(path), Paths(path.parent, anywhere), str(path), quiet)


def _job(job: Mapping[str, Any], paths: Paths, where: str, quiet: bool) -> Job:
    from cuanto.interfaces.keywords import checked_keywords

    known = (*TOP_LEVEL_KEYS, *KEYS, *TABLES, *TASK_TABLES)
    for name in job:
        if name not in known and (tables := _tables_with(name)):
            lines = " or ".join(f"[{table}]" for table in tables)
            raise InputError(f"unknown key {name!r}; it belongs in a table: write it after a line {lines}")
    require_known(job, known, "unknown key")
    options, output = (_table(job, name) for name in TABLES)
    for name in options:
        if name not in SETTINGS and name in (*TOP_LEVEL_KEYS, *KEYS):
            raise InputError(f"[options]: unknown key {name!r}; it belongs in no table: write it before [options]")
    require_known(options, SETTINGS, "[options]: unknown key")
    task, settings = _task(job)
    require_known(output, OUTPUTS_OF.get(task, OUTPUTS), "[output]: unknown key")
    output = {**DEFAULT_OUTPUTS.get(task, {}), **output}
    arguments = {name: value for name, value in job.items() if name in KEYS}
    if isinstance(arguments.get("auxbasis"), str):
        arguments["auxbasis"] = paths.of_basis(arguments["auxbasis"], "auxbasis")
    basis, restart = _value(job, "basis", str), _value(job, "restart", str)
    outputs = {name: _value(output, name, str) for name in output}
    if STDOUT in outputs.values():
        raise InputError("a job writes files, not to standard output; name one, such as '{name}.json'")
    return Job(
        sources=[paths.of_molecule(name) for name in _molecules(job)],
        driver=task,
        settings=settings,
        method=_value(job, "method", str),
        basis=None if basis is None else paths.of_basis(basis, "basis"),
        charge=_value(job, "charge", int),
        multiplicity=_value(job, "multiplicity", int),
        keywords=checked_keywords({**arguments, **options}, where),
        outputs={name: paths.of(text, name) for name, text in outputs.items() if text is not None},
        restart=None if restart is None else paths.of(restart, "restart"),
        quiet=quiet,
        file=where,
        basis_path=paths.of_basis,
    )


def _tables_with(name: str) -> list[str]:
    """Tables of a job that have a key of this name."""
    from cuanto.motion.settings import NAMES

    outputs = {one for names in (OUTPUTS, *OUTPUTS_OF.values()) for one in names}
    keys = {"options": SETTINGS, "output": outputs, "optimize": NAMES, "frequencies": FREQUENCIES, "md": MD}
    return [table for table, names in keys.items() if name in names]


class Paths:
    """Paths of a job: relative to its folder and, unless `anywhere`, inside it, because job files may come from
    untrusted sources."""

    def __init__(self, folder: Path, anywhere: bool) -> None:
        self.folder, self.anywhere = folder, anywhere

    def of(self, text: str, key: str) -> str:
        """Path of a file."""
        if not text or "\0" in text:
            raise InputError(f"{key} must be the name of a file")
        path = os.path.expanduser(text) if self.anywhere else text
        target = (self.folder / path).resolve()
        if not self.anywhere and not target.is_relative_to(self.folder.resolve()):
            raise InputError(
                f"{key} {text!r} is outside the folder of the job; copy the file there, "
                "or trust the job with `cuanto run --anywhere`"
            )
        if self.folder == Path() and not path.startswith("~"):
            return path  # unchanged, because ./basis and ./- are files
        return os.path.join(self.folder, path)

    def of_molecule(self, text: str) -> str:
        """Path of a file, or a SMILES; standard input would not be reproducible."""
        if text == STDOUT:
            raise InputError("a job cannot read its molecule from standard input; name a file")
        return text if text.lower().startswith("smiles:") else self.of(text, "molecule")

    def of_basis(self, text: str, key: str) -> str:
        """Path of a basis file, or the name of a basis set unchanged."""
        from cuanto.basis.library import names_file
        from cuanto.basis.names import split_names

        if (parts := split_names(text)) is not None:
            return ",".join(f"{symbol}={self.of_basis(part, key)}" for symbol, part in parts.items())
        return self.of(text, key) if names_file(text, str(self.folder)) else text


def _parse(path: Path) -> dict[str, Any]:
    from cuanto.system.text import read_text

    if path.is_file() and path.stat().st_size > MAX_FILE_BYTES:
        raise InputError(f"{path} is larger than 1 MB, too large for a job; see `cuanto run --template`")
    try:
        return tomllib.loads(read_text(path, "job"))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"{path} is not valid TOML: {' '.join(str(error).split())}{_advice_about(path)}") from None


def _advice_about(path: Path) -> str:
    """Advice about a file that is not a job: the same as if it had been given as a molecule, unless it is one."""
    from cuanto.interfaces.hints import advice_about_format

    if path.suffix.lower() == ".toml":
        return ""
    advice = advice_about_format(str(path), path, in_a_job=False)
    return f"; {advice or f'to compute a molecule, use `cuanto energy {path}`'}"


def _table(job: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = job.get(name, {})
    if not isinstance(found, dict):
        raise InputError(f"{name} must be a table; write [{name}] on a line of its own")
    return found


def _task(job: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the task and its settings; a table with settings of another task is an error."""
    task = (_value(job, "task", str) or "energy").lower()
    task = TASK_ALIASES.get(task, task)
    if task not in TASKS:
        raise InputError(f"unknown task {task!r:.60}: choose {', '.join(TASKS)}")
    for name in TASK_TABLES:
        if name in job and name != task:
            raise InputError(f"[{name}] has settings of another task: write task = '{name}', or leave it out")
    if task not in TASK_TABLES:
        return task, {}
    if "restart" in job:
        raise InputError(f"restart does not apply to task = '{task}': leave it out")
    return task, TASK_TABLES[task](_table(job, task))


def _molecules(job: Mapping[str, Any]) -> list[str]:
    found = job.get("molecule")
    names = [found] if isinstance(found, str) else found
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise InputError("name the molecule, such as molecule = 'water.xyz' (or a list of files)")
    return names


def _value(given: Mapping[str, Any], name: str, kind: type[Value]) -> Value | None:
    value = given.get(name)
    if value is not None and (isinstance(value, bool) or not isinstance(value, kind)):
        wanted = "text in quotes" if kind is str else "a whole number"
        raise InputError(f"{name} must be {wanted}, not {value!r:.60}")
    return value
