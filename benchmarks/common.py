"""Shared by the benchmarks: molecules, description of the machine, results as JSON."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "tests" / "data"
sys.path.insert(0, str(ROOT / "src"))
BASIS_PATH = os.pathsep.join(str(folder / "basis") for folder in (DATA, ROOT / "benchmarks" / "data"))
# Basis sets from files: the same numbers everywhere, even if the Basis Set Exchange is not installed.
os.environ.setdefault("CUANTO_BASIS_PATH", BASIS_PATH)


def geometry(name: str) -> Path:
    """A geometry of the test data."""
    return DATA / "geometries" / f"{name}.xyz"


def machine(backend: Any) -> dict[str, Any]:
    """Describe the machine, the versions and the date."""
    import numpy

    import cuanto

    found: dict[str, Any] = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "cuanto": cuanto.__version__,
        "processor": processor_name(),
    }
    if backend.name == "cuda":
        import cupy

        found |= {"gpu": backend.device_name, "cupy": cupy.__version__}
        found["cuda_runtime"] = cupy.cuda.runtime.runtimeGetVersion()
    else:
        from cuanto.backends.cpu.compiler import find_compiler

        found |= {"threads": backend.threads, "compiler": find_compiler().version}
    return found


def processor_name() -> str:
    """Model of the CPU."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def last_number(command: list[str], **environment: str) -> float:
    """Run a command and return the number it prints last; if it fails, the benchmark ends with its output."""
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})
    if done.returncode != 0:
        sys.exit(f"{done.stderr.strip()}\nthis child process failed with status {done.returncode}")
    return float(done.stdout.split()[-1])


def in_processes(function: Callable[..., Any], calls: Iterable[tuple[Any, ...]], workers: int) -> Iterator[Any]:
    """Results of a function for several tuples of arguments; those of several processes in order of completion."""
    if workers == 1:
        yield from (function(*arguments) for arguments in calls)
        return
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        futures = [pool.submit(function, *arguments) for arguments in calls]
        yield from (future.result() for future in as_completed(futures))


def pyscf_mole(molecule: Any, basis: Any) -> Any:
    """A PySCF molecule with exactly these functions."""
    from pyscf import gto
    from pyscf.gto.mole import gto_norm

    shells: dict[str, list[Any]] = {}
    for shell in basis.shells:
        rows = [[e, *(row / gto_norm(shell.l, e))] for e, row in zip(shell.exponents, shell.coefficients, strict=True)]
        shells.setdefault(f"{molecule.symbols[shell.atom]}{shell.atom}", []).append([shell.l, *rows])
    atoms = [(f"{s}{i}", tuple(x)) for i, (s, x) in enumerate(zip(molecule.symbols, molecule.R_ax, strict=True))]
    return gto.M(atom=atoms, unit="Bohr", basis=shells, cart=not basis.spherical, spin=None, verbose=0)


def save(path: str | None, record: dict[str, Any]) -> None:
    """Write a result file if a path is given."""
    if path:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(json.dumps(record, indent=1) + "\n")
        print(f"written: {path}")
