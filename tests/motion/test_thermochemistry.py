"""Thermochemistry against ASE and PySCF, and Grimme's treatment of low modes against his formulas in SI units."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from ase import Atoms, units
from ase.thermochemistry import IdealGasThermo
from pyscf import gto, scf
from pyscf.hessian import thermo

from cuanto import Molecule
from cuanto.errors import InputError
from cuanto.motion.hessian import Hessian
from cuanto.motion.thermochemistry import Conditions, thermochemistry
from cuanto.motion.vibrations import Vibrations, analyse
from cuanto.units import BOLTZMANN

AGREEMENT = 1e-6
"""Largest difference of energies, Hartree."""
MOLECULES = {
    "nonlinear": Molecule.from_string("3\n\nO 0 0 0.1\nH 0 0.8 -0.5\nH 0 -0.7 -0.5\n"),
    "linear": Molecule.from_string("3\n\nC 0 0 0\nO 0 0 1.16\nS 0 0 -1.56\n"),
    "open": Molecule.from_string("4\n\nC 0 0 0\nH 0 1.08 0\nH 0.935 -0.54 0\nH -0.935 -0.54 0.2\n", multiplicity=2),
    "monatomic": Molecule.from_string("1\n\nN 0 0 0\n", multiplicity=4),
}


def vibrations(molecule: Molecule) -> Vibrations:
    """Vibrations of a network of springs."""
    n = molecule.natom
    H_axby = np.zeros((n, 3, n, 3))
    for a in range(n):
        for b in range(n):
            if a == b:
                continue
            r_x = molecule.R_ax[a] - molecule.R_ax[b]
            spring = 0.3 * np.outer(r_x, r_x) / (r_x @ r_x) + 0.02 * np.eye(3)
            H_axby[a, :, b] -= spring
            H_axby[a, :, a] += spring
    matrix = H_axby.reshape(3 * n, 3 * n)
    zero: dict[str, Any] = {"gradient": np.zeros((n, 3)), "dipole_derivatives": np.zeros((3 * n, 3))}
    return analyse(
        Hessian(molecule=molecule, method="springs", basis=None, keywords={}, energy=-1.0, matrix=matrix, **zero)
    )


@pytest.mark.parametrize("kind", MOLECULES)
@pytest.mark.parametrize(("temperature", "pressure"), [(298.15, 1.0), (750.0, 0.2)])
def test_ideal_gas_against_ase(kind: str, temperature: float, pressure: float) -> None:
    molecule = MOLECULES[kind]
    found = vibrations(molecule)
    ours = found.thermochemistry_at(temperature=temperature, pressure=pressure, entropy="rrho")
    atoms = Atoms(molecule.symbols, positions=molecule.R_ax * units.Bohr, masses=found.masses)
    theirs = IdealGasThermo(
        vib_energies=found.wavenumbers * units.invcm,
        potentialenergy=-1.0 * units.Hartree,
        atoms=atoms,
        geometry="nonlinear" if kind == "open" else kind,
        symmetrynumber=found.symmetry[1],
        spin=(molecule.multiplicity - 1) / 2,
    )
    gibbs = theirs.get_gibbs_energy(temperature, pressure * 101325.0, verbose=False) / units.Hartree
    enthalpy = theirs.get_enthalpy(temperature, verbose=False) / units.Hartree
    assert ours.gibbs_energy == pytest.approx(gibbs, abs=AGREEMENT)
    assert ours.enthalpy == pytest.approx(enthalpy, abs=AGREEMENT)
    assert ours.zero_point_energy == pytest.approx(theirs.get_ZPE_correction() / units.Hartree, abs=AGREEMENT)


@pytest.mark.parametrize("kind", ["nonlinear", "linear", "open"])
def test_rigid_rotors_against_pyscf(kind: str) -> None:
    molecule = MOLECULES[kind]
    found = vibrations(molecule)
    atoms = list(zip(molecule.symbols, molecule.R_ax.tolist(), strict=True))
    mol = gto.M(atom=atoms, unit="Bohr", basis="sto-3g", spin=molecule.multiplicity - 1, verbose=0)
    peer = scf.UHF(mol)
    peer.e_tot = -1.0
    hessian = found.hessian.reshape(molecule.natom, 3, molecule.natom, 3).transpose(0, 2, 1, 3)
    modes = thermo.harmonic_analysis(mol, hessian)
    assert np.allclose(np.sort(modes["freq_wavenumber"]), found.wavenumbers, atol=1e-3)
    assert np.allclose(modes["reduced_mass"], found.reduced_masses, rtol=1e-5) or kind == "linear"  # degenerate modes
    theirs = thermo.thermo(peer, modes["freq_au"], 310.0, 2 * 101325.0)
    ours = found.thermochemistry_at(
        temperature=310.0, pressure=2.0, entropy="rrho", symmetry_number=theirs["sym_number"][0]
    )
    assert ours.gibbs_energy == pytest.approx(theirs["G_tot"][0], abs=AGREEMENT)
    assert ours.energy == pytest.approx(theirs["E_tot"][0], abs=AGREEMENT)
    assert ours.entropy == pytest.approx(theirs["S_tot"][0], abs=AGREEMENT / 310)
    assert ours.heat_capacity_v == pytest.approx(theirs["Cv_tot"][0], abs=AGREEMENT / 310)
    assert ours.heat_capacity_p == pytest.approx(theirs["Cp_tot"][0], abs=AGREEMENT / 310)
    assert dict(ours.molar_rows())["entropy S"] == pytest.approx(2625499.64 * theirs["S_tot"][0], abs=1e-2)


@pytest.mark.parametrize("wavenumber", [5.0, 40.0, 100.0, 600.0])
def test_low_modes_become_free_rotors(wavenumber: float) -> None:
    k, h, c, T, mean = 1.3806488e-23, 6.62606957e-34, 2.99792458e10, 298.15, 1e-44
    frequency = wavenumber * c
    x = h * frequency / (k * T)
    oscillator = x / math.expm1(x) - math.log(-math.expm1(-x))
    moment = h / (8 * math.pi**2 * frequency)
    moment = moment * mean / (moment + mean)
    rotor = 0.5 + math.log(math.sqrt(8 * math.pi**3 * moment * k * T / h**2))
    weight = 1 / (1 + (100.0 / wavenumber) ** 4)
    at = Conditions().with_defaults(1, 1)
    found = thermochemistry(0.0, np.array([wavenumber]), 18.0, np.ones(3), at)
    assert found.entropies["vibration"] / BOLTZMANN == pytest.approx(
        weight * oscillator + (1 - weight) * rotor, abs=1e-6
    )


def test_scale_degeneracy_and_refusals() -> None:
    found = vibrations(MOLECULES["open"])
    one, other = found.thermochemistry_at(scale=0.9), found.thermochemistry_at(degeneracy=1)
    assert one.zero_point_energy == pytest.approx(0.9 * other.zero_point_energy)
    warmer = (
        found.thermochemistry_at(temperature=298.65).enthalpy - found.thermochemistry_at(temperature=297.65).enthalpy
    )
    assert found.thermochemistry.heat_capacity_p == pytest.approx(warmer, rel=1e-5)
    assert found.thermochemistry.entropy - other.entropy == pytest.approx(BOLTZMANN * math.log(2))
    assert found.thermochemistry.gibbs_energy == found.thermochemistry.enthalpy - found.thermochemistry.entropy_term
    for wrong in ({"temperature": 0.0}, {"pressure": -1.0}, {"symmetry_number": 0}, {"entropy": "rho"}):
        with pytest.raises(InputError):
            Conditions(**wrong)  # type: ignore[arg-type]


def test_conditions_are_given_by_name() -> None:
    found = vibrations(MOLECULES["linear"])
    hot = found.thermochemistry_at(temperature=400.0).gibbs_energy
    assert hot == found.thermochemistry_at(Conditions(temperature=400.0)).gibbs_energy
    with pytest.raises(InputError, match="values by name such as temperature=400"):
        found.thermochemistry_at(400.0)  # type: ignore[arg-type]
    for name, meant in (("T", "temperature"), ("temp", "temperature"), ("p", "pressure")):
        with pytest.raises(InputError, match=f"unknown condition '{name}'; did you mean '{meant}'"):
            found.thermochemistry_at(**{name: 400.0})


@pytest.mark.parametrize(
    ("off_axis", "group", "modes"),
    [(0.0, ("Dooh", 2), 4), (0.008, ("Dooh", 2), 4), (0.012, ("Dooh", 2), 4), (0.02, ("C2v", 2), 3)],
)
def test_nearly_linear_molecules(off_axis: float, group: tuple[str, int], modes: int) -> None:
    """Modes, point group and rotational entropy follow from the same decision."""
    found = vibrations(Molecule.of(f"C {off_axis} 0 0; O 0 0 1.1879; O 0 0 -1.1879"))
    assert found.linear == (modes == 4) and found.symmetry == group and len(found.wavenumbers) == modes
    rotation = found.thermochemistry.energies["rotation"]
    assert rotation == pytest.approx((2 if found.linear else 3) * 0.5 * BOLTZMANN * 298.15)
    bent = Molecule.of(f"C {off_axis} 0 0; O 0 0 1.1879; S 0 0 -1.5")
    assert vibrations(bent).symmetry[0] == ("Coov" if found.linear else "Cs")
