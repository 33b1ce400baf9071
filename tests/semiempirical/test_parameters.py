"""Parameters of the NDDO methods, what follows from them, and integrals of one atom."""

from __future__ import annotations

import json
from importlib.resources import files

import numpy as np
import pytest

from cuanto import Molecule
from cuanto.errors import InputError
from cuanto.semiempirical import derived, one_centre
from cuanto.semiempirical.constants import HARTREE
from cuanto.semiempirical.layout import Layout, products
from cuanto.semiempirical.parameters import METHODS, parameters
from nddo_cases import molecule, reference, run
from oracles.nddo import rotation


@pytest.mark.parametrize("method", METHODS)
def test_derived_quantities(method: str) -> None:
    names = {"D1": "sp", "D2": "pp", "D_sd": "sd", "D_pd": "pd", "D_dd": "dd"}
    additive = {"rho0": "0", "rho1": "sp", "rho2": "pp", "rho_sd": "sd", "rho_pd": "pd", "rho_dd": "dd"}
    for symbol, known in reference()["derived"][method].items():
        element = parameters(method).element(symbol)
        assert element.isolated * HARTREE == pytest.approx(known["E_isolated_atom"], abs=1e-9)
        for name, shells in names.items():
            assert element.D.get(shells, 0.0) == pytest.approx(known.get(name, 0.0), abs=1e-9)
        for name, shells in (additive | {"rho0_dd": "0dd"}).items():
            assert element.rho.get(shells, 0.0) == pytest.approx(known.get(name, 0.0), abs=1e-9)


def test_radial_integrals() -> None:
    for symbol, known in reference()["derived"]["pm6"].items():
        if "slater_condon_eV" not in known:
            continue
        element = parameters("pm6").element(symbol)
        s, p, d = ((element.n, zeta) for zeta in element.internal)
        found = {
            "F0_sd": derived.slater_condon(0, s, s, d, d),
            "G2_sd": derived.slater_condon(2, s, d, s, d),
            "F2_pd": derived.slater_condon(2, p, p, d, d),
            "G3_pd": derived.slater_condon(3, p, d, p, d),
            "F4_dd": derived.slater_condon(4, d, d, d, d),
            "R1_sppd": derived.slater_condon(1, s, p, p, d),
            "R2_sddd": derived.slater_condon(2, s, d, d, d),
        }
        for name, value in found.items():
            assert value * HARTREE == pytest.approx(known["slater_condon_eV"][name], abs=1e-9)


@pytest.mark.parametrize("symbol", ["P", "Br"])
def test_integrals_of_an_atom_are_invariant_under_rotation(symbol: str) -> None:
    """The d part for any rotation; with g_pp - 2 h_pp - g_p2 = 0 by definition the sp part as well."""
    I_pqrt = one_centre.integrals(parameters("pm6").element(symbol))
    for order in ((1, 0, 2, 3), (0, 1, 3, 2), (2, 3, 0, 1)):
        assert np.abs(I_pqrt - I_pqrt.transpose(order)).max() < 1e-15
    u = np.array([[0.48, -0.6, 0.64]])
    T = rotation(u / np.linalg.norm(u), 9)[0]
    turned = np.einsum("pqrt,pa,qb,rc,td->abcd", I_pqrt, T, T, T, T, optimize=True)
    assert np.abs(turned - I_pqrt).max() < 1e-13


def test_products_are_packed_by_shells() -> None:
    assert products(4) == ((0, 0), (0, 1), (0, 2), (0, 3), (1, 1), (1, 2), (1, 3), (2, 2), (2, 3), (3, 3))
    assert len(set(products(9))) == 45 and products(9)[10:15] == tuple((0, j) for j in range(4, 9))


@pytest.mark.parametrize("method", METHODS)
def test_data_say_where_they_come_from(method: str) -> None:
    data = json.loads((files("cuanto") / "data" / "semiempirical" / f"{method}.json").read_text())
    assert set(data["sources"]["per_element"]) == set(data["elements"])
    assert "MOPAC" in data["sources"]["tabulation"] and "validation" in data


def test_elements_without_validated_parameters_are_refused_by_name() -> None:
    with pytest.raises(InputError, match="pm6 has no validated parameters for Fe: there are H, C, N"):
        run(Molecule(["Fe", "O"], [[0, 0, 0], [0, 0, 3.0]], multiplicity=5), "pm6")
    with pytest.raises(InputError, match="unknown semiempirical method 'pm8'"):
        parameters("pm8")


def test_impossible_spins_are_refused() -> None:
    """Core electrons, which these methods do not have, cannot be unpaired."""
    with pytest.raises(InputError, match="valence electrons"):
        run(Molecule(["C"], [[0, 0, 0]], multiplicity=7), "am1")
    with pytest.raises(InputError, match="starts from neutral atoms"):
        run(molecule("water_01"), "am1", atomic_charges=[0, 0, 0])


def test_layout() -> None:
    mol = molecule("CH3SH")
    layout = Layout(parameters("pm6"), mol.symbols)
    assert layout.orbitals == 4 + 9 + 4 and layout.electrons(0, 1) == (7, 7)
    assert list(layout.kinds) == [(3, 9), (2, 4), (1, 1)]
    rows, columns = layout.places
    assert len(rows) == layout.products == 10 + 45 + 4 and (rows <= columns).all()
    assert layout.cores.sum() == 14


def test_sums_of_many_atoms_are_not_rounded_at_each() -> None:
    layout = Layout(parameters("pm6"), ("C",) * 2000 + ("H",) * 4002)
    carbon, hydrogen = layout.elements[0], layout.elements[-1]
    for found, one, other in (
        (layout.isolated, carbon.isolated, hydrogen.isolated),
        (layout.heat, carbon.heat, hydrogen.heat),
    ):
        assert found == pytest.approx(2000 * one + 4002 * other, rel=3e-16)
