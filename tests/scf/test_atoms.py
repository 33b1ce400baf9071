"""Unrestricted spherical atoms, against determinants with whole electrons and PySCF."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import numpy as np
import pytest

from cuanto import Basis, Molecule
from cuanto.arrays import Array
from cuanto.scf.atoms import Atom, atom, spread_orbitals
from cuanto.scf.configurations import configuration, outside_core, spins_by_hund
from cuanto.system.elements import SYMBOLS
from scf_cases import oracle


def alone(symbol: str, name: str) -> tuple[Molecule, Basis]:
    """An atom with the multiplicity of Hund's rule, and its basis."""
    molecule = Molecule([symbol], np.zeros((1, 3)))
    basis = Basis(name, molecule)
    up, down = spins(molecule, basis)
    multiplicity = 1 + round(sum(up.values()) - sum(down.values()))
    return Molecule([symbol], np.zeros((1, 3)), 0, multiplicity), basis


def spins(molecule: Molecule, basis: Basis) -> tuple[dict[tuple[int, int], float], dict[tuple[int, int], float]]:
    number, potential = int(molecule.numbers[0]), basis.core_potentials[0]
    subshells = configuration(number)
    if potential is not None:
        (subshells,) = outside_core(subshells, number, potential.core_electrons)
    return spins_by_hund(subshells)


def unrestricted(molecule: Molecule, basis: Basis) -> Atom:
    return atom(int(molecule.numbers[0]), 0.0, basis.shells, basis.core_potentials[0], unrestricted=True)


def determinants(molecule: Molecule, basis: Basis) -> list[Array]:
    """Density matrices D_spq of all choices of components of the open subshells."""
    found, chosen = unrestricted(molecule, basis), []
    whole = tuple(np.full(len(n_i), 2.0 * l + 1) for l, n_i in enumerate(found.n_li))
    C_pi, first = spread_orbitals(found, basis.shells, whole), 0
    of_spins: list[list[list[int]]] = [[[]], [[]]]
    for l, n_i in enumerate(found.n_li):
        columns = first + np.arange((2 * l + 1) * len(n_i)).reshape(2 * l + 1, len(n_i))
        first += columns.size
        electrons = [sum(q for (_, k), q in one.items() if k == l) for one in spins(molecule, basis)]
        up = int(np.ceil(electrons[0] / (2 * l + 1)))
        for s, own in enumerate((columns[:, :up], columns[:, up:])):
            occupied = [round(n) for n in (n_i[:up], n_i[up:])[s]]
            parts = [combinations(own[:, i], n) for i, n in enumerate(occupied)]
            of_spins[s] = [[*one, *sum(more, ())] for one in of_spins[s] for more in product(*map(list, parts))]
    for up_columns, down_columns in product(*of_spins):
        chosen.append(np.array([C_pi[:, part] @ C_pi[:, part].T for part in (up_columns, down_columns)]))
    return chosen


def solver(molecule: Molecule, basis: Basis) -> Any:
    from pyscf import scf

    return scf.UHF(oracle(molecule, basis))


@pytest.mark.parametrize(
    ("symbol", "name"), [("H", "def2-svp"), ("N", "cc-pvdz"), ("Cr", "def2-svp"), ("Cu", "def2-svp")]
)
def test_half_filled_and_full_subshells_have_the_energy_of_uhf(symbol: str, name: str) -> None:
    molecule, basis = alone(symbol, name)
    theirs = solver(molecule, basis)
    start = determinants(molecule, basis)[0]
    assert unrestricted(molecule, basis).energy == pytest.approx(theirs.run(start, conv_tol=1e-11).e_tot, abs=1e-6)


@pytest.mark.parametrize(("symbol", "name"), [("C", "6-31g*"), ("O", "def2-svp"), ("I", "def2-svp"), ("Ti", "sto-3g")])
def test_the_energy_is_the_average_over_configurations(symbol: str, name: str) -> None:
    molecule, basis = alone(symbol, name)
    theirs, found = solver(molecule, basis), unrestricted(molecule, basis)
    energies = [theirs.energy_tot(D_spq) for D_spq in determinants(molecule, basis)]
    assert found.converged
    assert found.energy == pytest.approx(np.mean(energies), abs=1e-8)


def test_the_energy_is_stationary() -> None:
    """The anisotropic UHF of oxygen and of the iron configuration is a little lower, never higher."""
    for symbol, name in (("O", "def2-svp"), ("Fe", "def2-svp")):
        molecule, basis = alone(symbol, name)
        theirs = solver(molecule, basis).run(determinants(molecule, basis)[0], conv_tol=1e-10)
        assert -0.01 < theirs.e_tot - unrestricted(molecule, basis).energy < 1e-6


@pytest.mark.parametrize("name", ["sto-3g", "def2-svp", "def2-tzvp", "cc-pvtz"])
def test_all_elements_converge(name: str) -> None:
    failed = []
    for symbol in (symbol for symbol in SYMBOLS[:86] if has(name, symbol)):
        molecule = Molecule([symbol], np.zeros((1, 3)))
        basis = Basis(name, molecule)
        restricted = atom(int(molecule.numbers[0]), 0.0, basis.shells, basis.core_potentials[0])
        found = unrestricted(molecule, basis)
        if not found.converged or found.energy > restricted.energy + 1e-6:
            failed.append(symbol)
    assert not failed


def has(name: str, symbol: str) -> bool:
    from cuanto.basis import library

    return library.find(name, symbol) is not None
