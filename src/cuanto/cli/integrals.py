"""``cuanto integrals``: all one-, two- and three-centre integrals of a molecule, timed, and saved on request."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from cuanto.cli.arguments import MOLECULE_HELP, Auxiliary, Charge, Multiplicity, Verbose, complete_basis, examples
from cuanto.cli.show import make_table, print_table
from cuanto.files import require_writable, save_npz
from cuanto.wording import count

if TYPE_CHECKING:
    from cuanto.basis import Basis
    from cuanto.log import Timings
    from cuanto.system import Molecule

Jobs = dict[str, Callable[[], Any]]

EXAMPLES = examples(
    "cuanto integrals water.xyz -b cc-pvdz",
    "cuanto integrals water.xyz -b cc-pvdz --auxbasis cc-pvdz-jkfit --out water.npz",
)
BACKEND_HELP = "auto: the GPU if there is one, else cpu. reference: the same integrals by independent methods."


BackendName = StrEnum("BackendName", ["AUTO", "CPU", "CUDA", "REFERENCE"])
"""Backends, and `reference`: independent methods on the CPU."""


def integrals(
    molecule: Annotated[str, typer.Argument(metavar="MOLECULE", help=MOLECULE_HELP)],
    basis: Annotated[
        str,
        typer.Option("--basis", "-b", help="Basis Set Exchange name or basis file.", autocompletion=complete_basis),
    ],
    auxbasis: Auxiliary = None,
    backend: Annotated[BackendName, typer.Option(help=BACKEND_HELP)] = BackendName.AUTO,
    charge: Charge = None,
    multiplicity: Multiplicity = None,
    out: Annotated[Path | None, typer.Option(help="Save the arrays in this .npz file.")] = None,
    verbose: Verbose = False,
) -> None:
    """Compute S, T, V, core potentials, dipole, (P|Q) and (pq|P) of a molecule."""
    from cuanto.basis import Basis, auxiliary_basis
    from cuanto.interfaces.sources import read_source
    from cuanto.log import Timings

    if out is not None:
        require_writable(out, molecule, basis, auxbasis)
    parsed = read_source(molecule, charge, multiplicity).molecule
    orbital = Basis(basis, parsed)
    parsed = parsed.with_core_electrons(orbital.core_electrons)
    fitting = auxiliary_basis(orbital, parsed, kind="jk", name=auxbasis)
    timings = Timings()
    arrays = {}
    for name, job in progress(jobs(parsed, orbital, fitting, backend)):
        with timings.measure(name):
            arrays[name] = job()
    print_report(parsed, orbital, fitting, arrays, timings)
    if out is not None:
        save_npz(out, {**arrays, **provenance(parsed, orbital, fitting)})
        print(f"saved {out}")


def progress(work: Jobs) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield the functions with their names, and show a progress bar on a terminal."""
    from rich.progress import track

    console = Console(stderr=True)
    yield from track(work.items(), "integrals", console=console, transient=True, disable=not console.is_terminal)


def jobs(molecule: Molecule, orbital: Basis, fitting: Basis, backend: BackendName) -> Jobs:
    """A function for every array by name; after the underscore its axes (p, q orbital; P, Q fitting).

    V is the attraction to the nuclei, U that of core potentials, if the basis has any.
    """
    from cuanto import core_potentials
    from cuanto import integrals as engine
    from cuanto.backends import get_backend

    if backend is BackendName.REFERENCE:
        return reference_jobs(molecule, orbital, fitting)
    device = get_backend(backend.value)
    cores = {"U_pq": lambda: device.to_host(core_potentials.matrix(orbital, backend=device))}
    return {
        "S_pq": lambda: device.to_host(engine.overlap(orbital, backend=device)),
        "T_pq": lambda: device.to_host(engine.kinetic(orbital, backend=device)),
        "V_pq": lambda: device.to_host(engine.nuclear(orbital, molecule, backend=device)),
        **(cores if orbital.core_summary is not None else {}),
        "r_xpq": lambda: device.to_host(engine.dipole(orbital, backend=device)),
        "eri_PQ": lambda: device.to_host(engine.eri_2c(fitting, backend=device)),
        "eri_pqP": lambda: device.to_host(engine.eri_3c(orbital, fitting, backend=device)),
    }


def reference_jobs(molecule: Molecule, orbital: Basis, fitting: Basis) -> Jobs:
    """The same arrays by methods that are independent of the default ones.

    Overlap, kinetic energy and dipole moments by Gauss-Hermite quadrature, without generated kernels; Coulomb integrals
    by the McMurchie-Davidson scheme in place of Head-Gordon-Pople's.
    """
    from cuanto import integrals as engine
    from cuanto.integrals.gauss_hermite import overlap_kinetic_dipole

    options: dict[str, Any] = {"algorithm": "md", "backend": "cpu"}
    return {
        "S_pq": lambda: overlap_kinetic_dipole(orbital)[0],
        "T_pq": lambda: overlap_kinetic_dipole(orbital)[1],
        "V_pq": lambda: engine.nuclear(orbital, molecule, **options),
        "r_xpq": lambda: overlap_kinetic_dipole(orbital)[2],
        "eri_PQ": lambda: engine.eri_2c(fitting, **options),
        "eri_pqP": lambda: engine.eri_3c(orbital, fitting, **options),
    }


def print_report(molecule: Molecule, orbital: Basis, fitting: Basis, arrays: dict[str, Any], timings: Timings) -> None:
    import numpy as np

    from cuanto.cli.cache import readable_size

    sets = f"{orbital.nbf} functions of {orbital.name}, {fitting.nbf} of {fitting.name}"
    heads = ("array", "shape", "memory", "seconds", "norm")
    table = make_table(heads, right=range(1, 5), title=f"{count(molecule.natom, 'atom')}, {sets}")
    for name, array in arrays.items():
        shape = " x ".join(str(n) for n in array.shape)
        norm = np.linalg.norm(array.ravel())
        table.add_row(name, shape, readable_size(array.nbytes), f"{timings.seconds[name]:.3f}", f"{norm:.6f}")
    print_table(Console(), table)


def provenance(molecule: Molecule, orbital: Basis, fitting: Basis) -> dict[str, Any]:
    """Molecule, basis sets and version, so that the file says which integrals these are."""
    import numpy as np

    from cuanto import __version__

    return {
        "symbols": np.array(molecule.symbols),
        "R_ax": molecule.R_ax,
        "basis": np.array(str(orbital.name)),
        "auxbasis": np.array(str(fitting.name)),
        "ao_labels": np.array(orbital.ao_labels()),
        "cuanto_version": np.array(__version__),
    }
