"""Parameters of the NDDO methods, derived quantities, and one-centre integrals."""

from __future__ import annotations

import json
from fractions import Fraction
from importlib.resources import files
from math import factorial

import numpy as np
import pytest

from cuanto import Molecule
from cuanto.errors import InputError
from cuanto.kernels.nddo_multipoles import products
from cuanto.semiempirical import derived, one_centre
from cuanto.semiempirical.constants import HARTREE
from cuanto.semiempirical.layout import Layout
from cuanto.semiempirical.parameters import METHODS, parameters
from nddo_cases import elements, molecule, reference, run
from oracles.nddo import rotation

SEPARATIONS = {"D1": "sp", "D2": "pp", "D_sd": "sd", "D_pd": "pd", "D_dd": "dd"}
ADDITIVE = {"rho0": "0", "rho1": "sp", "rho2": "pp", "rho_sd": "sd", "rho_pd": "pd", "rho_dd": "dd", "rho0_dd": "0dd"}
LIMITED = {"rho1_core": "sp core", "rho2_core": "pp core"}
RADIAL = {
    "F0_sd": (0, "ss", "dd"),
    "G2_sd": (2, "sd", "sd"),
    "F0_pd": (0, "pp", "dd"),
    "F2_pd": (2, "pp", "dd"),
    "G1_pd": (1, "pd", "pd"),
    "G3_pd": (3, "pd", "pd"),
    "F0_dd": (0, "dd", "dd"),
    "F2_dd": (2, "dd", "dd"),
    "F4_dd": (4, "dd", "dd"),
    "R1_sppd": (1, "sp", "pd"),
    "R2_ppsd": (2, "pp", "sd"),
    "R2_sddd": (2, "sd", "dd"),
}
COUNTS = {"mndo": 41, "am1": 42, "pm3": 42, "pm6": 70, "rm1": 25}


@pytest.mark.parametrize("method", METHODS)
def test_derived_quantities(method: str) -> None:
    """All elements; the reference used integrals of metals with twelve decimals."""
    known = elements()["derived"][method]
    assert set(known) == set(parameters(method).elements) and len(known) == COUNTS[method]
    for symbol, values in known.items():
        element = parameters(method).element(symbol)
        assert element.isolated * HARTREE == pytest.approx(values["E_isolated_atom"], abs=1e-9)
        for name, shells in SEPARATIONS.items():
            assert element.D.get(shells, 0.0) == pytest.approx(values.get(name, 0.0), abs=1e-9)
        for name, shells in ADDITIVE.items():
            assert element.rho.get(shells, 0.0) == pytest.approx(values.get(name, 0.0), abs=1e-9, rel=1e-9)
        for name, shells in LIMITED.items():
            plain = element.rho.get(shells[:2], 0.0)
            assert element.rho.get(shells, 0.0) == pytest.approx(values.get(name, plain), abs=1e-9)
        for name, value in values.get("slater_condon_eV", {}).items():
            assert element.shells.radial(*RADIAL[name]) * HARTREE == pytest.approx(value, abs=1e-9)
        for name in element.shells.g.keys() & values.keys():
            assert element.shells.g[name] * HARTREE == pytest.approx(values[name], abs=1e-9)


def test_derived_quantities_of_the_first_elements() -> None:
    """The reference for ten elements was generated separately."""
    for method, known in reference()["derived"].items():
        for symbol, values in known.items():
            assert parameters(method).element(symbol).isolated * HARTREE == pytest.approx(
                values["E_isolated_atom"], abs=1e-9
            )


def test_mopac_limits_additive_terms() -> None:
    pm6 = parameters("pm6").elements
    assert pm6["Si"].rho["sd"] == pm6["Rh"].rho["pd"] == pm6["Lu"].rho["pd"] == pm6["Ir"].rho["pd"] == 5.0
    for symbol in ("Rh", "Pd", "Ag", "Hf"):
        assert pm6[symbol].rho["sp"] > 5.0 == pm6[symbol].rho["sp core"]
    layout = Layout(parameters("pm6"), ("Ag", "He", "Fe", "C"))
    own, core = layout.differing
    assert own.tolist() == [True, True, False, False] and core.tolist() == [False, False, True, False]


def test_radial_integrals_do_not_cancel() -> None:
    """Against exact arithmetic, for functions of the sixth shell with unlike exponents."""
    a, b, c, d = (6, 3.25), (6, 0.5), (5, 2.0), (6, 1.125)
    for k in (0, 1, 3):
        n, m, zeta, eta = a[0] + b[0], c[0] + d[0], Fraction(15, 4), Fraction(25, 8)
        inner = exact(n + k, m - k - 1, zeta, eta) + exact(m + k, n - k - 1, eta, zeta)
        norms = np.prod([derived.norm(one) for one in (a, b, c, d)])
        assert derived.slater_condon(k, a, b, c, d) == pytest.approx(norms * float(inner), rel=1e-14)


def exact(p: int, q: int, a: Fraction, b: Fraction) -> Fraction:
    """int_0^inf s^q exp(-b s) int_0^s r^p exp(-a r) dr ds in closed form."""
    inner = sum(factorial(q + j) / (factorial(j) * a ** (p + 1 - j) * (a + b) ** (q + j + 1)) for j in range(p + 1))
    return factorial(p) * (factorial(q) / (a ** (p + 1) * b ** (q + 1)) - inner)


@pytest.mark.parametrize("symbol", ["P", "Br", "Fe", "Au"])
def test_integrals_of_an_atom_are_invariant_under_rotation(symbol: str) -> None:
    """The d part for any rotation; with g_pp - 2 h_pp - g_p2 = 0 by definition the sp part as well."""
    I_pqrt = one_centre.integrals(parameters("pm6").element(symbol))
    for order in ((1, 0, 2, 3), (0, 1, 3, 2), (2, 3, 0, 1)):
        assert np.abs(I_pqrt - I_pqrt.transpose(order)).max() < 1e-15
    u = np.array([[0.48, -0.6, 0.64]])
    T = rotation(u / np.linalg.norm(u), 9)[0]
    rotated = np.einsum("pqrt,pa,qb,rc,td->abcd", I_pqrt, T, T, T, T, optimize=True)
    assert np.abs(rotated - I_pqrt).max() < 1e-13


def test_products_are_packed_by_shells() -> None:
    assert products(4) == ((0, 0), (0, 1), (0, 2), (0, 3), (1, 1), (1, 2), (1, 3), (2, 2), (2, 3), (3, 3))
    assert len(set(products(9))) == 45 and products(9)[10:15] == tuple((0, j) for j in range(4, 9))


@pytest.mark.parametrize("method", METHODS)
def test_data_have_provenance(method: str) -> None:
    data = json.loads((files("cuanto") / "data" / "semiempirical" / f"{method}.json").read_text())
    named = [symbol for symbols in data["sources"]["elements"].values() for symbol in symbols.split()]
    assert sorted(named) == sorted(data["elements"])
    assert "MOPAC" in data["sources"]["tabulation"] and "validation" in data


def test_every_element_occurs_in_a_molecule_of_the_references() -> None:
    for method in METHODS:
        molecules = [*reference()["molecules"].values(), *elements()["molecules"].values()]
        used = {s for one in molecules if method.upper() in one["methods"] for s in one["symbols"]}
        assert set(parameters(method).elements) <= used


def test_elements_without_parameters_are_refused_by_name() -> None:
    def message(symbol: str, method: str) -> str:
        with pytest.raises(InputError) as error:
            run(Molecule([symbol, "O"], [[0, 0, 0], [0, 0, 3.5]]), method)
        return str(error.value)

    assert message("Fe", "am1") == "am1 has no parameters for Fe: pm6 has them"
    assert message("Si", "rm1") == "rm1 has no parameters for Si: mndo, am1, pm3, pm6 have them"
    assert message("Gd", "pm6") == "pm6 has no parameters for Gd: rm1 has them"
    assert message("Po", "pm6") == "pm6 has no parameters for Po: no other method has them"
    with pytest.raises(InputError, match="unknown semiempirical method 'pm8'"):
        parameters("pm8")


def test_f_electrons_belong_to_the_core() -> None:
    """CeCl3 has an odd number of electrons, but an even number without the one in the f shell."""
    cerium = Layout(parameters("rm1"), ("Ce", "Cl", "Cl", "Cl"))
    assert cerium.valence_multiplicity(2) == 1 and cerium.electrons(0, 2) == (12, 12)
    assert Layout(parameters("rm1"), ("La", "Cl", "Cl", "Cl")).electrons(0, 1) == (12, 12)
    assert Layout(parameters("rm1"), ("Gd",)).electrons(0, 1) == (2, 1)
    result = run(molecule("CeCl3_rm1", "RM1"), "rm1")
    assert result.molecule.multiplicity == 2 and len(result.density) == 1
    assert "f electrons belong to the cores: multiplicity 1 of the valence electrons" in result.notes


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
    assert list(layout.kinds) == [(3, 3, 3), (2, 2), (1,)]
    rows, columns = layout.product_indices
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
