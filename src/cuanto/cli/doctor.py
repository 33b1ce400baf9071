"""``cuanto doctor``: what was found on this machine, what is missing, and what would help; it never fails."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cuanto.cli.arguments import Device, Verbose, examples
from cuanto.errors import CuantoError, InputError

EXAMPLES = examples("cuanto doctor", "cuanto doctor --warm-up pbe0 def2-tzvp H C N O S")
EXTRAS = {
    "h5py": "checkpoints",
    "qcelemental": "QCSchema models",
    "ase": "ASE calculator",
    "rdkit": "SMILES",
    "pyarrow": "Parquet tables",
    "dask": "clusters",
    "nlopt": "basis-set optimisation",
    "geometric": "geometry optimisation",
    "matplotlib": "plots of atoms",
    "dftd3": "D3 dispersion",
    "dftd4": "D4 dispersion",
}


Finding = tuple[str, bool | None]
"""A line of the report: its text, and whether it was found (None for facts that cannot be missing)."""


def doctor(
    given: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="METHOD BASIS ELEMENT...", help="For --warm-up: b3lyp def2-svp H C N O.", show_default=False
        ),
    ] = None,
    warm_up: Annotated[
        bool, typer.Option("--warm-up", help="Compile the kernels of a method now, and time an energy of a sample.")
    ] = False,
    backend: Annotated[Device, typer.Option(help="For --warm-up.")] = Device.AUTO,
    verbose: Verbose = False,
) -> None:
    """Report what was found on this machine: versions, cores, compiler, GPU, cache."""
    if warm_up:
        from cuanto.cli.warm_up import print_warm_up

        print_warm_up(given or (), backend.value)
        return
    if given:
        raise InputError(f"unexpected {' '.join(given)!r}: a method, a basis set and elements belong to --warm-up")
    marks = {True: Text("found", style="green"), False: Text("missing", style="yellow"), None: Text("")}
    table = Table("component", "", "details", title="cuanto doctor")
    for name, probe in PROBES.items():
        text, found = run_probe(probe)
        table.add_row(name, marks[found], Text(text))
    Console().print(table)


def run_probe(probe: Callable[[], Finding]) -> Finding:
    """Run a probe; any error becomes its finding, because this command is meant for broken installations."""
    try:
        return probe()
    except CuantoError as error:
        return str(error), False
    except Exception as error:
        return " ".join(f"{type(error).__name__}: {error}".split()), False


def versions() -> Finding:
    from cuanto import __version__

    return f"cuanto {__version__}, Python {platform.python_version()}, {platform.platform(terse=True)}", None


def libraries() -> Finding:
    return f"NumPy {version('numpy')}, SciPy {version('scipy')}", True


def extras() -> Finding:
    """Installed optional packages, and what the missing ones are for."""
    installed, missing = [], []
    for package, purpose in EXTRAS.items():
        try:
            installed.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            missing.append(f"{package} ({purpose})")
    rest = f"; not installed: {', '.join(missing)}: `pip install 'cuanto[all]'`" if missing else ""
    return (", ".join(installed) or "none") + rest, None


def basis_sets() -> Finding:
    return f"Basis Set Exchange {version('basis-set-exchange')}", True


def processor() -> Finding:
    import numpy as np

    from cuanto.backends.cpu.backend import cores

    simd = np.show_config(mode="dicts").get("SIMD Extensions", {})
    widest = [*simd.get("baseline", []), *simd.get("found", [])][-1:]
    threads = f"{cores()} threads " + (
        "(CUANTO_THREADS)" if os.environ.get("CUANTO_THREADS") else "(one for each usable core)"
    )
    return f"{platform.machine()}, {threads}, vectors: {(widest or ['unknown'])[0]}", None


def compiler() -> Finding:
    from cuanto.backends.cpu.compiler import find_compiler

    found = find_compiler()
    return f"{found.path} ({found.version})", True


def gpu() -> Finding:
    from cuanto.backends.cuda.backend import describe_gpu, why_no_gpu

    if reason := why_no_gpu():
        return f"{' '.join(reason.split())}; {nvidia_driver()}", False
    return describe_gpu(), True


def nvidia_driver() -> str:
    """Whether a driver is loaded; without one, installing CuPy is useless."""
    loaded = Path("/proc/driver/nvidia/version").exists() or Path("/dev/nvidiactl").exists()
    return "an NVIDIA driver is loaded" if loaded else "no NVIDIA driver is loaded here"


def nvrtc() -> Finding:
    from cuanto.backends.cuda.nvrtc import nvrtc_version

    return "NVRTC {}.{}: CUDA kernels can be compiled here".format(*nvrtc_version()), True


def kernel_cache() -> Finding:
    from cuanto.backends.cache import cache_folder, files
    from cuanto.cli.cache import contents

    folder = cache_folder()
    given = os.environ.get("CUANTO_CACHE")
    usual = folder == Path(os.path.expanduser(given)) if given else folder.parts[-2:] == ("cuanto", "kernels")
    reason = f"; a fallback, because {given or 'the cache folder in your home'} is not writable: set CUANTO_CACHE"
    return f"{folder}: {contents(files())}" + ("" if usual else reason), None


PROBES: dict[str, Callable[[], Finding]] = {
    "versions": versions,
    "processor": processor,
    "libraries": libraries,
    "basis sets": basis_sets,
    "extras": extras,
    "C++ compiler": compiler,
    "GPU": gpu,
    "NVRTC": nvrtc,
    "kernel cache": kernel_cache,
}
