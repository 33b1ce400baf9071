"""``cuanto doctor``: what was found on this machine, what is missing, and what would help. It never fails."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version

from cuanto.errors import CuantoError


@dataclass(frozen=True)
class Finding:
    """One line of the report; ``found`` is None for plain facts that cannot be missing."""

    text: str
    found: bool | None = None


def doctor() -> None:
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


def basis_sets() -> Finding:
    return Finding(f"Basis Set Exchange {version('basis-set-exchange')}", found=True)


def processor() -> Finding:
    import numpy as np

    simd = np.show_config(mode="dicts").get("SIMD Extensions", {})
    widest = [*simd.get("baseline", []), *simd.get("found", [])][-1:]
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return Finding(f"{platform.machine()}, {usable} cores usable, vectors: {(widest or ['unknown'])[0]}")


def compiler() -> Finding:
    from cuanto.backends.cpu.compiler import find_compiler

    found = find_compiler()
    return Finding(f"{found.path} ({found.version})", found=True)


def gpu() -> Finding:
    try:
        import cupy
    except ImportError as error:
        return Finding(f"CuPy cannot be imported ({error}); pip install 'cuanto[gpu]' on a CUDA machine", found=False)
    runtime = cupy.cuda.runtime
    try:
        count = runtime.getDeviceCount()
    except runtime.CUDARuntimeError as error:
        return Finding(f"CuPy {cupy.__version__} finds no CUDA device ({error})", found=False)
    properties = runtime.getDeviceProperties(0)
    memory = properties["totalGlobalMem"] / 2**30
    driver = runtime.driverGetVersion()
    return Finding(
        f"{properties['name'].decode()}, {memory:.0f} GiB, compute capability "
        f"{properties['major']}.{properties['minor']}, CUDA driver {driver // 1000}.{driver % 1000 // 10}, "
        f"CuPy {cupy.__version__}" + (f"; {count} devices" if count > 1 else ""),
        found=True,
    )


def nvrtc() -> Finding:
    from cuanto.backends.cuda.nvrtc import nvrtc_version

    return Finding("NVRTC {}.{}: CUDA kernels can be compiled here".format(*nvrtc_version()), found=True)


def kernel_cache() -> Finding:
    from cuanto.backends.cache import cache_folder, files
    from cuanto.cli.cache import contents

    return Finding(f"{cache_folder()}: {contents(files())}")


PROBES: dict[str, Callable[[], Finding]] = {
    "versions": versions,
    "processor": processor,
    "libraries": libraries,
    "basis sets": basis_sets,
    "C++ compiler": compiler,
    "GPU": gpu,
    "NVRTC": nvrtc,
    "kernel cache": kernel_cache,
}
