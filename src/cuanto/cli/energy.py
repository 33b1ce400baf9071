"""``cuanto energy``: energies of molecules, with a live table of iterations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from cuanto.cli.arguments import (
    MOLECULE_HELP,
    Charge,
    Device,
    Multiplicity,
    Verbose,
    complete_basis,
    complete_method,
    examples,
    options_given,
    parse_options,
    with_options,
)
from cuanto.cli.calculate import COUNTERPOISE, NOT_CONVERGED, Job, run_job
from cuanto.cli.counterpoise import FLAGS, division_given
from cuanto.cli.many import run_batch
from cuanto.errors import InputError

__all__ = ["NOT_CONVERGED", "Device", "energy", "gradient", "parse_options"]

FILES, MANY = "Files", "Many molecules"
METHOD_HELP = (
    "hf, rhf, uhf, rohf; a functional (`cuanto functionals` lists them) such as pbe, b3lyp or pbe0-d4, unrestricted as "
    "ub3lyp; mndo, am1, pm3, pm6, rm1, unrestricted as upm6. \\[default: hf]"
)
BASIS_HELP = "Basis Set Exchange name or basis file. \\[default: def2-svp]"
OUT_HELP = (
    "Write a table of many molecules: .csv, .jsonl or .parquet. After an interruption the same command continues it."
)
GRADIENT_EXAMPLES = examples(
    "cuanto gradient water.xyz -m b3lyp -b def2-svp",
    "cuanto gradient water.xyz -m hf -b cc-pvdz --json water.json",
)
EXAMPLES = examples(
    "cuanto energy water.xyz -m b3lyp -b def2-svp",
    "cuanto energy protein.xyz -m pm6 --json protein.json",
    "cuanto energy smiles:CCO -m pbe -b def2-tzvp --report ethanol.html",
    "cuanto energy a.xyz b.xyz c.xyz -m hf -b cc-pvdz --json '{name}.json'",
    "cuanto energy dimer.xyz -m b3lyp-d3bj -b def2-tzvp --counterpoise 3,3",
    "cuanto energy conformers/*.xyz -m pm6 --out energies.parquet",
    "obabel ligand.mol2 -o xyz | cuanto energy - -m am1 --json - > ligand.json",
)


Molecules = Annotated[list[str], typer.Argument(metavar="MOLECULE", help=MOLECULE_HELP, show_default=False)]
Method = Annotated[
    str | None, typer.Option("--method", "-m", metavar="NAME", help=METHOD_HELP, autocompletion=complete_method)
]
BasisName = Annotated[
    str | None, typer.Option("--basis", "-b", metavar="NAME", help=BASIS_HELP, autocompletion=complete_basis)
]


def _file(help: str) -> Any:
    return typer.Option(metavar="FILE", help=help, rich_help_panel=FILES)


Json = Annotated[str | None, _file("Write a QCSchema AtomicResult for `cuanto report` (-: stdout).")]
Molden = Annotated[str | None, _file("Write the orbitals as a Molden file.")]
Report = Annotated[str | None, _file("Write a report about the result (HTML).")]
Checkpoint = Annotated[str | None, _file("Save every iteration in this HDF5 file.")]
Restart = Annotated[
    Path | None, typer.Option(help="Start from the orbitals of a checkpoint or JSON result.", rich_help_panel=FILES)
]
Out = Annotated[Path | None, typer.Option(metavar="FILE", help=OUT_HELP, rich_help_panel=MANY)]
Workers = Annotated[
    int | None,
    typer.Option(
        min=0,
        help="With --out: number of processes; 0: none but this one. \\[default: one per core]",
        rich_help_panel=MANY,
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="With --out: Dask scheduler, such as tcp://HOST:8786.", rich_help_panel=MANY),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print the energies only.")]


def _command(driver: str, summary: str, more: Mapping[str, Any] | None = None) -> Callable[..., None]:
    """The command of a driver, with `more` flags."""

    def run(
        molecules: Molecules,
        method: Method = None,
        basis: BasisName = None,
        charge: Charge = None,
        multiplicity: Multiplicity = None,
        json: Json = None,
        molden: Molden = None,
        report: Report = None,
        checkpoint: Checkpoint = None,
        restart: Restart = None,
        out: Out = None,
        workers: Workers = None,
        scheduler: Scheduler = None,
        quiet: Quiet = False,
        verbose: Verbose = False,
        **flags: Any,
    ) -> None:
        outputs = {"json": json, "molden": molden, "checkpoint": checkpoint, "report": report}
        division = division_given(flags)
        job = Job(
            sources=molecules,
            driver=driver if division is None else COUNTERPOISE,
            settings=division or {},
            method=method,
            basis=basis,
            charge=charge,
            multiplicity=multiplicity,
            keywords=options_given(flags),
            outputs={name: path for name, path in outputs.items() if path is not None},
            restart=None if restart is None else str(restart),
            quiet=quiet,
        )
        if out is not None and division is not None:
            raise InputError(
                "--counterpoise and --out exclude each other: several molecules may be given without --out"
            )
        if out is not None and workers != 0 and flags["threads"] is not None:
            raise InputError("--threads is for one molecule at a time: with --out, give the number of --workers")
        if out is not None:
            status = run_batch(job, out, workers, scheduler)
        elif workers is not None or scheduler is not None:
            raise InputError("--workers and --scheduler are for many molecules: name a table with --out")
        else:
            status = run_job(job)
        if status:
            raise typer.Exit(status)

    run.__doc__ = f"""{summary}; exit status 0 converged, 1 not converged, 2 bad input.

    With several molecules, write {{name}} in the names of output files: it becomes the name of the input file.
    """
    return with_options(run, more)


energy = _command("energy", "Compute energies of molecules", FLAGS)
gradient = _command("gradient", "Compute energies of molecules and their gradients (Hartree/Bohr)")
