"""Guesses: configurations of atoms, spherical atoms against PySCF, superposed densities, projected orbitals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.linalg import block_diag

import cuanto
from cuanto.backends.base import get_backend
from cuanto.basis.shell import tabulated_coefficients
from cuanto.errors import InputError
from cuanto.scf.atoms import atom
from cuanto.scf.checkpoint import Checkpoint
from cuanto.scf.configurations import configuration, electrons_by_momentum, outside_core
from cuanto.scf.guess import superposed_atoms
from cuanto.scf.state import Orbitals
from cuanto.system.elements import ATOMIC_NUMBERS
from scf_cases import basis, molecule, oracle, record, run_record, water

CPU = get_backend("cpu")


def test_every_element_has_its_electrons() -> None:
    for z in range(1, 119):
        held = configuration(z)
        assert sum(held.values()) == z
        assert all(0 < q <= 2 * (2 * l + 1) for (_, l), q in held.items())


@pytest.mark.parametrize(
    ("symbol", "charge", "expected"),
    [
        ("N", 0, [4, 3]),
        ("Cu", 0, [7, 12, 10]),
        ("Cu", 1, [6, 12, 10]),
        ("Fe", 2, [6, 12, 6]),
        ("O", -1, [4, 5]),
        ("Cl", -1, [6, 12]),
        ("Na", -1, [6, 6]),
        ("Pd", 0, [8, 18, 20]),
        ("Gd", 0, [12, 24, 21, 7]),
        ("H", 1, [0]),
    ],
)
def test_known_configurations(symbol: str, charge: float, expected: list[float]) -> None:
    assert electrons_by_momentum(configuration(ATOMIC_NUMBERS[symbol], charge)) == expected


@pytest.mark.parametrize(
    ("symbol", "core", "expected"),
    [
        ("K", 10, [[3, 6]]),
        ("I", 28, [[4, 11, 10]]),
        ("I", 46, [[2, 5]]),
        ("Au", 60, [[3, 6, 10]]),
        ("Tl", 78, [[2, 1]]),
        ("Cs", 54, [[1]]),
        ("Lu", 28, [[6, 12, 11, 14]]),
        ("Ce", 47, [[4, 6, 1]]),
        ("Tb", 54, [[4, 6, 1], [2, 0, 0, 9]]),
        ("U", 60, [[6, 12, 11, 3]]),
    ],
)
def test_configurations_outside_of_core_potentials(symbol: str, core: int, expected: list[list[float]]) -> None:
    number = ATOMIC_NUMBERS[symbol]
    found = outside_core(configuration(number), number, core)
    assert [electrons_by_momentum(one) for one in found] == expected
    assert all(sum(one.values()) == number - core for one in found)


@pytest.mark.parametrize("name", ["Ag", "I"])
def test_atoms_with_core_potentials(name: str) -> None:
    """The one-centre core potential is that of the molecular integrals: the SCF of closed shells agrees with PySCF."""
    from pyscf import scf

    charge = {"Ag": 1, "I": -1}[name]
    mol = cuanto.Molecule([name], np.zeros((1, 3)), charge)
    orbital = basis("def2-svp", mol)
    found = atom(ATOMIC_NUMBERS[name], charge, orbital.shells, orbital.core_potentials[0])
    assert found.converged
    assert found.energy == pytest.approx(scf.RHF(oracle(mol, orbital)).run(conv_tol=1e-10).e_tot, abs=1e-6)


@pytest.mark.filterwarnings("ignore")  # PySCF's own: deprecated calls, files left open
@pytest.mark.parametrize(("symbol", "name"), [("H", "sto-3g"), ("C", "cc-pvdz"), ("O", "def2-tzvp"), ("Cu", "6-31g**")])
def test_spherical_atoms_have_the_energy_of_pyscf(symbol: str, name: str) -> None:
    """PySCF's spherically averaged atom with the same fractional occupations."""
    from pyscf import gto
    from pyscf.scf import atom_hf

    ours = basis(name, cuanto.Molecule([symbol], np.zeros((1, 3))), spherical=True)
    number = ATOMIC_NUMBERS[symbol]
    shells = [
        [s.l, *([float(a), *map(float, row)] for a, row in zip(s.exponents, tabulated_coefficients(s), strict=True))]
        for s in ours.shells
    ]
    theirs = gto.M(atom=f"{symbol} 0 0 0", basis={symbol: shells}, spin=number % 2, verbose=0)
    solver = atom_hf.AtomSphAverageRHF(theirs)
    held = [int(q) for q in electrons_by_momentum(configuration(number))]
    solver.atomic_configuration = [held + [0] * (4 - len(held))] * 119
    solver.conv_tol = 1e-11
    solver.kernel()
    assert abs(atom(number, 0.0, ours.shells).energy - solver.e_tot) < 1e-8


def test_a_closed_shell_atom_has_the_energy_of_a_molecular_scf() -> None:
    mol = cuanto.Molecule(["O"], np.zeros((1, 3)), charge=-2)
    orbital = basis("def2-svp", mol)
    whole = cuanto.energy(mol, "rhf", orbital, fitting="none", backend="cpu", gradient_tolerance=1e-7)
    assert abs(atom(8, -2.0, orbital.shells).energy - whole.energy) < 1e-9


@pytest.mark.parametrize("name", ["CuO", "NO2"])
@pytest.mark.parametrize("spherical", [True, False])
def test_superposed_atoms_hold_the_electrons_of_the_atoms(name: str, spherical: bool) -> None:
    mol = molecule(name)
    orbital = basis("sto-3g" if name == "CuO" else "def2-svp", mol, spherical)
    S = cuanto.integrals.overlap(orbital, backend="cpu")
    for spins, unpaired in ((1, None), (2, None), (2, np.arange(mol.natom) - 1.0)):
        density = superposed_atoms(mol, orbital, spins, CPU, None, unpaired)
        counts = np.einsum("spq,pq->s", density.D_spq, S)
        assert abs(counts.sum() - mol.nelectron) < 1e-10
        assert np.abs(density.C_spi @ density.C_spi.transpose(0, 2, 1) - density.D_spq).max() < 1e-13
    assert abs(counts[0] - counts[1] - np.sum(np.arange(mol.natom) - 1.0)) < 1e-10


def test_cartesian_functions_hold_the_same_density() -> None:
    mol = molecule("CuO")
    repulsion = []
    for spherical in (True, False):
        orbital = basis("sto-3g", mol, spherical)
        D = superposed_atoms(mol, orbital, 1, CPU).D_spq[0]
        repulsion.append(float(np.sum(D * cuanto.coulomb.DirectJK(orbital, backend="cpu").j(D))))
    assert abs(repulsion[0] - repulsion[1]) < 1e-8 * repulsion[0]


def test_atomic_charges_and_spins_are_checked() -> None:
    mol, orbital = water(name="sto-3g")
    with pytest.raises(InputError, match="one number for each of the 3 atoms"):
        superposed_atoms(mol, orbital, 1, CPU, [1.0])
    with pytest.raises(InputError, match="one number for each of the 3 atoms, 'many' was given"):
        superposed_atoms(mol, orbital, 1, CPU, "many")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="more electrons than it has"):
        superposed_atoms(mol, orbital, 1, CPU, [0.0, 2.0, 0.0])


def test_all_guesses_lead_to_one_energy() -> None:
    mol, orbital = water()
    small = cuanto.energy(mol, "hf", basis("sto-3g", mol), fitting="none", backend="cpu")
    results = [
        cuanto.energy(mol, "hf", orbital, fitting="none", backend="cpu", guess=g) for g in ("sad", "core", small)
    ]
    assert max(r.energy for r in results) - min(r.energy for r in results) < 1e-9
    assert all(r.converged for r in results)
    assert results[0].iterations < results[1].iterations and results[2].iterations < results[1].iterations
    again = cuanto.energy(mol, "hf", orbital, fitting="none", backend="cpu", guess=results[0])
    assert again.iterations <= 2 and abs(again.energy - results[0].energy) < 1e-9
    with pytest.raises(InputError, match="unknown guess 'huckel': choose sad, core"):
        cuanto.energy(mol, "hf", orbital, fitting="none", backend="cpu", guess="huckel")


def test_files_of_results_are_guesses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By their names, as text or as paths; an input from elsewhere cannot name a file."""
    monkeypatch.chdir(tmp_path)
    common: dict[str, Any] = {"method": "hf", "basis": "sto-3g", "backend": "cpu"}
    pair = cuanto.Molecule(["H", "F"], [[0, 0, 0], [0, 0, 1.8]])
    keep = Checkpoint(tmp_path / "pair.h5", pair, cuanto.Basis("sto-3g", pair), "hf", CPU)
    cuanto.energy(pair, on_iteration=keep, **common).save("pair.json")
    for guess in ("pair.json", "pair.h5", Path("pair.json")):
        assert cuanto.energy(pair, guess=guess, **common).iterations <= 3
    corrected = cuanto.counterpoise(pair, "1,1", multiplicities=[2, 2], guess="pair.json", **common)
    assert corrected.complex.iterations <= 3
    with pytest.raises(InputError, match=r"unknown guess 'pair\.jsn': choose sad, core, or give a result, or the JSON"):
        cuanto.energy(pair, guess="pair.jsn", **common)
    molecule = {"symbols": ["H", "F"], "geometry": [0, 0, 0, 0, 0, 1.8]}
    model = {"driver": "energy", "model": {"method": "hf", "basis": "sto-3g"}, "keywords": {"guess": "pair.json"}}
    with pytest.raises(InputError, match=r"guess 'pair\.json' is a file, which an input must not name"):
        cuanto.compute({"molecule": molecule, **model}, raise_error=True)


def test_orbitals_are_converted_between_restricted_and_unrestricted() -> None:
    closed = run_record(record("rhf_sto3g_631gss", molecule="benzene", basis="sto-3g"))
    mol, orbital = closed.molecule, closed.basis
    unrestricted = cuanto.energy(mol, "uhf", orbital, fitting="none", backend="cpu", guess=closed)
    back = cuanto.energy(mol, "rhf", orbital, fitting="none", backend="cpu", guess=unrestricted)
    assert unrestricted.iterations <= 2 and back.iterations <= 2
    assert abs(unrestricted.energy - closed.energy) < 1e-9 and abs(back.energy - closed.energy) < 1e-9


def test_orbitals_that_do_not_fit_are_refused() -> None:
    mol, orbital = water()
    dependent = Orbitals(orbital, np.ones((1, orbital.nbf, 5)), np.full((1, 5), 2.0))
    with pytest.raises(InputError, match="cannot be represented"):
        cuanto.energy(mol, "hf", orbital, fitting="none", backend="cpu", guess=dependent)
    other = cuanto.Molecule(["O", "O"], [[0.0, 0.0, 0.0], [0.0, 0.0, 2.3]])
    found = cuanto.energy(mol, "hf", orbital, fitting="none", backend="cpu")
    with pytest.raises(InputError, match="another molecule, with atoms 'O H H' instead of 'O O': leave it out"):
        cuanto.energy(other, "hf", "sto-3g", fitting="none", backend="cpu", guess=found)
    unnamed = cuanto.Basis.from_shells(orbital.shells, orbital.R_ax)
    assert set(unnamed.symbols) == {"X"}
    orbitals = Orbitals(unnamed, found.coefficients, found.occupations)
    assert cuanto.energy(mol, "hf", orbital, fitting="none", backend="cpu", guess=orbitals).iterations <= 2
    more = cuanto.Molecule(["H", "O", "H", "H"], np.vstack([mol.R_ax + 50.0, [[0.0, 0.0, 9.0]]]), 1)
    with pytest.raises(InputError, match="another molecule, with atoms 'X X X'"):
        cuanto.energy(more, "hf", "sto-3g", fitting="none", backend="cpu", guess=orbitals)


@pytest.mark.parametrize("bases", [("sto-3g", "def2-svp"), ("6-31g", "def2-svp"), ("6-31g", "3-21g")])
def test_atoms_of_one_element_with_different_functions(bases: tuple[str, str]) -> None:
    """Also with equally many functions, where the density of the wrong ones would go unnoticed."""
    hydrogen = cuanto.Molecule(["H", "H"], [[0, 0, 0], [0, 0, 1.4]])
    one, other = (cuanto.Basis(name, hydrogen) for name in bases)
    shells = [*one.shells_of_atoms[0], *other.shells_of_atoms[1]]
    mixed = cuanto.Basis.from_shells(shells, hydrogen.R_ax, symbols=hydrogen.symbols)
    found = superposed_atoms(hydrogen, mixed, 1, CPU).D_spq[0]
    alone, also = (superposed_atoms(hydrogen, basis, 1, CPU).D_spq[0] for basis in (one, other))
    n, m = len(alone) // 2, len(also) // 2
    np.testing.assert_allclose(found, block_diag(alone[:n, :n], also[m:, m:]), rtol=0, atol=1e-14)


@pytest.mark.parametrize("name", ["sto-3g", "6-31g"])
def test_orbitals_move_with_a_molecule(name: str) -> None:
    mol, _ = water()
    options: dict[str, Any] = {"fitting": "none", "backend": "cpu"}
    first = cuanto.energy(mol, "hf", basis("sto-3g", mol), **options)
    far = cuanto.Molecule(mol.symbols, mol.R_ax + 10.0)
    moved, alone = (cuanto.energy(far, "hf", basis(name, far), guess=guess, **options) for guess in (first, "sad"))
    assert abs(moved.energy - alone.energy) < 1e-9
    assert moved.iterations <= (2 if name == "sto-3g" else alone.iterations)
    near = cuanto.Molecule(mol.symbols, mol.R_ax + np.array([0.0, 0.0, 2.5]))
    assert cuanto.energy(near, "hf", basis("sto-3g", near), guess=first, **options).iterations <= 2


def test_a_checkpoint_is_a_guess(tmp_path: Path) -> None:
    mol, orbital = water()
    path = tmp_path / "water.h5"
    keep = Checkpoint(path, mol, orbital, "hf", CPU)
    first = cuanto.energy(mol, "hf", orbital, fitting="none", backend="cpu", on_iteration=keep, max_iterations=4)
    assert not first.converged
    again = cuanto.energy(mol, "hf", orbital, fitting="none", backend="cpu", guess=path)
    scratch = cuanto.energy(mol, "hf", orbital, fitting="none", backend="cpu")
    assert again.converged and abs(again.energy - scratch.energy) < 1e-9 and again.iterations < scratch.iterations


def test_a_checkpoint_keeps_the_orbitals_of_a_restricted_open_shell(tmp_path: Path) -> None:
    mol = molecule("O2")
    orbital = basis("def2-svp", mol)
    path = tmp_path / "o2.h5"
    keep = Checkpoint(path, mol, orbital, "rohf", CPU)
    half = cuanto.energy(mol, "rohf", orbital, fitting="none", backend="cpu", on_iteration=keep, max_iterations=4)
    again = cuanto.energy(mol, "rohf", orbital, fitting="none", backend="cpu", guess=path)
    scratch = cuanto.energy(mol, "rohf", orbital, fitting="none", backend="cpu")
    assert not half.converged and again.converged and again.iterations < scratch.iterations
    assert abs(again.energy - scratch.energy) < 1e-9
    elsewhere = cuanto.energy(mol, "rohf", basis("def2-tzvp", mol), fitting="none", backend="cpu", guess=scratch)
    assert elsewhere.converged and elsewhere.energy < scratch.energy
