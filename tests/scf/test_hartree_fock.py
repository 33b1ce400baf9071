"""Hartree-Fock: reference energies, invariances, convergence, and all algorithms."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import cuanto
from cuanto.coulomb.direct import DirectJK
from cuanto.errors import InputError
from cuanto.interfaces.keywords import checked_keywords
from cuanto.methods import Result
from cuanto.scf.state import State
from sample import sample
from scf_cases import (
    DIPOLE,
    LOWER,
    N2_STRETCHED,
    ZWITTERION,
    basis,
    molecule,
    options_for,
    oracle,
    record,
    records,
    rotated,
    run_record,
    water,
)
from tolerances import ENERGY

DIRECT: dict[str, Any] = {"fitting": "none", "backend": "cpu"}
CHARGE = 1e-5
"""Tolerance of charges (electrons) and <S^2> against another program."""


def label(given: dict[str, Any]) -> str:
    form = "cartesian" if given["cartesian"] else "pure"
    return f"{given['molecule']}-{given['basis']}-{given['fitting'][:13]}-{form}"


def reached_by_default(given: dict[str, Any]) -> bool:
    """Whether the default guess leads to the recorded solution."""
    return given["method"] in ("RHF", "UHF") and "label" not in given and given["molecule"] != "CuO"


EVERY = [r for file in ("rhf_sto3g_631gss", "rhf_ccpvdz", "open_shell") for r in records(file) if reached_by_default(r)]
SMALL = [r for r in EVERY if r["nbf"] <= 62 or (r["nbf"] <= 114 and r["auxbasis"])]
LARGE = [r for r in EVERY if r not in SMALL and (r["nbf"] <= 130 or r["molecule"] == "naphthalene")]
"""Records of larger molecules; still larger ones are compared by `tools/compare_diagonalisers.py --functions 500`."""


def check(given: dict[str, Any]) -> None:
    result = run_record(given)
    assert result.converged
    assert abs(result.energy - given["energy"]) < ENERGY
    assert abs(result.energies["nuclear repulsion"] - given["nuclear_repulsion"]) < ENERGY
    assert np.abs(result.dipole_debye - given["dipole_debye"]).max() < DIPOLE
    assert np.abs(result.mulliken_charges - given["mulliken_charges"]).max() < CHARGE
    assert result.s_squared == pytest.approx(given.get("S2", 0.0), abs=CHARGE) or result.method == "rhf"
    assert result.basis.nbf == given["nbf"]


@pytest.mark.parametrize("given", SMALL, ids=label)
def test_energies_of_the_reference(given: dict[str, Any]) -> None:
    check(given)


@pytest.mark.slow
@pytest.mark.parametrize("given", sample(LARGE, 3), ids=label)
def test_energies_of_the_reference_for_larger_molecules(given: dict[str, Any]) -> None:
    check(given)


@pytest.fixture(scope="module")
def water_result() -> Result:
    return cuanto.energy(water()[0], "hf", water()[1], **DIRECT)


def test_energy_does_not_depend_on_place_and_direction(water_result: Result) -> None:
    for seed in (1, 2):
        copy = rotated(water_result.molecule, seed)
        again = cuanto.energy(copy, "hf", basis("cc-pvdz", copy), **DIRECT)
        assert abs(again.energy - water_result.energy) < 1e-9


def test_reported_energy_belongs_to_the_reported_density(water_result: Result) -> None:
    """Recompute the energy from the reported orbitals, without increments and with tight screening."""
    C, n, orbital = water_result.coefficients[0], water_result.occupations[0], water_result.basis
    D = (C * n) @ C.T
    assert np.abs(D - water_result.density[0]).max() < 1e-12
    J, K = DirectJK(orbital, backend="cpu", threshold=1e-16)(D)
    h = cuanto.integrals.kinetic(orbital, backend="cpu")
    h = h + cuanto.integrals.nuclear(orbital, water_result.molecule, backend="cpu")
    energy = float(np.sum(D * (h + 0.5 * J - 0.25 * K))) + water_result.molecule.nuclear_repulsion()
    assert abs(energy - water_result.energy) < 1e-10
    assert abs(sum(water_result.energies.values()) - water_result.energy) < 1e-12
    F, S = h + J - 0.5 * K, cuanto.integrals.overlap(orbital, backend="cpu")
    assert np.abs(C.T @ S @ C - np.eye(len(n))).max() < 1e-11
    assert np.abs(C.T @ F @ C - np.diag(water_result.orbital_energies[0])).max() < 1e-5
    assert np.abs(F @ D @ S - S @ D @ F).max() < 1e-5


def test_convergence_needs_energy_and_gradient() -> None:
    mol, orbital = water(name="sto-3g")
    states: list[State] = []
    tight: dict[str, Any] = {"energy_tolerance": 1.0, "gradient_tolerance": 1e-7, "on_iteration": states.append}
    done = cuanto.energy(mol, "hf", orbital, **DIRECT, **tight)
    assert done.converged and done.state.gradient < 1e-7
    assert [s.converged for s in states] == [False] * (len(states) - 1) + [True]
    assert [s.iteration for s in states] == list(range(1, len(states) + 1))
    loose = cuanto.energy(mol, "hf", orbital, **DIRECT, energy_tolerance=1e-11, gradient_tolerance=1.0)
    assert loose.converged and abs(loose.state.energy_change) < 1e-11
    for most in (1, 3):
        short = cuanto.energy(mol, "hf", orbital, **DIRECT, max_iterations=most)
        assert not short.converged and short.iterations == most


@pytest.mark.parametrize(
    "options",
    [
        {"accelerator": "diis"},
        {"accelerator": "adiis"},
        {"accelerator": "descent"},
        {"accelerator": "none", "damping": 0.2},
        {"damping": 0.5},
        {"level_shift": 0.5},
        {"level_shift": 0.3, "diagonaliser": "pseudo"},
        {"history": 3},
    ],
    ids=str,
)
def test_all_algorithms_give_the_same_energy(options: dict[str, Any], water_result: Result) -> None:
    again = cuanto.energy(water_result.molecule, "hf", water_result.basis, **DIRECT, **options)
    assert again.converged and abs(again.energy - water_result.energy) < 1e-9
    assert np.abs(again.orbital_energies - water_result.orbital_energies).max() < 1e-5


def test_mixed_precision_stays_near_double(water_result: Result) -> None:
    mixed = cuanto.energy(water_result.molecule, "hf", water_result.basis, **DIRECT, precision="mixed")
    assert mixed.converged and abs(mixed.energy - water_result.energy) < 1e-7
    assert "mixed precision of direct J and K" in mixed.notes[-1]


def test_unrestricted_singlet_equals_restricted(water_result: Result) -> None:
    for method in ("uhf", "rohf"):
        other = cuanto.energy(water_result.molecule, method, water_result.basis, **DIRECT)
        assert other.converged and abs(other.energy - water_result.energy) < 1e-9 and abs(other.s_squared) < 1e-6


@pytest.mark.filterwarnings("ignore")  # PySCF leaves files open
@pytest.mark.parametrize("name", ["O2", "CH3", "NO2"])
def test_restricted_open_shells_have_the_energy_of_pyscf(name: str) -> None:
    from pyscf import scf

    mol = molecule(name)
    orbital = basis("def2-svp", mol)
    solver = scf.ROHF(oracle(mol, orbital)).set(conv_tol=1e-11, max_memory=500)
    solver.kernel()
    ours = cuanto.energy(mol, "rohf", orbital, **DIRECT)
    assert ours.converged and abs(ours.energy - solver.e_tot) < ENERGY
    spin = 0.5 * (mol.multiplicity - 1)
    assert abs(ours.s_squared - spin * (spin + 1)) < 1e-10
    assert len(ours.orbital_energies) == 1 and len(ours.occupations) == 2


@pytest.mark.filterwarnings("ignore")  # PySCF leaves files open
@pytest.mark.parametrize("method", ["rhf", "uhf"])
def test_smeared_occupations_have_the_free_energy_of_pyscf(method: str) -> None:
    from pyscf import scf

    mol = cuanto.Molecule.from_string(N2_STRETCHED)
    orbital = basis("def2-svp", mol)
    solver = (scf.RHF if method == "rhf" else scf.UHF)(oracle(mol, orbital)).smearing(sigma=0.05, method="fermi")
    solver.set(conv_tol=1e-11, fix_spin=True).kernel()
    ours = cuanto.energy(mol, method, orbital, **DIRECT, smearing=0.05, gradient_tolerance=1e-6)
    assert ours.converged and abs(ours.energy - solver.e_free) < ENERGY
    assert abs(ours.occupations.sum() - mol.nelectron) < 1e-10
    assert ours.energies["entropy"] < -0.01


@pytest.mark.parametrize("method", ["rhf", "uhf", "pbe", "pm6"])
def test_a_level_shift_does_not_change_smeared_occupations(method: str) -> None:
    mol = cuanto.Molecule.from_string("2\n\nN 0 0 0\nN 0 0 1.9\n")
    keywords: dict[str, Any] = {"smearing": 0.05, "energy_tolerance": 1e-11}
    keywords |= {"backend": "cpu"} if method == "pm6" else DIRECT
    orbital = None if method == "pm6" else basis("6-31g", mol)
    plain, *others = (cuanto.energy(mol, method, orbital, **keywords, level_shift=b) for b in (0.0, 0.01, 0.5))
    assert 1e-3 < plain.occupations.min(axis=0)[5 if method == "pm6" else 7] < 1.9
    for other in others:
        assert other.converged and abs(other.energy - plain.energy) < ENERGY
        assert np.abs(other.occupations - plain.occupations).max() < 1e-3


def test_smearing_of_an_atom_with_an_open_shell() -> None:
    titanium = cuanto.Molecule.from_string("1\n\nTi 0 0 0\n", multiplicity=3)
    smeared = cuanto.energy(titanium, "uhf", "sto-3g", smearing=0.01, **DIRECT)
    assert smeared.converged and smeared.energies["entropy"] < 0


def test_fixed_occupations(water_result: Result) -> None:
    mol, orbital = water_result.molecule, water_result.basis
    same = cuanto.energy(mol, "rhf", orbital, **DIRECT, occupations=[[2] * 5])
    assert abs(same.energy - water_result.energy) < 1e-9
    spread = cuanto.energy(mol, "rhf", orbital, **DIRECT, occupations=[[2, 2, 2, 2, 1.5, 0.5]])
    assert spread.converged and spread.energy > water_result.energy + 0.05
    assert abs(np.sum(spread.density[0] * cuanto.integrals.overlap(orbital, backend="cpu")) - 10) < 1e-10
    for given, message in (([[2] * 4], "add up to 8"), ([[3, 2, 2, 2, 1]], "from 0 to 2"), ([[1] * 5] * 2, "1 spin")):
        with pytest.raises(InputError, match=message):
            cuanto.energy(mol, "rhf", orbital, **DIRECT, occupations=given)


def test_nearly_dependent_functions_are_left_out(water_result: Result) -> None:
    """Doubled shells add nothing: same energy, and the result says what was dropped."""
    orbital = water_result.basis
    shells = [shell for shell in orbital.shells for _ in range(1 + (shell.l == 0))]
    doubled = cuanto.Basis.from_shells(shells, orbital.R_ax, symbols=orbital.symbols)
    again = cuanto.energy(water_result.molecule, "hf", doubled, **DIRECT, guess="core")
    assert again.converged and abs(again.energy - water_result.energy) < 1e-8
    assert again.notes[-1] == "7 linearly dependent combinations left out: overlap eigenvalues below 1e-07"


def test_atomic_spins_break_the_symmetry_of_a_stretched_bond() -> None:
    mol = cuanto.Molecule.from_string(N2_STRETCHED)
    orbital = basis("cc-pvdz", mol)
    closed = cuanto.energy(mol, "rhf", orbital, **DIRECT)
    broken = cuanto.energy(mol, "uhf", orbital, **DIRECT, atomic_spins=[3, -3])
    nitrogen = cuanto.Molecule(["N"], np.zeros((1, 3)), multiplicity=4)
    atom = cuanto.energy(nitrogen, "uhf", basis("cc-pvdz", nitrogen), **DIRECT)
    for found, method in ((closed, "RHF"), (broken, "UHF")):
        given = record("hard_singlets", molecule="N2_stretched", basis="cc-pvdz", method=method)
        assert found.converged and abs(found.energy - given["energy"]) < ENERGY
        assert abs(found.s_squared - given["S2"]) < CHARGE
    assert broken.energy < closed.energy - 0.5
    assert abs(broken.energy - 2 * atom.energy) < 1e-3


def test_an_unstable_state_is_found_and_left() -> None:
    """NO2: the symmetric solution is a saddle point, the minimum lies 1.4e-5 Hartree below."""
    known: dict[str, Any] = {"molecule": "NO2", "method": "UHF", "basis": "cc-pvdz"}
    saddle, lower = record("open_shell", guess="minao", **known), record("open_shell", label=LOWER, **known)
    checked = run_record(saddle, stability="check")
    assert abs(checked.energy - saddle["energy"]) < ENERGY
    assert checked.state.curvature is not None and checked.state.curvature < -1e-4
    assert any("NOT a minimum" in note for note in checked.notes)
    followed = run_record(lower, **options_for(lower))
    assert followed.converged and abs(followed.energy - lower["energy"]) < ENERGY
    assert followed.state.curvature is not None and followed.state.curvature > 0
    assert abs(followed.s_squared - lower["S2"]) < 1e-3


def test_curvature_of_a_stable_state() -> None:
    """The lowest curvature of H2 in a minimal basis is known: e_a - e_i plus the integrals of the only rotation."""
    mol = cuanto.Molecule(["H", "H"], [[0, 0, 0], [0, 0, 1.4]])
    orbital = basis("sto-3g", mol)
    result = cuanto.energy(mol, "rhf", orbital, **DIRECT, stability="check")
    C, eps = result.coefficients[0], result.orbital_energies[0]
    mo = np.einsum("pqrs,pi,qj,rk,sl->ijkl", cuanto.integrals.eri_4c(orbital, backend="cpu"), C, C, C, C)
    expected = eps[1] - eps[0] + 3 * mo[0, 1, 0, 1] - mo[0, 0, 1, 1]
    assert result.state.curvature == pytest.approx(expected, abs=1e-6)


def test_a_zwitterion_converges() -> None:
    mol = cuanto.Molecule.from_string(ZWITTERION)
    result = cuanto.energy(mol, "hf", basis("def2-svp", mol), **DIRECT)
    given = record("hard_singlets", molecule="zwitterion")
    assert result.converged and result.iterations <= 15
    assert abs(result.energy - given["energy"]) < ENERGY
    assert np.abs(result.dipole_debye - given["dipole_debye"]).max() < DIPOLE
    assert np.abs(result.mulliken_charges - given["mulliken_charges"]).max() < CHARGE
    assert np.linalg.norm(result.dipole_debye) > 8.0  # charges are far apart


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"accelerator": "kdiis"}, "unknown accelerator 'kdiis': choose auto, diis"),
        ({"max_iteration": 3}, "did you mean 'max_iterations'"),
        ({"damping": 1.5}, "damping is 1.5: give a number from 0 to 0.95"),
        ({"max_iterations": 2.5}, "whole number"),
        ({"gradient_tolerance": float("nan")}, "must be a number"),
        ({"smearing": 0.1, "occupations": [[2] * 5]}, "exclude each other"),
        ({"precision": "half"}, "unknown precision 'half': choose double, mixed, single"),
        ({"fitting": "jk", "max_memory": 0}, "max_memory must be a positive number of bytes, not 0"),
        ({"max_memory": "much"}, "max_memory 'much': give a size such as 4GB, 500MB or 2000000000"),
        ({"point_charges": [[1.0, 2.0]]}, "point_charges must be a pair"),
        ({"fitting": "k"}, "unknown fitting 'k': choose auto, none, j, jk"),
        ({"method": "casscf"}, "not implemented: casscf"),
        ({"method": "rohf", "smearing": 0.1}, "rohf has no unique orbital energies to smear: use uhf"),
        ({"guess_mixing": -1.0}, "guess_mixing is -1: give a number from 0 to 10"),
        ({"seed": 1.5}, "seed must be a whole number"),
        ({"stability": "check", "smearing": 0.1}, "need aufbau occupations"),
    ],
    ids=str,
)
def test_options_that_make_no_sense(options: dict[str, Any], message: str) -> None:
    mol, orbital = water(name="sto-3g")
    with pytest.raises(InputError, match=message):
        cuanto.energy(mol, options.pop("method", "hf"), orbital, **{**DIRECT, **options})


def test_multiplicity_decides_between_restricted_and_unrestricted() -> None:
    mol = molecule("O2")
    orbital = basis("def2-svp", mol)
    assert cuanto.energy(mol, "hf", orbital, **DIRECT).method == "uhf"
    with pytest.raises(InputError, match="rhf needs a singlet, but the multiplicity is 3"):
        cuanto.energy(mol, "rhf", orbital, **DIRECT)
    with pytest.raises(InputError, match="is not a molecule"):
        cuanto.energy(2)  # type: ignore[arg-type]


def test_too_many_electrons_for_the_basis() -> None:
    mol = cuanto.Molecule(["H"], np.zeros((1, 3)), charge=-1)
    filled = cuanto.energy(mol, "rhf", basis("sto-3g", mol), **DIRECT)
    assert filled.converged and filled.lumo == (np.inf,)
    with pytest.raises(InputError, match="2 electrons do not fit into 1 orbitals"):
        cuanto.energy(cuanto.Molecule(["H"], np.zeros((1, 3)), -1, 3), "uhf", basis("sto-3g", mol), **DIRECT)


@pytest.mark.parametrize(("method", "other"), [("pbe", "upbe"), ("rhf-d3bj", "uhf-d3bj"), ("hf", "uhf")])
def test_spins_of_atoms_need_an_unrestricted_method(method: str, other: str) -> None:
    hydrogen = cuanto.Molecule(["H", "H"], [[0, 0, 0], [0, 0, 6.0]])
    with pytest.raises(InputError, match=f"atomic_spins have no effect in {method}, .*: use {other}"):
        cuanto.energy(hydrogen, method, "sto-3g", backend="cpu", atomic_spins=np.array([1, -1]))
    assert cuanto.energy(hydrogen, "hf", "sto-3g", backend="cpu", atomic_spins=[0, 0]).converged


def test_a_variant_needs_rotations() -> None:
    hydrogen = cuanto.Molecule(["H", "H"], [[0, 0, 0], [0, 0, 1.4]])
    with pytest.raises(InputError, match="variant has no effect with diagonaliser='full': leave out one"):
        cuanto.energy(hydrogen, "pm6", diagonaliser="full", variant="block")


def test_damping_alone() -> None:
    """Without an accelerator that takes over, plain iterations of this case do not converge."""
    found = cuanto.energy(water()[0], "pbe", "def2-svp", backend="cpu", accelerator="none", damping=0.5)
    assert found.converged and found.iterations < 30


def test_ineffective_options_are_reported() -> None:
    mol, _ = water(name="sto-3g")
    common: dict[str, Any] = {"backend": "cpu", "max_iterations": 1, "precision": "mixed", "storage": "stored"}
    fitted = cuanto.energy(mol, "hf", basis("def2-svp", mol), **common)
    assert sum("has no effect here" in note for note in fitted.notes) == 2
    recomputed = cuanto.energy(mol, "hf", basis("def2-svp", mol), **common | {"storage": "direct"})
    assert any("storage='direct' has no effect here" in note for note in recomputed.notes)
    direct = cuanto.energy(mol, "hf", basis("sto-3g", mol), fitting="none", **common)
    assert not any("no effect" in note for note in direct.notes)


def test_surroundings_are_keywords() -> None:
    """The keywords give the same energy after a round trip through JSON."""
    mol, orbital = water(name="sto-3g")
    given = {"point_charges": ([0.5], np.array([[0.0, 0.0, 6.0]])), "field": (0.0, 0.01, 0.0)}
    found = cuanto.energy(mol, "hf", orbital, **DIRECT, **given)
    keywords = checked_keywords(json.loads(json.dumps(found.keywords)), "test")
    assert keywords["point_charges"] == [[0.5], [[0.0, 0.0, 6.0]]] and keywords["field"] == [0.0, 0.01, 0.0]
    again = cuanto.energy(mol, "hf", orbital, **{**DIRECT, **keywords})
    assert abs(again.energy - found.energy) < 1e-10
    fixed = cuanto.energy(mol, "hf", orbital, **DIRECT, occupations=np.array([[2.0] * 5 + [0.0] * 2]))
    assert np.array_equal(fixed.keywords["occupations"], [[2.0] * 5 + [0.0] * 2])
