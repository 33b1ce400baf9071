"""``cuanto optimize``: geometries of minima and transition states, scans and reaction paths."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from cuanto.cli.arguments import TABLE, Molecules, Quiet, complete_method, examples, file_flag, given, with_options
from cuanto.cli.calculate import Job, check_molden, job_given, refuse_files, write_files, write_schema
from cuanto.cli.lines import print_error, print_remarks, print_text
from cuanto.cli.many import run_given
from cuanto.cli.show import basis_text, print_heading
from cuanto.errors import CuantoError, InputError
from cuanto.files import write_text
from cuanto.wording import count

if TYPE_CHECKING:
    from cuanto.interfaces.sources import Source
    from cuanto.motion.optimize import OptimizationResult, Step

EXAMPLES = examples(
    "cuanto optimize water.xyz -m b3lyp-d3bj -b def2-svp",
    "cuanto optimize drug.xyz -m b3lyp -b def2-svp --pre pm6 --convergence tight",
    "cuanto optimize butane.xyz -m pm6 --scan 'dihedral 1 2 3 4 0 180 13'",
    "cuanto optimize guess.xyz -m hf -b 6-31g* --ts --irc",
    "cuanto optimize conformers/*.xyz -m pm6 --out optimised.parquet",
)
SEARCH = "Search"
DEFAULT_OUTPUTS = {"trajectory": "{name}_opt.xyz", "structure": "{name}_optimized.xyz"}


def _search(type_: Any, name: str, **more: Any) -> Any:
    return Annotated[type_ | None, typer.Option(name, rich_help_panel=SEARCH, **more)]


Convergence = StrEnum("Convergence", ["LOOSE", "NORMAL", "TIGHT", "VERYTIGHT"])
"""Names of the convergence criteria in `cuanto.motion.criteria`."""
Coordinates = StrEnum("Coordinates", ["TRIC", "DLC", "HDLC"])
"""Names of the coordinate systems in `cuanto.motion.walker`."""
SEARCH_FLAGS = {
    "convergence": _search(Convergence, "--convergence", help="Convergence criteria. \\[default: normal]"),
    "freeze": _search(
        list[str],
        "--freeze",
        metavar="TEXT",
        help="Freeze a coordinate: 'distance 1 2', 'angle 1 2 3', 'dihedral 1 2 3 4', 'atom 1'; may be repeated.",
    ),
    "set": _search(
        list[str], "--set", metavar="TEXT", help="Set a coordinate (Angstrom, degrees): 'dihedral 1 2 3 4 60'."
    ),
    "scan": _search(
        list[str], "--scan", metavar="TEXT", help="Scan a coordinate: 'distance 1 2 1.0 2.0 11' has eleven points."
    ),
    "ts": _search(bool, "--ts", help="Search for a transition state."),
    "irc": _search(bool, "--irc", help="Follow the reaction path in both directions from a transition state."),
    "pre": _search(
        str,
        "--pre",
        metavar="METHOD",
        help="Optimise with a semiempirical method such as pm6 first.",
        autocompletion=complete_method,
    ),
    "hessian": _search(
        str,
        "--hessian",
        metavar="SOURCE",
        help="Initial Hessian: model, numerical, or a method such as pm6. \\[default: model; numerical with --ts]",
    ),
    "coordinates": _search(Coordinates, "--coordinates", help="Internal coordinates. \\[default: tric]"),
    "max_steps": _search(int, "--max-steps", help="Maximum number of steps. \\[default: 200]"),
    "trust": _search(float, "--trust", help="Initial trust radius, Angstrom. \\[default: 0.1; 0.01 with --ts]"),
}
FILE_FLAGS = {
    "trajectory": file_flag("Every step, as extended XYZ with forces. \\[default: {name}_opt.xyz in this folder]"),
    "structure": file_flag(
        "The optimised molecule, or all points of a scan or path. \\[default: {name}_optimized.xyz]"
    ),
    "json": file_flag("Write a QCSchema OptimizationResult (-: stdout)."),
    "molden": file_flag("Write the final orbitals as a Molden file."),
    "report": file_flag("Write a report about the optimisation (HTML)."),
}


@with_options(last={**SEARCH_FLAGS, **FILE_FLAGS, **TABLE})
def optimize(molecules: Molecules, quiet: Quiet = False, **flags: Any) -> None:
    """Optimise geometries; exit status 0 converged, 1 not converged, 2 bad input.

    After an interruption, the same command continues where it stopped. Atoms are numbered from 1.
    """
    outputs = given(flags, FILE_FLAGS)
    job = job_given(
        flags,
        sources=molecules,
        driver="optimize",
        settings=checked_settings(given(flags, SEARCH_FLAGS)),
        outputs=outputs if flags["out"] is not None else {**DEFAULT_OUTPUTS, **outputs},
        quiet=quiet,
    )
    run_given(job, flags)


def checked_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """Check the settings of an optimisation and return them as plain data; None means the default."""
    from cuanto.motion.settings import Settings

    return Settings.of(**given).plain()


def optimize_source(console: Console, source: Source, job: Job, outputs: Mapping[str, str]) -> OptimizationResult:
    """Optimise one molecule, write its files and print every step."""
    from cuanto.interfaces.sources import choose_model
    from cuanto.methods import SEMIEMPIRICAL
    from cuanto.motion.optimize import Search
    from cuanto.motion.settings import Settings

    with job.errors_about():
        model = choose_model(source, job.model)
        assert model.method is not None
        settings = Settings.of(**job.settings)
        search = Search(source.molecule, model.method, model.basis, settings, dict(model.keywords))
        if search.surface.method.lower() in SEMIEMPIRICAL:
            refuse_files(job, outputs, ("molden",), search.surface.method)
        basis = basis_text(model.basis, source.molecule)
        check_molden(outputs, model.basis, source.molecule)
        heading = partial(print_heading, console, source.molecule, model.method, basis)
        journal = Path(f"{outputs['trajectory']}.journal")
        known = search.record_in(journal, outputs["trajectory"])
        table = StepTable(console, job.quiet, settings.criteria, heading, known)
        try:
            outcome = search.run(table.add)
        except (KeyboardInterrupt, CuantoError) as stopped:
            if journal.exists() and not isinstance(stopped, InputError):
                print_text(console, f"run the same command to continue after the steps in {journal}")
            raise
    write_outputs(outcome, outputs, source)
    print_end(console, outcome, source.label, outputs, job.quiet)
    return outcome


class StepTable:
    """Prints one line per step; values that meet their criterion are marked with a star."""

    def __init__(self, console: Console, quiet: bool, criteria: Any, heading: Any, known: int) -> None:
        self.console, self.quiet, self.criteria, self._heading, self._known = console, quiet, criteria, heading, known
        self._stage: str | None = None

    def add(self, step: Step) -> None:
        """Print a step."""
        if self.quiet:
            return
        if self._stage is None:
            self._begin()
        if step.stage != self._stage:
            if step.stage or self._stage:
                print_text(self.console, step.stage or "optimisation", "bold")
            self._stage = step.stage
        change = "" if step.change != step.change else f"{step.change:.2e}"
        line = Text(f"{step.number:5d}{step.energy:18.9f}{change:>10}")
        for value, met in zip(vars(step.measures).values(), step.met, strict=True):
            text = "rejected" if value != value else f"{value:.2e}{'*' if met else ' '}"
            line.append(f"{text:>11}", style="green" if met else "")
        line.rstrip()
        self.console.print(line, soft_wrap=True)

    def _begin(self) -> None:
        self._heading()
        if self._known:
            print_text(self.console, f"continuing with {count(self._known, 'gradient')} from the journal")
        heads = ("rms grad. ", "max grad. ", "rms displ.", "max displ.")
        names = "".join(f"{head:>11}" for head in heads)
        print_text(self.console, f"{'step':>5}{'energy, change / Hartree':>28}{names}")
        limits = "".join(f"{value:>10.1e} " for value in vars(self.criteria).values())
        print_text(self.console, f"{'limits / (Hartree/Bohr), Bohr':>33}{limits}".rstrip(), "dim")


def write_outputs(outcome: OptimizationResult, outputs: Mapping[str, str], source: Source) -> None:
    """Write the final files, even if the optimisation did not converge (the files say so)."""
    from cuanto.interfaces.optimization import optimization_text
    from cuanto.motion.optimize import structure_text

    write_text(outputs["structure"], structure_text(outcome))
    if "json" in outputs:
        write_schema(outputs["json"], lambda: optimization_text(outcome))
    write_files(outcome.result, {name: path for name, path in outputs.items() if name == "molden"}, source, "gradient")
    if "report" in outputs:
        from cuanto.report import write_report

        write_report(outputs["report"], outcome)


def print_end(
    console: Console, outcome: OptimizationResult, label: str, outputs: Mapping[str, str], quiet: bool
) -> None:
    """Print the points of a scan or path, the energy, and whether it converged."""
    steps = count(outcome.iterations, "step")
    print_remarks(label, outcome.result.notes)
    if quiet:
        verdict = "" if outcome.converged else ", NOT converged"
        print_text(console, f"{label} {outcome.energy:.9f} Hartree{verdict}")
        return
    if outcome.settings.scan:
        for point in outcome.points:
            values = ", ".join(f"{one} {one.shown}" for one in point.constraints if one.value is not None)
            verdict = "" if point.converged else ", NOT converged"
            print_text(console, f" {values}: {point.energy:.9f} Hartree{verdict}")
    elif outcome.points:
        ends = (outcome.points[0], max(outcome.points, key=lambda point: point.energy), outcome.points[-1])
        for name, point in zip(("one end", "transition state", "other end"), ends, strict=True):
            print_text(console, f" {name}: {point.energy:.9f} Hartree")
    files = f"{outputs['structure']}, all steps in {outputs['trajectory']}"
    print_text(console, f" energy {outcome.energy:.9f} Hartree, {outcome.timings.total:.1f} s: {files}")
    if outcome.converged:
        console.print(f"converged in {steps}", style="bold green")
        return
    print_error(f"NOT converged in {steps}{_advice(outcome)}")


def _advice(outcome: OptimizationResult) -> str:
    """Why an optimisation has not converged, if it was not the number of steps, and what may help."""
    if outcome.molecule.natom == 1:
        return ": a single atom is not moved among point charges or in a field"
    if not outcome.settings.ts:
        return "; try a larger --max-steps, or start from the last geometry"
    better = "a better starting point such as the highest point of a scan"
    if outcome.settings.hessian not in ("auto", "numerical"):
        better += f", or leave out --hessian {outcome.settings.hessian}"
    searched = sum(not step.stage for step in outcome.steps)
    if outcome.points or searched >= outcome.settings.max_steps:
        return f"; try a larger --max-steps, or {better}"
    return f": the search ended at a point that is not a transition state; try {better}"
