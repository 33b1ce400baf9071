"""Energy terms: every Fock contribution is the derivative of its energy; surroundings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cuanto
from cuanto.backends.base import get_backend
from cuanto.coulomb import IncrementalJK
from cuanto.coulomb.direct import DirectJK
from cuanto.coulomb.fitting import FittedJK
from cuanto.errors import InputError
from cuanto.terms import CoreHamiltonian, Coulomb, Dispersion, Exchange, NuclearRepulsion, Surroundings, Term
from cuanto.terms.x2c import OneElectronModel
from scf_cases import basis, molecule, water
from tolerances import FINITE_DIFFERENCE, SYMMETRY_REL

CPU = get_backend("cpu")
AROUND = Surroundings.of([0.7, -0.4], [[3.0, 0.0, 1.0], [0.0, -4.0, 0.5]], field=[0.01, -0.02, 0.03])


def term(name: str) -> Any:
    mol, orbital = water(name="sto-3g")
    if name.startswith("core"):
        model = OneElectronModel(137.0, True) if name.endswith("x2c") else OneElectronModel()
        return CoreHamiltonian(mol, orbital, AROUND, CPU, None, model)
    if name == "nuclear repulsion":
        return NuclearRepulsion(mol, AROUND)
    if name.endswith("fitted"):
        aux = basis("def2-universal-jkfit", mol, spherical=True)
        builder: Any = FittedJK(orbital, aux, backend="cpu")
    else:
        builder = IncrementalJK(DirectJK(orbital, backend="cpu", threshold=1e-18))
    return Coulomb(builder) if name.startswith("coulomb") else Exchange(builder, 0.75)


def symmetric(rng: np.random.Generator, spins: int) -> Any:
    A = rng.normal(size=(spins, 7, 7))
    return A + A.transpose(0, 2, 1)


@pytest.mark.parametrize("spins", [1, 2])
@pytest.mark.parametrize(
    "name", ["core", "core with x2c", "nuclear repulsion", "coulomb", "exchange", "coulomb fitted", "exchange fitted"]
)
def test_fock_is_the_derivative_of_the_energy(name: str, spins: int) -> None:
    rng, result = np.random.default_rng(3), term(name)
    D, V, h = symmetric(rng, spins), symmetric(rng, spins), 1e-3
    _, F = result.fock(D, None)
    slope = (float(result.fock(D + h * V, None)[0]) - float(result.fock(D - h * V, None)[0])) / (2 * h)
    expected = 0.0 if F is None else float((F * V).sum())
    assert abs(slope - expected) < FINITE_DIFFERENCE * max(1.0, abs(expected))


def test_a_term_only_needs_a_name_and_a_fock_matrix() -> None:
    """Everything else has defaults; dispersion implements a gradient, and builders have notes."""

    class Own(Term):
        name = "own"

        def fock(self, D_spq: Any, C_spi: Any | None) -> tuple[float, None]:
            return 0.0, None

    own, D = Own(), np.zeros((1, 7, 7))
    assert own.gradient(D, None) is None and own.response(D, D) is None and own.in_double() is None
    assert tuple(own.notes()) == ()
    mol, orbital = water(name="sto-3g")
    dispersion = Dispersion(mol, "pbe", "d3bj")
    assert np.array_equal(dispersion.gradient(D, None), dispersion.gradient_ax)
    single = Exchange(IncrementalJK(DirectJK(orbital, backend="cpu", precision="single", storage="stored")), 0.75)
    single.fock(symmetric(np.random.default_rng(3), 1), None)
    kept, precision = single.notes()
    assert kept.startswith("exchange: stored: all four-centre integrals kept")
    assert precision.startswith("single precision of direct J and K, about")
    double = single.in_double()
    assert double is not None and double.fraction == 0.75 and double.in_double() is None and not double.notes()
    assert "density fitting: in-core" in term("coulomb fitted").notes()[0] and not term("coulomb").notes()


def test_incremental_builder_equals_fresh_builds() -> None:
    _, orbital = water(name="sto-3g")
    direct = DirectJK(orbital, backend="cpu", threshold=1e-18)
    builder, rng = IncrementalJK(direct, restart=3), np.random.default_rng(5)
    D = symmetric(rng, 2)
    for _ in range(5):
        D = D + 0.1 * symmetric(rng, 2)
        J, K = builder(D, None, True, True)
        exact_J, exact_K = direct(D)
        assert np.abs(J - exact_J).max() < 1e-12 and np.abs(K - exact_K).max() < 1e-12
    with pytest.raises(InputError, match="restart is 0"):
        IncrementalJK(direct, restart=0)


def test_a_point_charge_repels_nuclei_as_a_nucleus_does() -> None:
    R = np.array([[0.0, 0.0, 0.0], [0.0, 0.3, 1.4]])
    ion = cuanto.Molecule(["He", "H"], R, charge=1)
    helium = NuclearRepulsion(cuanto.Molecule(["He"], R[:1]), Surroundings.of([1.0], R[1:]))
    assert abs(helium.energy - ion.nuclear_repulsion()) < SYMMETRY_REL


def test_energy_in_a_field_falls_by_the_dipole() -> None:
    mol, orbital = water(name="sto-3g")
    options: dict[str, Any] = {
        "fitting": "none",
        "backend": "cpu",
        "gradient_tolerance": 1e-8,
        "energy_tolerance": 1e-12,
    }
    h = 1e-3
    up, down = (cuanto.energy(mol, "hf", orbital, field=[0, f, 0], **options).energy for f in (h, -h))
    mu = cuanto.energy(mol, "hf", orbital, **options).dipole
    assert abs((up - down) / (2 * h) + mu[1]) < 1e-5 and abs(mu[1]) > 1e-2


def test_energy_with_a_distant_charge_follows_the_multipole_expansion() -> None:
    mol, orbital = water(name="sto-3g")
    options: dict[str, Any] = {"fitting": "none", "backend": "cpu", "gradient_tolerance": 1e-8}
    free = cuanto.energy(mol, "hf", orbital, **options)
    q, R = 0.5, 200.0
    charged = cuanto.energy(mol, "hf", orbital, point_charges=([q], [[0.0, 0.0, -R]]), **options)
    # In the field of the charge the dipole has the energy -q mu_z / R^2; the next term is of order R^-3.
    assert abs((charged.energy - free.energy) + q * free.dipole[2] / R**2) < 2 * q / R**3


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"charges": [1.0]}, "both charges and positions"),
        ({"charges": [1.0, 2.0], "positions": [[0.0, 0.0, 9.0]]}, "2 point charges have 1 positions"),
        ({"field": [1.0]}, "three components"),
        ({"charges": [np.nan], "positions": [[0.0, 0.0, 9.0]]}, "finite"),
    ],
)
def test_invalid_surroundings(given: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Surroundings.of(**given)


def test_a_charge_on_a_nucleus_is_refused() -> None:
    mol = molecule("CH3")
    for distance in (0.0, 1e-4, 0.09):
        with pytest.raises(InputError, match=f"is {distance:g} Bohr from atom 2 .* at least 0.1 Bohr"):
            NuclearRepulsion(mol, Surroundings.of([1.0], mol.R_ax[1:2] + np.array([0.0, 0.0, distance])))
    NuclearRepulsion(mol, Surroundings.of([1.0], mol.R_ax[1:2] + np.array([0.0, 0.0, 0.11])))
