"""``cuanto energy``: one energy, with a table of iterations that grows while it runs."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cuanto.cli import semiempirical
from cuanto.cli.integrals import require_writable
from cuanto.cli.verbose import Verbose

if TYPE_CHECKING:
    from rich.console import Console

    from cuanto.basis import Basis
    from cuanto.methods import Result
    from cuanto.scf.checkpoint import Checkpoint
    from cuanto.scf.state import State
    from cuanto.system import Molecule

NOT_CONVERGED = 1
SIZE = re.compile(r"(?P<number>\d+(\.\d*)?)\s*(?P<unit>[kmgt]?)i?b?", re.IGNORECASE)
FIELDS = (("iteration", 9), ("energy / Hartree", 19), ("change", 11), ("gradient", 10), ("step", 0))


class Fitting(StrEnum):
    """What is fitted."""

    AUTO = "auto"
    NONE = "none"
    J = "j"
    JK = "jk"


class Device(StrEnum):
    """Where it runs."""

    AUTO = "auto"
    CPU = "cpu"
    CUDA = "cuda"


class Precision(StrEnum):
    """Of direct J and K."""

    DOUBLE = "double"
    MIXED = "mixed"
    SINGLE = "single"


def energy(
    xyz: Annotated[Path, typer.Argument(metavar="MOL.xyz", help="Geometry in Angstrom.")],
    method: Annotated[
        str, typer.Option("--method", "-m", help="hf, rhf, uhf, rohf, a functional, mndo, am1, pm3 or pm6.")
    ] = "hf",
    basis: Annotated[str, typer.Option("--basis", "-b", help="Basis Set Exchange name or basis file.")] = "def2-svp",
    fitting: Annotated[Fitting, typer.Option(help="Density fitting of J, of J and K, or none.")] = Fitting.AUTO,
    aux: Annotated[str | None, typer.Option(help="Fitting basis; chosen from the orbital basis when left out.")] = None,
    backend: Annotated[Device, typer.Option(help="auto: the GPU where there is one, else cpu.")] = Device.AUTO,
    precision: Annotated[Precision, typer.Option(help="Of direct J and K, and on the grid.")] = Precision.DOUBLE,
    grid: Annotated[str, typer.Option(help="For functionals: coarse, medium, fine, ultrafine, or 99,590.")] = "fine",
    charge: Annotated[int | None, typer.Option(help="Total charge.")] = None,
    mult: Annotated[int | None, typer.Option(help="Spin multiplicity.")] = None,
    guess: Annotated[str, typer.Option(help="sad (superposed atoms) or core.")] = "sad",
    option: Annotated[list[str] | None, typer.Option("--option", "-o", help="NAME=VALUE of ScfOptions.")] = None,
    max_memory: Annotated[str | None, typer.Option(help="Such as 4GB or 500MB; all that is free otherwise.")] = None,
    json: Annotated[Path | None, typer.Option(help="Write a QCSchema AtomicResult.")] = None,
    molden: Annotated[Path | None, typer.Option(help="Write the orbitals as a Molden file.")] = None,
    checkpoint: Annotated[Path | None, typer.Option(help="Keep every iteration in this HDF5 file.")] = None,
    restart: Annotated[Path | None, typer.Option(help="Start from the orbitals of a checkpoint.")] = None,
    verbose: Verbose = False,
) -> None:
    """Compute the energy of a molecule; exit status 0 converged, 1 not converged, 2 bad input."""
    for path in (json, molden, checkpoint):
        if path is not None:
            require_writable(path)
    memory, settings = parse_size(max_memory), parse_options(option or [])
    from rich.console import Console

    from cuanto.basis import Basis
    from cuanto.integrals.engine import resolve
    from cuanto.methods import SEMIEMPIRICAL
    from cuanto.options import ScfOptions
    from cuanto.scf.checkpoint import Checkpoint, read_checkpoint
    from cuanto.system import Molecule

    compatible = settings.pop("mopac_compatible", False) if method.lower() in SEMIEMPIRICAL else False
    ScfOptions.of(**settings)  # a slip is said before anything is shown
    molecule = Molecule.from_xyz(xyz, charge=charge, multiplicity=mult)
    if method.lower() in SEMIEMPIRICAL:
        refuse(method, {"--molden": molden, "--checkpoint": checkpoint, "--restart": restart, "--aux": aux})
        settings |= {"backend": resolve(backend.value), "max_memory": memory, "mopac_compatible": compatible}
        console = Console(highlight=False)
        found = semiempirical.compute(console, molecule, method, settings, IterationTable(console))
        semiempirical.report(console, found, json)
        raise typer.Exit(0 if found.converged else NOT_CONVERGED)
    orbital, device = Basis(basis, molecule), resolve(backend.value)
    settings |= {"fitting": fitting.value, "auxbasis": aux, "backend": device, "precision": precision.value}
    settings["grid"] = grid
    settings |= {"max_memory": memory, "guess": read_checkpoint(restart).orbitals if restart is not None else guess}
    keep = Checkpoint(checkpoint, molecule, orbital, method, device) if checkpoint is not None else None
    console = Console(highlight=False)
    console.print(f"{molecule.name}: {molecule.natom} atoms, {orbital.nbf} functions of {orbital.name}, {method}")
    result = watched(console, keep, molecule, method, orbital, settings)
    write_files(result, json, molden)
    print_summary(console, result)
    if not result.converged:
        raise typer.Exit(NOT_CONVERGED)


def watched(
    console: Console, keep: Checkpoint | None, molecule: Molecule, method: str, basis: Basis, settings: dict[str, Any]
) -> Result:
    """The calculation; every iteration is kept, then shown, so that what was seen can be restarted from."""
    from cuanto.api import energy as compute
    from cuanto.methods import Result

    with IterationTable(console) as table:

        def watch(state: State) -> None:
            if keep is not None:
                keep(state)
            table.add(state)

        try:
            result = compute(molecule, method, basis, on_iteration=watch, **settings)
            assert isinstance(result, Result)
            return result
        except KeyboardInterrupt:
            if keep is not None and keep.path.exists():
                table.note(f"interrupted; go on with --restart {keep.path}")
            raise


def refuse(method: str, given: dict[str, object]) -> None:
    """Options that mean nothing for a method without a basis."""
    from cuanto.errors import InputError

    for name, value in given.items():
        if value is not None:
            raise InputError(f"{name} is not for {method}: leave it out")


def parse_size(text: str | None) -> float | None:
    """Bytes of '4GB', '500 MiB', '1e9'; units are powers of 1024."""
    from cuanto.errors import InputError

    if text is None:
        return None
    found = SIZE.fullmatch(text.strip())
    if found and float(found["number"]) > 0:
        return float(found["number"]) * 1024.0 ** " kmgt".index(found["unit"].lower() or " ")
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise InputError(f"--max-memory {text}: give a size such as 4GB, 500MB or 2000000000")
    return number


def parse_options(given: list[str]) -> dict[str, Any]:
    """Options of the SCF by name; numbers and true/false are recognised, the rest are words."""
    from cuanto.errors import InputError

    found: dict[str, Any] = {}
    for text in given:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not (name and equals and value):
            raise InputError(f"--option {text}: write NAME=VALUE, such as max_iterations=50")
        found[name.replace("-", "_")] = _value(value)
    return found


def _value(text: str) -> Any:
    if "," in text:
        return [_value(part.strip()) for part in text.split(",")]
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


class IterationTable:
    """Rows as they come: a live table on a terminal, plain lines in a file or pipe."""

    def __init__(self, console: Console) -> None:
        from rich.table import Table

        self.console = console
        self._live: Any = None
        self._table = Table(*(name for name, _ in FIELDS))
        for column in self._table.columns[:-1]:
            column.justify = "right"

    def __enter__(self) -> IterationTable:
        if self.console.is_terminal:
            from rich.live import Live

            self._live = Live(self._table, console=self.console, refresh_per_second=8)
            self._live.start()
        else:
            self._line([name for name, _ in FIELDS])
        return self

    def __exit__(self, *error: object) -> None:
        if self._live is not None:
            self._live.stop()

    def add(self, state: State) -> None:
        """One more iteration."""
        first = state.iteration == 1
        change = "" if first else f"{state.energy_change:.2e}"
        row = [str(state.iteration), f"{state.energy:.9f}", change, f"{state.gradient:.2e}", state.step]
        if self._live is not None:
            self._table.add_row(*row)
        else:
            self._line(row)

    def note(self, text: str) -> None:
        """A line below the table."""
        self.console.print(text)

    def _line(self, row: list[str]) -> None:
        cells = [text.rjust(width) if width else f"  {text}" for text, (_, width) in zip(row, FIELDS, strict=True)]
        self.console.print("".join(cells).rstrip(), soft_wrap=True)


def write_files(result: Result, json: Path | None, molden: Path | None) -> None:
    """What was asked for, also of a calculation that did not converge: the files say so."""
    if json is not None:
        from cuanto.interfaces.qcschema import write_qcschema

        write_qcschema(json, result)
    if molden is not None:
        from cuanto.interfaces.molden import write_molden

        write_molden(molden, result)


def print_summary(console: Console, result: Result) -> None:
    """Energies by term, frontier orbitals, dipole, spin, timings."""
    from rich.console import Console
    from rich.table import Table

    table = Table(show_header=False, box=None)
    table.add_column()
    table.add_column(justify="right")
    for name, value in result.energies.items():
        table.add_row(name, f"{value:.9f}")
    total = "energy / Hartree" if result.converged else "last energy, NOT converged"
    table.add_row(total, f"{result.energy:.9f}", style="bold")
    table.add_row("highest occupied, lowest empty", _levels(result))
    dipole = result.dipole_debye
    table.add_row("dipole / Debye", f"{(dipole @ dipole) ** 0.5:.6f} ({', '.join(f'{x:.6f}' for x in dipole)})")
    if len(result.occupations) == 2:
        table.add_row("<S^2>", f"{result.s_squared:.6f}")
    table.add_row("seconds", ", ".join(f"{name} {t:.2f}" for name, t in result.timings.seconds.items() if t >= 0.005))
    console.print(table)
    for note in result.notes:
        console.print(note, soft_wrap=True)
    if result.converged:
        console.print(f"converged in {result.iterations} iterations")
        return
    line = f"NOT converged in {result.iterations} iterations: the energy change is {result.state.energy_change:.1e}, "
    line += f"the gradient {result.state.gradient:.1e}; try -o max_iterations=..., level_shift=0.3 or damping=0.5"
    Console(stderr=True, soft_wrap=True, highlight=False).print(f"cuanto: {line}", style="bold red")


def _levels(result: Result) -> str:
    pairs = zip(result.homo, result.lumo, strict=True)
    return "; ".join(f"{homo:.6f}, {lumo:.6f}" for homo, lumo in pairs)
