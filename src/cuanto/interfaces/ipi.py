"""Client of the i-PI protocol (https://ipi-code.org), through ASE: computes energies and forces for a server."""

from __future__ import annotations

from typing import Any

from cuanto.errors import InputError
from cuanto.motion.dynamics import POINTS, SurfaceCalculator
from cuanto.motion.surface import Surface
from cuanto.system import Molecule


def serve(
    molecule: Molecule,
    method: str,
    basis: Any = None,
    *,
    host: str = "localhost",
    port: int | None = None,
    unix: str | None = None,
    **options: Any,
) -> int:
    """Connect to a server and compute the geometries it sends until it ends; returns their number."""
    from ase import Atoms, units
    from ase.calculators.socketio import SocketClient

    atoms: Any = Atoms(molecule.elements, molecule.R_ax * units.Bohr)
    atoms.calc = SurfaceCalculator(Surface(molecule, method, basis, points=POINTS, **options))
    try:
        client = SocketClient(host=host, port=port, unixsocket=unix)  # type: ignore[no-untyped-call]
    except OSError as error:
        where = f"the Unix socket {unix}" if unix else f"{host}, port {port or 31415}"
        raise InputError(f"no server answers at {where}: start it first ({error.strerror or error})") from None
    count = 0
    for _ in client.irun(atoms, use_stress=False):  # type: ignore[no-untyped-call]
        count += 1
    return count
