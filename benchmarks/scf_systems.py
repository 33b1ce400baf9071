"""Systems of the SCF benchmarks, and their reference energies."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import DATA, ROOT, geometry

import cuanto

SAME_ENERGY = 1e-8
"""Tolerance of energies, Hartree."""
OWN = ROOT / "benchmarks" / "data"


@dataclass(frozen=True)
class System:
    """A calculation; `target`: desired seconds of the whole SCF on an H200, `literature`: published ones of GPU4PySCF
    1.9."""

    name: str
    file: Path
    basis: str
    aux: str | None
    spherical: bool = True
    on_cpu: bool = True
    target: float | None = None
    literature: float | None = None

    @property
    def title(self) -> str:
        """Method and basis in the usual notation."""
        name = self.basis.replace("pvdz", "pVDZ").replace("31g", "31G")
        form = "" if self.spherical else ", cartesian"
        return f"{'direct ' if self.aux is None else 'RI-'}RHF/{name}{form}"


def fitted_system(name: str, file: str, target: float, literature: float) -> System:
    """RI-RHF/cc-pVDZ of a molecule of the test data."""
    return System(name, geometry(file), "cc-pvdz", "cc-pvdz-jkfit", target=target, literature=literature)


SYSTEMS = [
    fitted_system("methane", "alkane_01", 0.05, 0.101),
    fitted_system("benzene", "benzene", 0.07, 0.135),
    fitted_system("ribavirin", "ribavirin", 0.2, 0.312),
    fitted_system("octadecane", "alkane_18", 0.25, 0.396),
    System("naphthalene", geometry("naphthalene"), "6-31g**", None, spherical=False, target=0.6),
    System("naphthalene-5d", geometry("naphthalene"), "6-31g**", None, target=0.6, literature=1.28),
    System("taxol", OWN / "taxol.xyz", "6-31g*", None, on_cpu=False, target=9.0, literature=12.9),
    System("valinomycin", OWN / "valinomycin.xyz", "6-31g*", None, on_cpu=False, target=12.0, literature=17.5),
]


def calculation(
    molecule: cuanto.Molecule, basis: cuanto.Basis, aux: cuanto.Basis | None, backend: Any
) -> Callable[..., Any]:
    """The call that is timed."""
    fitting = "none" if aux is None else "jk"

    def call(**options: Any) -> Any:
        result = cuanto.energy(molecule, "rhf", basis, fitting=fitting, auxbasis=aux, backend=backend, **options)
        backend.synchronize()
        return result

    return call


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds and result of a call."""
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def reference_energy(system: System) -> float | None:
    """PySCF's energy from the test data, or None."""
    wanted = (system.file.stem, system.basis, system.aux, not system.spherical)
    for file in ("rhf_ccpvdz", "rhf_sto3g_631gss"):
        for record in json.loads((DATA / f"{file}.json").read_text()):
            found = tuple(record[key] for key in ("molecule", "basis", "auxbasis", "cartesian"))
            if found == wanted and "exact K" not in record["fitting"]:  # records with exact K fit only J
                return float(record["energy"])
    return None


def compare(row: dict[str, Any], what: str, energy: float | None, tolerance: float = SAME_ENERGY) -> None:
    """Record a difference, and whether it is too large."""
    if energy is None:
        return
    difference = abs(row["energy"] - energy)
    row.setdefault("differences", {})[what] = difference
    print(f"  energy {row['energy']:.9f}, differs by {difference:.1e} from {what}")
    if not difference < tolerance:
        row["troubles"].append(f"energy differs by {difference:.1e} Hartree from {what}")


def load_warning(record: dict[str, Any]) -> str:
    """A warning if the machine was busy when a file was made; empty otherwise."""
    if record["load"] <= record["cores"]:
        return ""
    return f"warning: times measured under a load of {record['load']:.1f}: measure again on an idle machine"
