"""``cuanto energy``: energies of molecules, with a live table of iterations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from cuanto.cli.arguments import FILES, TABLE, Molecules, Quiet, examples, file_flag, given, with_options
from cuanto.cli.calculate import COUNTERPOISE, OUTPUTS, job_given
from cuanto.cli.counterpoise import FLAGS, division_given
from cuanto.cli.many import run_given
from cuanto.errors import InputError

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
FILE_FLAGS = {
    "json": file_flag("Write a QCSchema AtomicResult, which `cuanto report` can read (-: stdout)."),
    "molden": file_flag("Write the orbitals as a Molden file."),
    "report": file_flag("Write a report about the result (HTML)."),
    "checkpoint": file_flag("Save the orbitals to this HDF5 file after every iteration."),
    "restart": Annotated[
        Path | None, typer.Option(help="Start from the orbitals of a checkpoint or JSON result.", rich_help_panel=FILES)
    ],
}


def _command(driver: str, summary: str, more: Mapping[str, Any] | None = None) -> Callable[..., None]:
    """The command of a driver, with `more` flags."""

    def run(molecules: Molecules, quiet: Quiet = False, **flags: Any) -> None:
        division = division_given(flags)
        job = job_given(
            flags,
            sources=molecules,
            driver=driver if division is None else COUNTERPOISE,
            settings=division or {},
            outputs=given(flags, OUTPUTS),
            restart=None if flags["restart"] is None else str(flags["restart"]),
            quiet=quiet,
        )
        if flags["out"] is not None and division is not None:
            raise InputError(
                "--counterpoise and --out exclude each other: several molecules may be given without --out"
            )
        if flags["out"] is not None and flags["workers"] != 0 and flags["threads"] is not None:
            raise InputError("--threads is for one molecule at a time: with --out, give the number of --workers")
        run_given(job, flags)

    run.__doc__ = f"""{summary}; exit status 0 converged, 1 not converged, 2 bad input.

    With several molecules, write {{name}} in the names of output files: it becomes the name of the input file.
    """
    return with_options(run, more, {**FILE_FLAGS, **TABLE})


energy = _command("energy", "Compute energies of molecules", FLAGS)
gradient = _command("gradient", "Compute energies of molecules and their gradients (Hartree/Bohr)")
