"""Semiempirical results as QCSchema AtomicResult; what the schema has no field for is under `extras.cuanto`."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def to_qcschema(result: Any) -> dict[str, Any]:
    """A dictionary that JSON can hold, from a `SemiempiricalResult`."""
    shared = import_module("cuanto.interfaces.qcschema")  # by name: it knows methods, which know this package
    plain, calculation = shared.plain, result.calculation
    options = {name: value for name, value in vars(calculation.options).items() if value is not None}
    up, down = calculation.layout.electrons(result.molecule.charge, result.molecule.multiplicity)
    schema: dict[str, Any] = {
        "schema_name": "qcschema_output",
        "schema_version": 1,
        "molecule": shared.molecule_schema(result.molecule),
        "driver": "energy",
        "model": {"method": result.method, "basis": None},
        "keywords": plain({"mopac_compatible": calculation.mopac_compatible, **options}),
        "properties": plain(
            {
                "calcinfo_natom": result.molecule.natom,
                "calcinfo_nbasis": calculation.layout.orbitals,
                "calcinfo_nmo": result.orbital_energies.shape[1],
                "calcinfo_nalpha": up,
                "calcinfo_nbeta": down,
                "return_energy": result.energy,
                "nuclear_repulsion_energy": result.energies["core repulsion"],
                "scf_one_electron_energy": result.energies["core"],
                "scf_two_electron_energy": result.energies["two-electron"],
                "scf_total_energy": result.energy,
                "scf_dipole_moment": result.dipole,
                "scf_iterations": result.iterations,
            }
        ),
        "return_result": result.energy,
        "success": result.converged,
        "provenance": {"creator": "cuanto", "version": shared.__version__, "routine": "cuanto.energy"},
        "extras": {"cuanto": plain(_extras(result))},
    }
    if not result.converged:
        message = f"not converged in {result.iterations} iterations, gradient {result.state.gradient:.2e}"
        schema["error"] = {"error_type": "convergence_error", "error_message": message}
    return schema


def _extras(result: Any) -> dict[str, Any]:
    return {
        "converged": result.converged,
        "heat_of_formation_kcal_mol": result.heat_of_formation,
        "energies": dict(result.energies),
        "homo": result.homo,
        "lumo": result.lumo,
        "orbital_energies": result.orbital_energies,
        "occupations": result.occupations,
        "charges": result.charges,
        "bond_orders": result.bond_orders,
        "s_squared": result.s_squared,
        "backend": result.calculation.backend.name,
        "timings": dict(result.timings.seconds),
        "notes": list(result.notes),
    }
