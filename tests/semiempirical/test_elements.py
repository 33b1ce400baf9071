"""All elements: a sample of the molecules of `nddo_elements.json`; tools/compare_semiempirical.py compares them all."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pytest

import cuanto
from cuanto.methods import SemiempiricalResult
from cuanto.semiempirical.constants import BOHR, HARTREE, HARTREE_IN_KCAL, RESCALE
from nddo_cases import ROWS, TIGHT, elements, molecule, moved, numerical_gradient, run, values
from paths import ROOT

ALLOWED = elements()["meta"]["recommended_tolerances"]
OURS, MOPAC = ALLOWED["vs_independent"], ALLOWED["vs_mopac"]
"""Tolerances against the two programs: kcal/mol, Debye, kcal/mol/Angstrom."""
IN_KCAL = HARTREE_IN_KCAL / BOHR * RESCALE
"""Factor that converts a gradient from Hartree/Bohr to kcal/mol/Angstrom."""
SLOPE, STEP = 1e-6, 2e-3
"""Tolerance of gradients against finite differences, kcal/mol/Angstrom, and the step of these, Bohr."""

STATES = [name for name, record in elements()["molecules"].items() if "scf_note" in record["methods"].get("PM6", {})]
"""Molecules with several SCF states, for which the reference says that plain DIIS ended in a higher one."""
SAMPLE = [(name, "PM6") for name in (*STATES, "Fe(CO)5")]
SAMPLE += [(name, "PM6") for name in ("HZnHg+", "CuSeH", "LuF3", "SnH3PH2_model")]  # pairs without parameters
SAMPLE += [(name, "AM1") for name in ("BH3", "BCl2CH3", "BBr2I", "BF3", "B(OH)3", "MoO3H2_model")]
SAMPLE += [(name, "MNDO") for name in ("SeH2", "GaCl3", "SbH3", "LiF")]
SAMPLE += [(name, "PM6") for name in ("SiH4", "SiH3OH", "AgH", "Rh(CO)2Cl2-", "Pd(PH3)2", "HfCl4", "N(SiH3)3")]
SAMPLE += [("HeH+", "PM3"), ("HeNH3", "AM1"), ("NeH+", "PM6"), ("XeF4", "PM6"), ("XeF2", "MNDO")]
SAMPLE += [("EuF3_rm1", "RM1"), ("CeCl3_rm1", "RM1"), ("CH3Br_rm1", "RM1"), ("CdCl2", "PM3"), ("ZnH_radical", "PM3")]
SAMPLE += [(name, "PM6") for name in ("TiCl4", "MnCl2_sextet", "AuCl", "LaF3", "OsO4", "PbCl2")]
DIFFERENTIATED = [("AgH", "PM6"), ("HeLi+", "PM6"), ("XeF2", "PM6"), ("CuSeH", "PM6"), ("NiF2_triplet", "PM6")]
DIFFERENTIATED += [("BH2_radical", "AM1"), ("SeH2", "MNDO"), ("TlCl", "PM3"), ("EuF3_rm1", "RM1"), ("HZnHg+", "PM6")]


@cache
def tight(name: str, method: str) -> SemiempiricalResult:
    return run(molecule(name, method), method, **TIGHT)


@pytest.mark.parametrize("device, gradient", [("cpu", "gradient, finite differences"), ("h200", "gradient, CPU")])
def test_the_stored_comparison_is_complete(device: str, gradient: str) -> None:
    """Every calculation of the reference was repeated by tools/compare_semiempirical.py, and agrees."""
    record = json.loads((ROOT / "benchmarks" / "results" / f"semiempirical_elements_{device}.json").read_text())
    assert record["sound"] and set(record["rows"]) == {f"{name}, {method}" for name, method in ROWS}
    for case, found in record["rows"].items():
        assert found["heat of formation, independent program"] < OURS["heat_kcal_mol"], case
        compatible = found["heat of formation, MOPAC, `mopac_compatible`"]
        assert compatible < MOPAC["heat_kcal_mol_with_truncated_B"], case
        assert found[gradient] < SLOPE, case


@pytest.mark.parametrize(("name", "method"), SAMPLE)
def test_heats_and_properties(name: str, method: str) -> None:
    """Dipole moments of ions refer to a centre of mass, for which MOPAC has its own masses."""
    known, mopac, result = values(name, method), values(name, method, "mopac"), tight(name, method)
    assert result.converged
    assert abs(result.heat_of_formation - known["heat_of_formation_kcal_mol"]) < OURS["heat_kcal_mol"]
    assert result.energies["core repulsion"] * HARTREE == pytest.approx(known["core_core_energy_eV"], abs=1e-8)
    if result.molecule.charge == 0:
        assert np.abs(result.dipole_debye - mopac["dipole_vector_debye"]).max() < MOPAC["dipole_debye"]
    compatible = run(molecule(name, method), method, mopac_compatible=True, **TIGHT)
    limit = MOPAC["heat_kcal_mol_with_truncated_B"]
    assert abs(compatible.heat_of_formation - mopac["heat_of_formation_kcal_mol"]) < limit


@pytest.mark.parametrize(("name", "method"), DIFFERENTIATED)
def test_gradients_equal_those_of_finite_differences(name: str, method: str) -> None:
    """Every component, in kcal/mol/Angstrom."""
    options = {"energy_tolerance": 1e-12, "gradient_tolerance": 1e-9}
    here = run(molecule(name, method), method, **options)
    found = here.gradient * IN_KCAL
    assert np.abs(found).max() > 1.0 and np.abs(found.sum(axis=0)).max() < 1e-9
    assert np.abs(found - IN_KCAL * numerical_gradient(here, STEP, **options)).max() < SLOPE


@pytest.mark.parametrize(("name", "method"), [("CrO2Cl2", "PM6"), ("Rh(CO)2Cl2-", "PM6"), ("HeNH3", "PM6")])
def test_invariance_under_rotation_and_translation(name: str, method: str) -> None:
    """Two kinds of atoms with d functions; an atom with limited additive terms; helium."""
    here, there = tight(name, method), run(moved(molecule(name), 3), method, **TIGHT)
    assert abs(here.energy - there.energy) * HARTREE < 1e-10
    sizes = [np.linalg.norm(result.gradient, axis=1) for result in (here, there)]
    assert np.abs(sizes[0] - sizes[1]).max() < 1e-8


def test_pairs_without_parameters_are_named() -> None:
    note = "WARNING: PM6 has no parameters for Sn-P: core repulsion as in MOPAC without them"
    assert note in tight("SnH3PH2_model", "PM6").notes
    assert "Lu-F" in " ".join(tight("LuF3", "PM6").notes)
    both = cuanto.energies([molecule("SnH3PH2_model")] * 2, "pm6", backend="cpu", workers=0)
    assert all(row.converged for row in both)
    assert not any("WARNING" in note for note in tight("SiH4", "PM6").notes)


def test_states_of_metals_are_followed_to_a_minimum() -> None:
    """Stability is followed by default; the user can disable it."""
    mol, known = molecule("FeF3_sextet"), values("FeF3_sextet", "PM6")["heat_of_formation_kcal_mol"]
    plain = run(mol, "pm6", stability="none")
    assert plain.converged and plain.heat_of_formation > known + 6.0
    assert any("internal stability: stable" in note for note in run(mol, "pm6").notes)
    assert run(molecule("SiH4"), "pm6").state.curvature is None


def test_batches_have_the_states_of_single_calculations() -> None:
    names = ("KrF2", "TiCl4", "SiH4", "KrF2", "CuSeH")
    rows = cuanto.energies([molecule(name) for name in names], "pm6", backend="cpu", gradient=True, workers=0)
    for name, row in zip(names, rows, strict=True):
        alone = run(molecule(name), "pm6")
        assert row.converged and abs(row.energy - alone.energy) < 1e-8
        assert row.gradient is not None and np.abs(row.gradient - alone.gradient).max() < 1e-5
