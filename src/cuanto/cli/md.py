"""``cuanto md``: molecular dynamics, with a line for every step; and ``cuanto ipi``: forces for i-PI or LAMMPS."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from cuanto.cli.arguments import MOLECULE_HELP, examples, given, with_options
from cuanto.cli.calculate import Job, job_given, output_paths, read_sources
from cuanto.cli.lines import print_remarks, print_text
from cuanto.errors import InputError

if TYPE_CHECKING:
    from cuanto.methods import Result
    from cuanto.motion.dynamics import DynamicsResult, Step

EXAMPLES = examples(
    "cuanto md water.xyz -m pbe -b def2-svp --steps 1000",
    "cuanto md drug.xyz -m pm6 --thermostat langevin --temperature 310 --steps 20000 --every 10",
)
IPI_EXAMPLES = examples(
    "cuanto ipi water.xyz -m pbe -b def2-svp --port 31415",
    "cuanto ipi water.xyz -m pm6 --unix driver",
)
MOTION = "Motion"
STEPS = 1000
DEFAULT_OUTPUTS = {"trajectory": "{name}_md.xyz"}
COLUMNS = (
    ("step", "", 7),
    ("time", "fs", 9),
    ("potential", "Hartree", 16),
    ("kinetic", "Hartree", 10),
    ("T", "K", 6),
    ("conserved", "Hartree", 16),
    ("iterations", "", 10),
)
"""Name, unit and width of the columns of the steps, which are separated by a space even if a number is wider."""
HEADING = "\n".join(" ".join(f"{column[i]:>{column[2]}}" for column in COLUMNS).rstrip() for i in (0, 1))


class Thermostat(StrEnum):
    """How the temperature is kept."""

    NONE = "none"
    LANGEVIN = "langevin"
    NOSE_HOOVER = "nose-hoover"


def _motion(type_: Any, help: str, **more: Any) -> Any:
    return Annotated[type_ | None, typer.Option(help=help, rich_help_panel=MOTION, **more)]


MoleculeName = Annotated[str, typer.Argument(metavar="MOLECULE", help=MOLECULE_HELP, show_default=False)]
MOTION_FLAGS = {
    "steps": _motion(int, f"Steps in total, including those before an interruption. \\[default: {STEPS}]", min=1),
    "timestep": _motion(float, "Length of a step in fs. \\[default: 0.5]"),
    "temperature": _motion(float, "Temperature of the initial velocities and of a thermostat in K. \\[default: 300.0]"),
    "thermostat": _motion(
        Thermostat, "none: constant energy; langevin or nose-hoover: constant temperature. \\[default: none]"
    ),
    "time_constant": _motion(float, "Time constant of the thermostat in fs. \\[default: 50.0]"),
    "seed": _motion(int, "Seed of the random numbers. \\[default: 0]", min=0),
    "every": _motion(int, "Write and print every n-th step. \\[default: 1]", min=1),
}
FILE_FLAGS = {"trajectory": _motion(str, "Trajectory, extended XYZ. \\[default: NAME_md.xyz]", metavar="FILE")}


@with_options(last={**MOTION_FLAGS, **FILE_FLAGS})
def md(
    molecule: MoleculeName,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print the drift and the name of the trajectory only.")
    ] = False,
    **flags: Any,
) -> None:
    """Run molecular dynamics; exit status 0 all steps done, 1 an SCF did not converge, 2 bad input.

    The trajectory has positions, energies, forces and velocities. The same command continues an interrupted run.
    """
    files = given(flags, FILE_FLAGS)
    settings = given(flags, MOTION_FLAGS)
    run_md(job_given(flags, sources=[molecule], driver="gradient", settings=settings, outputs=files, quiet=quiet))


def run_md(job: Job) -> int:
    """Move the atoms of the only molecule of a job; returns 0, since an SCF that does not converge raises an error."""
    from cuanto.interfaces.sources import choose_model
    from cuanto.motion.dynamics import EXTRAPOLATION_STEPS, Dynamics, DynamicsSettings
    from cuanto.motion.surface import Surface

    if len(job.sources) != 1:
        raise InputError("dynamics is for one molecule: write a job for each")
    (source,) = read_sources(job)
    named = {**DEFAULT_OUTPUTS, **job.outputs}
    path = output_paths(replace(job, outputs=named), [source.label])[0]["trajectory"]
    settings = dict(job.settings)
    steps, every = settings.pop("steps", STEPS), settings.pop("every", 1)
    with job.errors_about():
        model = choose_model(source, job.model)
        assert model.method is not None
        checked = DynamicsSettings(**settings)
        surface = Surface(source.molecule, model.method, model.basis, points=EXTRAPOLATION_STEPS, **model.keywords)
        run = Dynamics(surface, checked, path)
    console = Console(highlight=False, soft_wrap=True)
    if run.number >= steps:
        print_text(console, f"{path} has {run.number} steps already: give a larger --steps to continue")
        return 0
    if not job.quiet:
        if run.number >= 0:
            print_text(console, f"continuing {path} after step {run.number}")
        print_text(console, HEADING, "bold")

    def show(step: Step, result: Result) -> None:
        if step.number == 0:
            print_remarks(source.label, result.notes)
        if not job.quiet and step.number % every == 0:
            print_text(console, step_line(step))

    try:
        result = run.run(steps, show, every)
    except KeyboardInterrupt:
        if run.number >= 0:
            print_text(console, f"run the same command to continue {path}")
        raise
    _conclude(console, result, Path(path))
    return 0


def step_line(step: Step) -> str:
    """A step in the columns of `HEADING`."""
    conserved = "" if step.conserved is None else f"{step.conserved:.9f}"
    energies = (f"{step.potential:.9f}", f"{step.kinetic:.6f}")
    cells = (
        str(step.number),
        f"{step.time:.2f}",
        *energies,
        f"{step.temperature:.1f}",
        conserved,
        str(step.iterations),
    )
    return " ".join(f"{cell:>{width}}" for cell, (_, _, width) in zip(cells, COLUMNS, strict=True))


def _conclude(console: Console, result: DynamicsResult, path: Path) -> None:
    """Print how well the energy was conserved, and where the trajectory is."""
    if result.drift is not None:
        print_text(console, f"drift of the conserved energy: {result.drift:.2e} Hartree per atom and ps")
    print_text(console, f"trajectory: {path}", "bold green")


SERVER_FLAGS = {
    "host": _motion(str, "Host name of the server. \\[default: localhost]"),
    "port": _motion(int, "Port of the server. \\[default: 31415]", min=1, max=65535),
    "unix": _motion(str, "Name of a Unix socket in place of host and port.", metavar="NAME"),
}


@with_options(last=SERVER_FLAGS)
def ipi(molecule: MoleculeName, **flags: Any) -> None:
    """Compute energies and forces for a server that speaks the i-PI protocol, such as i-PI, LAMMPS or ASE.

    The molecule gives elements, charge and multiplicity, its atoms in the order of the server; the server gives the
    positions. The command ends when the server does.
    """
    from cuanto.interfaces.ipi import serve
    from cuanto.interfaces.sources import choose_model

    job = job_given(flags, sources=[molecule], driver="gradient")
    (source,) = read_sources(job)
    model = choose_model(source, job.model)
    if flags["unix"] is not None and flags["port"] is not None:
        raise InputError("--unix and --port are two ways to reach a server: leave out one of them")
    assert model.method is not None
    count = serve(source.molecule, model.method, model.basis, **given(flags, SERVER_FLAGS), **model.keywords)
    Console(highlight=False).print(f"the server has ended after {count} geometries", markup=False)
