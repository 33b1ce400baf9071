"""Interaction energies with the counterpoise correction: against PySCF, dispersion, open shells, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cuanto
from cuanto import CounterpoiseResult, Molecule
from cuanto.errors import InputError
from cuanto.methods import Result
from cuanto.methods.error_estimates import REMAINDER, total_error
from cuanto.units import HARTREE_IN_KCAL_PER_MOL
from tolerances import ENERGY, ENERGY_GRID

COMPLEXES = {
    "water dimer": (
        [3, 3],
        """O -1.551007 -0.114520 0.0
        H -1.934259 0.762503 0.0
        H -0.599677 0.040712 0.0
        O 1.350625 0.111469 0.0
        H 1.680398 -0.373741 -0.758561
        H 1.680398 -0.373741 0.758561""",
    ),
    "hydrogen fluoride dimer": ([2, 2], "F 0 0 0\nH 0 0 0.92\nF 0.1 0 2.75\nH 0.9 0 3.15"),
    "three fragments": ("2;1,3;4-6", "H 0.9 0.1 0\nHe 0 3.0 0\nF 0 0 0\nO 2.8 0 0\nH 3.2 0.76 0.4\nH 3.2 -0.7 0.5"),
}
"""Fragments, and atoms with positions in Angstrom."""
FITTED: dict[str, Any] = {"fitting": "jk", "auxbasis": "def2-universal-jkfit"}
DIRECT: dict[str, Any] = {"fitting": "none", "storage": "direct"}


def molecule(name: str, **electrons: Any) -> Molecule:
    atoms = COMPLEXES[name][1].splitlines()
    return Molecule.from_string("\n".join([str(len(atoms)), "", *atoms]), **electrons)


def pyscf_energy(mol: Molecule, basis: str, fitted: bool) -> float:
    from pyscf import gto, lib, scf

    names = [f"GHOST-{e}" if ghost else e for e, ghost in zip(mol.elements, mol.nuclei.ghosts, strict=True)]
    atoms = list(zip(names, mol.R_ax.tolist(), strict=True))
    peer = gto.M(atom=atoms, unit="B", basis=basis, charge=mol.charge, spin=mol.multiplicity - 1, verbose=0)
    mean = scf.RHF(peer) if mol.multiplicity == 1 else scf.UHF(peer)
    if fitted:
        mean = mean.density_fit(auxbasis=FITTED["auxbasis"])
    with lib.with_omp_threads(1):
        return float(mean.run(conv_tol=1e-12).e_tot)


@pytest.mark.parametrize("options", [FITTED, DIRECT], ids=["fitted", "direct"])
@pytest.mark.parametrize("name", COMPLEXES)
def test_energies_are_those_of_pyscf(name: str, options: dict[str, Any]) -> None:
    mol = molecule(name)
    names: list[str] = []
    found = cuanto.counterpoise(
        mol, COMPLEXES[name][0], "hf", "def2-svp", backend="cpu", on_result=lambda n, _: names.append(n), **options
    )
    assert found.converged and len(found.results) == len(names) == 1 + 2 * len(found.fragments)
    fitted = options is FITTED
    whole = pyscf_energy(mol, "def2-svp", fitted)
    alone = [pyscf_energy(one.fragment.alone, "def2-svp", fitted) for one in found.fragments]
    in_complex = [pyscf_energy(one.fragment.ghosts, "def2-svp", fitted) for one in found.fragments]
    assert abs(found.complex.energy - whole) < ENERGY
    for one, own, other in zip(found.fragments, alone, in_complex, strict=True):
        assert abs(one.alone.energy - own) < ENERGY and abs(one.in_complex.energy - other) < ENERGY
        assert one.lowering < 0
    assert abs(found.raw - (whole - sum(alone))) < ENERGY
    assert abs(found.corrected - (whole - sum(in_complex))) < ENERGY
    assert found.correction == pytest.approx(found.corrected - found.raw) and found.correction > 0
    assert found.corrected_energy == found.energy + found.correction
    assert found.corrected_kcal_mol == found.corrected * HARTREE_IN_KCAL_PER_MOL
    kcal = found.raw_kcal_mol + found.correction_kcal_mol
    assert kcal == pytest.approx(found.corrected_kcal_mol) and "corrected, raw" in repr(found)


def test_a_charged_open_shell_fragment() -> None:
    """Li+ beside OH: the electrons of every fragment are its own."""
    mol = Molecule(["Li", "O", "H"], [[0, 0, 0], [0, 0, 3.6], [0, 1.5, 4.6]], charge=1)
    found = cuanto.counterpoise(
        mol, [1, 2], "hf", "def2-svp", charges=[1, 0], multiplicities=[1, 2], fitting="none", backend="cpu"
    )
    assert [one.fragment.alone.nelectron for one in found.fragments] == [2, 9]
    for one in found.fragments:
        for result, part in ((one.alone, one.fragment.alone), (one.in_complex, one.fragment.ghosts)):
            assert abs(result.energy - pyscf_energy(part, "def2-svp", False)) < ENERGY
    rows = found.to_dict()["fragments"]
    assert [(row["charge"], row["multiplicity"], row["atoms"]) for row in rows] == [(1, 1, [1]), (0, 2, [2, 3])]


def test_a_functional_with_dispersion() -> None:
    """The ghosts have no dispersion: it is the same in both bases."""
    mol = molecule("hydrogen fluoride dimer")
    common: dict[str, Any] = {"basis": "def2-svp", "grid": (40, 110), "backend": "cpu"}
    with_it, plain = (cuanto.counterpoise(mol, "2,2", method, **common) for method in ("pbe-d3bj", "pbe"))
    for one in with_it.fragments:
        assert one.alone.energies["dispersion"] == pytest.approx(one.in_complex.energies["dispersion"], abs=1e-12)
    dispersion = with_it.complex.energies["dispersion"] - sum(o.alone.energies["dispersion"] for o in with_it.fragments)
    assert with_it.corrected - plain.corrected == pytest.approx(dispersion, abs=ENERGY)
    assert with_it.correction == pytest.approx(plain.correction, abs=ENERGY) and plain.correction > 10 * ENERGY_GRID


def test_options_with_a_value_for_each_atom_are_divided() -> None:
    mol = molecule("hydrogen fluoride dimer")
    common: dict[str, Any] = {"basis": "def2-svp", "fitting": "none", "backend": "cpu"}
    start = cuanto.energy(mol, "hf", **common)
    seen: dict[str, Result] = {}
    found = cuanto.counterpoise(
        mol, "1,2;3,4", "hf", atomic_charges=[-0.4, 0.4, -0.4, 0.4], guess=start, on_result=seen.__setitem__, **common
    )
    assert seen["complex"].iterations < 4 < seen["fragment 1"].iterations
    plain = cuanto.counterpoise(mol, [[1, 2], [3, 4]], "hf", **common)
    assert abs(found.corrected - plain.corrected) < ENERGY
    with pytest.raises(InputError, match="atomic_charges: give one number for each of the 4 atoms"):
        cuanto.counterpoise(mol, "2,2", "hf", atomic_charges=[0, 0], **common)


def test_everything_is_checked_before_the_first_calculation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cuanto.interaction.solve", lambda *_: pytest.fail("a calculation began"))
    mol, basis = molecule("hydrogen fluoride dimer"), cuanto.Basis("def2-svp", molecule("hydrogen fluoride dimer"))
    refused: list[tuple[dict[str, Any], str]] = [
        ({"method": "pm6"}, "pm6 has no counterpoise correction: use hf or a functional"),
        ({"basis": basis}, "basis: a counterpoise correction needs a name or file"),
        ({"auxbasis": basis}, "auxbasis: a counterpoise correction needs a name or file"),
        ({"method": "rhf", "fragments": "1;2-4"}, "rhf"),  # fragments with odd numbers of electrons
        ({"fittings": "none"}, "did you mean 'fitting'"),
        ({"molecule": "no_such_dimer.xyz"}, "does not exist"),
    ]
    for given, message in refused:
        with pytest.raises(InputError, match=message):
            cuanto.counterpoise(**{"molecule": mol, "fragments": "2,2", "method": "hf", **given})


def test_a_fragment_that_does_not_converge_is_reported() -> None:
    mol = molecule("hydrogen fluoride dimer")
    found = cuanto.counterpoise(mol, "2,2", "hf", "def2-svp", max_iterations=2, backend="cpu")
    assert isinstance(found, CounterpoiseResult) and not found.converged and "NOT converged" in repr(found)
    assert found.iterations == 10 and found.timings.total > 0 and np.isfinite(found.raw)


ERROR_COMPLEXES = {
    "water dimer": (
        [3, 3],
        "O -1.551007 -0.114520 0\nH -1.934259 0.762503 0\nH -0.599677 0.040712 0\n"
        "O 1.350625 0.111469 0\nH 1.680398 -0.373741 -0.758561\nH 1.680398 -0.373741 0.758561",
    ),
    "HF dimer": ([2, 2], "F 0 0 0\nH 0 0 0.92\nF 0.1 0 2.75\nH 0.9 0 3.15"),
    "ammonia and water": (
        [4, 3],
        "N 0 0 0\nH 0 0.94 0.38\nH 0.81 -0.47 0.38\nH -0.81 -0.47 0.38\nO 0 0 -2.95\nH 0 0 -1.98\nH 0.93 0 -3.2",
    ),
    "methane and HF": (
        [5, 2],
        "C 0 0 0\nH 0.63 0.63 0.63\nH -0.63 -0.63 0.63\nH -0.63 0.63 -0.63\nH 0.63 -0.63 -0.63\nF 0 0 3.2\nH 0 0 2.28",
    ),
    "chlorine and ammonia": (
        [2, 4],
        "Cl 0 0 0\nCl 0 0 2.02\nN 0 0 -2.7\nH 0.94 0 -3.08\nH -0.47 0.81 -3.08\nH -0.47 -0.81 -3.08",
    ),
}
"""Pairs of molecules, on which the errors of interaction energies are tested."""


def dimer(name: str) -> tuple[Molecule, list[int]]:
    parts, atoms = ERROR_COMPLEXES[name]
    return Molecule.from_string(f"{sum(parts)}\n{name}\n{atoms}\n"), parts


def ratio_of_errors(name: str, method: str) -> float:
    """The estimated over the actual error of a corrected energy; the exact one has no fitting and a finer grid."""
    molecule, parts = dimer(name)
    options: dict[str, Any] = {"basis": "def2-svp", "backend": "cpu", "gradient_tolerance": 1e-7}
    found = cuanto.counterpoise(molecule, parts, method, **options)
    better = {} if method == "hf" else {"grid": (99, 590)}
    exact = cuanto.counterpoise(molecule, parts, method, fitting="none", **better, **options)
    return found.corrected_error / abs(found.corrected - exact.corrected)


def test_errors_of_interaction_energies_are_differences() -> None:
    """The errors of the complex are 16 times larger, and 31 times if those of all parts are added."""
    molecule, parts = dimer("HF dimer")
    found = cuanto.counterpoise(molecule, parts, "hf", "def2-svp", backend="cpu")
    complete, fragments = found.complex.errors, [one.in_complex.errors for one in found.fragments]
    left = complete["fitting"] - sum(one["fitting"] for one in fragments)
    size = max(abs(left), REMAINDER * abs(complete["fitting"]))
    assert abs(found.corrected_errors["fitting"]) == pytest.approx(size) and size < 0.2 * abs(complete["fitting"])
    for name in ("screening", "precision", "convergence"):
        assert found.corrected_errors[name] == complete[name] + sum(one[name] for one in fragments)
    assert found.corrected_error == total_error(found.corrected_errors) != found.raw_error > 0
    assert 0.2 < ratio_of_errors("HF dimer", "hf") < 5


@pytest.mark.slow
def test_errors_of_interaction_energies_in_numbers() -> None:
    """What docs/howto/counterpoise.md says."""
    ratios = [ratio_of_errors(name, method) for name in ERROR_COMPLEXES for method in ("hf", "b3lyp", "pbe")]
    assert sum(0.2 < ratio < 5 for ratio in ratios) == 12
    assert 0.15 < min(ratios) < 0.2 and 10 < max(ratios) < 13
