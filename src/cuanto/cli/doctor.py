"""``cuanto doctor``: what was found on this machine, what is missing, and what would help. It never fails."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from cuanto.cli.arguments import Verbose
from cuanto.errors import CuantoError

EXTRAS = {
    "h5py": "checkpoints",
    "qcelemental": "models of QCSchema",
    "ase": "calculator",
    "rdkit": "SMILES",
    "pyarrow": "Parquet tables",
    "dask": "clusters",
    "nlopt": "optimiser of basis sets",
    "matplotlib": "pictures of atoms",
    "dftd3": "D3 dispersion",
    "dftd4": "D4 dispersion",
}


@dataclass(frozen=True)
class Finding:
    """One line of the report; ``found`` is None for plain facts that cannot be missing."""

    text: str
    found: bool | None = None


def doctor(verbose: Verbose = False) -> None:
    """Say what was found: versions, cores, compiler, GPU, cache."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    marks = {True: Text("found", style="green"), False: Text("missing", style="yellow"), None: Text("")}
    table = Table(title="cuanto doctor")
    for heading in ("what", "", "details"):
        table.add_column(heading)
    for name, probe in PROBES.items():
        finding = look(probe)
        table.add_row(name, marks[finding.found], Text(finding.text))
    Console().print(table)


def look(probe: Callable[[], Finding]) -> Finding:
    """A broken installation is what this command is for, so whatever a probe raises is its finding."""
    try:
        return probe()
    except CuantoError as error:
        return Finding(str(error), found=False)
    except Exception as error:
        return Finding(" ".join(f"{type(error).__name__}: {error}".split()), found=False)


def versions() -> Finding:
    from cuanto import __version__

    return Finding(f"cuanto {__version__}, Python {platform.python_version()}, {platform.platform(terse=True)}")


def libraries() -> Finding:
    return Finding(f"NumPy {version('numpy')}, SciPy {version('scipy')}", found=True)


def extras() -> Finding:
    """Optional packages: what there is, and what the rest would bring."""
    there, lacking = [], []
    for package, purpose in EXTRAS.items():
        try:
            there.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            lacking.append(f"{package} ({purpose})")
    rest = f"; not installed: {', '.join(lacking)}" if lacking else ""
    return Finding((", ".join(there) or "none") + rest)


def basis_sets() -> Finding:
    return Finding(f"Basis Set Exchange {version('basis-set-exchange')}", found=True)


def processor() -> Finding:
    import numpy as np

    from cuanto.backends.cpu.backend import cores

    simd = np.show_config(mode="dicts").get("SIMD Extensions", {})
    widest = [*simd.get("baseline", []), *simd.get("found", [])][-1:]
    threads = f"{cores()} threads " + ("(CUANTO_THREADS)" if os.environ.get("CUANTO_THREADS") else "(cores usable)")
    return Finding(f"{platform.machine()}, {threads}, vectors: {(widest or ['unknown'])[0]}")


def compiler() -> Finding:
    from cuanto.backends.cpu.compiler import find_compiler

    found = find_compiler()
    return Finding(f"{found.path} ({found.version})", found=True)


def gpu() -> Finding:
    from cuanto.backends.cuda.backend import describe_gpu, why_no_gpu

    if reason := why_no_gpu():
        return Finding(f"{' '.join(reason.split())}; {nvidia_driver()}", found=False)
    return Finding(describe_gpu(), found=True)


def nvidia_driver() -> str:
    """Is installing CuPy worth the trouble?"""
    loaded = Path("/proc/driver/nvidia/version").exists() or Path("/dev/nvidiactl").exists()
    return "an NVIDIA driver is loaded" if loaded else "no NVIDIA driver is loaded here"


def nvrtc() -> Finding:
    from cuanto.backends.cuda.nvrtc import nvrtc_version

    return Finding("NVRTC {}.{}: CUDA kernels can be compiled here".format(*nvrtc_version()), found=True)


def kernel_cache() -> Finding:
    from cuanto.backends.cache import cache_folder, files
    from cuanto.cli.cache import contents

    folder = cache_folder()
    given = os.environ.get("CUANTO_CACHE")
    usual = folder == Path(given).expanduser() if given else folder.parts[-2:] == ("cuanto", "kernels")
    reason = f"; a fallback, because {given or 'the cache folder in your home'} cannot be written: set CUANTO_CACHE"
    return Finding(f"{folder}: {contents(files())}" + ("" if usual else reason))


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
