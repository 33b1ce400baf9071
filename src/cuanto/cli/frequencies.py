"""``cuanto frequencies``: vibrations and thermochemistry of molecules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from cuanto.cli.arguments import Molecules, examples, file_flag, given, table_flags, with_options
from cuanto.cli.calculate import (
    BAD_INPUT,
    NOT_CONVERGED,
    STDOUT,
    Job,
    check_molden,
    job_given,
    output_paths,
    read_sources,
    write_schema,
)
from cuanto.cli.energy import FILE_FLAGS as ENERGY_FILES
from cuanto.cli.lines import print_error, print_text
from cuanto.cli.many import run_batch
from cuanto.cli.show import basis_text, print_heading, progress_bar
from cuanto.cli.show_vibrations import print_vibrations
from cuanto.errors import CuantoError, InputError
from cuanto.files import write_text

if TYPE_CHECKING:
    from cuanto.interfaces.sources import Source
    from cuanto.motion.vibrations import Vibrations

EXAMPLES = examples(
    "cuanto frequencies water.xyz -m b3lyp -b def2-svp",
    "cuanto frequencies dimer.xyz -m b3lyp-d3bj -b def2-svp --follow-imaginary --report dimer.html",
    "cuanto frequencies water.xyz -m hf --isotopes 2=D,3=D --temperature 400 --pressure 2",
    "cuanto frequencies water_hessian.json --scale 0.97    analyses a Hessian file again",
    "cuanto frequencies conformers/*.xyz -m pm6 --out frequencies.parquet",
)
SUMMARY = """Compute vibrations, infrared intensities and thermochemistry from differences of gradients.

Finished displacements are kept in NAME_freq.journal until the end; after an interruption, the same command continues.
The Hessian is written to NAME_hessian.json.

Exit status 0 converged, 1 an SCF or --follow-imaginary did not converge, 2 bad input.
"""
DEFAULT_OUTPUTS = {
    "hessian": "{name}_hessian.json",
    "journal": "{name}_freq.journal",
    "minimum": "{name}_minimum.xyz",
}
"""Files that are written unless others are named; `minimum` if imaginary modes were followed."""
THERMOCHEMISTRY, HESSIAN = "Thermochemistry", "Hessian"


def _flag(panel: str, type_: Any, help: str, *names: str, **more: Any) -> Any:
    return Annotated[type_ | None, typer.Option(*names, help=help, rich_help_panel=panel, **more)]


HESSIAN_FLAGS = {
    "isotopes": _flag(HESSIAN, str, "Isotopes by atom or element, such as 2=D,3=D or C=13C.", metavar="ATOM=ISOTOPE"),
    "step": _flag(HESSIAN, float, "Displacement of the atoms, Bohr. \\[default: 0.005]"),
    "symmetry": _flag(
        HESSIAN,
        bool,
        "Compute only one of several equivalent displacements. \\[default: as far as the grid allows]",
        "--symmetry/--no-symmetry",
    ),
    "follow_imaginary": _flag(
        HESSIAN,
        bool,
        "Displace along an imaginary mode, optimise, and compute again until none is left.",
        "--follow-imaginary",
    ),
}
CONDITION_FLAGS = {
    "temperature": _flag(THERMOCHEMISTRY, float, "Temperature, K. \\[default: 298.15]", "--temperature", "-T"),
    "pressure": _flag(THERMOCHEMISTRY, float, "Pressure, atm. \\[default: 1]"),
    "scale": _flag(THERMOCHEMISTRY, float, "Factor for all wavenumbers of thermochemistry and report. \\[default: 1]"),
    "symmetry_number": _flag(THERMOCHEMISTRY, int, "Rotational symmetry number. \\[default: from the point group]"),
    "degeneracy": _flag(THERMOCHEMISTRY, int, "Degeneracy of the electronic state. \\[default: the multiplicity]"),
    "entropy": _flag(
        THERMOCHEMISTRY, str, "quasi-rrho (low modes as rotors) or rrho. \\[default: quasi-rrho]", metavar="MODEL"
    ),
    "cutoff": _flag(THERMOCHEMISTRY, float, "Wavenumber below which modes count as low, cm^-1. \\[default: 100]"),
}
FILE_FLAGS = {
    **{name: ENERGY_FILES[name] for name in ("json", "report")},
    "hessian": file_flag("Name of the Hessian file. \\[default: NAME_hessian.json]"),
    "molden": file_flag("Write normal modes and orbitals as a Molden file."),
    "journal": file_flag("File of finished displacements. \\[default: NAME_freq.journal]"),
}
TABLE = table_flags(
    "Number of processes; 0: compute in this process. \\[default: one per core; 0 on a GPU and for short runs]",
    "Dask scheduler, such as tcp://HOST:8786.",
)
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print one line per molecule; warnings and hints go to standard error.")
]


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """Settings of `cuanto frequencies`; `conditions` of thermochemistry.

    `hessian`: arguments of the calculation of the Hessian, such as step and workers.
    """

    isotopes: Mapping[int | str, str | float] = field(default_factory=dict)
    conditions: Mapping[str, Any] = field(default_factory=dict)
    hessian: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Analysis:
        """Make an analysis from the checked settings of a job file."""
        from cuanto.motion.frequencies import CONDITIONS

        isotopes = settings["isotopes"]
        given = {name: value for name, value in settings.items() if name != "isotopes"}
        return cls(
            isotopes=parse_isotopes(isotopes) if isinstance(isotopes, str) else isotopes,
            conditions={name: value for name, value in given.items() if name in CONDITIONS},
            hessian={name: value for name, value in given.items() if name not in CONDITIONS},
        )


@with_options(last={**HESSIAN_FLAGS, **CONDITION_FLAGS, **FILE_FLAGS, **TABLE})
def frequencies(molecules: Molecules, quiet: Quiet = False, **flags: Any) -> None:
    out, workers, scheduler = (flags[name] for name in TABLE)
    hessian = ("step", "symmetry", "follow_imaginary", *(("workers", "scheduler") if out is None else ()))
    analysis = Analysis(
        isotopes=parse_isotopes(flags["isotopes"]),
        conditions=given(flags, CONDITION_FLAGS),
        hessian=given(flags, hessian),
    )
    job = job_given(flags, sources=molecules, driver="hessian", outputs=given(flags, FILE_FLAGS), quiet=quiet)
    status = run_frequencies(job, analysis) if out is None else _run_many(job, analysis, out, workers, scheduler)
    if status:
        raise typer.Exit(status)


frequencies.__doc__ = SUMMARY


def parse_isotopes(text: str | None) -> dict[int | str, str | float]:
    """Parse isotopes such as `2=D,C=13C`."""
    found: dict[int | str, str | float] = {}
    for part in (text or "").split(","):
        atom, equals, isotope = (word.strip() for word in part.partition("="))
        if not part.strip():
            continue
        if not (atom and equals and isotope):
            raise InputError(f"--isotopes {part.strip()!r}: write ATOM=ISOTOPE, such as 2=D or C=13C")
        found[atom] = isotope
    return found


def _run_many(job: Job, analysis: Analysis, out: Path, workers: int | None, scheduler: str | None) -> int:
    """Frequencies of many molecules as a table."""
    if "journal" in job.outputs:
        raise InputError("--journal is for single molecules; a table has its own journal: leave out --journal or --out")
    from cuanto.motion.thermochemistry import Conditions

    Conditions(**analysis.conditions)  # reports wrong values once, not for every molecule
    settings = {**analysis.conditions, **analysis.hessian}
    if analysis.isotopes:
        settings["isotopes"] = dict(analysis.isotopes)
    return run_batch(replace(job, settings=settings), out, workers, scheduler)


def run_frequencies(job: Job, analysis: Analysis) -> int:
    """Compute all molecules of a job; exit status 0 all converged, 1 some did not, 2 some failed."""
    sources = read_sources(job)
    named = {**DEFAULT_OUTPUTS, **job.outputs}
    paths = output_paths(replace(job, outputs=named), [source.label for source in sources])
    console = Console(highlight=False, stderr=job.outputs.get("json") == STDOUT)
    status = 0
    for name, source, outputs in zip(job.sources, sources, paths, strict=True):
        try:
            status = max(status, _compute(console, name, source, job, analysis, outputs))
        except CuantoError as error:
            if len(sources) == 1:
                raise
            print_error(f"{source.label}: {error}")
            status = BAD_INPUT
        if len(sources) > 1 and not job.quiet:
            console.print()
    return status


def _compute(
    console: Console, given: str, source: Source, job: Job, analysis: Analysis, outputs: Mapping[str, str]
) -> int:
    """Compute or read one molecule, write its files and print its result."""
    vibrations = _from_file(given, job, analysis)
    if vibrations is None:
        vibrations = _calculate(console, source, job, analysis, outputs)
        write_files(vibrations, outputs, source)
        if analysis.hessian.get("follow_imaginary"):
            _write_minimum(console, vibrations, outputs["minimum"], job.quiet)
        Path(outputs["journal"]).unlink(missing_ok=True)
    else:
        asked = {name: path for name, path in outputs.items() if name in job.outputs}
        if not asked.keys().isdisjoint(("json", "report")):
            from cuanto.interfaces.read import read

            vibrations = replace(vibrations, result=read(given))
        write_files(vibrations, asked, source)
    print_vibrations(console, vibrations, job.quiet, source.label)
    found = vibrations.stationary and not len(vibrations.imaginary)
    return NOT_CONVERGED if analysis.hessian.get("follow_imaginary") and not found else 0


def _write_minimum(console: Console, vibrations: Vibrations, path: str, quiet: bool) -> None:
    """Write the geometry reached by following imaginary modes, if it is a stationary point."""
    assert vibrations.result is not None
    if not vibrations.stationary:
        return
    vibrations.result.to_xyz(path)
    if not quiet:
        print_text(console, f" the last geometry is in {path}", "dim")


def _from_file(given: str, job: Job, analysis: Analysis) -> Vibrations | None:
    """Vibrations of a Hessian file, with other isotopes and conditions; None for other files."""
    from cuanto.interfaces.vibrations import is_hessian, read_hessian
    from cuanto.motion.thermochemistry import Conditions
    from cuanto.motion.vibrations import analyse
    from cuanto.system.formats import parse_json
    from cuanto.system.text import read_text

    if not given.lower().endswith(".json") or job.method is not None or job.basis is not None:
        return None
    if not is_hessian(parse_json(read_text(given, "file"), given)):
        return None
    if without_effect := _options_of_calculations(job, analysis):
        raise InputError(
            f"{given} has a finished Hessian, on which {', '.join(without_effect)} would have no effect: leave that "
            "out, or give the method and the basis as well, to compute a new Hessian"
        )
    found = read_hessian(given)
    masses: dict[int | str, str | float] = {a: float(mass) for a, mass in enumerate(found.masses, start=1)}
    conditions = replace(found.conditions, **analysis.conditions) if analysis.conditions else found.conditions
    assert isinstance(conditions, Conditions)
    return analyse(found.second_derivatives, {**masses, **analysis.isotopes}, conditions, found.result)


def _options_of_calculations(job: Job, analysis: Analysis) -> list[str]:
    """Options that would change a calculated Hessian, by the names that users give."""
    from cuanto.options import OPTIONS

    given = {"charge": job.charge, "mult": job.multiplicity, "restart": job.restart}
    given |= {name: analysis.hessian.get(name) for name in ("step", "symmetry", "follow_imaginary")}
    given |= {name: value for name, value in job.keywords.items() if OPTIONS[name].affects_result}
    return [name for name, value in given.items() if value is not None]


def _calculate(
    console: Console, source: Source, job: Job, analysis: Analysis, outputs: Mapping[str, str]
) -> Vibrations:
    from cuanto.interfaces.sources import choose_model
    from cuanto.motion.frequencies import frequencies as compute

    model, journal = choose_model(source, job.model), outputs["journal"]
    assert model.method is not None
    check_molden(outputs, model.basis, source.molecule)
    if not job.quiet:
        print_heading(console, source.molecule, model.method, basis_text(model.basis, source.molecule))
    bar, step = progress(console, job.quiet)
    arguments = {**model.keywords, **analysis.hessian, **analysis.conditions}
    with bar:
        try:
            return compute(
                source.molecule,
                model.method,
                model.basis,
                isotopes=analysis.isotopes,
                journal=journal,
                on_task=step,
                **arguments,
            )
        except (KeyboardInterrupt, CuantoError) as error:
            if Path(journal).exists() and not isinstance(error, InputError):
                print_text(console, f"finished displacements are kept in {journal}: run the same command to continue")
            raise


def progress(console: Console, quiet: bool) -> tuple[AbstractContextManager[Any], Callable[[int, int], object]]:
    """A progress bar of displacements on a terminal, nothing elsewhere."""
    if quiet or not console.is_terminal:
        return nullcontext(), lambda done, total: None
    bar = progress_bar(console, transient=True)
    task = bar.add_task("displacements", total=None)
    return bar, lambda done, total: bar.update(task, completed=done, total=total)


def write_files(vibrations: Vibrations, outputs: Mapping[str, str], source: Source) -> None:
    """Write the output files."""
    from cuanto.interfaces.vibrations import hessian_text, modes_molden, schema_text

    if "hessian" in outputs:
        write_schema(outputs["hessian"], lambda: hessian_text(vibrations))
    if "molden" in outputs:
        write_text(outputs["molden"], modes_molden(vibrations))
    if "json" in outputs:
        write_schema(outputs["json"], lambda: schema_text(vibrations, source.input_schema))
    if "report" in outputs:
        from cuanto.report import write_report

        write_report(outputs["report"], vibrations)
